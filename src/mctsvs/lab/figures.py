"""Drawing: curves of means with standard error bars, in panels, readable in grey.

What is drawn is computed elsewhere; here it only gets its colours. A method has the same colour, dash and marker in
every figure; the cases of an ablation take the palette in order. PNG and SVG come out the same, byte for byte.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from mctsvs.common import Array, InputError

# Okabe and Ito's palette, which colour-blind readers tell apart, from dark to light in turn
BLACK, ORANGE, SKY, GREEN, BLUE, RED, PURPLE, GREY = (
    "#000000",
    "#e69f00",
    "#56b4e9",
    "#009e73",
    "#0072b2",
    "#d55e00",
    "#cc79a7",
    "#7f7f7f",
)
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)), (0, (3, 1, 1, 1, 1, 1)))
MARKERS = "osD^vP*X<>hp"
BARS = 7  # error bars of a curve across a whole panel


@dataclass(frozen=True)
class Style:
    colour: str
    dash: int
    marker: str


STYLES: Mapping[str, Style] = {
    "mcts-vs-bo": Style(RED, 0, "o"),
    "mcts-vs-turbo": Style(BLUE, 0, "s"),
    "mcts-vs-rs": Style(GREEN, 0, "D"),
    "mcts-vs-saasbo": Style(PURPLE, 0, "P"),
    "mcts-vs-saas": Style(PURPLE, 3, "P"),
    "dropout-bo": Style(ORANGE, 1, "^"),
    "dropout-turbo": Style(SKY, 1, "v"),
    "dropout-rs": Style(GREEN, 1, "<"),
    "lasso-bo": Style(ORANGE, 3, "h"),
    "lasso-turbo": Style(SKY, 3, "p"),
    "bo": Style(BLACK, 2, "X"),
    "sklearn-bo": Style(GREY, 4, "p"),
    "turbo": Style(ORANGE, 2, "d"),
    "random": Style(GREY, 2, "."),
    "la-mcts-turbo": Style(SKY, 4, ">"),
    "saasbo": Style(PURPLE, 2, "*"),
    "saas": Style(PURPLE, 4, "*"),
    "hesbo": Style(GREEN, 3, "h"),
    "alebo": Style(BLACK, 3, "p"),
    "cma-es": Style(GREY, 1, "<"),
    "vae-bo": Style(GREY, 2, "v"),
    "ucb-all": Style(BLACK, 2, "X"),
    "ucb-dropout": Style(ORANGE, 1, "^"),
    "ucb-mcts-vs": Style(RED, 0, "o"),
}
TURN = (RED, BLUE, ORANGE, GREEN, PURPLE, BLACK, SKY, GREY)


@dataclass(frozen=True)
class Curve:
    """A line with error bars; `error` may hold NaN, where no bar is drawn."""

    label: str
    x: Array
    mean: Array
    error: Array


@dataclass(frozen=True)
class Panel:
    """One set of axes."""

    title: str
    xlabel: str
    ylabel: str
    curves: Sequence[Curve]
    levels: Mapping[str, float] = field(default_factory=dict)  # dashed horizontal lines
    xscale: Literal["linear", "log"] = "linear"
    yscale: Literal["linear", "log"] = "linear"
    yrange: tuple[float, float] | None = None  # where several panels are to share it
    skip: float = 0.1
    """The vertical range is that of the curves after this share of their points: the first lie far away."""


@dataclass(frozen=True)
class Dot:
    """One cell of a table: our value with its standard error, and the paper's if it prints one."""

    label: str
    value: float
    error: float
    printed: float | None = None


def style_of(label: str, labels: Sequence[str]) -> Style:
    """Of a method by its name; of several cases of one method by their order, in colours no other method has."""
    method = label.partition("[")[0]
    alone = [other.partition("[")[0] for other in labels].count(method) == 1
    if method in STYLES and (alone or label == method):
        return STYLES[method]
    named = [STYLES[other] for other in labels if other in STYLES]
    colours = [colour for colour in TURN if colour not in {style.colour for style in named}] or list(TURN)
    shapes = [(i % len(DASHES), MARKERS[i % len(MARKERS)]) for i in range(len(DASHES) * len(MARKERS))]
    shapes = [shape for shape in shapes if shape not in {(style.dash, style.marker) for style in named}]
    i = [other for other in labels if other not in STYLES].index(label)
    return Style(colours[i % len(colours)], *shapes[i % len(shapes)])


def short_names(labels: Sequence[str]) -> tuple[str, list[str]]:
    """A title for the legend and a name for each label: what all have in common is said once."""
    methods = {label.partition("[")[0] for label in labels}
    if len(labels) > 1 and len(methods) == 1 and all(label.endswith("]") for label in labels):
        return methods.pop(), [label.partition("[")[2][:-1].replace(",", ", ") for label in labels]
    return "", list(labels)


