"""The models that propose a step: new values of some coordinates, all others as at the best point.

One treats variables alike (`IsotropicSearch`): it knows the shape of a bowl from a few points, however many variables
matter. Two have a lengthscale for each variable (`TwoModels`): that of all variables has the dimension-scaled prior and
finds the few that matter; that of the found variables has an additive term beside the joint one, which carries the
sharp shape that many objectives have along each variable. One has a model for each measured constraint beside it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mctsvs.gp.model import Predictor, expectation
from mctsvs.gp.optimize_acqf_mixed import Lattice
from mctsvs.methods.auto import constants as const
from mctsvs.methods.auto.evidence import TestKind
from mctsvs.methods.history import History
from mctsvs.methods.solvers import DIMENSION_SCALED, ISOTROPIC, Solver, Subspace
from mctsvs.methods.solvers.bo import BayesianOptimisation, Best, BOOptions, IsoOptions, IsotropicSearch
from mctsvs.methods.solvers.constrained import ConstrainedOptions, ConstrainedSearch
from mctsvs.space import Region
from mctsvs.utils.state import Saved
from mctsvs.utils.validation import Array, Indices

FOUND: dict[str, Any] = {
    "kernel": "joint-additive",
    "prior": "found",
    "starts": 3,
    "pool": 256,
    "climb": 20,
    "crossovers": 64,
    "along_axes": 80,
    "fantasies": "expected",
    "fit_points": 200,
    "fit_iterations": 25,
    "fit_growth": 1.05,
    "restart": True,
    "most_points": 250,
    "constant_mean": True,
    "winsorise": False,
}


class TwoModels(Saved):
    """A model of all points and one of the best alone, which take turns once there are points enough.

    Bad points set a scale on which the differences between good ones look like nothing; but a model of good points
    cannot know that bad ones are bad, and now and then asks for one again. Then the other model has the turn.
    """

    saved = ("of_all", "of_best")
    of_all: BayesianOptimisation
    of_best: BayesianOptimisation

    def __init__(self, options: BOOptions) -> None:
        self.of_all = BayesianOptimisation(options, distinct=True)
        self.of_best = BayesianOptimisation(options, distinct=True, best=Best(const.BEST_SHARE))

    def propose(self, turn: int, subspace: Subspace, rng: np.random.Generator) -> Array:
        """(d,)"""
        if turn % 2 == 1 and len(subspace.history) >= 2 * subspace.dimension:
            x: Array = self.of_best.propose(1, subspace, rng)[0]
            if np.abs(subspace.X - x).max(axis=1).min() > const.SAME_POINT:
                return x
        proposed: Array = self.of_all.propose(1, subspace, rng)[0]
        return proposed


class Surrogates(Saved):
    """The next point in many coordinates; `owner` says which variable each belongs to."""

    saved = ("part", "given", "apart", "found", "alike", "constrained")
    part: Indices | None = None  # the coordinates moved, where these are not all
    given: bool = False  # whether the caller chose them
    apart: TwoModels
    found: TwoModels
    alike: IsotropicSearch
    constrained: ConstrainedSearch
    region: Region | None = None  # where points may lie
    lattice: Lattice | None = None  # the values that coordinates can take, where some cannot take any

    def __init__(self, owner: Indices) -> None:
        self.owner = owner
        self.apart, self.found = TwoModels(BOOptions(**DIMENSION_SCALED)), TwoModels(BOOptions(**FOUND))
        self.alike = IsotropicSearch(IsoOptions(**ISOTROPIC))
        self.constrained = ConstrainedSearch(ConstrainedOptions())

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

    def propose(self, kind: TestKind, turn: int, history: History, waiting: Array, rng: np.random.Generator) -> Array:
        """A point (D,): the best one with other values of the coordinates chosen, by the model of that arm."""
        x, moved = history.X[history.best(1)[0]].copy(), self.moved
        subspace = Subspace(
            history,
            moved,
            waiting,
            self.owner,
            history.failures_beside(x, moved) if self.given else None,  # others may do what others did
            whole=self.lattice,
            region=self.region,
            others_give_way=self.given,
        )
        if history.constrained or kind is TestKind.ALIKE:
            solver: Solver = self.constrained if history.constrained else self.alike
            x[moved] = solver.propose(1, subspace, rng)[0]
        else:
            x[moved] = (self.found if kind is TestKind.STEP else self.apart).propose(turn, subspace, rng)
        return np.asarray(x)


def of_found(X: Array, y: Array) -> Predictor:
    """What a model of the found variables expects, from points (n, d) and their values."""
    return expectation(X, y, winsorise=False, kernel=str(FOUND["kernel"]), prior=str(FOUND["prior"]))
