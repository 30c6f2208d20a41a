"""Validation of input: array types, the errors that users see, and the one set of checks that raise them."""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Iterable
from reprlib import repr as short  # one that also shows what has no text of its own
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

    def __init__(self, sentence: str) -> None:
        super().__init__(printable(sentence))


class SeveralValues(InputError):
    """There are several values in place of one; `hint` says how to make them several objectives."""

    def __init__(self, sentence: str, given: Any) -> None:
        super().__init__(sentence)
        each = dict.fromkeys(given, "minimize") if isinstance(given, dict) else ["minimize"] * len(given)
        needed = f"{'objectives' if isinstance(given, dict) else 'directions'}={each}"
        self.hint = printable(f"for several objectives write minimize(f, space, budget, {needed})")


class StudyError(InputError):
    """A study that cannot be used as asked: one sentence that says why and what would be right."""


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant: in other letters, with `word` as a part (tpe: optuna-tpe), or alike."""
    spelled = {name.lower(): name for name in known}
    whole = [name for name in spelled if word.lower() in (name, *name.split("-"))]
    found = sorted(whole, key=len) or difflib.get_close_matches(word.lower(), spelled, n=1)
    return spelled[found[0]] if found else None


def as_number(value: Any) -> float | None:
    """What counts as a number anywhere: the value as a float.

    Args:
        value: A number of any library, also alone in an array or a list, as scipy takes it.

    Returns:
        NaN for None and what is masked, an infinity for what is beyond all floats. None for what is no number: bools,
        complex numbers, text, several numbers, and what fails to become one.
    """
    if type(value) is float:
        return value
    item = None
    try:
        try:
            array = np.asanyarray(value)
        except Exception:  # such as torch's with a gradient, or on another device
            array = np.asanyarray(float(value))
        if array.size != 1 or array.dtype.kind not in "iufO":
            return None
        if np.ma.is_masked(array):
            return math.nan
        item = array.item()
        if isinstance(item, str | bytes | bool | np.bool_ | complex | np.complexfloating):
            return None
        return math.nan if item is None else float(item)
    except OverflowError:
        return math.copysign(math.inf, 1 if item is None or item > 0 else -1)
    except Exception:  # whatever the object's own methods raise
        return None


def as_vector(values: Any) -> Array | None:
    """Several numbers as an array, NaN where one is masked or None; bools are 0 and 1. None for what is no numbers."""
    try:
        array = np.asanyarray(values)
    except Exception:  # rows of different lengths, or torch's with a gradient, which can be a list
        try:
            array = np.asanyarray(values.tolist())
        except Exception:
            return None
    if array.dtype.kind == "O":
        found = [as_number(value) for value in array.flat]
        return None if None in found else np.array(found, np.float64).reshape(array.shape)
    if array.dtype.kind not in "iufb":
        return None
    return np.asarray(np.ma.filled(array.astype(np.float64), np.nan))


def as_value(value: Any) -> float:
    """The value of an evaluation; NaN for what stands for a failure: None, NaN, an infinity, and what is masked."""
    number = as_number(value)
    if number is None:
        hint = "tell a float, or None if the evaluation failed"
        if is_several(value):
            hint = "there is one objective only, and measured constraints are (value, {name: number})"
        sentence = f"the value {short(value)} is not a number: {hint}"
        raise SeveralValues(sentence, value) if are_numbers(value) else InputError(sentence)
    return number + 0.0 if math.isfinite(number) else math.nan  # no -0


def is_several(value: Any) -> bool:
    """Whether it is a list, an array or the like of more than one thing."""
    try:
        return not isinstance(value, str | bytes | dict) and len(value) > 1
    except Exception:  # of objects without a length, and of numpy's single numbers
        return False


def are_numbers(value: Any) -> bool:
    """Whether it is two to eight numbers, in a dict perhaps: objectives, more likely than a mistake."""
    if not is_several(list(value.values()) if isinstance(value, dict) else value) or len(value) > 8:
        return False
    return None not in [as_number(part) for part in (value.values() if isinstance(value, dict) else value)]


def as_bool(value: Any) -> bool | None:
    """What counts as a bool anywhere: True or False of Python, or of numpy and the like, also as an array without axes.

    None for what is no bool.
    """
    if isinstance(value, bool):
        return value
    try:
        array = np.asanyarray(value)
        return None if array.ndim or array.dtype != np.bool_ or np.ma.is_masked(array) else bool(array)
    except Exception:  # whatever the object's own methods raise
        return None


def check_count(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """A whole number within these limits, as an int; a float such as 1e3 may be one."""
    number: float | None = as_number(value)
    if number is not None and isinstance(value, numbers.Integral):
        number = int(value)  # also beyond what floats can say
    if number is None or number % 1 != 0 or number < least or (most is not None and number > most):
        limits = f"{least} or more" if most is None else f"from {least} to {most}"
        raise InputError(f"{name}={short(value)} cannot be used: it must be a whole number, {limits}")
    return int(number)


def check_number(
    name: str, value: Any, *, least: float = -math.inf, most: float = math.inf, above: float = -math.inf
) -> float:
    """A finite number within these limits; `above` is a limit that does not belong."""
    number = as_number(value)
    if number is None or not (math.isfinite(number) and least <= number <= most and number > above):
        limits = [f"{least:g} or more"] * (least > -math.inf) + [f"above {above:g}"] * (above > -math.inf)
        limits += [f"at most {most:g}"] * (most < math.inf)
        raise InputError(f"{name}={short(value)} cannot be used: it must be {', '.join(['a number', *limits])}")
    return number


def check_bool(name: str, value: Any) -> bool:
    known = as_bool(value)
    if known is None:
        raise InputError(f"{name}={short(value)} cannot be used: it must be True or False")
    return known


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


def check_text(what: str, text: str) -> str:
    """A text that a file can hold: without lone surrogates, halves of characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"{what} {short(text)} cannot be used: it has a part that is no character") from None
    return text


class EvaluationFailed(Exception):
    """One line that says why; a run records it and goes on."""
