"""Evaluations in processes of this machine, which can be ended and may die."""

from __future__ import annotations

import ast
import contextlib
import errno
import inspect
import math
import multiprocessing
import os
import pickle
import queue
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from mctsvs.loop import worker_process
from mctsvs.loop.copied_generators import check_generators
from mctsvs.loop.evaluation import Evaluation, one_line
from mctsvs.loop.executors import WorkerLost, WorkerPool, too_late
from mctsvs.utils.validation import InputError, StudyError

STARTING = 120.0  # seconds that a process may take to begin


UNGUARDED = (
    "the worker processes cannot begin: they import the script that was started, so in it everything that runs must "
    'stand below `if __name__ == "__main__":`, and only definitions above; nothing was evaluated'
)


class WorkerProcess:
    """One process, and the end of the pipe to it."""

    def __init__(self, f: Callable[[Any], Any] | bytes, context: Any, seed: int | None) -> None:
        self.spawned = isinstance(f, bytes)
        with warnings.catch_warnings():
            # forking beside threads: ours wait in system calls, and the child touches nothing of theirs
            warnings.simplefilter("ignore", DeprecationWarning)
            self.connection: Connection
            try:
                self.connection, theirs = context.Pipe()
                arguments = (f, theirs, os.getpid(), seed)
                self.process = context.Process(target=worker_process.begin, args=arguments, daemon=True)
                with theirs, worker_process.held_back():
                    worker_process.started(self.process.start)
            except OSError as error:
                files = error.errno in (errno.EMFILE, errno.ENFILE)
                raise StudyError(
                    f"a worker process cannot be started ({error.strerror}): give a smaller workers=, or raise the "
                    f"limit of {'open files (ulimit -n)' if files else 'processes (ulimit -u)'}; nothing is lost"
                ) from None
        self.ready = False

    def greet(self) -> None:
        """Wait until it can evaluate."""
        if self.ready:
            return
        problem = None
        if wait([self.connection, self.process.sentinel], STARTING):
            with contextlib.suppress(EOFError, OSError):
                problem = self.connection.recv() if self.connection.poll() else None
        if problem is None and self.spawned:
            raise StudyError(UNGUARDED)
        if problem is None:
            self.end()
            raise StudyError(f"a worker process ended as it began, with status {self.process.exitcode}: try it again")
        if problem:
            raise InputError(
                f"the function cannot be used in other processes ({problem}): define it in a module that they can "
                f'import, or in the script above `if __name__ == "__main__":`'
            )
        self.ready = True

    def evaluate(self, number: int, argument: Any, timeout: float | None) -> Evaluation | None:
        """What came of it; None if it takes too long. The process is of no use after that, nor after `WorkerLost`."""
        last = math.inf if timeout is None else time.monotonic() + timeout
        try:
            self.connection.send((number, argument))
            while True:
                left = None if timeout is None else max(0.0, last - time.monotonic())
                ready = wait([self.connection, self.process.sentinel], left)
                if not ready:
                    return None
                if not self.connection.poll():
                    break
                answered, evaluation = self.connection.recv()
                if answered == number:
                    return Evaluation(*evaluation)
        except (EOFError, OSError):
            pass
        self.end()
        raise WorkerLost(f"the process ended with status {self.process.exitcode}")

    def end(self) -> None:
        end([self])

    def close(self) -> None:
        self.process.join()
        self.connection.close()


