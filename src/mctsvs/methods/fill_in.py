"""Fill-in: values for the variables that are not being moved (line 17)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from mctsvs.methods.history import History
from mctsvs.utils.validation import Array, Indices, check_choice, check_count


class FillIn(Protocol):
    """Complete points; the caller overwrites the coordinates it moves."""

    def __call__(self, n: int, history: History, owner: Indices, rng: np.random.Generator) -> Array:
        """(n, D) points; `owner` maps each coordinate to its variable."""
        ...


class BestK:
    """Each variable takes its value from one of the k best points, drawn for each variable anew (the paper's)."""

    def __init__(self, k: int = 20) -> None:
        self.k = k

    def __call__(self, n: int, history: History, owner: Indices, rng: np.random.Generator) -> Array:
        if len(history) == 0:
            return rng.random((n, len(owner)))
        rows = history.best(self.k)
        n_variables = int(owner[-1]) + 1
        donors = rows[rng.integers(0, len(rows), (n, n_variables))]
        filled: Array = history.X[donors[:, owner], np.arange(len(owner))]
        return filled


class AverageBestK:
    """Each coordinate takes its mean over the k best points."""

    def __init__(self, k: int = 20) -> None:
        self.k = k

    def __call__(self, n: int, history: History, owner: Indices, rng: np.random.Generator) -> Array:
        if len(history) == 0:
            return rng.random((n, len(owner)))
        return np.tile(history.X[history.best(self.k)].mean(axis=0), (n, 1))


class RandomFill:
    """Each coordinate is drawn uniformly: no memory, the paper's weakest choice."""

    def __call__(self, n: int, history: History, owner: Indices, rng: np.random.Generator) -> Array:
        return rng.random((n, len(owner)))


FILL_INS: dict[str, Callable[[int], FillIn]] = {
    "best-k": BestK,
    "average-best-k": AverageBestK,
    "random": lambda k: RandomFill(),
}


def make(name: str, k: int = 20) -> FillIn:
    """The fill-in of that name: best-k, average-best-k or random."""
    return FILL_INS[check_choice("fill-in", name, FILL_INS)](check_count("k", k))
