"""Finished runs on disk: one file each, complete or not there at all.

A run is written to a temporary name and renamed, so that killing a process at any moment leaves whole files only. The
name carries a digest of what was run: problem and its variation, method and options, seed and budget.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

import mctsvs
from mctsvs.common import InputError
from mctsvs.lab.cases import Case, plain
from mctsvs.lab.run import Record, without_nan

ROUNDED = 6  # decimals of stored seconds
FORMAT = 1  # of a stored run


@dataclass(frozen=True)
class Job:
    """One run to be done."""

    problem: str
    case: Case
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
        case = Case(state["method"], state["options"], state["paper"])
        return Job(state["problem"], case, state["seed"], state["budget"], state["variation"])

    @property
    def key(self) -> str:
        """The file's name without ending: readable first, then the digest of everything."""
        text = json.dumps(self.state(), sort_keys=True)
        readable = re.sub(r"[^A-Za-z0-9_.-]+", "-", f"{self.problem}-{self.case.method}")
        return f"{readable}-{self.seed}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    def __str__(self) -> str:
        return f"{self.case.label} on {self.problem}, seed {self.seed}"


class Store:
    """A folder of finished runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot make the folder {str(folder)!r}: {error.strerror}") from None

    def path(self, job: Job) -> Path:
        return self.folder / f"{job.key}.json.gz"

    def __contains__(self, job: Job) -> bool:
        return self.path(job).is_file()

    def save(self, job: Job, record: Record, direction: str, optimum: float | None) -> None:
        """Write a finished run; whole or not at all."""
        content = asdict(record)
        for name in ("thinking", "elapsed"):
            content[name] = [round(seconds, ROUNDED) for seconds in content[name]]
        for iteration in content["iterations"]:
            iteration["variables"] = ranges(iteration["variables"])
        about = {"format": FORMAT, "version": mctsvs.__version__, "direction": direction, "optimum": optimum}
        text = json.dumps(without_nan({"job": job.state(), **about, "record": content}), allow_nan=False)
        path = self.path(job)
        partial = path.with_suffix(f".{os.getpid()}.partial")
        with partial.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:
            packed.write(text.encode())
        partial.replace(path)

    def load(self, job: Job) -> Stored:
        path = self.path(job)
        try:
            with gzip.open(path, "rt", encoding="utf-8") as file:
                content = json.load(file)
            if content.get("format") != FORMAT:
                raise InputError(f"the file {str(path)!r} is of another version: delete it, and the run is done again")
            stored = Stored(content["direction"], content["optimum"], content["version"], content["record"])
        except FileNotFoundError:
            raise InputError(f"there is no finished run of {job} in {str(self.folder)!r}") from None
        except InputError:
            raise
        except (OSError, EOFError, ValueError, KeyError, AttributeError):
            raise InputError(f"the file {str(path)!r} is damaged: delete it, and the run will be done again") from None
        return stored

    def tidy(self) -> None:
        """Delete what killed processes left half written."""
        for partial in self.folder.glob("*.partial"):
            partial.unlink(missing_ok=True)

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """No other grid works in this folder meanwhile; its orphaned workers get a while to notice."""
        with lock_file(self.folder) as file:
            if not lock(file, exclusive=True, patience=15.0):
                raise InputError(f"another comparison is running in {str(self.folder)!r}: wait for it, or use another")
            self.tidy()
            lock(file, exclusive=False)  # its workers hold a share too
            yield


@dataclass(frozen=True)
class Stored:
    """A finished run as it was read back."""

    direction: str
    optimum: float | None
    version: str
    record: Mapping[str, Any]

    def series(self, name: str) -> list[float]:
        """A list of numbers of the record, NaN where it holds null."""
        found = self.record["extra"].get(name) if name not in self.record else self.record[name]
        return [math.nan if value is None else float(value) for value in found or []]


def ranges(positions: list[int]) -> str:
    """Sorted positions as text: [0, 1, 2, 7] is "0-2 7"."""
    parts: list[list[int]] = []
    for position in positions:
        if parts and position == parts[-1][1] + 1:
            parts[-1][1] = position
        else:
            parts.append([position, position])
    return " ".join(f"{first}-{last}" if last > first else str(first) for first, last in parts)


def positions(text: str) -> list[int]:
    """What `ranges` wrote."""
    found: list[int] = []
    for part in text.split():
        first, _, last = part.partition("-")
        found.extend(range(int(first), int(last or first) + 1))
    return found


def lock_file(folder: Path) -> IO[bytes]:
    return (folder / ".lock").open("ab")


def lock(file: IO[bytes], *, exclusive: bool, patience: float = 0.0) -> bool:
    """Take or change the lock; False if others hold it after `patience` seconds. Always True where none exist."""
    import time

    try:
        import fcntl
    except ImportError:  # Windows: one grid at a time is up to the user
        return True
    kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.05)
        else:
            return True
