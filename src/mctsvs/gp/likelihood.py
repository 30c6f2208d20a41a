"""Log marginal likelihood of a Gaussian process, its analytic gradient, and the fit that maximises it.

    L(theta) = -1/2 y' A^-1 y - 1/2 log|A| - n/2 log 2 pi,   A = K(theta) + (noise + jitter) I     (Appendix B.2)

Parameters: the kernel's theta followed by the log noise variance. Everything here minimises -L - log prior.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import dsyr
from scipy.linalg.lapack import dpotrf, dpotri, dtrtrs

from mctsvs.common import Array
from mctsvs.gp.kernels import Kernel
from mctsvs.gp.priors import Prior

JITTER = 1e-8
FAILED = 1e25  # value of a parameter vector whose matrix cannot be factorised

Pairs = list[tuple[Array, Array]]
"""Curvature pairs (step, change of gradient) of a quasi-Newton method."""


class Likelihood:
    """Negative log marginal likelihood plus prior penalty: value and gradient in one call.

    A C-ordered matrix seen through `.T` is Fortran-ordered, so LAPACK works in place on what the kernel wrote.
    """

    def __init__(self, kernel: Kernel, X: Array, y: Array, prior: Prior | None = None) -> None:
        n = len(X)
        self.gram = kernel.bind(np.ascontiguousarray(X))
        self.y, self.prior = y, prior
        self.K = np.empty((n, n))
        self.evaluations = 0

    def __call__(self, theta: Array) -> tuple[float, Array]:
        self.evaluations += 1
        n, K, diagonal = len(self.y), self.K, np.s_[:: len(self.y) + 1]
        noise = float(np.exp(theta[-1])) + JITTER
        self.gram.fill(theta[:-1], K)
        K.ravel()[diagonal] += noise
        U, failed = dpotrf(K.T, lower=0, clean=0, overwrite_a=1)
        if failed:
            return FAILED, np.zeros_like(theta)
        half_log_determinant = np.log(K.ravel()[diagonal]).sum()
        u, _ = dtrtrs(U, self.y, lower=0, trans=1)
        alpha, _ = dtrtrs(U, u, lower=0)
        value = 0.5 * float(u @ u) + half_log_determinant + 0.5 * n * np.log(2.0 * np.pi)

        dpotri(U, lower=0, overwrite_c=1)  # K now holds the inverse
        trace, squares = float(K.ravel()[diagonal].sum()), float(alpha @ alpha)
        dsyr(-1.0, alpha, lower=0, a=U, overwrite_a=1)
        K *= 0.5  # W = dL/dK = (A^-1 - alpha alpha') / 2
        # sum(W * A) = (n - y' A^-1 y) / 2, so the outputscale's derivative costs nothing
        total = 0.5 * (n - float(u @ u)) - 0.5 * noise * (trace - squares)
        gradient = np.empty_like(theta)
        gradient[:-1] = self.gram.pull_back(theta[:-1], K, total)
        gradient[-1] = 0.5 * (noise - JITTER) * (trace - squares)
        if self.prior is not None:
            penalty, slope = self.prior.penalty(theta)
            value += penalty
            gradient += slope
        return value, gradient


def minimise(
    function: Callable[[Array], tuple[float, Array]],
    theta: Array,
    low: Array,
    high: Array,
    pairs: Pairs,
    *,
    iterations: int = 30,
    tolerance: float = 0.02,
    memory: int = 12,
    first_step: float = 0.3,
    longest_step: float = 2.0,
) -> tuple[Array, float]:
    """Projected L-BFGS that keeps its curvature pairs between calls (`pairs` is extended in place).

    Refits differ from the last fit by a few data points, so the old curvature is nearly right: 5 to 8 evaluations
    instead of the 17 to 25 that scipy's L-BFGS-B needs to learn it again. Stops when two steps in a row gain
    less than `tolerance` (nats): parameters known better than that do not change a decision.
    """
    x = np.clip(theta, low, high)
    value, gradient = function(x)
    idle = 0
    for iteration in range(iterations):
        free = ~(((x <= low) & (gradient > 0)) | ((x >= high) & (gradient < 0)))
        descent = np.where(free, -gradient, 0.0)
        step = _two_loop(descent, free, pairs, first_step)
        longest = np.abs(step).max(initial=0.0)
        if longest == 0.0:
            break
        step *= min(1.0, longest_step / longest)
        length = 1.0
        while True:
            trial = np.clip(x + length * step, low, high)
            trial_value, trial_gradient = function(trial)
            if trial_value <= value + 1e-4 * float(gradient @ (trial - x)) or length < 1e-3:
                break
            length *= 0.3
        if trial_value > value:
            break
        s, change = trial - x, trial_gradient - gradient
        if float(s @ change) > 1e-8 * float(np.linalg.norm(s) * np.linalg.norm(change)):
            pairs.append((s, change))
            del pairs[:-memory]
        gain = value - trial_value
        x, value, gradient = trial, trial_value, trial_gradient
        idle = idle + 1 if gain < tolerance else 0
        flat = gain < tolerance and iteration == 0 and float(np.abs(gradient * free).max()) < 0.5
        if idle >= 2 or flat:
            break
    return x, value


def _two_loop(descent: Array, free: npt.NDArray[np.bool_], pairs: Pairs, first_step: float) -> Array:
    """L-BFGS direction from the pairs restricted to the free parameters; a short gradient step without any."""
    kept = []
    for s, change in pairs:
        s, change = s * free, change * free
        curvature = float(s @ change)
        if curvature > 1e-10:
            kept.append((s, change, curvature))
    q, weights = descent.copy(), []
    for s, change, curvature in reversed(kept):
        weights.append(float(s @ q) / curvature)
        q -= weights[-1] * change
    if kept:
        _, change, curvature = kept[-1]
        q *= curvature / float(change @ change)
        for (s, change, curvature), weight in zip(kept, reversed(weights), strict=True):
            q += (weight - float(change @ q) / curvature) * s
    if not kept or float(q @ descent) <= 0.0:
        q = descent * (first_step / max(float(np.abs(descent).max(initial=0.0)), 1e-12))
    return q
