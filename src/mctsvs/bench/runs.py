"""The runs of one case on one problem, side by side: what statistics and figures are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mctsvs.bench.algorithms import ConfiguredMethod
from mctsvs.bench.run_store import Job, RunStore
from mctsvs.bench.stats import Summary, summary
from mctsvs.utils.validation import Array


@dataclass(frozen=True, kw_only=True)
class Runs:
    """Seeds as rows, evaluations as columns."""

    seeds: tuple[int, ...]
    best: Array
    thinking: Array  # optimiser seconds so far
    elapsed: Array  # wall seconds so far
    recall: Array  # one for each seed; NaN where unknown
    cpu: Array  # processor seconds of each run's ask and tell
    maximise: bool = True
    optimum: float | None = None
    extra: dict[str, Array] = field(default_factory=dict)

    @property
    def budget(self) -> int:
        return int(self.best.shape[1])

    @property
    def final(self) -> Array:
        return self.best[:, -1]

    @property
    def missing(self) -> float:
        """The share of the runs that ended without a feasible value."""
        return float(np.isnan(self.final).mean())

    @property
    def merit(self) -> float:
        """The mean of the others' last values as something to be small; infinite where there are none."""
        mean = self.at(self.budget).mean
        return np.inf if np.isnan(mean) else -mean if self.maximise else mean

    @property
    def seconds(self) -> Array:
        """Optimiser seconds of each run."""
        return self.thinking[:, -1]

    def at(self, evaluations: int) -> Summary:
        """Of the best values after so many evaluations."""
        if evaluations > self.budget:
            return summary([])
        return summary(self.best[:, evaluations - 1])

    def paired(self, other: Runs) -> tuple[Array, Array]:
        """Final values of the seeds both have, in the same order."""
        shared = sorted(set(self.seeds) & set(other.seeds))
        mine, theirs = (np.array([runs.final[runs.seeds.index(seed)] for seed in shared]) for runs in (self, other))
        return mine, theirs


def collect(jobs: Sequence[Job], store: RunStore) -> dict[tuple[str, ConfiguredMethod], Runs]:
    """(problem, case) -> its runs, in the order of the jobs; those that are not there are left out."""
    members: dict[tuple[str, ConfiguredMethod], list[Job]] = {}
    for job in dict.fromkeys(jobs):
        if job in store:
            members.setdefault((job.problem, job.case), []).append(job)
    return {key: finished(own, store) for key, own in members.items()}


def finished(jobs: Sequence[Job], store: RunStore) -> Runs:
    """The finished runs of jobs that differ in their seeds only."""
    jobs = sorted(jobs, key=lambda job: job.seed)
    stored = [store.load(job) for job in jobs]

    def rows(name: str) -> Array:
        return np.array([run.series(name) for run in stored], dtype=np.float64)

    recall = [np.nan if run.record["recall"] is None else run.record["recall"] for run in stored]
    return Runs(
        seeds=tuple(job.seed for job in jobs),
        best=rows("trace"),
        thinking=rows("thinking"),
        elapsed=rows("elapsed"),
        recall=np.array(recall, dtype=np.float64),
        cpu=np.array([run.record["cpu_seconds"] for run in stored], dtype=np.float64),
        maximise=stored[0].direction == "maximize",
        optimum=stored[0].optimum,
        extra={name: rows(name) for name in stored[0].record["extra"]},
    )
