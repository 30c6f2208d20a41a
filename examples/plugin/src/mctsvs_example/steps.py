"""A method that is a product: the tree of MCTS-VS chooses the variables, a solver of its own moves them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mctsvs.methods.registry import Method
from mctsvs.methods.solvers import Subspace
from mctsvs.utils.options import Options, option
from mctsvs.utils.state import Saved
from mctsvs.utils.validation import Array


@dataclass(frozen=True)
class NormalStepsOptions(Options):
    """step   standard deviation of a step, in widths of the box"""

    step: float = option(0.1, above=0.0)


class NormalSteps(Saved):
    """Normal steps from the best point so far. It remembers nothing, so there is nothing to save."""

    options_type: ClassVar[type[NormalStepsOptions]] = NormalStepsOptions
    batch = None  # all points of a subset at once

    def __init__(self, options: NormalStepsOptions) -> None:
        self.options = options

    def propose(self, n: int, subspace: Subspace, rng: np.random.Generator) -> Array:
        if not len(subspace.y):
            return rng.random((n, subspace.dimension))
        best = subspace.X[np.argmax(subspace.y)]
        steps = self.options.step * rng.standard_normal((n, subspace.dimension))
        return np.asarray(np.clip(best + steps, 0.0, 1.0))


MCTS_VS_STEPS = Method(
    "mcts-vs-steps", "tree-selected variables moved by normal steps from the best point", "-", "mcts", NormalSteps
)
