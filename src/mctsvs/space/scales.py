"""From the unit interval to natural units and back, for all variables at once.

Notation as in `mctsvs.space`: t (..., V) one coordinate in [0, 1] for each variable, x (..., V) natural units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mctsvs.common import Array, Indices
from mctsvs.space.variables import Categorical, Float, Variable


@dataclass(frozen=True)
class Grid:
    """Variables that take low + k step, k = 0, ..., bins - 1: each value owns an equal part of the unit interval."""

    variables: Indices
    low: Array
    step: Array
    bins: Array

    @classmethod
    def of(cls, bounds: Array, whole: npt.NDArray[np.bool_], step: Array) -> Grid:
        """`step` (V,) is zero for variables without a grid."""
        variables = np.flatnonzero(step > 0)
        (low, high), step, whole = bounds[:, variables], step[variables], whole[variables]
        # The slack keeps the last value of 0 to 0.3 in steps of 0.1, where the division falls short of 3.
        slack = (high - low) / step * (1 + 2.0**-50) + 1e-9
        return cls(variables, low, step, np.floor(np.where(whole, (high - low) // step, slack)) + 1.0)

    def decode(self, t: Array) -> Array:
        index = np.minimum(np.floor(t.take(self.variables, axis=-1) * self.bins), self.bins - 1)
        return np.asarray(self.low + index * self.step)

    def encode(self, x: Array) -> Array:
        """The middles of the values' parts."""
        return np.asarray((self._index(x) + 0.5) / self.bins)

    def misses(self, x: Array, high: Array) -> npt.NDArray[np.bool_]:
        """Which values are not on the grid."""
        nearest = np.minimum(self.low + self._index(x) * self.step, high[self.variables])
        return np.asarray(np.abs(x.take(self.variables, axis=-1) - nearest) > 1e-6 * self.step)

    def _index(self, x: Array) -> Array:
        index: Array = np.rint((x.take(self.variables, axis=-1) - self.low) / self.step)
        return np.clip(index, 0.0, self.bins - 1)


@dataclass(frozen=True)
class Scale:
    """Bounds (2, V), and the ends (2, V) of the interval that t crosses linearly: of x, or of log x."""

    bounds: Array
    ends: Array
    whole: npt.NDArray[np.bool_]  # (V,) whole numbers and categories
    logs: Indices  # variables on a logarithmic scale
    whole_logs: Indices  # those of them that are whole numbers
    grid: Grid

    @classmethod
    def of(cls, bounds: Array, variables: Sequence[Variable]) -> Scale:
        n = bounds.shape[1]
        log, whole, step = np.zeros(n, np.bool_), np.zeros(n, np.bool_), np.zeros(n)
        for v, var in enumerate(variables):
            whole[v] = not isinstance(var, Float)
            if not isinstance(var, Categorical):
                log[v], step[v] = var.log, (0.0 if var.log else var.step or 0.0)
        ends, logs = bounds.copy(), np.flatnonzero(log)
        # Half a unit of margin, so that the first and last whole number have a full bin as the others do.
        margin = np.where(whole, 0.5, 0.0)[logs]
        ends[:, logs] = np.log(bounds[:, logs] + np.array([-margin, margin]))
        return cls(bounds, ends, whole, logs, np.flatnonzero(log & whole), Grid.of(bounds, whole, step))

    @property
    def sizes(self) -> Array:
        """(V,) how many values each variable has; infinite for a continuous one."""
        low, high = self.bounds
        sizes = np.where(self.whole, high - low + 1.0, np.inf)
        sizes[self.grid.variables] = self.grid.bins
        return sizes

    def decode(self, t: Array) -> Array:
        """x, as a new array; categories are left to the caller."""
        x: Array = 1.0 - t  # this form, unlike start + t * width, meets both ends exactly
        x *= self.ends[0]
        x += t * self.ends[1]
        with np.errstate(over="ignore"):  # exp(log(high)) may pass the largest float; it is clipped by the caller
            x[..., self.logs] = np.exp(x.take(self.logs, axis=-1))
        x[..., self.whole_logs] = np.rint(x.take(self.whole_logs, axis=-1))
        x[..., self.grid.variables] = self.grid.decode(t)
        return x

    def encode(self, x: Array) -> Array:
        """t, not yet at the middles of bins."""
        t = x.copy()
        t[..., self.logs] = np.log(t.take(self.logs, axis=-1))
        start, end = self.ends
        # No width: one choice, or ends with the same rounded logarithm.
        return np.asarray(np.clip((t - start) / np.where(end > start, end - start, 1.0), 0.0, 1.0))

    def misfits(self, x: Array) -> npt.NDArray[np.bool_]:
        """Which values are out of bounds, not whole or not on their grid."""
        low, high = self.bounds
        bad: npt.NDArray[np.bool_] = ~((x >= low) & (x <= high)) | (self.whole & (x != np.rint(x)))
        bad[..., self.grid.variables] |= self.grid.misses(x, high)
        return bad

    def whole_log_middles(self, x: Array) -> Array:
        start, end = self.ends[:, self.whole_logs]
        return np.asarray((np.log(x.take(self.whole_logs, axis=-1)) - start) / (end - start))
