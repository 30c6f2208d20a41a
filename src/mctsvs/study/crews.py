"""Who evaluates: this process, an executor of the user's, or (see `processes`) processes that can be ended."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

from mctsvs.common import InputError
from mctsvs.study.evaluation import Evaluation, evaluate


class WorkerLost(Exception):
    """The process that was evaluating has died."""


class Crew:
    """So many evaluations at once."""

    size = 1
    fragile = False  # the death of one worker ends all
    watched = False  # it may be gone for good without a word
    untimed = False  # somebody else must see to it that evaluations do not take too long

    def submit(self, number: int, argument: Any) -> Future[Evaluation]:
        """Have the trial of that number evaluated."""
        raise NotImplementedError

    def capacity(self) -> int:
        """How many can be evaluated at once, those included that nobody waits for any longer."""
        return self.size

    def started(self, future: Future[Evaluation]) -> bool:
        """Whether this is being evaluated, and is not waiting for its turn."""
        return True

    def dismiss(self) -> None:
        """Stop."""


class Here(Crew):
    """Evaluates in this process, before `submit` returns."""

    def __init__(self, f: Callable[[Any], Any]) -> None:
        self.f = f

    def submit(self, number: int, argument: Any) -> Future[Evaluation]:
        future: Future[Evaluation] = Future()
        future.set_result(evaluate(self.f, argument))
        return future


class Hired(Crew):
    """Evaluates by an executor of the user's, which stays as it is."""

    untimed = True

    def __init__(self, f: Callable[[Any], Any], executor: Executor, workers: int | None) -> None:
        self.f, self.executor = f, executor
        origin = type(executor).__module__.partition(".")[0]
        self.dask = getattr(executor, "_client", None) if origin == "distributed" else None
        self.watched = self.dask is not None
        self.fragile = not self.watched and type(executor).__name__ != "RayExecutor"
        # these futures say when they begin; others are taken to begin when sent
        self.tells = origin == "loky" or isinstance(executor, ThreadPoolExecutor | ProcessPoolExecutor)
        self.counted = time.monotonic(), self._count()
        if workers is None and not self.counted[1]:
            raise InputError("cannot tell how many workers the executor has: say it with workers=")
        self.size = workers or self.counted[1]

    def submit(self, number: int, argument: Any) -> Future[Evaluation]:
        # Dask takes equal calls for one: noise would go unseen, and a dead worker's trial would not be tried again
        options: dict[str, Any] = {} if self.dask is None else {"pure": False}
        return self.executor.submit(evaluate, self.f, argument, **options)

    def capacity(self) -> int:
        if self.dask is None:
            return self.counted[1] or self.size
        if time.monotonic() - self.counted[0] > 1.0:
            self.counted = time.monotonic(), self._count()
        return self.counted[1]

    def _count(self) -> int:
        """How many evaluations the executor does at once; 0 where it does not say, or has no workers."""
        if self.dask is not None:
            try:
                return int(sum(self.dask.nthreads().values()))
            except Exception:  # of many kinds: the scheduler cannot be reached
                return 0
        return int(getattr(self.executor, "_max_workers", 0) or getattr(self.executor, "num_workers", 0))  # mpi4py's

    def started(self, future: Future[Evaluation]) -> bool:
        return future.running() if self.tells else self.capacity() > 0


def too_late(timeout: float) -> Evaluation:
    return Evaluation(math.nan, f"it took longer than the time-out of {timeout:g} s", timeout)
