"""Mean ranks over problems, the critical difference, and tables for papers."""

from __future__ import annotations

from pathlib import Path

import pytest

from mctsvs.bench import critical_difference, latex
from mctsvs.bench.stats import Summary

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
        "turbo": {"Levy10_100": Summary.of(5, -1.0, 0.25)},
        "bo": {"Levy10_100": Summary.of(1, -2.0, float("nan"))},
    }
    text = latex.of_comparison(cells, {"Levy10_100": True})
    assert r"TuRBO & $\mathbf{-1.000} \pm 0.250$ \\" in text
    assert r"Vanilla BO & $-2.000$ \\" in text
    assert r"Levy10\_100" in text
    assert latex.plain("$C_p$ = 1_0") == r"$C_p$ = 1\_0"
