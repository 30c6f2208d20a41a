"""Evaluations under way: sent, waited for, given up, and sent again when their worker has died."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from typing import Any, Protocol

from mctsvs.loop.evaluation import Evaluation, one_line
from mctsvs.loop.executors import LOOK, WorkerLost, WorkerPool, too_late
from mctsvs.utils.formatting import as_text, tidy
from mctsvs.utils.validation import StudyError

MOST_DEATHS = 3  # workers a trial may cost before it is a failed one
LOST = ("KilledWorker", "WorkerCrashedError", "ActorDiedError", "NodeDiedError")  # in Dask and Ray, by name
STUCK = 10.0  # times the time-out: so long the run waits for an executor whose workers are all occupied
DEAD = 60.0  # seconds: so long it waits for a cluster without workers


class DeathRecord(Protocol):
    """Where the deaths of workers are recorded."""

    @property
    def deaths(self) -> Mapping[int, int]: ...

    def record_death(self, trial: Any, message: str) -> int: ...


class Scheduler:
    """Trials that are being evaluated by a pool of workers.

    `timeout` is the seconds for an evaluation, if it is up to us to end it; they count from when it begins.
    """

    def __init__(
        self, record: DeathRecord, pool: WorkerPool, timeout: float | None, argument: Callable[[Any], Any]
    ) -> None:
        self.record, self.pool, self.timeout, self.argument = record, pool, timeout, argument
        self.running: dict[Future[Evaluation], Any] = {}
        self.begun: dict[Future[Evaluation], float] = {}  # when they were first seen to be evaluated
        self.abandoned: set[Future[Evaluation]] = set()  # too late, but their workers are still at it
        self.again: deque[Any] = deque()  # their workers have died
        self.progress = time.monotonic()  # when the pool last did something
        self.failure: StudyError | None = None  # the executor has broken

    def has_room(self, trial: Any, places: int) -> bool:
        """Whether one more can be sent; one that may break the executor, only alone, so that no other is blamed."""
        if self.again and trial not in self.again:
            return False
        if self.pool.fragile and self.running:
            suspects = self.record.deaths
            if any(t is not None and t.number in suspects for t in (trial, *self.running.values())):
                return False
        if self.timeout is not None:  # what waits for its turn would wait in vain behind those that nobody waits for
            places = min(places, self.pool.capacity() - sum(not future.done() for future in self.abandoned))
        return len(self.running) < places

    @property
    def idle(self) -> bool:
        """Whether nothing is being evaluated, or is to be evaluated again."""
        return not (self.running or self.again)

    def submit(self, trial: Any) -> None:
        if self.failure is not None:
            raise self.failure
        try:
            future = self.pool.submit(trial.number, self.argument(trial))
        except (BrokenExecutor, RuntimeError) as error:  # the latter: it was shut down
            raise _broken(error) from None
        except Exception as error:
            raise _unsent(trial, error) from None
        if not self.running:
            self.progress = time.monotonic()
        self.running[future] = trial

    def collect(self, *, block: bool = True) -> list[tuple[Any, Evaluation]]:
        """Evaluations that have ended, in the order of the trials; at least one if `block`, unless it is repeated."""
        if self.failure is not None:
            raise self.failure
        while self.again and self.has_room(self.again[0], self.pool.size):
            self.submit(self.again.popleft())
        finished = []
        done = self._wait() if block else {future for future in self.running if future.done()}
        while done:
            future = done.pop()
            trial = self.running.pop(future)
            self.begun.pop(future, None)
            evaluation = self._evaluation(trial, future)
            if evaluation is not None:
                trial.times.evaluating, trial.times.worker = evaluation.seconds, evaluation.worker
                finished.append((trial, evaluation))
            elif self.failure is None:
                self.again.append(trial)
            if self.failure is not None and not done:  # whatever else has ended, well or not, is known at once
                done = set(wait(self.running, timeout=LOOK).done)
        finished += self._late()
        return sorted(finished, key=lambda pair: pair[0].number)

    def _wait(self) -> set[Future[Evaluation]]:
        """Until an evaluation has ended, is too late, or has made room for another."""
        while True:
            patience = self._patience()
            watched = {*self.running, *self.abandoned}
            done = wait(watched, timeout=patience, return_when=FIRST_COMPLETED).done
            if not watched:
                time.sleep(patience or LOOK)
            freed = {future for future in self.abandoned if future.done()}
            self.abandoned -= freed
            if done:
                self.progress = time.monotonic()
                return set(done - freed)
            if self._deadline() <= time.monotonic():
                return set()
            self._check_alive()

    def _patience(self) -> float | None:
        """Seconds to wait before looking again."""
        if self.timeout is None:
            return LOOK if self.pool.watched else None
        look = min(LOOK, max(0.01, self.timeout / 20.0))
        return max(0.0, min(look, self._deadline() - time.monotonic()))

    def _deadline(self) -> float:
        """When the first of them is too late."""
        if self.timeout is None:
            return math.inf
        if self.pool.capacity() == 0:  # a cluster without workers evaluates nothing
            self.begun.clear()
        for future in self.running:
            if future not in self.begun and self.pool.started(future):
                self.begun[future] = time.monotonic()
        return min(self.begun.values(), default=math.inf) + self.timeout

    def _check_alive(self) -> None:
        """A pool that will never do anything again ends the run."""
        silent, capacity = time.monotonic() - self.progress, self.pool.capacity()
        if capacity == 0:
            if silent > DEAD:
                raise StudyError(
                    f"the cluster has had no workers for {DEAD:g} s: nothing is lost; start some, call optimize again"
                )
        elif self.timeout is None or self.begun:
            self.progress = time.monotonic()
        elif silent > STUCK * self.timeout:
            raise StudyError(
                f"none of the executor's {capacity} workers has become free within {STUCK * self.timeout:g} s, "
                f"{STUCK:g} times the time-out: they are at evaluations that do not end; nothing is lost, make a new "
                f"executor and call optimize again, or give workers= without one, whose processes can be ended"
            )

    def _late(self) -> list[tuple[Any, Evaluation]]:
        if self.timeout is None:
            return []
        now, gone = time.monotonic(), []
        for future, since in list(self.begun.items()):
            if now - since >= self.timeout and not future.done():
                future.cancel()
                del self.begun[future]
                self.progress = now
                if not future.done():
                    self.abandoned.add(future)
                gone.append((self.running.pop(future), too_late(self.timeout)))
        return gone

    def _evaluation(self, trial: Any, future: Future[Evaluation]) -> Evaluation | None:
        """None: the worker died, try again."""
        try:
            return Evaluation(*future.result())
        except CancelledError as error:
            self.failure = _broken(error)
            return None
        except BrokenExecutor as error:
            self.failure = _broken(error)
            return self._worker_died(trial, error)
        except StudyError as error:
            self.failure = error
            return None
        except Exception as error:
            if self.pool.inline:  # the function raised what is not to be caught
                raise
            if not (isinstance(error, WorkerLost) or any(kind.__name__ in LOST for kind in type(error).__mro__)):
                raise _unsent(trial, error) from None
            return self._worker_died(trial, error)

    def _worker_died(self, trial: Any, error: BaseException) -> Evaluation | None:
        why = tidy(as_text(error)) or type(error).__name__
        if self.record.record_death(trial, why) < MOST_DEATHS:
            return None
        return Evaluation(math.nan, f"its worker died, {MOST_DEATHS} times: {why}", 0.0)

    def cancel(self) -> None:
        for future in self.running:
            future.cancel()


def _unsent(trial: Any, error: BaseException) -> StudyError:
    return StudyError(
        f"trial {trial.number} could not be sent to a worker and back ({one_line(error)}): the function and what "
        f"it needs must be importable there; nothing is lost"
    )


def _broken(error: BaseException) -> StudyError:
    return StudyError(
        f"the executor has stopped working ({one_line(error)}): nothing is lost; make a new one and call optimize "
        f"again, or give workers= without an executor"
    )
