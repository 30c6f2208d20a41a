"""The loop: ask, have evaluated, tell; in batches or as workers become free; nothing lost, nothing counted twice."""

from __future__ import annotations

import math
import numbers
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, Protocol

from mctsvs.loop.evaluation import Evaluation
from mctsvs.loop.executors import InlinePool, WorkerPool, executor_pool
from mctsvs.loop.process_pool import ProcessPool
from mctsvs.loop.scheduler import Scheduler
from mctsvs.loop.stopping import Status, StoppingCriteria, StoppingMonitor, StopReason
from mctsvs.optimizer import Optimizer
from mctsvs.space.deduplicate import SpaceExhausted
from mctsvs.trial import Trial
from mctsvs.utils.validation import InputError, StudyError, check_count
from mctsvs.visualization.progress import ProgressReporter

DONE = StopReason(Status.DONE, "")
NEGLIGIBLE = 0.01  # of an evaluation's time: less thinking than this, and no point is asked for ahead


class Kept(Protocol):
    """What the loop needs of a study."""

    _stopping: threading.Event
    _stop_reason: StopReason

    @property
    def optimizer(self) -> Optimizer: ...

    @property
    def direction(self) -> str: ...

    @property
    def best(self) -> Trial: ...

    @property
    def has_best(self) -> bool: ...

    @property
    def trials(self) -> list[Trial]: ...

    @property
    def pending(self) -> list[Trial]: ...

    @property
    def evaluated(self) -> int: ...

    @property
    def _results(self) -> Mapping[int, tuple[float, str]]: ...

    @property
    def _strikes(self) -> Mapping[int, int]: ...

    def plan(self, budget: int) -> None: ...

    def ask(self, n: int = 1) -> list[Trial]: ...

    def tell(
        self,
        trial: Trial | int,
        value: float | None,
        message: str = "",
        *,
        constraints: Mapping[str, float] | None = None,
    ) -> None: ...

    def _keep(
        self,
        trial: Trial | int,
        value: float | None,
        message: str = "",
        *,
        constraints: Mapping[str, float] | None = None,
    ) -> None: ...

    def _strike(self, trial: Trial | int, message: str = "") -> int: ...


@dataclass(frozen=True)
class RunOptions:
    """Arguments of `Study.optimize`."""

    budget: int
    executor: Executor | None = None
    workers: int | None = None
    asynchronous: bool = False
    timeout: float | None = None
    limits: StoppingCriteria = field(default_factory=StoppingCriteria)
    callback: Callable[[Any, Trial], object] | None = None
    follower: ProgressReporter = field(default_factory=ProgressReporter)

    def __post_init__(self) -> None:
        check_count("budget", self.budget)
        if self.workers is not None:
            check_count("workers", self.workers)
        if self.executor is not None and not callable(getattr(self.executor, "submit", None)):
            raise InputError(f"executor={self.executor!r:.60} cannot be used: it must have a method submit")
        if self.timeout is not None:
            number = isinstance(self.timeout, numbers.Real) and not isinstance(self.timeout, bool)
            if not (number and 0 < self.timeout < math.inf):
                raise InputError(f"timeout={self.timeout!r} cannot be used: it must be a number of seconds above 0")

    def crew(self, f: Callable[[Any], Any]) -> WorkerPool:
        if self.executor is not None:
            return executor_pool(f, self.executor, self.workers)
        if self.workers is not None or self.timeout is not None or self.asynchronous:
            return ProcessPool(f, self.workers or 1, self.timeout)
        return InlinePool(f)


def run(study: Kept, f: Callable[[Any], Any], options: RunOptions) -> StopReason:
    """Evaluate until the study has as many evaluations as the budget says, or something else ends the run."""
    if not callable(f):
        raise InputError(f"the objective {f!r:.60} is not a function: give something that can be called with a point")
    watch = StoppingMonitor(options.limits, study.direction == "maximize", options.callback, study._stopping)
    watch.asked_to.clear()
    if study.evaluated >= options.budget or watch.look(study.best if study.has_best else None) is not None:
        return watch.ending or DONE
    crew = options.crew(f)
    flights = Scheduler(study, crew, options.timeout if crew.untimed else None)
    try:
        study.plan(options.budget)
        with options.follower as follower:
            follower.begin(study.optimizer, options.budget, study.evaluated)
            return Run(study, options, flights, watch).go()
    finally:
        flights.cancel()
        crew.dismiss()


