"""Covariance functions, and the two products with their derivatives that a Gaussian process needs.

Notation and shapes, used in all of `gp`:
    n, m    data points, query points             d      variables of the subspace
    X       (n, d) data in the unit cube          Z      (m, d) query points
    theta   logarithms of the kernel's parameters (lengthscales, then outputscale, a block per term)
    K       (n, n) Gram matrix; only its upper triangle (C order) is ever computed
    W       (n, n) dL/dK of some scalar L, symmetric; only its upper triangle is read

No (n, n, d) array exists anywhere: all lengthscale derivatives of the joint kernel come out of one symmetric
matrix product, so likelihood and gradient cost what one factorisation costs.
"""

from __future__ import annotations

import itertools
from typing import Any, Literal, Protocol

import numpy as np
from scipy.linalg.blas import dsymm

from mctsvs.utils.validation import Array

Radial = Literal["matern52", "se"]
Features = tuple[Array, Array, Array]
"""Of random Fourier features: frequencies (size, d), phases (size,), amplitudes (size,)."""
ROW_BLOCK = 96  # rows computed at once: the block's temporaries stay in the second-level cache


def correlation(squared: Array, radial: Radial) -> tuple[Array, Array]:
    """Correlation k(r) and slope s(r) = -2 dk/d(r^2) from scaled squared distances r^2 (overwritten).

    The slope is what every derivative needs: dk/dx = -s (x - x') / l^2 and dk/d(log l) = s (x - x')^2 / l^2.
    """
    if radial == "se":
        squared *= -0.5
        np.exp(squared, out=squared)
        return squared, squared
    squared *= 5.0
    slope = np.sqrt(squared)
    decay = np.exp(-slope)
    slope += 1.0
    squared *= 1.0 / 3.0
    squared += slope
    squared *= decay
    slope *= decay
    slope *= 5.0 / 3.0
    return squared, slope


class Gram(Protocol):
    """A kernel bound to one data set: Gram matrix and its parameter derivative, buffers reused between calls."""

    def fill(self, theta: Array, K: Array) -> None:
        """Write the upper triangle of the Gram matrix into K."""
        ...

    def pull_back(self, theta: Array, W: Array, total: float | None) -> tuple[Array, float]:
        """dL/dtheta from W = dL/dK at the theta of the last `fill`, and sum(W * K): `total` where known already."""
        ...


class Cross(Protocol):
    """A kernel between query points Z and fixed data at fixed parameters."""

    def covariance(self, Z: Array) -> tuple[Array, Any]:
        """(m, n) covariances of Z with the data, and a cache for `pull_back`."""
        ...

    def pull_back(self, Z: Array, cache: Any, C: Array) -> Array:
        """(m, d) gradient in Z of sum_j C[i, j] k(Z[i], X[j])."""
        ...

    def variance(self, Z: Array) -> Array | float:
        """(m,) prior variances k(z, z), or one number that holds everywhere."""
        ...

    def variance_slope(self, Z: Array) -> Array | float:
        """(m, d) gradient of the prior variance, or 0."""
        ...


class Kernel(Protocol):
    """A covariance function on the unit cube; theta ends with logarithms of outputscales, of each term for a `Sum`."""

    def size(self, d: int) -> int:
        """Number of parameters in theta."""
        ...

    def gram(self, X: Array) -> Gram:
        """The kernel on the data X (n, d), at parameters still to be chosen."""
        ...

    def cross(self, theta: Array, X: Array) -> Cross:
        """The kernel between query points and X (n, d), at fixed parameters."""
        ...

    def features(self, theta: Array, d: int, size: int, rng: np.random.Generator) -> Features:
        """Random features whose products have this kernel as their mean."""
        ...


class StationaryCross:
    """What stationary kernels have in common: one prior variance, the outputscale, at every point."""

    scale: float

    def variance(self, Z: Array) -> float:
        return self.scale

    def variance_slope(self, Z: Array) -> float:
        return 0.0


class Joint:
    """One radial function of all variables, a lengthscale each (ARD): theta = [log lengthscales, log outputscale]."""

    def __init__(self, radial: Radial = "matern52") -> None:
        self.radial: Radial = radial

    def size(self, d: int) -> int:
        return d + 1

    def gram(self, X: Array) -> Gram:
        return JointGram(X, self.radial)

    def cross(self, theta: Array, X: Array) -> Cross:
        return JointCross(theta, X, self.radial)

    def features(self, theta: Array, d: int, size: int, rng: np.random.Generator) -> Features:
        frequencies = rng.standard_normal((size, d)) * np.exp(-theta[:-1])
        if self.radial == "matern52":  # its spectral density is a Student t with 5 degrees of freedom
            frequencies *= np.sqrt(5.0 / rng.chisquare(5.0, size))[:, None]
        phases = rng.uniform(0.0, 2.0 * np.pi, size)
        return frequencies, phases, np.full(size, np.sqrt(2.0 * np.exp(theta[-1]) / size))


