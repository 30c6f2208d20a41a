"""The kinds of variables; each is checked when it is made."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Real
from reprlib import repr as short  # a bad value may be a million numbers long
from typing import Any, TypeAlias

import numpy as np

from mctsvs.utils.validation import Array, InputError, as_number, check_bool, check_text

# Up to here a grid index, and a whole number on the log scale, survives the way to [0, 1] and back exactly.
_LARGEST = 2**40


@dataclass(frozen=True, kw_only=True, repr=False)
class AnyVariable:
    """What every kind of variable may have beside its values.

    Args:
        default: A value that is known to be reasonable. The first point has it. `...` means none: None may be a choice.
        when: A dict of the name of another variable -> its values, or one of them. This variable exists only with them.
    """

    default: Any = ...
    when: Any = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "when", _conditions(self.when))
        if self.default is not ...:
            object.__setattr__(self, "default", _as_python(self.default))
            if not self.fits(self.default):
                raise InputError(f"default {short(self.default)} must be one of the values of {self!r}")

    @property
    def labels(self) -> tuple[Any, ...] | None:
        """All values in their order, where they are listed."""
        return None

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest value in natural units, which for labels that are no numbers are indices."""
        raise NotImplementedError

    def fits(self, value: Any) -> bool:
        """Whether it is a value of this variable."""
        return value in (self.labels or ())

    def __repr__(self) -> str:
        shown = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("default", "when")}
        shown |= {} if self.default is ... else {"default": self.default}
        shown |= {"when": dict(self.when)} if self.when else {}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in shown.items())})"


