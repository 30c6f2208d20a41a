"""Saving: an object's class names the fields that make up its state, and their annotations say how to read them back.

>>> class Dropout(Saved):
...     saved = ("iteration",)
...     iteration: int

A state is plain data (numbers, strings, lists, dicts with string keys, arrays), never code, and goes on bit for bit.
The fields of base classes come first. A dataclass among the fields is saved with all of its own; an object that is
`Saved`, with those it names. What can be computed again from other fields is not saved. Few classes have their own
form: `History` and `Tree`, because theirs is large or deep, and where one of several classes must be named.
"""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from collections import deque
from functools import cache
from typing import Any, ClassVar

import numpy as np

from mctsvs.utils.validation import State


class Saved:
    """Has a state of the fields named in `saved`, by this class and its bases."""

    saved: ClassVar[tuple[str, ...]] = ()

    def state(self) -> State:
        kind: Any = type(self)
        return {name: dump(getattr(self, name)) for name in saved_fields(kind)}

    def restore(self, state: State) -> None:
        """Go on from `state`, for an object made as the saved one was."""
        kind: Any = type(self)
        hints = hints_of(kind)
        for name in saved_fields(kind):
            now = getattr(self, name, None)
            if isinstance(now, Saved) and not dataclasses.is_dataclass(now):
                now.restore(state[name])
            else:
                setattr(self, name, load(hints[name], state[name]))


@cache
def saved_fields(kind: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for base in reversed(kind.__mro__) for name in vars(base).get("saved", ())))


@cache
def hints_of(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def dump(value: Any) -> Any:
    """The value as plain data."""
    if value is None or (isinstance(value, bool | int | float | str) and not isinstance(value, enum.Enum)):
        return value
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, Saved):
        return value.state()
    if dataclasses.is_dataclass(value):
        return {f.name: dump(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, np.random.Generator):
        return dict(value.bit_generator.state)
    if isinstance(value, dict):  # keys need not be strings
        return [[dump(key), dump(item)] for key, item in value.items()]
    if isinstance(value, list | tuple | deque):
        return [dump(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be saved")


def load(kind: Any, data: Any) -> Any:
    """The value of that type whose plain data this is."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return None if data is None else load(next(a for a in arguments if a is not type(None)), data)
    if origin is np.ndarray:
        return np.array(data)
    if kind is np.random.Generator:
        rng = np.random.Generator(np.random.PCG64())
        rng.bit_generator.state = data
        return rng
    if origin is dict:
        return {load(arguments[0], key): load(arguments[1], item) for key, item in data}
    if origin is tuple and arguments[-1] is not Ellipsis:
        return tuple(load(argument, item) for argument, item in zip(arguments, data, strict=True))
    if origin in (list, tuple, deque):
        return origin(load(arguments[0], item) for item in data)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return kind[data]
    if hasattr(kind, "from_state"):
        return kind.from_state(data)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        hints = hints_of(kind)
        return kind(**{f.name: load(hints[f.name], data[f.name]) for f in dataclasses.fields(kind) if f.name in data})
    return data