class JointCross(StationaryCross):
    """`Joint` to one data set, whose scaled coordinates are kept between the many queries of a search."""

    def __init__(self, theta: Array, X: Array, radial: Radial) -> None:
        self.radial, self.scale = radial, float(np.exp(theta[-1]))
        self.inverse = np.exp(-theta[:-1])
        self.Xs = self.scaled(X)
        self.norms = np.einsum("ij,ij->i", self.Xs, self.Xs)

    def scaled(self, Z: Array) -> Array:
        """Points in coordinates in which the kernel depends on their distance alone."""
        scaled: Array = Z * self.inverse
        return scaled

    def covariance(self, Z: Array) -> tuple[Array, Array]:
        Zs = self.scaled(Z)
        r = Zs @ self.Xs.T
        r *= -2.0
        r += np.einsum("ij,ij->i", Zs, Zs)[:, None]
        r += self.norms
        k, slope = correlation(np.maximum(r, 0.0, out=r), self.radial)
        if self.scale != 1.0:
            k *= self.scale
            if slope is not k:
                slope *= self.scale
        return k, slope

    def pull_back(self, Z: Array, cache: Array, C: Array) -> Array:
        G = C * cache
        gradient: Array = (G @ self.Xs) * self.inverse - G.sum(axis=1)[:, None] * Z * self.inverse**2
        return gradient


class JointGram:
    """`Joint` on one data set: upper triangle by row blocks, squared distances by one matrix product a block."""

    def __init__(self, X: Array, radial: Radial) -> None:
        n, d = X.shape
        self.X, self.radial = X, radial
        self.slope = np.empty((n, n))
        self.block = n if n <= 256 else ROW_BLOCK
        self.buffer = np.empty(self.block * n)
        # [-2 c x, c |x|^2, 1] . [x', 1, c |x'|^2] = c |x - x'|^2: the whole block of distances in one product
        self.left, self.right = np.ones((n, d + 2)), np.ones((n, d + 2))
        self.columns = np.ones((n, d + 1), order="F")

    def fill(self, theta: Array, K: Array) -> None:
        n, d = self.X.shape
        c = 5.0 if self.radial == "matern52" else 0.5
        log_scale = theta[d]
        Xs = self.X * np.exp(-theta[:d])
        norms = c * np.einsum("ij,ij->i", Xs, Xs)
        self.left[:, :d] = Xs
        self.left[:, :d] *= -2.0 * c
        self.left[:, d] = norms
        self.right[:, :d] = Xs
        self.right[:, d + 1] = norms
        self.columns[:, :d] = Xs
        for i in range(0, n, self.block):
            j = min(i + self.block, n)
            r = self.buffer[: (j - i) * (n - i)].reshape(j - i, n - i)
            np.dot(self.left[i:j], self.right[i:].T, out=r)
            np.abs(r, out=r)  # cancellation can leave a tiny negative distance
            k, slope = K[i:j, i:], self.slope[i:j, i:]
            if self.radial == "matern52":  # r holds 5 r^2; the slope's factor 5/3 is applied in `pull_back`
                np.sqrt(r, out=slope)
                np.subtract(log_scale, slope, out=k)
                np.exp(k, out=k)
                slope += 1.0
                r *= 1.0 / 3.0
                r += slope
                slope *= k
                k *= r
            else:  # r holds r^2 / 2
                np.subtract(log_scale, r, out=r)
                np.exp(r, out=k)
                slope[...] = k
        np.fill_diagonal(K, np.exp(log_scale))

    def pull_back(self, theta: Array, W: Array, total: float | None) -> tuple[Array, float]:
        n, d = self.X.shape
        G, Xs = self.slope, self.columns[:, :d]
        for i in range(0, n, self.block):
            j = min(i + self.block, n)
            G[i:j, i:] *= W[i:j, i:]
        np.fill_diagonal(G, 0.0)  # zero distance
        factor = 5.0 / 3.0 if self.radial == "matern52" else 1.0
        GX = dsymm(factor, G.T, self.columns, lower=1)  # G [Xs, 1]
        gradient = np.empty(d + 1)
        gradient[:d] = 2.0 * (GX[:, d] @ (Xs * Xs) - np.einsum("ij,ij->j", Xs, GX[:, :d]))
        if total is None:
            raise ValueError("the joint kernel takes sum(W * K) from the likelihood")
        gradient[d] = total
        return gradient, total


