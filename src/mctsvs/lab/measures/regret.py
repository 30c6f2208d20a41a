"""The regret: that of all selectors together, and for each its regret beside the terms of the bound."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mctsvs.lab import figures, stats
from mctsvs.lab.comparison import markdown_table
from mctsvs.lab.measures.base import Measure
from mctsvs.lab.numbers import OURS, Numbers, Row, short
from mctsvs.lab.runs import Runs
from mctsvs.lab.stats import Summary, number
from mctsvs.lab.styles import written

if TYPE_CHECKING:
    from mctsvs.lab.entry import PaperEntry
    from mctsvs.lab.page import Found, Page

TERMS = {
    "regret": "regret $R_T$, measured",
    "gp_term": "Gaussian process term",
    "unselected_term": "term of the unselected",
}
LAST = ("d_t", "recall", "best")  # of whole runs
LEAD = """GP-UCB with the beta_t of Theorem 4.2 (a = 1, b such that alpha_max = 1, delta = 0.1, r = 1) on the \
variables each selector chooses. The term of the unselected variables uses their largest slopes as a search found \
them; the Gaussian process term uses the information gain of the points sampled. Both are in the function's own \
units: the bound is a statement about growth, not about size.

"""


class Regret(Measure):
    """Cumulative regret of GP-UCB and the terms of its bound."""

    with_options = False  # GP-UCB has none of them

    def rows(self, found: Found) -> Iterator[Row]:
        for (problem, case), runs in found.runs.items():
            for key in (*TERMS, "bound", "selected"):
                for t, at in series(runs, key):
                    yield OURS, problem, case.label, key, float(t), short(at.mean), short(at.error), len(runs.seeds)
            ends = stats.summary(runs.extra["selected"].mean(axis=1)), stats.summary(runs.recall), runs.at(runs.budget)
            for key, end in zip(LAST, ends, strict=True):
                yield OURS, problem, case.label, key, runs.budget, short(end.mean), short(end.error), len(runs.seeds)

    def draw(self, entry: PaperEntry, numbers: Numbers, stem: Path) -> list[Path]:
        plots = []
        for problem in entry.problems:
            labels = [c.label for c in entry.cases(problem) if numbers.series(OURS, problem, c.label, "regret")]
            plots += _plots(numbers, problem, labels) if labels else []
        return figures.draw(plots, stem)

    def table(self, page: Page) -> str:
        numbers = page.main
        cells = [(p, c.label) for p in page.entry.problems for c in page.entry.cases(p)]
        rows = [[*cell, *_cells(numbers, *cell)] for cell in cells if numbers.series(OURS, *cell, "regret")]
        last = max(max(numbers.series(OURS, *cell, "regret"), default=0.0) for cell in cells)
        header = ["problem", "selector", f"R_T, T = {last:.0f}", "Gaussian process term", "term of the unselected"]
        header += ["bound", "mean d_t", "recall", "best value"]
        return LEAD + markdown_table(header, rows)


def _plots(numbers: Numbers, problem: str, labels: list[str]) -> list[figures.Plot]:
    """The regrets together, then for each selector its regret and the bound's terms."""

    def curve(label: str, key: str, name: str) -> figures.Curve:
        return figures.Curve(name, *numbers.arrays(OURS, problem, label, key))

    regrets = []
    for label in labels:
        whole = curve(label, "regret", label)
        regrets.append(figures.Curve(label, whole.x, whole.mean / whole.x, whole.error / whole.x))
    terms = {label: [curve(label, key, name) for key, name in TERMS.items()] for label in labels}
    values = np.concatenate([c.mean[c.mean > 0] for curves in terms.values() for c in curves])
    shared = float(values.min()) / 1.3, float(values.max()) * 1.3
    drawn = [figures.Plot(f"{problem}: mean regret", "iteration $T$", "$R_T / T$", regrets, apart=True)]
    for label, curves in terms.items():
        positive = [c for c in curves if c.mean.max() > 0]
        title = f"{problem}: {written(label).removeprefix('GP-UCB, ')}"
        drawn.append(
            figures.Plot(title, "iteration $T$", "regret and terms of its bound", positive, yscale="log", yrange=shared)
        )
    return drawn


def _cells(numbers: Numbers, problem: str, label: str) -> list[str]:
    def last(key: str) -> Summary:
        return numbers.at(OURS, problem, label, key) or stats.summary([])

    return [
        str(last("regret")),
        *(f"{last(name).mean:,.0f}" for name in ("gp_term", "unselected_term", "bound")),
        f"{last('d_t').mean:.1f}",
        number(last("recall").mean),
        str(last("best")),
    ]


def series(runs: Runs, name: str) -> list[tuple[int, Summary]]:
    """One of the terms against the iteration, at up to sixty of them."""
    values = runs.extra[name]
    t = np.arange(1, values.shape[1] + 1)
    chosen = np.unique(np.linspace(0, len(t) - 1, min(len(t), 60)).round().astype(int))
    return [(int(t[i]), stats.summary(values[:, i])) for i in chosen]
