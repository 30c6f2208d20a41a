"""The numbers of a page: everything that its figure draws and its tables say, a row each (NAME.csv).

Pages and figures are made of these rows alone, so they can be made again, and checked, without the runs.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

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
