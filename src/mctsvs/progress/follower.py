"""Follows a run: keeps its account, writes the log, and lets a view draw when that is cheap enough."""

from __future__ import annotations

import logging
from types import TracebackType
from typing import ClassVar, Protocol

from mctsvs.optimizer import Optimizer
from mctsvs.progress.account import Account, clock
from mctsvs.progress.allowance import Allowance
from mctsvs.trial import Trial

LOG = logging.getLogger("mctsvs")
LOG.addHandler(logging.NullHandler())  # silent unless the user's program sets logging up

SHOWN = 8  # variables with a bar
MODEL = 7e-5  # seconds, times the square of the points: what importance takes at most where a model has to be fitted
MOST_POINTS = 300  # of that model


class View(Protocol):
    """Somewhere a run is shown."""

    wants_importance: ClassVar[bool]

    def begin(self, account: Account) -> None: ...

    def told(self, account: Account, due: bool) -> None:
        """After each evaluation; `due`: there is time to draw."""
        ...

    def end(self, account: Account) -> None: ...


class Follower:
    """Of one run, from `begin` to `end`.

    >>> with Follower(view, "f") as follower:
    ...     follower.begin(optimizer, budget)
    ...     follower.told(trial)                 # after each evaluation
    """

    def __init__(self, view: View | None = None, label: str = "") -> None:
        self.view, self.label = view, label
        self.optimizer: Optimizer | None = None
        self.account = Account(label, "", 0)
        self.allowance = Allowance()
        self._best: Trial | None = None
        self._drawing = 0.002  # seconds that the last drawing took
        self._modelled = 0.0, 0  # seconds that importance took, and points then

    def begin(self, optimizer: Optimizer, budget: int, evaluated: int = 0) -> None:
        """The run of this optimizer, of which so many evaluations have been made."""
        opt = self.optimizer = optimizer
        label = self.label or f"{opt.method}, {len(opt.space)} variables"
        self.account = Account(label, opt.direction, budget, evaluated, phase=opt.describe())
        self.account.failed = sum(t.failed for t in opt.trials)
        self.allowance = Allowance()
        self._best = opt.best if opt.has_best else None
        if opt.has_best:
            self.account.steps = _steps(opt.trials, opt.direction)
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
        account.seconds, account.thinking = self.allowance.elapsed, account.thinking + trial.times.thinking
        self._log_trial(trial, opt)
        if self.view is None and not LOG.isEnabledFor(logging.INFO):
            return
        phase = opt.describe()
        if phase.partition(":")[0] != account.phase.partition(":")[0]:
            LOG.info("evaluation %d: %s", account.evaluated, phase)
        account.phase = phase
        if self.view is not None:
            self._show(self.view, opt)

    def _show(self, view: View, opt: Optimizer) -> None:
        due = self.allowance.permits(self._drawing)
        if due and view.wants_importance:
            self._weigh(opt)
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
            LOG.warning("evaluation %d failed: %s", account.evaluated, trial.message or "no finite value")
        if opt.has_best and opt.best is not self._best:
            self._best = opt.best
            account.feasible = self._best.feasible
            if self._best.has_value:
                value = float(self._best.value or 0.0)
                LOG.info("evaluation %d: best value %.6g", account.evaluated, value)
                account.steps.append((account.evaluated, value))

    def _weigh(self, opt: Optimizer) -> None:
        """Importance: at once where the method keeps it, else when a model of all variables is cheap enough."""
        with self.allowance.spending():
            known = opt.known_importance()
        if known is None:
            n = min(len(opt.trials), MOST_POINTS)
            seconds, points = self._modelled
            expected = 1.5 * seconds * (n / points) ** 2 if points else MODEL * n**2
            if not self.allowance.permits(expected):
                return
            with self.allowance.spending():
                known = opt.importance()
            self._modelled = (self.allowance.last, n) if any(known.values()) else (0.0, 0)
        self.account.importance = {name: known[name] for name in list(known)[:SHOWN]}

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
            self.view.end(account)
        self.optimizer = None

    def __enter__(self) -> Follower:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()


def _steps(trials: list[Trial], direction: str) -> list[tuple[int, float]]:
    """Where the best value changed in trials that were there before."""
    sign, steps = 1.0 if direction == "maximize" else -1.0, list[tuple[int, float]]()
    for number, trial in enumerate(trials, 1):
        if trial.value is None or not trial.has_value:
            continue
        if not steps or sign * trial.value > sign * steps[-1][1]:
            steps.append((number, trial.value))
    return steps
