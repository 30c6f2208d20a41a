"""The constraints of a region as a search sees them that moves some coordinates of a point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mctsvs.space.linear_constraints import HalfSpaces, Ruler
from mctsvs.space.region import Region
from mctsvs.utils.validation import Array, Indices

STEPS = 3  # between points of a random walk


@dataclass(frozen=True, eq=False)
class RegionSlice:
    """The half-spaces and tests of a region for points (n, d), in place of d coordinates of a point inside."""

    region: Region
    base: Array  # (D,)
    coordinates: Indices  # (d,)
    half_spaces: HalfSpaces
    ruler: Ruler
    columns: Indices  # (k,) which of the d coordinates the half-spaces are about

    @classmethod
    def of(cls, region: Region, base: Array, coordinates: Indices, *, others_give_way: bool = False) -> RegionSlice:
        """`others_give_way`: the other variables take the values that leave these the most room."""
        place = np.full(region.space.n_coordinates, -1)
        place[coordinates] = np.arange(len(coordinates))
        columns, whole = place[region.columns], region.half_spaces
        kept = columns >= 0
        t = region.ruler.read(base[None, region.columns])[0] if len(columns) else np.empty(0)
        half_spaces = whole.cut(kept, t, give_way=others_give_way)
        return cls(region, base, coordinates, half_spaces, Ruler(region.space, half_spaces.variables), columns[kept])

    def inside(self, Z: Array) -> Array:
        """(n, d) near Z, inside the half-spaces where that can be done."""
        if not len(self.columns):
            return Z
        T = self.ruler.read(Z[:, self.columns])
        out = np.flatnonzero((self.half_spaces.excess(T) > 0.0).any(axis=1))
        if not len(out):
            return Z
        Z = np.array(Z)
        Z[np.ix_(out, self.columns)] = self.ruler.write(self.half_spaces.moved_inside(T[out]))
        return Z

    def excess(self, Z: Array) -> Array:
        """(n, m) how far outside of each half-space; 0 inside."""
        return np.maximum(self.half_spaces.excess(self.ruler.read(Z[:, self.columns])), 0.0)

    def pull(self, Z: Array, excess: Array) -> Array:
        """(n, d) half the gradient of the sum of squares of `excess` (n, m)."""
        slope = np.zeros(Z.shape)
        slope[:, self.columns] = (excess @ self.half_spaces.A) * self.ruler.slopes(Z[:, self.columns])
        return slope

    def passes(self, z: Array) -> bool:
        """Whether the point with these coordinates (d,) passes the region's tests."""
        if not self.region.tests:
            return True
        return self.region.passes(self._whole(z))

    @property
    def discrete(self) -> bool:
        """Whether steps of discrete variables lead from one point inside to the next."""
        return self.region.discrete is not None

    @property
    def inner(self) -> Array:
        """(d,) the coordinates of the base, which is inside."""
        inner: Array = self.base[self.coordinates]
        return inner

    def beside(self, z: Array, rng: np.random.Generator) -> Array:
        """(n, d) points inside that differ from z (d,), which is inside too, in a few discrete variables."""
        discrete, space = self.region.discrete, self.region.space
        assert discrete is not None
        beside = list(discrete.beside(space.decode(self._whole(z)), rng, self._variables))
        return self._continuous_of(z, space.encode(np.array(beside).reshape(-1, len(space))))

    def strolled(self, z: Array, rng: np.random.Generator, n: int) -> Array:
        """(n, d) points inside, on a random walk of the discrete variables from z (d,)."""
        walk = [self._whole(z)]
        for _ in range(n):
            walk.append(self.region.strolled(walk[-1], rng, self._variables, steps=STEPS))
        return self._continuous_of(z, np.array(walk[1:]))

    def _whole(self, z: Array) -> Array:
        point = self.base.copy()
        point[self.coordinates] = z
        return self.region.space.snap(point)

    def _continuous_of(self, z: Array, points: Array) -> Array:
        """The points (n, D) in these coordinates, with z's values of continuous variables, bit for bit."""
        sizes = self.region.space.sizes[self.region.space.owner[self.coordinates]]
        return np.where(np.isinf(sizes), z, points[:, self.coordinates])

    @property
    def _variables(self) -> Indices:
        return np.unique(self.region.space.owner[self.coordinates])

    @property
    def tested(self) -> bool:
        return bool(self.region.tests)

    @property
    def limited(self) -> npt.NDArray[np.bool_]:
        """(d,) coordinates that a half-space is about."""
        limited = np.zeros(len(self.coordinates), np.bool_)
        limited[self.columns] = True
        return limited
