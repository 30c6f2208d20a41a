"""Searching where only some points can be evaluated: whole numbers on their grid, categories at one choice each.

An acquisition function is climbed in the box of the grids, where whole numbers are taken for real ones; the point is
rounded, and goes on uphill by exchange: one variable at a time to a neighbouring value or another choice, the moves
that gain each by itself also together, and then the continuous coordinates follow by their gradient. Left to rounding
alone, climbs end again and again at points that are known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from mctsvs.gp.acquisition import WORST, RegionPenalised
from mctsvs.gp.optimize_acqf import climb, climb_from
from mctsvs.space import Space
from mctsvs.utils.validation import Array, Indices

if TYPE_CHECKING:
    from mctsvs.gp.acquisition import AcquisitionLike


MOST_LEVELS = 256  # of a grid; finer ones are as good as continuous
MOST_MOVES = 96  # looked at in a step, those that the gradient promises most of
MOST_STEPS = 12
MOST_DRAWS = 100  # of whole points, where all neighbours are known
WALKS = 24  # points of a walk inside the known constraints
REFINE = 10  # steps of the continuous coordinates once the others are decided

Blocks = list[Indices]
"""Coordinates of each category."""


def blocks_of(owner: Indices, coordinates: Indices) -> Blocks:
    """Positions among `coordinates` of each variable that has several; `owner` (D,) is each coordinate's variable."""
    if owner[-1] + 1 == len(owner):  # a coordinate each, the common case
        return []
    owners = owner[coordinates]
    several = np.flatnonzero(np.bincount(owners) > 1)
    return [np.flatnonzero(owners == variable) for variable in several]


def other_category(x: Array, block: Indices, rng: np.random.Generator) -> Array:
    """The code (k,) of a category other than the one of x (D,)."""
    code = np.zeros(len(block))
    code[(int(x[block].argmax()) + int(rng.integers(1, len(block)))) % len(block)] = 1.0
    return code


@dataclass(frozen=True, eq=False)
class Moves:
    """Changes of one variable each, as assignments: an integer's new value, a category's old and new code."""

    variable: Indices  # (m,) its first coordinate
    row: Indices  # (a,) which move an assignment belongs to
    column: Indices  # (a,) its coordinate
    value: Array  # (a,)

    def __len__(self) -> int:
        return len(self.variable)

    def each(self, x: Array) -> Array:
        """(m, d) x (d,) after each of them."""
        moved = np.repeat(x[None], len(self), axis=0)
        moved[self.row, self.column] = self.value
        return moved

    def together(self, x: Array, chosen: Indices) -> Array:
        """(d,) x after those chosen, of different variables."""
        kept, moved = np.isin(self.row, chosen), x.copy()
        moved[self.column[kept]] = self.value[kept]
        return moved

    def slopes(self, x: Array, gradient: Array) -> Array:
        """(m,) what each gains to first order."""
        gain = gradient[self.column] * (self.value - x[self.column])
        return np.bincount(self.row, gain, len(self)).astype(np.float64)

    def inside(self, low: Array, high: Array) -> Moves:
        """Those that stay in the box."""
        out = (self.value < low[self.column]) | (self.value > high[self.column])
        return self.among(np.setdiff1d(np.arange(len(self)), self.row[out])) if out.any() else self

    def among(self, chosen: Indices) -> Moves:
        place = np.full(len(self), -1)
        place[chosen] = np.arange(len(chosen))
        kept = place[self.row] >= 0
        return Moves(self.variable[chosen], place[self.row[kept]], self.column[kept], self.value[kept])


