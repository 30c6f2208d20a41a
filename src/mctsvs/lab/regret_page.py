"""What the page of `regret` shows: the regrets together, and for each selector its regret beside the bound's terms."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mctsvs.lab import figures, stats
from mctsvs.lab.comparison import markdown_table
from mctsvs.lab.groups import Group
from mctsvs.lab.stats import number

Groups = Mapping[tuple[str, str], Group]
TERMS = {"regret": "R_T, measured", "gp_term": "Gaussian process term", "unselected_term": "term of the unselected"}


def panels(groups: Groups) -> list[figures.Panel]:
    """For each problem: the regrets together, then for each selector its regret and the bound's terms."""
    drawn = []
    for problem in dict.fromkeys(problem for problem, _ in groups):
        own = [(case, group) for (name, case), group in groups.items() if name == problem]
        drawn.append(
            figures.Panel(
                f"{problem}: mean regret",
                "iteration T",
                "R_T / T",
                [series(case, group, "regret", per_iteration=True) for case, group in own],
            )
        )
        terms = {case: [series(name, group, key) for key, name in TERMS.items()] for case, group in own}
        values = np.concatenate([c.mean[c.mean > 0] for curves in terms.values() for c in curves])
        shared = float(values.min()) / 1.3, float(values.max()) * 1.3
        for case, curves in terms.items():
            positive = [c for c in curves if c.mean.max() > 0]
            title = f"{problem}: {case}"
            drawn.append(figures.Panel(title, "iteration T", "", positive, yscale="log", yrange=shared))
    return drawn


def table(groups: Groups) -> str:
    rows = []
    for (problem, case), group in groups.items():
        last = {name: stats.summary(values[:, -1]) for name, values in group.extra.items()}
        mean_selected = stats.summary(group.extra["selected"].mean(axis=1))
        rows.append(
            [
                problem,
                case,
                str(last["regret"]),
                f"{last['gp_term'].mean:,.0f}",
                f"{last['unselected_term'].mean:,.0f}",
                f"{last['bound'].mean:,.0f}",
                f"{mean_selected.mean:.1f}",
                number(stats.summary(group.recall).mean),
                str(group.at(group.budget)),
            ]
        )
    iterations = max(group.extra["regret"].shape[1] for group in groups.values())
    header = ["problem", "selector", f"R_T, T = {iterations}", "Gaussian process term", "term of the unselected"]
    header += ["bound", "mean d_t", "recall", "best value"]
    lead = (
        "GP-UCB with the beta_t of Theorem 4.2 (a = 1, b such that alpha_max = 1, delta = 0.1, r = 1) on the "
        "variables each selector chooses. The term of the unselected variables uses their largest slopes as a "
        "search found them; the Gaussian process term uses the information gain of the points sampled. Both are in "
        "the function's own units: the bound is a statement about growth, not about size.\n\n"
    )
    return lead + markdown_table(header, rows)


def series(label: str, group: Group, name: str, per_iteration: bool = False) -> figures.Curve:
    """Mean and standard error of one of the terms against the iteration."""
    values = group.extra[name]
    t = np.arange(1, values.shape[1] + 1)
    if per_iteration:
        values = values / t
    chosen = np.unique(np.linspace(0, len(t) - 1, min(len(t), 60)).round().astype(int))
    found = [stats.summary(values[:, i]) for i in chosen]
    mean, error = np.array([s.mean for s in found]), np.array([s.error for s in found])
    return figures.Curve(label, t[chosen].astype(np.float64), mean, error)
