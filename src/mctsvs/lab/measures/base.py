"""What all measures have, and what those share that are tables in the paper and dots in our figures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mctsvs.lab import figures
from mctsvs.lab.authors import Theirs
from mctsvs.lab.cases import Case
from mctsvs.lab.runs import Runs
from mctsvs.lab.stats import Summary

if TYPE_CHECKING:
    from mctsvs.lab.page import Page

Row = Sequence[Any]
"""source, problem, method, axis, x, mean, standard error, runs."""


class Measure(ABC):
    """What an entry shows of its runs."""

    with_options = True  # whether the library's options or the paper's make a difference
    judged = False  # whether our values can be called better or worse than the authors'

    @abstractmethod
    def draw(self, page: Page, stem: Path) -> list[Path]:
        """Write stem.png and stem.svg."""

    @abstractmethod
    def numbers(self, page: Page) -> Iterator[Row]:
        """Everything drawn, and the authors' runs at the evaluations their file has."""

    @abstractmethod
    def table(self, page: Page) -> str:
        """Markdown: our numbers beside the paper's and the authors'."""


class Dots(Measure):
    """A table of the paper, drawn as dots: ours with standard error, the paper's where it prints a number."""

    name: str  # in the numbers behind the figure
    scale = figures.DotScale()

    @abstractmethod
    def axis(self, budget: int) -> str:
        """What the dots' axis shows."""

    @abstractmethod
    def of(self, runs: Runs) -> Summary:
        """What is measured of our runs."""

    def of_theirs(self, their: Theirs, evaluations: int) -> Summary | None:
        """What is measured of the authors' runs; None where they do not tell."""
        return their.at(evaluations)

    def their(self, page: Page, problem: str, case: Case) -> Summary | None:
        """The same for a case; None where their runs do not go as far."""
        their = page.their(problem, case)
        return self.of_theirs(their, page.budget) if their and page.budget in their.checkpoints else None

    def printed(self, page: Page, problem: str, case: Case) -> float | None:
        """The number that the paper prints."""
        cell = page.printed(problem, case)
        return None if cell is None else float(cell)

    def draw(self, page: Page, stem: Path) -> list[Path]:
        rows = []
        for problem in page.entry.problems:
            found = [(case, self.of(runs)) for case, runs in page.on(problem).items()]
            dots = [figures.Dot(c.label, s.mean, s.error, self.printed(page, problem, c)) for c, s in found]
            rows.append((problem, dots))
        return figures.draw_dots(rows, stem, self.axis(page.budget), self.scale)

    def numbers(self, page: Page) -> Iterator[Row]:
        for problem in page.entry.problems:
            for case, runs in page.on(problem).items():
                cell = problem, case.label, self.name, runs.budget
                ours, printed = self.of(runs), self.printed(page, problem, case)
                yield "ours", *cell, ours.mean, ours.error, len(runs.seeds)
                if printed is not None:
                    yield "paper", *cell, printed, "", ""
                if (found := self.their(page, problem, case)) is not None:
                    yield "authors", *cell, short(found.mean), short(found.error), found.n


def short(value: float) -> float | str:
    """As written in files of numbers: eight digits, nothing for NaN."""
    return "" if np.isnan(value) else float(f"{value:.8g}")


def points(curve: figures.Curve) -> list[tuple[float | str, ...]]:
    """x, mean and standard error of each point of a curve."""
    triples = zip(curve.x, curve.mean, curve.error, strict=True)
    return [tuple(short(float(cell)) for cell in triple) for triple in triples]
