"""Variables as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mctsvs.space.variables import KINDS, Variable


def row(var: Variable) -> list[Any]:
    """Its kind, its own fields, and what not every variable has."""
    own = {name: nested(value, list) for name, value in vars(var).items()}
    default, when = own.pop("default"), dict(own.pop("when"))
    more = ({} if default is ... else {"default": default}) | ({"when": when} if when else {})
    return [type(var).__name__, *own.values(), *([more] if more else [])]


def variable(saved: Sequence[Any]) -> Variable:
    """The variable of a row."""
    kind, *own = saved
    more = own.pop() if own and isinstance(own[-1], dict) else {}
    var: Variable = KINDS[kind](*nested(own, tuple), **{name: nested(v, tuple) for name, v in more.items()})
    return var


def nested(value: Any, kind: type) -> Any:
    """The value with every list and tuple in it made a `kind`, and numpy's numbers Python's."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, dict):
        return {name: nested(v, kind) for name, v in value.items()}
    return kind(nested(v, kind) for v in value) if isinstance(value, list | tuple) else value
