"""When a run ends before its budget, and what is said of it.

The clock only ever ends a run: it decides about nothing else, so that the same seed gives the same points.
"""

from __future__ import annotations

import enum
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mctsvs.trial import Trial
from mctsvs.utils.validation import InputError, check_count, check_number


class Status(enum.IntEnum):
    """Why a run ended; `Result.status`."""

    DONE = 0  # all evaluations of the budget
    STOPPED = 1  # by the callback, or by stop()
    INTERRUPTED = 2  # by Ctrl-C
    FAILING = 3  # too many failures in a row
    EXHAUSTED = 4  # no point is left
    RAISED = 5  # the function raised
    TARGET = 6  # a value as good as was asked for
    TIME = 7  # no time is left
    PATIENCE = 8  # no better value for long


COMPLETE = (Status.DONE, Status.STOPPED, Status.EXHAUSTED, Status.TARGET, Status.TIME, Status.PATIENCE)
"""Ends that somebody has asked for."""


@dataclass(frozen=True)
class StopReason:
    """Why a run ends, in a word and in words."""

    status: Status
    message: str


def counted(evaluations: int, budget: int) -> str:
    """How far it came."""
    return f"{evaluations} evaluations" if evaluations == budget else f"{evaluations} of {budget} evaluations"


CALLBACK = StopReason(Status.STOPPED, "stopped by the callback")
STOP = StopReason(Status.STOPPED, "stopped by stop()")


@dataclass(frozen=True)
class StoppingCriteria:
    """target          a value at least this good, of a feasible point, ends the run
    max_seconds     no evaluation begins later than so many seconds after the call
    patience        so many evaluations in a row that were no better than the best before end the run
    max_failures    so many failures in a row end the run
    """

    target: float | None = None
    max_seconds: float | None = None
    patience: int | None = None
    max_failures: int = 30

    def __post_init__(self) -> None:
        if self.target is not None:
            check_number("target", self.target)
        if self.max_seconds is not None:
            check_number("max_seconds", self.max_seconds, above=0.0)
        if self.patience is not None:
            check_count("patience", self.patience)
        check_count("max_failures", self.max_failures)


@dataclass
class StoppingMonitor:
    """Of one run: told of every evaluation, it says whether that was the last."""

    limits: StoppingCriteria
    maximize: bool
    callback: Callable[[Any, Trial], object] | None = None
    asked_to: threading.Event = field(default_factory=threading.Event)  # somebody's wish to stop
    begun: float = field(default_factory=lambda: time.monotonic())
    idle: int = 0  # evaluations in a row that were no better
    failures: int = 0  # in a row
    ending: StopReason | None = None  # once it is decided

    def __post_init__(self) -> None:
        if self.callback is not None and not callable(self.callback):
            raise InputError(f"callback={self.callback!r:.60} cannot be used: it must be a function of two arguments")

    def look(self, best: Trial | None = None) -> StopReason | None:
        """Whether the run is to end now; `best` is the best trial of an earlier run."""
        seconds = self.limits.max_seconds
        if self.ending is None and best is not None and self._reached(best):
            self.ending = StopReason(Status.TARGET, f"the target {self.limits.target:g} was reached before")
        if self.ending is None and self.asked_to.is_set():
            self.ending = STOP
        if self.ending is None and seconds is not None and time.monotonic() - self.begun >= seconds:
            self.ending = StopReason(Status.TIME, f"{seconds:g} seconds were over")
        return self.ending

    def told(self, owner: Any, trial: Trial, *, better: bool) -> StopReason | None:
        """After a value: of `owner`, whom the callback gets; `better` if it is the best by now."""
        limits = self.limits
        self.idle = 0 if better else self.idle + 1
        self.failures = self.failures + 1 if trial.failed else 0
        found = self.look()
        if found is None and self.failures >= limits.max_failures:
            found = StopReason(Status.FAILING, "the last ones all did")
        if found is None and better and self._reached(trial):
            found = StopReason(Status.TARGET, f"the target {limits.target:g} was reached")
        if found is None and limits.patience is not None and self.idle >= limits.patience:
            found = StopReason(Status.PATIENCE, f"none of the last {self.idle} was better")
        stopped = self._stopped(owner, trial)
        self.ending = self.ending or found or (CALLBACK if stopped else None) or self.look()
        return self.ending

    def _reached(self, trial: Trial) -> bool:
        target, value = self.limits.target, trial.value
        if target is None or value is None or not trial.has_value or not trial.feasible:
            return False
        return value >= target if self.maximize else value <= target

    def _stopped(self, owner: Any, trial: Trial) -> bool:
        try:
            return self.callback is not None and self.callback(owner, trial) is True
        except StopIteration:
            return True
