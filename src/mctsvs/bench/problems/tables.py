"""Problems whose every answer was measured beforehand: a table of architectures or settings and how they did.

A choice among b options is offered as b variables in [0, 1], one score for each option, of which the largest wins (the
first of equals), as in the paper. A point of D = b_1 + b_2 + ... variables so names one row of a table of b_1 b_2 ...
rows, ordered with the last choice running fastest.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from mctsvs.objectives.problem import Problem, Variation
from mctsvs.utils.validation import Array, InputError

NAS_OPTIONS: Mapping[str, float] = {"cp": 0.1, "d": 10}
"""What the paper sets for NAS-Bench: C_p and the dimension of an embedding."""


class Columns(NamedTuple):
    """One number for each row of a table."""

    values: Array
    seconds: Array | None = None
    """What training would take."""


class Lazy:
    """What a subclass, a dataclass, has loaded stays out of its pickle: sending it to worker processes is cheap."""

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Table(Lazy):
    """The value of the row that a point names.

    >>> from mctsvs.bench.problems import make
    >>> cells = make("NASBench201").function
    >>> cells.row(np.zeros(30)), len(cells.columns.values)
    (0, 15625)

    Read when first used in a process.
    """

    blocks: tuple[int, ...]
    """Number of options of each choice."""
    load: Callable[[], Columns]
    """A function of a module, or a partial of one, which pickles by name."""

    @functools.cached_property
    def columns(self) -> Columns:
        columns = self.load()
        rows = math.prod(self.blocks)
        if len(columns.values) != rows:
            raise InputError(f"a table of {len(columns.values)} rows was read where {rows} are needed")
        return columns

    @functools.cached_property
    def _places(self) -> list[tuple[int, int, int]]:
        """Where each block starts, where it ends, and how many rows one step of its choice is."""
        ends = np.cumsum(self.blocks)
        steps = np.cumprod((1, *self.blocks[:0:-1]))[::-1]
        return list(zip((ends - self.blocks).tolist(), ends.tolist(), steps.tolist(), strict=True))

    def row(self, x: Array) -> int:
        """The row that the largest scores name."""
        return sum(int(x[start:end].argmax()) * step for start, end, step in self._places)

    def point(self, row: int) -> Array:
        """A point that names `row`: score 1 for what is chosen, 0 for the rest."""
        x = np.zeros(sum(self.blocks))
        for start, end, step in self._places:
            x[start + row // step % (end - start)] = 1.0
        return x

    def __call__(self, x: Array) -> float:
        return float(self.columns.values[self.row(x)])

    def seconds(self, x: Array) -> float | None:
        """What training the row's network would take; None: unknown."""
        seconds = self.columns.seconds
        return None if seconds is None else float(seconds[self.row(x)])


def table_problem(
    name: str,
    description: str,
    table: Table,
    variation: Variation,
    *,
    direction: Literal["maximize", "minimize"] = "maximize",
    paper_options: Mapping[str, Any] = NAS_OPTIONS,
) -> Problem:
    """The problem of finding the best row, whose value is the best of the data at hand."""
    noise = variation.only_noise(name)
    values = table.columns.values
    best = int(values.argmax() if direction == "maximize" else values.argmin())
    return Problem(
        name=name,
        description=description + variation.words(),
        bounds=unit_cube(sum(table.blocks)),
        function=table,
        direction=direction,
        optimum=float(values[best]),
        optimizer=table.point(best),
        noise=variation.noise,
        paper_options=dict(paper_options),
        generator=noise,
    )


def unit_cube(dimension: int) -> Array:
    """Bounds of `dimension` variables in [0, 1]."""
    return np.tile([0.0, 1.0], (dimension, 1))


def name_pattern(*words: str, choices: str = "") -> re.Pattern[str]:
    """Names in any case, their words joined by hyphens or nothing; `T` is the choice after an underscore or hyphen."""
    text = "[-_]?".join(words) + (f"(?:[-_](?P<T>{choices}))?" if choices else "")
    return re.compile(text, re.IGNORECASE | re.ASCII)
