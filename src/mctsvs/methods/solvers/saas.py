"""Bayesian optimisation under the SAAS prior (Eriksson and Jankowiak, UAI 2021): mode (`saas`) or draws (`saasbo`).

A half-Cauchy density over inverse squared lengthscales, so that an axis-aligned subspace is sparse:

    rho_i ~ HalfCauchy(tau),  rho_i = 1 / l_i^2,      tau ~ HalfCauchy(0.1)

Most mass is near rho = 0, where a variable does not matter at all, and the heavy tail lets the few that do escape.

The mode. Which density is maximised matters. Here it is the one over t = log l (equivalently over log rho), which is
the one over rho times the Jacobian rho: its mode is rho = tau, and moving a variable away from there costs a nat for
each factor e in rho, whichever way. The density over rho itself has its mode at rho = 0 and is flat below tau, so three
hundred idle variables may each move a little for nothing and together explain anything. tau is not maximised but
averaged over: a model is fitted for each of several values. That takes seconds.

Draws. The parameters are sampled by NUTS under the priors of BoTorch's `SaasFullyBayesianSingleTaskGP`,

    tau ~ HalfCauchy(0.1),   rho_i = tau c_i,  c_i ~ HalfCauchy(1),   lengthscale_i = 1 / sqrt(rho_i)
    outputscale ~ Gamma(2, 0.15),   noise ~ Gamma(0.9, 10),   mean ~ N(0, 1)

A sampler wants unbounded coordinates: z = [log c_1, ..., log c_d, log tau, log outputscale, log noise, mean], and the
densities above gain the logarithms' Jacobians. The likelihood's gradient is analytic and needs no compiling for every
number of points; it is slow all the same.

Either way several models make an ensemble. Its expected improvement is climbed by the same search as every other
method's here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import logsumexp

from mctsvs.gp.acquisition import AcquisitionLike, log_expected_improvement, penalised
from mctsvs.gp.ensemble import Ensemble, ImprovementAcquisition, MomentAcquisition, leave_one_out
from mctsvs.gp.kernels import Joint, Kernel
from mctsvs.gp.likelihood import FAILED, Likelihood
from mctsvs.gp.model import LARGEST_FIT, NEAREST, Refit, nearest, spread_by_rank
from mctsvs.gp.optimize_acqf import maximise, propose_greedily
from mctsvs.gp.posterior import Posterior
from mctsvs.gp.priors import Prior
from mctsvs.gp.quasi_newton import minimise
from mctsvs.gp.standardize import standardise
from mctsvs.methods.solvers import Subspace, nuts
from mctsvs.utils.options import Options, option
from mctsvs.utils.state import Saved
from mctsvs.utils.validation import Array, Indices, InputError

TAU_SCALE = 0.1
"""Scale of the half-Cauchy density of tau."""


@dataclass(frozen=True)
class HalfCauchy(Prior):
    """Half-Cauchy on the first `d` parameters' rho = exp(-2 theta), Gaussians on the rest.

    `mean` of a lengthscale is only where a fit starts.
    """

    tau: float
    d: int

    def penalty(self, theta: Array) -> tuple[float, Array]:
        log_rho = -2.0 * theta[: self.d]
        q = np.exp(2.0 * log_rho) / self.tau**2  # (rho / tau)^2
        z = (theta[self.d :] - self.mean[self.d :]) / self.sd[self.d :]
        gradient = np.concatenate([2.0 - 4.0 * q / (1.0 + q), z / self.sd[self.d :]])
        return float((np.log1p(q) - log_rho).sum()) + 0.5 * float(z @ z), gradient


def half_cauchy(kernel: Kernel, d: int, tau: float) -> HalfCauchy:
    """The prior for one value of tau, with the weak priors of `mctsvs.gp.priors.subspace` on scale and noise.

    A fit starts with all variables equal and the squared distance of random points (d rho / 6) about one: at
    rho = tau the points of a hundred variables would all be strangers to each other and no gradient would be left.
    """
    start = -0.5 * np.log(6.0 / d)
    lengthscale = [start, 1.0, np.log(5e-2), np.log(1e4)]
    table = np.array(
        [*[lengthscale] * d, [0.0, 1.0, np.log(1e-2), np.log(1e2)], [np.log(1e-3), 2.0, np.log(1e-6), 0.0]]
    )
    assert kernel.size(d) == d + 1
    mean, sd, low, high = np.ascontiguousarray(table.T)
    return HalfCauchy(mean, sd, low, high, tau, d)


def log_tau_density(tau: float) -> float:
    """Log density of log tau, up to a constant: what a grid even in log tau is weighted by."""
    return float(np.log(tau) - np.log1p((tau / TAU_SCALE) ** 2))


AVERAGES = ("prediction", "improvement")


@dataclass(frozen=True)
class EnsembleOptions(Options):
    """average         prediction: of the members' mixture, by its first two moments;
                    improvement: the members' expected improvements are averaged
    refit_growth    the parameters are found anew when the number of points has grown by this factor
    fit_points      parameters are found from at most so many points (spread evenly over the ranks of their values);
                    predictions use all points, or the nearest to the best of very many
    starts          points of a pool from which expected improvement is climbed
    winsorise       very bad values are pulled in
    """

    average: str = option("prediction", among=AVERAGES)
    refit_growth: float = option(1.1, least=1.0)
    fit_points: int = 400
    starts: int = 1
    winsorise: bool = True


@dataclass(frozen=True)
class Members:
    """Parameters of E models of d coordinates: what is kept between proposals."""

    thetas: Array  # (E, d + 2): log lengthscales, log outputscale, log noise
    shifts: Array  # (E,) constant means
    weights: Array  # (E,) sum to one


class EnsembleSolver(Saved, ABC):
    """Proposes the points with the largest log expected improvement under an ensemble.

    Posteriors are computed from parameters and data at every proposal, so the parameters are all there is to save.
    """

    batch = None
    saved = ("coordinates", "members", "fitted")
    coordinates: Indices | None
    members: Members | None
    fitted: int  # number of points at the last fit

    def __init__(self, options: EnsembleOptions, kernel: Joint) -> None:
        self.options, self.kernel = options, kernel
        self.coordinates, self.members, self.fitted = None, None, 0

    @abstractmethod
    def fit(self, X: Array, values: Array, last: Members | None, rng: np.random.Generator) -> Members:
        """The members for this data; `last` are those of the same coordinates with fewer points."""

    def propose(self, n: int, subspace: Subspace, rng: np.random.Generator) -> Array:
        if len(subspace.history) < 2:
            return rng.random((n, subspace.dimension))
        X, values = subspace.X, standardise(subspace.y, winsorise=self.options.winsorise)
        best, worst = float(values.max()), float(values.min())
        ensemble = self._ensemble(X, values, self._members(subspace.coordinates, X, values, rng))
        incumbents = subspace.X[subspace.history.best(3)]

        def find(ensemble: Ensemble, chosen: list[Array]) -> Array:
            return maximise(
                penalised(self._surface(ensemble, best), subspace.cut), incumbents, rng, starts=self.options.starts
            )

        return propose_greedily(n, ensemble.with_fantasies(subspace.avoid, worst), worst, find)

    def _members(self, coordinates: Indices, X: Array, values: Array, rng: np.random.Generator) -> Members:
        if self.coordinates is None or not np.array_equal(self.coordinates, coordinates):
            self.coordinates, self.members, self.fitted = coordinates, None, 0
        if self.members is None or Refit(self.options.refit_growth).due(len(X), self.fitted):
            rows = spread_by_rank(values, self.options.fit_points)
            self.members, self.fitted = self.fit(X[rows], values[rows], self.members, rng), len(X)
        return self.members

    def _ensemble(self, X: Array, values: Array, members: Members) -> Ensemble:
        if len(X) > LARGEST_FIT:
            scale = np.sqrt(members.weights @ np.exp(-2.0 * members.thetas[:, : X.shape[1]]))
            rows = nearest(X, X[np.argmax(values)], NEAREST, scale=scale)
            X, values = X[rows], values[rows]
        pairs = zip(members.thetas, members.shifts, strict=True)
        posteriors = tuple(Posterior.of(self.kernel, theta, X, values - shift) for theta, shift in pairs)
        return Ensemble(posteriors, members.weights, members.shifts)

    def _surface(self, ensemble: Ensemble, best: float) -> AcquisitionLike:
        if self.options.average == "improvement":
            return ImprovementAcquisition(ensemble, best)
        return MomentAcquisition(ensemble, log_expected_improvement(best))


KERNELS = {"matern52": Joint("matern52"), "se": Joint("se")}
WEIGHTS = ("prior", "leave-one-out")


@dataclass(frozen=True)
class SAASOptions(EnsembleOptions):
    """kernel          matern52 or se
    taus            global shrinkage: the smaller, the fewer variables matter
    weights         prior: of each member the density of its tau; leave-one-out: times that of the data
    fit_iterations  steps of a fit at most
    """

    kernel: str = option("matern52", among=KERNELS)
    taus: tuple[float, ...] = option((0.1, 0.01, 0.001), above=0.0)
    weights: str = option("prior", among=WEIGHTS)
    fit_iterations: int = 60


class SAAS(EnsembleSolver):
    """A model with the SAAS prior for each of several values of tau, averaged."""

    options_type: ClassVar[type[SAASOptions]] = SAASOptions
    options: SAASOptions

    def __init__(self, options: SAASOptions) -> None:
        super().__init__(options, KERNELS[options.kernel])

    def fit(self, X: Array, values: Array, last: Members | None, rng: np.random.Generator) -> Members:
        thetas, logs, iterations = [], [], self.options.fit_iterations
        for e, tau in enumerate(self.options.taus):
            prior = half_cauchy(self.kernel, X.shape[1], tau)
            likelihood = Likelihood(self.kernel, X, values, prior)
            found = []
            # the last fit's optimum is only one of many once there is more data: always start afresh too
            for start in [prior.start] if last is None else [prior.start, last.thetas[e]]:
                found.append(minimise(likelihood, start, prior.low, prior.high, [], iterations=iterations))
            theta = min(found, key=lambda pair: pair[1])[0]
            thetas.append(theta)
            logs.append(log_tau_density(tau))
            if self.options.weights == "leave-one-out":
                logs[-1] += leave_one_out(Posterior.of(self.kernel, theta, X, values))
        return Members(np.array(thetas), np.zeros(len(thetas)), np.exp(np.array(logs) - logsumexp(logs)))


LEAST_NOISE = 1e-6
LARGEST = 100.0  # of a logarithm, beyond which nothing can be computed


class SAASPosterior:
    """Log density of the parameters given data, for a sampler, and its gradient at z (d + 4,)."""

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
class SAASBOOptions(EnsembleOptions):
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


class SAASBO(EnsembleSolver):
    """An ensemble of draws from the posterior of the parameters."""

    options_type: ClassVar[type[SAASBOOptions]] = SAASBOOptions
    options: SAASBOOptions

    def __init__(self, options: SAASBOOptions) -> None:
        super().__init__(options, Joint("matern52"))

    def fit(self, X: Array, values: Array, last: Members | None, rng: np.random.Generator) -> Members:
        o, density = self.options, SAASPosterior(X, values)
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
