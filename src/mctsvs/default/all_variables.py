"""Bayesian optimisation of all variables that may matter, or of a changing part of very many.

Two kinds of model take turns: one that treats all variables alike (`solve.iso`) and one with a lengthscale for each
variable (the dimension-scaled prior). The first knows the shape of a bowl from a few points, however many variables matter;
the second finds the few that do. Which of the two cases it is cannot be told from noisy values, nor where tests give up.
"""

from __future__ import annotations

import numpy as np

from mctsvs.common import Array, Indices
from mctsvs.default import constants as const
from mctsvs.default.ablation import Ablation
from mctsvs.default.turns import Candidate, in_turn
from mctsvs.history import History
from mctsvs.solve import DIMENSION_SCALED
from mctsvs.solve.bo import BayesianOptimisation, Best, BOOptions
from mctsvs.solve.iso import IsoOptions, IsotropicSearch
from mctsvs.solve.subspace import Subspace
from mctsvs.state import Saved


class AllModel(Saved):
    """The next point in many coordinates; `owner` says which variable each belongs to."""

    saved = ("part", "given", "of_all", "of_best", "alike")
    part: Indices | None = None  # the coordinates moved, where these are not all
    given: bool = False  # whether the caller chose them
    of_all: BayesianOptimisation
    of_best: BayesianOptimisation
    alike: IsotropicSearch

    def __init__(self, owner: Indices, parts: Ablation) -> None:
        self.owner, self.parts, options = owner, parts, BOOptions(**DIMENSION_SCALED)
        self.alike = IsotropicSearch(IsoOptions())
        self.of_all = BayesianOptimisation(options, distinct=True)
        self.of_best = BayesianOptimisation(options, distinct=True, best=Best(const.BEST_SHARE))

    @property
    def moved(self) -> Indices:
        """Coordinates of the point proposed last."""
        return np.arange(len(self.owner)) if self.part is None else self.part

    def choose(self, turn: int, probability: Array, rng: np.random.Generator, *, among: Indices | None = None) -> None:
        """The coordinates to move: those given, all, or for a while a part, by the probability (V,) to matter."""
        if among is not None or len(self.owner) <= const.WIDEST_MODEL:
            self.part = among
        elif self.part is None or self.given or turn % const.PART_TURNS == 0:
            order = np.argsort(-(probability + 1e-3 * rng.random(len(probability))))
            whole = np.cumsum(np.bincount(self.owner)[order]) <= const.PART  # a category with all of its coordinates
            whole[0] = True  # or alone, where it has more than that
            self.part = np.flatnonzero(np.isin(self.owner, order[whole]))
        self.given = among is not None

    def propose(self, turn: int, history: History, waiting: Array, rng: np.random.Generator) -> Array:
        """A point (D,): the best one with other values of the coordinates chosen."""
        start, moved = history.X[history.best(1)[0]], self.moved
        failed = history.failures_beside(start, moved) if self.given else None  # others may do what others did
        subspace = Subspace(history, moved, waiting, self.owner, failed)

        def ask(model: BayesianOptimisation | IsotropicSearch) -> Candidate:
            x = start.copy()
            x[moved] = model.propose(1, subspace, rng)[0]
            return Candidate(x)

        if self.parts.alike:
            if turn % 2 == 0:
                return ask(self.alike).x
            turn //= 2
        best = self.parts.best and turn % 2 == 1 and len(history) >= 2 * len(moved)
        return in_turn(self.of_best if best else None, self.of_all, ask, history.X).x
