"""What of the unit cube may be asked for, beyond its bounds: grids, conditions, and constraints that are known."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from mctsvs.common import Array
from mctsvs.space.space import Space

Mask = npt.NDArray[np.bool_]


class Region:
    """The part of the unit cube that a space and its known constraints leave.

    The optimizer puts every proposal through `repair`, whatever the method; methods that know their region choose
    inside it. Notation as in `mctsvs.space`: u (D,) or (n, D) in the unit cube, V variables.
    """

    def __init__(self, space: Space, constraints: Sequence[Any] = ()) -> None:
        self.space, self.constraints = space, tuple(constraints)

    @cached_property
    def plain(self) -> bool:
        """Whether it is the whole cube, with continuous variables alone."""
        return not self.constraints and bool(np.isinf(self.space.sizes).all())

    @cached_property
    def levels(self) -> Array:
        """(D,) how many values each coordinate takes; infinite for a continuous one, and for those of a category."""
        space = self.space
        single = np.bincount(space.owner)[space.owner] == 1
        return np.where(single, space.sizes[space.owner], np.inf)

    def active(self, U: Array) -> Mask:
        """(n, V) which variables exist at each of the points (n, D)."""
        return self.space.active(U)

    def feasible(self, U: Array) -> Mask:
        """(n,) which of the points (n, D) satisfy the known constraints."""
        return np.ones(len(U), dtype=np.bool_)

    def repair(self, u: Array, towards: Array | None = None) -> Array:
        """The canonical point nearest to u that can be found in the region; `towards` is a point known to be in it."""
        return self.space.snap(u)
