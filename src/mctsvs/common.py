"""What every layer shares: the error for bad input, array types, and plain-data random-generator state."""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
"""Any array of 64-bit floats."""

Indices = npt.NDArray[np.intp]
"""Positions of variables or coordinates."""

State = dict[str, Any]
"""Plain numbers, strings, lists, dicts and numpy arrays: what an engine saves, never code."""


class InputError(ValueError):
    """Something the caller gave is wrong: one sentence that names the value and what would be right."""


def check_count(name: str, value: Any, least: int = 1) -> int:
    """A whole number, at least `least`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise InputError(f"{name}={value!r} cannot be used: it must be a whole number, {least} or more")
    return int(value)


def check_fields(settings: Any, least: Mapping[str, int]) -> None:
    """Fields of a dataclass have the type they are declared with; whole numbers are at least 1, or as in `least`."""
    for field in dataclasses.fields(settings):
        value, kind = getattr(settings, field.name), str(field.type)
        if kind == "int":
            check_count(field.name, value, least.get(field.name, 1))
        elif kind == "float" and (isinstance(value, bool) or not isinstance(value, numbers.Real) or value != value):
            raise InputError(f"{field.name}={value!r} cannot be used: it must be a number")
        elif kind == "bool" and not isinstance(value, bool):
            raise InputError(f"{field.name}={value!r} cannot be used: it must be True or False")


def check_choice(name: str, value: Any, known: Iterable[str]) -> None:
    """One of the known words."""
    known = tuple(known)
    if value not in known:
        raise InputError(f"unknown {name} {value!r}: use one of {', '.join(known)}")


def generator_state(rng: np.random.Generator) -> State:
    """The generator's state as plain data; `restore_generator` continues its stream exactly."""
    return dict(rng.bit_generator.state)


def restore_generator(state: State) -> np.random.Generator:
    """The generator whose state was saved by `generator_state`."""
    rng = np.random.Generator(np.random.PCG64())
    rng.bit_generator.state = state
    return rng
