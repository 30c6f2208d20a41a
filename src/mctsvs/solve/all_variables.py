"""Bayesian optimisation of all variables that may matter, or of a changing part of very many.

Two models under the dimension-scaled prior take turns as in `FoundVariables`, of all points and of the best, once there
are points enough for the best alone to say something.
"""

from __future__ import annotations

import numpy as np

from mctsvs.common import Array, Indices, State
from mctsvs.history import History
from mctsvs.solve import DIMENSION_SCALED
from mctsvs.solve.bo import BayesianOptimisation
from mctsvs.solve.found import BEST_SHARE, SAME_POINT
from mctsvs.solve.subspace import Subspace

WIDEST_MODEL = 2000  # coordinates of the model; of more, a changing part is moved
PART, PART_TURNS = 1000, 20  # coordinates of that part, and the proposals it serves for


class AllVariables:
    """The next point in many coordinates; `owner` says which variable each belongs to.

    best   every other point comes from a model of the best points alone
    """

    def __init__(self, owner: Indices, *, best: bool = True) -> None:
        self.owner, self.best = owner, best
        self.of_all = BayesianOptimisation(**DIMENSION_SCALED, distinct=True)
        self.of_best = BayesianOptimisation(**DIMENSION_SCALED, distinct=True, best_share=BEST_SHARE)
        self.part: Indices | None = None  # the coordinates moved, where these are not all
        self.given = False  # whether the caller chose them

    def propose(
        self,
        history: History,
        waiting: Array,
        probability: Array,
        turn: int,
        rng: np.random.Generator,
        *,
        among: Indices | None = None,
    ) -> tuple[Array, Indices]:
        """A point (D,) and the variables it moves: those of the coordinates `among`, or all.

        Where all are too many, `probability` (V,) that a variable matters chooses the part.
        """
        if among is not None or len(self.owner) <= WIDEST_MODEL:
            self.part = among
        elif self.part is None or self.given or turn % PART_TURNS == 0:
            order = np.argsort(-(probability + 1e-3 * rng.random(len(probability))))
            whole = np.cumsum(np.bincount(self.owner)[order]) <= PART  # a category with all of its coordinates
            self.part = np.flatnonzero(np.isin(self.owner, order[whole]))
        self.given = among is not None
        subspace = self._subspace(history, waiting)
        moved = subspace.coordinates
        x, variables = history.X[history.best(1)[0]].copy(), np.unique(self.owner[moved])
        if self.best and turn % 2 and len(history) >= 2 * len(moved):
            x[moved] = self.of_best.propose(1, subspace, rng)[0]
            if np.abs(history.X - x).max(axis=1).min() > SAME_POINT:  # it cannot know that bad points are bad
                return x, variables
        x[moved] = self.of_all.propose(1, subspace, rng)[0]
        return x, variables

    def _subspace(self, history: History, waiting: Array) -> Subspace:
        if not self.given:
            coordinates = np.arange(len(self.owner)) if self.part is None else self.part
            return Subspace(history, coordinates, waiting, self.owner)
        assert self.part is not None
        failed = history.failures_beside(history.X[history.best(1)[0]], self.part)  # others may do what others did
        return Subspace(history, self.part, waiting, self.owner, failed)

    def state(self) -> State:
        return {"all": self.of_all.state(), "best": self.of_best.state(), "part": self.part, "given": self.given}

    def restore(self, state: State, history: History) -> None:
        self.part, self.given = state["part"], state["given"]
        subspace = self._subspace(history, np.empty((0, len(self.owner))))
        self.of_all.restore(state["all"], subspace)
        self.of_best.restore(state["best"], subspace)
