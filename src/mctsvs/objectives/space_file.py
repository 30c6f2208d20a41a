"""The variables of a user's own objective, read from a TOML file.

    direction = "maximize"               # optional; minimize otherwise
    constraints = ["rate + width <= 2", "sum(x0:x9) <= 30"]        # optional; every point satisfies them

    rate = { low = 1e-5, high = 1.0, log = true }
    width = [0.5, 2.0]                   # short for { low = 0.5, high = 2.0 }
    layers = { type = "integer", low = 1, high = 9 }
    kind = ["relu", "tanh", "gelu"]      # short for { choices = ["relu", "tanh", "gelu"] }
    batch = { values = [16, 32, 64], default = 32 }      # in this order: type "ordinal"
    shrink = { type = "boolean" }
    seed = { value = 3 }                                 # never searched: type "fixed"
    slope = { low = 0.0, high = 0.3, when = { kind = ["relu"] } }

    [x]                                  # 200 variables x0 to x199
    count = 200
    low = -5
    high = 10

A table with `count` declares a group: an objective gets its values together, under the group's name. `default` is
part of the first point, and a variable with `when` exists only with these values of others.
"""

from __future__ import annotations

import difflib
import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mctsvs.optimizer import DIRECTIONS
from mctsvs.space import Boolean, Categorical, Fixed, Float, Integer, Ordinal, Region, Space, Variable
from mctsvs.space.variables import is_choices
from mctsvs.utils.validation import Array, InputError, check_choice, check_count

KEYS = {
    "float": ("low", "high", "log", "step"),
    "integer": ("low", "high", "log", "step"),
    "categorical": ("choices",),
    "ordinal": ("values",),
    "boolean": (),
    "fixed": ("value",),
}
"""What may be said of each type, beside `type`, `count`, `default` and `when`."""
NEEDS = {
    "float": "a float needs low and high",
    "integer": "an integer needs low and high",
    "categorical": "a categorical needs choices, such as choices = ['a', 'b']",
    "ordinal": "an ordinal needs values in their order, such as values = [16, 32, 64]",
    "fixed": "a fixed variable needs its value, such as value = 3",
}
LISTED: Mapping[str, Callable[..., Variable]] = {
    "categorical": Categorical,
    "ordinal": Ordinal,
    "boolean": Boolean,
    "fixed": Fixed,
}
SPELLINGS = {"int": "integer", "bool": "boolean", "cat": "categorical", "category": "categorical"}
SPELLINGS |= {"real": "float", "double": "float"} | {kind: kind for kind in KEYS}
"""What other tools call the types, in small letters."""
ALSO = ("type", "count", "default", "when")
MOST_COUNT = 10**6


@dataclass(frozen=True)
class SpaceFile:
    """The variables by name, which of them form groups, and the direction if it is given."""

    variables: Mapping[str, Variable]
    groups: Mapping[str, tuple[str, ...]]
    """Name of a group -> names of its variables."""
    direction: str | None = None
    constraints: tuple[str, ...] = ()
    """What every point satisfies, such as "a + 2*b <= 10"."""
    vector: bool = False
    """Whether the variables have no names of their own, so that an objective takes the vector."""

    @classmethod
    def of(cls, space: object) -> SpaceFile:
        """The same for a space given in Python: anything `mctsvs.Space.of` accepts."""
        made = Space.of(space)
        return cls(made.declared, {}, vector=not made.named)

    @cached_property
    def space(self) -> Space:
        return Space.of(self.variables)

    @property
    def bounds(self) -> Array:
        """(V, 2) of the searched variables, a category by the indices of its choices."""
        return self.space.bounds

    def params(self, x: Array) -> dict[str, Any]:
        """The values by the name of each variable that exists at x: float, int, bool, or the choice itself."""
        return self.space.params_at(np.asarray(x, np.float64))

    @cached_property
    def _group_of(self) -> dict[str, str]:
        return {member: name for name, members in self.groups.items() for member in members}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names under which a function gets the values: those of groups, and of variables in no group."""
        return tuple(dict.fromkeys(self._group_of.get(name, name) for name in self.variables))

    def keywords(self, x: Array) -> dict[str, Any]:
        """Name -> value at x, a group's values together under its name: numbers as a vector, choices as a list."""
        params = self.params(x)
        together: dict[str, Any] = {}
        for name, value in params.items():
            group = self._group_of.get(name)
            if group is None:
                together[name] = value
            elif group not in together:
                values = [params[member] for member in self.groups[group]]  # they exist together
                plain = isinstance(self.variables[name], Float | Integer)
                together[group] = np.array(values) if plain else values
        return together

    def argument(self, x: Array) -> Any:
        """The one argument of a function: `keywords` as a dict; of variables without names or one group, the vector."""
        if self.vector:
            return x
        together = self.keywords(x)
        return next(iter(together.values())) if len(together) == 1 and len(self.groups) == 1 else together


