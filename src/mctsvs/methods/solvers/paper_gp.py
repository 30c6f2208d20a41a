"""The MCTS-VS paper's model of the selected variables: scikit-learn's Gaussian process as its authors set it.

    k(x, x') = c Matern-5/2(|x - x'| / l), mean zero, noise variance 0.01,

one lengthscale l for all variables, coordinates and values in their natural units. c and l have the largest marginal
likelihood that L-BFGS-B finds from (1, 1), as in scikit-learn; computed here, because distances are found once for
all likelihoods of a fit where there is one lengthscale. Points are those of a quasi-random sample with the largest
expected improvement on the best mean among the data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from scipy.optimize import fmin_l_bfgs_b

from mctsvs.gp.acquisition import expected_improvement
from mctsvs.gp.optimize_acqf import quasi_random
from mctsvs.utils.validation import Array

NOISE = 0.01  # variance, in the values' own units
BOUNDS = (np.log(1e-5), np.log(1e5))  # of both parameters: scikit-learn's
MARGIN = 1e-4  # an improvement must be larger than this
ROOT5 = np.sqrt(5.0)


@dataclass(frozen=True)
class PaperGP:
    """The fitted model. theta: log c, log l."""

    X: Array
    theta: Array
    factor: Array  # upper Cholesky factor of K + noise
    weights: Array

    @classmethod
    def of(cls, X: Array, y: Array) -> PaperGP:
        distance = distances(X, X)
        theta, _, _ = fmin_l_bfgs_b(lambda t: likelihood(t, distance, y), np.zeros(2), bounds=[BOUNDS] * 2)
        K = np.exp(theta[0]) * matern(distance / np.exp(theta[1]))
        K[np.diag_indices_from(K)] += NOISE
        factor, _ = dpotrf(K, lower=0, clean=1)
        weights, _ = dpotrs(factor, y, lower=0)
        return cls(X, theta, factor, np.asarray(weights))

    def predict(self, Z: Array) -> tuple[Array, Array]:
        """Mean and standard deviation at Z, (m,) each."""
        c, lengthscale = np.exp(self.theta)
        k = c * matern(distances(Z, self.X) / lengthscale)
        v = dtrsm(1.0, self.factor, k.T, lower=0, trans_a=1)
        return k @ self.weights, np.sqrt(np.maximum(c - np.einsum("ij,ij->j", v, v), 1e-24))


def distances(A: Array, B: Array) -> Array:
    """(a, b) Euclidean distances."""
    squares = np.einsum("ij,ij->i", A, A)[:, None] + np.einsum("ij,ij->i", B, B) - 2.0 * (A @ B.T)
    found: Array = np.sqrt(np.maximum(squares, 0.0))
    if A is B:
        np.fill_diagonal(found, 0.0)
    return found


def matern(r: Array) -> Array:
    """Matern-5/2 at scaled distances."""
    t = ROOT5 * r
    value: Array = (1.0 + t + t * t / 3.0) * np.exp(-t)
    return value


def likelihood(theta: Array, distance: Array, y: Array) -> tuple[float, Array]:
    """Negative log marginal likelihood and its gradient in (log c, log l).

    With A = K + noise and w = A^-1 y the gradient is -1/2 (w' dK w - tr(A^-1 dK)); for log c, dK = K = A - noise.
    """
    n, t = len(y), (ROOT5 / np.exp(theta[1])) * distance
    decay = np.exp(theta[0] - t)
    A = (t / 3.0 + 1.0) * t
    A += 1.0
    A *= decay
    t *= (t + 1.0) * t
    t *= decay
    slope = t  # of K in log l, three times; zero on the diagonal
    A[np.diag_indices(n)] += NOISE
    factor, failed = dpotrf(A, lower=0, clean=1)
    if failed:
        return np.inf, np.zeros(2)
    weights, _ = dpotrs(factor, y, lower=0)
    fits = float(y @ weights)
    value = 0.5 * fits + float(np.log(np.diag(factor)).sum()) + 0.5 * n * np.log(2.0 * np.pi)
    inverse, _ = dpotri(factor, lower=0, overwrite_c=1)  # its upper triangle; below are zeros
    by_scale = fits - n + NOISE * float(np.trace(inverse) - weights @ weights)
    by_length = (float(weights @ slope @ weights) - 2.0 * float(np.vdot(inverse, slope))) / 3.0
    return value, -0.5 * np.array([by_scale, by_length])


def propose(n: int, X: Array, y: Array, candidates: int, rng: np.random.Generator, *, width: float = 1.0) -> Array:
    """(n, d) the candidates with the largest expected improvement; `width` is that of the box in natural units."""
    model = PaperGP.of(X * width, np.array(y))
    points = quasi_random(candidates, X.shape[1], rng)
    best = float(model.predict(model.X)[0].max())
    value, _, _ = expected_improvement(best + MARGIN)(*model.predict(points * width))
    chosen: Array = points[np.argsort(-value, kind="stable")[:n]]
    return chosen