@dataclass(frozen=True, eq=False)
class Lattice:
    """The values that d coordinates can take: those on a grid its positions, those of a category one-hot codes."""

    dimension: int
    gridded: Indices  # (g,) coordinates
    positions: Array  # (g, most levels) in ascending order, the last one repeated
    blocks: Blocks  # coordinates of each category
    settle: Callable[[Array], Array] | None = (
        None  # puts variables that do not exist at points (n, d) where they belong
    )

    @classmethod
    def of(cls, space: Space) -> Lattice:
        """Of all coordinates of a space."""
        settle = space.snap if space.conditional else None
        if space.conditional:  # positions as if all variables existed
            space = Space.of([replace(variable, when={}) for variable in space.variables])
        single = np.diff(space.offsets) == 1
        short = np.flatnonzero(single & (space.sizes <= MOST_LEVELS))
        values = [space.values(int(v)) for v in short]
        most = max(map(len, values), default=1)
        x = np.tile(space.decode(np.full(space.n_coordinates, 0.5)), (most, 1))
        for v, own in zip(short, values, strict=True):
            x[:, v] = own[np.minimum(np.arange(most), len(own) - 1)]
        gridded, d = space.offsets[short], space.n_coordinates
        return cls(d, gridded, space.encode(x)[:, gridded].T, blocks_of(space.owner, np.arange(d)), settle)

    @classmethod
    def of_categories(cls, owner: Indices) -> Lattice:
        """Where only the variable of each coordinate (D,) is known."""
        none = np.empty(0, dtype=np.intp)
        return cls(len(owner), none, np.empty((0, 1)), blocks_of(owner, np.arange(len(owner))))

    def among(self, coordinates: Indices, base: Array | None = None) -> Lattice:
        """Of these coordinates, which hold every category with all of its own or with none; `base` (D,) has the others.

        Without it, any of these variables may exist.
        """
        place = np.full(self.dimension, -1)
        place[coordinates] = np.arange(len(coordinates))
        gridded = place[self.gridded]
        blocks = [place[block] for block in self.blocks if place[block[0]] >= 0]
        settle = None if self.settle is None or base is None else _Part(self.settle, coordinates, base)
        return Lattice(len(coordinates), gridded[gridded >= 0], self.positions[gridded >= 0], blocks, settle)

    @cached_property
    def box(self) -> tuple[Array, Array]:
        """Low and high corner: from the first to the last value of each grid."""
        low, high = np.zeros(self.dimension), np.ones(self.dimension)
        low[self.gridded], high[self.gridded] = self.positions[:, 0], self.positions[:, -1]
        return low, high

    @property
    def plain(self) -> bool:
        """Whether every point of the cube can be evaluated."""
        return not len(self.discrete) and self.settle is None

    def widened(self, low: Array, high: Array, x: Array) -> tuple[Array, Array]:
        """The part of a box in this one; where it leaves a coordinate room at all, also the neighbours of its value."""
        moves, (lowest, highest) = self.moves(self.round(x[None])[0]), self.box
        low, high = np.maximum(low, lowest), np.minimum(high, highest)
        movable = (low < high)[moves.column]
        np.minimum.at(low, moves.column[movable], moves.value[movable])
        np.maximum.at(high, moves.column[movable], moves.value[movable])
        return low, high

    @cached_property
    def codes(self) -> Indices:
        """Coordinates of all categories."""
        return np.concatenate([np.empty(0, dtype=np.intp), *self.blocks])

    @cached_property
    def discrete(self) -> Indices:
        """Coordinates that cannot take every value."""
        return np.concatenate([self.gridded, self.codes])

    @cached_property
    def _between(self) -> Array:
        return (self.positions[:, 1:] + self.positions[:, :-1]) / 2.0

    def _level(self, Z: Array) -> Indices:
        """(..., g) which of its positions each gridded coordinate of Z (..., d) is nearest to."""
        level: Indices = (Z[..., self.gridded, None] > self._between).sum(axis=-1)
        return level

    def round(self, Z: Array) -> Array:
        """(n, d) the nearest points that can be evaluated; of a category the largest code."""
        X = Z + 0.0
        X[:, self.gridded] = self.positions[np.arange(len(self.gridded)), self._level(X)]
        for block in self.blocks:
            X[:, block] = np.arange(len(block)) == X[:, block].argmax(axis=1)[:, None]
        return self.settled(X)

    def settled(self, X: Array) -> Array:
        """(n, d) the points with those variables that do not exist at their places."""
        return X if self.settle is None else self.settle(X)

    def changed(self, x: Array, old: Array, rng: np.random.Generator) -> Array:
        """The point x (d,) rounded, with another value than the old (d,) of every variable that has two."""
        X: Array = self.round(x[None])[0]
        g = np.arange(len(self.gridded))
        level, count = self._level(old), 1 + (np.diff(self.positions) > 0.0).sum(axis=1)
        other = self.positions[g, (level + rng.integers(1, np.maximum(count, 2))) % count]
        X[self.gridded] = np.where(X[self.gridded] == self.positions[g, level], other, X[self.gridded])
        for block in self.blocks:
            if X[block] @ old[block] > 0.0:
                X[block] = other_category(old, block, rng)
        return X

    def moves(self, x: Array) -> Moves:
        """To a neighbouring value or another choice, from the lattice point x (d,)."""
        g, level = np.arange(len(self.gridded)), self._level(x)
        sides = [self.positions[g, np.maximum(level - 1, 0)], self.positions[g, np.minimum(level + 1, self._last)]]
        column, value = np.tile(self.gridded, 2), np.concatenate(sides)
        real = value != x[column]
        column, value = column[real], value[real]
        others = self.codes[x[self.codes] == 0.0]
        new = len(column) + np.arange(len(others))
        variable = np.append(column, self._first[others])
        on = self._first + 0
        on[self._first[self.codes[x[self.codes] > 0.0]]] = self.codes[x[self.codes] > 0.0]
        return Moves(
            variable,
            np.concatenate([np.arange(len(column)), new, new]),
            np.concatenate([column, on[self._first[others]], others]),
            np.concatenate([value, np.zeros(len(others)), np.ones(len(others))]),
        )

    @cached_property
    def variable(self) -> Indices | None:
        """(d,) the number of each coordinate's variable, where categories have several; else None."""
        numbers: Indices = np.unique(self._first, return_inverse=True)[1]
        return numbers if self.blocks else None

    @cached_property
    def _last(self) -> int:
        return int(self.positions.shape[1]) - 1

    @cached_property
    def _first(self) -> Indices:
        """(d,) of each coordinate of a category the first one of it; of any other, itself."""
        first = np.arange(self.dimension)
        for block in self.blocks:
            first[block] = block[0]
        return first


