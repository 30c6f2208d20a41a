"""Finished runs on disk, one file each, complete or not there at all; and those of one method side by side.

A run is written to a temporary name and renamed, so that killing a process at any moment leaves whole files only. The
name carries a digest of what was run: problem and its variation, method and options, seed and budget. A file that a
disk or a person has damaged all the same is set aside, and its run is done again.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import os
import re
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

import mctsvs
from mctsvs.bench.algorithms import ConfiguredMethod, plain
from mctsvs.bench.record import RunRecord, without_nan
from mctsvs.bench.stats import Summary, summary
from mctsvs.utils.validation import Array, InputError

ROUNDED = 6  # decimals of stored seconds
FORMAT = 1  # of a stored run
SERIES = ("values", "trace", "thinking", "elapsed")  # of a record: a number, or null, for each evaluation
RANGES = re.compile(r"(\d+(-\d+)?( \d+(-\d+)?)*)?", re.ASCII)  # what `ranges` writes
# raised by what is not compressed, no JSON, or not a run
BROKEN = (gzip.BadGzipFile, zlib.error, EOFError, ValueError, RecursionError, LookupError, TypeError, AttributeError)
PATIENCE = 1.0, 14.0  # seconds to wait for a folder before saying so, and after


class DamagedRunError(InputError):
    """A stored run that cannot be read."""


@dataclass(frozen=True)
class Job:
    """One run to be done."""

    problem: str
    case: ConfiguredMethod
    seed: int
    budget: int
    variation: Mapping[str, Any] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.problem, self.case, self.seed, self.budget))

    def state(self) -> dict[str, Any]:
        """Plain data, for workers and keys."""
        return {
            "problem": self.problem,
            "variation": dict(self.variation),
            "method": self.case.method,
            "options": plain(self.case.options),
            "paper": self.case.paper,
            "seed": self.seed,
            "budget": self.budget,
        }

    @staticmethod
    def of(state: Mapping[str, Any]) -> Job:
        method = ConfiguredMethod(state["method"], state["options"], state["paper"])
        return Job(state["problem"], method, state["seed"], state["budget"], state["variation"])

    @property
    def key(self) -> str:
        """The file's name without ending: readable first, then the digest of everything."""
        text = json.dumps(self.state(), sort_keys=True)
        readable = re.sub(r"[^A-Za-z0-9_.-]+", "-", f"{self.problem}-{self.case.method}")
        return f"{readable}-{self.seed}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    def __str__(self) -> str:
        return f"{self.case.label} on {self.problem}, seed {self.seed}"


class RunStore:
    """A folder of finished runs; `notify` is given a line for people now and then."""

    def __init__(self, folder: Path, notify: Callable[[str], object] = lambda line: None) -> None:
        self.folder, self.notify = folder, notify
        self._locked = False
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot make the folder {str(folder)!r}: {error.strerror}") from None

    def path(self, job: Job) -> Path:
        return self.folder / f"{job.key}.json.gz"

    def __contains__(self, job: Job) -> bool:
        return self.path(job).is_file()

    def save(self, job: Job, record: RunRecord, direction: str, optimum: float | None) -> None:
        """Write a finished run; whole or not at all.

        Args:
            job: What was run; it names the file.
            record: What the run left behind.
            direction: Of the problem, "minimize" or "maximize".
            optimum: Of the problem; None: not known.
        """
        content = record.state()
        for name in ("thinking", "elapsed"):
            content[name] = [round(seconds, ROUNDED) for seconds in content[name]]
        content["iterations"] = [{**part, "variables": ranges(part["variables"])} for part in content["iterations"]]
        about = {"format": FORMAT, "version": mctsvs.__version__, "direction": direction, "optimum": optimum}
        text = json.dumps(without_nan({"job": job.state(), **about, "record": content}), allow_nan=False)
        with (
            replacing(self.path(job)) as partial,
            partial.open("wb") as raw,
            gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed,
        ):
            packed.write(text.encode())

    def load(self, job: Job) -> StoredRun:
        """The finished run; raises `InputError` where there is none, `DamagedRunError` where it cannot be read."""
        path = self.path(job)
        try:
            with gzip.open(path, "rt", encoding="utf-8") as file:
                content = json.load(file)
            version = content["format"]
            stored = checked(content, job.budget) if version == FORMAT else None
        except FileNotFoundError:
            raise InputError(f"there is no finished run of {job} in {str(self.folder)!r}") from None
        except BROKEN:
            raise DamagedRunError(
                f"the file {str(path)!r} is damaged: delete it, and the run will be done again"
            ) from None
        except OSError as error:
            raise InputError(f"cannot read {str(path)!r}: {error.strerror}") from None
        if stored is None:
            raise InputError(f"the file {str(path)!r} is of another version: delete it, and the run is done again")
        return stored

    def every(self) -> Iterator[tuple[Job, StoredRun]]:
        """All finished runs in the folder, in the order of their names."""
        for path in sorted(self.folder.glob("*.json.gz")):
            with gzip.open(path, "rt", encoding="utf-8") as file:
                job = Job.of(json.load(file)["job"])
            yield job, self.load(job)

    def sound(self, job: Job) -> StoredRun | None:
        """The finished run; None where there is none, or where it was damaged and is now set aside."""
        if job not in self:
            return None
        try:
            return self.load(job)
        except DamagedRunError:
            path = self.path(job)
            aside = path.with_name(f"{path.name}.damaged")
            try:
                path.replace(aside)
            except OSError as error:
                raise InputError(f"cannot rename the damaged file {str(path)!r}: {error.strerror}") from None
            self.notify(f"{str(path)!r} is damaged: it is now {aside.name}, and the run is done again")
            return None

    def last_day(self, jobs: Iterable[Job]) -> str:
        """When the last of these runs was finished, as 2022-11-28; empty: none is."""
        times = [self.path(job).stat().st_mtime for job in jobs if job in self]
        return time.strftime("%Y-%m-%d", time.localtime(max(times))) if times else ""

    def tidy(self) -> None:
        """Delete what killed processes left half written."""
        for partial in self.folder.glob("*.partial"):
            with suppress(OSError):
                partial.unlink()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """No other command works in this folder meanwhile; inside a lock, another of the same store is none.

        Forked workers inherit the locked file: those of a killed command hold its lock until they end.
        """
        if self._locked:
            yield
            return
        with opened(self.folder / ".lock", "ab") as file:
            if not lock(file, PATIENCE[0]):
                self.notify(f"waiting for another comparison in {str(self.folder)!r}")
                if not lock(file, PATIENCE[1]):
                    raise InputError(
                        f"another comparison is running in {str(self.folder)!r}: wait for it, or use another"
                    )
            self.tidy()
            self._locked = True
            try:
                yield
            finally:
                self._locked = False


