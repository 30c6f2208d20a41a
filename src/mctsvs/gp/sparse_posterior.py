"""The density of the parameters of a SAAS model given data, for a sampler (Eriksson and Jankowiak, UAI 2021).

    tau ~ HalfCauchy(0.1),   rho_i = tau c_i,  c_i ~ HalfCauchy(1),   lengthscale_i = 1 / sqrt(rho_i)
    outputscale ~ Gamma(2, 0.15),   noise ~ Gamma(0.9, 10),   mean ~ N(0, 1)

which are the priors of BoTorch's `SaasFullyBayesianSingleTaskGP`. A sampler wants unbounded coordinates:
z = [log c_1, ..., log c_d, log tau, log outputscale, log noise, mean], and the densities above gain the logarithms'
Jacobians.
"""

from __future__ import annotations

import numpy as np

from mctsvs.common import Array
from mctsvs.gp.kernels import Joint
from mctsvs.gp.likelihood import FAILED, Likelihood
from mctsvs.gp.sparse import TAU_SCALE

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
