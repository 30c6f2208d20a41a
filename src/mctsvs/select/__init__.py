"""Selectors: which variables to move next. A new one is one file here and one line in `SELECTORS`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import numpy as np

from mctsvs.common import Indices, State, check_choice
from mctsvs.history import History
from mctsvs.select.all import All
from mctsvs.select.dropout import Dropout
from mctsvs.select.lasso import Lasso
from mctsvs.select.mcts import MCTS
from mctsvs.tree import Node


class Selector(Protocol):
    """Chooses subsets of variables and learns from the values that came of moving them."""

    options_type: ClassVar[type[Any]]  # of `Options`

    iteration: int
    """Number of the current iteration; several subsets may belong to one."""

    def __init__(self, n_variables: int, options: Any) -> None: ...

    def initial(self, points: int | None, rng: np.random.Generator) -> list[tuple[Indices, int]]:
        """Subsets to credit the initial design to, with the number of points of each; None: as many as is usual."""
        ...

    def next(self, history: History, owner: Indices, rng: np.random.Generator) -> Indices:
        """The variables to move next, never empty, from all points so far; `owner` maps coordinates to variables."""
        ...

    def observe(self, variables: Indices, y: float) -> None:
        """A point found by moving `variables` has value y."""
        ...

    @property
    def tree(self) -> Node | None:
        """The tree of variable groups, for selectors that have one."""
        ...

    def state(self) -> State: ...

    def restore(self, state: State) -> None: ...


SELECTORS: Mapping[str, type[Selector]] = {
    "mcts": MCTS,
    "dropout": Dropout,
    "lasso": Lasso,
    "all": All,
}


def find(name: str) -> type[Selector]:
    """The selector's class."""
    return SELECTORS[check_choice("selector", name, SELECTORS)]


def make(name: str, n_variables: int, **options: Any) -> Selector:
    """The selector of that name for `n_variables` variables."""
    selector = find(name)
    return selector(n_variables, selector.options_type(**options))
