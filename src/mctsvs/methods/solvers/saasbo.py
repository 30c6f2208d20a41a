"""The density of the parameters of a SAAS model given data, for a sampler (Eriksson and Jankowiak, UAI 2021).

    tau ~ HalfCauchy(0.1),   rho_i = tau c_i,  c_i ~ HalfCauchy(1),   lengthscale_i = 1 / sqrt(rho_i)
    outputscale ~ Gamma(2, 0.15),   noise ~ Gamma(0.9, 10),   mean ~ N(0, 1)

which are the priors of BoTorch's `SaasFullyBayesianSingleTaskGP`. A sampler wants unbounded coordinates:
z = [log c_1, ..., log c_d, log tau, log outputscale, log noise, mean], and the densities above gain the logarithms'
Jacobians.

SAASBO: the SAAS prior with its parameters sampled by NUTS (Eriksson and Jankowiak, UAI 2021).

Model and priors are those of BoTorch's `SaasFullyBayesianSingleTaskGP` (`mctsvs.methods.solvers.saasbo`), sampled here by
`mctsvs.methods.solvers.nuts` with the likelihood's analytic gradient, which needs no compiling for every number of points. Each draw
becomes a member of an ensemble, whose expected improvements are averaged as in the paper and climbed by the same search
as every other method's here: the paper of MCTS-VS compares SAASBO so, too. It is slow all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mctsvs.gp.kernels import Joint
from mctsvs.gp.likelihood import FAILED, Likelihood
from mctsvs.methods.solvers import nuts
from mctsvs.methods.solvers.saas import AVERAGES, TAU_SCALE, EnsembleOptions, EnsembleSolver, Members
from mctsvs.utils.options import option
from mctsvs.utils.validation import Array, InputError

LEAST_NOISE = 1e-6
LARGEST = 100.0  # of a logarithm, beyond which nothing can be computed


class SparsePosterior:
    """Log density and gradient at z (d + 4,)."""

    def __init__(self, X: Array, values: Array) -> None:
        self.d = X.shape[1]
        self.likelihood = Likelihood(Joint("matern52"), X, values)

    def __call__(self, z: Array) -> tuple[float, Array]:
        d = self.d
        gradient = np.zeros_like(z)
        if not np.abs(z).max() < LARGEST:
            return -np.inf, gradient
        value, slope = self.likelihood(self.parameters(z), mean=z[-1])
        if value >= FAILED:
            return -np.inf, gradient
        outputscale, noise = np.exp(z[d + 1 : d + 3])
        gradient[:d] = 0.5 * slope[:d]  # log lengthscale = -(log c + log tau) / 2, and `slope` is that of -L
        gradient[d] = gradient[:d].sum()
        gradient[d + 1] = 2.0 - 0.15 * outputscale - slope[d]
        gradient[d + 2] = 0.9 - 10.0 * noise - slope[d + 1] * noise / (noise + LEAST_NOISE)
        gradient[d + 3] = self.likelihood.weights.sum() - z[-1]
        squares = np.exp(2.0 * z[: d + 1])
        squares[d] /= TAU_SCALE**2
        gradient[: d + 1] += 1.0 - 2.0 * squares / (1.0 + squares)
        log_prior = float((z[: d + 1] - np.log1p(squares)).sum() + 2.0 * z[d + 1] + 0.9 * z[d + 2])
        log_prior += float(-0.15 * outputscale - 10.0 * noise - 0.5 * z[-1] ** 2)
        return log_prior - value, gradient

    def parameters(self, z: Array) -> Array:
        """The model's theta: log lengthscales, log outputscale, log noise."""
        d = self.d
        noise = np.log(np.exp(z[..., d + 2]) + LEAST_NOISE)
        lengthscales = -0.5 * (z[..., :d] + z[..., d : d + 1])
        return np.concatenate([lengthscales, z[..., d + 1 : d + 2], noise[..., None]], axis=-1)


@dataclass(frozen=True)
class SparseSampledOptions(EnsembleOptions):
    """warmup          steps of the sampler that are thrown away
    mcmc_samples    steps that follow, of which every `thinning`-th becomes a member
    tree_depth      of NUTS: a step costs up to 2 ** tree_depth gradients

    The defaults are those of BoTorch's tutorial; parameters are sampled anew whenever a value has come.
    """

    average: str = option("improvement", among=AVERAGES)
    refit_growth: float = option(1.0, least=1.0)
    fit_points: int = 1000
    warmup: int = 256
    mcmc_samples: int = 128
    thinning: int = 16
    tree_depth: int = 6

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.thinning > self.mcmc_samples:
            raise InputError(
                f"thinning={self.thinning} cannot be used: "
                f"it must be at most mcmc_samples={self.mcmc_samples}, or no draw would be left"
            )


class SparseSampled(EnsembleSolver):
    """An ensemble of draws from the posterior of the parameters."""

    options_type: ClassVar[type[SparseSampledOptions]] = SparseSampledOptions
    options: SparseSampledOptions

    def __init__(self, options: SparseSampledOptions) -> None:
        super().__init__(options, Joint("matern52"))

    def fit(self, X: Array, values: Array, last: Members | None, rng: np.random.Generator) -> Members:
        o, density = self.options, SparsePosterior(X, values)
        draws = nuts.sample(
            density,
            rng.uniform(-2.0, 2.0, X.shape[1] + 4),
            rng,
            warmup=o.warmup,
            steps=o.mcmc_samples,
            thinning=o.thinning,
            tree_depth=o.tree_depth,
        )
        return Members(density.parameters(draws), draws[:, -1], np.full(len(draws), 1.0 / len(draws)))
