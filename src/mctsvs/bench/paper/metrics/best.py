"""The best value so far: curves by evaluations or by seconds, and a table for each problem."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mctsvs.bench import comparison, figures, stats
from mctsvs.bench.comparison import markdown_table
from mctsvs.bench.paper.metrics.base import Metric
from mctsvs.bench.results import OURS, THEIRS, Numbers, Row, short
from mctsvs.bench.stats import Summary, number

if TYPE_CHECKING:
    from mctsvs.bench.paper.entry import Panel, PaperEntry
    from mctsvs.bench.paper.page import Found, Page

CHECKPOINTS = (50, 100, 200, 300, 600, 1200)
SECONDS = "wall seconds"


class Best(Metric):
    """The best value so far."""

    judged = True

    def rows(self, found: Found) -> Iterator[Row]:
        for panel in found.entry.panels:
            for case in panel.cases:
                if (runs := found.runs.get((panel.problem, case))) is None:
                    continue
                cell = panel.problem, case.label, panel.axis
                curve = comparison.curve(case, runs, panel.axis == "seconds")
                for triple in zip(curve.x, curve.mean, curve.error, strict=True):
                    yield OURS, *cell, *(short(float(value)) for value in triple), len(runs.seeds)
                if panel.axis == "seconds":
                    continue
                spent = stats.summary(runs.elapsed[:, -1])
                yield OURS, *cell[:2], SECONDS, runs.budget, short(spent.mean), short(spent.error), len(runs.seeds)
                their = found.their(panel.problem, case)
                for n in their.checkpoints if their else []:
                    if n <= found.budget and their is not None:
                        at = their.at(n)
                        yield THEIRS, *cell, *map(short, (float(n), at.mean, at.error)), at.n, their.logs

    def draw(self, entry: PaperEntry, numbers: Numbers, stem: Path) -> list[Path]:
        plots: list[figures.Plot] = []
        for panel in entry.panels:
            plot = _plot(panel, numbers, named=not plots)
            if plot.curves:
                plots.append(plot)
        return figures.draw(plots, stem)

    def table(self, page: Page) -> str:
        parts = [_table(page, problem) for problem in page.entry.problems if page.on(problem)]
        return "\n\n".join(parts)


def _plot(panel: Panel, numbers: Numbers, *, named: bool) -> figures.Plot:
    curves = []
    for case in panel.cases:
        for source in (OURS, THEIRS):
            arrays = numbers.arrays(source, panel.problem, case.label, panel.axis)
            if len(arrays[0]):
                curves.append(figures.Curve(case.label, *arrays, theirs=source == THEIRS))
    return comparison.plotted(
        panel.problem,
        curves,
        optimum=numbers.optimum(panel.problem),
        maximise=numbers.maximise(panel.problem),
        by_seconds=panel.axis == "seconds",
        named=named,
    )


def _last(numbers: Numbers, problem: str, label: str) -> tuple[int, Summary]:
    """Of a case's own curve; the numbers hold it."""
    found = numbers.series(OURS, problem, label, "evaluations")
    n = max(found)
    return int(n), found[n]


def _table(page: Page, problem: str) -> str:
    numbers, labels = page.main, page.on(problem)
    last = {label: _last(numbers, problem, label) for label in labels}
    budget = max(n for n, _ in last.values())
    columns = [*[n for n in CHECKPOINTS if n < budget][-3:], budget]
    maximise = numbers.maximise(problem)
    ranks = stats.ranks({label: s.mean for label, (n, s) in last.items() if n == budget}, maximise=maximise)
    beside, other = _beside(page, problem), _other_settings(page, problem)
    header = ["method", "runs", *(f"at {n}" for n in columns), "rank", SECONDS]
    header += [f"paper's settings, at {budget}"] if other else []
    header += ["authors' runs", "their rank", "ours - theirs, standard errors"] if beside else []
    header += ["paper's settings - theirs"] if beside and other else []
    rows = []
    for label in labels:
        series, (n, end) = numbers.series(OURS, problem, label, "evaluations"), last[label]
        cells = [str(series[at]) if at in series else "" for at in columns]
        if n not in columns:
            cells[-1] = f"{end} (at {n})"
        spent = numbers.at(OURS, problem, label, SECONDS)
        row = [label, str(end.n), *cells, f"{ranks[label]:g}" if label in ranks else ""]
        row += [number(spent.mean) if spent else "", *other.get(label, [""])[: bool(other)], *beside.get(label, [])]
        row += [_gap(page.paper, page.main, problem, label)] if beside and other else []
        rows.append(row)
    goal, optimum = "larger" if maximise else "smaller", numbers.optimum(problem)
    known = "" if optimum is None else f", optimum {optimum:.6g}"
    return f"### {problem}\n\nBest value so far, {goal} is better{known}.\n\n" + markdown_table(header, rows)


def _other_settings(page: Page, problem: str) -> Mapping[str, list[str]]:
    """What the same cases have with the paper's settings, where the page's own numbers are the library's."""
    if page.paper is None or page.paper is page.main:
        return {}
    found = {}
    for label in page.on(problem):
        if page.paper.series(OURS, problem, label, "evaluations"):
            n, end = _last(page.paper, problem, label)
            found[label] = [f"{end} ({end.n} run{'s' * (end.n != 1)}{'' if n == page.main.budget else f', at {n}'})"]
    return found


def _gap(ours: Numbers | None, theirs: Numbers, problem: str, label: str) -> str:
    """Ours minus theirs in standard errors of the difference, at the last evaluation that both have."""
    found = theirs.series(THEIRS, problem, label, "evaluations")
    own = ours.series(OURS, problem, label, "evaluations") if ours else {}
    shared = [n for n in found if n in own]
    if not shared:
        return ""
    return f"{stats.apart(own[max(shared)], found[max(shared)]):+.1f}".replace("+nan", "–")


def _beside(page: Page, problem: str) -> dict[str, list[str]]:
    """The authors' value, its rank and how far ours is from it; empty where they ran nothing of this."""
    numbers = page.main
    found: dict[str, tuple[int, Summary]] = {}
    for label in page.on(problem):
        budget, _ = _last(numbers, problem, label)
        series = {n: s for n, s in numbers.series(THEIRS, problem, label, "evaluations").items() if n <= budget}
        if series:
            found[label] = int(max(series)), series[max(series)]
    furthest = max((n for n, _ in found.values()), default=0)
    means = {label: theirs.mean for label, (n, theirs) in found.items() if n == furthest}
    ranks = stats.ranks(means, maximise=numbers.maximise(problem))
    cells = {label: ["", "", ""] for label in page.on(problem)} if found else {}
    for label, (n, theirs) in found.items():
        count = f"{theirs.n} run{'s' * (theirs.n != 1)}"
        rank = f"{ranks[label]:g}" if label in ranks else ""
        logs = numbers.logs.get((problem, label), "")
        cells[label] = [f"{theirs} ({count}, at {n}; {logs})", rank, _gap(numbers, numbers, problem, label)]
    return cells