class Additive(Joint):
    """A sum of one-variable functions, outputscale / d each: theta = [log lengthscales, log outputscale]."""

    def gram(self, X: Array) -> Gram:
        return AdditiveGram(X, self.radial)

    def cross(self, theta: Array, X: Array) -> Cross:
        return AdditiveCross(theta, X, self.radial)

    def features(self, theta: Array, d: int, size: int, rng: np.random.Generator) -> Features:
        frequencies, phases, amplitudes = super().features(theta, d, size, rng)
        if size < d:  # too few for every variable to have its own: draw them, right in the mean
            one = rng.integers(0, d, size)[:, None] == np.arange(d)
            return frequencies * one, phases, amplitudes
        one = np.arange(size)[:, None] % d == np.arange(d)  # every feature looks at a single variable
        share = one.sum(axis=0)[np.arange(size) % d]
        return frequencies * one, phases, amplitudes * np.sqrt(size / (d * share))


class AdditiveCross(StationaryCross):
    """`Additive` to one data set: all variables at once for a climb's single query, else a variable at a time."""

    def __init__(self, theta: Array, X: Array, radial: Radial) -> None:
        self.X, self.radial = X, radial
        self.inverse, self.scale = np.exp(-theta[:-1]), float(np.exp(theta[-1]))
        self.share = self.scale / X.shape[1]

    def covariance(self, Z: Array) -> tuple[Array, tuple[Array, Array] | None]:
        if len(Z) == 1:
            scaled = (Z - self.X) * self.inverse
            k, slope = correlation(scaled * scaled, self.radial)
            return (self.share * k.sum(axis=1))[None], (scaled, slope)
        K = np.zeros((len(Z), len(self.X)))
        for j, inverse in enumerate(self.inverse):
            K += correlation(((Z[:, j, None] - self.X[:, j]) * inverse) ** 2, self.radial)[0]
        K *= self.share
        return K, None

    def pull_back(self, Z: Array, cache: tuple[Array, Array] | None, C: Array) -> Array:
        if cache is not None:
            scaled, slope = cache
            one: Array = -self.share * self.inverse * np.einsum("j,jk,jk->k", C[0], slope, scaled)[None]
            return one
        gradient = np.empty_like(Z)
        for j, inverse in enumerate(self.inverse):
            difference = Z[:, j, None] - self.X[:, j]
            slope = correlation((difference * inverse) ** 2, self.radial)[1]
            gradient[:, j] = -(inverse**2) * np.einsum("ij,ij,ij->i", C, slope, difference)
        gradient *= self.share
        return gradient


class AdditiveGram:
    """`Additive` on one data set, meant for the tens of variables already found.

    Small problems keep the squared gaps of all pairs and variables, so that one exponential of a (d, pairs) matrix
    serves the value and the gradient; large ones go a variable at a time.
    """

    MOST_GAPS = 2_000_000

    def __init__(self, X: Array, radial: Radial) -> None:
        n, d = X.shape
        self.X, self.radial = X, radial
        self.gaps: Array | None = None
        if d * n * (n + 1) // 2 <= self.MOST_GAPS:
            self.rows, self.columns = np.triu_indices(n)
            self.gaps = (X[self.rows] - X[self.columns]).T ** 2
            self.times = np.where(self.rows == self.columns, 1.0, 2.0)  # the off-diagonal counts twice
            self.cache: tuple[Array, Array, Array] | None = None

    def _term(self, theta: Array, j: int) -> tuple[Array, Array, Array]:
        x = self.X[:, j] * np.exp(-theta[j])
        squared = (x[:, None] - x) ** 2
        return squared, *correlation(squared.copy(), self.radial)

    def fill(self, theta: Array, K: Array) -> None:
        d = self.X.shape[1]
        if self.gaps is not None:
            squared = self.gaps * np.exp(-2.0 * theta[:d])[:, None]
            k, slope = correlation(squared.copy(), self.radial)
            self.cache = squared, k, slope
            K[self.rows, self.columns] = (np.exp(theta[-1]) / d) * k.sum(axis=0)
            return
        K[...] = 0.0
        for j in range(d):
            K += self._term(theta, j)[1]
        K *= np.exp(theta[-1]) / d

    def pull_back(self, theta: Array, W: Array, total: float | None) -> tuple[Array, float]:
        d = self.X.shape[1]
        gradient = np.empty(d + 1)
        if self.gaps is not None and self.cache is not None:
            squared, k, slope = self.cache
            w = W[self.rows, self.columns] * self.times
            gradient[:d] = np.einsum("ij,ij,j->i", squared, slope, w)
            gradient[d] = k.sum(axis=0) @ w
        else:
            upper = np.triu(W) + np.triu(W, 1)  # the off-diagonal counts twice, the lower triangle never
            gradient[d] = 0.0
            for j in range(d):
                squared, k, slope = self._term(theta, j)
                gradient[d] += np.vdot(upper, k)
                gradient[j] = np.vdot(upper, slope * squared)
        gradient *= np.exp(theta[-1]) / d
        return gradient, float(gradient[d])


