"""What a comparison leaves behind: the tidy table, a summary for people, and a figure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from mctsvs.common import Array
from mctsvs.lab import figures, stats
from mctsvs.lab.grid import mixed
from mctsvs.lab.groups import Group
from mctsvs.lab.stats import number

MOST_POINTS = 60  # of a curve that is drawn and written
LEGEND = f"""Mark: the reference, whose own is empty, is significantly better than the method of that row (+), worse (-)
or neither (≈) by the Wilcoxon signed-rank test, paired by seed, at {stats.CONFIDENCE}. Rank: 1 is the best mean.
Recall: the share of the variables that matter among those that were moved. –: not known."""


def steps(budget: int) -> Array:
    """Evaluations at which curves are drawn and written: the first, then evenly, the last always."""
    step = max(1, math.ceil(budget / MOST_POINTS / 5) * 5 if budget > MOST_POINTS else 1)
    return np.unique(np.concatenate([[1], np.arange(step, budget + 1, step), [budget]])).astype(np.float64)


def curve(label: str, group: Group) -> figures.Curve:
    """Mean best so far and its standard error against evaluations."""
    x = steps(group.budget)
    found = [group.at(int(n)) for n in x]
    return figures.Curve(label, x, np.array([s.mean for s in found]), np.array([s.error for s in found]))


def curve_by_seconds(label: str, group: Group) -> figures.Curve:
    """The same against wall seconds, from the time when all runs have a value until the first of them ends."""
    start, end = float(group.elapsed[:, 0].max()), float(group.elapsed[:, -1].min())
    x = np.geomspace(max(start, 1e-4), max(end, start * 1.001, 1.1e-4), MOST_POINTS)
    rows = [stats.at_seconds(t, best, x) for t, best in zip(group.elapsed, group.best, strict=True)]
    found = [stats.summary(column) for column in np.array(rows).T]
    return figures.Curve(label, x, np.array([s.mean for s in found]), np.array([s.error for s in found]))


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def panels(groups: Mapping[tuple[str, str], Group], by_seconds: bool = False) -> list[figures.Panel]:
    """One for each problem."""
    drawn = []
    for problem in dict.fromkeys(problem for problem, _ in groups):
        own = {label: group for (name, label), group in groups.items() if name == problem}
        optimum = next(iter(own.values())).optimum
        make = curve_by_seconds if by_seconds else curve
        drawn.append(
            figures.Panel(
                title=problem,
                xlabel="wall seconds" if by_seconds else "evaluations",
                ylabel="best value so far",
                curves=[make(label, group) for label, group in own.items()],
                levels={} if optimum is None else {"optimum": optimum},
                xscale="log" if by_seconds else "linear",
            )
        )
    return drawn


def head(title: str, command: str, day: str, versions: Iterable[str]) -> str:
    """Markdown: what was compared, by which command, and when the last run was finished."""
    by = sorted(versions)
    several = f"\n\nNote: {mixed(by)}." if len(by) > 1 else ""
    return f"# {title}\n\n`{command}`, mctsvs {' and '.join(by)}, last run of {day}.{several}\n\n"


def summary(groups: Mapping[tuple[str, str], Group], reference: str | None = None) -> str:
    """Markdown: a table for each problem and the mean ranks over problems.

    Marks say whether `reference` (default: the first method) is significantly better (+) or worse (-) than the other.
    """
    parts = []
    placed: dict[str, list[float]] = {}
    for problem in dict.fromkeys(problem for problem, _ in groups):
        own = {label: group for (name, label), group in groups.items() if name == problem}
        first = own.get(reference or "", next(iter(own.values())))
        maximise = first.maximise
        place = stats.ranks({label: group.at(group.budget).mean for label, group in own.items()}, maximise=maximise)
        rows = []
        for label, group in own.items():
            placed.setdefault(label, []).append(place[label])
            found = group.at(group.budget)
            sign = "" if group is first else stats.mark(*first.paired(group), maximise=maximise)
            share = stats.summary(group.recall).mean
            worst = np.nanmin(group.final) if maximise else np.nanmax(group.final)
            rows.append(
                [
                    label,
                    str(found.n),
                    str(found),
                    number(float(worst)),
                    sign,
                    f"{place[label]:g}",
                    number(share),
                    f"{stats.summary(group.seconds).mean:.2f}",
                ]
            )
        header = ["method", "runs", "best ± standard error", "worst", "mark", "rank", "recall", "optimiser seconds"]
        goal = "larger" if maximise else "smaller"
        parts.append(f"## {problem}\n\nAfter {first.budget} evaluations; {goal} is better.\n\n")
        parts[-1] += markdown_table(header, rows)
    if len(parts) > 1:
        order = sorted(placed.items(), key=lambda item: float(np.mean(item[1])))
        rows = [[label, f"{np.mean(given):.2f}", str(len(given))] for label, given in order]
        parts.append("## Mean rank\n\n" + markdown_table(["method", "mean rank", "problems"], rows))
    return "\n\n".join([LEGEND, *parts]) + "\n"
