"""Methods ranked over problems: Friedman's test, and the critical-difference diagram after Nemenyi.

J. Demsar, "Statistical Comparisons of Classifiers over Multiple Data Sets", JMLR 2006.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mctsvs.bench import figures, stats
from mctsvs.bench.styles import DARK, written

FEWEST = 3  # methods, and problems, that a diagram is made of


@dataclass(frozen=True)
class Ranking:
    """Mean ranks, best first, of methods that were run on all of the problems."""

    ranks: Mapping[str, float]
    problems: int
    p_value: float  # of Friedman's test that all methods are alike
    difference: float  # mean ranks further apart than this differ significantly

    def groups(self) -> list[tuple[str, ...]]:
        """The longest runs of neighbours that do not differ."""
        names, found = list(self.ranks), list[tuple[str, ...]]()
        for i, first in enumerate(names):
            group = tuple(n for n in names[i:] if self.ranks[n] - self.ranks[first] < self.difference)
            if len(group) > 1 and not (found and set(group) <= set(found[-1])):
                found.append(group)
        return found


def ranking(means: Mapping[str, Mapping[str, float]], maximise: Mapping[str, bool]) -> Ranking | None:
    """From problem -> method -> mean value; None where too little was compared."""
    from scipy.stats import friedmanchisquare, studentized_range

    everywhere = set.intersection(*(set(row) for row in means.values())) if means else set()
    methods = [m for m in next(iter(means.values()), {}) if m in everywhere]
    k, n = len(methods), len(means)
    if k < FEWEST or n < FEWEST:
        return None
    placed = [stats.ranks({m: row[m] for m in methods}, maximise=maximise[p]) for p, row in means.items()]
    table = np.array([[row[m] for m in methods] for row in placed])
    mean = dict(sorted(zip(methods, table.mean(axis=0).tolist(), strict=True), key=lambda item: item[1]))
    p_value = float(friedmanchisquare(*table.T).pvalue) if np.ptp(table, axis=1).all() else 1.0
    quantile = float(studentized_range.ppf(1.0 - stats.CONFIDENCE, k, np.inf)) / np.sqrt(2.0)
    return Ranking(mean, n, p_value, quantile * float(np.sqrt(k * (k + 1) / (6.0 * n))))


def draw(found: Ranking, stem: Path) -> list[Path]:
    """A line of ranks with the methods on it; a bar joins those that do not differ significantly."""
    mpl = figures.matplotlib()
    names, k = list(found.ranks), len(found.ranks)
    half, groups = (k + 1) // 2, found.groups()
    with mpl.rc_context(figures.LOOK):
        figure = mpl.figure.Figure(figsize=(6.4, 1.1 + 0.24 * half + 0.12 * len(groups)))
        ax = figure.subplots()
        ax.set_axis_off()
        bars = 0.35 * len(groups)
        ax.set(xlim=(0.0, k + 1.0), ylim=(-(half + 1.0) - bars, 1.6))
        ax.plot([1, k], [0, 0], color=DARK, linewidth=1.2)
        for rank in range(1, k + 1):
            ax.plot([rank, rank], [0, 0.15], color=DARK, linewidth=1.0)
            ax.annotate(str(rank), (rank, 0.25), ha="center", fontsize=8)
        for i, group in enumerate(groups):
            ends = [found.ranks[group[0]] - 0.05, found.ranks[group[-1]] + 0.05]
            ax.plot(ends, [-0.25 - 0.35 * i] * 2, color="black", linewidth=3.0, solid_capstyle="round")
        for i, name in enumerate(names):
            left = i < half
            level = -(0.8 + bars + (i if left else k - 1 - i))
            end = 0.9 if left else k + 0.1
            ax.plot([found.ranks[name]] * 2 + [end], [0, level, level], color=DARK, linewidth=0.8)
            words = f"{written(name)}  {found.ranks[name]:.2f}"
            ax.annotate(words, (end, level), ha="right" if left else "left", va="center", fontsize=8)
        ax.plot([1, 1 + found.difference], [1.0, 1.0], color=DARK, linewidth=1.6, marker="|", markersize=6)
        text = f"critical difference {found.difference:.2f}; mean rank over {found.problems} problems"
        ax.annotate(text, (1, 1.2), fontsize=8)
        return figures.save(figure, stem)
