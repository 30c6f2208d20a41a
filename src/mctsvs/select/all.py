"""No selection: every variable is moved every time."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mctsvs.common import Indices, State
from mctsvs.history import History


class AllVariables:
    """Moves all variables: turns a solver into the plain method of its name."""

    options: ClassVar[tuple[str, ...]] = ()

    def __init__(self, n_variables: int) -> None:
        self.n_variables = n_variables
        self.iteration = 0

    def initial(self, points: int | None, rng: np.random.Generator) -> list[tuple[Indices, int]]:
        return [(np.arange(self.n_variables), 12 if points is None else points)]

    def next(self, history: History, owner: Indices, rng: np.random.Generator) -> Indices:
        self.iteration += 1
        return np.arange(self.n_variables)

    def observe(self, variables: Indices, y: float) -> None:
        """Nothing to choose, nothing to learn."""

    @property
    def tree(self) -> None:
        return None

    def state(self) -> State:
        return {"iteration": self.iteration}

    def restore(self, state: State) -> None:
        self.iteration = state["iteration"]
