"""From the unit interval to natural units and back, for all variables at once.

Notation as in `mctsvs.space`: t (..., V) one coordinate in [0, 1] for each variable, x (..., V) natural units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mctsvs.space.variables import Boolean, Float, Integer, Ordinal, Variable
from mctsvs.utils.validation import Array, Indices

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Tables:
    """Grid variables that list their values: row i of `values` has those of grid variable at[i], its last repeated."""

    at: Indices
    values: Array  # (tables, most values)

    @classmethod
    def of(cls, variables: Indices, numbers: Mapping[int, list[float]]) -> Tables:
        """`numbers`: variable -> its values."""
        most = max(map(len, numbers.values()), default=1)
        rows = [[*row, *[row[-1]] * (most - len(row))] for row in numbers.values()]
        return cls(np.searchsorted(variables, list(numbers)).astype(np.intp), np.array(rows).reshape(len(rows), most))

    def decode(self, index: Array) -> Array:
        """The values, in the place of their indices."""
        if not len(self.at):  # the common case
            return index
        chosen = index.take(self.at, axis=-1).astype(np.intp)
        index[..., self.at] = self.values[np.arange(len(self.at)), chosen]
        return index

    def encode(self, x: Array) -> Array:
        """The indices of the nearest values."""
        if not len(self.at):
            return x
        x[..., self.at] = np.abs(x.take(self.at, axis=-1)[..., None] - self.values).argmin(axis=-1)
        return x


@dataclass(frozen=True)
class Grid:
    """Variables that take low + k step, k = 0, ..., bins - 1: each value owns an equal part of the unit interval."""

    variables: Indices
    low: Array
    step: Array
    bins: Array
    tables: Tables

    @classmethod
    def of(cls, bounds: Array, whole: Mask, step: Array, numbers: Mapping[int, list[float]]) -> Grid:
        """`step` (V,) is zero for variables without a grid; `numbers` has the values of those that list them."""
        variables = np.flatnonzero(step > 0)
        bounds, step, whole = bounds.copy(), step[variables], whole[variables]
        for v, listed in numbers.items():
            bounds[:, v] = 0.0, len(listed) - 1.0
        low, high = bounds[:, variables]
        # The slack keeps the last value of 0 to 0.3 in steps of 0.1, where the division falls short of 3.
        slack = (high - low) / step * (1 + 2.0**-50) + 1e-9
        bins = np.floor(np.where(whole, (high - low) // step, slack)) + 1.0
        return cls(variables, low, step, bins, Tables.of(variables, numbers))

    def decode(self, t: Array) -> Array:
        index = np.minimum(np.floor(t.take(self.variables, axis=-1) * self.bins), self.bins - 1)
        return self.tables.decode(np.asarray(self.low + index * self.step))

    def nth(self, v: int, place: Array) -> Array | None:
        """The values of a variable at these places of its order; None if it has no grid."""
        at = int(np.searchsorted(self.variables, v))
        if at == len(self.variables) or self.variables[at] != v:
            return None
        for row in np.flatnonzero(self.tables.at == at):
            return np.asarray(self.tables.values[row, np.asarray(place, dtype=np.intp)])
        return np.asarray(self.low[at] + self.step[at] * place)

    def at(self, places: Array) -> Array:
        """The values at these places of their orders, the first or the last one for those beyond."""
        places = np.clip(places.take(self.variables, axis=-1), 0.0, self.bins - 1.0)
        return self.tables.decode(np.asarray(self.low + places * self.step))

    def encode(self, x: Array) -> Array:
        """The middles of the values' parts."""
        return np.asarray((self.places(x) + 0.5) / self.bins)

    def misses(self, x: Array, high: Array) -> Mask:
        """Which values are not on the grid."""
        nearest = self.tables.decode(np.asarray(self.low + self.places(x) * self.step))
        nearest = np.minimum(nearest, high[self.variables])
        tolerance = np.broadcast_to(1e-6 * self.step, nearest.shape).copy()
        tolerance[..., self.tables.at] = 1e-9 * np.abs(nearest[..., self.tables.at])
        return np.asarray(np.abs(x.take(self.variables, axis=-1) - nearest) > tolerance)

    def places(self, x: Array) -> Array:
        """The place that each value has in the order of its variable."""
        place = self.tables.encode(x.take(self.variables, axis=-1))
        index: Array = np.rint((place - self.low) / self.step)
        return np.clip(index, 0.0, self.bins - 1)


@dataclass(frozen=True)
class Scale:
    """Bounds (2, V), and the ends (2, V) of the interval that t crosses linearly: of x, or of log x."""

    bounds: Array
    ends: Array
    whole: Mask  # (V,) whole numbers and categories
    logs: Indices  # variables on a logarithmic scale
    whole_logs: Indices  # those of them that are whole numbers
    grid: Grid

    @classmethod
    def of(cls, bounds: Array, variables: Sequence[Variable]) -> Scale:
        n = bounds.shape[1]
        log, whole, step = np.zeros(n, np.bool_), np.zeros(n, np.bool_), np.zeros(n)
        numbers = {v: var.numbers for v, var in enumerate(variables) if isinstance(var, Ordinal) and var.numbers}
        for v, var in enumerate(variables):
            whole[v] = not isinstance(var, Float) and v not in numbers
            if isinstance(var, Float | Integer):
                log[v], step[v] = var.log, (0.0 if var.log else var.step or 0.0)
            elif isinstance(var, Ordinal | Boolean):
                step[v] = 1.0
        ends, logs = bounds.copy(), np.flatnonzero(log)
        # Half a unit of margin, so that the first and last whole number have a full bin as the others do.
        margin = np.where(whole, 0.5, 0.0)[logs]
        ends[:, logs] = np.log(bounds[:, logs] + np.array([-margin, margin]))
        return cls(bounds, ends, whole, logs, np.flatnonzero(log & whole), Grid.of(bounds, whole, step, numbers))

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

    def places(self, x: Array) -> Array:
        """The place that each value has in the order of its variable; of no meaning for continuous ones."""
        places = x - self.bounds[0]
        places[..., self.grid.variables] = self.grid.places(x)
        return np.asarray(places)

    def at(self, places: Array) -> Array:
        """The values at these places; NaN where there is none, and continuous ones of no meaning."""
        low, high = self.bounds
        x = np.minimum(low + places, high)
        x[..., self.grid.variables] = self.grid.at(places)
        return np.where((places >= 0.0) & (places < self.sizes), np.minimum(x, high), np.nan)

    def misfits(self, x: Array) -> Mask:
        """Which values are out of bounds, not whole or not on their grid."""
        low, high = self.bounds
        bad: Mask = ~((x >= low) & (x <= high)) | (self.whole & (x != np.rint(x)))
        bad[..., self.grid.variables] |= self.grid.misses(x, high)
        return bad

    def whole_log_middles(self, x: Array) -> Array:
        start, end = self.ends[:, self.whole_logs]
        return np.asarray((np.log(x.take(self.whole_logs, axis=-1)) - start) / (end - start))
