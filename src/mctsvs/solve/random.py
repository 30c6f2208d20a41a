"""Random search."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mctsvs.common import Array, State
from mctsvs.solve.subspace import Subspace


class RandomSearch:
    """Uniform values: the solver that shows what variable selection alone is worth."""

    options: ClassVar[tuple[str, ...]] = ()
    batch = None

    def propose(self, n: int, subspace: Subspace, rng: np.random.Generator) -> Array:
        return rng.random((n, subspace.dimension))

    def state(self) -> State:
        return {}

    def restore(self, state: State, subspace: Subspace | None) -> None:
        """Nothing was learnt, nothing is restored."""
