"""When a run ends before its budget, and what is said of it.

The clock only ever ends a run: it decides about nothing else, so that the same seed gives the same points.
"""

from __future__ import annotations

import builtins
import enum
import inspect
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mctsvs.optimizer.trial import Trial
from mctsvs.utils.validation import InputError, as_bool, check_count, check_number

Callback = Callable[..., object]
"""Of (optimizer or study, trial), or of a single argument as in scipy; see `bind_callback`."""


class StopStatus(enum.IntEnum):
    """Why a run ended; `Result.status`."""

    DONE = 0  # all evaluations of the budget
    STOPPED = 1  # by the callback, or by stop()
    INTERRUPTED = 2  # by Ctrl-C
    FAILING = 3  # too many failures in a row
    EXHAUSTED = 4  # no point is left: all of them were counted
    RAISED = 5  # the function raised
    TARGET = 6  # a value as good as was asked for
    TIME = 7  # no time is left
    PATIENCE = 8  # no better value for long
    NOT_FOUND = 9  # no further point was found, and nobody knows whether there is one


MISTAKES = (TypeError, NameError, KeyError, AttributeError, ImportError)
"""Errors that no other point will mend, if the program has never worked."""
ALIKE = 3  # equal ones end a run

SUCCESSFUL = (
    StopStatus.DONE,
    StopStatus.STOPPED,
    StopStatus.EXHAUSTED,
    StopStatus.TARGET,
    StopStatus.TIME,
    StopStatus.PATIENCE,
)
"""Ends that somebody has asked for."""


@dataclass(frozen=True)
class StopReason:
    """Why a run ends: a status, and the same in words."""

    status: StopStatus
    message: str


def counted(evaluations: int, budget: int) -> str:
    """How far a run came."""
    return f"{evaluations} evaluations" if evaluations == budget else f"{evaluations} of {budget} evaluations"


DONE = StopReason(StopStatus.DONE, "")
EXHAUSTED = StopReason(StopStatus.EXHAUSTED, "every point of the space has been evaluated")
CALLBACK = StopReason(StopStatus.STOPPED, "stopped by the callback")
STOP = StopReason(StopStatus.STOPPED, "stopped by stop()")
INTERRUPTED = StopReason(StopStatus.INTERRUPTED, "stopped by Ctrl-C")


@dataclass(frozen=True)
class StoppingCriteria:
    """What ends a run before its budget.

    Args:
        target: A value at least this good, of a feasible point.
        max_seconds: No evaluation begins later than so many seconds after the call.
        patience: So many evaluations in a row that were no better than the best before.
        max_failures: So many failed evaluations in a row; see `MISTAKES` for those that end it sooner.
    """

    target: float | None = None
    max_seconds: float | None = None
    patience: int | None = None
    max_failures: int = 30

    def __post_init__(self) -> None:
        if self.target is not None:
            object.__setattr__(self, "target", check_number("target", self.target))
        if self.max_seconds is not None:
            object.__setattr__(self, "max_seconds", check_number("max_seconds", self.max_seconds, above=0.0))
        if self.patience is not None:
            object.__setattr__(self, "patience", check_count("patience", self.patience))
        object.__setattr__(self, "max_failures", check_count("max_failures", self.max_failures))


