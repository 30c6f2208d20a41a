"""Finished runs as lines of a file: what tables need of them, small enough to lie beside a page.

A line has problem, method, seed, budget, milliseconds an evaluation, and the value after so many evaluations: the best
true one so far, or the true one of the recommended point, on COCO's suites as its distance from the optimum where that
is known. Of runs with measured constraints the value is the best feasible one, empty before there is one, and
`feasible` is the number of the first feasible evaluation.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mctsvs.bench import results
from mctsvs.bench.problems import coco
from mctsvs.bench.run_store import RunStore, StoredRun
from mctsvs.utils.validation import Array, InputError

COLUMNS = ["problem", "method", "seed", "budget", "ms"]
FEASIBLE = "feasible"  # a further column, of runs with constraints


@dataclass(frozen=True)
class Run:
    """What tables need of one: evaluations -> value, NaN where nothing is feasible yet."""

    problem: str
    method: str
    seed: int
    budget: int
    ms: float
    at: Mapping[int, float]
    feasible: float = 1.0  # NaN: never


def finished(folder: Path, points: Sequence[int], *, recommended: bool = False, wall: bool = False) -> list[Run]:
    """Those in a store, or in a folder of constrained.py; `wall`: milliseconds of the wall clock, not the processor."""
    if not folder.is_dir():
        raise InputError(f"there is no folder {str(folder)!r} of finished runs")
    found = [_constrained(path, points) for path in sorted(folder.glob("*.json"))]
    for job, stored in RunStore(folder).every():
        problem = job.problem + (", centre given" if job.variation.get("centre") else "")
        values = _recommended(stored) if recommended else dict(enumerate(_best(stored), 1))
        above = (stored.optimum or 0.0) if problem.startswith("bbob") else 0.0
        at = {n: values[n] - above for n in points if n in values}
        seconds = stored.series("thinking")[-1] if wall else stored.record["cpu_seconds"]
        found.append(Run(problem, job.case.label, job.seed, job.budget, 1e3 * seconds / job.budget, at))
    return found


def _best(stored: StoredRun) -> Array:
    better = np.fmax if stored.direction == "maximize" else np.fmin
    return better.accumulate(np.array(stored.series("true") or stored.series("values")))


def _recommended(stored: StoredRun) -> dict[int, float]:
    """Empty for a run without noise."""
    true, numbers_of_trials = stored.series("true"), stored.series("recommended")
    return {n: true[int(trial)] for n, trial in enumerate(numbers_of_trials, 1) if not np.isnan(trial)}


def _constrained(path: Path, points: Sequence[int]) -> Run:
    stored = json.loads(path.read_text())
    trace = np.array(stored["trace"], dtype=np.float64)
    budget, there = len(trace), np.flatnonzero(~np.isnan(trace))
    at = {n: float(trace[n - 1]) for n in points if n <= budget}
    first = there[0] + 1.0 if len(there) else np.nan
    return Run(stored["problem"], stored["method"], stored["seed"], budget, 1e3 * stored["cpu"] / budget, at, first)


def write(runs: Sequence[Run], path: Path) -> None:
    points, constrained = points_of(runs), any(run.feasible != 1.0 for run in runs)
    table: list[list[object]] = [[*COLUMNS, *[FEASIBLE] * constrained, *points]]
    for run in runs:
        first = [results.short(run.feasible)] * constrained
        values = [results.short(run.at.get(n, np.nan)) for n in points]
        table.append([run.problem, run.method, run.seed, run.budget, f"{run.ms:.5g}", *first, *values])
    path.parent.mkdir(parents=True, exist_ok=True)
    results.write(path, table)


def read(path: Path) -> list[Run]:
    with path.open(newline="", encoding="utf-8") as file:
        return [_read(line) for line in csv.DictReader(file)]


def _read(line: Mapping[str, str]) -> Run:
    budget = int(line["budget"])
    at = {int(name): float(text or "nan") for name, text in line.items() if name.isdigit() and int(name) <= budget}
    first = float(line.get(FEASIBLE, "1") or "nan")
    return Run(line["problem"], line["method"], int(line["seed"]), budget, float(line["ms"]), at, first)


def points_of(runs: Iterable[Run]) -> list[int]:
    return sorted({n for run in runs for n in run.at})


def by_method(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """In the order in which they come."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(run.method, []).append(run)
    return found


def by_dimension(runs: Iterable[Run]) -> dict[int, list[Run]]:
    """Of COCO's problems, few variables first."""
    found: dict[int, list[Run]] = {}
    for run in sorted(runs, key=lambda run: parts_of(run.problem)[2]):
        found.setdefault(parts_of(run.problem)[2], []).append(run)
    return found


def parts_of(problem: str) -> tuple[str, int, int, int]:
    """Suite, function, dimension and instance of COCO's."""
    name = next(filter(None, (family.pattern.fullmatch(problem) for family in coco.FAMILIES)), None)
    if name is None:
        raise InputError(f"{problem!r} is no problem of COCO's")
    return name["suite"], int(name["f"]), int(name["D"]), int(name["i"] or 1)


def natural(text: str) -> list[str | int]:
    """To sort by: numbers inside count as such."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", text)]


def whole_numbers(text: str) -> list[int]:
    """2,5-7 is 2, 5, 6, 7."""
    ends = [(part.partition("-")[0], part.rpartition("-")[2]) for part in text.split(",")]
    return [number for first, last in ends for number in range(int(first), int(last) + 1)]
