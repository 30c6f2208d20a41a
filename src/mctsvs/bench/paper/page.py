"""The page of an entry: its numbers, the authors' beside them, and how they compare."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mctsvs.bench import comparison, stats
from mctsvs.bench.algorithms import ConfiguredMethod
from mctsvs.bench.paper.author_logs import AuthorLogs, AuthorRuns
from mctsvs.bench.paper.entry import PaperEntry
from mctsvs.bench.paper.metrics import Metric
from mctsvs.bench.paper.page_head import Provenance, head
from mctsvs.bench.results import MADE, NOTE, OURS, PROBLEM, THEIRS, Numbers, Row, short
from mctsvs.bench.run_store import Runs
from mctsvs.bench.styles import written

MARGIN = 2.0  # standard errors of a difference below which two means are called level


@dataclass(frozen=True)
class Verdict:
    """How our order of methods and our values compare with the authors' runs, over the cells both have."""

    cells: int
    better: int  # of ours, by more than MARGIN standard errors
    worse: int
    taus: tuple[float, ...]  # Kendall's, one for each problem

    def __str__(self) -> str:
        level = self.cells - self.better - self.worse
        text = f"{self.better} better, {level} level, {self.worse} worse of {self.cells}"
        if self.taus:
            text += f"; order of the methods: tau {np.mean(self.taus):.2f}"
        return text


@dataclass(frozen=True)
class Found:
    """The runs of an entry, and the authors'."""

    entry: PaperEntry
    runs: Mapping[tuple[str, ConfiguredMethod], Runs]
    authors: AuthorLogs

    @property
    def budget(self) -> int:
        return self.entry.effort.budget

    def on(self, problem: str) -> dict[ConfiguredMethod, Runs]:
        """The cases that were run on a problem."""
        return {c: self.runs[problem, c] for c in self.entry.cases(problem) if (problem, c) in self.runs}

    def their(self, problem: str, case: ConfiguredMethod) -> AuthorRuns | None:
        """The authors' runs, where they are of the same thing."""
        if problem in self.entry.published.unlike:
            return None
        return self.authors.find(self.entry.published.logs, problem, case)

    def numbers(self, making: Provenance) -> Numbers:
        """Everything a page is made of."""
        assert self.entry.measure is not None
        return Numbers([*self._made(making), *self.entry.measure.rows(self)])

    def _made(self, making: Provenance) -> Iterator[Row]:
        effort = self.entry.effort
        day = time.strftime("%Y-%m-%d")
        seeds = making.seeds(effort.seeds)
        yield MADE, making.command, day, "", effort.budget, "", "", len(effort.seeds), seeds
        for note in making.lines(self.entry):
            yield NOTE, note
        for problem in self.entry.problems:
            if own := self.on(problem):
                first = next(iter(own.values()))
                best = np.nan if first.optimum is None else first.optimum
                yield PROBLEM, problem, "maximize" if first.maximise else "minimize", "", "", short(best)


