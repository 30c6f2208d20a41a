"""Kinds of variables, each checked when made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from reprlib import repr as short  # a bad value may be a million numbers long
from typing import Any, TypeAlias

import numpy as np

from mctsvs.common import Array, InputError

# Up to here a grid index, and a whole number on the log scale, survives the way to [0, 1] and back exactly.
_LARGEST = 2**40


@dataclass(frozen=True)
class Float:
    """A real number in [low, high]; `log` searches its logarithm, `step` keeps it on low + k * step.

    >>> Space.of({"rate": Float(0.0, 10.0)}).params(np.array([0.25]))
    {'rate': 2.5}
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None

    def __post_init__(self) -> None:
        _check_numeric(self)


@dataclass(frozen=True)
class Integer:
    """A whole number in [low, high], both included; `step` keeps it on low + k * step.

    >>> Space.of({"layers": Integer(1, 4)}).params(np.array([0.99]))
    {'layers': 4}
    """

    low: int
    high: int
    log: bool = False
    step: int = 1

    def __post_init__(self) -> None:
        for value in (self.low, self.high, self.step):
            if not (number(value).is_integer() and abs(value) <= _LARGEST):
                raise InputError(f"{short(value)} must be a whole number from -2**40 to 2**40")
        _check_numeric(self)


@dataclass(frozen=True)
class Categorical:
    """One of several choices without an order: None, bools, numbers, strings, or tuples of these.

    >>> Space.of({"kernel": Categorical(["rbf", "linear"])}).params(np.array([0.2, 0.7]))
    {'kernel': 'linear'}
    """

    choices: Sequence[Any]

    def __post_init__(self) -> None:
        if not is_list(self.choices) or not len(self.choices):
            raise InputError(f"choices {short(self.choices)} must be a list of at least one value")
        choices = tuple(c.item() if isinstance(c, np.generic) else c for c in self.choices)
        for choice in choices:
            if not _is_plain(choice):
                raise InputError(f"choice {short(choice)} must be None, a bool, number, string or tuple")
        if len(set(choices)) < len(choices):
            twice = next(c for i, c in enumerate(choices) if c in choices[:i])
            raise InputError(f"choice {twice!r} is there twice: choices must differ (1, 1.0 and True do not)")
        object.__setattr__(self, "choices", choices)  # a tuple, so that equality and hashing work


Variable: TypeAlias = Float | Integer | Categorical


class Floats(Sequence[Variable]):
    """Many plain floats, made one by one when they are asked for."""

    def __init__(self, low: Array, high: Array) -> None:
        self._low, self._high = low, high

    def __len__(self) -> int:
        return len(self._low)

    def __getitem__(self, at: Any) -> Any:
        low, high = self._low[at].tolist(), self._high[at].tolist()
        return tuple(map(Float, low, high)) if isinstance(at, slice) else Float(low, high)


def variable_of(item: Any, name: str) -> Variable:
    """The variable that `item` describes; what is wrong with it is said with its name."""
    if isinstance(item, Float | Integer | Categorical):
        return item
    item = item.tolist() if isinstance(item, np.ndarray) else item
    try:
        kind = type(item).__name__  # Optuna need not be installed
        if kind == "CategoricalDistribution":
            return Categorical(item.choices)
        if kind in ("FloatDistribution", "IntDistribution"):
            numeric = Float if kind == "FloatDistribution" else Integer
            return numeric(item.low, item.high, item.log, item.step)
        if isinstance(item, tuple | list) and len(item) == 2:
            return Float(item[0], item[1])
        raise InputError(f"{short(item)} must be a (low, high) pair, a Float, Integer or Categorical")
    except InputError as error:
        raise InputError(f"variable {name!r}: {error}") from None


def _check_numeric(var: Float | Integer) -> None:
    low, high, bounds = number(var.low), number(var.high), f"bounds ({short(var.low)}, {short(var.high)})"
    if not (math.isfinite(low) and math.isfinite(high)):
        raise InputError(f"{bounds} must be two finite numbers")
    if low >= high:
        wrong = "equal" if low == high else "reversed"
        raise InputError(f"{bounds} are {wrong}: the low bound must be smaller than the high bound")
    width = high - low
    if width == math.inf:
        raise InputError(f"{bounds} are too far apart: high - low must be a finite number")
    if var.log and low <= 0:
        raise InputError(f"{bounds} do not fit log=True: the low bound must be larger than 0")
    if var.log and var.step != (1 if isinstance(var, Integer) else None):
        raise InputError(f"step {var.step!r} does not go with log=True: one of them must be left out")
    # A step of a few rounding errors would merge neighbouring grid values.
    smallest = max(width / _LARGEST / 2, 16 * math.ulp(max(abs(low), abs(high))))
    if var.step is not None and not smallest <= number(var.step) <= width:
        raise InputError(f"step {var.step!r} must be a number from {smallest:.3g} to the width {width}")


def number(value: object) -> float:
    """The value as a float; NaN where it is no number (a bool is none), infinite where it is too large."""
    try:
        return math.nan if isinstance(value, bool) or not isinstance(value, Real) else float(value)
    except OverflowError:
        return math.inf


def is_list(value: object) -> bool:
    array = isinstance(value, np.ndarray) and value.ndim > 0
    return array or (isinstance(value, Sequence) and not isinstance(value, str | bytes))


def _is_plain(choice: object) -> bool:
    if isinstance(choice, tuple):
        return all(map(_is_plain, choice))
    return choice is None or (isinstance(choice, bool | int | float | str) and choice == choice)
