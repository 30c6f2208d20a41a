"""Bayesian optimisation in a random low-dimensional embedding of the unit cube: the shared engine, HeSBO, REMBO.

Notation: D coordinates x of the unit cube, d << D low-dimensional coordinates u. A random map `up` takes u to x; the
model sees only u. If the objective depends on few variables, or on a few linear combinations of them, a random
embedding of slightly more dimensions contains a point that is nearly as good as the best one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mctsvs.common import Array, Indices, check_count
from mctsvs.engine import Observation, Pending, Proposal, latin_hypercube
from mctsvs.engines.design import DesignEngine, DesignOptions
from mctsvs.engines.sketch import Sketch
from mctsvs.history import History
from mctsvs.options import option
from mctsvs.solve.bo import BayesianOptimisation, BOOptions
from mctsvs.solve.subspace import Subspace


@dataclass(frozen=True)
class EmbeddingOptions(DesignOptions):
    """d               low-dimensional coordinates; default 10, or D where D is smaller
    initial_points  of the design before the model takes over
    """

    d: int | None = option(None, least=1)

    def size(self, D: int) -> int:
        return min(10, D) if self.d is None else check_count("d", self.d, most=D)


class EmbeddingEngine(DesignEngine):
    """Keeps every observation twice: as evaluated (`history`) and in low dimensions (`low`).

    A subclass gives the map up, the way down, the search in low dimensions, and calls `begin` with a design there.
    """

    saved: ClassVar[tuple[str, ...]] = ("low",)
    options: DesignOptions
    low: History

    def __init__(self, offsets: Indices, rng: np.random.Generator, options: DesignOptions, d: int) -> None:
        super().__init__(offsets, rng, options)
        self.low = History(d)

    @abstractmethod
    def up(self, U: Array) -> Array:
        """(m, D) points of the unit cube for (m, d) low-dimensional ones."""

    @abstractmethod
    def down(self, x: Array) -> Array:
        """(d,) the low-dimensional point of one point of the unit cube."""

    @abstractmethod
    def search(self, n: int, waiting: Array) -> Array:
        """(n, d) new low-dimensional points; `waiting` (p, d) are those without a value yet."""

    def low_of(self, x: Array, ticket: int) -> Array:
        """(d,) what the model sees of a point: as evaluated, since the optimiser may have rounded it."""
        return self.down(x)

    def propose(self, n: int, pending: Pending) -> list[Proposal]:
        first = self.from_design(n)
        proposals = self.hand_out(first, iteration=0)
        if len(first) < n:
            waiting = [self.low_of(x, int(ticket)) for x, ticket in zip(pending.X, pending.tickets, strict=True)]
            low = np.concatenate([np.array(waiting).reshape(len(waiting), self.low.X.shape[1]), first])
            proposals += self.hand_out(self.search(n - len(first), low), iteration=1)
        return proposals

    def hand_out(self, U: Array, iteration: int) -> list[Proposal]:
        """Proposals of low-dimensional points; clipping only mends rounding where `up` stays inside the cube."""
        return [self.proposal(x, self.everything, iteration) for x in np.clip(self.up(U), 0.0, 1.0)]

    def absorb(self, batch: Sequence[Observation]) -> None:
        super().absorb(batch)
        for o in batch:
            self.low.add(self.low_of(o.x, o.ticket), o.y, o.ticket)

    def avoided(self, waiting: Array) -> Array:
        """(a, d) points that failed or wait for their value."""
        return self.subspace(waiting).avoid

    def subspace(self, waiting: Array) -> Subspace:
        return Subspace(self.low, np.arange(self.low.X.shape[1]), waiting)


@dataclass(frozen=True)
class FixedOptions(BOOptions, EmbeddingOptions):
    """d, initial_points and the options of `mctsvs.solve.bo`: the model is its own, on the low-dimensional points."""


class FixedEmbedding(EmbeddingEngine):
    """One embedding for the whole run, its unit cube [0, 1]^d searched by the solver `bo`."""

    options_type: ClassVar[type[FixedOptions]] = FixedOptions
    saved: ClassVar[tuple[str, ...]] = ("solver",)
    options: FixedOptions
    solver: BayesianOptimisation

    def __init__(self, offsets: Indices, rng: np.random.Generator, options: FixedOptions) -> None:
        d = options.size(int(offsets[-1]))
        super().__init__(offsets, rng, options, d)
        self.solver = BayesianOptimisation(options)
        self.draw(d)
        self.begin(latin_hypercube(options.initial_points, d, rng))

    @abstractmethod
    def draw(self, d: int) -> None:
        """Draw the embedding from the engine's generator."""

    def search(self, n: int, waiting: Array) -> Array:
        return self.solver.propose(n, self.subspace(waiting), self.rng)


class HeSBO(FixedEmbedding):
    """Count-sketch embedding (Nayebi, Munteanu and Poloczek, ICML 2019); options: see `FixedOptions`."""

    saved = ("sketch",)
    sketch: Sketch

    def draw(self, d: int) -> None:
        self.sketch = Sketch.hashed(self.dimension, d, self.rng)

    def up(self, U: Array) -> Array:
        return self.sketch.up(U)

    def down(self, x: Array) -> Array:
        return self.sketch.down(x)


class REMBO(FixedEmbedding):
    """Gaussian random embedding with clipping (Wang et al., IJCAI 2013 and JAIR 2016).

        2 x - 1 = clip(A z, -1, 1),   A (D, d) standard normal,   z in [-sqrt d, sqrt d]^d

    The model is the paper's k_Y: a kernel (here ARD Matérn-5/2, option `kernel`) on the low-dimensional points
    z / sqrt d, mapped to the unit cube. Clipping has no inverse, so the low-dimensional point of an observation is that
    of the proposal it answers; somebody else's point goes down by least squares. Options: see `FixedOptions`.
    """

    saved = ("matrix", "sent")
    matrix: Array
    sent: dict[int, Array]  # low-dimensional points by ticket, of proposals not yet told

    def draw(self, d: int) -> None:
        self.matrix, self.sent = self.rng.standard_normal((self.dimension, d)), {}

    def up(self, U: Array) -> Array:
        z = np.sqrt(U.shape[1]) * (2.0 * U - 1.0)
        return np.asarray(0.5 + 0.5 * np.clip(z @ self.matrix.T, -1.0, 1.0))

    def down(self, x: Array) -> Array:
        z, *_ = np.linalg.lstsq(self.matrix, 2.0 * x - 1.0, rcond=None)
        return np.asarray(np.clip(0.5 + 0.5 * z / np.sqrt(len(z)), 0.0, 1.0))

    def low_of(self, x: Array, ticket: int) -> Array:
        return self.sent[ticket] if ticket in self.sent else self.down(x)

    def hand_out(self, U: Array, iteration: int) -> list[Proposal]:
        proposals = super().hand_out(U, iteration)
        self.sent.update({p.ticket: u.copy() for p, u in zip(proposals, U, strict=True)})
        return proposals

    def absorb(self, batch: Sequence[Observation]) -> None:
        super().absorb(batch)
        for observation in batch:
            self.sent.pop(observation.ticket, None)
