"""Which points of a space without any other are evaluated again, where values are noisy.

Those evaluated least often come first, so that all are about equally often; of these, feasible ones, then those of the
better mean. A point that has only ever failed is left alone.

Trials: points to evaluate or evaluated, and the list of them with what waits and what is best.
"""

from __future__ import annotations

import json
import math
import numbers
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mctsvs.methods.constraint_ranking import ConstraintRanking, feasible
from mctsvs.methods.history import ELSEWHERE
from mctsvs.space import Space
from mctsvs.utils.validation import LARGEST, Array, Indices, InputError


@dataclass
class PointStats:
    """What is known of one point."""

    unit: Array
    asked: int = 0
    failed: bool = False  # every time so far
    feasible: bool = False  # at least once
    values: int = 0
    total: float = 0.0  # of the values as something to be maximised

    def take(self, trial: Trial, score: float) -> None:
        self.asked += 1
        self.failed = trial.failed and (self.failed or self.asked == 1)
        if not math.isnan(score):
            self.feasible |= trial.feasible
            self.values, self.total = self.values + 1, self.total + score

    @property
    def order(self) -> tuple[int, bool, float]:
        """Smaller is earlier."""
        return self.asked, not self.feasible, -self.total / self.values if self.values else math.inf


def choose_replicates(
    trials: Iterable[Trial], n: int, *, key: Callable[[Array], int], score: Callable[[Trial], float]
) -> list[Array]:
    """The n points to evaluate next, of the unit cube; none where all have failed."""
    places: dict[int, PointStats] = {}
    for trial in trials:
        place = places.setdefault(key(trial.unit), PointStats(trial.unit))
        place.take(trial, math.nan if trial.value is None else score(trial))
    worthwhile = [place for place in places.values() if not place.failed]
    chosen = []
    for _ in range(n if worthwhile else 0):
        place = min(worthwhile, key=lambda place: place.order)  # the earliest of equal ones
        place.asked += 1
        chosen.append(place.unit.copy())
    return chosen


@dataclass(frozen=True)
class TrialDetails:
    """What is told of a trial beside its value; see `Trial`."""

    constraints: dict[str, float] | None = None
    noise: float | None = None
    attrs: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, constraints: Any = None, noise: Any = None, attrs: Mapping[str, Any] | None = None) -> TrialDetails:
        """Of what a user has given, checked."""
        return cls(as_constraints(constraints), as_noise(noise), as_attrs(attrs or {}))

    def __bool__(self) -> bool:
        return bool(self.constraints or self.noise is not None or self.attrs)

    @property
    def text(self) -> str:
        """As JSON: an unknown constraint is null."""
        known = {name: None if math.isnan(c) else c for name, c in (self.constraints or {}).items()}
        parts = {"constraints": known, "noise": self.noise, "attrs": self.attrs}
        return json.dumps({name: part for name, part in parts.items() if part not in (None, {})})

    @classmethod
    def read(cls, text: str) -> TrialDetails:
        """Of the text; ValueError if it is none."""
        given = json.loads(text)
        if not isinstance(given, dict) or not set(given) <= {"constraints", "noise", "attrs"}:
            raise ValueError("not the details of a trial")
        return cls.of(**given)


NOTHING = TrialDetails()


@dataclass(eq=False)
class TrialTimes:
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

    def pack(self, purpose: str) -> bytes:
        """As JSON, with what the trial was for; `asked` is kept elsewhere."""
        known = {"told": self.told, "thinking": round(self.thinking, 6), "evaluating": self.evaluating}
        parts = {**known, "worker": self.worker, "purpose": purpose}
        return json.dumps({name: part for name, part in parts.items() if part not in (None, "", 0.0)}).encode()

    def unpack(self, packed: bytes) -> str:
        """Take over what was packed; the purpose. ValueError if it is nothing of the kind."""
        given = json.loads(packed)
        kinds = {"told": float, "thinking": float, "evaluating": float, "worker": str, "purpose": str}
        if not isinstance(given, dict) or any(type(part) is not kinds.get(name) for name, part in given.items()):
            raise ValueError("not the times of a trial")
        purpose = str(given.pop("purpose", ""))
        for name, part in given.items():
            if isinstance(part, float) and not math.isfinite(part):
                raise ValueError("a time that is none")
            setattr(self, name, part)
        return purpose


