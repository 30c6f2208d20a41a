"""What engines have in common: the generator, the history, and what can be told from it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mctsvs.common import Array, Indices, State, generator_state, restore_generator
from mctsvs.engines import Observation
from mctsvs.history import History
from mctsvs.tree import Node


class HistoryEngine:
    """Keeps the history; a subclass adds `propose`, and its own part of `absorb`, `state` and `restore`.

    `offsets` (V + 1): variable v owns the coordinates offsets[v]:offsets[v + 1] of the unit cube.
    """

    def __init__(self, offsets: Indices, rng: np.random.Generator) -> None:
        self.offsets, self.rng = offsets, rng
        self.owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))  # coordinate -> variable
        self.history = History(len(self.owner))

    @property
    def dimension(self) -> int:
        """Coordinates of the unit cube, D."""
        return len(self.owner)

    @property
    def everything(self) -> Indices:
        """All variables."""
        return np.arange(len(self.offsets) - 1)

    def _coordinates(self, variables: Indices) -> Indices:
        """Of the unit cube, in the order of the variables."""
        if len(self.owner) == len(self.offsets) - 1:  # a coordinate each, the common case
            return variables
        return np.concatenate([np.arange(self.offsets[v], self.offsets[v + 1]) for v in variables])

    def absorb(self, batch: Sequence[Observation]) -> None:
        for observation in batch:
            self.history.add(observation.x, observation.y)

    def importance(self) -> Array:
        from mctsvs.gp.relevance import relevance  # linear algebra that not every method needs

        by_coordinate = relevance(self.history.X, self.history.y)
        return np.maximum.reduceat(by_coordinate, self.offsets[:-1])

    @property
    def tree(self) -> Node | None:
        return None

    def state(self) -> State:
        return {"rng": generator_state(self.rng), "history": self.history.state()}

    def restore(self, state: State) -> None:
        self.rng = restore_generator(state["rng"])
        self.history = History.restore(state["history"])


def latin_hypercube(n: int, d: int, rng: np.random.Generator) -> Array:
    """(n, d) Latin hypercube: in every coordinate one point in each of n equal intervals.

    scipy.stats.qmc has one, at half a second of import time and a permutation call per coordinate.
    """
    order = rng.random((n, d)).argsort(axis=0)
    return (order + rng.random((n, d))) / n