@dataclass
class StoppingMonitor:
    """Is told of every evaluation of one run, and says when it ends."""

    criteria: StoppingCriteria
    direction: str
    callback: Callable[[Trial], bool] | None = None
    stop: threading.Event = field(default_factory=threading.Event)  # set from any thread
    worked: bool = False  # whether an evaluation has succeeded yet
    begun: float = field(default_factory=lambda: time.monotonic())
    idle: int = 0  # evaluations in a row that were no better
    failures: int = 0  # in a row
    mistake: str = ""  # the message of the last evaluation, if it was a mistake in the program
    alike: int = 0  # evaluations in a row with that message
    reason: StopReason | None = None  # once it is decided

    def look(self, best: Trial | None = None) -> StopReason | None:
        """Whether the run is to end now; `best` is the best trial of an earlier run."""
        seconds = self.criteria.max_seconds
        if self.reason is None and best is not None and self._reached(best):
            self.reason = StopReason(StopStatus.TARGET, f"the target {self.criteria.target:g} was reached before")
        if self.reason is None and self.stop.is_set():
            self.reason = STOP
        if self.reason is None and seconds is not None and time.monotonic() - self.begun >= seconds:
            self.reason = StopReason(StopStatus.TIME, f"{seconds:g} seconds were over")
        return self.reason

    def told(self, trial: Trial, *, better: bool) -> StopReason | None:
        """After the value of a trial; `better` if it is the best by now."""
        criteria = self.criteria
        self.idle = 0 if better else self.idle + 1
        self.failures = self.failures + 1 if trial.failed else 0
        self.worked |= not trial.failed
        mistake = "" if self.worked else _mistake(trial.message)
        self.alike = self.alike + 1 if mistake and mistake == self.mistake else bool(mistake)
        self.mistake = mistake
        found = self.look()
        if found is None and self.failures >= criteria.max_failures:
            found = StopReason(StopStatus.FAILING, f"the last {self.failures} evaluations all failed")
        if found is None and self.alike >= ALIKE:
            found = StopReason(StopStatus.FAILING, f"{self.alike} evaluations in a row failed by the same mistake")
        if found is None and better and self._reached(trial):
            found = StopReason(StopStatus.TARGET, f"the target {criteria.target:g} was reached")
        if found is None and criteria.patience is not None and self.idle >= criteria.patience:
            found = StopReason(StopStatus.PATIENCE, f"none of the last {self.idle} was better")
        stopped = self.callback is not None and self.callback(trial)
        self.reason = self.reason or found or (CALLBACK if stopped else None) or self.look()
        return self.reason

    def _reached(self, trial: Trial) -> bool:
        target, value = self.criteria.target, trial.value
        if target is None or value is None or not trial.has_value or not trial.feasible:
            return False
        return value >= target if self.direction == "maximize" else value <= target


class IntermediateResult(NamedTuple):
    """What a callback with the argument `intermediate_result` gets, as in scipy."""

    x: Any  # the best point so far
    fun: float  # its value
    nfev: int  # evaluations of this call so far


def _mistake(message: str) -> str:
    """The message if its error, which may have been raised in another process, is a mistake in the program."""
    error = getattr(builtins, message.partition(":")[0], None)
    return message if isinstance(error, type) and issubclass(error, MISTAKES) else ""


def bind_callback(callback: Any, owner: Any) -> Callable[[Trial], bool] | None:
    """The user's callback, or a list of them, as a function of the trial that says whether the run ends.

    A callback of two arguments gets `owner`, an Optimizer or a Study, and the trial. One of a single argument is
    called as scipy calls it: with the best point so far, or with an `IntermediateResult` if the argument is called
    `intermediate_result`.
    """
    if callback is None:
        return None
    if isinstance(callback, list | tuple):
        several = [bind_callback(each, owner) for each in callback]
        return lambda trial: sum(one(trial) for one in several if one is not None) > 0  # all are called
    if not callable(callback):
        raise InputError(f"callback={callback!r:.60} cannot be used: give a function (optimizer, trial), or a list")
    arguments = _arguments(callback)
    if not 1 <= len(arguments) <= 2:
        raise InputError(f"callback={callback!r:.60} takes {len(arguments)} arguments: it must take (optimizer, trial)")
    before = owner.evaluated  # in earlier calls

    def call(trial: Trial) -> object:
        if len(arguments) != 1:
            return callback(owner, trial)
        best = owner.best if owner.has_best else trial
        if arguments == ["intermediate_result"]:
            done = IntermediateResult(best.argument, float(best.value or 0.0), owner.evaluated - before)
            return callback(intermediate_result=done)
        return callback(best.argument)

    def bound(trial: Trial) -> bool:
        try:
            return as_bool(call(trial)) is True
        except StopIteration:
            return True

    return bound


def _arguments(callback: Callable[..., object]) -> list[str]:
    """Names of the arguments that must be given by position; two where nobody can tell."""
    try:
        parameters = inspect.signature(callback).parameters.values()
    except (TypeError, ValueError):
        return ["owner", "trial"]
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return ["owner", "trial"]
    if [p.name for p in parameters] == ["intermediate_result"]:
        return ["intermediate_result"]
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and p.default is p.empty:
            raise InputError(f"callback={callback!r:.60} needs the keyword {p.name!r}: it must take (optimizer, trial)")
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = [p.name for p in positional if p.default is p.empty]
    return needed if len(positional) < 2 or len(needed) == 1 else [p.name for p in positional]
