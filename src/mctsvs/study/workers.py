"""Who evaluates: this process, processes that can be ended, or an executor of the user's.

All have `size`, the number of evaluations at once, and `submit(argument)`, whose future gives an `Outcome`.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import pickle
import queue
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from concurrent.futures import Executor, Future
from multiprocessing.connection import Connection, wait
from types import FrameType
from typing import Any, NamedTuple, Protocol

from mctsvs.common import InputError
from mctsvs.optimizer import as_value

LONGEST = 500  # characters of a message
PATIENCE = 1.0  # seconds that a process has to end what it has started itself


class Outcome(NamedTuple):
    """Of one evaluation."""

    value: float  # NaN: it failed
    message: str  # why
    seconds: float  # it took


class HungUp(BaseException):
    """Raised in an evaluation that is to end; nothing that a function usually catches."""


class WorkerLost(Exception):
    """The process that was evaluating has died."""


def evaluate(f: Callable[[Any], Any], argument: Any) -> Outcome:
    """f(argument); whatever goes wrong in f is an outcome, in any process."""
    before = time.perf_counter()
    try:
        result = f(argument)
    except (Exception, SystemExit) as error:
        return Outcome(math.nan, one_line(error), time.perf_counter() - before)
    seconds = time.perf_counter() - before
    try:
        value = as_value(result)
    except InputError as error:
        return Outcome(math.nan, tidy(str(error)), seconds)
    return Outcome(value, tidy(f"the function returned {result!r:.80}") if math.isnan(value) else "", seconds)


def one_line(error: BaseException) -> str:
    """The error, and the place in the user's code that it comes from."""
    if type(error).__name__ == "EvaluationFailed":  # made for people: see `mctsvs.problems`
        return tidy(str(error))
    frames = traceback.extract_tb(error.__traceback__)[1:]
    place = f" ({os.path.basename(frames[-1].filename)}, line {frames[-1].lineno})" if frames else ""
    return tidy(f"{type(error).__name__}: {error}".removesuffix(": ")) + place


def tidy(text: str) -> str:
    text = " ".join(text.split()).encode("utf-8", "replace").decode()
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


class Crew(Protocol):
    size: int

    def submit(self, argument: Any) -> Future[Outcome]: ...

    def dismiss(self) -> None: ...


class Here:
    """Evaluates in this process, before `submit` returns."""

    size = 1

    def __init__(self, f: Callable[[Any], Any]) -> None:
        self.f = f

    def submit(self, argument: Any) -> Future[Outcome]:
        future: Future[Outcome] = Future()
        future.set_result(evaluate(self.f, argument))
        return future

    def dismiss(self) -> None:
        pass


class Hired:
    """Evaluates by an executor of the user's, which stays as it is."""

    def __init__(self, f: Callable[[Any], Any], executor: Executor, size: int) -> None:
        self.f, self.executor, self.size = f, executor, size
        # Dask takes equal calls for one: noise would go unseen, and a dead worker's trial would not be tried again
        dask = type(executor).__module__.partition(".")[0] == "distributed"
        self.options: dict[str, Any] = {"pure": False} if dask else {}

    def submit(self, argument: Any) -> Future[Outcome]:
        return self.executor.submit(evaluate, self.f, argument, **self.options)

    def dismiss(self) -> None:
        pass


class Processes:
    """Evaluates in processes of this machine, each looked after by a thread.

    One that takes longer than `timeout` seconds, or dies, is replaced; the others do not notice. They end with this
    process, however it ends. On Linux they are forked, so that any function will do; elsewhere it must be importable.
    """

    def __init__(self, f: Callable[[Any], Any], size: int, timeout: float | None = None) -> None:
        self.f, self.size, self.timeout = f, size, timeout
        self.context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
        if sys.platform != "linux":
            try:
                pickle.dumps(f)
            except Exception as error:
                raise InputError(
                    f"the function cannot be sent to other processes ({one_line(error)}): define it in a module"
                ) from None
        self.tasks: queue.SimpleQueue[tuple[Future[Outcome], Any] | None] = queue.SimpleQueue()
        self.starting = threading.Lock()  # no process may inherit the end of another's pipe
        self.dismissed = False
        self.running = [self._start() for _ in range(size)]
        self.threads = [threading.Thread(target=self._look_after, args=(i,), daemon=True) for i in range(size)]
        for thread in self.threads:
            thread.start()

    def submit(self, argument: Any) -> Future[Outcome]:
        future: Future[Outcome] = Future()
        self.tasks.put((future, argument))
        return future

    def dismiss(self) -> None:
        """End all processes, whatever they are doing."""
        with self.starting:
            self.dismissed = True
            _end([process for process, _ in self.running])
        for _ in self.threads:
            self.tasks.put(None)
        for thread in self.threads:
            thread.join()
        for process, connection in self.running:
            process.join()
            connection.close()

    def _start(self) -> tuple[Any, Connection]:
        with warnings.catch_warnings():
            # forking beside threads: ours wait in system calls, and the child touches nothing of theirs
            warnings.simplefilter("ignore", DeprecationWarning)
            ours, theirs = self.context.Pipe()
            process = self.context.Process(target=_work, args=(self.f, theirs), daemon=True)
            process.start()
            theirs.close()
            return process, ours

    def _replace(self, i: int) -> None:
        process, connection = self.running[i]
        _end([process])
        process.join()
        with self.starting:
            if not self.dismissed:
                connection.close()
                self.running[i] = self._start()

    def _look_after(self, i: int) -> None:
        while (task := self.tasks.get()) is not None:
            future, argument = task
            if self.dismissed or not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(self._evaluate(i, argument))
            except BaseException as error:
                future.set_exception(error)

    def _evaluate(self, i: int, argument: Any) -> Outcome:
        process, connection = self.running[i]
        try:
            connection.send(argument)
            ready = wait([connection, process.sentinel], self.timeout)
            if connection in ready or (ready and connection.poll()):
                outcome: Outcome = connection.recv()
                return outcome
        except (EOFError, OSError):
            ready = [process.sentinel]
        self._replace(i)
        if not ready:
            assert self.timeout is not None
            return Outcome(math.nan, f"it took longer than the time-out of {self.timeout:g} s", self.timeout)
        raise WorkerLost(f"the process ended with status {process.exitcode}")


def _work(f: Callable[[Any], Any], connection: Connection) -> None:
    """A process: evaluate what comes, until the parent has gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    try:
        if os.name == "posix":
            signal.signal(signal.SIGHUP, _hang_up)
        threading.Thread(target=_end_with_parent, daemon=True).start()
        while True:
            connection.send(evaluate(f, connection.recv()))
    except (EOFError, OSError, HungUp):
        os._exit(0)


def _hang_up(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # once is enough
    raise HungUp


def _end(processes: list[Any]) -> None:
    """End them: first with a word, on which `HungUp` is raised in the function, then by force.

    A function that has started a program so has the time to end it.
    """
    if os.name == "posix":
        for process in processes:
            if process.is_alive():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGHUP)
        alive = {process.sentinel for process in processes}
        last = time.monotonic() + PATIENCE
        while alive and (ended := wait(alive, max(0.0, last - time.monotonic()))):
            alive -= set(ended)
    for process in processes:
        process.kill()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    if os.name == "posix":
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGHUP)
        time.sleep(PATIENCE)
    os._exit(1)
