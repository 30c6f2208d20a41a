"""What selectors share that keep nothing between their choices."""

from __future__ import annotations

import numpy as np

from mctsvs.common import Indices, State

DESIGN = 12  # points of the initial design, as many as MCTS-VS has: 2 N_v N_s


class Memoryless:
    """Counts its choices and learns nothing from single values; a subclass adds `next`."""

    def __init__(self, n_variables: int) -> None:
        self.n_variables = n_variables
        self.iteration = 0

    def initial(self, points: int | None, rng: np.random.Generator) -> list[tuple[Indices, int]]:
        return [(np.arange(self.n_variables), DESIGN if points is None else points)]

    def observe(self, variables: Indices, y: float) -> None:
        """What there is to learn is in the history."""

    @property
    def tree(self) -> None:
        return None

    def state(self) -> State:
        return {"iteration": self.iteration}

    def restore(self, state: State) -> None:
        self.iteration = state["iteration"]
