"""Methods on all problems of a suite: mean rank, how often first, how often near the best; as tables and a figure.

A method's loss is how far its best value so far is above the optimum, or that value itself where no optimum is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mctsvs.bench.figures import Curve, Plot, draw
from mctsvs.bench.stats import Summary, summary
from mctsvs.utils.validation import Array

NEAR = 1.1  # times the least loss of a problem is near the best


@dataclass(frozen=True, eq=False)
class SuiteRanking:
    """The losses of every method on every problem, (problems, methods, evaluations); infinite while all fail."""

    methods: tuple[str, ...]
    problems: tuple[str, ...]
    loss: Array
    known: bool  # whether losses are distances to known optima

    @staticmethod
    def of(loss: Mapping[tuple[str, str], Array], methods: Sequence[str], known: bool) -> SuiteRanking:
        """From (problem, method) -> loss by evaluation, all equally long; only problems that every method has run."""
        names = dict.fromkeys(problem for problem, _ in loss)
        whole = [name for name in names if all((name, method) in loss for method in methods)]
        table = np.array([[loss[name, method] for method in methods] for name in whole], dtype=np.float64)
        return SuiteRanking(tuple(methods), tuple(whole), np.where(np.isnan(table), np.inf, table), known)

    def among(self, problems: Sequence[str]) -> SuiteRanking:
        """The same on these problems alone."""
        kept = [row for row, name in enumerate(self.problems) if name in problems]
        return SuiteRanking(self.methods, tuple(self.problems[row] for row in kept), self.loss[kept], self.known)

    @property
    def ranks(self) -> Array:
        """(problems, methods, evaluations), 1 for the best; equal losses share the mean of their ranks."""
        return _ranks(self.loss)

    def mean_ranks(self, evaluations: int) -> list[Summary]:
        return [summary(column) for column in _ranks(self.loss[:, :, evaluations - 1]).T]

    def near(self, evaluations: int, factor: float) -> list[int]:
        """On how many problems each method is within `factor` times the least loss; 1: first, alone or not."""
        loss = self.loss[:, :, evaluations - 1]
        counts: list[int] = (loss <= factor * loss.min(axis=1, keepdims=True)).sum(axis=0).tolist()
        return counts


def overall(ranking: SuiteRanking, points: Sequence[int]) -> str:
    """Markdown: a line for each method, the best mean rank at the last point first."""
    at = " / ".join(map(str, points))
    head = ["method", *(f"mean rank at {n}" for n in points), f"first at {at}"]
    columns = [[_short(rank) for rank in ranking.mean_ranks(n)] for n in points]
    columns.append(_joined([ranking.near(n, 1.0) for n in points]))
    if ranking.known:
        head.append(f"within 10 % of the best at {at}")
        columns.append(_joined([ranking.near(n, NEAR) for n in points]))
    return _table(ranking, head, columns, points[-1])


def by_group(ranking: SuiteRanking, group_of: Callable[[str], str], points: Sequence[int]) -> str:
    """Markdown: mean ranks at each point, a column for each group of problems."""
    groups: dict[str, list[str]] = {}
    for problem in ranking.problems:
        groups.setdefault(group_of(problem), []).append(problem)
    parts = {name: ranking.among(problems) for name, problems in groups.items()}
    ranks = {
        name: [[f"{rank.mean:.2f}" for rank in part.mean_ranks(n)] for n in points] for name, part in parts.items()
    }
    head = ["method", *(f"{name} ({len(part.problems)})" for name, part in parts.items())]
    return _table(ranking, head, [_joined(of_group) for of_group in ranks.values()], points[-1])


def section(ranking: SuiteRanking, group_of: Callable[[str], str], points: Sequence[int]) -> str:
    """Both tables, at those of the points that were reached."""
    budget = ranking.loss.shape[2]
    points = [n for n in points if n <= budget] or [budget]
    at = " / ".join(map(str, points))
    groupwise = f"Mean rank at {at}, by group of functions (problems in it):\n\n{by_group(ranking, group_of, points)}"
    return f"{len(ranking.problems)} problems.\n\n{overall(ranking, points)}\n\n{groupwise}\n"


def figure(rankings: Mapping[str, SuiteRanking], stem: Path, points: Sequence[int] = ()) -> list[Path]:
    """Mean rank by evaluations, or after so many of them alone; a plot for each ranking, by its title."""
    plots = []
    for title, ranking in rankings.items():
        x = np.array(points or range(1, ranking.ranks.shape[2] + 1), dtype=np.float64)
        ranks = ranking.ranks[:, :, x.astype(np.intp) - 1]
        error = ranks.std(axis=0, ddof=1) / np.sqrt(len(ranks)) if len(ranks) > 1 else np.full(ranks.shape[1:], np.nan)
        curves = [Curve(name, x, ranks[:, m].mean(axis=0), error[m]) for m, name in enumerate(ranking.methods)]
        plots.append(Plot(title.partition(", ")[2], "evaluations", "mean rank", curves))  # the suite is the page's
    return draw(plots, stem)


def _ranks(loss: Array) -> Array:
    from scipy.stats import rankdata

    found: Array = rankdata(loss, axis=1)
    return found


def _short(rank: Summary) -> str:
    return f"{rank.mean:.2f}" if rank.n < 2 else f"{rank.mean:.2f} ± {rank.error:.2f}"


def _joined(points: Sequence[Sequence[object]]) -> list[str]:
    """One cell for each method, from one list for each point."""
    return [" / ".join(map(str, cells)) for cells in zip(*points, strict=True)]


def _table(ranking: SuiteRanking, head: Sequence[str], columns: Sequence[Sequence[str]], last: int) -> str:
    order = np.argsort([rank.mean for rank in ranking.mean_ranks(last)], kind="stable")
    rows = [[ranking.methods[m], *(column[m] for column in columns)] for m in order]
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])
