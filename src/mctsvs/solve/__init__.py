"""Solvers: how to move the selected variables. A new one is one file here and one line in `SOLVERS`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from mctsvs.common import Array, InputError, State
from mctsvs.solve.bo import BayesianOptimisation
from mctsvs.solve.random import RandomSearch
from mctsvs.solve.subspace import Subspace


class Solver(Protocol):
    """Proposes values for the coordinates of a subspace."""

    def propose(self, n: int, subspace: Subspace, rng: np.random.Generator) -> Array:
        """(n, d) new values for the subspace's d coordinates, inside the unit cube."""
        ...

    def state(self) -> State: ...

    def restore(self, state: State, subspace: Subspace | None) -> None:
        """Continue from `state`; `subspace` is the one of the last proposal, with the data of that time."""
        ...


SOLVERS: Mapping[str, Any] = {"random": RandomSearch, "bo": BayesianOptimisation}


def make(name: str, **options: Any) -> Solver:
    """The solver of that name."""
    if name not in SOLVERS:
        raise InputError(f"unknown solver {name!r}: use one of {', '.join(SOLVERS)}")
    solver: Solver = SOLVERS[name](**options)
    return solver