def read_space(path: Path) -> SpaceFile:
    """The space that the TOML file describes."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"there is no space file {str(path)!r}: give the path of a TOML file") from None
    except OSError as error:
        raise InputError(f"cannot read the space file {str(path)!r}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"cannot read the space file {str(path)!r}: it must be text in UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"the space file {str(path)!r} is not TOML: {error}") from None
    except RecursionError:
        raise InputError(f"the space file {str(path)!r} is nested too deeply") from None
    try:
        return parse_space(content)
    except InputError as error:
        raise InputError(f"in the space file {str(path)!r}: {error}") from None


def parse_space(content: Mapping[str, Any]) -> SpaceFile:
    """The space that the content of a TOML file describes."""
    direction: str | None = None
    constraints: tuple[str, ...] = ()
    variables: dict[str, Variable] = {}
    groups: dict[str, tuple[str, ...]] = {}
    for name, value in content.items():
        if name == "direction" and isinstance(value, str):
            check_choice("direction", value, DIRECTIONS)
            direction = value
            continue
        if name == "constraints" and not isinstance(value, Mapping) and not _is_pair(value):
            constraints = _constraints(value)
            continue
        try:
            declared = _table(value)
            variable = _variable(declared)
            members = [name]
            if "count" in declared:
                members = [f"{name}{i}" for i in range(check_count("count", declared["count"], most=MOST_COUNT))]
                groups[name] = tuple(members)
        except InputError as error:
            raise InputError(f"variable {name!r}: {error}") from None
        for member in members:
            if member in variables or (member in groups and member != name):
                raise InputError(f"the name {member!r} is there twice: a group of {name!r} has names with numbers")
            variables[member] = variable
    for name in groups:
        if name in variables:
            raise InputError(f"the name {name!r} is there twice: as a group and as a variable")
    if not variables:
        raise InputError("there is no variable: declare at least one, such as rate = { low = 0.0, high = 1.0 }")
    file = SpaceFile(variables, groups, direction, constraints)
    Region(file.space, constraints)  # now, so that what cannot be is said with the file's name
    return file


def _constraints(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise InputError(f'constraints = {value!r} must be a list of texts, such as constraints = ["a + b <= 1"]')
    return tuple(value)


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and not is_choices(value)


def _table(value: Any) -> Mapping[str, Any]:
    """The table that a short form stands for."""
    if isinstance(value, Mapping):
        return value
    if is_choices(value):
        return {"choices": value}
    if _is_pair(value):
        return {"low": value[0], "high": value[1]}
    raise InputError(
        f"{value!r} must be a table such as {{ low = 0.0, high = 1.0 }}, a pair [low, high] or a list of choices"
    )


def _variable(declared: Mapping[str, Any]) -> Variable:
    said = [kind for kind in ("categorical", "ordinal", "fixed") if KEYS[kind][0] in declared]
    kind = declared.get("type", (*said, "float")[0])
    kind = SPELLINGS.get(str(kind).lower(), kind)
    check_choice("type", kind, KEYS)
    allowed = (*ALSO, *KEYS[kind])
    for key, value in declared.items():
        if key not in allowed:
            close = difflib.get_close_matches(key, allowed, n=1)
            hint = f"did you mean {close[0]!r}? " if close else ""
            raise InputError(f"unknown key {key!r}: {hint}A {kind} has {', '.join(allowed)}")
        if key == "log" and not isinstance(value, bool):
            raise InputError(f"log={value!r} cannot be used: it must be true or false")
        if key in ("low", "high", "step") and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise InputError(f"{key}={value!r} cannot be used: it must be a number")
    for key in KEYS[kind][:2]:
        if key not in declared:
            raise InputError(f"{key} is missing: {NEEDS[kind]}")
    more = {key: declared[key] for key in ("default", "when") if key in declared}
    if kind not in ("float", "integer"):
        return LISTED[kind](*(declared[key] for key in KEYS[kind]), **more)
    return _numeric(kind, declared, more)


def _numeric(kind: str, declared: Mapping[str, Any], more: Mapping[str, Any]) -> Variable:
    low, high, log, step = (declared.get(key) for key in ("low", "high", "log", "step"))
    assert low is not None
    assert high is not None
    if kind == "float":
        return Float(float(low), float(high), bool(log), None if step is None else float(step), **more)
    for key, value in (("low", low), ("high", high), ("step", step)):
        if isinstance(value, float) and not (math.isfinite(value) and value.is_integer()):
            raise InputError(f"{key}={value!r} cannot be used: an integer's must be a whole number")
    return Integer(int(low), int(high), bool(log), 1 if step is None else int(step), **more)
