"""One tidy table of all runs: a row for each evaluation of each run.

Everything that follows from the seed comes first; the two columns of seconds come last, so that the table of a grid
that was interrupted equals that of one that was not, up to those two.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mctsvs.bench.run_store import SERIES, Job, RunStore, replacing
from mctsvs.utils.validation import InputError

COLUMNS = {
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


def in_order(jobs: Sequence[Job], store: RunStore) -> list[Job]:
    """Those that are finished, in the order of problem, method (as given) and seed."""
    problems = {name: i for i, name in enumerate(dict.fromkeys(job.problem for job in jobs))}
    labels = {name: i for i, name in enumerate(dict.fromkeys(job.case.label for job in jobs))}
    ordered = sorted(dict.fromkeys(jobs), key=lambda j: (problems[j.problem], labels[j.case.label], j.seed))
    return [job for job in ordered if job in store]


def check(path: Path) -> None:
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


def write(jobs: Sequence[Job], store: RunStore, path: Path) -> int:
    """Write the table as the path's ending says, .csv or .parquet; the number of rows."""
    finished = in_order(jobs, store)
    with replacing(path) as partial:
        if path.suffix == ".parquet":
            return _write_parquet(finished, store, partial)
        return _write_csv(finished, store, partial)


def _write_csv(jobs: Sequence[Job], store: RunStore, path: Path) -> int:
    count = 0
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(COLUMNS)
        for row in (row for job in jobs for row in _run(job, store)):
            out.writerow(["" if isinstance(cell, float) and math.isnan(cell) else cell for cell in row])
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
    schema = pa.schema([(name, kinds[kind]) for name, kind in COLUMNS.items()])
    count = 0
    with pq.ParquetWriter(path, schema) as out:
        for job in jobs:  # a row group for each run
            columns = list(zip(*_run(job, store), strict=True))
            out.write_table(pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema))
            count += len(columns[0])
    return count
