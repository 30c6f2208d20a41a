"""Solvers: how to move the selected variables. A new one is one file here and one line in `SOLVERS`."""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar, Protocol

import numpy as np

from mctsvs.common import Array, InputError, State
from mctsvs.solve.subspace import Subspace


class Solver(Protocol):
    """Proposes values for the coordinates of a subspace."""

    options: ClassVar[tuple[str, ...]]
    """Names of the keyword arguments the solver takes."""

    @property
    def batch(self) -> int | None:
        """Points to propose at once; None: all that the subset gets."""
        ...

    def propose(self, n: int, subspace: Subspace, rng: np.random.Generator) -> Array:
        """(n, d) new values for the subspace's d coordinates, inside the unit cube."""
        ...

    def state(self) -> State: ...

    def restore(self, state: State, subspace: Subspace | None) -> None:
        """Continue from `state`; `subspace` is the one of the last proposal, with the data of that time."""
        ...


# loaded when used: the model behind `bo` needs scipy's linear algebra, which takes a while to import
SOLVERS = {
    "random": "random:RandomSearch",
    "bo": "bo:BayesianOptimisation",
    "turbo": "turbo:TuRBO",
    "saas": "saas:SparseMap",
    "saasbo": "saasbo:SparseSampled",
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
    "thorough": True,
    "constant_mean": True,
    "winsorise": False,
}


def find(name: str) -> type[Solver]:
    """The solver's class."""
    if name not in SOLVERS:
        raise InputError(f"unknown solver {name!r}: use one of {', '.join(SOLVERS)}")
    module, _, attribute = SOLVERS[name].partition(":")
    solver: type[Solver] = getattr(import_module(f"mctsvs.solve.{module}"), attribute)
    return solver


def make(name: str, **options: Any) -> Solver:
    """The solver of that name."""
    return find(name)(**options)
