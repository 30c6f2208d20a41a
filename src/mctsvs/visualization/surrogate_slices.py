"""What the method's own model expects along the active variables: slices and contours through the point to take.

Only variables that were seen to act are drawn, and beside the model what was evaluated. The model is the one that
proposed the points, not one made for looking.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mctsvs.utils.validation import Array, Indices
from mctsvs.visualization.run_data import RunData

MOST_VARIABLES = 12
FEWEST = 8  # evaluations: of fewer there is no model


@dataclass(frozen=True)
class Axis:
    """One variable's values on a grid: numbers, or the choices of a category."""

    name: str
    units: Array  # (m, its coordinates) of the unit cube
    values: list[Any]  # (m,)
    kind: str  # "linear", "log" or "choices"


@dataclass(frozen=True)
class Slice:
    """What the model expects when one variable of the point changes, and what was evaluated."""

    axis: Axis
    mean: Array  # (m,)
    sd: Array  # (m,)
    at: Any  # the variable's value at the point
    seen: list[Any]  # values at the evaluations nearest to this line
    value: Array  # their values


@dataclass(frozen=True)
class Contour:
    """The same for two variables; `mean` has a row for each value of the second."""

    first: Axis
    second: Axis
    mean: Array  # (m2, m1)
    at: tuple[Any, Any]
    seen: tuple[list[Any], list[Any]]
    value: Array


class SurrogateSlices:
    """The model of one run, along the active variables of the largest effect."""

    def __init__(self, run: RunData, most: int = MOST_VARIABLES) -> None:
        self.run, self.most = run, most

    @cached_property
    def names(self) -> list[str]:
        return self.run.variables.active[: self.most]

    @property
    def missing(self) -> str:
        """Why there is nothing to see, in words; empty where there is."""
        if len(self.run.succeeded) < FEWEST:
            return f"there is no model yet: it needs {FEWEST} evaluations that succeeded"
        if not self.names:
            return self.run.variables.summary
        return "the model of this result was not stored with it" if self.run.expected is None else ""

    @cached_property
    def centre(self) -> Array:
        """(D,) the point to take."""
        assert self.run.point is not None
        return self.run.point.unit

    def _coordinates(self, *names: str) -> Indices:
        offsets = self.run.space.offsets
        return np.concatenate(
            [np.arange(offsets[v], offsets[v + 1]) for v in map(self.run.position.__getitem__, names)]
        )

    def axis(self, name: str, size: int) -> Axis:
        """A grid over a variable, all else as at the point; or all values of one that has no more than that."""
        space, v, coordinates = self.run.space, self.run.position[name], self._coordinates(name)
        labels = space.variables[v].labels
        if labels is not None and len(coordinates) > 1:
            return Axis(name, np.eye(len(coordinates)), [str(label) for label in labels], "choices")
        along = np.linspace(0.0, 1.0, max(size, 5 * len(labels or ())))
        point = np.repeat(self.centre[None], len(along), axis=0)
        point[:, coordinates[0]] = along
        values = space.decode(point)[:, v]
        kept = np.concatenate([[True], np.diff(values) > 0])  # whole numbers and labels repeat
        units = space.snap(point[kept])[:, coordinates]
        if labels is not None:
            return Axis(name, units, [str(labels[int(x)]) for x in values[kept]], "choices")
        log = getattr(space.variables[v], "log", False)
        return Axis(name, units, values[kept].tolist(), "log" if log else "linear")

    def _values(self, name: str, units: Array) -> list[Any]:
        """The variable's values at these points."""
        v = self.run.position[name]
        labels, x = self.run.space.variables[v].labels, self.run.space.decode(units)[:, v]
        return x.tolist() if labels is None else [str(labels[int(i)]) for i in x]

    def _grid(self, *axes: Axis) -> Array:
        """(m, D) the point with the grid of one variable, or of two of which the second changes slowly."""
        choices = list(itertools.product(*(range(len(axis.units)) for axis in reversed(axes))))
        points = np.repeat(self.centre[None], len(choices), axis=0)
        for place, axis in enumerate(reversed(axes)):
            points[:, self._coordinates(axis.name)] = axis.units[[choice[place] for choice in choices]]
        return points

    def _expected(self, grids: Sequence[Array]) -> list[tuple[Array, Array]]:
        """Mean and deviation at the points of each grid."""
        assert self.run.expected is not None
        mean, sd = self.run.expected(np.concatenate(grids))
        ends = np.cumsum([len(grid) for grid in grids])[:-1]
        return list(zip(np.split(mean, ends), np.split(sd, ends), strict=True))

    def slices(self, size: int = 41, dots: int = 60) -> list[Slice]:
        """One for each variable."""
        axes = [self.axis(name, size) for name in self.names]
        found = []
        for axis, (mean, sd) in zip(axes, self._expected([self._grid(axis) for axis in axes]), strict=True):
            (at,), rows = self._values(axis.name, self.centre[None]), self._nearest(dots, axis.name)
            seen = self._values(axis.name, self.run.units[rows])
            found.append(Slice(axis, mean, sd, at, seen, self.run.values[rows]))
        return found

    def contour(self, first: str, second: str, size: int = 31, dots: int = 120) -> Contour:
        one, two = self.axis(first, size), self.axis(second, size)
        ((mean, _),) = self._expected([self._grid(one, two)])
        rows = self._nearest(dots, first, second)
        (x,), (y,) = (self._values(name, self.centre[None]) for name in (first, second))
        seen = self._values(first, self.run.units[rows]), self._values(second, self.run.units[rows])
        return Contour(one, two, mean.reshape(len(two.units), len(one.units)), (x, y), seen, self.run.values[rows])

    def _nearest(self, most: int, *free: str) -> Indices:
        """Evaluations nearest to the point in the other active variables; those that change nothing else come first."""
        rows, others = self.run.succeeded, [name for name in self.run.variables.active if name not in free]
        distance = np.zeros(len(rows))
        if others:
            fixed = self._coordinates(*others)
            distance = np.abs(self.run.units[rows][:, fixed] - self.centre[fixed]).sum(axis=1)
        return rows[np.argsort(distance, kind="stable")[:most]]
