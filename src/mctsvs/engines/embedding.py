"""Bayesian optimisation in a random low-dimensional embedding of the unit cube: the shared engine, HeSBO, REMBO.

Notation: D coordinates x of the unit cube, d << D low-dimensional coordinates u. A random map `up` takes u to x; the
model sees only u. If the objective depends on few variables, or on a few linear combinations of them, a random
embedding of slightly more dimensions contains a point that is nearly as good as the best one.
"""

from __future__ import annotations

import numbers
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from mctsvs.common import Array, Indices, InputError, State
from mctsvs.engines import Observation, Proposal
from mctsvs.engines.base import HistoryEngine, latin_hypercube
from mctsvs.engines.sketch import Sketch
from mctsvs.history import History
from mctsvs.solve.bo import BayesianOptimisation
from mctsvs.solve.subspace import Subspace


def whole_number(name: str, value: Any, low: int, high: int | None = None) -> int:
    """The option as an int, or an error that names its range."""
    fits = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not fits or not low <= int(value) <= (int(value) if high is None else high):
        wanted = f"at least {low}" if high is None else f"between {low} and {high}"
        raise InputError(f"{name}={value!r} does not fit: it must be a whole number, {wanted}")
    return int(value)


class EmbeddingEngine(HistoryEngine):
    """Keeps every observation twice: as evaluated (`history`) and in low dimensions (`low`).

    A subclass gives the map up, the way down, the initial design, and the search in low dimensions.
    """

    options: ClassVar[tuple[str, ...]] = ("d", "initial_points")

    def __init__(self, offsets: Indices, rng: np.random.Generator, d: int, initial_points: int) -> None:
        super().__init__(offsets, rng)
        self.initial_points = whole_number("initial_points", initial_points, 1)
        self.low = History(d)
        self.design = np.empty((0, d))  # initial points not yet handed out
        self.variables = self.everything  # one array for all proposals: an embedding moves every variable

    @abstractmethod
    def up(self, U: Array) -> Array:
        """(m, D) points of the unit cube for (m, d) low-dimensional ones."""

    @abstractmethod
    def down(self, x: Array) -> Array:
        """(d,) the low-dimensional point of one point of the unit cube."""

    @abstractmethod
    def search(self, n: int, waiting: Array) -> Array:
        """(n, d) new low-dimensional points; `waiting` (p, d) are those without a value yet."""

    def propose(self, n: int, pending: Array) -> list[Proposal]:
        first, self.design = self.design[:n], self.design[n:]
        proposals = [Proposal(x, self.variables) for x in self.lifted(first)]
        if len(first) < n:
            waiting = [self.down(x) for x in pending]
            low = np.concatenate([np.array(waiting).reshape(len(waiting), self.low.X.shape[1]), first])
            points = self.search(n - len(first), low)
            proposals += [Proposal(x, self.variables, 1) for x in self.lifted(points)]
        return proposals

    def lifted(self, U: Array) -> Array:
        """The points to hand out; clipping only mends rounding where `up` stays inside the cube."""
        return np.clip(self.up(U), 0.0, 1.0)

    def absorb(self, batch: Sequence[Observation]) -> None:
        super().absorb(batch)
        for observation in batch:
            self.low.add(self.down(observation.x), observation.y)

    def avoided(self, waiting: Array) -> Array:
        """(a, d) points that failed or wait for their value."""
        return np.concatenate([np.array(self.low.failures).reshape(-1, self.low.X.shape[1]), waiting])

    def state(self) -> State:
        return {**super().state(), "low": self.low.state(), "design": self.design.copy()}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.low = History.restore(state["low"])
        self.design = np.asarray(state["design"])


