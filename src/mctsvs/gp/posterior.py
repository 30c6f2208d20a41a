"""Posterior of a Gaussian process at fixed parameters: prediction, gradients, extension by new points.

A `Posterior` is a value: `extended` returns a new one. Its factor is a Cholesky factor computed for a first block
of points and extended by later blocks, O(n^2 k) for k points. `blocks` remembers their sizes, so that the same
factor, rounding included, can be computed again from the data alone: nothing of size n^2 is ever saved.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg.blas import dtrsm, dtrsv
from scipy.linalg.lapack import dpotrf, dtrtrs

from mctsvs.gp.kernels import Cross, Kernel
from mctsvs.gp.likelihood import JITTER, invert_from_factor
from mctsvs.utils.validation import Array


@dataclass(frozen=True)
class Posterior:
    """f | data. `theta` is the kernel's parameters followed by the log noise; y is standardised.

    With `constant_mean` f varies about `offset`, the most probable constant given the data, otherwise about zero.
    """

    kernel: Kernel
    theta: Array
    X: Array
    y: Array
    factor: Array  # upper triangular U with U'U = K + noise, (n, n), Fortran order
    jitter: float
    blocks: tuple[int, ...]
    constant_mean: bool = False
    known: Array | None = None  # (n,) variances of the values' noise, beside the learnt one

    @cached_property
    def offset(self) -> float:
        """The mean of f far from all data."""
        if not self.constant_mean:
            return 0.0
        ones = solve_with_factor(self.factor, np.ones(len(self.y)))
        return float(ones @ self.y) / float(ones.sum())

    @cached_property
    def weights(self) -> Array:
        """(K + noise)^-1 (y - offset)."""
        return solve_with_factor(self.factor, self.y - self.offset if self.constant_mean else self.y)

    @property
    def left_out(self) -> Array:
        """(n,) each value as the others alone predict it, with these parameters and this offset."""
        lower = np.asfortranarray(np.triu(self.factor).T)
        return self.y - self.weights / np.diagonal(invert_from_factor(lower))

    @cached_property
    def cross(self) -> Cross:
        return self.kernel.cross(self.theta[:-1], self.X)

    @staticmethod
    def of(
        kernel: Kernel,
        theta: Array,
        X: Array,
        y: Array,
        *,
        constant_mean: bool = False,
        known: Array | None = None,
    ) -> Posterior:
        """Condition on the data; the jitter grows until the matrix can be factorised, so this never fails."""
        X = np.ascontiguousarray(X)
        gram, jitter = kernel.gram(X), JITTER
        K = np.empty((len(X), len(X)))
        while True:
            gram.fill(theta[:-1], K)
            np.fill_diagonal(K, np.diagonal(K) + np.exp(theta[-1]) + jitter)
            if known is not None:
                K[np.diag_indices(len(X))] += known
            lower, failed = dpotrf(K.T, lower=1, clean=1, overwrite_a=1)
            if not failed:
                factor = np.asfortranarray(lower.T)
                return Posterior(kernel, theta, X, y, factor, jitter, (len(X),), constant_mean, known)
            jitter *= 100.0

    @staticmethod
    def replay(
        kernel: Kernel, theta: Array, X: Array, y: Array, blocks: Sequence[int], *, constant_mean: bool = False
    ) -> Posterior:
        """The posterior reached by `of` on the first block and `extended` by the others, bit for bit."""
        ends = np.cumsum(blocks)
        posterior = Posterior.of(kernel, theta, X[: ends[0]], y[: ends[0]], constant_mean=constant_mean)
        for start, end in itertools.pairwise(ends):
            posterior = posterior.extended(X[start:end], y[:end])
        return posterior

    def extended(self, X_new: Array, y: Array) -> Posterior:
        """With further points; y holds the values of all points, old and new, standardised anew.

        Of the noise of the new ones nothing is known.
        """
        n, k = len(self.X), len(X_new)
        X = np.concatenate([self.X, X_new])
        known = None if self.known is None else np.append(self.known, np.zeros(k))
        if k == 0:
            return self.with_values(y)
        cross, _ = self.cross.covariance(X_new)
        corner, _ = self.kernel.cross(self.theta[:-1], X_new).covariance(X_new)
        np.fill_diagonal(corner, self.cross.variance(X_new) + np.exp(self.theta[-1]) + self.jitter)
        side = dtrsm(1.0, self.factor, cross.T, lower=0, trans_a=1)
        corner -= side.T @ side
        corner_factor, failed = dpotrf(corner, lower=0, clean=1)
        if failed:  # duplicates: factorise from scratch with more jitter
            return Posterior.of(self.kernel, self.theta, X, y, constant_mean=self.constant_mean, known=known)
        factor = np.zeros((n + k, n + k), order="F")
        factor[:n, :n], factor[:n, n:], factor[n:, n:] = self.factor, side, corner_factor
        blocks = (*self.blocks, k)
        return Posterior(self.kernel, self.theta, X, y, factor, self.jitter, blocks, self.constant_mean, known)

    def with_fantasies(self, points: Array, value: float) -> Posterior:
        """With further points at which one made-up value is taken for granted."""
        return self.extended(points, np.append(self.y, np.full(len(points), value))) if len(points) else self

    def with_values(self, y: Array) -> Posterior:
        """The same points with other values, O(n^2)."""
        return replace(self, y=y)

    def predict(self, Z: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of f at Z, (m,) each."""
        k, _ = self.cross.covariance(Z)
        mean = k @ self.weights + self.offset
        v = dtrsm(1.0, self.factor, k.T, lower=0, trans_a=1, overwrite_b=1)
        return mean, self._deviation(Z, np.einsum("ij,ij->j", v, v))

    def predict_with_pull_back(self, Z: Array) -> tuple[Array, Array, Pullback]:
        """As `predict`, and the map from derivatives in (mean, sd) to derivatives in Z."""
        k, cache = self.cross.covariance(Z)
        mean = k @ self.weights + self.offset
        if len(Z) == 1:  # a climb's query: the vector routine is faster
            v = dtrsv(self.factor, k[0], lower=0, trans=1)[:, None]
            sd = self._deviation(Z, np.einsum("ij,ij->j", v, v))
            v = dtrsv(self.factor, v[:, 0], lower=0, overwrite_x=1)[:, None]
        else:
            v = dtrsm(1.0, self.factor, k.T, lower=0, trans_a=1)
            sd = self._deviation(Z, np.einsum("ij,ij->j", v, v))
            v = dtrsm(1.0, self.factor, v, lower=0, overwrite_b=1)  # (K + noise)^-1 k
        return mean, sd, Pullback(self, Z, cache, v.T, sd)

    def _deviation(self, Z: Array, explained: Array) -> Array:
        variance = self.cross.variance(Z)
        deviation: Array = np.sqrt(np.maximum(variance - explained, 1e-12 * variance))
        return deviation

    def sample_path(self, rng: np.random.Generator, size: int = 512) -> SamplePath:
        """One function drawn from the posterior, as a `SamplePath` that can be evaluated anywhere."""
        return self.sample_paths(1, rng, size).path(0)

    def sample_paths(self, count: int, rng: np.random.Generator, size: int = 512) -> SamplePaths:
        """Several functions drawn from the posterior, all on one set of features."""
        frequencies, phases, amplitudes = self.kernel.features(self.theta[:-1], self.X.shape[1], size, rng)
        coefficients = amplitudes[:, None] * rng.standard_normal((len(amplitudes), count))
        variance = np.exp(self.theta[-1]) + self.jitter
        deviation = np.sqrt(variance) if self.known is None else np.sqrt(variance + self.known)[:, None]
        noise = deviation * rng.standard_normal((len(self.X), count))
        drawn = np.cos(self.X @ frequencies.T + phases) @ coefficients + noise
        correction = solve_with_factor(self.factor, self.y[:, None] - self.offset - drawn)
        return SamplePaths(self, frequencies, phases, coefficients, correction)


