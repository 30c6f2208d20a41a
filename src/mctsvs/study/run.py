"""The loop: ask, have evaluated, tell; in batches or as workers become free; nothing lost, nothing counted twice."""

from __future__ import annotations

import math
import numbers
import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mctsvs.common import InputError, check_count
from mctsvs.optimizer import Trial
from mctsvs.study.errors import StudyError
from mctsvs.study.workers import Crew, Here, Hired, Outcome, Processes, WorkerLost, one_line, tidy

if TYPE_CHECKING:
    from mctsvs.study.study import Study

STRIKES = 3  # workers a trial may cost before it is a failed one
LOST = ("KilledWorker", "WorkerCrashedError", "ActorDiedError", "NodeDiedError")  # in Dask and Ray, by name
NEGLIGIBLE = 0.01  # of an evaluation's time: less thinking than this, and no point is asked for ahead


@dataclass(frozen=True)
class Settings:
    """Arguments of `Study.optimize`."""

    budget: int
    executor: Executor | None = None
    workers: int | None = None
    asynchronous: bool = False
    timeout: float | None = None
    max_failures: int = 30
    callback: Callable[[Any, Trial], object] | None = None

    def __post_init__(self) -> None:
        check_count("budget", self.budget)
        check_count("max_failures", self.max_failures)
        if self.workers is not None:
            check_count("workers", self.workers)
        if self.executor is not None and not callable(getattr(self.executor, "submit", None)):
            raise InputError(f"executor={self.executor!r:.60} cannot be used: it must have a method submit")
        if self.timeout is not None:
            number = isinstance(self.timeout, numbers.Real) and not isinstance(self.timeout, bool)
            if not (number and 0 < self.timeout < math.inf):
                raise InputError(f"timeout={self.timeout!r} cannot be used: it must be a number of seconds above 0")

    def crew(self, f: Callable[[Any], Any]) -> Crew:
        if self.executor is not None:
            return Hired(f, self.executor, self.workers or capacity(self.executor))
        if self.workers is not None or self.timeout is not None or self.asynchronous:
            return Processes(f, self.workers or 1, self.timeout)
        return Here(f)


def capacity(executor: Any) -> int:
    """How many evaluations an executor does at once."""
    size = getattr(executor, "_max_workers", None) or getattr(executor, "num_workers", None)  # the latter: mpi4py
    client = getattr(executor, "_client", None)
    if size is None and client is not None:  # Dask's
        size = sum(client.nthreads().values())
    if not size:
        raise InputError("cannot tell how many workers the executor has: say it with workers=")
    return int(size)


def run(study: Study, f: Callable[[Any], Any], settings: Settings) -> None:
    """Evaluate until the study has as many evaluations as the budget says."""
    if not callable(f):
        raise InputError(f"the objective {f!r:.60} is not a function: give something that can be called with a point")
    if study.evaluated >= settings.budget:
        return
    crew = settings.crew(f)
    try:
        Run(study, settings, crew).go()
    finally:
        crew.dismiss()


