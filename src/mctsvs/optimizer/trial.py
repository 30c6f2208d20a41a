"""Trials: points to evaluate or evaluated, with all that is told of them, and the checks of what a user tells."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from reprlib import repr as short
from typing import Any

import numpy as np

from mctsvs.methods.history import EXTERNAL
from mctsvs.space import Space
from mctsvs.utils.formatting import printable
from mctsvs.utils.validation import Array, Indices, InputError, as_number, check_text

SHOWN = 6  # variables in the text of a trial


@dataclass(frozen=True)
class TrialDetails:
    """What is told of a trial beside its value; see `Trial`."""

    constraints: dict[str, float] | None = None
    noise: float | None = None
    attrs: dict[str, Any] = field(default_factory=dict)
    values: tuple[float, ...] | None = None

    @classmethod
    def of(
        cls,
        constraints: Any = None,
        noise: Any = None,
        attrs: Mapping[str, Any] | None = None,
        values: Sequence[float] | None = None,
    ) -> TrialDetails:
        """Of what a user has given, checked; the values of several objectives are checked already."""
        known = None if values is None else tuple(float(value) for value in values)
        return cls(as_constraints(constraints), as_noise(noise), as_attrs(attrs or {}), known)

    def __bool__(self) -> bool:
        return bool(self.constraints or self.noise is not None or self.attrs or self.values)

    @property
    def text(self) -> str:
        """As JSON: an unknown constraint is null."""
        known = {name: None if math.isnan(c) else c for name, c in (self.constraints or {}).items()}
        parts = {"constraints": known, "noise": self.noise, "attrs": self.attrs, "values": self.values}
        return json.dumps({name: part for name, part in parts.items() if part not in (None, {})})

    @classmethod
    def read(cls, text: str) -> TrialDetails:
        """Of the text; ValueError if it is none."""
        given = json.loads(text)
        if not isinstance(given, dict) or not set(given) <= {"constraints", "noise", "attrs", "values"}:
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
    """A point to evaluate, or evaluated; made by `Optimizer.ask` and `Optimizer.add`.

    Attributes:
        number: 0, 1, 2, ... in the order they were asked for.
        unit: (D,) the point in the unit cube, as methods see it; read-only.
        variables: Positions of the variables the method moved to make this point.
        space: The variables.
        value: None until told; NaN if the evaluation failed, or measured constraints alone, or with several objectives.
        values: Of several objectives, in their order; None until told, and where the evaluation failed.
        iteration: Of the method's choice of variables that this point belongs to; 0 for the initial design.
        source: "proposed" by the method, "enqueued" by the user, "imported" with its value, "default", "repeated" in a
            space without further points, "replicate" of the recommended point, or "explain" where it proves which
            variables act.
        message: Why the evaluation failed, where that is known.
        proposal_id: Number of the method's proposal; -1 for a point that is not the method's.
        purpose: What the method wants to learn from it, in words; empty where the method does not say.
        times: When it was asked for and told, and how long it took.
        constraints: Name -> measured value, at most 0 where it holds (-inf too), NaN where not known; None: none told.
        noise: Standard deviation of the value's noise, where it was told.
        attrs: Notes of the user's, anything that JSON can say; stored when the trial is told.
        unmeasured: Whether it was told without constraints, before others that have some.
        asker: The thread that asked for it, by its number in the system; None for one that was read.

    Example:
        >>> (trial,) = opt.ask()
        >>> trial.x, trial.params
        >>> trial.attrs["mesh"] = 12
        >>> opt.tell(trial, f(trial.x))
    """

    number: int
    unit: Array
    variables: Indices
    space: Space
    value: float | None = None
    iteration: int = 0
    source: str = "proposed"
    message: str = ""
    proposal_id: int = EXTERNAL
    purpose: str = ""
    times: TrialTimes = field(default_factory=TrialTimes)
    constraints: dict[str, float] | None = None
    noise: float | None = None
    attrs: dict[str, Any] = field(default_factory=dict)
    unmeasured: bool = False
    asker: int | None = None
    values: tuple[float, ...] | None = None

    @property
    def x(self) -> Array:
        """The point as a vector, one entry per variable (a category as its index); a new array each time."""
        return self.space.decode(self.unit)

    @property
    def params(self) -> dict[str, Any]:
        """The point as a dict: name -> float, int or category, of the variables that exist there."""
        return self.space.params(self.unit)

    @property
    def argument(self) -> dict[str, Any] | Array:
        """What an objective is called with: `params` for a space with names, else `x`."""
        return self.params if self.space.named else self.x

    @property
    def has_value(self) -> bool:
        """Whether it was told with a number, or with one for each of several objectives."""
        return self.value is not None and (not math.isnan(self.value) or self.values is not None)

    @property
    def counts(self) -> bool:
        """Whether it was evaluated in this run: told, and not imported. A budget counts these."""
        return self.value is not None and self.source != "imported"

    @property
    def failed(self) -> bool:
        """Whether it was told, and nothing is known: neither the value nor any measured constraint."""
        known = self.has_value or not all(math.isnan(c) for c in (self.constraints or {}).values())
        return self.value is not None and not known

    @property
    def feasible(self) -> bool:
        """Whether it has not failed, and all constraints that the run measures, if any, are known to hold there."""
        known = self.value is not None and not self.failed and not self.unmeasured
        return known and all(c <= 0.0 for c in (self.constraints or {}).values())

    @property
    def details(self) -> TrialDetails:
        """What was told beside the value."""
        return TrialDetails(self.constraints, self.noise, self.attrs, self.values)

    def take(self, details: TrialDetails) -> None:
        """Keep what was told beside the value.

        Args:
            details: Checked already.
        """
        self.constraints, self.noise, self.attrs = details.constraints, details.noise, details.attrs
        self.values = details.values

    def __repr__(self) -> str:
        point = [f"{name}={f'{v:.6g}' if isinstance(v, float) else repr(v)}" for name, v in self.params.items()]
        more = ["..."] if len(point) > SHOWN else []
        value = "not told yet" if self.value is None else f"value {self.value:.6g}" if self.has_value else "failed"
        if self.values is not None:
            value = f"values {', '.join(f'{v:.6g}' for v in self.values)}"
        return printable(f"Trial({', '.join([str(self.number), *point[:SHOWN], *more, value])})")


@dataclass(frozen=True, eq=False)
class Recommendation:
    """The point of best expected value among those evaluated.

    Attributes:
        trial: Evaluated there first; its value may be a lucky or an unlucky one.
        mean: Of the objective there.
        sd: Standard deviation of the mean, without the noise of a single value.
        replicates: New evaluations of the point of which it is the mean. 0 where values are exact, and where a model
            says it, which is likely a little too good.
        freedom: Degrees of freedom of `sd`; infinite where the noise was given.

    Example:
        >>> chosen = opt.recommend()
        >>> chosen.x, chosen.mean, chosen.interval, chosen.trial.number
    """

    trial: Trial
    mean: float
    sd: float
    replicates: int = 0
    freedom: float = math.inf

    @classmethod
    def measured(cls, trial: Trial, fresh: Sequence[Trial], noise: float | None) -> Recommendation:
        """From new evaluations of the trial's point, which no choice depends on: their mean is unbiased."""
        values = np.array([t.value for t in fresh], dtype=np.float64)
        told = [noise if t.noise is None else t.noise for t in fresh]
        known = [sd for sd in told if sd is not None]
        if len(known) == len(told):
            return cls(trial, float(values.mean()), float(np.linalg.norm(known)) / len(values), len(values))
        sd = float(values.std(ddof=1)) / math.sqrt(len(values))
        return cls(trial, float(values.mean()), sd, len(values), len(values) - 1)

    @property
    def interval(self) -> tuple[float, float]:
        """Nine times in ten the mean of the objective there is in it."""
        from scipy.special import ndtri, stdtrit

        half = self.sd * float(ndtri(0.95) if math.isinf(self.freedom) else stdtrit(self.freedom, 0.95))
        return self.mean - half, self.mean + half

    @property
    def x(self) -> Array:
        """The point as a vector."""
        return self.trial.x

    @property
    def params(self) -> dict[str, Any]:
        """The point as a dict."""
        return self.trial.params

    def __repr__(self) -> str:
        return f"Recommendation(trial {self.trial.number}, {self})"

    def __str__(self) -> str:
        if not self.sd > 0.0:
            return f"{self.mean:.6g}"
        low, high = self.interval
        source = f"the mean of {self.replicates} new evaluations" if self.replicates else "by a model, likely too good"
        return f"{self.mean:.6g}, nine times in ten between {low:.6g} and {high:.6g} ({source})"


