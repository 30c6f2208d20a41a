"""Everything evaluated so far, and the information set with its variable score (Eq. 2).

Notation: D coordinates of the unit cube, V variables (a categorical variable owns several coordinates), n points.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from mctsvs.methods.mcts_vs.tree import TEXT, Variant
from mctsvs.utils.state import Saved
from mctsvs.utils.validation import LARGEST, Array, Indices, State

MORE = ("objective", "constraints", "noise", "objectives")  # columns that most runs do not have
SAME, ROUNDING = 1e-9, 1e-12  # of the range of values, and of the largest: smaller differences are rounding
EXTERNAL = -1  # proposal id of a point that no engine of this run proposed


class History(Saved):
    """Points and values in the order they were told, in arrays that grow by half when full.

    A point's `proposal_id` is the number that its engine gave it, or `EXTERNAL`. Failed evaluations are kept apart:
    they are avoided, never fitted. What most runs do not have (`MORE`) is a column from the first point on that has it,
    with NaN for those before.
    """

    def __init__(self, dimension: int) -> None:
        self._X = np.empty((0, dimension))
        self._y = np.empty(0)
        self._proposal_ids = np.empty(0, dtype=np.intp)
        self._more: dict[str, Array] = {}
        self._n = 0
        self.failures: list[Array] = []
        self._first: dict[bytes, int] = {}  # row of each point, of those looked at
        self._repeats: list[tuple[int, int]] = []
        self._looked = 0
        self._compared = 0, False  # points, and whether repeats among them differ

    def __len__(self) -> int:
        return self._n

    @property
    def X(self) -> Array:
        """(n, D) points."""
        return self._X[: self._n]

    @property
    def y(self) -> Array:
        """(n,) values, larger is better; with measured constraints, merits (`mctsvs.methods.constraint_ranking`)."""
        return self._y[: self._n]

    @property
    def proposal_ids(self) -> Indices:
        """(n,) the proposals that the points answer."""
        return self._proposal_ids[: self._n]

    @property
    def constrained(self) -> bool:
        """Whether constraints have been measured."""
        return "constraints" in self._more

    @property
    def constraints(self) -> Array:
        """(n, m) measured constraints, NaN unknown; (0, 0) if there are none."""
        return self._more["constraints"][: self._n] if "constraints" in self._more else np.empty((0, 0))

    @property
    def objective(self) -> Array:
        """(n,) values themselves, larger is better; beside constraints, NaN for one that is missing."""
        if "objective" not in self._more:
            return self.y
        own = self._more["objective"][: self._n]
        before = np.isnan(own) & np.isnan(self.constraints).all(axis=1)  # told when there were no constraints yet
        return np.where(before, self.y, own)

    @property
    def objectives(self) -> Array:
        """(n, M) values of several objectives, larger is better, NaN where they are missing; (n, 1) of a single one."""
        return self._more["objectives"][: self._n] if "objectives" in self._more else self.objective[:, None]

    @property
    def outputs(self) -> Array:
        """(n, M + m) all that is measured: values and constraints."""
        return np.column_stack([self.objectives, self.constraints]) if self.constrained else self.objectives

    @property
    def noise(self) -> Array:
        """(n,) standard deviations of the values' noise as told, NaN unknown; (0,) if none was told."""
        return self._more["noise"][: self._n] if "noise" in self._more else np.empty(0)

    @property
    def repeats(self) -> Indices:
        """(k, 2) rows of points evaluated more than once: the first evaluation, and a later one."""
        for row in range(self._looked, self._n):
            first = self._first.setdefault((self._X[row] + 0.0).tobytes(), row)
            if first != row:
                self._repeats.append((first, row))
        self._looked = self._n
        return np.array(self._repeats, dtype=np.intp).reshape(-1, 2)

    @property
    def repeats_differ(self) -> bool:
        """Whether a point, evaluated again, had another value or other constraints: that is noise.

        Differences within rounding are none. A failure is none either.
        """
        if self._compared[0] != self._n:
            first, again = self.repeats.T
            outputs = self.outputs
            differ = len(first) > 0 and (np.abs(outputs[first] - outputs[again]) > rounding(outputs)).any()
            self._compared = self._n, bool(differ)
        return self._compared[1]

    @property
    def distinct(self) -> Array:
        """Values of all points, each point once."""
        return np.delete(self.y, self.repeats[:, 1])

    def add(self, x: Array, y: float, proposal_id: int = EXTERNAL, **more: Any) -> None:
        """A point; `more`: those of `MORE` that it has."""
        if not np.isfinite(y):
            self.failures.append(np.array(x))
            return
        if self._n == len(self._y):
            self._grow(max(16, self._n + self._n // 2))
        self._X[self._n], self._y[self._n], self._proposal_ids[self._n] = x, y, proposal_id
        for name, value in more.items():
            if name not in self._more:
                self._more[name] = np.full((len(self._y), *np.shape(value)), np.nan)
            self._more[name][self._n] = value
        self._n += 1

    def _grow(self, capacity: int) -> None:
        def larger(column: Array) -> Array:
            new = np.full((capacity, *column.shape[1:]), np.nan)
            new[: self._n] = column[: self._n]
            return new

        X, values, proposal_ids = (
            np.empty((capacity, self._X.shape[1])),
            np.empty(capacity),
            np.empty(capacity, np.intp),
        )
        X[: self._n], values[: self._n], proposal_ids[: self._n] = self.X, self.y, self.proposal_ids
        self._X, self._y, self._proposal_ids = X, values, proposal_ids
        self._more = {name: larger(column) for name, column in self._more.items()}

    def best(self, k: int) -> Indices:
        """Rows of the k best points, best first (lines 2 and 20); the earlier point wins a tie."""
        y = self.y
        if k < len(y):  # a partial sort first: k is small and n may be large
            fence = np.partition(y, len(y) - k)[len(y) - k]
            rows = np.flatnonzero(y >= fence)
            return rows[np.argsort(-y[rows], kind="stable")][:k]
        return np.argsort(-y, kind="stable")

    def failures_beside(self, x: Array, coordinates: Indices) -> Array:
        """(f, D) the failed points that differ from x in these coordinates alone."""
        failures = np.array(self.failures).reshape(-1, len(x))
        others = np.delete(failures, coordinates, axis=1) - np.delete(x, coordinates)
        kept: Array = failures[np.abs(others).max(axis=1, initial=0.0) <= 1e-9]
        return kept

    def state(self) -> State:
        """Read-only views: rows are never changed, so a state taken now stays what it is, at no cost."""
        columns = {"X": self.X.view(), "y": self.y.view(), "proposal_ids": self.proposal_ids.view()}
        columns |= {name: column[: self._n].view() for name, column in self._more.items()}
        for column in columns.values():
            column.flags.writeable = False
        return {**columns, "failures": list(self.failures)}

    @staticmethod
    def state_of(observations: Sequence[Any], X: Array) -> State:
        """The state after these observations, of which X (n, D) are the points that have a value."""
        told = [o for o in observations if np.isfinite(o.y)]
        columns = {"X": X, "y": np.array([o.y for o in told])}
        columns["proposal_ids"] = np.array([o.proposal_id for o in told], dtype=np.intp)
        for name in MORE:
            first = next((value for o in told if (value := getattr(o, name)) is not None), None)
            if first is not None:
                nothing = np.full(np.shape(first), np.nan)
                columns[name] = np.array([nothing if getattr(o, name) is None else getattr(o, name) for o in told])
        for column in columns.values():
            column.flags.writeable = False
        failures = [np.array(o.x) for o in observations if not np.isfinite(o.y)]
        return {**columns, "failures": failures}

    def restore(self, state: State) -> None:
        """Arrays nobody can write to are taken as they are: they are full, so the next row makes larger ones."""

        def taken(name: str) -> Any:
            column = np.asarray(state[name])
            return column.copy() if column.flags.writeable else column

        self._X, self._y, self._proposal_ids = taken("X"), taken("y"), taken("proposal_ids")
        self._more = {name: taken(name) for name in MORE if name in state}
        self._n = len(self._y)
        self.failures = [np.array(x) for x in state["failures"]]
        self._first, self._repeats, self._looked = {}, [], 0
        self._compared = 0, False


def rounding(outputs: Array) -> Array:
    """(m,) by how much values of each column (n, m) may differ and still count as equal: units do not matter."""
    low, high = (np.nan_to_num(end(outputs, axis=0)) for end in (np.fmin.reduce, np.fmax.reduce))
    least: Array = np.maximum(SAME * (high - low), ROUNDING * np.maximum(np.abs(low), np.abs(high)))
    return least


class InformationSet(Saved):
    """The set of pairs (subset M, points D found by moving M), reduced to what the variable score needs.

        s = sum_(M, D) sum_(x, y in D) y g(M)  /  sum_(M, D) |D| g(M)                                     (Eq. 2)

    g(M) is the 0/1 vector of a subset, the division element by element: a variable's score is the mean value of
    the points found by moving it. An update costs the size of the subset, whatever the history holds.

    A variant with `best_of_subset` scores with the best value of each distinct subset in place of the sum, still
    divided by the number of points. That is not invariant to a constant added to the objective.
    """

    saved = ("total", "count", "best", "n", "mean", "squares")
    total: Array  # Eq. 2's numerator
    count: Array  # Eq. 2's denominator
    best: dict[str, float]  # best value by subset, where the variant asks for it
    n: int  # running moments of all values, for a scale-free exploration constant
    mean: float
    squares: float

    def __init__(self, n_variables: int, variant: Variant = TEXT) -> None:
        self.variant = variant
        self.total, self.count, self.best = np.zeros(n_variables), np.zeros(n_variables), {}
        self.n, self.mean, self.squares = 0, 0.0, 0.0

    def add(self, variables: Indices, y: float) -> None:
        y = min(max(y, -LARGEST), LARGEST)
        gain = y
        if self.variant.best_of_subset:
            key = hashlib.blake2b(np.sort(variables).tobytes(), digest_size=12).hexdigest()
            before = self.best.get(key)
            self.best[key] = y if before is None else max(before, y)
            gain = self.best[key] - (0.0 if before is None else before)
        self.total[variables] += gain
        self.count[variables] += 1.0
        self.n += 1
        delta = y - self.mean
        self.mean += delta / self.n
        self.squares += delta * (y - self.mean)

    @property
    def score(self) -> Array:
        """(V,) variable score; a variable never moved gets the mean of the others, neither good nor bad."""
        seen = self.count > 0
        score = np.divide(self.total, self.count, out=np.zeros_like(self.total), where=seen)
        if not seen.all():
            score[~seen] = score[seen].mean() if seen.any() else 0.0
        return score

    @property
    def deviation(self) -> float:
        """Standard deviation of all values so far."""
        return float(np.sqrt(self.squares / self.n)) if self.n else 0.0
