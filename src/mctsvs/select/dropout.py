"""Dropout (Li et al., 2017): d variables drawn at random each time."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mctsvs.common import Indices, check_count
from mctsvs.history import History
from mctsvs.select.memoryless import Memoryless


class Dropout(Memoryless):
    """Moves `d` variables drawn uniformly without replacement.

    The paper sets d to the number of variables that matter, which a user does not know; the default is 20.
    """

    options: ClassVar[tuple[str, ...]] = ("d",)

    def __init__(self, n_variables: int, *, d: int | None = None) -> None:
        if d is not None:
            check_count("d", d)
        super().__init__(n_variables)
        self.d = min(20 if d is None else d, n_variables)

    def next(self, history: History, owner: Indices, rng: np.random.Generator) -> Indices:
        self.iteration += 1
        return np.sort(rng.choice(self.n_variables, self.d, replace=False))
