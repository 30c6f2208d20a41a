"""Objective values made fit for a Gaussian process: standardised, outliers pulled in, nothing overflows."""

from __future__ import annotations

import numpy as np

from mctsvs.common import Array

GRID = 2.0**-30
"""Standardised values are rounded to this grid. It is far below any noise a model can see, and it makes a*f + b
give the very same numbers as f, although both were rounded differently on the way."""


def standardise(y: Array, *, winsorise: bool = True) -> Array:
    """Zero mean, unit variance; any finite or infinite input gives finite output, constant input gives zeros.

    With `winsorise`, values below q1 - 1.5 (q3 - q1) are set to that fence: a few disastrous points otherwise
    squeeze everything of interest into one value. We maximise, so the upper tail is never touched.
    """
    y = np.asarray(y, dtype=np.float64)
    finite = np.isfinite(y)
    if not finite.any():
        return np.zeros(len(y))
    low, high = y[finite].min(), y[finite].max()
    y = np.where(np.isnan(y), low, np.clip(y, low, high))
    z = y / max(abs(low), abs(high), 1e-300)  # 1e300-sized values would overflow in the variance
    if winsorise and len(z) >= 8:
        first, third = np.quantile(z, [0.25, 0.75])
        fence = first - 1.5 * (third - first)
        if third > first:
            z = np.maximum(z, fence)
            z = z / np.abs(z).max()  # the outlier set the scale; without it the rest would look constant
    mean, sd = z.mean(), z.std()
    if sd <= 1e-12 * max(1.0, abs(mean)):
        return np.zeros(len(y))
    grid: Array = np.round((z - mean) / sd / GRID) * GRID
    return grid
