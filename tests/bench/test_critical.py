"""Mean ranks over problems, the critical difference, and tables for papers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mctsvs.bench import comparison, figures, stats
from mctsvs.bench.algorithms import ConfiguredMethod
from mctsvs.bench.run_store import Runs
from mctsvs.bench.stats import Summary
from mctsvs.utils.validation import Array

MEANS = {f"p{i}": {"a": 3.0, "b": 2.0 + i / 100, "c": 2.5 - i / 10, "d": 1.0} for i in range(10)}
UP = dict.fromkeys(MEANS, True)


def test_ranks_and_difference() -> None:
    found = stats.ranking(MEANS, UP)
    assert found is not None
    assert next(iter(found.ranks)) == "a"
    assert found.ranks["a"] == 1.0
    assert found.ranks["d"] == pytest.approx(4.0)
    assert found.difference == pytest.approx(1.4832, abs=1e-3)  # Demsar's q of 2.569 for four methods
    assert found.p_value < 1e-4


def test_groups_are_the_longest_runs_that_do_not_differ() -> None:
    ranking = stats.Ranking({"a": 1.0, "b": 2.0, "c": 2.4, "d": 4.0}, 10, 0.0, 1.5)
    assert ranking.groups() == [("a", "b", "c")]
    assert stats.Ranking({"a": 1.0, "b": 2.0, "c": 3.0}, 10, 0.0, 1.5).groups() == [
        ("a", "b"),
        ("b", "c"),
    ]


def test_too_little_is_not_ranked() -> None:
    assert stats.ranking({}, {}) is None
    assert stats.ranking(dict(list(MEANS.items())[:2]), UP) is None
    assert stats.ranking({p: {"a": 1.0, "b": 2.0} for p in MEANS}, UP) is None


@pytest.mark.needs("matplotlib")
def test_the_diagram_is_drawn(tmp_path: Path) -> None:
    found = stats.ranking(MEANS, UP)
    assert found is not None
    paths = figures.draw_ranking(found, tmp_path / "ranks")
    assert {path.suffix for path in paths} == {".png", ".svg", ".pdf"}
    assert "critical difference 1.48" in (tmp_path / "ranks.svg").read_text()


def test_latex() -> None:
    cells = {
        "TuRBO": {"Levy10_100": Summary.of(5, -1.0, 0.25)},
        "Vanilla BO": {"Levy10_100": Summary.of(1, -2.0, float("nan"))},
    }
    text = comparison.tabular(cells, {"Levy10_100": True})
    assert r"TuRBO & $\mathbf{-1.000} \pm 0.250$ \\" in text
    assert r"Vanilla BO & $-2.000$ \\" in text
    assert r"Levy10\_100" in text
    assert comparison.latex("$C_p$ = 1_0") == r"$C_p$ = 1\_0"


def test_latex_says_direction_runs_and_marks() -> None:
    def runs(final: Array) -> Runs:
        nothing = np.zeros((8, 1))
        seeds, recall = tuple(range(8)), nothing[:, 0]
        return Runs(seeds=seeds, best=final[:, None], thinking=nothing, elapsed=nothing, recall=recall, cpu=recall)

    bo, turbo = ConfiguredMethod("bo"), ConfiguredMethod("turbo")
    ahead = np.arange(8.0)
    every = {("Levy10_100", bo): runs(ahead), ("Levy10_100", turbo): runs(ahead - np.linspace(1, 2, 8))}
    lines = comparison.latex_table(every).splitlines()
    assert lines[2:4] == [r"Method & Levy10\_100 \\", r" & $\uparrow$, 8 runs \\"]
    assert lines[5].endswith(r"\pm 0.866$ \\")  # the reference has no mark
    assert r"^{+}$ \\" in lines[6]
    assert lines[-2].startswith("% Mark: the reference")
    assert r"^{-}$ \\" in comparison.latex_table(every, turbo)
