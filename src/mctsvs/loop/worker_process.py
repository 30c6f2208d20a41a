"""The other side of a worker: a process that evaluates what is sent to it, and leaves nothing behind.

On Linux two processes do this. The first evaluates nothing: it adopts whatever the second one starts, ends it all
when the second one ends or the run does, and learns from the system when the run is gone. So nothing outlives a run,
however it ends: neither a function that never lets Python's signal handlers run, nor programs it has put in the
background. Elsewhere a thread watches the run, and a process group is ended with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from types import FrameType
from typing import Any, TypeVar

from mctsvs.loop.evaluation import RandomStream, evaluate, one_line

PATIENCE = 1.0  # seconds that a function has to end what it has started itself
GRACE = 0.2  # seconds that what it has started has to end by itself
SUPERVISED = sys.platform == "linux"
PAUSES = (0.05, 0.2, 0.5, 1.0, 2.0)  # seconds before another attempt to start a process
DEATH_SIGNAL, ADOPT = 1, 36  # PR_SET_PDEATHSIG and PR_SET_CHILD_SUBREAPER of <sys/prctl.h>


T = TypeVar("T")


class Terminated(BaseException):
    """Raised in an evaluation that is to end; nothing that a function usually catches."""


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Start a process so that signals reach it only when it knows what to do with them."""
    if os.name != "posix":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def started(start: Callable[[], T]) -> T:
    """start(), which makes a process; tried again while the system has no room for one."""
    for pause in PAUSES:
        try:
            return start()
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.ENOMEM):
                raise
        time.sleep(pause)
    return start()


def begin(f: Callable[[Any], Any] | bytes, connection: Connection, run: int, seed: int | None) -> None:
    """Begin to work for the process `run`; f may be pickled. Trials have random numbers of their own with a seed."""
    threading.current_thread().name = "MainThread"  # a thread of the run has forked, and is the only one here
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the run's business
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    multiprocessing.current_process().daemon = False  # to us it is, but the function may start processes of its own
    if SUPERVISED:
        _supervise(f, connection, run, seed)
    if os.name == "posix":
        os.setpgid(0, 0)
    threading.Thread(target=_end_with_run, daemon=True).start()
    _work(f, connection, seed)


def _work(f: Callable[[Any], Any] | bytes, connection: Connection, seed: int | None) -> None:
    """Evaluate what comes, until there is nobody to answer to."""
    try:
        if os.name == "posix":
            signal.signal(signal.SIGHUP, _hang_up)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD})
        try:
            function = pickle.loads(f) if isinstance(f, bytes) else f
        except Exception as error:
            connection.send(one_line(error))
            os._exit(1)
        connection.send("")  # ready
        while True:
            number, argument = connection.recv()
            stream = None if seed is None else RandomStream(seed, number)
            connection.send((number, evaluate(function, argument, stream)))
    except (EOFError, OSError, Terminated):
        os._exit(0)


def _hang_up(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # once is enough
    raise Terminated


def _supervise(f: Callable[[Any], Any] | bytes, connection: Connection, run: int, seed: int | None) -> None:
    """Have the work done by a child; end it, and all that it has started, on SIGTERM or with the run."""
    awaited = {signal.SIGTERM, signal.SIGCHLD}
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    os.setsid()
    _control(ADOPT, 1)
    _control(DEATH_SIGNAL, signal.SIGTERM)
    here = os.getpid()
    worker = started(os.fork)
    if worker == 0:
        os.setpgid(0, 0)
        _control(DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() == here:
            _work(f, connection, seed)
        os._exit(1)
    connection.close()
    status: int | None = None
    while status is None and os.getppid() == run and signal.sigwait(awaited) == signal.SIGCHLD:
        status = _reap(worker)
    if status is None:
        os.kill(worker, signal.SIGHUP)
        status = _reap(worker, PATIENCE)
    if status is None:
        os.kill(worker, signal.SIGKILL)
        status = _reap(worker, PATIENCE)
    _end_all()
    _exit_like(status or 0)


def _control(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), 0, 0, 0)


def _reap(worker: int, seconds: float = 0.0) -> int | None:
    """The status of the worker if it ends within these seconds; others that have ended are gone then too."""
    last = time.monotonic() + seconds
    while True:
        try:
            ended, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return None
        if ended == worker:
            return status
        if ended == 0:
            left = last - time.monotonic()
            if left <= 0.0:
                return None
            signal.sigtimedwait({signal.SIGCHLD}, left)


def _end_all() -> None:
    """End every child; the children of a child that has ended are ours then."""
    begun = time.monotonic()
    while (seconds := time.monotonic() - begun) < 10.0 * PATIENCE:  # longer takes only what the system cannot end
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if ended == 0:
            for child in _children() if seconds >= GRACE else ():
                with contextlib.suppress(OSError):
                    os.kill(child, signal.SIGKILL)
            signal.sigtimedwait({signal.SIGCHLD}, GRACE / 10)


def _children() -> Iterator[int]:
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
            if int(file.read().rpartition(b")")[2].split()[1]) == os.getpid():
                yield int(name)


def _exit_like(status: int) -> None:
    """End as the worker has ended."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 1)


def _end_with_run() -> None:
    run = multiprocessing.parent_process()
    assert run is not None
    wait([run.sentinel])
    if os.name == "posix":
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGHUP)
        time.sleep(PATIENCE)
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
