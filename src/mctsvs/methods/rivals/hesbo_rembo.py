"""Count-sketch embeddings: every coordinate of the unit cube follows one low-dimensional coordinate, up to its sign.

Notation: D coordinates x of the unit cube, d low-dimensional coordinates u, both kept in [0, 1]; in the papers'
[-1, 1] they are 2x - 1 and 2u - 1. Coordinate i belongs to bin h(i) and has sign s(i):

    2 x_i - 1 = s(i) (2 u_h(i) - 1)

so the box [-1, 1]^d maps into [-1, 1]^D and nothing is ever clipped. The way down is the mean over a bin, exact for
embedded points; for points that were rounded (integers, categories) it is the low-dimensional point nearest to what
was really evaluated.

Bayesian optimisation in a random low-dimensional embedding of the unit cube: the shared engine, HeSBO, REMBO.

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

from mctsvs.methods.base import Observation, Pending, Proposal, latin_hypercube
from mctsvs.methods.history import History
from mctsvs.methods.initial_design import InitialDesignEngine, InitialDesignOptions
from mctsvs.methods.solvers import Subspace
from mctsvs.methods.solvers.bo import BayesianOptimisation, BOOptions
from mctsvs.utils.options import option
from mctsvs.utils.validation import Array, Indices, check_count


@dataclass(frozen=True)
class Sketch:
    """Bins h (D,), signs s (D,) and the number d of bins."""

    bins: Indices
    signs: Array
    d: int

    @staticmethod
    def hashed(D: int, d: int, rng: np.random.Generator) -> Sketch:
        """Each coordinate into a bin of its own choice (Nayebi et al., 2019); some bins may stay empty."""
        return Sketch(rng.integers(0, d, D), rng.choice([-1.0, 1.0], D), d)

    @staticmethod
    def balanced(D: int, d: int, rng: np.random.Generator) -> Sketch:
        """Bins whose sizes differ by one at most (Papenmeier et al., 2022): never worse, and no bin is empty."""
        return Sketch(rng.permutation(np.arange(D) % d), rng.choice([-1.0, 1.0], D), d)

    def up(self, U: Array) -> Array:
        """(m, D) points of the unit cube for (m, d) low-dimensional ones."""
        return 0.5 + self.signs * (U[:, self.bins] - 0.5)

    def down(self, x: Array) -> Array:
        """(d,) low-dimensional point of one point of the unit cube; an empty bin is at its middle."""
        total = np.bincount(self.bins, weights=self.signs * (x - 0.5), minlength=self.d)
        count = np.bincount(self.bins, minlength=self.d)
        return np.asarray(0.5 + total / np.maximum(count, 1))

    def split(self, parts: int, rng: np.random.Generator) -> Sketch:
        """Every bin cut at random into `parts` of equal size, or into single coordinates where it has fewer.

        The first part keeps the bin's number. Signs stay, so every embedded point is an embedded point still.
        """
        bins, d = self.bins.copy(), self.d
        for old in range(self.d):
            members = rng.permutation(np.flatnonzero(self.bins == old))
            pieces = min(parts, len(members))
            for piece in range(1, pieces):
                bins[members[piece::pieces]] = d
                d += 1
        return Sketch(bins, self.signs, d)


@dataclass(frozen=True)
class EmbeddingOptions(InitialDesignOptions):
    """d               low-dimensional coordinates; default 10, or D where D is smaller
    initial_points  of the design before the model takes over
    """

    d: int | None = option(None, least=1)

    def size(self, D: int) -> int:
        return min(10, D) if self.d is None else check_count("d", self.d, most=D)


class EmbeddingEngine(InitialDesignEngine):
    """Keeps every observation twice: as evaluated (`history`) and in low dimensions (`low`).

    A subclass gives the map up, the way down, the search in low dimensions, and calls `begin` with a design there.
    """

    saved: ClassVar[tuple[str, ...]] = ("low",)
    options: InitialDesignOptions
    low: History

    def __init__(self, offsets: Indices, rng: np.random.Generator, options: InitialDesignOptions, d: int) -> None:
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

    def low_of(self, x: Array, proposal_id: int) -> Array:
        """(d,) what the model sees of a point: as evaluated, since the optimiser may have rounded it."""
        return self.down(x)

    def propose(self, n: int, pending: Pending) -> list[Proposal]:
        first = self.from_design(n)
        proposals = self.hand_out(first, iteration=0)
        if len(first) < n:
            waiting = [
                self.low_of(x, int(proposal_id)) for x, proposal_id in zip(pending.X, pending.proposal_ids, strict=True)
            ]
            low = np.concatenate([np.array(waiting).reshape(len(waiting), self.low.X.shape[1]), first])
            proposals += self.hand_out(self.search(n - len(first), low), iteration=1)
        return proposals

    def hand_out(self, U: Array, iteration: int) -> list[Proposal]:
        """Proposals of low-dimensional points; clipping only mends rounding where `up` stays inside the cube."""
        return [self.proposal(x, self.everything, iteration) for x in np.clip(self.up(U), 0.0, 1.0)]

    def observe(self, batch: Sequence[Observation]) -> None:
        super().observe(batch)
        for o in batch:
            self.low.add(self.low_of(o.x, o.proposal_id), o.y, o.proposal_id)

    def avoided(self, waiting: Array) -> Array:
        """(a, d) points that failed or wait for their value."""
        return Subspace(self.low, np.arange(self.low.X.shape[1]), waiting).avoid


class SketchEngine(EmbeddingEngine):
    """An embedding that is a count-sketch."""

    saved: ClassVar[tuple[str, ...]] = ("sketch",)
    sketch: Sketch

    def up(self, U: Array) -> Array:
        return self.sketch.up(U)

    def down(self, x: Array) -> Array:
        return self.sketch.down(x)


@dataclass(frozen=True)
class FixedOptions(BOOptions, EmbeddingOptions):
    """d, initial_points and the options of `mctsvs.methods.solvers.bo`, here for low-dimensional points."""


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

    @property
    def moved(self) -> Indices:
        """Low-dimensional coordinates that change anything."""
        return np.arange(self.low.X.shape[1])

    def search(self, n: int, waiting: Array) -> Array:
        U = np.full((n, self.low.X.shape[1]), 0.5)
        U[:, self.moved] = self.solver.propose(n, Subspace(self.low, self.moved, waiting), self.rng)
        return U


class HeSBO(SketchEngine, FixedEmbedding):
    """Count-sketch embedding (Nayebi, Munteanu and Poloczek, ICML 2019); options: see `FixedOptions`."""

    def draw(self, d: int) -> None:
        self.sketch = Sketch.hashed(self.dimension, d, self.rng)

    @property
    def moved(self) -> Indices:
        """Not the empty bins: a model would send one point after the other there, each of them known."""
        return np.unique(self.sketch.bins)


class REMBO(FixedEmbedding):
    """Gaussian random embedding with clipping (Wang et al., IJCAI 2013 and JAIR 2016).

        2 x - 1 = clip(A z, -1, 1),   A (D, d) standard normal,   z in [-sqrt d, sqrt d]^d

    The model is the paper's k_Y: a kernel (here ARD Matérn-5/2, option `kernel`) on the low-dimensional points
    z / sqrt d, mapped to the unit cube. Clipping has no inverse, so the low-dimensional point of an observation is that
    of the proposal it answers; somebody else's point goes down by least squares. Options: see `FixedOptions`.
    """

    saved = ("matrix", "awaited")
    matrix: Array
    awaited: dict[int, Array]  # low-dimensional points by proposal id, of proposals not yet told

    def draw(self, d: int) -> None:
        self.matrix, self.awaited = self.rng.standard_normal((self.dimension, d)), {}

    def up(self, U: Array) -> Array:
        z = np.sqrt(U.shape[1]) * (2.0 * U - 1.0)
        return np.asarray(0.5 + 0.5 * np.clip(z @ self.matrix.T, -1.0, 1.0))

    def down(self, x: Array) -> Array:
        z, *_ = np.linalg.lstsq(self.matrix, 2.0 * x - 1.0, rcond=None)
        return np.asarray(np.clip(0.5 + 0.5 * z / np.sqrt(len(z)), 0.0, 1.0))

    def low_of(self, x: Array, proposal_id: int) -> Array:
        return self.awaited[proposal_id] if proposal_id in self.awaited else self.down(x)

    def hand_out(self, U: Array, iteration: int) -> list[Proposal]:
        proposals = super().hand_out(U, iteration)
        self.awaited.update({p.proposal_id: u.copy() for p, u in zip(proposals, U, strict=True)})
        return proposals

    def observe(self, batch: Sequence[Observation]) -> None:
        super().observe(batch)
        for observation in batch:
            self.awaited.pop(observation.proposal_id, None)