@dataclass(frozen=True, eq=False)
class _Part:
    """How to settle points (n, d) that are a base (D,) with other values of some coordinates."""

    settle: Callable[[Array], Array]
    coordinates: Indices
    base: Array

    def __call__(self, X: Array) -> Array:
        whole = np.repeat(self.base[None], len(X), axis=0)
        whole[:, self.coordinates] = X
        return self.settle(whole)[:, self.coordinates]


class Ascent:
    """Ascent from one lattice point to the next, inside a box; it remembers all points that were looked at."""

    def __init__(
        self, acqf: AcquisitionLike, lattice: Lattice, low: Array, high: Array, rng: np.random.Generator | None = None
    ) -> None:
        self.acqf, self.lattice, self.low, self.high, self.rng = acqf, lattice, low, high, rng
        cut = acqf.cut if isinstance(acqf, RegionPenalised) else None
        self.cut = cut if cut is not None and cut.discrete else None
        self.points: list[Array] = []
        self.values: list[Array] = []

    def look(self, points: Array) -> Array:
        """Values of lattice points (n, d)."""
        values = self.acqf(points)
        self.points.append(points)
        self.values.append(values)
        return values

    def exchange(self, x: Array, value: float) -> None:
        """Steps of one or several variables while these gain; then the continuous coordinates follow.

        Beside known constraints, where no single variable gains, also exchanges and other steps that keep them.
        """
        for _ in range(MOST_STEPS):
            better = self._exchanged(x, value) or self._beside(x, value)
            if better is None:
                break
            x, value = better
        self._refine(x)

    def _exchanged(self, x: Array, value: float) -> tuple[Array, float] | None:
        """The best point by steps of one variable each, and its value; None, if no step gains."""
        moves = self._promising(x)
        if not len(moves):
            return None
        gains = self.look(self.lattice.settled(moves.each(x))) - value
        order = np.argsort(-gains, kind="stable")[: np.count_nonzero(gains > 0.0)]
        order = order[np.sort(np.unique(moves.variable[order], return_index=True)[1])]
        if not len(order):
            return None
        counts = 2 ** np.arange(int(np.log2(len(order))) + 1)
        together = self.lattice.settled(np.array([moves.together(x, order[:count]) for count in counts]))
        values = self.look(together)
        best = int(np.argmax(values))
        return together[best], float(values[best])

    def _beside(self, x: Array, value: float) -> tuple[Array, float] | None:
        """The best of the points beside x (d,) that satisfy known constraints, if it gains."""
        if self.cut is None or self.rng is None:
            return None
        points = self.cut.beside(x, self.rng)
        points = points[((points >= self.low) & (points <= self.high)).all(axis=1)]
        if not len(points):
            return None
        values = self.look(points)
        best = int(np.argmax(values))
        return (points[best], float(values[best])) if values[best] > value else None

    def _promising(self, x: Array) -> Moves:
        moves = self.lattice.moves(x).inside(self.low, self.high)
        if len(moves) <= MOST_MOVES:
            return moves
        _, gradient = self.acqf.value_and_gradient(x[None])
        return moves.among(np.argsort(-moves.slopes(x, gradient[0]), kind="stable")[:MOST_MOVES])

    def _refine(self, x: Array) -> None:
        low, high, fixed = self.low.copy(), self.high.copy(), self.lattice.discrete
        if len(fixed) == len(x):
            return
        low[fixed] = high[fixed] = x[fixed]
        point, _ = climb(self.acqf, x, low, high, iterations=REFINE)
        self.look(self.lattice.settled(point[None]))

    def best(self, known: Array, rng: np.random.Generator) -> tuple[Array, float]:
        """The best point looked at that is none of the known (n, d), and its value; else any other there is."""
        points, values = np.concatenate(self.points), np.concatenate(self.values)
        seen = {row.tobytes() for row in known + 0.0}
        order = np.argsort(-values, kind="stable")
        order = order if self.cut is None else order[values[order] > -WORST / 2.0]
        for i in order:
            if points[i].tobytes() not in seen:
                return points[i], float(values[i])
        for drawn in self._drawn(rng):
            if drawn[0].tobytes() not in seen:
                return drawn[0], float(self.acqf(drawn)[0])
        best = int(np.argmax(values))
        return points[best], float(values[best])

    def _drawn(self, rng: np.random.Generator) -> Iterator[Array]:
        """Random lattice points (1, d)."""
        if self.cut is not None:
            yield from self.cut.strolled(self.cut.inner, rng, WALKS)[:, None]
        else:
            for _ in range(MOST_DRAWS):
                yield self.lattice.round(rng.random((1, self.lattice.dimension)))