@dataclass(frozen=True)
class StoredRun:
    """A finished run as it was read back."""

    direction: str
    optimum: float | None
    version: str
    record: Mapping[str, Any]

    def series(self, name: str) -> list[float]:
        """A list of numbers of the record, or of those that only some methods measure; NaN where it holds null."""
        found = self.record["extra"].get(name) or self.record.get(name) or []
        return floats(found)


def floats(series: Iterable[Any]) -> list[float]:
    """Numbers as JSON has them, null for NaN."""
    return [math.nan if value is None else float(value) for value in series]


def ranges(positions: list[int]) -> str:
    """Sorted positions as text: [0, 1, 2, 7] is "0-2 7"."""
    parts: list[list[int]] = []
    for position in positions:
        if parts and position == parts[-1][1] + 1:
            parts[-1][1] = position
        else:
            parts.append([position, position])
    return " ".join(f"{first}-{last}" if last > first else str(first) for first, last in parts)


def checked(content: Mapping[str, Any], budget: int) -> StoredRun:
    """The run that a file holds; one of `BROKEN` where something that is used later is not there."""
    stored = StoredRun(content["direction"], content["optimum"], content["version"], content["record"])
    record = stored.record
    if any(len(stored.series(name)) != budget for name in SERIES):  # a run that was stopped is not stored
        raise ValueError("not an entry for each evaluation")
    if stored.direction not in ("maximize", "minimize") or not isinstance(stored.version, str):
        raise ValueError("not a run")
    single = (stored.optimum, record["best"], record["recall"], record["cpu_seconds"])
    for series in (single, *record["extra"].values()):
        floats(series)
    for iteration in record["iterations"]:
        if not RANGES.fullmatch(iteration["variables"]) or not isinstance(iteration["evaluations"], int):
            raise ValueError("not an iteration")
    return stored


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """The name to write to; it becomes `path` once everything is on the disk, and nothing stays behind otherwise."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        yield partial
        with partial.open("rb+") as file:  # or a power failure could leave an empty file under the final name
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            partial.unlink()


def opened(path: Path, mode: Literal["ab", "wb"]) -> IO[bytes]:
    """The file, open for writing."""
    try:
        return path.open(mode)
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error.strerror}") from None


def lock(file: IO[bytes], patience: float) -> bool:
    """Lock the file; False if others hold it after `patience` seconds. Always True where there are no locks."""
    try:
        import fcntl
    except ImportError:  # Windows: one grid at a time is up to the user
        return True
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.05)
        else:
            return True


@dataclass(frozen=True, kw_only=True)
class Runs:
    """The runs of one method on one problem: seeds as rows, evaluations as columns."""

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
    """(problem, method) -> its finished runs, in the order of the jobs."""
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
