"""Options of selectors, solvers and engines: one frozen dataclass each, checked when made.

>>> @dataclass(frozen=True)
... class DropoutOptions(Options):
...     d: int = option(20, least=1)

A field's annotation says what it may be (int, float, bool, str, each also `| None`, or `tuple[float, ...]`), `option`
within which limits. The names of the fields are the names of the options a user gives.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, TypeVar

from mctsvs.utils.validation import InputError, check_bool, check_choice, check_count, check_number

Own = TypeVar("Own", bound="Options")
MOST = 10_000  # of a whole number without a limit of its own: a file by somebody else must not ask for days


def option(
    default: Any,
    *,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    among: Iterable[str] = (),
) -> Any:
    """A field with limits, or with the words it may be."""
    limits = {name: value for name, value in (("least", least), ("most", most), ("above", above)) if value is not None}
    return field(default=default, metadata={"limits": limits, "among": tuple(among)})


@dataclass(frozen=True)
class Options:
    """No options; a subclass adds fields."""

    advertised: ClassVar[bool] = True  # False for switches of experiments, which no message suggests

    def __post_init__(self) -> None:
        for f in fields(self):
            limits, among = dict(f.metadata.get("limits", {})), f.metadata.get("among", ())
            kind = f.type.__name__ if isinstance(f.type, type) else str(f.type)  # with postponed annotations or without
            object.__setattr__(self, f.name, _checked(f.name, getattr(self, f.name), kind, limits, among))

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(f.name for f in fields(cls))

    @classmethod
    def take(cls: type[Own], given: dict[str, Any]) -> Own:
        """Those of the given options that belong here."""
        return cls(**{name: given[name] for name in cls.names() if name in given})


def _checked(name: str, value: Any, kind: str, limits: dict[str, Any], among: tuple[str, ...]) -> Any:
    """The value; a whole number as an int, and a number of another library as a float."""
    kind, *optional = (part.strip() for part in kind.split("|"))
    if value is None and optional:
        return None
    if kind == "int":
        return check_count(name, value, **{"least": 1, "most": MOST, **limits})
    if kind == "float":
        return _number(name, value, limits)
    if kind == "bool":
        check_bool(name, value)
    elif kind == "str":
        check_choice(name, value, among)
    elif kind == "tuple[float, ...]":
        if not isinstance(value, tuple | list) or not value:
            raise InputError(f"{name}={value!r} cannot be used: give one or more numbers")
        return tuple(_number(name, number, limits) for number in value)
    else:
        raise TypeError(f"an option of type {kind} has no check")
    return value


def _number(name: str, value: Any, limits: dict[str, Any]) -> float:
    number = check_number(name, value, **limits)
    return value if isinstance(value, int | float) else number
