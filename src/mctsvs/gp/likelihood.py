"""The inverse of a matrix from its Cholesky factor, faster than LAPACK's own at the sizes of a model.

Log marginal likelihood of a Gaussian process and its analytic gradient.

    L(theta) = -1/2 y' A^-1 y - 1/2 log|A| - n/2 log 2 pi,   A = K(theta) + (noise + jitter) I     (Appendix B.2)

and on the diagonal, beside it, the variance of the noise that is known of each value. Parameters: the kernel's theta
followed by the log noise variance. Everything here minimises -L - log prior.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dsyr, dtrmm
from scipy.linalg.lapack import dlauum, dpotrf, dtrtri, dtrtrs

from mctsvs.gp.kernels import Kernel
from mctsvs.gp.priors import Prior
from mctsvs.utils.validation import Array

SMALL = 64


def invert_from_factor(factor: Array) -> Array:
    """(L L')^-1 in the lower triangle, in place of L (n, n), lower triangular, Fortran order.

    OpenBLAS inverts a triangle of a few hundred rows at a fraction of the speed of a matrix product; splitting it in
    halves turns nearly all of the work into products.
    """
    _invert_triangle(factor)
    inverse: Array = dlauum(factor, lower=1, overwrite_c=1)[0]
    return inverse


def _invert_triangle(L: Array) -> None:
    """[[A, 0], [B, C]]^-1 = [[A^-1, 0], [-C^-1 B A^-1, C^-1]], in place."""
    n = len(L)
    if n <= SMALL:
        L[...] = dtrtri(L, lower=1)[0]
        return
    half = n // 2
    A, B, C = L[:half, :half], L[half:, :half], L[half:, half:]
    _invert_triangle(A)
    _invert_triangle(C)
    product = dtrmm(-1.0, np.asfortranarray(C), np.asfortranarray(B), lower=1)
    B[...] = dtrmm(1.0, np.asfortranarray(A), product, side=1, lower=1, overwrite_b=1)


JITTER = 1e-8
FAILED = 1e25  # value of a parameter vector whose matrix cannot be factorised


class Likelihood:
    """Negative log marginal likelihood plus prior penalty: value and gradient in one call.

    The upper triangle of a C-ordered matrix is, seen through `.T`, the lower one of a Fortran-ordered matrix: LAPACK
    works in place on what the kernel wrote, and OpenBLAS factorises that triangle several times faster than the other.

    The values vary about `mean`; with `constant_mean` about an unknown constant, which takes its most probable value at
    each theta and, being optimal, adds nothing to the gradient.
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Array,
        y: Array,
        prior: Prior | None = None,
        *,
        constant_mean: bool = False,
        known: Array | None = None,
    ) -> None:
        n = len(X)
        self.known = known  # (n,) variances of the values' noise
        self.gram = kernel.gram(np.ascontiguousarray(X))
        self.y, self.prior = y, prior
        self.columns = np.asfortranarray(np.stack([y, np.ones(n)], axis=1)) if constant_mean else None
        self.K = np.zeros((n, n))  # the triangle never written is scaled with the other, whatever it holds
        self.evaluations = 0
        self.weights: Array = y  # A^-1 (y - mean) of the last evaluation

    def __call__(self, theta: Array, mean: float = 0.0) -> tuple[float, Array]:
        self.evaluations += 1
        n, K, diagonal = len(self.y), self.K, np.s_[:: len(self.y) + 1]
        noise = float(np.exp(theta[-1])) + JITTER
        self.gram.fill(theta[:-1], K)
        K.ravel()[diagonal] += noise if self.known is None else noise + self.known
        L, failed = dpotrf(K.T, lower=1, clean=0, overwrite_a=1)
        if failed:
            return FAILED, np.zeros_like(theta)
        half_log_determinant = np.log(K.ravel()[diagonal]).sum()
        if self.columns is None:
            u, _ = dtrtrs(L, self.y - mean, lower=1)
        else:
            both, _ = dtrtrs(L, self.columns, lower=1)
            u, ones = both.T
            u = u - (u @ ones) / (ones @ ones) * ones
        alpha, _ = dtrtrs(L, u, lower=1, trans=1)
        self.weights = alpha
        value = 0.5 * float(u @ u) + half_log_determinant + 0.5 * n * np.log(2.0 * np.pi)

        invert_from_factor(L)  # K now holds the inverse
        trace, squares = float(K.ravel()[diagonal].sum()), float(alpha @ alpha)
        dsyr(-1.0, alpha, lower=1, a=L, overwrite_a=1)
        K *= 0.5  # W = dL/dK = (A^-1 - alpha alpha') / 2
        # sum(W * A) = (n - y' A^-1 y) / 2, so the outputscale's derivative costs nothing
        total = 0.5 * (n - float(u @ u)) - 0.5 * noise * (trace - squares)
        if self.known is not None:
            total -= float(self.known @ K.ravel()[diagonal])  # of W, by now
        gradient = np.empty_like(theta)
        gradient[:-1], _ = self.gram.pull_back(theta[:-1], K, total)
        gradient[-1] = 0.5 * (noise - JITTER) * (trace - squares)
        if self.prior is not None:
            penalty, slope = self.prior.penalty(theta)
            value += penalty
            gradient += slope
        return value, gradient
