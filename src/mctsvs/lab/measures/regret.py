"""The regret: that of all selectors together, and for each its regret beside the terms of the bound."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mctsvs.lab import comparison, figures, stats
from mctsvs.lab.cases import Case
from mctsvs.lab.comparison import markdown_table
from mctsvs.lab.measures.base import Measure, Row, points
from mctsvs.lab.runs import Runs
from mctsvs.lab.stats import number

if TYPE_CHECKING:
    from mctsvs.lab.page import Page

TERMS = {"regret": "R_T, measured", "gp_term": "Gaussian process term", "unselected_term": "term of the unselected"}
LEAD = """GP-UCB with the beta_t of Theorem 4.2 (a = 1, b such that alpha_max = 1, delta = 0.1, r = 1) on the \
variables each selector chooses. The term of the unselected variables uses their largest slopes as a search found \
them; the Gaussian process term uses the information gain of the points sampled. Both are in the function's own \
units: the bound is a statement about growth, not about size.

"""


class Regret(Measure):
    """Cumulative regret of GP-UCB and the terms of its bound."""

    with_options = False  # GP-UCB has none of them

    def draw(self, page: Page, stem: Path) -> list[Path]:
        every = comparison.by_problem(page.runs)
        return figures.draw([plot for problem, own in every.items() for plot in _plots(problem, own)], stem)

    def numbers(self, page: Page) -> Iterator[Row]:
        for (problem, case), runs in page.runs.items():
            for key in (*TERMS, "bound", "selected"):
                for point in points(series(case.label, runs, key)):
                    yield "ours", problem, case.label, key, *point, len(runs.seeds)

    def table(self, page: Page) -> str:
        rows = [[problem, case.label, *_cells(runs)] for (problem, case), runs in page.runs.items()]
        iterations = max(runs.extra["regret"].shape[1] for runs in page.runs.values())
        header = ["problem", "selector", f"R_T, T = {iterations}", "Gaussian process term", "term of the unselected"]
        header += ["bound", "mean d_t", "recall", "best value"]
        return LEAD + markdown_table(header, rows)


def _plots(problem: str, own: dict[Case, Runs]) -> list[figures.Plot]:
    """The regrets together, then for each selector its regret and the bound's terms."""
    regrets = [series(case.label, runs, "regret", per_iteration=True) for case, runs in own.items()]
    terms = {case: [series(name, runs, key) for key, name in TERMS.items()] for case, runs in own.items()}
    values = np.concatenate([c.mean[c.mean > 0] for curves in terms.values() for c in curves])
    shared = float(values.min()) / 1.3, float(values.max()) * 1.3
    drawn = [figures.Plot(f"{problem}: mean regret", "iteration T", "R_T / T", regrets)]
    for case, curves in terms.items():
        positive = [c for c in curves if c.mean.max() > 0]
        title = f"{problem}: {case.label}"
        drawn.append(figures.Plot(title, "iteration T", "", positive, yscale="log", yrange=shared))
    return drawn


def _cells(runs: Runs) -> list[str]:
    last = {name: stats.summary(values[:, -1]) for name, values in runs.extra.items()}
    return [
        str(last["regret"]),
        *(f"{last[name].mean:,.0f}" for name in ("gp_term", "unselected_term", "bound")),
        f"{stats.summary(runs.extra['selected'].mean(axis=1)).mean:.1f}",
        number(stats.summary(runs.recall).mean),
        str(runs.at(runs.budget)),
    ]


def series(label: str, runs: Runs, name: str, per_iteration: bool = False) -> figures.Curve:
    """Mean and standard error of one of the terms against the iteration."""
    values = runs.extra[name]
    t = np.arange(1, values.shape[1] + 1)
    if per_iteration:
        values = values / t
    chosen = np.unique(np.linspace(0, len(t) - 1, min(len(t), 60)).round().astype(int))
    found = [stats.summary(values[:, i]) for i in chosen]
    mean, error = np.array([s.mean for s in found]), np.array([s.error for s in found])
    return figures.Curve(label, t[chosen].astype(np.float64), mean, error)
