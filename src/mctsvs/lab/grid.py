"""Many runs on worker processes: what is finished is never done again, what fails stops nobody else."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import mctsvs
from mctsvs.common import InputError
from mctsvs.lab.cases import Case
from mctsvs.lab.store import Job, Store, opened

LOG = "workers.log"


def jobs(
    problems: Iterable[str],
    cases: Sequence[Case],
    seeds: Sequence[int],
    budget: int,
    variation: Mapping[str, Any] | None = None,
    problem_seed: int | None = None,
) -> list[Job]:
    """The grid, a seed after the other, so that stopping early leaves all methods with the same seeds.

    The problem's own seed, which places what is shuffled or shifted, is the run's unless `problem_seed` is given.
    """
    names = list(problems)
    plain = dict(variation or {})
    moved = bool(plain.get("shuffle") or plain.get("shift"))

    def varied(seed: int) -> dict[str, Any]:
        own = seed if problem_seed is None else problem_seed
        return {**plain, "seed": own} if moved else plain

    return [Job(name, case, seed, budget, varied(seed)) for seed in seeds for name in names for case in cases]


@dataclass(frozen=True)
class Failure:
    """A run that could not be finished."""

    job: Job
    error: str


@dataclass
class Progress:
    """How far a grid has come; what a display needs."""

    total: int
    workers: int
    skipped: int = 0  # finished in an earlier call
    done: int = 0
    failures: list[Failure] = field(default_factory=list)
    best: dict[str, tuple[float, Job]] = field(default_factory=dict)  # by problem
    running: dict[int, tuple[Job, int]] = field(default_factory=dict)  # worker -> its job, evaluations so far
    spent: dict[tuple[str, str], list[float]] = field(default_factory=dict)  # seconds of finished runs
    waiting: deque[Job] = field(default_factory=deque)
    versions: set[str] = field(default_factory=set)  # of the library that did the runs

    @property
    def finished(self) -> int:
        return self.skipped + self.done + len(self.failures)

    def seconds_left(self) -> float | None:
        """From the mean of finished runs of the same problem and method, else of all; None: nothing to go by."""
        everything = [second for group in self.spent.values() for second in group]
        if not everything:
            return None
        overall = sum(everything) / len(everything)

        def expected(job: Job) -> float:
            group = self.spent.get((job.problem, job.case.label))
            return sum(group) / len(group) if group else overall

        left = sum(expected(job) for job in self.waiting)
        left += sum(expected(job) * (1 - evaluations / job.budget) for job, evaluations in self.running.values())
        return left / self.workers


Listener = Callable[[Progress, str, Job], None]
"""Called with the state after "done", "failed" or "progress" of a job, and first of all on the "start" of the grid."""


class Worker:
    """One process and the thread that hands its answers on."""

    def __init__(self, number: int, store: Store, answers: queue.SimpleQueue[tuple[Worker, dict[str, Any] | None]]):
        self.number, self.ready = number, False
        self.job: Job | None = None
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
            environment[name] = "1"
        with opened(store.folder / LOG, "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "mctsvs.lab.worker", str(store.folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                pass_fds=store.inherited,
                text=True,
                bufsize=1,
            )
        self.thread = threading.Thread(target=self._listen, args=(answers,), daemon=True)
        self.thread.start()

    def _listen(self, answers: queue.SimpleQueue[tuple[Worker, dict[str, Any] | None]]) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            answers.put((self, json.loads(line)))
        answers.put((self, None))

    def give(self, job: Job) -> None:
        assert self.process.stdin is not None
        self.job = job
        with contextlib.suppress(OSError):  # it has just died: its thread says so
            self.process.stdin.write(json.dumps(job.state()) + "\n")

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        self.thread.join()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()


def work(wanted: Sequence[Job], store: Store, workers: int, listen: Listener | None = None) -> Progress:
    """Do all jobs that the store does not hold yet; every finished run is stored at once."""
    if workers < 1:
        raise InputError(f"{workers} worker processes cannot do anything: give 1 or more")
    listen = listen or (lambda progress, event, job: None)
    with store.claimed():
        wanted = list(dict.fromkeys(wanted))
        progress = Progress(len(wanted), workers)
        for job in wanted:
            if stored := store.sound(job):
                progress.skipped += 1
                progress.versions.add(stored.version)
                _note_best(progress, job, stored.record["best"], stored.direction)
            else:
                progress.waiting.append(job)
        if progress.waiting:
            opened(store.folder / LOG, "wb").close()
            listen(progress, "start", progress.waiting[0])
            _drive(progress, store, min(workers, len(progress.waiting)), listen)
    if len(progress.versions) > 1:
        store.say(mixed(progress.versions))
    return progress


def mixed(versions: Iterable[str]) -> str:
    """Runs of several versions may differ for no other reason: a line that says so."""
    return f"the runs were done by several versions of mctsvs: {', '.join(sorted(versions))}"


def _drive(progress: Progress, store: Store, count: int, listen: Listener) -> None:
    answers: queue.SimpleQueue[tuple[Worker, dict[str, Any] | None]] = queue.SimpleQueue()
    crew: dict[int, Worker] = {}
    absent: list[str] = []  # why processes could not start, until it has been said

    def hire(number: int) -> None:
        try:
            crew[number] = Worker(number, store, answers)
        except (OSError, InputError) as error:
            not_started(str(error))

    def not_started(why: str) -> None:
        """One process less is no reason to stop; none at all is."""
        if not crew:
            raise InputError(f"no worker process can start: {why}")
        absent.append(why)

    def next_job(worker: Worker) -> None:
        progress.running.pop(worker.number, None)
        worker.job = None
        if progress.waiting:
            job = progress.waiting.popleft()
            progress.running[worker.number] = (job, 0)
            worker.give(job)

    def failed(job: Job, error: str) -> None:
        progress.failures.append(Failure(job, error))
        listen(progress, "failed", job)

    try:
        for number in range(count):
            hire(number)
        while progress.finished < progress.total:
            if absent and any(worker.ready for worker in crew.values()):
                store.say(f"a worker process could not start, the others go on: {absent[0]}")
                absent.clear()
            worker, answer = answers.get()
            job = worker.job
            if answer is None:  # the process has ended
                status = worker.process.wait()
                del crew[worker.number]
                worker.stop()
                progress.running.pop(worker.number, None)
                cause = f"signal {-status}" if status < 0 else f"status {status}"
                if not worker.ready:
                    not_started(f"it ended with {cause}, and {_last_words(store)}")
                    continue
                if job is not None:
                    failed(job, f"the worker process ended with {cause} (out of memory?)")
                if progress.waiting:
                    hire(worker.number)
            elif answer["event"] == "ready":
                worker.ready = True
                next_job(worker)
            elif job is None:
                continue
            elif answer["event"] == "progress":
                progress.running[worker.number] = (job, answer["evaluations"])
                listen(progress, "progress", job)
            elif answer["event"] == "failed":
                next_job(worker)
                failed(job, answer["error"])
            else:
                next_job(worker)
                progress.done += 1
                progress.versions.add(mctsvs.__version__)
                progress.spent.setdefault((job.problem, job.case.label), []).append(answer["seconds"])
                _note_best(progress, job, answer["best"], answer["direction"])
                listen(progress, "done", job)
    finally:
        for worker in crew.values():
            worker.stop()


def _last_words(store: Store) -> str:
    """Where the log is, and its last line."""
    path = store.folder / LOG
    lines: list[str] = []
    with contextlib.suppress(OSError):
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "nothing")
    return f"{last!r} is the last line of {str(path)!r}"


def _note_best(progress: Progress, job: Job, best: float | None, direction: str) -> None:
    known = progress.best.get(job.problem)
    sign = 1.0 if direction == "maximize" else -1.0
    if best is not None and (known is None or sign * best > sign * known[0]):
        progress.best[job.problem] = (best, job)


def default_workers() -> int:
    """One for each core that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def clock(seconds: float | None) -> str:
    """Seconds as people read them."""
    if seconds is None:
        return "?"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
