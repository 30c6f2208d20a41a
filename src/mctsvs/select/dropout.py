"""Dropout (Li et al., 2017): d variables drawn at random each time."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mctsvs.common import Indices, State, check_count
from mctsvs.history import History


class Dropout:
    """Moves `d` variables drawn uniformly without replacement.

    The paper sets d to the number of variables that matter, which a user does not know; the default is 20.
    """

    options: ClassVar[tuple[str, ...]] = ("d",)

    def __init__(self, n_variables: int, *, d: int | None = None) -> None:
        if d is not None:
            check_count("d", d)
        self.n_variables = n_variables
        self.iteration = 0
        self.d = min(20 if d is None else d, n_variables)

    def initial(self, points: int | None, rng: np.random.Generator) -> list[tuple[Indices, int]]:
        return [(np.arange(self.n_variables), 12 if points is None else points)]

    def next(self, history: History, owner: Indices, rng: np.random.Generator) -> Indices:
        self.iteration += 1
        return np.sort(rng.choice(self.n_variables, self.d, replace=False))

    def observe(self, variables: Indices, y: float) -> None:
        """Random choice learns nothing."""

    @property
    def tree(self) -> None:
        return None

    def state(self) -> State:
        return {"iteration": self.iteration}

    def restore(self, state: State) -> None:
        self.iteration = state["iteration"]
