"""Many runs on worker processes: what is finished is never done again, what fails stops nobody else."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import mctsvs
from mctsvs.bench.algorithms import ConfiguredMethod
from mctsvs.bench.run_store import Job, RunStore, opened
from mctsvs.bench.workers import LOG, Crew, Worker
from mctsvs.utils.validation import InputError


def jobs(
    problems: Iterable[str],
    cases: Sequence[ConfiguredMethod],
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
    spent: dict[tuple[str, ConfiguredMethod], list[float]] = field(default_factory=dict)  # seconds of finished runs
    waiting: deque[Job] = field(default_factory=deque)
    versions: set[str] = field(default_factory=set)  # of the library that did the runs

    @property
    def finished(self) -> int:
        return self.skipped + self.done + len(self.failures)

    def add(self, job: Job, said: Mapping[str, Any]) -> None:
        """A run is done, as its worker said."""
        self.done += 1
        self.versions.add(mctsvs.__version__)
        self.spent.setdefault((job.problem, job.case), []).append(said["seconds"])
        self.note_best(job, said["best"], said["direction"])

    def note_best(self, job: Job, best: float | None, direction: str) -> None:
        known = self.best.get(job.problem)
        sign = 1.0 if direction == "maximize" else -1.0
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


def work(wanted: Sequence[Job], store: RunStore, workers: int, listen: Listener | None = None) -> Progress:
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
                progress.note_best(job, stored.record["best"], stored.direction)
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


def _drive(progress: Progress, store: RunStore, count: int, listen: Listener) -> None:
    def next_job(worker: Worker) -> Job | None:
        progress.running.pop(worker.number, None)
        if not progress.waiting:
            return None
        job = progress.waiting.popleft()
        progress.running[worker.number] = (job, 0)
        return job

    crew = Crew(store, next_job)
    try:
        for number in range(count):
            crew.hire(number)
        while progress.finished < progress.total:
            worker, job, said = crew.answer()
            event = said["event"]
            if event == "progress":
                progress.running[worker.number] = (job, said["evaluations"])
            elif event == "done":
                progress.add(job, said)
            else:
                progress.failures.append(Failure(job, said["error"]))
            if event == "ended":
                progress.running.pop(worker.number, None)
            elif event != "progress":
                crew.employ(worker)
            listen(progress, "failed" if event == "ended" else event, job)
            if event == "ended" and progress.waiting:
                crew.hire(worker.number)
    finally:
        crew.stop()


def default_workers() -> int:
    """One for each core that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
