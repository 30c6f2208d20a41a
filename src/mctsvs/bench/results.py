"""Results as files: the table of all evaluations, and the numbers of a page.

The table has a row for each evaluation of each run. Everything that follows from the seed comes first. The two columns
of seconds come last: up to those two, the table of an interrupted grid equals that of an undisturbed one.

The numbers of a page are everything that its figure draws and its tables say, a row each (NAME.csv). Pages and figures
are made of these rows alone, so they can be made again, and checked, without the runs.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mctsvs.bench.run_store import SERIES, Job, RunStore, replacing
from mctsvs.bench.stats import Summary
from mctsvs.utils.validation import Array, InputError

COLUMNS = ("source", "problem", "method", "axis", "x", "mean", "standard_error", "runs", "logs")
OURS, PRINTED, THEIRS = "ours", "paper", "authors"
MADE, NOTE, PROBLEM = "made", "note", "problem"
"""Sources that are no numbers: command, day, budget, number of seeds, their list; a sentence; direction and optimum."""
Row = Sequence[Any]
Series = dict[float, Summary]


class Numbers:
    """Series by source, problem, method and axis: x -> mean and standard error."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = [[_text(cell) for cell in row] + [""] * (len(COLUMNS) - len(row)) for row in rows]
        self.cells: dict[tuple[str, str, str, str], Series] = {}
        self.logs: dict[tuple[str, str], str] = {}  # of the authors' runs, by problem and method
        self.made: list[str] = [""] * len(COLUMNS)
        self.notes: list[str] = []
        self._problems: dict[str, tuple[str, float]] = {}
        for row in self.rows:
            self._take(row)

    def _take(self, row: list[str]) -> None:
        source, problem, method, axis, x, mean, error, runs, logs = row
        if source == MADE:
            self.made = row
        elif source == NOTE:
            self.notes.append(problem)
        elif source == PROBLEM:
            self._problems[problem] = method, _number(mean)
        else:
            found = Summary.of(int(runs or 0), _number(mean), _number(error))
            self.cells.setdefault((source, problem, method, axis), {})[_number(x)] = found
            if source == THEIRS:
                self.logs[problem, method] = logs

    @classmethod
    def read(cls, path: Path) -> Numbers:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
        if not rows or rows[0][:3] != list(COLUMNS[:3]):
            raise InputError(f"{str(path)!r} holds no numbers of a page: its first line should be {','.join(COLUMNS)}")
        return cls(rows[1:])

    def write(self, path: Path) -> list[Path]:
        return write(path, [COLUMNS, *self.rows])

    @property
    def command(self) -> str:
        return self.made[1]

    @property
    def day(self) -> str:
        return self.made[2]

    @property
    def budget(self) -> int:
        return int(float(self.made[4] or 0))

    @property
    def seeds(self) -> str:
        """As in 2021-2025."""
        return self.made[8]

    def series(self, source: str, problem: str, method: str, axis: str) -> Series:
        return self.cells.get((source, problem, method, axis), {})

    def at(self, source: str, problem: str, method: str, axis: str, x: float | None = None) -> Summary | None:
        """The value at x, or the last one; None where there is none."""
        found = self.series(source, problem, method, axis)
        return found.get(max(found, default=math.nan) if x is None else x)

    def arrays(self, source: str, problem: str, method: str, axis: str) -> tuple[Array, Array, Array]:
        """x, mean and standard error."""
        found = self.series(source, problem, method, axis)
        triples = np.array([(x, s.mean, s.error) for x, s in found.items()], dtype=np.float64).reshape(-1, 3)
        return triples[:, 0], triples[:, 1], triples[:, 2]

    def maximise(self, problem: str) -> bool:
        return self._problems.get(problem, ("maximize", math.nan))[0] == "maximize"

    def optimum(self, problem: str) -> float | None:
        value = self._problems.get(problem, ("", math.nan))[1]
        return None if math.isnan(value) else value


def short(value: float) -> float | str:
    """As written in files of numbers: eight digits, nothing for NaN."""
    return "" if np.isnan(value) else float(f"{value:.8g}")


def write(path: Path, rows: Sequence[Row]) -> list[Path]:
    """A file of rows."""
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error.strerror}") from None
    return [path]


