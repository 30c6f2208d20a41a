"""Who evaluates: this process, an executor of the user's, or (see `processes`) processes that can be ended."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from mctsvs.loop.copied_generators import check_generators
from mctsvs.loop.evaluation import Evaluation, RandomStream, evaluate, process_name
from mctsvs.utils.validation import InputError

LOOK = 1.0  # seconds between two looks at a cluster
ELSEWHERE = ("concurrent.futures.process", "loky", "distributed", "mctsvs.integrations")  # their workers are processes


class WorkerLost(Exception):
    """The process that was evaluating has died."""


class WorkerPool:
    """So many evaluations at once."""

    size = 1
    fragile = False  # the death of one worker ends all
    watched = False  # it may be gone for good without a word
    untimed = False  # somebody else must see to it that evaluations do not take too long
    inline = False  # evaluations happen in `submit`, and exceptions are those of the function

    def submit(self, number: int, argument: Any) -> Future[Evaluation]:
        """Have the trial of that number evaluated."""
        raise NotImplementedError

    def capacity(self) -> int:
        """How many can be evaluated at once, those included that nobody waits for any longer."""
        return self.size

    def started(self, future: Future[Evaluation]) -> bool:
        """Whether this is being evaluated, and is not waiting for its turn."""
        return True

    def close(self) -> None:
        """End all that was started."""


class InlinePool(WorkerPool):
    """Evaluates in this process, before `submit` returns."""

    inline = True

    def __init__(self, f: Callable[[Any], Any], catch: tuple[type[BaseException], ...]) -> None:
        self.f, self.catch = f, catch

    def submit(self, number: int, argument: Any) -> Future[Evaluation]:
        future: Future[Evaluation] = Future()
        try:
            future.set_result(evaluate(self.f, argument, catch=self.catch))
        except Exception as error:
            future.set_exception(error)
        return future


class ExecutorPool(WorkerPool):
    """Evaluates by an executor of the user's, which stays as it is."""

    untimed = True

    def __init__(self, f: Callable[[Any], Any], executor: Executor, workers: int | None, seed: int) -> None:
        self.f, self.executor, self.seed = f, executor, seed
        self.fragile = type(executor).__name__ != "RayExecutor"
        # these futures say when they begin; others are taken to begin when sent
        known = ("concurrent.futures.thread", "concurrent.futures.process", "loky")  # by name, to load none of them
        self.tells = any(kind.__module__.startswith(known) for kind in type(executor).__mro__)
        if workers is None and not self.count():
            raise InputError("cannot tell how many workers the executor has: say it with workers=")
        self.size = workers or self.count()
        if any(kind.__module__.startswith(ELSEWHERE) for kind in type(executor).__mro__):
            check_generators(f)

    def submit(self, number: int, argument: Any) -> Future[Evaluation]:
        return self.executor.submit(evaluate, self.f, argument, self.stream(number))

    def stream(self, number: int) -> RandomStream:
        """The random numbers of that trial, where the executor has processes."""
        return RandomStream(self.seed, number, process_name())

    def count(self) -> int:
        """Workers of the executor; 0 where it does not say."""
        return int(getattr(self.executor, "_max_workers", 0) or getattr(self.executor, "num_workers", 0))  # mpi4py's

    def capacity(self) -> int:
        return self.count() or self.size

    def started(self, future: Future[Evaluation]) -> bool:
        return future.running() or not self.tells


class DaskPool(ExecutorPool):
    """Evaluates on the cluster of Dask's executor, but not through it.

    Its futures never end when a worker dies that has evaluated and not yet handed over. The death of a worker counts
    against all that the scheduler had given it.
    """

    watched = True

    def __init__(self, f: Callable[[Any], Any], executor: Any, workers: int | None, seed: int) -> None:
        self.client = executor._client
        self.counted = -LOOK, 0  # when, and how many
        super().__init__(f, executor, workers, seed)

    def submit(self, number: int, argument: Any) -> Future[Evaluation]:
        # Dask takes equal calls for one: noise would go unseen, and a dead worker's trial would not be tried again
        options = {**getattr(self.executor, "_kwargs", {}), "pure": False}
        task = self.client.submit(evaluate, self.f, argument, self.stream(number), **options)
        future: Future[Evaluation] = Future()
        future.add_done_callback(lambda future: task.cancel() if future.cancelled() else None)
        task.add_done_callback(lambda task: threading.Thread(target=_hand_over, args=(task, future)).start())
        return future

    def count(self) -> int:
        if time.monotonic() - self.counted[0] > LOOK:
            try:
                known = int(sum(self.client.nthreads().values()))
            except Exception:  # of many kinds: the scheduler cannot be reached
                known = 0
            self.counted = time.monotonic(), known
        return self.counted[1]

    def capacity(self) -> int:
        return self.count()

    def started(self, future: Future[Evaluation]) -> bool:
        return self.count() > 0


def _hand_over(task: Any, future: Future[Evaluation]) -> None:
    """What has come of one of Dask's tasks; to be evaluated again, it may be that it has to be waited for."""
    if task.status == "cancelled":
        future.cancel()
    if future.set_running_or_notify_cancel():
        try:
            future.set_result(task.result())
        except BaseException as error:
            future.set_exception(error)


def executor_pool(f: Callable[[Any], Any], executor: Executor, workers: int | None, seed: int) -> ExecutorPool:
    dask = type(executor).__module__.partition(".")[0] == "distributed" and hasattr(executor, "_client")
    return (DaskPool if dask else ExecutorPool)(f, executor, workers, seed)


def too_late(timeout: float) -> Evaluation:
    return Evaluation(math.nan, f"it took longer than the time-out of {timeout:g} s", timeout)
