"""Runs that are stored as they finish, a line of JSON each: stopped at any moment, the same command goes on."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def rows(path: Path) -> list[Row]:
    """What is stored so far."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def finish(
    job: Callable[..., Row],
    wanted: Iterable[tuple[Any, ...]],
    names: tuple[str, ...],
    path: Path,
    workers: int,
    show: Callable[[Row], str],
) -> list[Row]:
    """All rows, once every job is done that is not stored; `names` are the fields that hold a job's arguments.

    Processes are spawned: a forked one cannot use an accelerator.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    known = rows(path)
    done = {tuple(row.get(name) for name in names) for row in known}
    missing = [what for what in wanted if what[: len(names)] not in done]
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=spawn) as pool, path.open("a") as out:
        futures = [pool.submit(job, *what) for what in missing]
        for count, future in enumerate(as_completed(futures), 1):
            known.append(future.result())
            out.write(json.dumps(known[-1]) + "\n")
            out.flush()
            print(f"{count}/{len(missing)} {show(known[-1])}", flush=True)
    return known
