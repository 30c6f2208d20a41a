"""Engines: pure decisions over the unit cube. They never call the objective, and they always maximise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from mctsvs.common import Array, Indices, State
from mctsvs.tree import Node


@dataclass(frozen=True)
class Proposal:
    """A point to evaluate, and the variables that were moved to make it."""

    x: Array  # (D,) in the unit cube
    variables: Indices
    iteration: int = 0  # of the selector that chose the variables; 0 for the initial design


@dataclass(frozen=True)
class Observation:
    """A point with its value (NaN: the evaluation failed) and the variables it was made by moving."""

    x: Array
    y: float
    variables: Indices
    iteration: int = 0  # of the proposal it answers
    proposed: bool = True  # by this engine; False: a point of the user's, or of an earlier run


class Engine(Protocol):
    """A method's decisions.

    The optimiser above it owns trial numbers, direction, units and validation:

        proposals = engine.propose(4, pending)           # pending: (p, D) points asked for and not yet told
        engine.absorb([Observation(p.x, y, p.variables)])
        engine.restore(engine.state())                   # continues bit for bit
    """

    def propose(self, n: int, pending: Array) -> list[Proposal]: ...

    def absorb(self, batch: Sequence[Observation]) -> None: ...

    def importance(self) -> Array:
        """(V,) one score per variable in [0, 1], 1 for the most important; all 0 while nothing can be told."""
        ...

    @property
    def tree(self) -> Node | None: ...

    def state(self) -> State: ...

    def restore(self, state: State) -> None: ...