class Run:
    """One call of `Study.optimize`."""

    def __init__(self, study: Study, settings: Settings, crew: Crew) -> None:
        self.study, self.settings, self.crew = study, settings, crew
        self.left = settings.budget - study.evaluated  # evaluations still to be told
        self.flying: dict[Future[Outcome], tuple[Trial, float]] = {}  # with the time they took off
        self.strikes: Counter[int] = Counter()
        self.failures = 0  # in a row
        self.thoughts: deque[float] = deque(maxlen=20)  # seconds of the last asks
        self.evaluating, self.landed = 0.0, 0  # seconds of all evaluations, and their number

    def go(self) -> None:
        try:
            if self.settings.asynchronous:
                self.asynchronous()
            else:
                self.synchronous()
        finally:
            for future in self.flying:
                future.cancel()

    def synchronous(self) -> None:
        """Batches; a value that comes early is stored, and told when those before it are there."""
        study = self.study
        while self.left:
            batch = study.pending[: self.left] or study.ask(min(self.crew.size, self.left))
            ahead = deque(trial for trial in batch if trial.number not in study.results)
            for trial in batch:
                while trial.number not in study.results and trial.value is None:
                    while ahead and len(self.flying) < self.crew.size:
                        self.launch(ahead.popleft())
                    for landed, outcome in self.land():
                        if landed.number == trial.number:
                            self.tell(trial, outcome.value, outcome.message)
                        else:
                            study.keep(landed, outcome.value, outcome.message)
                if trial.value is None:
                    self.tell(trial, *study.results[trial.number])

    def asynchronous(self) -> None:
        """Whoever is free gets a point at once; values are told as they come."""
        study = self.study
        for trial in study.pending:
            if trial.number in study.results and self.left:
                self.tell(trial, *study.results[trial.number])
        again = deque(study.pending)
        while self.left:
            room = len(self.flying) < min(self.crew.size + self.ahead(), self.left)
            for trial, outcome in self.land(block=not room):
                self.tell(trial, outcome.value, outcome.message)
            if len(self.flying) < min(self.crew.size + self.ahead(), self.left):
                self.launch(again.popleft() if again else self.ask())

    def ask(self) -> Trial:
        before = time.perf_counter()
        (trial,) = self.study.ask()
        self.thoughts.append(time.perf_counter() - before)
        return trial

    def ahead(self) -> int:
        """Points to have ready beyond one for each worker: as many as become free while the longest thought lasts."""
        if not (self.thoughts and self.landed) or (self.settings.timeout and self.settings.executor):
            return 0
        ratio = max(self.thoughts) / max(self.evaluating / self.landed, 1e-9)
        return 0 if ratio < NEGLIGIBLE else min(self.crew.size, 1 + math.ceil(ratio * self.crew.size))

    def launch(self, trial: Trial) -> None:
        try:
            future = self.crew.submit(trial.argument)
        except (BrokenExecutor, RuntimeError) as error:  # the latter: it was shut down
            raise self.broken(error) from None
        except Exception as error:
            raise self.unsent(trial, error) from None
        self.flying[future] = (trial, time.monotonic())

    def land(self, *, block: bool = True) -> list[tuple[Trial, Outcome]]:
        """Evaluations that have ended, in the order of the trials; at least one if `block`, unless it is repeated."""
        patience = self.patience() if block else 0.0
        done, _ = wait(self.flying, timeout=patience, return_when=FIRST_COMPLETED)
        landed = []
        for future in done:
            trial, _ = self.flying.pop(future)
            outcome = self.outcome(trial, future)
            if outcome is None:
                self.launch(trial)
            else:
                landed.append((trial, outcome))
                self.evaluating += outcome.seconds
                self.landed += 1
        landed += self.expired()
        return sorted(landed, key=lambda pair: pair[0].number)

    def patience(self) -> float | None:
        """Seconds to the first time-out; processes of our own keep it themselves."""
        if self.settings.timeout is None or self.settings.executor is None:
            return None
        first = min(since for _, since in self.flying.values())
        return max(0.0, first + self.settings.timeout - time.monotonic())

    def expired(self) -> list[tuple[Trial, Outcome]]:
        limit = self.settings.timeout
        if limit is None or self.settings.executor is None:
            return []
        now = time.monotonic()
        late = [future for future, (_, since) in self.flying.items() if now - since >= limit and not future.done()]
        gone = []
        for future in late:
            future.cancel()
            message = f"it took longer than the time-out of {limit:g} s"
            gone.append((self.flying.pop(future)[0], Outcome(math.nan, message, limit)))
        return gone

    def outcome(self, trial: Trial, future: Future[Outcome]) -> Outcome | None:
        """None: the worker died, try again."""
        try:
            return Outcome(*future.result())
        except BrokenExecutor as error:
            raise self.broken(error) from None
        except CancelledError as error:
            raise self.broken(error) from None
        except Exception as error:
            if not (isinstance(error, WorkerLost) or any(kind.__name__ in LOST for kind in type(error).__mro__)):
                raise self.unsent(trial, error) from None
            self.strikes[trial.number] += 1
            if self.strikes[trial.number] < STRIKES:
                return None
            return Outcome(
                math.nan, f"its worker died, {STRIKES} times: {tidy(str(error)) or type(error).__name__}", 0.0
            )

    def unsent(self, trial: Trial, error: BaseException) -> StudyError:
        return StudyError(
            f"trial {trial.number} could not be sent to a worker and back ({one_line(error)}): the function and what "
            f"it needs must be importable there; nothing is lost"
        )

    def broken(self, error: BaseException) -> StudyError:
        return StudyError(
            f"the executor has stopped working ({one_line(error)}): nothing is lost; make a new one and call optimize "
            f"again, or give workers= without an executor"
        )

    def tell(self, trial: Trial, value: float, message: str) -> None:
        study, settings = self.study, self.settings
        study.tell(trial, value, message)
        self.left -= 1
        self.failures = self.failures + 1 if math.isnan(value) else 0
        if settings.callback is not None:
            settings.callback(study, study.trials[trial.number])
        if self.failures >= settings.max_failures:
            raise StudyError(
                f"the last {self.failures} evaluations all failed, trial {trial.number} with: {message}. "
                f"All {study.evaluated} are stored: mend the function and call optimize again"
            )
