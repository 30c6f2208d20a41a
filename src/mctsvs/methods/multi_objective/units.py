"""Units that follow the front: each objective is shifted and scaled so that the front spans one unit of it.

So nothing depends on the units of the user's, and what is far from the front takes no part in its scale. Hypervolume
is measured inside the reference point, where the units are linear; beyond it values count by their logarithm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mctsvs.gp.pareto import non_dominated
from mctsvs.gp.standardize import GRID
from mctsvs.methods.constraint_ranking import violations
from mctsvs.utils.validation import Array, Indices

NARROWEST = 0.02  # of the distance from an objective's best value to its median: the least range of a front

FARTHEST = 10.0  # ranges of the front between its best values and a reference point that is better


def front_rows(Y: Array, C: Array) -> Indices:
    """Rows of the feasible points that no feasible one dominates; without any, of the one that violates least.

    Y (n, M) are values, larger is better; C (n, m) measured constraints, NaN where they are not known.
    """
    rows = np.arange(len(Y)) if not C.size else np.flatnonzero((C <= 0.0).all(axis=1))
    if not len(rows):
        return np.argsort(violations(C), kind="stable")[:1]
    return rows[non_dominated(Y[rows])]


@dataclass(frozen=True, eq=False)
class Units:
    """Of one moment: values (n, M), and the reference point (M,)."""

    values: Array
    reference: Array

    @classmethod
    def of(cls, Y: Array, front: Indices, beyond: float, aim: Array | None = None) -> Units:
        """From values, the rows of the front, and how many ranges of it the reference point is worse than it.

        `aim` (M,) is what the user wants points to be better than, where that was said.
        """
        best, worst = Y[front].max(axis=0), Y[front].min(axis=0)
        width = np.maximum(best - worst, NARROWEST * (best - np.median(Y, axis=0)))
        width = np.where(width > 0.0, width, 1.0)
        reference = (worst - best) / width - beyond
        if aim is not None:
            with np.errstate(over="ignore"):
                reference = np.maximum(reference, np.minimum((aim - best) / width, FARTHEST))
        values = (Y - best) / width
        short = np.maximum(reference - values, 0.0)
        values = np.where(short > 0.0, reference - np.log1p(short), values)
        return cls(np.round(values / GRID) * GRID, reference)  # the same for f and a f + b
