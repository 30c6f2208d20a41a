"""Validation of input: array types, the errors that users see, and the one set of checks that raise them."""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from mctsvs.utils.formatting import printable

Array = npt.NDArray[np.float64]
"""Any array of 64-bit floats."""

Indices = npt.NDArray[np.intp]
"""Positions of variables or coordinates."""

State = dict[str, Any]
"""Plain numbers, strings, lists, dicts and numpy arrays: what is saved, never code."""

LARGEST = 1e150
"""Of numbers that a method gets: sums of squares of larger ones overflow."""


class InputError(ValueError):
    """Something the caller gave is wrong: one sentence that names the value and what would be right."""


class StudyError(InputError):
    """A study that cannot be used as asked: one sentence that says why and what would be right."""

    def __init__(self, sentence: str) -> None:
        super().__init__(printable(sentence))


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant: in other letters, with `word` as a part (tpe: optuna-tpe), or alike."""
    spelled = {name.lower(): name for name in known}
    whole = [name for name in spelled if word.lower() in (name, *name.split("-"))]
    found = sorted(whole, key=len) or difflib.get_close_matches(word.lower(), spelled, n=1)
    return spelled[found[0]] if found else None


def check_count(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """A whole number within these limits, as an int; a float such as 1e3 may be one."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    whole |= isinstance(value, float | np.floating) and float(value).is_integer()
    if not whole or value < least or (most is not None and value > most):
        limits = f"{least} or more" if most is None else f"from {least} to {most}"
        raise InputError(f"{name}={value!r} cannot be used: it must be a whole number, {limits}")
    return int(value)


def check_number(
    name: str, value: Any, *, least: float = -math.inf, most: float = math.inf, above: float = -math.inf
) -> float:
    """A finite number within these limits; `above` is a limit that does not belong."""
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not real or not (math.isfinite(value) and least <= value <= most and value > above):
        limits = [f"{least:g} or more"] * (least > -math.inf) + [f"above {above:g}"] * (above > -math.inf)
        limits += [f"at most {most:g}"] * (most < math.inf)
        raise InputError(f"{name}={value!r} cannot be used: it must be {', '.join(['a number', *limits])}")
    return float(value)


def check_bool(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InputError(f"{name}={value!r} cannot be used: it must be True or False")
    return value


def check_choice(name: str, value: Any, known: Iterable[str]) -> str:
    """One of the known words."""
    known = tuple(known)
    if value not in known:
        raise InputError(f"unknown {name} {value!r}: use one of {', '.join(known)}")
    return str(value)


def check_seed(seed: Any) -> int:
    """The seed, or one drawn from the system's entropy for None; kept, so that the run can be repeated."""
    if seed is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    return check_count("seed", seed, least=0)


class EvaluationFailed(Exception):
    """One line that says why; a run records it and goes on."""
