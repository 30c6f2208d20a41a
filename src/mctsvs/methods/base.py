"""Engines: pure decisions over the unit cube. They never call the objective, and they always maximise.

An engine numbers its proposals, and the number comes back with the value: the ticket. So values may come in any order
or never, and a point that has no ticket is visibly somebody else's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from mctsvs.methods.history import ELSEWHERE, MORE, History
from mctsvs.methods.mcts_vs.tree import Node
from mctsvs.space import Region
from mctsvs.utils.options import Options
from mctsvs.utils.state import Saved
from mctsvs.utils.validation import LARGEST, Array, Indices, State

if TYPE_CHECKING:
    from mctsvs.gp.optimize_acqf_mixed import Lattice

MANY = 10  # coordinates, from which on a design may lie around a point


@dataclass(frozen=True)
class Proposal:
    """A point to evaluate, and the variables that were moved to make it."""

    x: Array  # (D,) in the unit cube
    variables: Indices
    iteration: int = 0  # of the selector that chose the variables; 0 for the initial design
    ticket: int = ELSEWHERE  # its number among the engine's proposals
    purpose: str = ""  # what its value is to tell, in words for people


@dataclass(frozen=True)
class Observation:
    """A point with its value (NaN: the evaluation failed) and the variables it was made by moving.

    Values whose squares could overflow in sums are cut to the largest that is safe, so that no engine need think of it.
    """

    x: Array
    y: float
    variables: Indices
    ticket: int = ELSEWHERE  # of the proposal it answers; `ELSEWHERE`: a point of the user's, or of another run
    objective: float | None = None  # beside constraints, the value itself, of which y is then the merit; NaN: missing
    constraints: Array | None = None  # (m,) measured, NaN unknown
    noise: float | None = None  # standard deviation of the value's noise, where it was told

    @property
    def more(self) -> dict[str, Any]:
        """What `History.add` takes in addition."""
        if self.constraints is None and self.noise is None:
            return {}
        return {name: value for name in MORE if (value := getattr(self, name)) is not None}

    def __post_init__(self) -> None:
        if abs(self.y) > LARGEST:
            object.__setattr__(self, "y", math.copysign(LARGEST, self.y))

    @property
    def foreign(self) -> bool:
        return self.ticket == ELSEWHERE


@dataclass(frozen=True)
class Pending:
    """Points asked for and not yet told."""

    X: Array  # (p, D)
    tickets: Indices  # (p,)

    @classmethod
    def of(cls, points: Sequence[Any], dimension: int) -> Pending:
        """Of things with `unit` and `ticket`."""
        X = np.array([point.unit for point in points]).reshape(len(points), dimension)
        return cls(X, np.array([point.ticket for point in points], dtype=np.intp))

    def beside(self, proposals: Sequence[Proposal]) -> Array:
        """(p + q, D) these points and those just proposed."""
        return np.concatenate([self.X, *(p.x[None] for p in proposals)])


class Engine(Protocol):
    """A method's decisions.

    The optimiser above it owns trial numbers, direction, units and validation:

        engine = SomeEngine(offsets, rng, SomeEngine.options_type())
        engine.plan(600)                                 # how many evaluations there will be, where that is known
        (proposal,) = engine.propose(1, pending)
        engine.absorb([Observation(proposal.x, y, proposal.variables, proposal.ticket)])
        engine.restore(engine.state())                   # continues bit for bit

    `offsets` (V + 1): variable v owns the coordinates offsets[v]:offsets[v + 1] of the unit cube.
    """

    options_type: ClassVar[type[Any]]  # of `Options`

    def plan(self, budget: int) -> None:
        """So many evaluations in all; may be said again, and going on beyond it is fine."""
        ...

    def propose(self, n: int, pending: Pending) -> list[Proposal]: ...

    def absorb(self, batch: Sequence[Observation]) -> None: ...

    def importance(self) -> Array:
        """(V,) one score per variable in [0, 1], 1 for the most important; all 0 while nothing can be told."""
        ...

    @property
    def tree(self) -> Node | None: ...

    def state(self) -> State: ...

    def restore(self, state: State) -> None: ...


class HistoryEngine(Saved):
    """What engines have in common: generator, history, tickets. A subclass adds `propose` and names what it saves."""

    options_type: ClassVar[type[Options]] = Options
    saved: ClassVar[tuple[str, ...]] = ("rng", "history", "proposed")
    rng: np.random.Generator
    history: History
    proposed: int  # tickets given out
    region: Region | None = None  # where points may lie; None: anywhere in the cube

    def __init__(self, offsets: Indices, rng: np.random.Generator, options: Options) -> None:
        self.offsets, self.rng, self.options = offsets, rng, options
        self.owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))  # coordinate -> variable
        self.history, self.proposed = History(len(self.owner)), 0

    @property
    def dimension(self) -> int:
        """Coordinates of the unit cube, D."""
        return len(self.owner)

    @cached_property
    def everything(self) -> Indices:
        """All variables: one array for all proposals, which nobody can write to."""
        variables = np.arange(len(self.offsets) - 1)
        variables.flags.writeable = False
        return variables

    def coordinates_of(self, variables: Indices) -> Indices:
        """Of the unit cube, in the order of the variables."""
        if len(self.owner) == len(self.offsets) - 1:  # a coordinate each, the common case
            return variables
        return np.concatenate([np.arange(self.offsets[v], self.offsets[v + 1]) for v in variables])

    @cached_property
    def lattice(self) -> Lattice | None:
        """The values that coordinates can take, where some cannot take any."""
        from mctsvs.gp.optimize_acqf_mixed import Lattice  # linear algebra that not every method needs

        if self.region is not None:
            lattice = Lattice.of(self.region.space)
            return lattice if len(lattice.discrete) else None
        return None if self.owner[-1] + 1 == len(self.owner) else Lattice.of_categories(self.owner)

    def plan(self, budget: int) -> None:
        """Most methods do not look ahead."""

    def within(self, region: Region) -> None:
        """What of the cube may be asked for, said before the first proposal where that is not all of it.

        Every proposal is put into the region by whoever asks; a method that looks at it chooses better ones.
        """
        self.region = region

    def spread(self, points: Array) -> Array:
        """Points (n, D) of a design, inside the region where that is not all of the cube."""
        if self.region is None or not self.region.constrained:
            return points
        return np.array([self.region.spread(x) for x in points]).reshape(points.shape)

    def proposal(self, x: Array, variables: Indices, iteration: int = 0, purpose: str = "") -> Proposal:
        """With the next ticket."""
        self.proposed += 1
        return Proposal(x, variables, iteration, self.proposed - 1, purpose)

    def absorb(self, batch: Sequence[Observation]) -> None:
        for observation in batch:
            self.history.add(observation.x, observation.y, observation.ticket, **observation.more)

    def importance(self) -> Array:
        known = self.known_importance()
        if known is not None:
            return known
        from mctsvs.gp.importance import relevance  # linear algebra that not every method needs

        by_coordinate = relevance(self.history.X, self.history.y)
        return np.maximum.reduceat(by_coordinate, self.offsets[:-1])

    @property
    def noise_seen(self) -> bool | None:
        """Whether values are noisy, as far as was told: True, False, or None where nobody knows."""
        noise = self.history.noise
        if (noise > 0.0).any():
            return True
        return False if len(noise) and not np.isnan(noise).any() else None

    def expected(self, Z: Array) -> tuple[Array, Array]:
        """Mean and standard deviation, (m,) each, of the objective at Z (m, D): larger is better."""
        from mctsvs.gp.model import expected_values

        values, noise = self.history.objective, self.history.noise
        told = np.isfinite(values)
        return expected_values(self.history.X[told], values[told], Z, noise[told] if len(noise) else None)

    def known_importance(self) -> Array | None:
        """The same where the method keeps it anyway, from tests; None where only a model of all variables can tell."""
        return None

    def describe(self) -> str:
        """What the method is doing: a few words, and behind a colon how far it has come; may be left out.

        `Optimizer.describe` asks any engine that has it.
        """
        return ""

    @property
    def tree(self) -> Node | None:
        return None


def latin_hypercube(n: int, d: int, rng: np.random.Generator) -> Array:
    """(n, d) Latin hypercube: in every coordinate one point in each of n equal intervals.

    scipy.stats.qmc has one, at half a second of import time and a permutation call per coordinate.
    """
    order = rng.random((n, d)).argsort(axis=0)
    return (order + rng.random((n, d))) / n


def beside(base: Array, steps: Array) -> Array:
    """Points that far from one (D,), on its other side in coordinates in which they would leave the cube."""
    points = base + steps
    inside: Array = np.clip(np.where(np.abs(points - 0.5) <= 0.5, points, base - steps), 0.0, 1.0)
    return inside


def around(base: Array, points: Array, reach: float, free: Array, jitter: float = 0.1) -> Array:
    """Points (..., D) of a design as corners of a box around one (D,), each on the sides on which it lies.

    In many dimensions points spread over the cube are all far from its centre and from each other, and say little of
    where the optimum is most likely to be. Coordinates that are not free, (D,) bool, stay as they are, and so do all
    where the free ones are few. Sides vary a little, so that no two corners are the same.
    """
    if free.sum() < MANY:
        return points
    steps = reach * np.sign(points - 0.5) * (1.0 + jitter * (np.abs(4.0 * points - 2.0) - 1.0))
    corners: Array = np.where(free, beside(base, steps), points)
    return corners
