"""A run as it goes: its numbers, the log, and a view that draws when that is cheap enough.

Showing a run takes at most half a percent of its time, whatever the view: this module loads no plotting library, and a
drawing waits until the run has lasted 200 times as long as all drawings together.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol

from mctsvs.optimizer import Optimizer
from mctsvs.optimizer.active_variables import VariableStatuses
from mctsvs.optimizer.trial import Trial
from mctsvs.utils.formatting import clock


@dataclass
class RunStats:
    """How far a run has come.

    `steps` are the evaluations at which the best value changed, counted from 1, with the value from then on.
    """

    label: str
    direction: str
    budget: int
    evaluated: int = 0
    failed: int = 0
    steps: list[tuple[int, float]] = field(default_factory=list)
    trial: int = -1  # the number of the best one
    feasible: bool = True  # whether the best point satisfies the measured constraints
    phase: str = ""  # in the method's words
    explain: Callable[[], VariableStatuses] = VariableStatuses  # which variables act, when somebody looks
    seconds: float = 0.0  # since this process took up the run
    thinking: float = 0.0  # of them, in the method
    made: int = 0  # evaluations in these seconds
    found: list[str] = field(default_factory=list)  # what is known at the end, in words
    front: int | None = None  # points on it, where there are several objectives

    @property
    def best(self) -> float:
        """NaN while nothing has succeeded."""
        return self.steps[-1][1] if self.steps else math.nan

    @property
    def seconds_left(self) -> float | None:
        """At the pace so far; None before the first evaluation."""
        return self.seconds / self.made * (self.budget - self.evaluated) if self.made else None

    @property
    def share_thinking(self) -> float:
        return min(1.0, self.thinking / self.seconds) if self.seconds > 0.0 else 0.0

    def curve(self, columns: int) -> list[float]:
        """The best value after equal parts of the evaluations so far, NaN before the first success."""
        values, at = [], 0
        for column in range(1, columns + 1):
            upto = column * self.evaluated / columns
            while at < len(self.steps) and self.steps[at][0] <= upto:
                at += 1
            values.append(self.steps[at - 1][1] if at else math.nan)
        return values

    def line(self) -> str:
        """All that matters in one line."""
        parts = [f"{self.evaluated}/{self.budget}"]
        parts += [f"{self.failed} failed"] * bool(self.failed)
        best = "no value yet" if math.isnan(self.best) else f"best {self.best:.6g}"
        parts += [best if self.front is None else f"{self.front} on the front"]
        parts += ["not feasible"] * (not self.feasible)
        parts += [self.phase] * bool(self.phase)
        if self.evaluated < self.budget and self.seconds_left is not None:
            parts.append(f"{clock(self.seconds_left)} left")
        return ", ".join(parts)


SHARE = 0.005  # of a run's time: so much may showing it take


class TimeShare:
    """Work that together stays below a share of the time since the beginning: `permits` asks, `spending` counts.

    >>> if allowance.permits(0.01):
    ...     with allowance.spending():
    ...         draw()
    """

    def __init__(self, share: float = SHARE, now: Callable[[], float] = time.perf_counter) -> None:
        self.share, self.now = share, now
        self.began, self.spent, self.last = now(), 0.0, 0.0

    def permits(self, seconds: float) -> bool:
        """Whether work expected to take so long may be done now."""
        return self.spent + seconds <= self.share * (self.now() - self.began)

    @contextmanager
    def spending(self) -> Iterator[None]:
        started = self.now()
        yield
        self.last = self.now() - started
        self.spent += self.last


LOG = logging.getLogger("mctsvs")
LOG.addHandler(logging.NullHandler())  # silent unless the user's program sets logging up


class ProgressView(Protocol):
    """Somewhere a run is shown."""

    def begin(self, account: RunStats) -> None: ...

    def told(self, account: RunStats, due: bool) -> None:
        """After each evaluation; `due`: there is time to draw."""
        ...

    def end(self, account: RunStats) -> None: ...


class ProgressReporter:
    """Follows one run, from `begin` to `end`.

    >>> with ProgressReporter(view, "f") as reporter:
    ...     reporter.begin(optimizer, budget)
    ...     reporter.told(trial)                 # after each evaluation
    """

    def __init__(self, view: ProgressView | None = None, label: str = "") -> None:
        self.view, self.label = view, label
        self.optimizer: Optimizer | None = None
        self.account = RunStats(label, "", 0)
        self.allowance = TimeShare()
        self._best: Trial | None = None
        self._drawing = 0.002  # seconds that the last drawing took

    def begin(self, optimizer: Optimizer, budget: int, evaluated: int = 0) -> None:
        """The run of this optimizer, of which so many evaluations have been made."""
        opt = self.optimizer = optimizer
        label = self.label or f"{opt.method}, {len(opt.space)} variables"
        self.account = RunStats(label, opt.direction, budget, evaluated, phase=opt.describe())
        self.account.failed, self.account.explain = sum(t.failed and t.counts for t in opt.trials), opt.variables
        self.account.front = None if getattr(opt, "objectives", None) is None else len(opt.front)
        self.allowance = TimeShare()
        self._best = opt.best if opt.has_best else None
        if self._best is not None:
            self.account.steps = _steps(opt.trials, self._best, opt.direction)
            self.account.trial, self.account.feasible = self._best.number, self._best.feasible
        LOG.info(
            "begin: %s %d variables with %s, seed %s, %d of %d evaluations made",
            opt.direction, len(opt.space), opt.method, opt.seed, evaluated, budget,
        )  # fmt: skip
        if self.view is not None:
            self.view.begin(self.account)

    def told(self, trial: Trial) -> None:
        """An evaluation has been made, and its value told."""
        account, opt = self.account, self.optimizer
        assert opt is not None
        account.evaluated += 1
        account.made += 1
        account.failed += trial.failed
        account.seconds = time.perf_counter() - self.allowance.began
        account.thinking += trial.times.thinking
        self._log_trial(trial, opt)
        if self.view is None and not LOG.isEnabledFor(logging.INFO):
            return
        phase = opt.describe()
        if phase.partition(":")[0] != account.phase.partition(":")[0]:
            LOG.info("evaluation %d: %s", account.evaluated, phase)
        account.phase = phase
        if account.front is not None:
            account.front = len(opt.front)
        if self.view is not None:
            self._show(self.view)

    def _show(self, view: ProgressView) -> None:
        due = self.allowance.permits(self._drawing)
        with self.allowance.spending():
            view.told(self.account, due)
        if due:
            self._drawing = self.allowance.last

    def _log_trial(self, trial: Trial, opt: Optimizer) -> None:
        account = self.account
        if LOG.isEnabledFor(logging.DEBUG):
            moved = len(trial.variables)
            LOG.debug("trial %d: value %s, %d variables moved, %s", trial.number, trial.value, moved, trial.source)
        if trial.failed:
            LOG.warning("trial %d failed: %s", trial.number, trial.message or "no finite value")
        if opt.has_best and opt.best is not self._best:
            self._best = opt.best
            account.trial, account.feasible = self._best.number, self._best.feasible
            if self._best.has_value:
                value = float(self._best.value or 0.0)
                LOG.info("trial %d: best value %.6g", account.trial, value)
                account.steps.append((account.evaluated, value))

    def end(self) -> None:
        account = self.account
        if self.optimizer is None:
            return
        LOG.info(
            "end: %d of %d evaluations, %d failed, best value %.6g, %s, %.0f %% of it thinking",
            account.evaluated, account.budget, account.failed, account.best, clock(account.seconds),
            100 * account.share_thinking,
        )  # fmt: skip
        if self.view is not None:
            account.found = _found(self.optimizer)
            self.view.end(account)
        self.optimizer = None

    def __enter__(self) -> ProgressReporter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()


def _found(opt: Optimizer) -> list[str]:
    """Which variables act, and where values are noisy which point to take."""
    if not opt.has_best:
        return []
    chosen, variables = opt.recommend(), opt.variables()
    lucky = f"recommended: {chosen}, trial {chosen.trial.number}; the best value is a lucky one"
    return [lucky] * (chosen.sd > 0.0) + [variables.summary] * bool(variables.active)


def _steps(trials: list[Trial], best: Trial, direction: str) -> list[tuple[int, float]]:
    """Where the best value changed in trials that were there before; the last one is that of the best."""
    sign, steps = 1.0 if direction == "maximize" else -1.0, list[tuple[int, float]]()
    for count, trial in enumerate((t for t in trials if t.value is not None), 1):
        if trial.value is None or not trial.has_value or not (trial.feasible or trial is best):
            continue
        if not steps or sign * trial.value > sign * steps[-1][1]:
            steps.append((count, trial.value))
    return steps
