"""Many runs on worker processes: a finished run is never repeated, and a failed one stops no other."""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import sys
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mctsvs.bench import algorithms, problems
from mctsvs.bench.algorithms import ConfiguredMethod
from mctsvs.bench.run_store import Job, RunStore, StoredRun, opened
from mctsvs.loop.evaluation import Evaluation, RandomStream
from mctsvs.loop.executors import WorkerLost
from mctsvs.loop.process_pool import ProcessPool
from mctsvs.utils.validation import EvaluationFailed, InputError

LOG = "workers.log"  # what the runs print
COUNTS = "progress.partial"  # evaluations of each run so far: an array that all processes share
REPORT_EVERY = 0.5  # seconds between two looks at the runs


def jobs(
    problems: Iterable[str],
    methods: Sequence[ConfiguredMethod],
    seeds: Sequence[int],
    budget: int,
    *,
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

    return [Job(name, method, seed, budget, varied(seed)) for seed in seeds for name in names for method in methods]


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
    running: dict[int, tuple[Job, int]] = field(default_factory=dict)  # number -> its job, evaluations so far
    spent: dict[tuple[str, ConfiguredMethod], list[float]] = field(default_factory=dict)  # seconds of finished runs
    waiting: deque[Job] = field(default_factory=deque)
    versions: set[str] = field(default_factory=set)  # of the library that did the runs

    @property
    def finished(self) -> int:
        return self.skipped + self.done + len(self.failures)

    def add(self, job: Job, stored: StoredRun) -> None:
        """A run of now or of an earlier call is in the store."""
        self.versions.add(stored.version)
        best, known = stored.record["best"], self.best.get(job.problem)
        sign = 1.0 if stored.direction == "maximize" else -1.0
        if best is not None and (known is None or sign * best > sign * known[0]):
            self.best[job.problem] = (best, job)

    def seconds_left(self) -> float | None:
        """From the mean of finished runs of the same problem and method, else of all; None: nothing to go by."""
        everything = [seconds for runs in self.spent.values() for seconds in runs]
        if not everything:
            return None
        overall = sum(everything) / len(everything)

        def expected(job: Job) -> float:
            same = self.spent.get((job.problem, job.case))
            return sum(same) / len(same) if same else overall

        left = sum(expected(job) for job in self.waiting)
        left += sum(expected(job) * (1 - evaluations / job.budget) for job, evaluations in self.running.values())
        return left / self.workers


Listener = Callable[[Progress, str, Job], None]
"""Called with the state after "done", "failed" or "progress" of a job, and first of all on the "start" of the grid."""


def run_jobs(wanted: Sequence[Job], store: RunStore, workers: int, listen: Listener | None = None) -> Progress:
    """Do all jobs that the store does not hold yet; every finished run is stored at once.

    Args:
        wanted: The jobs; one that is named twice is done once.
        store: Where finished runs are kept. Its folder is locked meanwhile.
        workers: How many processes work at once, each with one thread of linear algebra.
        listen: Told of every event.

    Returns:
        How many runs were done now, were there before, or failed, and why.

    Raises:
        InputError: `workers` is below 1, no process can start, or the folder cannot be used.
    """
    if workers < 1:
        raise InputError(f"{workers} worker processes cannot do anything: give 1 or more")
    listen = listen or (lambda progress, event, job: None)
    with store.locked():
        wanted = list(dict.fromkeys(wanted))
        progress = Progress(len(wanted), workers)
        for job in wanted:
            if stored := store.sound(job):
                progress.skipped += 1
                progress.add(job, stored)
            else:
                progress.waiting.append(job)
        if progress.waiting:
            opened(store.folder / LOG, "wb").close()
            listen(progress, "start", progress.waiting[0])
            _run_all(progress, store, listen)
    if len(progress.versions) > 1:
        store.notify(several_versions(progress.versions))
    return progress


def several_versions(versions: Iterable[str]) -> str:
    """Runs of several versions may differ for no other reason: a line that says so."""
    return f"the runs were done by several versions of mctsvs: {', '.join(sorted(versions))}"


def _run_all(progress: Progress, store: RunStore, listen: Listener) -> None:
    """Keep all processes busy until nothing waits; each is given its next run when it has ended the last."""
    todo = tuple(progress.waiting)
    counts = np.memmap(store.folder / COUNTS, np.int64, "w+", shape=len(todo))
    pending: dict[Future[Evaluation], int] = {}
    pool = None
    try:
        pool = _pool(WorkerFunction(store.folder, todo), min(progress.workers, len(todo)))
        while progress.waiting or pending:
            while progress.waiting and len(pending) < pool.size:
                number = len(todo) - len(progress.waiting)
                progress.running[number] = progress.waiting.popleft(), 0
                pending[pool.submit(number, number)] = number
            ended = wait(pending, REPORT_EVERY, FIRST_COMPLETED).done
            for number, (job, before) in progress.running.items():
                progress.running[number] = job, int(counts[number])
                if counts[number] > before:
                    listen(progress, "progress", job)
            for future in ended:
                job, _ = progress.running.pop(pending.pop(future))
                listen(progress, _note(progress, store, job, future), job)
    finally:
        if pool is not None:
            pool.close()
        del counts  # Windows deletes no file that is in use
        (store.folder / COUNTS).unlink()


def _pool(function: Callable[[int], float], size: int) -> ProcessPool:
    try:
        return ProcessPool(function, size)
    except OSError as error:
        raise InputError(f"no worker process can start: {error.strerror}") from None


def _note(progress: Progress, store: RunStore, job: Job, future: Future[Evaluation]) -> str:
    """Note what has become of a run: "done" or "failed"."""
    try:
        evaluation = future.result()
    except WorkerLost as lost:
        progress.failures.append(Failure(job, f"{lost} (out of memory?)"))
        return "failed"
    except OSError as error:
        raise InputError(f"a worker process has died, and no other can start: {error.strerror}") from None
    if job not in store:
        progress.failures.append(Failure(job, evaluation.message))
        return "failed"
    progress.done += 1
    progress.spent.setdefault((job.problem, job.case), []).append(evaluation.seconds)
    progress.add(job, store.load(job))
    return "done"


@dataclass(frozen=True)
class WorkerFunction:
    """What a worker process does: the run of that number, which it stores itself."""

    folder: Path
    jobs: tuple[Job, ...]

    def __call__(self, number: int) -> float:
        settle(self.folder)
        job, counts = self.jobs[number], np.memmap(self.folder / COUNTS, np.int64, "r+", shape=len(self.jobs))
        RandomStream(job.seed, number=0).begin()  # problems of others may draw from the generators that all share
        try:
            return run_job(job, RunStore(self.folder), counts[number:])
        except InputError as error:
            raise EvaluationFailed(str(error)) from None  # a sentence for people: it needs no place in the code
        except Exception:
            traceback.print_exc()
            raise


def run_job(job: Job, store: RunStore, count: npt.NDArray[np.int64]) -> float:
    """Do one run and store it; its best value. `count[0]` is raised by one after each evaluation."""
    load(job.case.method)

    def progress(*_: object) -> None:
        count[0] += 1

    problem = problems.resolve(job.problem, **job.variation)
    record = job.case.run(problem, budget=job.budget, seed=job.seed, variation=job.variation, progress=progress)
    store.save(job, record, problem.direction, problem.optimum)
    return record.best


@functools.cache
def settle(folder: Path) -> None:
    """Prepare this process for runs: one thread, prints to the log, modules in memory."""
    from threadpoolctl import threadpool_limits

    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ[name] = "1"  # for libraries that are still to be loaded
    threadpool_limits(1)
    with opened(folder / LOG, "ab") as log:
        for descriptor in (1, 2):
            os.dup2(log.fileno(), descriptor)
    sys.stdout = sys.stderr = os.fdopen(1, "w", buffering=1, encoding="utf-8", errors="backslashreplace")
    import mctsvs.gp.model
    import mctsvs.methods.solvers.bo
    import mctsvs.methods.solvers.turbo
    from mctsvs.gp.optimize_acqf import quasi_random

    del mctsvs
    quasi_random(2, 2, np.random.default_rng(0))


# what the methods' extras import when they are first used
PARTS = {
    "cma": ("cma",),
    "sklearn": ("sklearn.cluster", "sklearn.gaussian_process", "sklearn.linear_model", "sklearn.svm"),
    "torch": ("torch",),
    "optuna": ("optuna",),
}


@functools.cache
def load(method: str) -> None:
    """Import what a method needs before its first run, so that importing is not in its seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecations inside the libraries
        for part in (part for need in algorithms.find(method).needs for part in PARTS.get(need, ())):
            with contextlib.suppress(ImportError):  # the run will say so
                importlib.import_module(part)


def default_workers() -> int:
    """One for each core that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
