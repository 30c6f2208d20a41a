"""Solvers: how to move the selected variables. A new one is one file here and one line in `SOLVERS`."""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar, Protocol

import numpy as np

from mctsvs.methods.solvers.subspace import Subspace
from mctsvs.utils.options import Options
from mctsvs.utils.state import Saved
from mctsvs.utils.validation import Array, State, check_choice


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

# options of `iso`, where all variables are alike (docs/results/isotropic.md)
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
