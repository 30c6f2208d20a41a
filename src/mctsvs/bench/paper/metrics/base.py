"""What all measures have, and what those share that are tables in the paper and dots in our figures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mctsvs.bench import figures
from mctsvs.bench.algorithms import ConfiguredMethod
from mctsvs.bench.paper.author_logs import AuthorRuns
from mctsvs.bench.results import OURS, PRINTED, THEIRS, Numbers, Row, short
from mctsvs.bench.run_store import Runs
from mctsvs.bench.stats import Summary
from mctsvs.bench.styles import written

if TYPE_CHECKING:
    from mctsvs.bench.paper.entry import PaperEntry
    from mctsvs.bench.paper.page import Found, Page


class Metric(ABC):
    """What an entry shows of its runs."""

    axis = "evaluations"  # of the numbers that are compared with the authors'
    with_options = True  # whether the library's options or the paper's make a difference
    judged = False  # whether our values can be called better or worse than the authors'

    @abstractmethod
    def rows(self, found: Found) -> Iterator[Row]:
        """Everything drawn and said, and the authors' runs at the evaluations their file has."""

    @abstractmethod
    def draw(self, entry: PaperEntry, numbers: Numbers, stem: Path) -> list[Path]:
        """Write stem.png, stem.svg and stem.pdf."""

    @abstractmethod
    def table(self, page: Page) -> str:
        """Markdown: our numbers beside the paper's and the authors'."""


class Dots(Metric):
    """A table of the paper, drawn as dots: ours with standard error, the paper's where it prints a number."""

    scale = figures.DotScale()

    @abstractmethod
    def title(self, budget: int) -> str:
        """What the dots' axis shows."""

    @abstractmethod
    def of(self, runs: Runs) -> Summary:
        """What is measured of our runs."""

    def of_theirs(self, their: AuthorRuns, evaluations: int) -> Summary | None:
        """What is measured of the authors' runs; None where they do not tell."""
        return their.at(evaluations)

    def printed(self, entry: PaperEntry, problem: str, case: ConfiguredMethod) -> float | None:
        """The number that the paper prints."""
        cell = entry.published.printed.get(case, {}).get(problem)
        return None if cell is None else float(cell)

    def draw(self, entry: PaperEntry, numbers: Numbers, stem: Path) -> list[Path]:
        rows = []
        for problem in entry.problems:
            dots = []
            for case in entry.cases(problem):
                ours = numbers.at(OURS, problem, case.label, self.axis)
                if ours is not None:
                    beside = self.printed(entry, problem, case)
                    dots.append(figures.Dot(case.label, ours.mean, ours.error, beside, name=written(case.label)))
            if dots:
                rows.append((problem, dots))
        return figures.draw_dots(rows, stem, self.title(numbers.budget), self.scale)

    def rows(self, found: Found) -> Iterator[Row]:
        for problem in found.entry.problems:
            for case, runs in found.on(problem).items():
                cell = problem, case.label, self.axis, runs.budget
                ours, printed = self.of(runs), self.printed(found.entry, problem, case)
                yield OURS, *cell, ours.mean, ours.error, len(runs.seeds)
                if printed is not None:
                    yield PRINTED, *cell, printed, "", ""
                their = found.their(problem, case)
                if their and found.budget in their.checkpoints and (of := self.of_theirs(their, found.budget)):
                    yield THEIRS, *cell, short(of.mean), short(of.error), of.n, their.logs