@dataclass(frozen=True)
class Pullback:
    """Derivatives of a function of (mean, sd) with respect to the query points, by one product over the data."""

    posterior: Posterior
    Z: Array
    cache: Any
    solved: Array  # (m, n): k (K + noise)^-1
    sd: Array

    def __call__(self, d_mean: Array, d_sd: Array) -> Array:
        p = self.posterior
        by_variance = (d_sd / self.sd)[:, None]  # twice: sd = sqrt(v - k A^-1 k')
        C = d_mean[:, None] * p.weights - by_variance * self.solved
        gradient: Array = p.cross.pull_back(self.Z, self.cache, C) + 0.5 * by_variance * p.cross.variance_slope(self.Z)
        return gradient


@dataclass(frozen=True)
class _Draws:
    """What one or several draws from a posterior are made of."""

    posterior: Posterior
    frequencies: Array  # (size, d)
    phases: Array  # (size,)
    coefficients: Array  # (size,), of several draws (size, count)
    correction: Array  # (n,), of several draws (n, count)


class SamplePaths(_Draws):
    """Several draws from one posterior."""

    def __call__(self, Z: Array) -> Array:
        """(count, m) values at Z, features in single precision: fast, and enough to choose among candidates."""
        k, _ = self.posterior.cross.covariance(Z)
        angle = Z.astype(np.float32) @ self.frequencies.astype(np.float32).T
        angle += self.phases.astype(np.float32)
        values = np.cos(angle, out=angle) @ self.coefficients.astype(np.float32) + k @ self.correction
        values += self.posterior.offset
        return np.ascontiguousarray(values.T)

    def path(self, i: int) -> SamplePath:
        """The i-th draw on its own."""
        columns = np.ascontiguousarray(self.coefficients[:, i]), np.ascontiguousarray(self.correction[:, i])
        return SamplePath(self.posterior, self.frequencies, self.phases, *columns)


class SamplePath(_Draws):
    """A draw f(z) = prior features(z) + k(z, X) correction: random Fourier features with the exact data update."""

    def __call__(self, Z: Array) -> Array:
        k, _ = self.posterior.cross.covariance(Z)
        value: Array = np.cos(Z @ self.frequencies.T + self.phases) @ self.coefficients + k @ self.correction
        value += self.posterior.offset
        return value

    def value_and_gradient(self, Z: Array) -> tuple[Array, Array]:
        cross = self.posterior.cross
        angle = Z @ self.frequencies.T + self.phases
        k, cache = cross.covariance(Z)
        value = np.cos(angle) @ self.coefficients + k @ self.correction
        value += self.posterior.offset
        gradient = -(np.sin(angle) * self.coefficients) @ self.frequencies
        C = np.broadcast_to(self.correction, k.shape)
        return value, gradient + cross.pull_back(Z, cache, C)


def solve_with_factor(factor: Array, y: Array) -> Array:
    """(U'U)^-1 y from the upper triangular factor U (n, n)."""
    u, _ = dtrtrs(factor, y, lower=0, trans=1)
    weights, _ = dtrtrs(factor, u, lower=0)
    return np.asarray(weights)
