"""No point twice: a proposal that is known already is moved to a point nearby that is not.

Whole numbers, steps and categories make a space of few points, and a model's optimum falls on the same one again and
again. Where all points are known, there is nothing left to ask for, unless values are noisy: then
`mctsvs.optimizer.unit_cube` chooses points to evaluate again.
"""

from __future__ import annotations

import itertools

import numpy as np

from mctsvs.space import Region
from mctsvs.space.region import Scan
from mctsvs.space.scales import Mask
from mctsvs.utils.validation import Array, Indices, InputError

TRIES = 4  # of each reach, before the next
DIGITS = 10  # in which points differ, where there are constraints
MOST_TRIES = 4096  # of random points, where they cannot be counted
REACHES = (1, 2, 4, 8)  # variables changed at once, and steps of their grid
MOST_COUNTED = 1e6  # points of a space that are listed to find those left
LISTED = 256  # points left that are listed of a larger one
MOST_SCANNED = 1 << 25  # points of a space that are looked at to find those left
STEPS = 8  # of a walk from one feasible point to the next
SPREAD = 64  # random points of a space that is too large to be gone through
STEP = 0.02  # of a continuous variable, in widths of its range
OVER = "all points of the space that satisfy the constraints have been asked for"


class SpaceExhausted(InputError):
    """Every point of the space has been asked for."""


class NothingFound(SpaceExhausted):
    """No further point was found, and nobody knows whether there is one."""


class KnownPoints:
    """The points asked for or told so far, of one space."""

    def __init__(self, region: Region, seed: int) -> None:
        self.region, self.space, self.seed = region, region.space, seed
        self._seen: set[int] = set()
        self._over = False  # no point that satisfies the constraints is left
        self._scan: Scan | None = None  # of a space nearly exhausted
        self._rest: list[Array] = []  # points it came upon, not known when last looked at

    def add(self, unit: Array) -> None:
        self._seen.add(self.key(unit))

    def __contains__(self, unit: Array) -> bool:
        return self.key(unit) in self._seen

    @property
    def left(self) -> float:
        """How many points are not known; infinite where a variable is continuous."""
        return self.space.size - len(self._seen)

    def room(self, wanted: int) -> int:
        """How many of the points wanted there are, at least one."""
        if self._over:
            raise SpaceExhausted(OVER)
        if self.left <= 0:
            raise SpaceExhausted(
                f"all {self.space.size:.0f} points of the space have been asked for: there is nothing left to try"
            )
        return int(min(wanted, self.left))

    def fresh(self, unit: Array, variables: Indices, number: int) -> Array:
        """The point, or one near it that is not known; `variables` are changed first, draws belong to `number`."""
        if unit not in self:
            return unit
        rng = np.random.default_rng([self.seed, number])
        discrete = self.region.discrete
        if discrete is not None and discrete.finite:
            return self._walked(unit, variables, rng)
        for reach, among in itertools.product(REACHES, (variables, np.arange(len(self.space)))):
            for _ in range(TRIES):
                point = self._beside(unit, among, reach, rng)
                if self.region.constrained:
                    point = self.region.repair(point, towards=unit, moved=among)
                if point not in self:
                    return point
        for _ in range(TRIES if self.left < np.inf else MOST_TRIES):
            point = self.region.spread(rng.random(len(unit)))
            if point not in self:
                return point
        if self.left < np.inf:
            return self._scanned(rng)
        raise NothingFound(f"{MOST_TRIES} random points of the space have all been asked for: hardly any can be left")

    def _walked(self, unit: Array, variables: Indices, rng: np.random.Generator) -> Array:
        """The nearest of the points beside it that are not known, in discrete variables under constraints."""
        discrete, x = self.region.discrete, self.space.decode(unit)
        assert discrete is not None
        for step in range(STEPS):
            beside = list(discrete.beside(x, rng, variables if step == 0 else None))
            points = [self.space.encode(point) for point in beside]
            new = [point for point in points if point not in self]
            if new:
                return min(new, key=lambda point: float(np.abs(point - unit).sum()))
            x = beside[int(rng.integers(len(beside)))] if beside else x
        if self.space.size > MOST_SCANNED:  # nobody will come to its end
            for _ in range(SPREAD):
                point = self.region.spread(rng.random(len(unit)))
                if point not in self:
                    return point
        return self._scanned(rng)

    def _beside(self, unit: Array, among: Indices, reach: int, rng: np.random.Generator) -> Array:
        """A point that differs in at most `reach` of these variables, by at most so many steps each."""
        space = self.space
        if space.conditional:
            there = np.flatnonzero(space.active(unit))
            among = np.intersect1d(among, there) if np.isin(among, there).any() else there
        changed = rng.choice(among, min(reach, len(among)), replace=False)
        x, point = space.decode(unit), unit.copy()
        continuous = changed[np.isinf(space.sizes[changed])]
        columns = space.offsets[continuous]
        point[columns] = np.clip(point[columns] + STEP * reach * rng.standard_normal(len(columns)), 0.0, 1.0)
        for v in changed[np.isfinite(space.sizes[changed])]:
            x[v] = space.other_value(int(v), x[v], reach, rng)
            coordinates = slice(space.offsets[v], space.offsets[v + 1])
            point[coordinates] = space.encode(x)[coordinates]
        return self._with_new(space.snap(point), space.active(unit), rng) if space.conditional else point

    def _with_new(self, point: Array, there: Mask, rng: np.random.Generator) -> Array:
        """The point with random values of variables that are not there so far: their standard may be known."""
        new = (self.space.active(point) & ~there)[self.space.owner]
        point[new] = rng.random(int(new.sum()))
        return self.space.snap(point)

    def _scanned(self, rng: np.random.Generator) -> Array:
        """One of the points not known that come first in the order of the space, which is gone through once.

        Which they are depends on what is known alone: a restored run, which begins anew, must come to the same point.
        """
        if self._scan is None:
            self._scan = Scan(self.region, MOST_SCANNED)
        wanted = np.inf if self.space.size <= MOST_COUNTED else LISTED
        self._rest = [point for point in self._rest if point not in self]
        while len(self._rest) < wanted and (point := next(self._scan, None)) is not None:
            if point not in self:
                self._rest.append(point)
        if self._rest:
            return self._rest[int(rng.integers(len(self._rest)))]
        if not self._scan.complete:
            raise NothingFound("no further point that satisfies the constraints was found")
        self._over = True
        raise SpaceExhausted(OVER)

    def key(self, unit: Array) -> int:
        """Points put onto the border of a constraint twice differ in their last bits."""
        return hash((unit.round(DIGITS) if self.region.constrained else unit + 0.0).tobytes())