def split(result: Any) -> tuple[Any, Mapping[str, Any] | None]:
    """What an objective has returned: a value, or a value and a dict of measured constraints."""
    if isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], Mapping):
        return result
    return result, None


def unknown_constraint(given: Mapping[str, float] | None, names: Sequence[str]) -> str:
    """What is wrong where one of them is not among these names, of which there may be none yet; else empty."""
    unknown = [name for name in given or () if names and name not in names]
    return f"there is no constraint {unknown[0]!r}: the first trial that had any had {tuple(names)}" if unknown else ""


def with_all(details: TrialDetails, names: Sequence[str]) -> TrialDetails:
    """The same with all constraints of the run, those not given as unknown; an error if there is another one."""
    given = details.constraints
    if not given or not names or tuple(given) == tuple(names):
        return details
    if wrong := unknown_constraint(given, names):
        raise InputError(wrong)
    return replace(details, constraints={name: given.get(name, math.nan) for name in names})


def as_constraints(given: Any) -> dict[str, float] | None:
    """Name -> float, NaN for what is not known; None where there are none."""
    if given is None:
        return None
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise InputError(f"the constraints {short(given)} are no dict of name -> number, such as {{'stress': 0.3}}")
    numbers = {check_text("the constraint", name): as_number(c) for name, c in given.items()}
    for name, number in numbers.items():
        if number is None:
            raise InputError(
                f"the constraint {name!r} has the value {short(given[name])}, which is not a number: tell a float, or "
                f"None if it is not known"
            )
    return {name: number + 0.0 for name, number in numbers.items() if number is not None} or None  # no -0


def as_noise(given: Any) -> float | None:
    """A standard deviation."""
    if given is None:
        return None
    noise = as_number(given)
    if noise is None or not 0.0 <= noise < math.inf:
        raise InputError(f"noise={short(given)} cannot be used: it is a standard deviation, a number of at least 0")
    return noise


def as_attrs(given: Mapping[str, Any]) -> dict[str, Any]:
    """What JSON can say, as it will be read back."""
    try:
        text = json.dumps(dict(given), ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"the attributes of a trial cannot be stored: {error}") from None
    attrs: dict[str, Any] = json.loads(check_text("the attributes", text))
    return attrs