@dataclass(frozen=True, repr=False)
class Float(AnyVariable):
    """A real number in [low, high].

    Args:
        low: The smallest value.
        high: The largest value.
        log: Whether its logarithm is searched, as is right for rates and other factors.
        step: The distance between its values, which are low + k * step. None means any value.

    Raises:
        InputError: The bounds, `log` and `step` do not fit together.

    Example:
        >>> Space.of({"rate": Float(0.0, 10.0)}).params(np.array([0.25]))
        {'rate': 2.5}
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None

    def __post_init__(self) -> None:
        _to_python(self)
        _check_numeric(self)
        super().__post_init__()

    @property
    def ends(self) -> tuple[float, float]:
        return self.low, self.high

    def fits(self, value: Any) -> bool:
        return _on_grid(self, value)


@dataclass(frozen=True, repr=False)
class Integer(AnyVariable):
    """A whole number in [low, high], both included.

    Args:
        low: The smallest value.
        high: The largest value.
        log: Whether its logarithm is searched.
        step: The distance between its values, which are low + k * step.

    Raises:
        InputError: The bounds, `log` and `step` do not fit together.

    Example:
        >>> Space.of({"layers": Integer(1, 4)}).params(np.array([0.99]))
        {'layers': 4}
    """

    low: int
    high: int
    log: bool = False
    step: int = 1

    def __post_init__(self) -> None:
        _to_python(self)
        for value in (self.low, self.high, self.step):
            if not (as_float(value).is_integer() and abs(value) <= _LARGEST):
                raise InputError(f"{short(value)} must be a whole number from -2**40 to 2**40")
        _check_numeric(self)
        super().__post_init__()

    @property
    def ends(self) -> tuple[float, float]:
        return self.low, self.high

    def fits(self, value: Any) -> bool:
        return as_float(value).is_integer() and _on_grid(self, value)


@dataclass(frozen=True, repr=False)
class Categorical(AnyVariable):
    """One of several choices without an order.

    Args:
        choices: The choices: None, bools, numbers, strings, or tuples of these.

    Raises:
        InputError: There is no choice, or one is there twice.

    Example:
        >>> Space.of({"kernel": Categorical(["rbf", "linear"])}).params(np.array([0.2, 0.7]))
        {'kernel': 'linear'}
    """

    choices: Sequence[Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "choices", _distinct(self.choices, "choice"))
        super().__post_init__()

    @property
    def labels(self) -> tuple[Any, ...]:
        return tuple(self.choices)

    @property
    def ends(self) -> tuple[float, float]:
        return 0, len(self.choices) - 1


@dataclass(frozen=True, repr=False)
class Ordinal(AnyVariable):
    """One of several values in an order: neighbours in the list are taken to be alike.

    Args:
        values: The values in their order: numbers, strings, or anything that may be a choice.

    Raises:
        InputError: There is no value, or one is there twice.

    Example:
        >>> Space.of({"batch": Ordinal([16, 32, 64])}).params(np.array([0.9]))
        {'batch': 64}
    """

    values: Sequence[Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _distinct(self.values, "value"))
        super().__post_init__()

    @property
    def labels(self) -> tuple[Any, ...]:
        return tuple(self.values)

    @property
    def numbers(self) -> list[float]:
        """The values, where all of them are numbers: then these are the natural units. Else empty."""
        found = [as_float(value) for value in self.values]
        return found if len(set(found)) == len(found) and all(map(math.isfinite, found)) else []

    @property
    def ends(self) -> tuple[float, float]:
        numbers = self.numbers or [0, len(self.values) - 1]
        return min(numbers), max(numbers)


@dataclass(frozen=True, repr=False)
class Boolean(AnyVariable):
    """False or True.

    Example:
        >>> Space.of({"shrink": Boolean()}).params(np.array([0.9]))
        {'shrink': True}
    """

    @property
    def labels(self) -> tuple[Any, ...]:
        return False, True

    @property
    def ends(self) -> tuple[float, float]:
        return 0, 1


@dataclass(frozen=True, repr=False)
class Fixed(AnyVariable):
    """One value that the objective gets and that is never searched. It takes a variable out without changing any code.

    Args:
        value: The value: None, a bool, a number, a string, or a tuple of these.

    Example:
        >>> Space.of({"rate": (0.0, 1.0), "kernel": Fixed("rbf")}).params(np.array([0.5]))
        {'rate': 0.5, 'kernel': 'rbf'}
    """

    value: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", _distinct([self.value], "value")[0])
        super().__post_init__()

    @property
    def labels(self) -> tuple[Any, ...]:
        return (self.value,)

    @property
    def ends(self) -> tuple[float, float]:
        return 0, 0


Variable: TypeAlias = Float | Integer | Categorical | Ordinal | Boolean | Fixed
KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in (Float, Integer, Categorical, Ordinal, Boolean, Fixed)}


class Floats(Sequence[Variable]):
    """Many plain floats, made one by one when they are asked for."""

    def __init__(self, low: Array, high: Array) -> None:
        self._low, self._high = low, high

    def __len__(self) -> int:
        return len(self._low)

    def __getitem__(self, at: Any) -> Any:
        low, high = self._low[at].tolist(), self._high[at].tolist()
        return tuple(map(Float, low, high)) if isinstance(at, slice) else Float(low, high)


def variable_of(item: Any, name: str, *, choices: bool = False) -> Variable:
    """The variable that `item` describes, with `choices` a list of them too; what is wrong is said with its name."""
    if isinstance(item, Float | Integer | Categorical | Ordinal | Boolean | Fixed):
        return item
    if isinstance(item, np.ndarray):
        item = list(item) if np.ma.is_masked(item) else item.tolist()
    try:
        kinds = {kind.__name__ for kind in type(item).__mro__}  # Optuna need not be installed
        if "CategoricalDistribution" in kinds:
            return Categorical(item.choices)
        if kinds & {"FloatDistribution", "IntDistribution"}:
            numeric = Float if "FloatDistribution" in kinds else Integer
            return numeric(item.low, item.high, item.log, item.step)
        if choices and is_choices(item):
            return Categorical(item)
        if isinstance(item, tuple | list) and len(item) == 2:
            return Float(item[0], item[1])
        raise InputError(f"{short(item)} must be a (low, high) pair or a variable: {', '.join(KINDS)}")
    except InputError as error:
        raise InputError(f"variable {name!r}: {error}") from None


def is_choices(item: Any) -> bool:
    """Whether it is a list of choices: it has a string or a bool in it, or more than the two numbers of a range."""
    return isinstance(item, list) and (len(item) > 2 or any(isinstance(value, str | bool) for value in item))


def _to_python(var: Float | Integer) -> None:
    """Make its bounds and its step, which may be numbers of any library, numbers of Python."""
    for name in ("low", "high", "step"):
        value = getattr(var, name)
        number = math.nan if value is None or isinstance(value, int | float) else as_number(value)
        if number is not None and math.isfinite(number):
            whole = isinstance(var, Integer) and number.is_integer()
            object.__setattr__(var, name, int(number) if whole else number)


def _check_numeric(var: Float | Integer) -> None:
    low, high, bounds = as_float(var.low), as_float(var.high), f"bounds ({short(var.low)}, {short(var.high)})"
    if not (math.isfinite(low) and math.isfinite(high)):
        raise InputError(f"{bounds} must be two finite numbers")
    if low >= high:
        wrong = "equal" if low == high else "reversed"
        raise InputError(f"{bounds} are {wrong}: the low bound must be smaller than the high bound")
    object.__setattr__(var, "log", check_bool("log", var.log))
    width = high - low
    if width == math.inf:
        raise InputError(f"{bounds} are too far apart: high - low must be a finite number")
    if var.log and low <= 0:
        raise InputError(f"{bounds} do not fit log=True: the low bound must be larger than 0")
    if var.log and var.step != (1 if isinstance(var, Integer) else None):
        raise InputError(f"step {var.step!r} does not go with log=True: one of them must be left out")
    # A step of a few rounding errors would merge neighbouring grid values.
    smallest = max(width / _LARGEST / 2, 16 * math.ulp(max(abs(low), abs(high))))
    if var.step is not None and not smallest <= as_float(var.step) <= width:
        raise InputError(f"step {var.step!r} must be a number from {smallest:.3g} to the width {width}")


def _on_grid(var: Float | Integer, value: Any) -> bool:
    if not var.low <= as_float(value) <= var.high:
        return False
    steps = 0.0 if var.step is None else (as_float(value) - var.low) / var.step
    return abs(steps - round(steps)) <= 1e-6


def _conditions(when: Any) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """As pairs of a name and its values, which can be hashed and compared."""
    pairs = dict(when) if isinstance(when, Mapping | tuple) else None
    if pairs is None or not all(isinstance(name, str) for name in pairs):
        raise InputError(f"when={short(when)} must be a dict of name -> values, such as {{'kernel': ['rbf', 'poly']}}")
    for name, values in pairs.items():
        listed = values if isinstance(values, Sequence | np.ndarray) and not isinstance(values, str) else [values]
        pairs[name] = tuple(_as_python(value) for value in listed)
        if not pairs[name]:
            raise InputError(f"when={short(when)} has no value of {name!r}: it needs at least one")
    return tuple(pairs.items())


def _distinct(values: Any, word: str) -> tuple[Any, ...]:
    """As a tuple, so that equality and hashing work."""
    if not is_list(values) or not len(values):
        raise InputError(f"{word}s {short(values)} must be a list of at least one value")
    found = tuple(_as_python(value) for value in values)
    for value in found:
        if not _is_plain(value):
            raise InputError(f"{word} {short(value)} must be None, a bool, number, string or tuple")
        check_text(word, json.dumps(value, ensure_ascii=False))
    if len(set(found)) < len(found):
        twice = next(c for i, c in enumerate(found) if c in found[:i])
        raise InputError(f"{word} {twice!r} is there twice: {word}s must differ (1, 1.0 and True do not)")
    return found


def _as_python(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def as_float(value: object) -> float:
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