@dataclass(eq=False)
class Trial:
    """A point to evaluate, or evaluated.

    number      0, 1, 2, ... in the order they were asked for
    x           the point as a vector, one entry per variable (a category as its index)
    params      the same as a dict: name -> float, int or category, of the variables that exist there
    variables   positions of the variables the method moved to make this point
    value       None until told; NaN if the evaluation failed, or measured constraints alone
    iteration   of the method's choice of variables that this point belongs to; 0 for the initial design
    source      "proposed" by the method, "enqueued" by the user, "imported" with its value, "default", or "repeated"
    message     why the evaluation failed, where that is known
    ticket      number of the method's proposal; -1 for a point that is not the method's
    purpose     what the method wants to learn from it, in words; empty where the method does not say
    times       when it was asked for and told, and how long it took
    constraints name -> measured value, at most 0 where it holds (-inf too), NaN where not known; None: none told
    noise       standard deviation of the value's noise, where it was told
    attrs       notes of the user's, anything that JSON can say; stored when the trial is told
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
    times: TrialTimes = field(default_factory=TrialTimes, repr=False)
    constraints: dict[str, float] | None = None
    noise: float | None = None
    attrs: dict[str, Any] = field(default_factory=dict)

    @property
    def x(self) -> Array:
        return self.space.decode(self.unit)

    @property
    def params(self) -> dict[str, Any]:
        return self.space.params(self.unit)

    @property
    def has_value(self) -> bool:
        """Whether it was told with a number."""
        return self.value is not None and not math.isnan(self.value)

    @property
    def failed(self) -> bool:
        """Whether it was told, and nothing is known: neither the value nor any measured constraint."""
        known = self.has_value or not all(math.isnan(c) for c in (self.constraints or {}).values())
        return self.value is not None and not known

    @property
    def feasible(self) -> bool:
        """Whether all measured constraints, if there are any, are known to hold."""
        return all(c <= 0.0 for c in (self.constraints or {}).values())

    @property
    def details(self) -> TrialDetails:
        return TrialDetails(self.constraints, self.noise, self.attrs)

    @property
    def argument(self) -> Any:
        """What an objective is called with: the dict for a space with names, else the vector."""
        return self.params if self.space.named else self.x


@dataclass(frozen=True, eq=False)
class Recommendation:
    """The point of best expected value among those evaluated.

    trial       evaluated there; its value may be a lucky or an unlucky one
    mean, sd    of the objective there, without the noise of a single value
    """

    trial: Trial
    mean: float
    sd: float

    @property
    def x(self) -> Array:
        return self.trial.x

    @property
    def params(self) -> dict[str, Any]:
        return self.trial.params

    def __repr__(self) -> str:
        return f"Recommendation(trial {self.trial.number}, {self.mean:.6g} ± {self.sd:.2g})"


class Trials:
    """All trials in order, those that wait for their value, and the best one told."""

    def __init__(self, direction: str) -> None:
        self.sign = 1.0 if direction == "maximize" else -1.0
        self.trials: list[Trial] = []
        self.pending: dict[int, Trial] = {}
        self.best: Trial | None = None
        self.names: tuple[str, ...] = ()  # of the measured constraints
        self.merit: ConstraintRanking | None = None  # from the first trial on that has any
        self.told: list[Trial] = []  # in the order of telling, from that trial on

    def add(self, trial: Trial) -> Trial:
        self.trials.append(trial)
        if trial.value is None:
            self.pending[trial.number] = trial
        return trial

    def check(self, details: TrialDetails) -> TrialDetails:
        """The same with all constraints, those not given as unknown; the first trial that has any fixes their names."""
        given = details.constraints
        if not given or not self.names or tuple(given) == self.names:
            return details
        for name in given:
            if name not in self.names:
                raise InputError(f"there is no constraint {name!r}: the first trial that had any had {self.names}")
        return replace(details, constraints={name: given.get(name, math.nan) for name in self.names})

    def tell(self, trial: Trial, value: float, message: str, details: TrialDetails) -> float:
        """Its merit: the value as something to be maximised, constraints taken into account."""
        details = self.check(details)
        trial.value, trial.message = value, message
        trial.constraints, trial.noise, trial.attrs = details.constraints, details.noise, details.attrs
        del self.pending[trial.number]
        return self.rank(trial)

    def rank(self, trial: Trial) -> float:
        """See whether it is the best: the earlier of two equal trials stays it. Its merit."""
        if self.merit is None and trial.constraints:
            self.names = tuple(trial.constraints)
            self.merit, self.best = ConstraintRanking(len(self.names)), None
        if self.merit is not None:
            return self._rank_by_merit(self.merit, trial)
        if trial.has_value and (self.best is None or self.score(trial) > self.score(self.best)):
            self.best = trial
        return self.score(trial)

    def _rank_by_merit(self, merit: ConstraintRanking, trial: Trial) -> float:
        row = self.row(trial)
        value = merit.add(self.score(trial), row)
        if math.isnan(value):
            return value
        self.told.append(trial)
        if row is None:  # a value alone: whether the constraints hold is not known
            trial.constraints = dict.fromkeys(self.names, math.nan)
        best = self.best if self.best is not None and self.best.feasible and self.best.has_value else None
        if trial.has_value and row is not None and feasible(row):
            if best is None or self.score(trial) > self.score(best):
                self.best = trial
        elif best is None:
            self.best = self.told[merit.least_violation()]
        return value

    def row(self, trial: Trial) -> Array | None:
        """(m,) the trial's constraints as a method gets them: NaN where unknown, finite where they are infinite."""
        given = trial.constraints
        if not given:
            return None
        return np.clip([given.get(name, math.nan) for name in self.names], -LARGEST, LARGEST)

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