class ProcessPool(WorkerPool):
    """So many workers, each started and looked after by a thread.

    A thread that has never done anything else forks safely beside OpenMP: its threads belong to whichever thread has
    used them, and the child of any other thread begins with threads of its own.

    One that takes longer than `timeout` seconds, or dies, is replaced; the others do not notice. They, and all they
    start, end with this process, however it ends. On Linux they are forked, so that any function will do; elsewhere,
    or where `multiprocessing.set_start_method` was called for it, they are spawned, and it must be importable.
    """

    def __init__(
        self, f: Callable[[Any], Any], size: int, timeout: float | None = None, seed: int | None = None
    ) -> None:
        self.size, self.timeout, self.seed = size, timeout, seed
        method = multiprocessing.get_start_method(allow_none=True) or ("fork" if sys.platform == "linux" else "spawn")
        check_generators(f)
        self.context = multiprocessing.get_context("fork" if method == "fork" else "spawn")
        self.f = f if method == "fork" else _pickled(f)
        if method != "fork":
            _check_guarded()
        self.tasks: queue.SimpleQueue[tuple[Future[Evaluation], int, Any] | None] = queue.SimpleQueue()
        self.starting = threading.Lock()  # no process may inherit the end of another's pipe
        self.closed = False
        self.workers: dict[int, WorkerProcess] = {}
        self.threads: list[threading.Thread] = []
        ready = [Future[None]() for _ in range(size)]
        try:
            for i in range(size):
                thread = threading.Thread(target=self._look_after, args=(i, ready[i]), daemon=True)
                thread.start()
                self.threads.append(thread)
            for each in ready:
                each.result()
        except BaseException:
            self.close()
            raise

    def submit(self, number: int, argument: Any) -> Future[Evaluation]:
        future: Future[Evaluation] = Future()
        self.tasks.put((future, number, argument))
        return future

    def close(self) -> None:
        """End all processes, whatever they are doing."""
        with self.starting:
            self.closed = True
            end(list(self.workers.values()))
        for _ in self.threads:
            self.tasks.put(None)
        for thread in self.threads:
            thread.join()
        for worker in self.workers.values():
            worker.close()

    def _look_after(self, i: int, ready: Future[None]) -> None:
        try:
            self._start(i)
            self.workers[i].greet()
        except BaseException as error:
            ready.set_exception(error)
            return
        ready.set_result(None)
        while (task := self.tasks.get()) is not None:
            future, number, argument = task
            if self.closed or not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(self._evaluate(i, number, argument))
            except BaseException as error:
                future.set_exception(error)

    def _evaluate(self, i: int, number: int, argument: Any) -> Evaluation:
        worker = self.workers[i]
        worker.greet()
        try:
            evaluation = worker.evaluate(number, argument, self.timeout)
        except WorkerLost:
            self._start(i)
            raise
        if evaluation is None:
            self._start(i)
            assert self.timeout is not None
            return too_late(self.timeout)
        return evaluation

    def _start(self, i: int) -> None:
        """The worker, in place of one that is of no use any longer."""
        if i in self.workers:
            self.workers[i].end()
        with self.starting:
            if self.closed:
                return
            if i in self.workers:
                self.workers[i].close()
            self.workers[i] = WorkerProcess(self.f, self.context, self.seed)


def end(workers: Sequence[WorkerProcess]) -> None:
    """End them: first with a word, on which `HungUp` is raised in the function, then by force.

    A function that has started a program so has the time to end it.
    """
    processes = [worker.process for worker in workers]
    alive = {process.sentinel for process in processes if process.is_alive()}
    if os.name == "posix":
        for process in processes:
            _signal(process, signal.SIGTERM if worker_process.SUPERVISED else signal.SIGHUP)
        last = (
            time.monotonic()
            + worker_process.PATIENCE * (3.0 if worker_process.SUPERVISED else 1.0)
            + worker_process.GRACE
        )
        while alive and (ended := wait(alive, max(0.0, last - time.monotonic()))):
            alive -= set(ended)
    for process in processes:
        if os.name == "posix" and not worker_process.SUPERVISED:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.join()


def _signal(process: Any, number: int) -> None:
    if process.is_alive():
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)


def _check_guarded() -> None:
    """Spawned workers import the script: a call from its top level, outside of the usual `if`, each of them repeats."""
    frame = inspect.currentframe()
    while frame is not None and (frame.f_globals.get("__name__"), frame.f_code.co_name) != ("__main__", "<module>"):
        frame = frame.f_back
    if frame is None or "__file__" not in frame.f_globals:  # another thread's call, or a notebook's
        return
    if getattr(frame.f_globals.get("__spec__"), "name", "").endswith(".__main__"):  # of a package: it is not imported
        return
    try:
        body = ast.parse(Path(frame.f_globals["__file__"]).read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return
    calls = [node for node in body if node.lineno <= frame.f_lineno <= (node.end_lineno or 0)]
    if not any(isinstance(node, ast.If) and "__name__" in ast.dump(node.test) for node in calls):
        raise StudyError(UNGUARDED)


def _pickled(f: Callable[[Any], Any]) -> bytes:
    try:
        return pickle.dumps(f)
    except Exception as error:
        raise InputError(
            f"the function cannot be sent to other processes ({one_line(error)}): define it in a module"
        ) from None
