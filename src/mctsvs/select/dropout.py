"""Dropout (Li et al., 2017): d variables drawn at random each time."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mctsvs.common import Indices
from mctsvs.history import History
from mctsvs.select.memoryless import Memoryless, SizeOptions


class Dropout(Memoryless):
    """Moves `d` variables drawn uniformly without replacement."""

    options_type: ClassVar[type[SizeOptions]] = SizeOptions
    options: SizeOptions

    def next(self, history: History, owner: Indices, rng: np.random.Generator) -> Indices:
        self.iteration += 1
        return np.sort(rng.choice(self.n_variables, min(self.options.d, self.n_variables), replace=False))
