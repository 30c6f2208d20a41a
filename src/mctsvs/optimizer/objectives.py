"""Several objectives as a user declares them, and the check of what is told of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from reprlib import repr as short
from typing import Any

import numpy as np

from mctsvs.utils.formatting import listed, plural
from mctsvs.utils.validation import (
    LARGEST,
    Array,
    InputError,
    State,
    as_number,
    as_vector,
    check_choice,
    check_text,
    is_several,
)

DIRECTIONS = ("minimize", "maximize")
MOST = 8  # objectives
EXAMPLE = "['minimize', 'maximize']"


@dataclass(frozen=True)
class Objectives:
    """Two or more objectives.

    Attributes:
        directions: "minimize" or "maximize" of each.
        names: Of the objectives; f1, f2, ... where the user gave none.
        named: Whether the user gave names: then values may be told as a dict.
        reference: The point from which hypervolume is measured, in the user's units, where it was given.
    """

    directions: tuple[str, ...]
    names: tuple[str, ...]
    named: bool = False
    reference: tuple[float, ...] | None = None

    @classmethod
    def of(cls, directions: Any, objectives: Any, reference: Any = None) -> Objectives | None:
        """Of what a user has given, checked; None for one objective."""
        if directions is not None and objectives is not None:
            raise InputError("give either directions= or objectives=, which has names as well")
        named = objectives is not None
        names: tuple[str, ...] = ()
        if named:
            if not isinstance(objectives, Mapping) or not all(isinstance(name, str) for name in objectives):
                raise InputError(
                    f"objectives={short(objectives)} cannot be used: give a dict of name -> direction, such as "
                    f"{{'cost': 'minimize', 'lift': 'maximize'}}"
                )
            names = tuple(check_text("the objective", name) for name in objectives)
            directions = list(objectives.values())
        if directions is not None:
            if isinstance(directions, str) or not isinstance(directions, Sequence) or not 1 <= len(directions) <= MOST:
                raise InputError(
                    f"directions={short(directions)} cannot be used: give a list of at most {MOST}, such as {EXAMPLE}"
                )
            directions = tuple(check_choice("direction", direction, DIRECTIONS) for direction in directions)
        if directions is None or len(directions) == 1:
            if reference is not None:
                raise InputError("reference= is for several objectives: give directions= as well")
            if named:
                raise InputError(f"objectives={short(objectives)} has one objective only: return its value alone")
            return None
        made = cls(directions, names or tuple(f"f{i}" for i in range(1, len(directions) + 1)), named)
        return made if reference is None else made._measured_from(reference)

    def _measured_from(self, reference: Any) -> Objectives:
        try:
            values = self.values(reference)
        except InputError as error:
            raise InputError(f"reference={short(reference)} cannot be used: {error}") from None
        if values is None:
            raise InputError(f"reference={short(reference)} cannot be used: give a number for each objective")
        return Objectives(self.directions, self.names, self.named, values)

    def __len__(self) -> int:
        return len(self.directions)

    @property
    def signs(self) -> Array:
        """(M,) 1 for what is maximised, -1 for what is minimised."""
        return np.array([1.0 if direction == "maximize" else -1.0 for direction in self.directions])

    def scores(self, values: Array) -> Array:
        """(..., M) values as something to be maximised, cut to what sums of squares can hold."""
        return np.asarray(np.clip(self.signs * values, -LARGEST, LARGEST))

    @property
    def text(self) -> str:
        """In words: "minimize cost, maximize lift"."""
        return ", ".join(f"{direction} {name}" for direction, name in zip(self.directions, self.names, strict=True))

    def values(self, given: Any, *, failing: bool = False) -> tuple[float, ...] | None:
        """The values of an evaluation; None if it failed: None, or nothing but NaN and infinities.

        Where some are known and others are not, it is an error, or with `failing` a failure too.
        """
        if given is None or (not is_several(given) and not isinstance(given, Mapping) and _missing(given)):
            return None
        M, example = len(self), short([1.2, 3.4, 0.5, 2.0, 1.0, 4.0, 0.1, 7.0][: len(self)])
        if isinstance(given, Mapping):
            given = self._ordered(given)
        elif not isinstance(given, list | tuple | str | bytes) and (vector := as_vector(given)) is not None:
            given = vector.tolist() if vector.ndim == 1 else given
        if not isinstance(given, list | tuple):
            one = " is one value" if as_number(given) is not None else " are no list of numbers"
            raise InputError(f"{short(given)}{one}, and there are {M} objectives: give {M} values, such as {example}")
        if len(given) != M:
            raise InputError(
                f"{short(given)} has {plural(len(given), 'value')}, and there are {M} objectives "
                f"({listed(self.names)}): give one for each, such as {example}"
            )
        numbers = [as_number(value) for value in given]
        for name, value, number in zip(self.names, given, numbers, strict=True):
            if number is None:
                raise InputError(
                    f"the value {short(value)} of {name} is not a number: give {M} numbers, or None if the "
                    f"evaluation failed"
                )
        known = [number is not None and np.isfinite(number) for number in numbers]
        if not any(known) or (failing and not all(known)):
            return None
        if not all(known):
            lost = self.names[known.index(False)]
            raise InputError(
                f"{short(given)} has no finite value of {lost}: give all {M}, or None if the evaluation failed"
            )
        return tuple(float(number) + 0.0 for number in numbers if number is not None)  # no -0

    def _ordered(self, given: Mapping[Any, Any]) -> list[Any]:
        if not self.named:
            raise InputError(
                f"{short(given)} is a dict, and the objectives have no names: give a list of {len(self)} values, or "
                f"names with objectives={{'cost': 'minimize', 'lift': 'maximize'}}"
            )
        if set(given) != set(self.names):
            raise InputError(f"{short(given)} does not fit: it must have the objectives {listed(self.names)}")
        return [given[name] for name in self.names]

    def to_state(self) -> State:
        """As plain data, which `from_state` reads."""
        reference = None if self.reference is None else list(self.reference)
        return {"directions": list(self.directions), "names": list(self.names) * self.named, "reference": reference}

    @classmethod
    def from_state(cls, state: State) -> Objectives:
        """What was saved."""
        named = dict(zip(state["names"], state["directions"], strict=True)) if state["names"] else None
        made = cls.of(None if named else state["directions"], named, state["reference"])
        assert made is not None
        return made

    @property
    def arguments(self) -> dict[str, Any]:
        """As `Optimizer` takes them."""
        named = dict(zip(self.names, self.directions, strict=True)) if self.named else None
        return {"directions": None if named else self.directions, "objectives": named, "reference": self.reference}


@dataclass(frozen=True)
class Returned:
    """What a function of several objectives has returned, to be checked by whoever evaluates it."""

    result: Any
    objectives: Objectives


def _missing(given: Any) -> bool:
    """Whether it is a single NaN or infinity."""
    number = as_number(given)
    return number is not None and not np.isfinite(number)
