"""The Mahalanobis kernel of ALEBO and samples of its matrix (Letham et al., NeurIPS 2020, Sections 4.1 and 4.3).

    k(v, v') = s exp(-1/2 (v - v')' Gamma (v - v')),     Gamma = U'U,  U (d, d) upper triangular

A function that varies along the axes of the full space varies along oblique directions of a random embedding, so
the d lengthscales of an ARD kernel cannot describe it; the d (d + 1) / 2 entries of U can. They are too many to be
pinned down by the few points of a run: instead of one estimate, several samples of U are drawn from a normal
distribution around the most probable one, its covariance the inverse Hessian (Laplace's approximation).

theta = [U row by row, log s]; a model's parameters are theta followed by the log noise variance.
"""

from __future__ import annotations

import numpy as np

from mctsvs.gp.kernels import correlation
from mctsvs.gp.likelihood import FAILED, Likelihood
from mctsvs.gp.priors import Prior
from mctsvs.gp.quasi_newton import minimise
from mctsvs.utils.validation import Array

STEP = 1e-4  # of the differences of gradients that make the Hessian


def triangle(theta: Array, d: int) -> Array:
    """U from the head of theta."""
    U = np.zeros((d, d))
    U[np.triu_indices(d)] = theta[: d * (d + 1) // 2]
    return U


class Mahalanobis:
    """The kernel, with the methods of `mctsvs.gp.kernels.Kernel`."""

    def size(self, d: int) -> int:
        return d * (d + 1) // 2 + 1

    def bind(self, X: Array) -> MahalanobisGram:
        return MahalanobisGram(X)

    def to(self, theta: Array, X: Array) -> MahalanobisCross:
        return MahalanobisCross(theta, X)

    def features(self, theta: Array, d: int, size: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        frequencies = rng.standard_normal((size, d)) @ triangle(theta, d)
        phases = rng.uniform(0.0, 2.0 * np.pi, size)
        return frequencies, phases, np.full(size, np.sqrt(2.0 * np.exp(theta[-1]) / size))


class MahalanobisCross:
    """The kernel to one data set, whose transformed points are kept between queries."""

    def __init__(self, theta: Array, X: Array) -> None:
        self.U, self.scale = triangle(theta, X.shape[1]), float(np.exp(theta[-1]))
        self.XU = X @ self.U.T
        self.norms = np.einsum("ij,ij->i", self.XU, self.XU)

    def covariance(self, Z: Array) -> tuple[Array, Array]:
        ZU = Z @ self.U.T
        squared = ZU @ self.XU.T
        squared *= -2.0
        squared += np.einsum("ij,ij->i", ZU, ZU)[:, None]
        squared += self.norms
        k, _ = correlation(np.maximum(squared, 0.0, out=squared), "se")
        k *= self.scale
        return k, k

    def pull_back(self, Z: Array, kept: Array, C: Array) -> Array:
        G = C * kept
        gradient: Array = (G @ self.XU - G.sum(axis=1)[:, None] * (Z @ self.U.T)) @ self.U
        return gradient

    def variance(self, Z: Array) -> float:
        return self.scale

    def variance_slope(self, Z: Array) -> float:
        return 0.0


class MahalanobisGram:
    """The kernel on one data set."""

    def __init__(self, X: Array) -> None:
        self.X = X
        self.k = np.empty((0, 0))

    def fill(self, theta: Array, K: Array) -> None:
        self.k, _ = MahalanobisCross(theta, self.X).covariance(self.X)
        np.fill_diagonal(self.k, np.exp(theta[-1]))
        K[...] = self.k

    def pull_back(self, theta: Array, W: Array, total: float | None) -> tuple[Array, float]:
        X, d = self.X, self.X.shape[1]
        G = np.triu(W, 1) * self.k
        G += G.T
        # dL/dU = -U S with S = sum_ij G_ij (x_i - x_j)(x_i - x_j)'
        S = 2.0 * (X.T @ (G.sum(axis=1)[:, None] * X) - X.T @ (G @ X))
        gradient = np.empty(len(theta))
        gradient[:-1] = -(triangle(theta, d) @ S)[np.triu_indices(d)]
        gradient[-1] = np.vdot(np.triu(W) + np.triu(W, 1), self.k) if total is None else total
        return gradient, float(gradient[-1])


def prior(d: int, spread: float = 1.0) -> Prior:
    """Entries of U ~ N(0, spread): smooth functions unless the data say otherwise; scale and noise as elsewhere."""
    p = d * (d + 1) // 2
    entries = np.tile([0.0, spread, -30.0, 30.0], (p, 1))
    rest = np.array([[0.0, 1.0, np.log(1e-2), np.log(1e2)], [np.log(1e-4), 2.0, np.log(1e-6), 0.0]])
    return Prior(*np.ascontiguousarray(np.concatenate([entries, rest]).T))


def most_probable(likelihood: Likelihood, prior: Prior, starts: list[Array], iterations: int) -> Array:
    """The best of the local maxima of the posterior density reached from `starts`."""
    best, best_value = starts[0], np.inf
    for start in starts:
        theta, value = minimise(likelihood, start, prior.low, prior.high, [], iterations=iterations)
        if value < min(best_value, FAILED):
            best, best_value = theta, value
    return best


def laplace(likelihood: Likelihood, prior: Prior, theta: Array, count: int, rng: np.random.Generator) -> Array:
    """(count, len(theta)) parameter vectors: U drawn around theta, outputscale and noise kept as they are.

    Where the density is flat or not concave the fit stopped early, or the data say nothing: there the precision
    is the prior's, never less.
    """
    p = len(theta) - 2
    H = np.empty((p, p))
    for i in range(p):
        ahead, behind = theta.copy(), theta.copy()
        ahead[i] += STEP
        behind[i] -= STEP
        H[i] = (likelihood(ahead)[1][:p] - likelihood(behind)[1][:p]) / (2.0 * STEP)
    eigenvalues, vectors = np.linalg.eigh(0.5 * (H + H.T))
    deviations = 1.0 / np.sqrt(np.maximum(eigenvalues, 1.0 / prior.sd[:p] ** 2))
    samples = np.tile(theta, (count, 1))
    samples[:, :p] += (rng.standard_normal((count, p)) * deviations) @ vectors.T
    return samples
