"""Solvers: how to move the selected variables. A new one is one file here and one line in `SOLVERS`.

A solver sees a `Subspace`: the history restricted to the coordinates being moved.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from mctsvs.methods.history import History
from mctsvs.space import Region
from mctsvs.space.region_slice import RegionSlice
from mctsvs.utils.options import Options
from mctsvs.utils.state import Saved
from mctsvs.utils.validation import Array, Indices, State, check_choice

if TYPE_CHECKING:
    from mctsvs.gp.optimize_acqf_mixed import Lattice

MOST_AVOIDED = 200  # points that failed or wait for their value


@dataclass(frozen=True)
class Subspace:
    """The coordinates being moved and the data so far; columns are copied only when a solver asks for them."""

    history: History
    coordinates: Indices  # (d,)
    waiting: Array  # (p, D) points asked for and not yet told
    owner: Indices | None = None  # (D,) variable of each coordinate; None: a variable each
    failed: Array | None = None  # (f, D) the failures that count; None: all
    next_proposal_id: int = 0  # of the first point that will be proposed here; the others' follow
    whole: Lattice | None = None  # the values that all D coordinates can take; None: any
    region: Region | None = None  # where points may lie
    others_give_way: bool = False  # to what known constraints demand, where the caller sees to it

    @property
    def dimension(self) -> int:
        return len(self.coordinates)

    @property
    def complete(self) -> bool:
        """Whether these are all coordinates."""
        return bool(self.dimension == self.history.X.shape[1])

    @cached_property
    def X(self) -> Array:
        """(n, d) points evaluated."""
        if self.complete:
            return self.history.X
        return self.history.X[:, self.coordinates]

    @property
    def y(self) -> Array:
        return self.history.y

    @cached_property
    def constrained(self) -> bool:
        """Whether constraints have been measured, and at least two values beside them."""
        return self.history.constrained and int((~np.isnan(self.history.objective)).sum()) > 1

    @cached_property
    def values(self) -> tuple[Array, Array, Array]:
        """Points, values and their noise: the merits, or beside constraints, what values are known themselves."""
        if not self.constrained:
            return self.X, self.y, self.history.noise
        known, noise = ~np.isnan(self.history.objective), self.history.noise
        return self.X[known], self.history.objective[known], noise[known] if len(noise) else noise

    @cached_property
    def feasible(self) -> npt.NDArray[np.bool_]:
        """(n,) whether the measured constraints of the points in `values` are known to hold."""
        known = ~np.isnan(self.history.objective)
        return np.asarray((self.history.constraints[known] <= 0.0).all(axis=1))

    @cached_property
    def categorical(self) -> npt.NDArray[np.bool_]:
        """(d,) coordinates that share their variable with others: one-hot codes of a category."""
        if self.owner is None:
            return np.zeros(self.dimension, dtype=np.bool_)
        return np.asarray(np.bincount(self.owner)[self.owner[self.coordinates]] > 1)

    @cached_property
    def lattice(self) -> Lattice | None:
        """The values that these coordinates can take, where some cannot take any."""
        if self.whole is None:
            return None
        lattice = self.whole
        if not self.complete:
            base = self.history.X[self.history.best(1)[0]] if len(self.history) else None
            lattice = self.whole.among(self.coordinates, base)
        return None if lattice.plain else lattice

    @cached_property
    def cut(self) -> RegionSlice | None:
        """What known constraints leave of these coordinates, the others as at the best point; None: all."""
        if self.region is None or not self.region.constrained or not len(self.history):
            return None
        best = self.history.X[self.history.best(1)[0]]
        return RegionSlice.of(self.region, best, self.coordinates, others_give_way=self.others_give_way)

    @cached_property
    def failures(self) -> Array:
        """(f, d) points that failed."""
        failed = self.history.failures if self.failed is None else self.failed
        return np.array([x[self.coordinates] for x in failed]).reshape(len(failed), self.dimension)

    @cached_property
    def avoid(self) -> Array:
        """(a, d) points waiting for their value or failed: no reason to propose them again."""
        return thinned(np.concatenate([self.failures, self.waiting[:, self.coordinates]]))


def thinned(points: Array) -> Array:
    """Of more points than a model should pay for, an even share from first to last.

    Others each time a point is added, so that none is left out for long; the nearest to the best point would leave out
    the same ones each time, and the model would propose these again and again.
    """
    if len(points) <= MOST_AVOIDED:
        return points
    return points[np.linspace(0, len(points) - 1, MOST_AVOIDED).round().astype(np.intp)]


class Solver(Protocol):
    """Proposes values for the coordinates of a subspace."""

    options_type: ClassVar[type[Any]]  # of `Options`

    def __init__(self, options: Any) -> None: ...

    @property
    def batch(self) -> int | None:
        """Points to propose at once; None: all that the subset gets."""
        ...

    def propose(self, n: int, subspace: Subspace, rng: np.random.Generator) -> Array:
        """(n, d) new values for the subspace's d coordinates, inside the unit cube."""
        ...

    def state(self) -> State: ...

    def restore(self, state: State) -> None: ...


class RandomSearch(Saved):
    """Uniform values: the solver that shows what variable selection alone is worth. It learns nothing."""

    options_type: ClassVar[type[Options]] = Options
    batch = None

    def __init__(self, options: Options) -> None:
        self.options = options

    def propose(self, n: int, subspace: Subspace, rng: np.random.Generator) -> Array:
        return rng.random((n, subspace.dimension))


# loaded when used: the model behind `bo` needs scipy's linear algebra, which takes a while to import
SOLVERS: dict[str, str | type[Solver]] = {
    "random": RandomSearch,
    "bo": "bo:BayesianOptimisation",
    "iso": "bo:IsotropicSearch",
    "turbo": "turbo:TuRBO",
    "scbo": "scbo:SCBO",
    "saas": "saas:SAAS",
    "saasbo": "saas:SAASBO",
}


# options of `bo` that model all variables at once: measured beside BoTorch's default (docs/results)
DIMENSION_SCALED: dict[str, Any] = {
    "kernel": "se",
    "prior": "dimension-scaled",
    "starts": 2,
    "pool": 512,
    "climb": 60,
    "fit_points": 300,
    "fit_iterations": 60,
    "fit_growth": 1.05,
    "late_growth": 1.12,
    "thorough": True,
    "constant_mean": True,
    "winsorise": False,
}

# options of `iso`, where all variables are alike (docs/results/ablation.md)
ISOTROPIC: dict[str, Any] = {
    "kernel": "shared+iso+cosines",
    "prior": "alike",
    "fit_points": 250,
    "fit_iterations": 25,
    "fit_growth": 1.08,
    "restart": True,
    "most_points": 250,
    "constant_mean": True,
    "winsorise": False,
    "starts": 2,
    "pool": 128,
    "climb": 40,
    "crossovers": 96,
    "fantasies": "expected",
}


def find(name: str) -> type[Solver]:
    """The solver's class."""
    solver = SOLVERS[check_choice("solver", name, SOLVERS)]
    if isinstance(solver, str):
        module, _, attribute = solver.partition(":")
        loaded: type[Solver] = getattr(import_module(f"mctsvs.methods.solvers.{module}"), attribute)
        return loaded
    return solver


def make(name: str, **options: Any) -> Solver:
    """The solver of that name."""
    solver = find(name)
    return solver(solver.options_type(**options))
