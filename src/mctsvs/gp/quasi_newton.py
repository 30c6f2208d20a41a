"""A projected L-BFGS for boxes: fits the model's parameters and climbs its acquisition function.

Beside scipy's L-BFGS-B it keeps its curvature pairs between calls, stops on the gain of a step rather than on its last
digits, and has little work of its own in a step. `python benchmarks/speed.py lbfgs` prints what that is worth.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from mctsvs.utils.validation import Array

Pairs = list[tuple[Array, Array]]
"""Curvature pairs (step, change of gradient)."""


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
    """The point and value of a local minimum in the box, from `theta`; `pairs` is extended in place.

    Refits differ from the last fit by a few data points, so the old curvature is nearly right and need not be learnt
    again. Stops when two steps in a row gain less than `tolerance` (nats): parameters known better than that do not
    change a decision.
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
        step *= longest_step / max(longest, longest_step)
        length = 1.0
        while True:
            trial = np.minimum(np.maximum(x + length * step, low), high)  # np.clip, at a third of its price
            trial_value, trial_gradient = function(trial)
            if trial_value <= value + 1e-4 * float(gradient @ (trial - x)) or length < 1e-3:
                break
            length *= 0.3
        if not trial_value <= value:  # clipping can bend a quasi-Newton step uphill: once more along the gradient
            if not pairs:
                break
            pairs.clear()
            continue
        _remember(pairs, trial - x, trial_gradient - gradient, memory)
        gain = value - trial_value
        x, value, gradient = trial, trial_value, trial_gradient
        idle = idle + 1 if gain < tolerance else 0
        flat = gain < tolerance and iteration == 0 and float(np.abs(gradient * free).max()) < 0.5
        if idle >= 2 or flat:
            break
    return x, value


def _remember(pairs: Pairs, step: Array, change: Array, memory: int) -> None:
    """Add a pair whose curvature is clearly positive, and drop the oldest."""
    if float(step @ change) > 1e-8 * math.sqrt(step @ step) * math.sqrt(change @ change):
        pairs.append((step, change))
        del pairs[:-memory]


def _two_loop(descent: Array, free: npt.NDArray[np.bool_], pairs: Pairs, first_step: float) -> Array:
    """L-BFGS direction from the pairs restricted to the free parameters; a short gradient step without any."""
    kept = []
    bound = not free.all()
    for s, change in pairs:
        if bound:
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
