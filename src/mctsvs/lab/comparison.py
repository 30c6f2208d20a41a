"""What a comparison leaves behind: the tidy table, a summary for people, and a figure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from mctsvs.common import Array
from mctsvs.lab import figures, stats
from mctsvs.lab.cases import Case
from mctsvs.lab.grid import mixed
from mctsvs.lab.runs import Runs
from mctsvs.lab.stats import number

MOST_POINTS = 60  # of a curve that is drawn and written
LEGEND = f"""Mark: the reference, whose own is empty, is significantly better than the method of that row (+), worse (-)
or neither (≈) by the Wilcoxon signed-rank test, paired by seed, at {stats.CONFIDENCE}. Rank: 1 is the best mean.
Recall: the share of the variables that matter among those that were moved. –: not known."""


def steps(budget: int) -> Array:
    """Evaluations at which curves are drawn and written: the first, then evenly, the last always."""
    step = max(1, math.ceil(budget / MOST_POINTS / 5) * 5 if budget > MOST_POINTS else 1)
    return np.unique(np.concatenate([[1], np.arange(step, budget + 1, step), [budget]])).astype(np.float64)


def curve(case: Case, runs: Runs, by_seconds: bool = False) -> figures.Curve:
    """Mean best so far and its standard error against evaluations.

    Or against wall seconds, from the time when all runs have a value until the first of them ends.
    """
    if by_seconds:
        start, end = float(runs.elapsed[:, 0].max()), float(runs.elapsed[:, -1].min())
        x = np.geomspace(max(start, 1e-4), max(end, start * 1.001, 1.1e-4), MOST_POINTS)
        rows = [stats.at_seconds(t, best, x) for t, best in zip(runs.elapsed, runs.best, strict=True)]
        found = [stats.summary(column) for column in np.array(rows).T]
    else:
        x = steps(runs.budget)
        found = [runs.at(int(n)) for n in x]
    return figures.Curve(case.label, x, np.array([s.mean for s in found]), np.array([s.error for s in found]))


def plot(problem: str, own: Mapping[Case, Runs], by_seconds: bool, named: bool = True) -> figures.Plot:
    """The curves of all cases on a problem; `named`: with a name beside the vertical axis."""
    optimum = next(iter(own.values())).optimum
    return figures.Plot(
        problem,
        "wall seconds" if by_seconds else "evaluations",
        "best value so far" if named else "",
        [curve(case, runs, by_seconds) for case, runs in own.items()],
        levels={} if optimum is None else {"optimum": optimum},
        xscale="log" if by_seconds else "linear",
    )


def by_problem(every: Mapping[tuple[str, Case], Runs]) -> dict[str, dict[Case, Runs]]:
    """Problem -> case -> its runs."""
    found: dict[str, dict[Case, Runs]] = {}
    for (problem, case), runs in every.items():
        found.setdefault(problem, {})[case] = runs
    return found


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def head(title: str, command: str, day: str, versions: Iterable[str]) -> str:
    """Markdown: what was compared, by which command, and when the last run was finished."""
    by = sorted(versions)
    several = f"\n\nNote: {mixed(by)}." if len(by) > 1 else ""
    return f"# {title}\n\n`{command}`, mctsvs {' and '.join(by)}, last run of {day}.{several}\n\n"


def summary(every: Mapping[tuple[str, Case], Runs], reference: Case | None = None) -> str:
    """Markdown: a table for each problem and the mean ranks over problems.

    Marks say whether `reference` (default: the first method) is significantly better (+) or worse (-) than the other.
    """
    parts = []
    placed: dict[str, list[float]] = {}
    for problem, own in by_problem(every).items():
        first = own[reference] if reference in own else next(iter(own.values()))
        finals = {case.label: runs.at(runs.budget).mean for case, runs in own.items()}
        place = stats.ranks(finals, maximise=first.maximise)
        for label, rank in place.items():
            placed.setdefault(label, []).append(rank)
        rows = [[case.label, *_cells(runs, first, place[case.label])] for case, runs in own.items()]
        header = ["method", "runs", "best ± standard error", "worst", "mark", "rank", "recall", "optimiser seconds"]
        goal = "larger" if first.maximise else "smaller"
        parts.append(f"## {problem}\n\nAfter {first.budget} evaluations; {goal} is better.\n\n")
        parts[-1] += markdown_table(header, rows)
    if len(parts) > 1:
        order = sorted(placed.items(), key=lambda item: float(np.mean(item[1])))
        rows = [[label, f"{np.mean(given):.2f}", str(len(given))] for label, given in order]
        parts.append("## Mean rank\n\n" + markdown_table(["method", "mean rank", "problems"], rows))
    return "\n\n".join([LEGEND, *parts]) + "\n"


def _cells(runs: Runs, reference: Runs, rank: float) -> list[str]:
    found = runs.at(runs.budget)
    worst = np.nanmin(runs.final) if runs.maximise else np.nanmax(runs.final)
    return [
        str(found.n),
        str(found),
        number(float(worst)),
        "" if runs is reference else stats.mark(*reference.paired(runs), maximise=runs.maximise),
        f"{rank:g}",
        number(stats.summary(runs.recall).mean),
        f"{stats.summary(runs.seconds).mean:.2f}",
    ]
