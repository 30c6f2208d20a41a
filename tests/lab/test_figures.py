"""Drawing: deterministic files, styles that differ, bars where they belong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mctsvs.lab import comparison, figures
from mctsvs.lab.entries import ENTRIES
from mctsvs.lab.entry import Entry
from mctsvs.lab.figures import Curve, Dot, Panel
from mctsvs.lab.groups import Group

LABELS = ["mcts-vs-bo", "mcts-vs-turbo", "turbo", "la-mcts-turbo", "saasbo", "hesbo", "alebo", "cma-es", "vae-bo"]


def panel(labels: list[str]) -> Panel:
    x = np.arange(1.0, 41.0)
    curves = [Curve(label, x, np.log(x + i), np.full(40, 0.1)) for i, label in enumerate(labels)]
    return Panel("a problem", "evaluations", "best value so far", curves, {"optimum": 5.0})


def test_files_are_the_same_every_time(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    first = figures.draw([panel(LABELS), panel(LABELS[:2])], tmp_path / "a")
    second = figures.draw([panel(LABELS), panel(LABELS[:2])], tmp_path / "b")
    assert [path.suffix for path in first] == [".png", ".svg"]
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
    assert first[0].read_bytes().startswith(b"\x89PNG")
    svg = first[1].read_text()
    assert all(label in svg for label in LABELS)  # text stays text


def test_dots_are_the_same_every_time(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    rows = [("Levy10_100", [Dot("bo", 1.0, 0.1, 2.0), Dot("turbo", 3.0, float("nan"))])]
    one, other = (figures.draw_dots(rows, tmp_path / name, ("seconds", True, True)) for name in ("a", "b"))
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in other]


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=lambda entry: entry.name)
def test_lines_of_a_figure_differ_in_more_than_colour(entry: Entry) -> None:
    """In grey, a line is told by its dash and its marker."""
    labels = list(dict.fromkeys(case for problem in entry.problems for case in entry.cases(problem)))
    styles = [figures.style_of(label, labels) for label in labels]
    assert len({(style.dash, style.marker) for style in styles}) == len(labels)


def test_a_method_has_its_style_in_every_figure() -> None:
    alone = figures.style_of("turbo", ["turbo"])
    assert figures.style_of("turbo", LABELS) == alone
    assert figures.style_of("turbo", ["turbo[climb=0]", "turbo", "bo"]) == alone


def test_cases_of_an_ablation_differ() -> None:
    labels = [f"mcts-vs-bo[k={k}]" for k in (1, 5, 10, 15, 20)]
    styles = [figures.style_of(label, labels) for label in labels]
    assert len({style.colour for style in styles}) == len({style.marker for style in styles}) == 5
    assert figures.short_names(labels) == ("mcts-vs-bo", ["k=1", "k=5", "k=10", "k=15", "k=20"])
    mixed = ["mcts-vs-bo", *labels]
    assert figures.style_of("mcts-vs-bo", mixed).colour not in {figures.style_of(s, mixed).colour for s in labels}
    assert figures.short_names(mixed) == ("", mixed)


@pytest.mark.parametrize("logarithmic", [False, True])
def test_bars_are_spread_and_end_at_the_end(logarithmic: bool) -> None:
    x = np.geomspace(0.01, 100, 60) if logarithmic else np.arange(1.0, 61.0)
    curve = Curve("a", x, x, x)
    spacing = figures.bar_spacing(Panel("", "", "", [curve], xscale="log" if logarithmic else "linear"))
    found = [figures.bar_positions(x, spacing, phase, logarithmic) for phase in (0.0, 0.5)]
    for positions in found:
        assert positions[-1] == 59
        assert 7 <= len(positions) <= 8
    assert set(found[0][:-1]).isdisjoint(found[1][:-1])
    assert len(figures.bar_positions(x[:6], spacing, 0.5, logarithmic)) <= 2  # a short curve gets its share only


def test_curves_are_means_with_standard_errors() -> None:
    best = np.maximum.accumulate(np.random.default_rng(0).random((3, 100)), axis=1)
    elapsed = np.cumsum(np.full((3, 100), 0.5), axis=1) * np.array([[1.0], [2.0], [3.0]])
    group = Group((1, 2, 3), best, elapsed, elapsed, np.full(3, np.nan), np.ones(3))
    line = comparison.curve("a", group)
    assert line.x[0] == 1
    assert line.x[-1] == 100
    np.testing.assert_allclose(line.mean[-1], best[:, -1].mean())
    np.testing.assert_allclose(line.error[-1], best[:, -1].std(ddof=1) / np.sqrt(3))
    timed = comparison.curve_by_seconds("a", group)
    assert timed.x[0] == pytest.approx(1.5)  # when the slowest run has its first value
    assert timed.x[-1] == pytest.approx(50.0)  # when the fastest run ends
    at_the_end = [best[0, 99], best[1, 49], best[2, 32]]
    np.testing.assert_allclose(timed.mean[-1], np.mean(at_the_end))
