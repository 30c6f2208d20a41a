"""The best value so far: curves by evaluations or by seconds, and a table for each problem."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mctsvs.lab import comparison, figures, stats
from mctsvs.lab.authors import Theirs
from mctsvs.lab.cases import Case
from mctsvs.lab.comparison import markdown_table
from mctsvs.lab.measures.base import Measure, Row, points, short
from mctsvs.lab.runs import Runs
from mctsvs.lab.stats import number

if TYPE_CHECKING:
    from mctsvs.lab.page import Page

CHECKPOINTS = (50, 100, 200, 300, 600, 1200)


class Best(Measure):
    """The best value so far."""

    judged = True

    def draw(self, page: Page, stem: Path) -> list[Path]:
        plots: list[figures.Plot] = []
        for panel in page.entry.panels:
            own = {case: page.runs[panel.problem, case] for case in panel.cases if (panel.problem, case) in page.runs}
            if own:
                plots.append(comparison.plot(panel.problem, own, panel.axis == "seconds", named=not plots))
        return figures.draw(plots, stem)

    def numbers(self, page: Page) -> Iterator[Row]:
        for panel in page.entry.panels:
            for case in panel.cases:
                if (runs := page.runs.get((panel.problem, case))) is None:
                    continue
                cell = panel.problem, case.label, panel.axis
                for point in points(comparison.curve(case, runs, panel.axis == "seconds")):
                    yield "ours", *cell, *point, len(runs.seeds)
                their = page.their(panel.problem, case) if panel.axis == "evaluations" else None
                for n in their.checkpoints if their else []:
                    if n <= page.budget and their is not None:
                        found = their.at(n)
                        yield "authors", *cell, *map(short, (float(n), found.mean, found.error)), found.n

    def table(self, page: Page) -> str:
        parts = [_table(page, problem, own) for problem in page.entry.problems if (own := page.on(problem))]
        return "\n\n".join(parts)


def _table(page: Page, problem: str, own: dict[Case, Runs]) -> str:
    first, budget = next(iter(own.values())), max(runs.budget for runs in own.values())
    columns = [*[n for n in CHECKPOINTS if n < budget][-3:], budget]
    whole = {case.label: runs.at(budget).mean for case, runs in own.items() if runs.budget == budget}
    ranks = stats.ranks(whole, maximise=first.maximise)
    header = ["method", "runs", *(f"at {n}" for n in columns), "rank", "wall seconds"]
    beside = _beside(page, problem, own)
    if beside:
        header += ["authors' runs", "their rank", "ours - theirs, standard errors"]
    rows = []
    for case, runs in own.items():
        cells = [str(runs.at(n)) if n <= runs.budget else "" for n in columns]
        if runs.budget not in columns:
            cells[-1] = f"{runs.at(runs.budget)} (at {runs.budget})"
        rank = f"{ranks[case.label]:g}" if case.label in ranks else ""
        seconds = number(stats.summary(runs.elapsed[:, -1]).mean)
        rows.append([case.label, str(len(runs.seeds)), *cells, rank, seconds, *beside.get(case, [])])
    goal = "larger" if first.maximise else "smaller"
    known = "" if first.optimum is None else f", optimum {first.optimum:.6g}"
    return f"### {problem}\n\nBest value so far, {goal} is better{known}.\n\n" + markdown_table(header, rows)


def _beside(page: Page, problem: str, own: dict[Case, Runs]) -> dict[Case, list[str]]:
    """The authors' value, its rank and how far ours is from it; empty where they ran nothing of this."""
    found: dict[Case, tuple[Theirs, int]] = {}
    for case, runs in own.items():
        their = page.their(problem, case)
        if their is not None and (n := their.last(runs.budget)):
            found[case] = their, n
    furthest = max((n for _, n in found.values()), default=0)
    means = {case.label: their.at(n).mean for case, (their, n) in found.items() if n == furthest}
    ranks = stats.ranks(means, maximise=next(iter(own.values())).maximise)
    cells = {case: ["", "", ""] for case in own} if found else {}
    for case, (their, n) in found.items():
        theirs = their.at(n)
        count = f"{theirs.n} run{'s' * (theirs.n != 1)}"
        gap = f"{stats.apart(own[case].at(n), theirs):+.1f}".replace("+nan", "–")
        rank = f"{ranks[case.label]:g}" if case.label in ranks else ""
        cells[case] = [f"{theirs} ({count}, at {n}; {their.logs})", rank, gap]
    return cells
