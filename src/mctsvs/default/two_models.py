"""Two models take turns: one of all points, one of the best points alone.

Bad points set a scale on which the differences between good ones look like nothing; but a model of good points cannot
know that bad ones are bad, and now and then asks for one again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from mctsvs.common import Array
from mctsvs.default import constants as const
from mctsvs.state import Saved

M = TypeVar("M", bound=Saved)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A point worth evaluating."""

    x: Array
    promise: float = np.inf  # its log EI, where a model expects something of it
    local: bool = False  # inside the trust region


class TwoModels(Saved, Generic[M]):
    """Of the same kind, each with parameters of its own."""

    saved = ("of_all", "of_best")
    of_all: M
    of_best: M

    def __init__(self, of_all: M, of_best: M) -> None:
        self.of_all, self.of_best = of_all, of_best

    def propose(self, ask: Callable[[M], Candidate], known: Array, *, best: bool) -> Candidate:
        """What `ask` gets from the model whose turn it is; `known` (n, d) are the points evaluated."""
        if best:
            candidate = ask(self.of_best)
            if np.abs(known - candidate.x).max(axis=1).min() > const.SAME_POINT:
                return candidate
        return ask(self.of_all)
