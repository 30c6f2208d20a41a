"""Methods by name: which selector, solver and fill-in make them, and which extra they need."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mctsvs import fill, select, solve
from mctsvs.common import Indices, InputError
from mctsvs.engines import Engine
from mctsvs.engines.subspace import SubspaceEngine

DEFAULT = "mcts-vs-bo"
MCTS_VS = "Song et al., NeurIPS 2022"
DROPOUT = "Li et al., IJCAI 2017"


@dataclass(frozen=True)
class Method:
    """One line of the table of methods."""

    name: str
    summary: str
    paper: str
    selector: str
    solver: str
    extra: str | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)  # options this method changes


def _table(*methods: Method) -> dict[str, Method]:
    return {method.name: method for method in methods}


METHODS: Mapping[str, Method] = _table(
    Method("mcts-vs-bo", "tree-selected variables moved by Bayesian optimisation", MCTS_VS, "mcts", "bo"),
    Method("mcts-vs-rs", "tree-selected variables moved by random search", MCTS_VS, "mcts", "random"),
    Method("dropout-bo", "d random variables moved by Bayesian optimisation", DROPOUT, "dropout", "bo"),
    Method("dropout-rs", "d random variables moved by random search", DROPOUT, "dropout", "random"),
    Method("bo", "vanilla Bayesian optimisation of all variables", "Shahriari et al., 2016", "all", "bo"),
    Method("random", "random search over all variables", "Bergstra and Bengio, 2012", "all", "random"),
)

ENGINE_OPTIONS = ("samples", "initial_points", "fill_in", "k")


def find(name: str) -> Method:
    """The method of that name, or a sentence that says what is there."""
    if name not in METHODS:
        close = difflib.get_close_matches(str(name), METHODS, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise InputError(f"unknown method {name!r}: {hint}The methods are {', '.join(METHODS)}")
    return METHODS[name]


def options_of(method: Method) -> tuple[str, ...]:
    """Names of the options a method takes."""
    parts = (select.find(method.selector).options, solve.find(method.solver).options, ENGINE_OPTIONS)
    return tuple(dict.fromkeys(name for part in parts for name in part))


def make(name: str, offsets: Indices, rng: np.random.Generator, **options: Any) -> Engine:
    """An engine for the variables described by `offsets` (see `SubspaceEngine`)."""
    method = find(name)
    allowed = options_of(method)
    for option in options:
        if option not in allowed:
            raise InputError(f"method {name!r} has no option {option!r}: it has {', '.join(allowed)}")
    options = {**method.defaults, **options}

    def take(names: tuple[str, ...]) -> dict[str, Any]:
        return {key: options[key] for key in names if key in options}

    return SubspaceEngine(
        offsets,
        select.make(method.selector, len(offsets) - 1, **take(select.find(method.selector).options)),
        solve.make(method.solver, **take(solve.find(method.solver).options)),
        fill.make(options.get("fill_in", "best-k"), options.get("k", 20)),
        rng,
        **take(("samples", "initial_points")),
    )
