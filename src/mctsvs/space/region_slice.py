"""The constraints of a region as a search sees them that moves some coordinates of a point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mctsvs.space.linear_constraints import HalfSpaces, Ruler
from mctsvs.space.region import Region
from mctsvs.utils.validation import Array, Indices


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
        point = self.base.copy()
        point[self.coordinates] = z
        return self.region.passes(self.region.space.snap(point))

    @property
    def tested(self) -> bool:
        return bool(self.region.tests)

    @property
    def limited(self) -> npt.NDArray[np.bool_]:
        """(d,) coordinates that a half-space is about."""
        limited = np.zeros(len(self.coordinates), np.bool_)
        limited[self.columns] = True
        return limited
