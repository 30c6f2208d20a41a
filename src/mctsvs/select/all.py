"""No selection: every variable is moved every time."""

from __future__ import annotations

import numpy as np

from mctsvs.common import Indices
from mctsvs.history import History
from mctsvs.select.memoryless import Memoryless


class All(Memoryless):
    """Moves all variables: turns a solver into the plain method of its name."""

    def next(self, history: History, owner: Indices, rng: np.random.Generator) -> Indices:
        self.iteration += 1
        return np.arange(self.n_variables)
