"""Two models take turns, one of all points and one of the best points alone.

Bad points set a scale on which the differences between good ones look like nothing; but a model of good points cannot
know that bad ones are bad, and now and then asks for one again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from mctsvs.methods.auto import constants as const
from mctsvs.utils.validation import Array

M = TypeVar("M")


@dataclass(frozen=True, eq=False)
class Candidate:
    """A point worth evaluating."""

    x: Array
    promise: float = np.inf  # its log EI, where a model expects something of it
    local: bool = False  # inside the trust region


def in_turn(of_best: M | None, of_all: M, ask: Callable[[M], Candidate], known: Array) -> Candidate:
    """What the model of the best gives, where it has its turn, unless that is one of the points (n, d) known."""
    if of_best is not None:
        candidate = ask(of_best)
        if np.abs(known - candidate.x).max(axis=1).min() > const.SAME_POINT:
            return candidate
    return ask(of_all)