@dataclass(frozen=True)
class Page:
    """An entry with its numbers: with the library's settings, with the paper's, or both."""

    entry: PaperEntry
    library: Numbers | None = None
    paper: Numbers | None = None

    @classmethod
    def read(cls, entry: PaperEntry, folder: Path) -> Page:
        """From the files of numbers in a folder."""
        paths = [folder / f"{entry.name}{ending}.csv" for ending in ("", "-paper")]
        return cls(entry, *(Numbers.read(path) if path.is_file() else None for path in paths))

    @property
    def measure(self) -> Metric:
        assert self.entry.measure is not None
        return self.entry.measure

    @property
    def main(self) -> Numbers:
        found = self.library or self.paper
        assert found is not None
        return found

    @property
    def both(self) -> bool:
        return self.library is not None and self.paper is not None

    def on(self, problem: str) -> Sequence[str]:
        """Labels of the cases that there are numbers of."""
        labels = [case.label for case in self.entry.cases(problem)]
        return [label for label in labels if self.main.series(OURS, problem, label, self.measure.axis)]

    def text(self) -> str:
        judged = ""
        if self.measure.judged:
            verdicts = {"": self.main} | ({" with the paper's settings": self.paper} if self.both else {})
            for words, numbers in verdicts.items():
                verdict = self.verdict(numbers) if numbers else None
                judged += f"Against the authors' runs{words}: {verdict}.\n\n" if verdict else ""
        ranks = "".join(self._ranks(stem, numbers) for stem, numbers in self.settings.items())
        top = head(self.entry, self.main, self.paper if self.both else None)
        return top + judged + ranks + self.measure.table(self) + "\n"

    @property
    def settings(self) -> dict[str, Numbers]:
        """The numbers there are, by how the names of their files begin."""
        both = {self.entry.name: self.library, f"{self.entry.name}-paper": self.paper}
        return {stem: numbers for stem, numbers in both.items() if numbers is not None}

    def latex(self) -> str:
        """The last values as a table for papers, with the paper's settings below where there are any."""
        assert self.entry.measure is not None
        cells: dict[str, dict[str, stats.Summary]] = {}
        several = self.paper is not None and self.paper is not self.main
        for numbers in filter(None, (self.main, self.paper if several else None)):
            for case in self.entry.cases():
                name = written(case.label) + (" (paper's settings)" if several and numbers is self.paper else "")
                values = {p: numbers.at(OURS, p, case.label, self.entry.measure.axis) for p in self.entry.problems}
                if own := {p: value for p, value in values.items() if value is not None}:
                    cells[name] = own
        return comparison.tabular(cells, {p: self.main.maximise(p) for p in self.entry.problems})

    def ranking(self, numbers: Numbers) -> stats.Ranking | None:
        """Methods ranked by their last values over the problems; None where these are few, or not what is compared."""
        if not self.measure.judged:
            return None
        means: dict[str, dict[str, float]] = {}
        for problem in self.entry.problems:
            for case in self.entry.cases(problem):
                last = numbers.at(OURS, problem, case.label, self.measure.axis, numbers.budget)
                if last is not None:
                    means.setdefault(problem, {})[case.label] = last.mean
        return stats.ranking(means, {problem: numbers.maximise(problem) for problem in means})

    def _ranks(self, stem: str, numbers: Numbers) -> str:
        found = self.ranking(numbers)
        if found is None:
            return ""
        words = " with the paper's settings" if self.both and numbers is self.paper else ""
        listed = ", ".join(f"{label} {rank:.2f}" for label, rank in found.ranks.items())
        return (
            f"Mean ranks over {found.problems} problems{words}: {listed}; critical difference {found.difference:.2f}, "
            f"Friedman's test p = {found.p_value:.2g} ([diagram]({stem}-ranks.png)).\n\n"
        )

    def verdict(self, numbers: Numbers) -> Verdict | None:
        """Over the cells that the authors ran too; None where there are none."""
        distances: list[float] = []
        taus = []
        for problem in self.entry.problems:
            pairs, maximise = [], numbers.maximise(problem)
            for label in self.on(problem):
                ours, theirs = (numbers.series(s, problem, label, self.measure.axis) for s in (OURS, THEIRS))
                n = max((n for n in theirs if n in ours), default=None)
                if n is None:
                    continue
                if n == numbers.budget:  # an order of values after different numbers of evaluations says nothing
                    pairs.append((ours[n].mean, theirs[n].mean))
                distances.append(stats.apart(ours[n], theirs[n]) * (1.0 if maximise else -1.0))
            if len(pairs) > 2:
                taus.append(stats.rank_correlation(*zip(*pairs, strict=True)))
        known = np.array([d for d in distances if not np.isnan(d)])  # NaN: a single run has no error to measure by
        better, worse = int(np.sum(known > MARGIN)), int(np.sum(known < -MARGIN))
        orders = tuple(tau for tau in taus if not np.isnan(tau))  # NaN: all values of one side are equal
        return Verdict(len(known), better, worse, orders) if len(known) else None
