"""The loop that every run goes through: ask, have evaluated, tell, and stop when something says so.

`minimize`, `Study.optimize`, the command line and comparisons differ in who keeps the trials (`AskTell`) and who
evaluates them (`WorkerPool`), and in nothing else. No evaluation is lost, and none is counted twice.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Any, Protocol

from mctsvs.loop.evaluation import Evaluation
from mctsvs.loop.executors import InlinePool, WorkerPool, executor_pool
from mctsvs.loop.scheduler import Scheduler
from mctsvs.loop.stopping import (
    DONE,
    EXHAUSTED,
    StoppingCriteria,
    StoppingMonitor,
    StopReason,
    StopStatus,
    bind_callback,
)
from mctsvs.objectives.call_style import call_style
from mctsvs.optimizer import Optimizer
from mctsvs.optimizer.objectives import Objectives, Returned
from mctsvs.optimizer.trial import Trial
from mctsvs.space.deduplicate import NothingFound, SpaceExhausted
from mctsvs.utils.validation import InputError, check_bool, check_count, check_number
from mctsvs.visualization.progress import ProgressReporter

NEGLIGIBLE = 0.01  # of an evaluation's time: less thinking than this, and no point is asked for ahead


class AskTell(Protocol):
    """Whoever keeps the trials: an optimizer in memory, or a study on disk.

    `early` holds values that came before their turn, `deaths` the workers that a trial has cost so far.
    """

    @property
    def early(self) -> Mapping[int, Evaluation]: ...

    @property
    def deaths(self) -> Mapping[int, int]: ...

    @property
    def optimizer(self) -> Any:
        """Decides what to evaluate."""
        ...

    @property
    def pending(self) -> list[Any]:
        """Trials asked for and not yet told."""
        ...

    def plan(self, budget: int) -> None: ...

    def ask(self, n: int) -> list[Any]: ...

    def tell(self, trial: Any, evaluation: Evaluation) -> tuple[Any, bool]:
        """The trial as it is kept, and whether it is the best one by now."""
        ...

    def keep(self, trial: Any, evaluation: Evaluation) -> None:
        """Keep a value that the method is told later, in the order of the trials."""
        ...

    def record_death(self, trial: Any, message: str) -> int:
        """A worker died over the trial; how many it has cost by now."""
        ...


class InMemory:
    """The trials of an optimizer: nothing outlives the process."""

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        self.early: dict[int, Evaluation] = {}
        self.deaths = Counter[int]()

    @property
    def pending(self) -> list[Trial]:
        return self.optimizer.pending

    def plan(self, budget: int) -> None:
        if self.optimizer.budget != budget:
            self.optimizer.plan(budget)

    def ask(self, n: int) -> list[Trial]:
        return self.optimizer.ask(n)

    def tell(self, trial: Trial, evaluation: Evaluation) -> tuple[Trial, bool]:
        opt = self.optimizer
        evaluation = evaluation.fitting(opt._core.trials.names)
        opt.tell(trial, evaluation.told, evaluation.message, constraints=evaluation.constraints)
        return trial, opt._core.trials.leads(trial)

    def keep(self, trial: Trial, evaluation: Evaluation) -> None:
        self.early[trial.number] = evaluation

    def record_death(self, trial: Trial, message: str) -> int:
        self.deaths[trial.number] += 1
        return self.deaths[trial.number]


@dataclass(frozen=True)
class Workers:
    """Who evaluates: this process (the default), processes of this machine, or an executor.

    Args:
        workers: Evaluations at once.
        executor: A `concurrent.futures.Executor`; without one, processes of this machine are started.
        asynchronous: A free worker gets a point at once, in place of batches told in their order.
        timeout: Seconds for one evaluation.
        catch: Exceptions of the function that make a failed evaluation; others end the run.
    """

    workers: int | None = None
    executor: Executor | None = None
    asynchronous: bool = False
    timeout: float | None = None
    catch: tuple[type[BaseException], ...] = (Exception, SystemExit)

    def __post_init__(self) -> None:
        if self.workers is not None:
            object.__setattr__(self, "workers", check_count("workers", self.workers))
        if self.executor is not None and not callable(getattr(self.executor, "submit", None)):
            raise InputError(f"executor={self.executor!r:.60} cannot be used: it must have a method submit")
        check_bool("asynchronous", self.asynchronous)
        if self.timeout is not None:
            object.__setattr__(self, "timeout", check_number("timeout", self.timeout, above=0.0))

    @property
    def here(self) -> bool:
        """Whether points are evaluated in this process, one after the other."""
        return self.executor is None and self.workers is None and self.timeout is None and not self.asynchronous

    def pool(self, f: Callable[[Any], Any], seed: int) -> WorkerPool:
        if self.here:
            return InlinePool(f, self.catch)
        if self.executor is not None:
            return executor_pool(f, self.executor, self.workers, seed)
        from mctsvs.loop.process_pool import ProcessPool  # multiprocessing, which few runs need

        return ProcessPool(f, self.workers or 1, self.timeout, seed)


HERE = Workers()


@dataclass
class Run:
    """One run of the loop, until `left` evaluations were told or the monitor ends it.

    Args:
        trials: Who keeps the trials.
        left: Evaluations still to be made.
        monitor: What ends the run before that.
        workers: Who evaluates.
        argument: What the function gets of a trial.
        told: Called with each trial after its value was told.
        first: Whether nothing has been evaluated yet. A function that then returns no value ends the run.
        seed: Of the random numbers of functions that other processes evaluate.
        complete: Whether other threads have told all that is left.
    """

    trials: AskTell
    left: int
    monitor: StoppingMonitor
    workers: Workers = HERE
    argument: Callable[[Any], Any] = attrgetter("argument")
    told: Callable[[Any], object] = lambda trial: None
    first: bool = False
    seed: int = 0
    complete: Callable[[], bool] = lambda: False
    reason: StopReason = DONE
    pace: Pace = field(default_factory=lambda: Pace())

    def __call__(self, f: Callable[[Any], Any]) -> StopReason:
        """Evaluate f; why the run ended."""
        if not callable(f):
            raise InputError(f"the objective {f!r:.60} is not a function: give something that can be called")
        pool = self.workers.pool(f, self.seed)
        timeout = self.workers.timeout if pool.untimed else None
        self.scheduler = Scheduler(self.trials, pool, timeout, self.argument)
        try:
            if self.workers.asynchronous:
                self._asynchronous()
            else:
                self._batches()
        finally:
            self.scheduler.cancel()
            pool.close()
        return self.monitor.reason or self.reason

    @property
    def _over(self) -> bool:
        """Whether no evaluation is to begin any more; those under way are waited for."""
        return self.complete() or self.monitor.look() is not None

    @property
    def _waiting(self) -> list[Any]:
        """Trials of an earlier run, and those that this thread has asked for; another thread tells its own."""
        return [t for t in self.trials.pending if t.asker in (None, threading.get_native_id())]

    def _batches(self) -> None:
        """Values are told in the order of the trials; one that comes early is kept until its turn."""
        trials, scheduler = self.trials, self.scheduler
        while self.left and not self._over:
            batch = self._waiting[: self.left] or self._ask(min(scheduler.pool.size, self.left))
            ahead = deque(trial for trial in batch if trial.number not in trials.early)
            for trial in batch:
                while trial.number not in trials.early and trial.value is None:
                    while ahead and not self._over and scheduler.has_room(ahead[0], scheduler.pool.size):
                        scheduler.submit(ahead.popleft())
                    if self._over and scheduler.idle:
                        break  # it stays asked for, and is evaluated when the run goes on
                    for done, evaluation in scheduler.collect():
                        if done.number == trial.number:
                            self._tell(trial, evaluation)
                        else:
                            trials.keep(done, evaluation)
                if trial.value is None and trial.number in trials.early:
                    self._tell(trial, trials.early[trial.number])

    def _asynchronous(self) -> None:
        """Whoever is free gets a point at once; values are told as they come."""
        trials, scheduler = self.trials, self.scheduler
        for trial in self._waiting:
            if trial.number in trials.early and self.left:
                self._tell(trial, trials.early[trial.number])
        again = deque(self._waiting)
        while self.left and not (self._over and scheduler.idle):
            room = not self._over and scheduler.has_room(again[0] if again else None, self._places())
            for trial, evaluation in scheduler.collect(block=not room):
                self.pace.evaluated(evaluation)
                self._tell(trial, evaluation)
            if not self._over and scheduler.has_room(again[0] if again else None, self._places()):
                for trial in [again.popleft()] if again else self._ask(1):
                    scheduler.submit(trial)

    def _places(self) -> int:
        size = self.scheduler.pool.size
        ahead = 0 if self.scheduler.timeout else self.pace.ahead(size)
        return min(size + ahead, self.left)

    def _ask(self, n: int) -> list[Any]:
        """New trials; none if every point of the space is known: then those being evaluated are all that is left."""
        before = time.perf_counter()
        try:
            asked = self.trials.ask(n)
        except SpaceExhausted as over:
            self.left = len(self.scheduler.running) + len(self.scheduler.again)
            self.reason = EXHAUSTED
            if isinstance(over, NothingFound):
                self.reason = StopReason(StopStatus.NOT_FOUND, str(over))
            return []
        self.pace.asked(time.perf_counter() - before)
        return asked

    def _tell(self, trial: Any, evaluation: Evaluation) -> None:
        if evaluation.refused and self.first:  # a mistake in the function, which is to be mended before it costs more
            raise InputError("; ".join(filter(None, (evaluation.message, evaluation.hint))))
        self.first = False
        trial, best = self.trials.tell(trial, evaluation)
        self.left -= 1
        self.told(trial)
        self.monitor.told(trial, better=best)


class Pace:
    """How long the method thinks, and how long an evaluation takes."""

    def __init__(self) -> None:
        self._thoughts: deque[float] = deque(maxlen=20)  # seconds of the last asks
        self._seconds, self._evaluations = 0.0, 0

    def asked(self, seconds: float) -> None:
        self._thoughts.append(seconds)

    def evaluated(self, evaluation: Evaluation) -> None:
        self._seconds += evaluation.seconds
        self._evaluations += 1

    def ahead(self, size: int) -> int:
        """Points to have ready beyond one for each worker: as many as become free while the longest thought lasts."""
        if not (self._thoughts and self._evaluations):
            return 0
        ratio = max(self._thoughts) / max(self._seconds / self._evaluations, 1e-9)
        return 0 if ratio < NEGLIGIBLE else min(size, 1 + math.ceil(ratio * size))


def run(
    trials: AskTell,
    owner: Any,
    f: Callable[[Any], Any],
    budget: int,
    criteria: StoppingCriteria,
    workers: Workers = HERE,
    *,
    callback: Any = None,
    progress: bool | ProgressReporter = False,
    stop: threading.Event | None = None,
) -> StopReason:
    """Evaluate f until `owner` has `budget` evaluations, those of earlier runs included; why the run ended.

    Args:
        trials: Who keeps the trials.
        owner: The Optimizer or Study that the user knows, and that callbacks get.
        f: The objective, called with `trial.argument`.
        budget: Evaluations in all; imported ones do not count.
        criteria: What ends the run before that.
        workers: Who evaluates.
        callback: The user's callback or callbacks.
        progress: Whether to show how far the run is, or who shows it.
        stop: An event that ends the run when it is set.
    """
    check_count("budget", budget)
    callback = bind_callback(callback, owner)
    monitor = StoppingMonitor(criteria, owner.direction, callback, stop or threading.Event(), owner.has_best)
    done = trials.optimizer.evaluated
    if done >= budget or monitor.look(owner.best if owner.has_best else None) is not None:
        return monitor.reason or DONE
    trials.plan(budget)
    argument = attrgetter("argument")
    if isinstance(f, OfTrial):
        argument = attrgetter("number", "argument")
    elif call_style(f, owner.space.names, named=owner.space.named) == "keywords":
        f, argument = partial(_with_keywords, f), attrgetter("params")
    objectives = getattr(owner, "objectives", None)
    if objectives is not None:
        f = partial(_of_several, f, objectives)
    with _reporter(progress) as reporter:
        reporter.begin(trials.optimizer, budget, done)
        return Run(
            trials,
            budget - done,
            monitor,
            workers,
            argument,
            reporter.told,
            first=done == 0,
            seed=owner.seed,
            complete=lambda: bool(trials.optimizer.evaluated >= budget),
        )(f)


class OfTrial:
    """An objective that is called with a trial's number beside its argument, as a tuple."""


def _with_keywords(f: Callable[..., Any], params: Mapping[str, Any]) -> Any:
    return f(**params)


def _of_several(f: Callable[..., Any], objectives: Objectives, argument: Any) -> Returned:
    return Returned(f(argument), objectives)


def _reporter(progress: bool | ProgressReporter) -> ProgressReporter:
    if isinstance(progress, ProgressReporter):
        return progress
    if not check_bool("progress", progress):
        return ProgressReporter()
    from mctsvs.visualization.terminal import choose_view  # rich is loaded where something is shown

    return ProgressReporter(choose_view())
