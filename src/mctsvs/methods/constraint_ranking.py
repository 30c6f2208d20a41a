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
    """Scores (larger is better, NaN: missing) and constraints of all trials told, in their order."""

    def __init__(self, n_constraints: int) -> None:
        self.scores: list[float] = []
        self.rows: list[Array] = []
        self.unknown = np.full(n_constraints, np.nan)

    def add(self, score: float, row: Array | None) -> float:
        """The merit of one more trial; NaN for one of which nothing is known."""
        if math.isnan(score) and (row is None or np.isnan(row).all()):
            return math.nan
        self.scores.append(score)
        self.rows.append(self.unknown if row is None else row)
        if feasible(self.rows[-1]) and not math.isnan(score):
            return score
        scores, rows = np.array(self.scores), np.array(self.rows)
        known = ~np.isnan(scores)
        allowed = known & (rows <= 0.0).all(axis=1)
        if not known.any():
            return -float(violations(rows)[-1])
        floor = float(scores[allowed if allowed.any() else known].min())
        spread = float(np.median(scores[known])) - float(scores[known].min())
        return floor - (spread if spread > 0.0 else 1.0) * float(violations(rows)[-1])

    def least_violation(self) -> int:
        """Place of the first trial that violates least, of those with a value if there are any."""
        missing, total = np.isnan(self.scores), violations(np.array(self.rows))
        return int(np.argmin(total if missing.all() else np.where(missing, np.inf, total)))


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
