"""Engines: pure decisions over the unit cube. They never call the objective, and they always maximise.

An engine numbers its proposals, and the number comes back with the value as its `proposal_id`. Values may come in any
order or never, and a point without one is visibly somebody else's.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mctsvs.methods.history import EXTERNAL, MORE, History
from mctsvs.methods.mcts_vs.tree import Node
from mctsvs.space import Region
from mctsvs.utils.options import Options
from mctsvs.utils.state import Saved
from mctsvs.utils.validation import LARGEST, Array, Indices

if TYPE_CHECKING:
    from mctsvs.gp.model import Predictor
    from mctsvs.gp.optimize_acqf_mixed import Lattice

MANY = 10  # coordinates, from which on a design may lie around a point


@dataclass(frozen=True)
class Proposal:
    """A point to evaluate, made by `Engine.proposal`.

    Attributes:
        x: (D,) the point in the unit cube.
        variables: The variables that were moved to make it.
        iteration: Of the selector that chose the variables; 0 for the initial design.
        proposal_id: Its number among the engine's proposals.
        purpose: What its value is to tell, in words for people.
        again: Whether the point is to be evaluated though it is known: values may be noisy.
    """

    x: Array
    variables: Indices
    iteration: int = 0
    proposal_id: int = EXTERNAL
    purpose: str = ""
    again: bool = False


@dataclass(frozen=True)
class Observation:
    """A point with its value.

    Values whose squares could overflow in sums are cut to the largest that is safe, so that no engine need think of it.

    Attributes:
        x: (D,) the point in the unit cube.
        y: Its value, larger is better; NaN where the evaluation failed.
        variables: The variables it was made by moving.
        proposal_id: Of the proposal it answers; `EXTERNAL` for a point of the user's, or of another run.
        objective: Beside constraints, the value itself, of which y is then the merit; NaN where it is missing.
        constraints: (m,) measured constraints, NaN where they are not known.
        noise: Standard deviation of the value's noise, where it was told.
        objectives: (M,) values of several objectives, larger is better; then y is 0, and NaN where it failed.
    """

    x: Array
    y: float
    variables: Indices
    proposal_id: int = EXTERNAL
    objective: float | None = None
    constraints: Array | None = None
    noise: float | None = None
    objectives: Array | None = None

    def __post_init__(self) -> None:
        if abs(self.y) > LARGEST:
            object.__setattr__(self, "y", math.copysign(LARGEST, self.y))

    @property
    def external(self) -> bool:
        """Whether it answers no proposal."""
        return self.proposal_id == EXTERNAL

    @property
    def more(self) -> dict[str, Any]:
        """What `History.add` takes in addition."""
        if self.constraints is None and self.noise is None and self.objectives is None:
            return {}
        return {name: value for name in MORE if (value := getattr(self, name)) is not None}


@dataclass(frozen=True)
class Pending:
    """Points asked for and not yet told.

    Attributes:
        X: (p, D) the points in the unit cube.
        proposal_ids: (p,) the proposals they are, `EXTERNAL` for points of others.
    """

    X: Array
    proposal_ids: Indices

    @classmethod
    def of(cls, trials: Sequence[Any], dimension: int) -> Pending:
        """Collect the points of trials.

        Args:
            trials: Things with `unit` and `proposal_id`.
            dimension: Coordinates of the unit cube, D.

        Returns:
            Their points and proposal ids.
        """
        X = np.array([trial.unit for trial in trials]).reshape(len(trials), dimension)
        return cls(X, np.array([trial.proposal_id for trial in trials], dtype=np.intp))

    def beside(self, proposals: Sequence[Proposal]) -> Array:
        """Add proposals just made.

        Args:
            proposals: q of them.

        Returns:
            (p + q, D) all points that wait for a value.
        """
        return np.concatenate([self.X, *(p.x[None] for p in proposals)])


class Engine(Saved, ABC):
    """A method's decisions: what every method derives from.

    A subclass gives `propose`, names the fields it saves in `saved`, and its options in `options_type`. It extends
    `observe` to learn more than the history. All other methods have defaults, and the optimizer looks at nothing else.
    The optimizer above owns trial numbers, direction, units and validation.

    Args:
        offsets: (V + 1,) variable v owns the coordinates offsets[v]:offsets[v + 1] of the unit cube.
        rng: The only source of randomness.
        options: Of the class `options_type`.

    Attributes:
        explains: Whether a part of the budget proves which variables act, and measures the recommended point.
        several_objectives: Whether it takes several objectives, `Observation.objectives`.
        history: Everything told so far.
        proposed: How many proposals have been made, which is the number of the next one.
        region: Where points may lie; None for anywhere in the cube.

    Example:
        >>> engine = SomeEngine(offsets, rng, SomeEngine.options_type())
        >>> engine.plan(600)
        >>> (proposal,) = engine.propose(1, pending)
        >>> engine.observe([Observation(proposal.x, y, proposal.variables, proposal.proposal_id)])
        >>> engine.restore(engine.state())  # continues bit for bit
    """

    options_type: ClassVar[type[Options]] = Options
    explains: ClassVar[bool] = False  # whether a part of the budget proves what the method has found
    several_objectives: ClassVar[bool] = False  # whether it takes them
    saved: ClassVar[tuple[str, ...]] = ("rng", "history", "proposed")
    rng: np.random.Generator
    history: History
    proposed: int
    region: Region | None = None

    def __init__(self, offsets: Indices, rng: np.random.Generator, options: Options) -> None:
        self.offsets, self.rng, self.options = offsets, rng, options
        self.owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))  # coordinate -> variable
        self.history, self.proposed = History(len(self.owner)), 0

    @abstractmethod
    def propose(self, n: int, pending: Pending) -> list[Proposal]:
        """Choose what to evaluate next.

        Args:
            n: How many points are wanted.
            pending: The points asked for and not yet told.

        Returns:
            n proposals, each made by `proposal`, which numbers it.
        """

    def observe(self, batch: Sequence[Observation]) -> None:
        """Learn values, in whatever order they come; a subclass that does more calls this first.

        Args:
            batch: Answers to proposals, and points of others: see `Observation.external`.
        """
        for observation in batch:
            self.history.add(observation.x, observation.y, observation.proposal_id, **observation.more)

    def plan(self, budget: int) -> None:
        """Be told how many evaluations there will be in all; most methods do not look ahead.

        Args:
            budget: Larger or smaller than before, where it is said again. Going on beyond it is fine.
        """

    def within(self, region: Region) -> None:
        """Be told, before the first proposal, what of the cube may be asked for, where that is not all of it.

        Args:
            region: Whoever asks moves every proposal into it; a method that looks at it chooses better ones.
        """
        self.region = region

    def aim(self, reference: Array) -> None:
        """Be told, before the first proposal, what the front of several objectives is to be better than.

        Args:
            reference: (M,) values, larger is better; most methods do not look at it.
        """

    def describe(self) -> str:
        """Say what the method is doing.

        Returns:
            A few words, and behind a colon how far it has come: "testing groups: 6 found, 84 open". Empty by default.
        """
        return ""

    def found(self) -> Indices | None:
        """Name the variables that the method's own tests have found.

        Returns:
            Positions of variables, the largest effect first; None, the default, where nothing was tested.
        """
        return None

    @property
    def noise_seen(self) -> bool | None:
        """Whether values are noisy: told with them, or seen at a point evaluated twice. None where nobody knows."""
        noise = self.history.noise
        if (noise > 0.0).any() or self.history.repeats_differ:
            return True
        told = len(noise) and not np.isnan(noise).any()
        return False if told or len(self.history.repeats) else None

    def expected(self, Z: Array) -> tuple[Array, Array]:
        """Predict the objective.

        Args:
            Z: (m, D) points of the unit cube.

        Returns:
            Mean and standard deviation, (m,) each, of the objective without noise: larger is better.
        """
        from mctsvs.gp.model import expected_values  # linear algebra that not every run needs

        X, values, noise = self.told
        return expected_values(X, values, Z, noise)

    def surrogate(self) -> Predictor:
        """Give the model that pictures show: the one that proposes, or by default one of all evaluations.

        Returns:
            A function of points (m, D): mean and standard deviation, (m,) each, of the objective; larger is better.
        """
        from mctsvs.gp.model import expectation

        return expectation(*self.told, winsorise=False)  # what is bad must look as bad as it is

    @property
    def told(self) -> tuple[Array, Array, Array | None]:
        """Points that have a value, the values, and their noise where that was told."""
        values, noise = self.history.objective, self.history.noise
        told = np.isfinite(values)
        return self.history.X[told], values[told], noise[told] if len(noise) else None

    @property
    def tree(self) -> Node | None:
        """The tree of variable groups, for methods that have one."""
        return None

    def proposal(
        self, x: Array, variables: Indices, iteration: int = 0, purpose: str = "", *, again: bool = False
    ) -> Proposal:
        """Make a proposal with the next number.

        Args:
            x: (D,) the point in the unit cube.
            variables: The variables moved to make it.
            iteration: Of the method's choice of variables; 0 for the initial design.
            purpose: What its value is to tell, in words for people.
            again: Whether the point is to be evaluated though it is known.

        Returns:
            The proposal.
        """
        self.proposed += 1
        return Proposal(x, variables, iteration, self.proposed - 1, purpose, again)

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
        """Find the coordinates of the unit cube that variables own.

        Args:
            variables: Positions of variables.

        Returns:
            Positions of coordinates, in the order of the variables.
        """
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

    def spread(self, points: Array) -> Array:
        """Move the points of a design into the region, where that is not all of the cube.

        Args:
            points: (n, D) points of the unit cube.

        Returns:
            (n, D) points that may be asked for.
        """
        if self.region is None or not self.region.constrained:
            return points
        return np.array([self.region.spread(x) for x in points]).reshape(points.shape)


def latin_hypercube(n: int, d: int, rng: np.random.Generator) -> Array:
    """Draw a Latin hypercube: in every coordinate one point in each of n equal intervals.

    scipy.stats.qmc has one, at half a second of import time and a permutation call per coordinate.

    Args:
        n: Number of points.
        d: Number of coordinates.
        rng: Source of randomness.

    Returns:
        (n, d) points of the unit cube.
    """
    order = rng.random((n, d)).argsort(axis=0)
    return (order + rng.random((n, d))) / n


def beside(base: Array, steps: Array) -> Array:
    """Step away from a point, to its other side in coordinates in which a step would leave the cube.

    Args:
        base: (D,) the point.
        steps: (..., D) how far to go.

    Returns:
        (..., D) points of the unit cube.
    """
    points = base + steps
    inside: Array = np.clip(np.where(np.abs(points - 0.5) <= 0.5, points, base - steps), 0.0, 1.0)
    return inside


def around(base: Array, points: Array, reach: float, free: Array, jitter: float = 0.1) -> Array:
    """Turn the points of a design into corners of a box around one point, each on the sides on which it lies.

    In many dimensions points spread over the cube are all far from its centre and from each other, and say little of
    where the optimum is most likely to be. Where few coordinates are free, the points stay as they are.

    Args:
        base: (D,) the middle of the box.
        points: (..., D) the design.
        reach: Half the side of the box.
        free: (D,) bool, the coordinates that may change.
        jitter: How much sides vary, so that no two corners are the same.

    Returns:
        (..., D) points of the unit cube.
    """
    if free.sum() < MANY:
        return points
    steps = reach * np.sign(points - 0.5) * (1.0 + jitter * (np.abs(4.0 * points - 2.0) - 1.0))
    corners: Array = np.where(free, beside(base, steps), points)
    return corners
