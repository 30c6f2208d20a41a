"""The page of an entry: its runs, the authors' beside them, and how they compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mctsvs.lab import stats
from mctsvs.lab.authors import Authors, Theirs
from mctsvs.lab.cases import Case
from mctsvs.lab.entry import PaperEntry
from mctsvs.lab.measures import Measure
from mctsvs.lab.page_head import Making, head
from mctsvs.lab.runs import Runs

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
class Page:
    """One entry with its runs."""

    entry: PaperEntry
    making: Making
    runs: Mapping[tuple[str, Case], Runs]
    authors: Authors

    @property
    def measure(self) -> Measure:
        assert self.entry.measure is not None
        return self.entry.measure

    @property
    def budget(self) -> int:
        return self.entry.effort.budget

    def on(self, problem: str) -> dict[Case, Runs]:
        """The cases that were run on a problem."""
        return {c: self.runs[problem, c] for c in self.entry.cases(problem) if (problem, c) in self.runs}

    def printed(self, problem: str, case: Case) -> Any:
        """What the paper prints; None: nothing."""
        return self.entry.published.printed.get(case, {}).get(problem)

    def their(self, problem: str, case: Case) -> Theirs | None:
        """The authors' runs, where they are of the same thing."""
        if problem in self.entry.published.unlike:
            return None
        return self.authors.find(self.entry.published.logs, problem, case)

    def text(self) -> str:
        verdict = self.verdict() if self.measure.judged else None
        judged = f"Against the authors' runs: {verdict}.\n\n" if verdict else ""
        return head(self.entry, self.making) + judged + self.measure.table(self) + "\n"

    def verdict(self) -> Verdict | None:
        """Over the cells that the authors ran too; None where there are none."""
        distances: list[float] = []
        taus = []
        for problem in self.entry.problems:
            pairs = []
            for case, runs in self.on(problem).items():
                their = self.their(problem, case)
                if their is None or not (n := their.last(runs.budget)):
                    continue
                ours, found = runs.at(n), their.at(n)
                if n == self.budget:  # an order of values after different numbers of evaluations says nothing
                    pairs.append((ours.mean, found.mean))
                distances.append(stats.apart(ours, found) * (1.0 if runs.maximise else -1.0))
            if len(pairs) > 2:
                taus.append(stats.rank_correlation(*zip(*pairs, strict=True)))
        known = np.array([d for d in distances if not np.isnan(d)])  # NaN: a single run has no error to measure by
        better, worse = int(np.sum(known > MARGIN)), int(np.sum(known < -MARGIN))
        orders = tuple(tau for tau in taus if not np.isnan(tau))  # NaN: all values of one side are equal
        return Verdict(len(known), better, worse, orders) if len(known) else None
