"""Terms that treat all variables alike: a model of many variables with a handful of parameters.

    Shared      s k(|u - u'| / l)                                              one lengthscale for all
    Isotropic   w q(u) q(u'),  q(u) = (|2 u - 1|^2 - d/3) / sqrt(4 d / 45)     of mean 0 and variance 1 over the cube
    Linear      w (12 / d) (u - 1/2).(u' - 1/2)                                a plane of unknown slope
    Cosines     sum_m w_m (1/d) sum_j cos(pi m (u_j - u'_j)),  m = 1, ..., M   one spectrum for all

a |u - c|^2 is a |u|^2 plus a linear function, so the one weight w says how curved a bowl is wherever its bottom lies,
which fewer points than variables cannot tell otherwise. The cosines find the wells of separable functions.

What does not depend on the parameters (squared distances, q, the M Gram matrices) is computed once for a data set,
with zeros below the diagonal: there W may hold anything, and a product with zeros leaves it out. So a likelihood
costs O(n^3 + M n^2), whatever the number of variables.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import dsymv

from mctsvs.gp.kernels import Cross, Features, Gram, Joint, Radial, StationaryCross, correlation
from mctsvs.utils.validation import Array, InputError


class SharedLengthscale(Joint):
    """A radial function of the distance: theta = [log lengthscale, log outputscale]."""

    def size(self, d: int) -> int:
        return 2

    def gram(self, X: Array) -> Gram:
        return SharedLengthscaleGram(X, self.radial)

    def cross(self, theta: Array, X: Array) -> Cross:
        return super().cross(_each(theta, X.shape[1]), X)

    def features(self, theta: Array, d: int, size: int, rng: np.random.Generator) -> Features:
        return super().features(_each(theta, d), d, size, rng)


def _each(theta: Array, d: int) -> Array:
    """The parameters of a `Joint` kernel whose lengthscales are all the same."""
    return np.append(np.full(d, theta[0]), theta[1])


class SharedLengthscaleGram:
    """`SharedLengthscale` on one data set."""

    def __init__(self, X: Array, radial: Radial) -> None:
        self.radial: Radial = radial
        norms = np.einsum("ij,ij->i", X, X)
        squared = norms[:, None] + norms - 2.0 * (X @ X.T)
        self.squared = np.triu(np.maximum(squared, 0.0), 1)

    def fill(self, theta: Array, K: Array) -> None:
        self.scaled = self.squared * np.exp(-2.0 * theta[0])
        k, self.slope = correlation(self.scaled.copy(), self.radial)
        np.multiply(k, np.exp(theta[1]), out=K)

    def pull_back(self, theta: Array, W: Array, total: float | None) -> tuple[Array, float]:
        if total is None:
            raise ValueError("the shared kernel takes sum(W * K) from the likelihood")
        self.scaled *= self.slope
        return np.array([2.0 * np.exp(theta[1]) * np.vdot(W, self.scaled), total]), total


class OneWeight:
    """A kernel that is one unknown weight times a fixed function of both points: theta = [log w]."""

    term = ""

    def size(self, d: int) -> int:
        return 1

    def features(self, theta: Array, d: int, size: int, rng: np.random.Generator) -> Features:
        raise InputError(f"a kernel with the {self.term} term has no sample paths: choose another acquisition function")


class Isotropic(OneWeight):
    """One quadratic function of the distance from the centre of the cube, of unknown size: theta = [log w]."""

    term = "isotropic"

    def gram(self, X: Array) -> Gram:
        return IsotropicGram(X)

    def cross(self, theta: Array, X: Array) -> Cross:
        return IsotropicCross(theta, X)


def quadratic(U: Array) -> Array:
    """(n,) q(u) of the points U (n, d)."""
    d = U.shape[1]
    q: Array = (np.einsum("ij,ij->i", U, U - 1.0) + d / 6.0) / math.sqrt(d / 180.0)  # |2 u - 1|^2 = 4 u.(u - 1) + d
    return q


class IsotropicGram:
    """`Isotropic` on one data set."""

    def __init__(self, X: Array) -> None:
        self.q = quadratic(X)

    def fill(self, theta: Array, K: Array) -> None:
        np.outer(np.exp(theta[0]) * self.q, self.q, out=K)

    def pull_back(self, theta: Array, W: Array, total: float | None) -> tuple[Array, float]:
        own = float(np.exp(theta[0]) * (self.q @ dsymv(1.0, W.T, self.q, lower=1)))
        return np.array([own]), own


class IsotropicCross:
    """`Isotropic` to one data set."""

    def __init__(self, theta: Array, X: Array) -> None:
        self.weight, self.q = float(np.exp(theta[0])), quadratic(X)

    def covariance(self, Z: Array) -> tuple[Array, None]:
        return np.outer(self.weight * quadratic(Z), self.q), None

    def pull_back(self, Z: Array, cache: None, C: Array) -> Array:
        return (self.weight * (C @ self.q))[:, None] * self._slope(Z)

    def variance(self, Z: Array) -> Array:
        return self.weight * quadratic(Z) ** 2

    def variance_slope(self, Z: Array) -> Array:
        return (2.0 * self.weight * quadratic(Z))[:, None] * self._slope(Z)

    def _slope(self, Z: Array) -> Array:
        """(m, d) dq/dz."""
        return (2.0 * Z - 1.0) / math.sqrt(Z.shape[1] / 180.0)


class Linear(OneWeight):
    """A linear function of unknown slope, 0 in the centre of the cube: theta = [log w], its variance over the cube."""

    term = "linear"

    def gram(self, X: Array) -> Gram:
        return LinearGram(X)

    def cross(self, theta: Array, X: Array) -> Cross:
        return LinearCross(theta, X)


class LinearGram:
    """`Linear` on one data set."""

    def __init__(self, X: Array) -> None:
        centred = X - 0.5
        self.products = np.triu(centred @ centred.T) * (12.0 / X.shape[1])

    def fill(self, theta: Array, K: Array) -> None:
        np.multiply(self.products, np.exp(theta[0]), out=K)

    def pull_back(self, theta: Array, W: Array, total: float | None) -> tuple[Array, float]:
        twice = 2.0 * np.vdot(W, self.products) - np.diagonal(W) @ np.diagonal(self.products)
        own = float(np.exp(theta[0]) * twice)
        return np.array([own]), own


class LinearCross:
    """`Linear` to one data set."""

    def __init__(self, theta: Array, X: Array) -> None:
        self.weight, self.X = 12.0 / X.shape[1] * float(np.exp(theta[0])), X - 0.5

    def covariance(self, Z: Array) -> tuple[Array, None]:
        return self.weight * ((Z - 0.5) @ self.X.T), None

    def pull_back(self, Z: Array, cache: None, C: Array) -> Array:
        gradient: Array = self.weight * (C @ self.X)
        return gradient

    def variance(self, Z: Array) -> Array:
        variance: Array = self.weight * np.einsum("ij,ij->i", Z - 0.5, Z - 0.5)
        return variance

    def variance_slope(self, Z: Array) -> Array:
        slope: Array = 2.0 * self.weight * (Z - 0.5)
        return slope


class Cosines:
    """A sum of one-variable functions that all have the same spectrum: theta = [log w_1, ..., log w_M].

    Between queries and data in single precision: half of the time, and an error far below any noise a model can see.
    """

    def __init__(self, M: int, dtype: npt.DTypeLike = np.float32) -> None:
        self.M, self.dtype = M, dtype
        self._last: tuple[Array, npt.NDArray[np.floating]] | None = None

    def size(self, d: int) -> int:
        return self.M

    def gram(self, X: Array) -> Gram:
        return CosinesGram(self._waves(X))

    def cross(self, theta: Array, X: Array) -> Cross:
        return CosinesCross(theta, self._waves(X))

    def _waves(self, X: Array) -> npt.NDArray[np.floating]:
        """Kept for the same array: a posterior needs them for its own matrix and for those to its queries."""
        last = self._last
        if last is None or last[0] is not X:
            last = self._last = X, waves(X, self.M, self.dtype)
        return last[1]

    def features(self, theta: Array, d: int, size: int, rng: np.random.Generator) -> Features:
        weights = np.exp(theta)
        m = 1 + rng.choice(self.M, size, p=weights / weights.sum())
        one = rng.integers(0, d, size)[:, None] == np.arange(d)
        phases = rng.uniform(0.0, 2.0 * np.pi, size)
        return np.pi * m[:, None] * one, phases, np.full(size, np.sqrt(2.0 * weights.sum() / size))


def waves(U: Array, M: int, dtype: npt.DTypeLike) -> npt.NDArray[np.floating]:
    """(n, M, 2, d) cosines and sines of pi m u_j, over sqrt(d): sums of their products are the M Gram matrices."""
    n, d = U.shape
    angle = (np.pi * U).astype(dtype)[:, None] * np.arange(1, M + 1, dtype=dtype)[:, None]
    out = np.empty((n, M, 2, d), dtype)
    np.cos(angle, out=out[:, :, 0])
    np.sin(angle, out=out[:, :, 1])
    out *= out.dtype.type(1.0 / math.sqrt(d))
    return out


class CosinesGram:
    """`Cosines` on one data set."""

    def __init__(self, F: npt.NDArray[np.floating]) -> None:
        n, M = F.shape[:2]
        self.matrices = np.empty((M, n, n))
        for m in range(M):
            wave = F[:, m].reshape(n, -1)
            self.matrices[m] = np.triu(wave @ wave.T)
            np.fill_diagonal(self.matrices[m], 1.0)
        self.flat = self.matrices.reshape(M, n * n)

    def fill(self, theta: Array, K: Array) -> None:
        K[...] = (np.exp(theta) @ self.flat).reshape(K.shape)

    def pull_back(self, theta: Array, W: Array, total: float | None) -> tuple[Array, float]:
        own = np.exp(theta) * (2.0 * (self.flat @ W.ravel()) - np.trace(W))
        return own, float(own.sum())


class CosinesCross(StationaryCross):
    """`Cosines` to one data set, whose waves (n, M, 2, d) are kept between queries."""

    def __init__(self, theta: Array, F: npt.NDArray[np.floating]) -> None:
        self.F, (self.M, _, self.d) = F.reshape(len(F), -1), F.shape[1:]
        self.scale = float(np.exp(theta).sum())
        self.weights = np.exp(theta).astype(F.dtype)

    def covariance(self, Z: Array) -> tuple[Array, npt.NDArray[np.floating]]:
        own = waves(Z, self.M, self.F.dtype)
        own *= self.weights[:, None, None]
        return (own.reshape(len(Z), -1) @ self.F.T).astype(np.float64), own

    def pull_back(self, Z: Array, cache: npt.NDArray[np.floating], C: Array) -> Array:
        P = (C.astype(self.F.dtype) @ self.F).reshape(cache.shape)
        rates = np.pi * np.arange(1, self.M + 1, dtype=self.F.dtype)
        slopes = cache[:, :, 0] * P[:, :, 1] - cache[:, :, 1] * P[:, :, 0]
        gradient: Array = np.einsum("m,imj->ij", rates, slopes).astype(np.float64)
        return gradient