SETTINGS = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.hashsalt": "mctsvs",
    "svg.fonttype": "none",
    "figure.constrained_layout.use": True,
}


def _matplotlib() -> Any:
    try:
        import matplotlib as mpl
        import matplotlib.figure
    except ImportError:
        raise InputError("drawing needs matplotlib, not installed here: pip install 'mctsvs[plot]'") from None
    return mpl


def _save(figure: Any, stem: Path) -> list[Path]:
    paths = [stem.with_name(stem.name + ending) for ending in (".png", ".svg")]
    try:
        figure.savefig(paths[0], dpi=150, metadata={"Software": None})
        figure.savefig(paths[1], metadata={"Date": None, "Creator": None})
    except OSError as error:
        raise InputError(f"cannot write {str(paths[0])!r}: {error.strerror}") from None
    return paths


def draw(panels: Sequence[Panel], stem: Path, columns: int = 4) -> list[Path]:
    """Write stem.png and stem.svg."""
    mpl = _matplotlib()
    with mpl.rc_context(SETTINGS):
        wide = min(columns, len(panels))
        high = -(-len(panels) // wide)
        labels = list(dict.fromkeys(curve.label for panel in panels for curve in panel.curves))
        title, names = short_names(labels)
        width = 3.15 * wide if wide > 1 else 5.6
        per_row = max(1, min(len(labels), int(width // (0.72 + 0.074 * max(map(len, names), default=1)))))
        legend_rows = -(-len(labels) // per_row)
        per_row = -(-len(labels) // legend_rows)  # rows of equal length
        legend_rows += bool(title)
        figure = mpl.figure.Figure(figsize=(width, 2.55 * high + 0.24 * legend_rows + 0.1))
        axes = figure.subplots(high, wide, squeeze=False)
        handles: dict[str, Any] = {}
        for panel, ax in zip(panels, axes.flat, strict=False):
            _panel(panel, ax, labels, handles)
        for ax in list(axes.flat)[len(panels) :]:
            ax.set_axis_off()
        shown = [label for label in labels if label in handles]
        shown = [label for column in range(per_row) for label in shown[column::per_row]]  # legends fill columns first
        figure.legend(
            [handles[label] for label in shown],
            [names[labels.index(label)] for label in shown],
            title=title or None,
            loc="outside upper center",
            ncols=per_row,
            handlelength=3.2,
            columnspacing=1.4,
        )
        return _save(figure, stem)


def draw_dots(rows: Sequence[tuple[str, Sequence[Dot]]], stem: Path, axis: tuple[str, bool, bool]) -> list[Path]:
    """A table as dots: a panel for each problem, a line for each method; hollow: the paper's number.

    `axis` is its name, whether it is logarithmic, and whether all panels share it.
    """
    mpl = _matplotlib()
    with mpl.rc_context({**SETTINGS, "ytick.left": False}):
        labels = list(dict.fromkeys(dot.label for _, dots in rows for dot in dots))
        longest = max(map(len, labels))
        figure = mpl.figure.Figure(figsize=(2.5 * len(rows) + 0.07 * longest + 0.3, 0.27 * len(labels) + 1.25))
        name, logarithmic, shared = axis
        axes = figure.subplots(1, len(rows), squeeze=False, sharey=True, sharex=shared)
        drawn: dict[str, Any] = {}
        for (problem, dots), ax in zip(rows, axes.flat, strict=True):
            for dot in dots:
                y, style = labels.index(dot.label), style_of(dot.label, labels)
                error = [0.0 if np.isnan(dot.error) else dot.error]
                bar = ax.errorbar(
                    [dot.value], [y], xerr=error, fmt="o", color=style.colour, markersize=5.5, capsize=2.5
                )
                drawn.setdefault("measured here, with standard error", bar)
                if dot.printed is not None:
                    (mark,) = ax.plot(
                        dot.printed, y, "D", markerfacecolor="none", markeredgecolor="#333333", markersize=5
                    )
                    drawn["printed in the paper"] = mark
            ax.set(title=problem, xscale="log" if logarithmic else "linear")
            ax.set_ylim(len(labels) - 0.5, -0.5)
            ax.set_yticks(range(len(labels)), labels)
            ax.margins(x=0.08)
        figure.supxlabel(name, fontsize=9)
        figure.legend(list(drawn.values()), list(drawn), loc="outside upper center", ncols=2)
        return _save(figure, stem)


def _panel(panel: Panel, ax: Any, labels: Sequence[str], handles: dict[str, Any]) -> None:
    from matplotlib.ticker import MaxNLocator

    spacing = bar_spacing(panel)
    for i, curve in enumerate(panel.curves):
        style = style_of(curve.label, labels)
        known = np.flatnonzero(np.isfinite(curve.mean))
        if len(known) == 0:
            continue
        x, mean, error = curve.x[known], curve.mean[known], curve.error[known]
        bars = bar_positions(x, spacing, (i + 0.5) / len(panel.curves), panel.xscale == "log")
        (line,) = ax.plot(
            x,
            mean,
            color=style.colour,
            linestyle=DASHES[style.dash],
            linewidth=1.4,
            marker=style.marker,
            markersize=4.2,
            markeredgewidth=0.6,
            markeredgecolor="white",
            markevery=bars.tolist(),
            zorder=3 + (style.dash == 0),
        )
        handles.setdefault(curve.label, line)
        spread = np.nan_to_num(error[bars])
        ax.errorbar(x[bars], mean[bars], spread, fmt="none", ecolor=style.colour, elinewidth=0.9, capsize=2, zorder=2)
    near, far = _levels(panel)
    if far:
        text = "\n".join(f"{name} {level:.4g}" for name, level in far.items())
        ax.annotate(text, (0.02, 0.98), xycoords="axes fraction", va="top", fontsize=7.5, color="#333333")
    for text, level in near.items():
        ax.axhline(level, color="#555555", linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
        place = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
        ax.annotate(text, (1.0, level), xytext=(-1, 2), ha="right", fontsize=7.5, **place)
    if panel.yrange is not None:
        ax.set_ylim(*panel.yrange)
    ax.set(title=panel.title, xlabel=panel.xlabel, ylabel=panel.ylabel, xscale=panel.xscale, yscale=panel.yscale)
    if panel.yscale == "linear":
        ax.yaxis.set_major_locator(MaxNLocator(6))
        _cut(panel, ax)
    if panel.xscale == "linear":
        ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.margins(x=0.02)
    for scale, line in ((panel.xscale, ax.xaxis), (panel.yscale, ax.yaxis)):
        if scale == "log":
            _log_ticks(line)


def _log_ticks(line: Any) -> None:
    """Labels at 1, 2 and 5 where the axis is short, at powers of ten elsewhere; plain numbers where they are short."""
    from matplotlib.ticker import FuncFormatter, LogFormatterMathtext, LogLocator, NullFormatter

    low, high = line.get_view_interval()
    short = np.log10(high / low) < 2.5 if low > 0 else False
    line.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if short else (1.0,), numticks=9))
    line.set_minor_formatter(NullFormatter())
    if low > 1e-4 and high < 1e5:
        line.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    else:
        line.set_major_formatter(LogFormatterMathtext())


def _later(panel: Panel) -> Array:
    """Values of all curves without their first points, and the ends of their bars in the second half."""
    found = [np.empty(0)]
    for curve in panel.curves:
        known = np.isfinite(curve.mean)
        mean, error = curve.mean[known], np.nan_to_num(curve.error[known])
        half = len(mean) // 2
        found += [mean[min(int(panel.skip * len(mean)), max(len(mean) - 1, 0)) :]]
        found += [(mean - error)[half:], (mean + error)[half:]]
    return np.concatenate(found)


def _levels(panel: Panel) -> tuple[dict[str, float], dict[str, float]]:
    """Levels to draw, and those so far away that the curves would be squashed: they are only written."""
    values = _later(panel)
    if panel.yscale == "log" or len(values) == 0:
        return dict(panel.levels), {}
    low, high = float(values.min()), float(values.max())
    room = max(high - low, 1e-12)
    near = {name: level for name, level in panel.levels.items() if low - room <= level <= high + room}
    return near, {name: level for name, level in panel.levels.items() if name not in near}


def _cut(panel: Panel, ax: Any) -> None:
    """Fit the vertical range to the curves without their first points."""
    values = _later(panel)
    if len(values) == 0:
        return
    values = np.append(values, list(_levels(panel)[0].values()))
    low, high = float(values.min()), float(values.max())
    margin = 0.06 * (high - low) or 0.5
    ax.set_ylim(low - margin, high + margin)


def bar_positions(x: Array, spacing: float, phase: float, logarithmic: bool) -> Any:
    """Where to put a curve's bars and markers: evenly, each curve's a little aside of the others', the last always."""
    scale = _scaled(x, logarithmic)
    wanted = np.arange(scale[0] + spacing * phase, scale[-1], spacing) if spacing > 0 else scale[:0]
    return np.unique(np.append(np.searchsorted(scale, wanted).clip(0, len(x) - 1), len(x) - 1))


def _scaled(x: Array, logarithmic: bool) -> Array:
    return np.log(np.maximum(x, 1e-12)) if logarithmic else x


def bar_spacing(panel: Panel) -> float:
    """So that a curve across the whole panel gets its number of bars."""
    ends = [_scaled(curve.x[np.isfinite(curve.mean)], panel.xscale == "log") for curve in panel.curves]
    ends = [end for end in ends if len(end)]
    return (max(end[-1] for end in ends) - min(end[0] for end in ends)) / BARS if ends else 0.0