class FixedEmbedding(EmbeddingEngine):
    """One embedding for the whole run, its unit cube [0, 1]^d searched by the solver `bo`."""

    options: ClassVar[tuple[str, ...]] = ("d", "initial_points", *BayesianOptimisation.options)

    def __init__(
        self,
        offsets: Indices,
        rng: np.random.Generator,
        *,
        d: int | None = None,
        initial_points: int = 10,
        **options: Any,
    ) -> None:
        D = int(offsets[-1])
        size = min(10, D) if d is None else whole_number("d", d, 1, D)
        super().__init__(offsets, rng, size, initial_points)
        self.solver = BayesianOptimisation(**options)
        self.draw(size)
        self.design = latin_hypercube(self.initial_points, size, rng)

    @abstractmethod
    def draw(self, d: int) -> None:
        """Draw the embedding from the engine's generator."""

    def search(self, n: int, waiting: Array) -> Array:
        return self.solver.propose(n, self._space(waiting), self.rng)

    def _space(self, waiting: Array) -> Subspace:
        return Subspace(self.low, np.arange(self.low.X.shape[1]), waiting)

    def state(self) -> State:
        return {**super().state(), "solver": self.solver.state()}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.solver.restore(state["solver"], self._space(np.empty((0, self.low.X.shape[1]))))


class HeSBO(FixedEmbedding):
    """Count-sketch embedding (Nayebi, Munteanu and Poloczek, ICML 2019).

    d               dimensions of the embedding; default 10, or D where D is smaller
    initial_points  Latin hypercube in the embedding before the model takes over
    and the options of `mctsvs.solve.bo`: the model is an ARD Matérn-5/2 on the low-dimensional points.
    """

    sketch: Sketch

    def draw(self, d: int) -> None:
        self.sketch = Sketch.hashed(self.dimension, d, self.rng)

    def up(self, U: Array) -> Array:
        return self.sketch.up(U)

    def down(self, x: Array) -> Array:
        return self.sketch.down(x)

    def state(self) -> State:
        return {**super().state(), "sketch": self.sketch.state()}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.sketch = Sketch.restore(state["sketch"])


class REMBO(FixedEmbedding):
    """Gaussian random embedding with clipping (Wang et al., IJCAI 2013 and JAIR 2016).

        2 x - 1 = clip(A z, -1, 1),   A (D, d) standard normal,   z in [-sqrt d, sqrt d]^d

    The model is the paper's k_Y: a kernel (here ARD Matérn-5/2, option `kernel`) on the low-dimensional points
    z / sqrt d, mapped to the unit cube. Clipping has no inverse, so the low-dimensional point of an observation is
    remembered from the proposal it belongs to; options are those of `HeSBO`.
    """

    matrix: Array

    def draw(self, d: int) -> None:
        self.matrix = self.rng.standard_normal((self.dimension, d))
        self.asked: list[tuple[Array, Array]] = []  # (x, u) handed out and not yet told

    def up(self, U: Array) -> Array:
        z = np.sqrt(U.shape[1]) * (2.0 * U - 1.0)
        return np.asarray(0.5 + 0.5 * np.clip(z @ self.matrix.T, -1.0, 1.0))

    def down(self, x: Array) -> Array:
        """Of the nearest point handed out, for the optimiser may have rounded it; least squares without any."""
        if self.asked:
            return self.asked[self._nearest(x)][1]
        z, *_ = np.linalg.lstsq(self.matrix, 2.0 * x - 1.0, rcond=None)
        return np.asarray(np.clip(0.5 + 0.5 * z / np.sqrt(len(z)), 0.0, 1.0))

    def _nearest(self, x: Array) -> int:
        return int(np.argmin([np.abs(point - x).sum() for point, _ in self.asked]))

    def lifted(self, U: Array) -> Array:
        points = super().lifted(U)
        self.asked += list(zip(points.copy(), U.copy(), strict=True))
        return points

    def absorb(self, batch: Sequence[Observation]) -> None:
        for observation in batch:  # one by one: each takes its proposal off the list
            super().absorb([observation])
            if self.asked:
                del self.asked[self._nearest(observation.x)]

    def state(self) -> State:
        asked = [(x.copy(), u.copy()) for x, u in self.asked]
        return {**super().state(), "matrix": self.matrix.copy(), "asked": asked}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.matrix = np.asarray(state["matrix"])
        self.asked = [(np.asarray(x), np.asarray(u)) for x, u in state["asked"]]