def split(result: Any) -> tuple[Any, Mapping[str, Any] | None]:
    """What an objective has returned: a value, or a value and a dict of measured constraints."""
    if isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], Mapping):
        return result
    return result, None


def as_constraints(given: Any) -> dict[str, float] | None:
    """Name -> float, NaN for what is not known; None where there are none."""
    if given is None:
        return None
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise InputError(f"the constraints {given!r:.80} are no dict of name -> number, such as {{'stress': 0.3}}")
    numbers = {name: as_number(c) for name, c in given.items()}
    for name, number in numbers.items():
        if number is None:
            raise InputError(
                f"the constraint {name!r} has the value {given[name]!r:.60}, which is not a number: tell a float, or "
                f"None if it is not known"
            )
    return {name: number + 0.0 for name, number in numbers.items() if number is not None} or None  # no -0


def as_noise(given: Any) -> float | None:
    """A standard deviation."""
    if given is None:
        return None
    noise = as_number(given)
    if noise is None or not 0.0 <= noise < math.inf:
        raise InputError(f"noise={given!r} cannot be used: it is a standard deviation, a finite number of at least 0")
    return noise


def as_attrs(given: Mapping[str, Any]) -> dict[str, Any]:
    """What JSON can say, as it will be read back."""
    try:
        attrs: dict[str, Any] = json.loads(json.dumps(dict(given)))
    except (TypeError, ValueError) as error:
        raise InputError(f"the attributes of a trial cannot be stored: {error}") from None
    return attrs


def as_value(value: Any) -> float:
    """A float; NaN for what stands for a failure (None, NaN, an infinity); an error for what is no number."""
    number = as_number(value)
    if number is None:
        hint = "tell a float, or None if the evaluation failed"
        if isinstance(value, tuple | list) and len(value) > 1:
            hint = "there is one objective only, and measured constraints are (value, {name: number})"
        raise InputError(f"the value {value!r:.60} is not a number: {hint}")
    return number if math.isfinite(number) else math.nan


def as_number(value: Any) -> float | None:
    """A float, NaN for None, an infinity for what is beyond all floats; None for what is no number."""
    if value is None:
        return math.nan
    number = None
    if not isinstance(value, str | bytes | bool | complex):
        try:
            array = np.asarray(value)
            if array.size == 1 and array.dtype.kind in "iufO":
                number = float(array.item())
        except OverflowError:  # a whole number beyond all floats
            return math.inf if value > 0 else -math.inf
        except (TypeError, ValueError):
            pass
    return number
