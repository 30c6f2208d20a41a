"""Random search."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mctsvs.methods.solvers.subspace import Subspace
from mctsvs.utils.options import Options
from mctsvs.utils.state import Saved
from mctsvs.utils.validation import Array


class RandomSearch(Saved):
    """Uniform values: the solver that shows what variable selection alone is worth. It learns nothing."""

    options_type: ClassVar[type[Options]] = Options
    batch = None

    def __init__(self, options: Options) -> None:
        self.options = options

    def propose(self, n: int, subspace: Subspace, rng: np.random.Generator) -> Array:
        return rng.random((n, subspace.dimension))