def maximise(
    acqf: AcquisitionLike,
    lattice: Lattice,
    candidates: Array,
    known: Array,
    rng: np.random.Generator,
    *,
    starts: int = 1,
    iterations: int = 20,
    box: tuple[Array, Array] | None = None,
) -> tuple[Array, float]:
    """The best lattice point found that is none of the known (n, d), and its value.

    Climbs from the best of the candidates (m, d), of which the one ahead goes on to be rounded, then exchange. In a
    `box`, given by its corners, every grid keeps at least the neighbours of its value in the first candidate.
    """
    low, high = lattice.box if box is None else lattice.widened(*box, candidates[0])
    ascent, candidates = Ascent(acqf, lattice, low, high, rng), lattice.round(candidates)
    if ascent.cut is not None:
        cut, inner = ascent.cut, ascent.cut.inner
        inside = np.concatenate([inner[None], cut.beside(inner, rng), cut.strolled(inner, rng, WALKS)])
        kept = ((inside >= low) & (inside <= high)).all(axis=1)
        candidates = np.concatenate([candidates, inside[kept]])
    values = ascent.look(candidates)
    order = np.argsort(-values, kind="stable")[:starts]
    best, value = candidates[order[0]], float(values[order[0]])
    top = lattice.round(climb_from(acqf, candidates[order], value, low, high, iterations=iterations)[None])
    at_top = float(ascent.look(top)[0])
    ascent.exchange(*((top[0], at_top) if at_top > value else (best, value)))
    return ascent.best(known, rng)
