"""Measured constraints as an order of trials, and as one number for methods that have no model of them.

A constraint holds where its value is at most 0. The order is Deb's: a feasible trial is better than any that is not, of
two feasible ones the better value counts, of two others the smaller violation. A trial's violation is the sum of its
constraints' positive values, each divided by the median of that constraint's positive values so far, so that units do
not matter; a constraint that is not known counts as 1, a typical violation.

The number that a method gets (its merit) is the value of a feasible trial; of another one, the worst feasible value so
far (of all values, while none is feasible) less the violation times the spread of the values so far.
"""

from __future__ import annotations

import math

import numpy as np

from mctsvs.utils.validation import Array


class ConstraintRanking:
    """Scores (larger is better, NaN: missing) and constraints of all trials told, in their order; see above."""

    def __init__(self, n_constraints: int = 0) -> None:
        self.scores: list[float] = []
        self.rows: list[Array] = []
        self.numbers: list[int] = []
        self.unknown = np.full(n_constraints, np.nan)
        self._best: int | None = None  # the best feasible one
        self._least: int | None = None  # while there is none, the one that violates least; None: not computed yet

    def take(self, score: float, row: Array | None, number: int | None = None) -> bool:
        """One more trial, a row of None where nothing was measured; False, and not taken, if nothing is known of it.

        Of equal trials the one of the lowest number is the best; by default they are numbered as they come.
        """
        row = self.unknown if row is None else row
        if math.isnan(score) and np.isnan(row).all():
            return False
        self._least = None
        self.scores.append(score)
        self.rows.append(row)
        self.numbers.append(len(self.numbers) if number is None else number)
        if feasible(row) and not math.isnan(score) and (self._best is None or self._before(self._best)):
            self._best = len(self.scores) - 1
        return True

    def _before(self, place: int) -> bool:
        """Whether the last trial is better than the one at this place, or equal and of a lower number."""
        return (self.scores[-1], -self.numbers[-1]) > (self.scores[place], -self.numbers[place])

    def add(self, score: float, row: Array | None) -> float:
        """Take one more trial: its merit, NaN if nothing is known of it."""
        return self.merit() if self.take(score, row) else math.nan

    def merit(self) -> float:
        """Of the last trial."""
        score, row = self.scores[-1], self.rows[-1]
        if feasible(row) and not math.isnan(score):
            return score
        scores, rows = np.array(self.scores), np.array(self.rows)
        known = ~np.isnan(scores)
        allowed = known & (rows <= 0.0).all(axis=1)
        if not known.any():
            return -float(violations(rows)[-1])
        floor = float(scores[allowed if allowed.any() else known].min())
        spread = float(np.median(scores[known])) - float(scores[known].min())
        return floor - (spread if spread > 0.0 else 1.0) * float(violations(rows)[-1])

    @property
    def best(self) -> int | None:
        """Place of the best trial: the best feasible one; else, of those with a value if any, the least violation.

        Of equal violations the better value counts, and of equal trials the lowest number.
        """
        if self._best is None and self._least is None and self.scores:
            scores, total = np.array(self.scores), violations(np.array(self.rows))
            known = ~np.isnan(scores)
            places = np.flatnonzero(known if known.any() else ~known)
            places = places[total[places] == total[places].min()]
            self._least = int(places[np.lexsort((np.array(self.numbers)[places], -scores[places]))[0]])
        return self._least if self._best is None else self._best


def feasible(row: Array) -> bool:
    """Whether all constraints are known to hold."""
    return bool((row <= 0.0).all())


def scales(rows: Array) -> Array:
    """(m,) the median positive value of each constraint, 1 where there is none."""
    positive = np.sort(np.where(rows > 0.0, rows, np.inf), axis=0)  # (n, m)
    count = (positive < np.inf).sum(axis=0)
    middle = np.take_along_axis(positive, (np.maximum(count - 1, 0) // 2)[None], axis=0)[0]
    return np.where(count > 0, middle, 1.0)


def violations(rows: Array) -> Array:
    """(n,) the total violation of each of these trials' constraints (n, m), scaled by what they show."""
    scaled = np.maximum(rows, 0.0) / scales(rows)
    total: Array = np.where(np.isnan(rows), 1.0, scaled).sum(axis=1)
    return total