class Run:
    """One call of `Study.optimize`."""

    def __init__(self, study: Kept, options: RunOptions, flights: Scheduler, watch: StoppingMonitor) -> None:
        self.study, self.options, self.flights, self.watch = study, options, flights, watch
        self.size = flights.crew.size
        self.left = options.budget - study.evaluated  # evaluations still to be told
        self.ending = DONE
        self.pace = Pace()

    def go(self) -> StopReason:
        if self.options.asynchronous:
            self.asynchronous()
        else:
            self.synchronous()
        return self.watch.ending or self.ending

    @property
    def over(self) -> bool:
        """Whether no evaluation is to begin any more; those under way are waited for."""
        return self.watch.look() is not None

    @property
    def quiet(self) -> bool:
        """Whether nothing is under way."""
        return not (self.flights.flying or self.flights.again)

    def synchronous(self) -> None:
        """Batches; a value that comes early is stored, and told when those before it are there."""
        study = self.study
        while self.left and not self.over:
            batch = study.pending[: self.left] or self.ask(min(self.size, self.left))
            ahead = deque(trial for trial in batch if trial.number not in study._results)
            for trial in batch:
                while trial.number not in study._results and trial.value is None:
                    while ahead and not self.over and self.flights.room(ahead[0], self.size):
                        self.flights.launch(ahead.popleft())
                    if self.over and self.quiet:
                        break  # it stays asked for, and is evaluated when the study goes on
                    for landed, evaluation in self.flights.land():
                        if landed.number == trial.number:
                            self.tell(trial, evaluation)
                        else:
                            value, message, _, constraints, _ = evaluation
                            study._keep(landed, value, message, constraints=constraints)
                if trial.value is None and trial.number in study._results:
                    self.tell(trial, Evaluation(*study._results[trial.number], 0.0))

    def asynchronous(self) -> None:
        """Whoever is free gets a point at once; values are told as they come."""
        study, flights = self.study, self.flights
        for trial in study.pending:
            if trial.number in study._results and self.left:
                self.tell(trial, Evaluation(*study._results[trial.number], 0.0))
        again = deque(study.pending)
        while self.left and not (self.over and self.quiet):
            room = not self.over and flights.room(again[0] if again else None, self.places())
            for trial, evaluation in flights.land(block=not room):
                self.pace.landed(evaluation)
                self.tell(trial, evaluation)
            if not self.over and flights.room(again[0] if again else None, self.places()):
                for trial in [again.popleft()] if again else self.ask(1):
                    flights.launch(trial)

    def places(self) -> int:
        ahead = 0 if self.flights.timeout else self.pace.ahead(self.size)
        return min(self.size + ahead, self.left)

    def ask(self, n: int) -> list[Trial]:
        """New trials; none if every point of the space is known: then those being evaluated are all that is left."""
        before = time.perf_counter()
        try:
            trials = self.study.ask(n)
        except SpaceExhausted as error:
            self.left = len(self.flights.flying) + len(self.flights.again)
            self.ending = StopReason(Status.EXHAUSTED, "every point of the space has been evaluated")
            warnings.warn(f"{error}; the run ends", RuntimeWarning, stacklevel=6)
            return []
        self.pace.thoughts.append(time.perf_counter() - before)
        return trials

    def tell(self, trial: Trial, evaluation: Evaluation) -> None:
        study = self.study
        value, message, _, constraints, _ = evaluation
        study.tell(trial, value, message, constraints=constraints)
        self.left -= 1
        self.options.follower.told(study.trials[trial.number])
        told = study.trials[trial.number]
        ending = self.watch.told(study, told, better=study.has_best and study.best.number == told.number)
        if ending is not None and ending.status is Status.FAILING:
            study._stop_reason = ending
            raise StudyError(
                f"the last {self.watch.failures} evaluations all failed, trial {trial.number} with: {message}. "
                f"All {study.evaluated} are stored: mend the function and call optimize again"
            )


class Pace:
    """How long thinking takes, and how long evaluating."""

    def __init__(self) -> None:
        self.thoughts: deque[float] = deque(maxlen=20)  # seconds of the last asks
        self.seconds, self.evaluations = 0.0, 0

    def landed(self, evaluation: Evaluation) -> None:
        self.seconds += evaluation.seconds
        self.evaluations += 1

    def ahead(self, size: int) -> int:
        """Points to have ready beyond one for each worker: as many as become free while the longest thought lasts."""
        if not (self.thoughts and self.evaluations):
            return 0
        ratio = max(self.thoughts) / max(self.seconds / self.evaluations, 1e-9)
        return 0 if ratio < NEGLIGIBLE else min(size, 1 + math.ceil(ratio * size))
