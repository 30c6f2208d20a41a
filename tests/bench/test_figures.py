"""Drawing: deterministic files, styles that differ, bars where they belong."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mctsvs.bench import comparison, figures, styles
from mctsvs.bench.algorithms import ConfiguredMethod
from mctsvs.bench.figures import Curve, Dot, DotScale, Plot
from mctsvs.bench.paper.entries import ENTRIES
from mctsvs.bench.paper.entry import PaperEntry
from mctsvs.bench.paper.metrics import Best, Regret
from mctsvs.bench.run_store import Runs
from mctsvs.methods.registry import METHODS

LABELS = ["mcts-vs-bo", "mcts-vs-turbo", "turbo", "la-mcts-turbo", "saasbo", "hesbo", "alebo", "cma-es", "vae-bo"]


def plot(labels: list[str]) -> Plot:
    x = np.arange(1.0, 41.0)
    curves = [Curve(label, x, np.log(x + i), np.full(40, 0.1)) for i, label in enumerate(labels)]
    return Plot("a problem", "evaluations", "best value so far", curves, levels={"optimum": 5.0})


def test_files_are_the_same_every_time(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    first = figures.draw([plot(LABELS), plot(LABELS[:2])], tmp_path / "a")
    second = figures.draw([plot(LABELS), plot(LABELS[:2])], tmp_path / "b")
    assert [path.suffix for path in first] == [".png", ".svg", ".pdf"]
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
    assert first[0].read_bytes().startswith(b"\x89PNG")
    svg = first[1].read_text()
    assert all(styles.written(label).split("$")[0] in svg for label in LABELS)  # text stays text


def test_dots_are_the_same_every_time(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    rows = [("Levy10_100", [Dot("bo", 1.0, 0.1, 2.0), Dot("turbo", 3.0, float("nan"))])]
    scale = DotScale(logarithmic=True)
    one, other = (figures.draw_dots(rows, tmp_path / name, "seconds", scale) for name in ("a", "b"))
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in other]


def luminance(colour: str) -> float:
    """0 to 255, as a picture turned grey has it."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return 0.299 * red + 0.587 * green + 0.114 * blue


def differ(labels: list[str]) -> bool:
    """In colour, in marker, and in grey by 17 of 255 steps at least."""
    found = styles.styles(labels).values()
    colours = {style.colour for style in found}
    greys = sorted(map(luminance, colours))
    apart = min((b - a for a, b in itertools.pairwise(greys)), default=255.0)
    return len(colours) == len({style.marker for style in found}) == len(labels) and apart >= 17


CURVES = [entry for entry in ENTRIES.values() if isinstance(entry.measure, Best | Regret)]


@pytest.mark.parametrize("entry", CURVES, ids=lambda entry: entry.name)
def test_curves_of_a_figure_differ_in_colour_and_in_grey(entry: PaperEntry) -> None:
    labels = [case.label for case in entry.cases()]
    assert differ(labels)
    found = styles.styles(labels)
    assert all(found[label] == styles.STYLES[label] for label in labels if label in styles.STYLES)


@given(st.lists(st.sampled_from(sorted(METHODS)), unique=True, min_size=1, max_size=10))
def test_curves_of_any_comparison_differ(labels: list[str]) -> None:
    assert differ(labels)


def test_with_more_curves_than_colours_dash_and_marker_tell_them_apart() -> None:
    found = styles.styles([f"bo[pool={n}]" for n in range(50)]).values()
    assert len({(style.dash, style.marker) for style in found}) == 50


def test_light_colours_can_be_seen_on_white() -> None:
    assert len(set(styles.TURN)) == len(styles.TURN) == 10
    assert all(luminance(colour) < 200 for colour in styles.TURN)


def test_a_method_has_its_style_in_every_figure() -> None:
    alone = styles.styles(["turbo"])["turbo"]
    assert styles.styles(LABELS)["turbo"] == alone
    assert styles.styles(["turbo[climb=0]", "turbo", "bo"])["turbo"] == alone
    assert styles.styles(["turbo[climb=0]", "bo"])["turbo[climb=0]"] == alone  # the only case of its method


def test_cases_of_an_ablation_differ() -> None:
    labels = [f"mcts-vs-bo[k={k}]" for k in (1, 5, 10, 15, 20)]
    assert differ(labels)
    assert styles.short_names(labels) == ("MCTS-VS-BO", [f"$k$ = {k}" for k in (1, 5, 10, 15, 20)])
    mixed = ["mcts-vs-bo", *labels]
    assert differ(mixed)
    assert styles.styles(mixed)["mcts-vs-bo"] == styles.STYLES["mcts-vs-bo"]
    assert styles.short_names(mixed) == ("", [styles.written(label) for label in mixed])
    assert styles.written("mcts-vs-bo[k=5]") == "MCTS-VS-BO, $k$ = 5"


def test_rows_of_panels_leave_few_gaps() -> None:
    assert [figures.columns(panels) for panels in range(1, 10)] == [1, 2, 3, 4, 3, 3, 4, 4, 3]


def test_names_beside_lines_do_not_touch() -> None:
    assert figures.spread_out([0.2, 0.8, 0.5], 0.1) == [0.2, 0.8, 0.5]
    np.testing.assert_allclose(figures.spread_out([0.98, 0.3, 0.97], 0.1), [1.0, 0.3, 0.9])
    moved = figures.spread_out([0.5, 0.5, 0.5], 0.1)
    assert min(np.diff(sorted(moved))) == pytest.approx(0.1)


