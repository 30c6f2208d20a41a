"""Trials: points to evaluate or evaluated, and the list of them with what waits and what is best."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mctsvs.common import Array, Indices, InputError
from mctsvs.history import ELSEWHERE
from mctsvs.space import Space


@dataclass(eq=False)
class Times:
    """When a trial was asked for and told, and what it took; None where nobody knows. No decision looks at it."""

    asked: float | None = None  # seconds since 1970
    told: float | None = None
    thinking: float = 0.0  # seconds of the method, for asking and telling
    evaluating: float | None = None  # seconds of the evaluation itself
    worker: str = ""  # who evaluated it

    @property
    def seconds(self) -> float | None:
        """Of the evaluation; of one that was asked for and told by hand, all between the two."""
        if self.evaluating is not None or self.asked is None or self.told is None:
            return self.evaluating
        return max(0.0, self.told - self.asked)


@dataclass(eq=False)
class Trial:
    """A point to evaluate, or evaluated.

    number      0, 1, 2, ... in the order they were asked for
    x           the point as a vector, one entry per variable (a category as its index)
    params      the same as a dict: name -> float, int or category
    variables   positions of the variables the method moved to make this point
    value       None until told; NaN if the evaluation failed
    iteration   of the method's choice of variables that this point belongs to; 0 for the initial design
    source      "proposed" by the method, "enqueued" by the user, or "imported" with its value
    message     why the evaluation failed, where that is known
    ticket      number of the method's proposal; -1 for a point that is not the method's
    purpose     what the method wants to learn from it, in words; empty where the method does not say
    times       when it was asked for and told, and how long it took
    """

    number: int
    unit: Array = field(repr=False)  # coordinates in the unit cube
    variables: Indices = field(repr=False)
    space: Space = field(repr=False)
    value: float | None = None
    iteration: int = 0
    source: str = "proposed"
    message: str = ""
    ticket: int = ELSEWHERE
    purpose: str = ""
    times: Times = field(default_factory=Times, repr=False)

    @property
    def x(self) -> Array:
        return self.space.decode(self.unit)

    @property
    def params(self) -> dict[str, Any]:
        return self.space.params(self.unit)

    @property
    def failed(self) -> bool:
        return self.value is not None and math.isnan(self.value)

    @property
    def argument(self) -> Any:
        """What an objective is called with: the dict for a space with names, else the vector."""
        return self.params if self.space.named else self.x


class Trials:
    """All trials in order, those that wait for their value, and the best one told."""

    def __init__(self, direction: str) -> None:
        self.sign = 1.0 if direction == "maximize" else -1.0
        self.trials: list[Trial] = []
        self.pending: dict[int, Trial] = {}
        self.best: Trial | None = None

    def add(self, trial: Trial) -> Trial:
        self.trials.append(trial)
        if trial.value is None:
            self.pending[trial.number] = trial
        return trial

    def tell(self, trial: Trial, value: float, message: str) -> None:
        trial.value, trial.message = value, message
        del self.pending[trial.number]
        self.rank(trial)

    def rank(self, trial: Trial) -> None:
        """The earlier of two equal trials stays the best."""
        if not trial.failed and (self.best is None or self.score(trial) > self.score(self.best)):
            self.best = trial

    def score(self, trial: Trial) -> float:
        """The value as something to be maximised."""
        assert trial.value is not None
        return self.sign * trial.value

    def waiting(self, trial: Trial | int) -> Trial:
        """The trial, given by itself or by its number, if it is still to be told; else an error that says why not."""
        number = trial.number if isinstance(trial, Trial) else trial
        if isinstance(number, bool) or not isinstance(number, numbers.Integral):
            raise InputError(f"cannot tell {trial!r}: give a Trial from ask() or its number")
        if not 0 <= number < len(self.trials):
            known_numbers = f"0 to {len(self.trials) - 1}" if self.trials else "none"
            raise InputError(f"trial {number} was never asked for: the numbers so far are {known_numbers}")
        known = self.trials[int(number)]
        if known.value is not None:
            raise InputError(f"trial {number} was told already, with value {known.value!r}: a trial is told once")
        if isinstance(trial, Trial) and trial is not known and not np.array_equal(trial.unit, known.unit):
            raise InputError(f"trial {number} belongs to another optimizer: tell it to the one that asked for it")
        return known


def as_value(value: Any) -> float:
    """A float; NaN for what stands for a failure (None, NaN, an infinity); an error for what is no number."""
    if value is None:
        return math.nan
    number = None
    if not isinstance(value, str | bytes | bool | complex):
        try:
            array = np.asarray(value)
            if array.size == 1 and array.dtype.kind in "iufO":
                number = float(array.item())
        except OverflowError:  # a whole number beyond all floats
            return math.nan
        except (TypeError, ValueError):
            pass
    if number is None:
        raise InputError(f"the value {value!r} is not a number: tell a float, or None if the evaluation failed")
    return number if math.isfinite(number) else math.nan
