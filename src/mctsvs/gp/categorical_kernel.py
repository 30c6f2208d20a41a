"""A kernel for categories: all codes of a category have one lengthscale, so that any two choices are equally far apart.

With a lengthscale for each code, a category of eight choices has eight parameters, to which few points say nothing.
"""

from __future__ import annotations

import numpy as np

from mctsvs.gp.kernels import Cross, Features, Gram, Kernel, Sum
from mctsvs.utils.validation import Array, Indices


class TiedLengthscales:
    """A kernel with a parameter for each variable where the kernel inside has one for each coordinate.

    `variable` (d,) numbers the variable of each coordinate, from 0 to k - 1. Parameters are those of the kernel inside
    in k coordinates.
    """

    def __init__(self, kernel: Kernel, variable: Indices) -> None:
        self.kernel, self.k = kernel, int(variable.max()) + 1
        parts, used = [], 0
        for term in kernel.terms if isinstance(kernel, Sum) else (kernel,):
            size = term.size(self.k)
            each = term.size(len(variable)) != size
            parts.append(used + (np.append(variable, np.arange(self.k, size)) if each else np.arange(size)))
            used += size
        self.spread, self.n = np.concatenate(parts), used

    def size(self, d: int) -> int:
        return self.n

    def gram(self, X: Array) -> Gram:
        return TiedLengthscalesGram(self.kernel.gram(X), self.spread, self.n)

    def cross(self, theta: Array, X: Array) -> Cross:
        return self.kernel.cross(theta[self.spread], X)

    def features(self, theta: Array, d: int, size: int, rng: np.random.Generator) -> Features:
        return self.kernel.features(theta[self.spread], d, size, rng)


class TiedLengthscalesGram:
    """`TiedLengthscales` on one data set."""

    def __init__(self, gram: Gram, spread: Indices, n: int) -> None:
        self.gram, self.spread, self.n = gram, spread, n

    def fill(self, theta: Array, K: Array) -> None:
        self.gram.fill(theta[self.spread], K)

    def pull_back(self, theta: Array, W: Array, total: float | None) -> tuple[Array, float]:
        gradient, total = self.gram.pull_back(theta[self.spread], W, total)
        return np.bincount(self.spread, gradient, self.n).astype(np.float64), total
