"""A model of the run in its most important variables: slices and contours through the best point, sizes of effects.

The model is made for looking, from the evaluations alone: it does not depend on the method, and no method sees it.
Notation: d coordinates of the unit cube that belong to the chosen variables, m points of a grid.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mctsvs.utils.validation import Array, Indices
from mctsvs.visualization.run_data import RunData

MOST_POINTS = 250
MOST_VARIABLES = 12
FEWEST = 8  # evaluations: of fewer there is no model
DRAWS = 200  # functions drawn from the model to say how sure the size of an effect is


@dataclass(frozen=True)
class Axis:
    """One variable's values on a grid: numbers, or the choices of a category."""

    name: str
    units: Array  # (m, its coordinates) of the unit cube
    values: list[Any]  # (m,)
    kind: str  # "linear", "log" or "choices"


@dataclass(frozen=True)
class Slice:
    """What the model expects when one variable of the best point changes, and what was evaluated."""

    axis: Axis
    mean: Array  # (m,)
    sd: Array  # (m,)
    at: Any  # the variable's value at the best point
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


@dataclass(frozen=True)
class Effect:
    """By how much the value changes along a variable, all else as at the best point: nine draws in ten lie between."""

    name: str
    size: float
    low: float
    high: float


class SurrogateSlices:
    """The model of one run."""

    def __init__(self, run: RunData, most: int = MOST_VARIABLES) -> None:
        self.run = run
        self.names = run.matter(min(2, len(run.space)), most)
        self.columns: list[Indices] = []
        start = 0
        for name in self.names:
            size = len(self._coordinates(name))
            self.columns.append(np.arange(start, start + size))
            start += size

    def _coordinates(self, name: str) -> Indices:
        v, offsets = self.run.position[name], self.run.space.offsets
        return np.arange(offsets[v], offsets[v + 1])

    @property
    def exists(self) -> bool:
        rows = self.run.succeeded
        return len(rows) >= FEWEST and bool(np.ptp(self.run.values[rows]) > 0)

    @cached_property
    def _rows(self) -> Indices:
        """Evaluations that the model sees: the best half of them, the others spread over the ranks."""
        rows, y = self.run.succeeded, self.run.sign * self.run.values[self.run.succeeded]
        if len(rows) <= MOST_POINTS:
            return rows
        order = np.argsort(-y, kind="stable")
        rest = order[MOST_POINTS // 2 :]
        spread = rest[np.linspace(0, len(rest) - 1, MOST_POINTS - MOST_POINTS // 2).round().astype(np.intp)]
        return np.sort(rows[np.concatenate([order[: MOST_POINTS // 2], spread])])

    @cached_property
    def _inside(self) -> Indices:
        return np.concatenate([self._coordinates(name) for name in self.names])

    @cached_property
    def centre(self) -> Array:
        """(d,) the best point."""
        assert self.run.best is not None
        return np.asarray(self.run.units[self.run.best, self._inside])

    @cached_property
    def _posterior(self) -> Any:
        from mctsvs.gp.likelihood import Likelihood
        from mctsvs.gp.model import KERNELS, fit
        from mctsvs.gp.posterior import Posterior
        from mctsvs.gp.priors import PRIORS

        X = self.run.units[self._rows][:, self._inside]
        y = (self._fenced - self._middle) / self._scale
        kernel = KERNELS["matern52"]
        prior = PRIORS["found"](kernel, X.shape[1])
        likelihood = Likelihood(kernel, X, y, prior, constant_mean=True)
        theta = fit(likelihood, prior, prior.start, [], iterations=40)
        return Posterior.of(kernel, theta, X, y, constant_mean=True)

    @cached_property
    def _fenced(self) -> Array:
        """(n,) values; bad ones beyond the fence are set to it, so that they do not flatten everything of interest."""
        y = self.run.sign * self.run.values[self._rows]
        first, third = np.quantile(y, [0.25, 0.75])
        return np.maximum(y, first - 1.5 * (third - first)) if third > first else y

    @property
    def _middle(self) -> float:
        return float(self._fenced.mean())

    @property
    def _scale(self) -> float:
        return float(self._fenced.std()) or 1.0

    def predict(self, Z: Array) -> tuple[Array, Array]:
        """Mean and deviation at points (m, d), in the objective's units."""
        mean, sd = self._posterior.predict(Z)
        return self.run.sign * (mean * self._scale + self._middle), sd * self._scale

    def axis(self, name: str, size: int) -> Axis:
        """A grid over a variable, all else as at the best point; or all values of one that has no more than that."""
        assert self.run.best is not None
        space, v, coordinates = self.run.space, self.run.position[name], self._coordinates(name)
        labels = space.variables[v].labels
        if labels is not None and len(coordinates) > 1:
            return Axis(name, np.eye(len(coordinates)), [str(label) for label in labels], "choices")
        along = np.linspace(0.0, 1.0, max(size, 5 * len(labels or ())))
        point = np.repeat(self.run.units[self.run.best][None], len(along), axis=0)
        point[:, coordinates[0]] = along
        values = space.decode(point)[:, v]
        kept = np.concatenate([[True], np.diff(values) > 0])  # whole numbers and labels repeat
        units = space.snap(point[kept])[:, coordinates]
        if labels is not None:
            return Axis(name, units, [str(labels[int(x)]) for x in values[kept]], "choices")
        log = getattr(space.variables[v], "log", False)
        return Axis(name, units, values[kept].tolist(), "log" if log else "linear")

    def _seen(self, name: str, rows: Indices) -> list[Any]:
        """The variable's values at these evaluations."""
        v = self.run.position[name]
        labels, x = self.run.space.variables[v].labels, self.run.space.decode(self.run.units[rows])[:, v]
        return x.tolist() if labels is None else [str(labels[int(i)]) for i in x]

    def _best(self, name: str) -> Any:
        return self._seen(name, np.array([self.run.best]))[0]

    def _grid(self, size: int, *axes: tuple[int, Axis]) -> Array:
        """(m, d) the best point with the grid of one variable, or of two of which the second changes slowly."""
        choices = list(itertools.product(*(range(len(axis.units)) for _, axis in reversed(axes))))
        points = np.repeat(self.centre[None], len(choices), axis=0)
        for place, (at, axis) in enumerate(reversed(axes)):
            points[:, self.columns[at]] = axis.units[[choice[place] for choice in choices]]
        return points

    def slices(self, size: int = 41, dots: int = 60) -> list[Slice]:
        """One for each variable of the model."""
        assert self.run.best is not None
        found = []
        for at, name in enumerate(self.names):
            axis = self.axis(name, size)
            mean, sd = self.predict(self._grid(size, (at, axis)))
            rows = self._nearest(np.setdiff1d(np.arange(len(self.centre)), self.columns[at]), dots)
            seen = self._seen(name, rows)
            found.append(Slice(axis, mean, sd, self._best(name), seen, self.run.values[rows]))
        return found

    def contour(self, first: str, second: str, size: int = 31, dots: int = 120) -> Contour:
        assert self.run.best is not None
        places = self.names.index(first), self.names.index(second)
        one, two = self.axis(first, size), self.axis(second, size)
        mean, _ = self.predict(self._grid(size, (places[0], one), (places[1], two)))
        moved = np.concatenate([self.columns[place] for place in places])
        rows = self._nearest(np.setdiff1d(np.arange(len(self.centre)), moved), dots)
        at = self._best(first), self._best(second)
        seen = self._seen(first, rows), self._seen(second, rows)
        return Contour(one, two, mean.reshape(len(two.units), len(one.units)), at, seen, self.run.values[rows])

    def _nearest(self, fixed: Indices, most: int) -> Indices:
        """Evaluations nearest to the best point in these coordinates of the model."""
        rows = self._rows
        distance = np.abs(self.run.units[rows][:, self._inside[fixed]] - self.centre[fixed]).sum(axis=1)
        return rows[np.argsort(distance, kind="stable")[:most]]

    def effects(self, size: int = 21) -> list[Effect]:
        """One for each variable of the model, in its order."""
        paths = self._posterior.sample_paths(DRAWS, np.random.default_rng(0))
        found = []
        for at, name in enumerate(self.names):
            Z = self._grid(size, (at, self.axis(name, size)))
            mean, _ = self.predict(Z)
            ranges = np.ptp(paths(Z), axis=1) * self._scale
            low, high = np.quantile(ranges, [0.05, 0.95])
            found.append(Effect(name, float(np.ptp(mean)), float(low), float(high)))
        return found
