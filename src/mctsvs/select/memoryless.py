"""What selectors share that keep nothing between their choices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mctsvs.common import Indices
from mctsvs.options import Options, option
from mctsvs.state import Saved

DESIGN = 12  # points of the initial design, as many as MCTS-VS has: 2 N_v N_s


@dataclass(frozen=True)
class SizeOptions(Options):
    """d   variables moved at a time; the paper gives its rivals the number that matters, which a user does not know"""

    d: int = option(20, least=1)


class Memoryless(Saved):
    """Counts its choices and learns nothing from single values; a subclass adds `next`."""

    options_type: ClassVar[type[Options]] = Options
    saved = ("iteration",)
    iteration: int

    def __init__(self, n_variables: int, options: Options) -> None:
        self.n_variables, self.options = n_variables, options
        self.iteration = 0

    def initial(self, points: int | None, rng: np.random.Generator) -> list[tuple[Indices, int]]:
        return [(np.arange(self.n_variables), DESIGN if points is None else points)]

    def observe(self, variables: Indices, y: float) -> None:
        """What there is to learn is in the history."""

    @property
    def tree(self) -> None:
        return None