def test_points_with_a_law_are_named_beside_it(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    x = np.array([1.0, 10.0, 100.0])
    laws = [Curve(f"d = {d}", x, d * x, np.full(3, np.nan), (x[1:], d * x[1:])) for d in (2, 5)]
    _, svg, _ = figures.draw([Plot("cost", "t", "seconds", laws, xscale="log", yscale="log")], tmp_path / "a")
    text = svg.read_text()
    assert all(name in text for name in ("d = 2", "d = 5", "measured", "power law"))


@pytest.mark.parametrize("logarithmic", [False, True])
def test_bars_are_spread_and_end_at_the_end(logarithmic: bool) -> None:
    x = np.geomspace(0.01, 100, 60) if logarithmic else np.arange(1.0, 61.0)
    curve = Curve("a", x, x, x)
    spacing = figures.bar_spacing(Plot("", "", "", [curve], xscale="log" if logarithmic else "linear"))
    found = [figures.bar_positions(x, spacing, phase, logarithmic) for phase in (0.0, 0.5)]
    found += [figures.bar_positions(x, spacing, phase, logarithmic) for phase in (0.05, 0.95)]
    scale = np.log(x) if logarithmic else x
    for positions in found:
        assert positions[-1] == 59
        assert 7 <= len(positions) <= 8
        assert scale[-1] - scale[positions[-2]] >= spacing / 2  # no two bars on top of each other at the end
    assert set(found[0][:-1]).isdisjoint(found[1][:-1])
    assert len(figures.bar_positions(x[:6], spacing, 0.5, logarithmic)) <= 2  # a short curve gets its share only
    few = x[[0, 20, 40, 59]]  # points apart: one for each
    assert figures.bar_positions(few, spacing, 0.5, logarithmic).tolist() == [0, 1, 2, 3]


def test_curves_are_means_with_standard_errors() -> None:
    best = np.maximum.accumulate(np.random.default_rng(0).random((3, 100)), axis=1)
    elapsed = np.cumsum(np.full((3, 100), 0.5), axis=1) * np.array([[1.0], [2.0], [3.0]])
    recall = np.full(3, np.nan)
    runs = Runs(seeds=(1, 2, 3), best=best, thinking=elapsed, elapsed=elapsed, recall=recall, cpu=np.ones(3))
    line = comparison.curve(ConfiguredMethod("bo"), runs)
    assert line.x[0] == 1
    assert line.x[-1] == 100
    np.testing.assert_allclose(line.mean[-1], best[:, -1].mean())
    np.testing.assert_allclose(line.error[-1], best[:, -1].std(ddof=1) / np.sqrt(3))
    timed = comparison.curve(ConfiguredMethod("bo"), runs, by_seconds=True)
    assert timed.x[0] == pytest.approx(1.5)  # when the slowest run has its first value
    assert timed.x[-1] == pytest.approx(50.0)  # when the fastest run ends
    at_the_end = [best[0, 99], best[1, 49], best[2, 32]]
    np.testing.assert_allclose(timed.mean[-1], np.mean(at_the_end))


def drawn_axes(plots: list[Plot], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The axes of a figure, kept before it is written."""
    kept: list[Any] = []

    def keep(figure: Any, _: Path) -> list[Path]:
        kept.append(figure)
        return []

    monkeypatch.setattr(figures, "save", keep)
    figures.draw(plots, tmp_path / "a")
    kept[0].draw_without_rendering()
    return list(kept[0].axes)


def test_bars_that_nearly_reach_zero_do_not_stretch_a_logarithmic_axis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    x = np.arange(1.0, 41.0)
    wide = Curve("bo", x, 2.0 / x, 2.0 / x * (1 - 1e-6))
    (ax,) = drawn_axes([Plot("p", "evaluations", "regret", [wide], yscale="log")], tmp_path, monkeypatch)
    assert ax.get_ylim()[0] == pytest.approx(2.0 / 40 / figures.FLOOR)


@pytest.mark.parametrize("span", [1.3, 3.0, 8.0, 60.0, 500.0])
def test_a_logarithmic_axis_has_labels_enough(span: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    x = np.arange(1.0, 41.0)
    curve = Curve("bo", x, 7.3 * np.geomspace(span, 1.0, 40), np.zeros(40))
    (ax,) = drawn_axes([Plot("p", "evaluations", "regret", [curve], yscale="log")], tmp_path, monkeypatch)
    low, high = ax.get_ylim()
    assert 2 <= sum(low <= tick <= high for tick in ax.get_yticks()) <= 9


def test_every_row_of_plots_names_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    plots = [replace(plot(LABELS[:2]), ylabel="best value so far" if i == 0 else "") for i in range(8)]
    axes = drawn_axes(plots, tmp_path, monkeypatch)
    assert [bool(ax.get_ylabel()) for ax in axes] == [True, False, False, False] * 2


@pytest.mark.parametrize(
    ("problem", "name"), [("NASBench101", "accuracy"), ("Hopper", "return"), ("Hartmann6_300", "value")]
)
def test_axes_name_what_a_problem_measures(problem: str, name: str) -> None:
    assert f"best {name}" in comparison.plotted(problem, plot(["bo"]).curves, optimum=None).ylabel