class Sum:
    """A sum of kernels; theta is their blocks in a row. The first one is given its sum(W * K), which `Joint` needs."""

    def __init__(self, *terms: Kernel) -> None:
        self.terms = terms

    def size(self, d: int) -> int:
        return sum(term.size(d) for term in self.terms)

    def blocks(self, d: int) -> list[slice]:
        """Of theta, one for each term."""
        ends = list(itertools.accumulate((term.size(d) for term in self.terms), initial=0))
        return [slice(*pair) for pair in itertools.pairwise(ends)]

    def gram(self, X: Array) -> Gram:
        return SumGram([term.gram(X) for term in self.terms], self.blocks(X.shape[1]), len(X))

    def cross(self, theta: Array, X: Array) -> Cross:
        pairs = zip(self.terms, self.blocks(X.shape[1]), strict=True)
        return SumCross([term.cross(theta[block], X) for term, block in pairs])

    def features(self, theta: Array, d: int, size: int, rng: np.random.Generator) -> Features:
        sizes = np.diff([size * i // len(self.terms) for i in range(len(self.terms) + 1)])
        triples = zip(self.terms, self.blocks(d), sizes, strict=True)
        parts = [term.features(theta[block], d, int(share), rng) for term, block, share in triples]
        frequencies, phases, amplitudes = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return frequencies, phases, amplitudes


class SumCross:
    """`Sum` to one data set."""

    def __init__(self, terms: list[Cross]) -> None:
        self.first, *self.others = self.terms = terms

    def covariance(self, Z: Array) -> tuple[Array, list[Any]]:
        K, cache = self.first.covariance(Z)  # in a plain loop: a climb comes here for every step
        caches = [cache]
        for term in self.others:
            more, cache = term.covariance(Z)
            K = K + more
            caches.append(cache)
        return K, caches

    def pull_back(self, Z: Array, caches: list[Any], C: Array) -> Array:
        gradient = self.first.pull_back(Z, caches[0], C)
        for term, own in zip(self.others, caches[1:], strict=True):
            gradient = gradient + term.pull_back(Z, own, C)
        return gradient

    def variance(self, Z: Array) -> Array | float:
        return sum(term.variance(Z) for term in self.terms)

    def variance_slope(self, Z: Array) -> Array | float:
        return sum(term.variance_slope(Z) for term in self.terms)


class SumGram:
    """`Sum` on one data set, with each term's block of theta."""

    def __init__(self, terms: list[Gram], blocks: list[slice], n: int) -> None:
        (self.first, self.block), *self.others = zip(terms, blocks, strict=True)
        self.spare = np.zeros((n, n))

    def fill(self, theta: Array, K: Array) -> None:
        self.first.fill(theta[self.block], K)
        for term, block in self.others:
            term.fill(theta[block], self.spare)
            K += self.spare

    def pull_back(self, theta: Array, W: Array, total: float | None) -> tuple[Array, float]:
        others = [term.pull_back(theta[block], W, None) for term, block in self.others]
        known = sum(own for _, own in others)
        rest = None if total is None else total - known  # it splits like K itself
        first, own = self.first.pull_back(theta[self.block], W, rest)
        return np.concatenate([first, *(gradient for gradient, _ in others)]), own + known


def joint_additive(radial: Radial = "se") -> Sum:
    """Joint kernel of all variables plus an additive one: smooth interplay and sharp one-variable shape."""
    return Sum(Joint(radial), Additive("se"))
