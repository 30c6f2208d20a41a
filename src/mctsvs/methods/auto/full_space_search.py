"""Bayesian optimisation of all variables that may matter, or of a changing part of very many.

One kind of model treats all variables alike (`IsotropicSearch`): it knows the shape of a bowl from a few points,
however many variables matter. The other has a lengthscale for each variable (the dimension-scaled prior): it finds the
few that do. Two of the latter take turns, of all points and of the best, once there are points enough.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mctsvs.gp.optimize_acqf_mixed import Lattice
from mctsvs.methods.auto import constants as const
from mctsvs.methods.auto.portfolio import Candidate, in_turn
from mctsvs.methods.history import History
from mctsvs.methods.solvers import DIMENSION_SCALED, ISOTROPIC, Solver, Subspace
from mctsvs.methods.solvers.bo import BayesianOptimisation, Best, BOOptions, IsoOptions, IsotropicSearch
from mctsvs.methods.solvers.constrained import ConstrainedOptions, ConstrainedSearch
from mctsvs.space import Region
from mctsvs.utils.state import Saved
from mctsvs.utils.validation import Array, Indices


class FullSpaceModel(Saved):
    """The next point in many coordinates; `owner` says which variable each belongs to."""

    saved = ("part", "given", "of_all", "of_best", "alike", "constrained")
    part: Indices | None = None  # the coordinates moved, where these are not all
    given: bool = False  # whether the caller chose them
    of_all: BayesianOptimisation
    of_best: BayesianOptimisation
    alike: IsotropicSearch
    constrained: ConstrainedSearch
    region: Region | None = None  # where points may lie
    lattice: Lattice | None = None  # the values that coordinates can take, where some cannot take any

    def __init__(self, owner: Indices) -> None:
        self.owner, options = owner, BOOptions(**DIMENSION_SCALED)
        self.alike = IsotropicSearch(IsoOptions(**ISOTROPIC))
        self.constrained = ConstrainedSearch(ConstrainedOptions())
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
        """A point (D,): the best one with other values of the coordinates chosen, by models that tell them apart."""
        best = turn % 2 == 1 and len(history) >= 2 * len(self.moved)
        place = self._place(history, waiting)
        return in_turn(self.of_best if best else None, self.of_all, lambda model: place(model, rng), history.X).x

    def propose_alike(self, history: History, waiting: Array, rng: np.random.Generator) -> Array:
        """The same by the model that treats them alike."""
        return self._place(history, waiting)(self.alike, rng).x

    def propose_constrained(self, history: History, waiting: Array, rng: np.random.Generator) -> Array:
        """The same by models of the objective and of each measured constraint."""
        return self._place(history, waiting)(self.constrained, rng).x

    def _place(self, history: History, waiting: Array) -> Callable[[Solver, np.random.Generator], Candidate]:
        """What a solver proposes for the coordinates chosen, in its place."""
        start, moved = history.X[history.best(1)[0]], self.moved
        failed = history.failures_beside(start, moved) if self.given else None  # others may do what others did
        subspace = Subspace(history, moved, waiting, self.owner, failed, whole=self.lattice, region=self.region)

        def place(solver: Solver, rng: np.random.Generator) -> Candidate:
            x = start.copy()
            x[moved] = solver.propose(1, subspace, rng)[0]
            return Candidate(x)

        return place
