"""Everything evaluated so far, and the information set with its variable score (Eq. 2).

Notation: D coordinates of the unit cube, V variables (a categorical variable owns several coordinates), n points.
"""

from __future__ import annotations

import hashlib

import numpy as np

from mctsvs.common import Array, Indices, InputError, State

LARGEST = 1e150  # sums of squares of larger values overflow
VARIANTS = ("text", "authors-program")


def check_variant(variant: str) -> str:
    if variant not in VARIANTS:
        raise InputError(f"unknown variant {variant!r}: use one of {', '.join(VARIANTS)}")
    return variant


class History:
    """Points and values in the order they were told, in arrays that grow by half when full.

    Failed evaluations are kept apart: they are avoided, never fitted.
    """

    def __init__(self, dimension: int) -> None:
        self._X = np.empty((0, dimension))
        self._y = np.empty(0)
        self._n = 0
        self.failures: list[Array] = []

    def __len__(self) -> int:
        return self._n

    @property
    def X(self) -> Array:
        """(n, D) points."""
        return self._X[: self._n]

    @property
    def y(self) -> Array:
        """(n,) values, larger is better."""
        return self._y[: self._n]

    def add(self, x: Array, y: float) -> None:
        if not np.isfinite(y):
            self.failures.append(np.array(x))
            return
        if self._n == len(self._y):
            capacity = max(16, self._n + self._n // 2)
            X, values = np.empty((capacity, self._X.shape[1])), np.empty(capacity)
            X[: self._n], values[: self._n] = self.X, self.y
            self._X, self._y = X, values
        self._X[self._n], self._y[self._n] = x, y
        self._n += 1

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
        X, y = self.X.view(), self.y.view()
        X.flags.writeable = y.flags.writeable = False
        return {"X": X, "y": y, "failures": list(self.failures)}

    @classmethod
    def restore(cls, state: State) -> History:
        """Arrays nobody can write to are taken as they are: they are full, so the next row makes larger ones."""
        X, y = (a.copy() if a.flags.writeable else a for a in map(np.asarray, (state["X"], state["y"])))
        history = cls(X.shape[1])
        history._X, history._y, history._n = X, y, len(y)
        history.failures = [np.array(x) for x in state["failures"]]
        return history


class InformationSet:
    """The set of pairs (subset M, points D found by moving M), reduced to what the variable score needs.

        s = sum_(M, D) sum_(x, y in D) y g(M)  /  sum_(M, D) |D| g(M)                                     (Eq. 2)

    g(M) is the 0/1 vector of a subset, the division element by element: a variable's score is the mean value of
    the points found by moving it. An update costs the size of the subset, whatever the history holds.

    `variant="authors-program"` scores with the best value of each distinct subset in place of the sum, still divided
    by the number of points. That is not invariant to a constant added to the objective; see docs/design.md.
    """

    def __init__(self, n_variables: int, variant: str = "text") -> None:
        self.variant = check_variant(variant)
        self.total = np.zeros(n_variables)  # Eq. 2's numerator
        self.count = np.zeros(n_variables)  # Eq. 2's denominator
        self.best: dict[str, float] = {}  # authors-program: best value by subset
        # running moments of all values, for a scale-free exploration constant
        self.n, self.mean, self.squares = 0, 0.0, 0.0

    def add(self, variables: Indices, y: float) -> None:
        y = min(max(y, -LARGEST), LARGEST)
        gain = y
        if self.variant == "authors-program":
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
    def spread(self) -> float:
        """Standard deviation of all values so far."""
        return float(np.sqrt(self.squares / self.n)) if self.n else 0.0

    def state(self) -> State:
        return {
            "variant": self.variant,
            "total": self.total.copy(),
            "count": self.count.copy(),
            "best": dict(self.best),
            "moments": [self.n, self.mean, self.squares],
        }

    @classmethod
    def restore(cls, state: State) -> InformationSet:
        information = cls(len(state["total"]), state["variant"])
        information.total, information.count = state["total"].copy(), state["count"].copy()
        information.best = dict(state["best"])
        information.n, information.mean, information.squares = state["moments"]
        return information