def beside(path: Path, rows: Sequence[Row]) -> list[Row]:
    """Rows by seed (the first is the header, then problem, method, ...): those of other methods stay in the file's."""
    if not path.is_file():
        return list(rows)
    new = {tuple(map(str, row[:2])) for row in rows[1:]}
    with path.open(newline="", encoding="utf-8") as file:
        kept = [row for row in csv.reader(file) if tuple(row[:2]) not in new]
    return [*kept, *rows[1:]]


def _text(cell: Any) -> str:
    return "" if isinstance(cell, float) and math.isnan(cell) else str(cell)


def _number(text: str) -> float:
    return float(text) if text else math.nan


TABLE_COLUMNS = {
    "problem": str,
    "method": str,  # with its options, as in --methods
    "seed": int,
    "evaluation": int,  # 1, 2, ...
    "iteration": int,  # of the method; 0: the initial design
    "variables": str,  # selected in this iteration, as ranges: "0-5 17"
    "selected": int,  # how many
    "value": float,  # empty: the evaluation failed
    "best": float,  # so far
    "optimizer_seconds": float,  # so far, in ask and tell
    "wall_seconds": float,  # so far
}
FORMATS = ("csv", "parquet")


def _in_order(jobs: Sequence[Job], store: RunStore) -> list[Job]:
    """Those that are finished, in the order of problem, method (as given) and seed."""
    problems = {name: i for i, name in enumerate(dict.fromkeys(job.problem for job in jobs))}
    labels = {name: i for i, name in enumerate(dict.fromkeys(job.case.label for job in jobs))}
    ordered = sorted(dict.fromkeys(jobs), key=lambda j: (problems[j.problem], labels[j.case.label], j.seed))
    return [job for job in ordered if job in store]


def check_table(path: Path) -> None:
    """Raises `InputError` if the table could not be written there: better before the runs than after them."""
    if path.suffix == ".parquet":
        _pyarrow()
    if path.is_dir():
        raise InputError(f"cannot write {str(path)!r}: it is a folder")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"cannot write {str(path)!r}: the folder {str(path.parent)!r} is not writable")


def _run(job: Job, store: RunStore) -> Iterator[tuple[Any, ...]]:
    stored = store.load(job)
    series = [stored.series(name) for name in SERIES]
    iterations = [
        (number, part["variables"], _count(part["variables"]))
        for number, part in enumerate(stored.record["iterations"])
        for _ in range(part["evaluations"])
    ]
    for i, (value, best, thinking, elapsed) in enumerate(zip(*series, strict=True)):
        known = iterations[i] if i < len(iterations) else (None, None, None)
        yield (job.problem, job.case.label, job.seed, i + 1, *known, value, best, thinking, elapsed)


def _count(text: str) -> int:
    pairs = (part.partition("-") for part in text.split())
    return sum(int(last or first) - int(first) + 1 for first, _, last in pairs)


def write_table(jobs: Sequence[Job], store: RunStore, path: Path) -> int:
    """Write the table as the path's ending says, .csv or .parquet; the number of rows."""
    finished = _in_order(jobs, store)
    with replacing(path) as partial:
        if path.suffix == ".parquet":
            return _write_parquet(finished, store, partial)
        return _write_table_csv(finished, store, partial)


def _write_table_csv(jobs: Sequence[Job], store: RunStore, path: Path) -> int:
    count = 0
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(TABLE_COLUMNS)
        for row in (row for job in jobs for row in _run(job, store)):
            out.writerow(map(_text, row))
            count += 1
    return count


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError("a Parquet table needs pyarrow, not installed here: pip install 'mctsvs[pandas]'") from None
    return pyarrow, pyarrow.parquet


def _write_parquet(jobs: Sequence[Job], store: RunStore, path: Path) -> int:
    pa, pq = _pyarrow()
    kinds = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    schema = pa.schema([(name, kinds[kind]) for name, kind in TABLE_COLUMNS.items()])
    count = 0
    with pq.ParquetWriter(path, schema) as out:
        for job in jobs:  # a row group for each run
            columns = list(zip(*_run(job, store), strict=True))
            out.write_table(pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema))
            count += len(columns[0])
    return count
