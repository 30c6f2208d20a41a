"""Objective values made fit for a Gaussian process: standardised, outliers pulled in, nothing overflows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mctsvs.utils.validation import Array

GRID = 2.0**-30
"""Standardised values are rounded to this grid. It is far below any noise a model can see, and it makes a*f + b
give the very same numbers as f, although both were rounded differently on the way."""
GAP = 1e3  # times as far below the best as the value before it: what is still worse is a heavy tail
FEWEST, EARLY = 8, 20  # values that can have a tail; first ones, most of which must not be in it


@dataclass(frozen=True)
class Standardization:
    """Standardised values, and the way back: y = mean + scale * value."""

    values: Array
    mean: float
    scale: float  # 1 for values that are all the same

    @staticmethod
    def of(y: Array, *, winsorise: bool = True) -> Standardization:
        """Zero mean, unit variance; any finite or infinite input gives finite output, constant input gives zeros.

        Of values with a heavy tail (1e12 beside 1), the tail is set to a fence. With `winsorise`, so is every value
        below q1 - 1.5 (q3 - q1): a few disastrous points otherwise squeeze everything of interest into one value. We
        maximise, so the upper tail is never touched.
        """
        y = np.asarray(y, dtype=np.float64)
        finite = np.isfinite(y)
        if not finite.any():
            return Standardization(np.zeros(len(y)), 0.0, 1.0)
        low, high = y[finite].min(), y[finite].max()
        y = np.where(np.isnan(y), low, np.clip(y, low, high))
        fence = tail_fence(y)
        if fence > low:
            low, y = fence, np.maximum(y, fence)
        unit = max(abs(low), abs(high), 1e-300)  # 1e300-sized values would overflow in the variance
        z = y / unit
        if winsorise and len(z) >= 8:
            first, third = np.quantile(z, [0.25, 0.75])
            fence = first - 1.5 * (third - first)
            if third > first:
                z = np.maximum(z, fence)
                largest = np.abs(z).max()  # the outlier set the scale; without it the rest would look constant
                z, unit = z / largest, unit * largest
        mean, sd = z.mean(), z.std()
        if sd <= 1e-12 * max(1.0, abs(mean)):
            return Standardization(np.zeros(len(y)), float(mean * unit), 1.0)
        grid: Array = np.round((z - mean) / sd / GRID) * GRID
        return Standardization(grid, float(mean * unit), float(sd * unit))


def standardise(y: Array, *, winsorise: bool = True) -> Array:
    """The values of `Standardization.of`."""
    return Standardization.of(y, winsorise=winsorise).values


def tail_fence(y: Array) -> float:
    """The value below which the finite values y (n,), in the order of their coming, are a heavy tail; -inf for none.

    The worse half is cut at its first wide gap. Values that a search has gathered around an optimum are such a bulk
    too, and the points it began with are then no tail: hence most of these must be above the fence.
    """
    n, best = len(y), y.max()
    if n < FEWEST:
        return -np.inf
    with np.errstate(over="ignore"):  # from the largest float to the smallest
        below = np.sort(best - y)[n // 2 :]
        wide = np.flatnonzero((below[1:] > GAP * below[:-1]) & (below[:-1] > 0.0))
    if len(wide) == 0:
        return -np.inf
    width = below[wide[0]]
    if np.mean(best - y[:EARLY] <= width) <= 0.5:
        return -np.inf
    return float(best - 2.0 * width)


def ordinary_range(y: Array) -> float:
    """How far the values lie apart, without a heavy tail."""
    return float(y.max() - max(y.min(), tail_fence(y)))
