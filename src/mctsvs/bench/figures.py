"""Drawing: curves of means with standard error bars, in plots, readable in grey.

What is drawn is computed elsewhere, and `styles.py` says how each method looks and is written. PNG, SVG and PDF come
out the same, byte for byte.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from mctsvs.bench.stats import Ranking
from mctsvs.bench.styles import BLUE, COMPACT, DARK, DASHES, MARKERS, Style, short_names, styles, written
from mctsvs.utils.validation import Array, InputError

BARS = 7  # error bars of a curve across a whole plot
FLOOR = 3.0  # a logarithmic axis ends at the least value divided by this: bars that nearly reach zero are cut


@dataclass(frozen=True)
class Curve:
    """A line with error bars; `error` may hold NaN, where no bar is drawn.

    With a `law`, the x and y of a line fitted to them, the points are not joined and the label stands where it ends.
    `theirs`: of others, drawn thin and dashed in the colour of ours.
    """

    label: str
    x: Array
    mean: Array
    error: Array
    law: tuple[Array, Array] | None = None
    theirs: bool = False


@dataclass(frozen=True)
class Plot:
    """One set of axes."""

    title: str
    xlabel: str
    ylabel: str
    curves: Sequence[Curve]
    _: KW_ONLY
    levels: Mapping[str, float] = field(default_factory=dict)  # dashed horizontal lines
    xscale: Literal["linear", "log"] = "linear"
    yscale: Literal["linear", "log"] = "linear"
    yrange: tuple[float, float] | None = None  # where several plots are to share it
    apart: bool = False  # with a legend of its own: its curves are others than those of the other plots
    skip: float = 0.1
    """The vertical range is that of the curves after this share of their points: the first lie far away."""


@dataclass(frozen=True)
class Dot:
    """One cell of a table: our value with its standard error, and the paper's if it prints one."""

    label: str
    value: float
    error: float
    printed: float | None = None
    name: str = ""  # beside the dots; default: the label


@dataclass(frozen=True)
class DotScale:
    """The axis of dots."""

    logarithmic: bool = False
    shared: bool = True  # by all problems


# what a legend says of curves with a law, whose names stand beside them
LAW: Mapping[str, Mapping[str, Any]] = {
    "measured": {"color": DARK, "linestyle": "none", "marker": "o", "markersize": 5},
    "power law fitted to the points under the line": {"color": DARK, "linewidth": 1.5},
}
THEIRS: Mapping[str, Any] = {"linewidth": 0.9, "linestyle": (0, (3, 2)), "alpha": 0.8}
THEIR_NAME = "authors' runs"
LOOK = {
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
    "figure.constrained_layout.wspace": 0.06,  # so that no label touches the plot to its left
}


def matplotlib() -> Any:
    try:
        import matplotlib as mpl
        import matplotlib.figure
        import matplotlib.lines
    except ImportError:
        raise InputError("drawing needs matplotlib, not installed here: pip install 'mctsvs[plot]'") from None
    return mpl


def save(figure: Any, stem: Path) -> list[Path]:
    paths = [stem.with_name(stem.name + ending) for ending in (".png", ".svg", ".pdf")]
    try:
        figure.savefig(paths[0], dpi=150, metadata={"Software": None})
        figure.savefig(paths[1], metadata={"Date": None, "Creator": None})
        figure.savefig(paths[2], metadata={"CreationDate": None, "Creator": None, "Producer": None})
    except OSError as error:
        raise InputError(f"cannot write {str(paths[0])!r}: {error.strerror}") from None
    return paths


def columns(plots: int, most: int = 4) -> int:
    """Of a figure of so many plots: as wide as may be, or one less where that leaves fewer gaps in the last row."""
    return plots if plots <= most else min((most, most - 1), key=lambda wide: -plots % wide)


def draw(plots: Sequence[Plot], stem: Path) -> list[Path]:
    """Draw curves side by side, with one legend for all plots.

    Args:
        plots: What is drawn, in rows of four at most.
        stem: Where to write, without an ending.

    Returns:
        The files: stem.png, stem.svg and stem.pdf.

    Raises:
        InputError: matplotlib is not installed, or a file cannot be written.
    """
    mpl = matplotlib()
    with mpl.rc_context(LOOK):
        wide = columns(len(plots))
        high = -(-len(plots) // wide)
        together = [plot for plot in plots if not plot.apart]
        labels = list(dict.fromkeys(c.label for plot in together for c in plot.curves if c.law is None))
        laws = dict(LAW) if any(curve.law for plot in plots for curve in plot.curves) else {}
        title, names = short_names(labels)
        if any(curve.theirs for plot in plots for curve in plot.curves):
            labels, names = [*labels, THEIR_NAME], [*names, THEIR_NAME]
        width = (3.75 if laws else 3.15) * wide if wide > 1 else 5.6
        longest = max((len(re.sub(r"[${}_]", "", name)) for name in names), default=1)
        per_row = max(1, min(len(labels), int(width // (0.72 + 0.074 * longest))))
        legend_rows = -(-len(labels) // per_row)
        per_row = -(-len(labels) // max(legend_rows, 1)) or len(LAW)  # rows of equal length
        legend_rows += bool(title) + bool(laws)
        figure = mpl.figure.Figure(figsize=(width, 2.55 * high + 0.24 * legend_rows + 0.1))
        axes = figure.subplots(high, wide, squeeze=False)
        handles: dict[str, Any] = {THEIR_NAME: mpl.lines.Line2D([], [], color=DARK, **THEIRS)}
        for i, (plot, ax) in enumerate(zip(plots, axes.flat, strict=False)):
            above = plots[max(i - wide, 0)]
            same = i % wide == 0 and not plot.ylabel and plot.yscale == above.yscale
            _plot(replace(plot, ylabel=above.ylabel) if same else plot, ax, labels, handles)
        for ax in list(axes.flat)[len(plots) :]:
            ax.set_axis_off()
        shown = [label for label in labels if label in handles]
        shown = [label for column in range(per_row) for label in shown[column::per_row]]  # legends fill columns first
        figure.legend(
            [handles[label] for label in shown] + [mpl.lines.Line2D([], [], **look) for look in laws.values()],
            [names[labels.index(label)] for label in shown] + list(laws),
            title=title or None,
            loc="outside upper center",
            ncols=per_row,
            handlelength=3.2,
            columnspacing=1.4,
        )
        return save(figure, stem)


def draw_dots(rows: Sequence[tuple[str, Sequence[Dot]]], stem: Path, axis: str, scale: DotScale) -> list[Path]:
    """A table as dots: a plot for each problem, a line for each method; hollow: the paper's number."""
    mpl = matplotlib()
    with mpl.rc_context({**LOOK, "ytick.left": False}):
        labels = list(dict.fromkeys(dot.label for _, dots in rows for dot in dots))
        longest, names = max(map(len, labels)), list(labels)
        figure = mpl.figure.Figure(figsize=(2.5 * len(rows) + 0.07 * longest + 0.3, 0.27 * len(labels) + 1.25))
        axes = figure.subplots(1, len(rows), squeeze=False, sharey=True, sharex=scale.shared)
        drawn = {"measured here, with standard error": mpl.lines.Line2D([], [], color=BLUE, marker="o", markersize=5.5)}
        for (problem, dots), ax in zip(rows, axes.flat, strict=True):
            for dot in dots:
                y = labels.index(dot.label)  # rows have names: no need of colours
                names[y] = dot.name or dot.label
                error = [0.0 if np.isnan(dot.error) else dot.error]
                ax.errorbar([dot.value], [y], xerr=error, fmt="o", color=BLUE, markersize=5.5, capsize=2.5)
                if dot.printed is not None:  # in front and a little larger: it shows around a dot at the same place
                    (mark,) = ax.plot(dot.printed, y, "D", color=DARK, markerfacecolor="none", markersize=6.5, zorder=4)
                    drawn["printed in the paper"] = mark
            ax.set(title=problem, xscale="log" if scale.logarithmic else "linear")
            ax.set_ylim(len(labels) - 0.5, -0.5)
            ax.set_yticks(range(len(labels)), names)
            ax.margins(x=0.08)
        figure.supxlabel(axis, fontsize=9)
        figure.legend(list(drawn.values()), list(drawn), loc="outside upper center", ncols=2)
        return save(figure, stem)


def draw_ranking(found: Ranking, stem: Path) -> list[Path]:
    """A line of ranks with the methods on it; a bar joins those that do not differ significantly."""
    mpl = matplotlib()
    names, k = list(found.ranks), len(found.ranks)
    half, groups = (k + 1) // 2, found.groups()
    with mpl.rc_context(LOOK):
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
        return save(figure, stem)


def _plot(plot: Plot, ax: Any, labels: Sequence[str], handles: dict[str, Any]) -> None:
    from matplotlib.ticker import MaxNLocator

    spacing = bar_spacing(plot)
    alone = [curve.label for curve in plot.curves if curve.law or plot.apart]
    looks = styles([label for label in labels if label != THEIR_NAME]) | styles(alone)
    for i, curve in enumerate(plot.curves):
        style = looks[curve.label]
        known = np.flatnonzero(np.isfinite(curve.mean))
        if len(known) == 0:
            continue
        x, mean, error = curve.x[known], curve.mean[known], curve.error[known]
        bars = bar_positions(x, spacing, (i + 0.5) / len(plot.curves), plot.xscale == "log")
        mark = {
            "marker": style.marker,
            "markersize": MARKERS[style.marker],
            "markeredgewidth": 0.6,
            "markeredgecolor": "white" if style.marker in COMPACT else style.colour,
        }
        line = {"color": style.colour, "linewidth": 1.5, "zorder": 3 + (style.dash == 0)}
        if curve.law is not None:
            ax.plot(x, mean, **line | mark | {"linestyle": "none"})
            ax.plot(*curve.law, **line)
            continue
        if curve.theirs:
            ax.plot(x, mean, color=style.colour, zorder=2, **THEIRS)
            continue
        (handle,) = ax.plot(x, mean, linestyle=DASHES[style.dash], markevery=bars.tolist(), **line, **mark)
        handles.setdefault(curve.label, handle)
        spread = np.nan_to_num(error[bars])
        ax.errorbar(x[bars], mean[bars], spread, fmt="none", ecolor=style.colour, elinewidth=0.9, capsize=2, zorder=2)
    near, far = _levels(plot)
    if far:
        text = "\n".join(f"{name} {level:.4g}" for name, level in far.items())
        ax.annotate(text, (0.02, 0.98), xycoords="axes fraction", va="top", fontsize=7.5, color=DARK)
    for text, level in near.items():
        ax.axhline(level, color="#555555", linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
        place = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
        ax.annotate(text, (1.0, level), xytext=(-1, 2), ha="right", fontsize=7.5, **place)
    if plot.yrange is not None:
        ax.set_ylim(*plot.yrange)
    ax.set(title=plot.title, xlabel=plot.xlabel, ylabel=plot.ylabel, xscale=plot.xscale, yscale=plot.yscale)
    if plot.yscale == "linear":
        ax.yaxis.set_major_locator(MaxNLocator(6))
        _cut(plot, ax)
    elif plot.yrange is None:
        ax.set_ylim(bottom=max(ax.get_ylim()[0], _least(plot) / FLOOR))
    if plot.xscale == "linear":
        ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.margins(x=0.03)
    for scale, line in ((plot.xscale, ax.xaxis), (plot.yscale, ax.yaxis)):
        if scale == "log":
            _log_ticks(line)
    if any(curve.law for curve in plot.curves):
        _name_laws(plot, ax, looks)
    if plot.apart:
        own = [curve.label for curve in plot.curves]
        ax.legend([handles[label] for label in own], short_names(own)[1], fontsize=7.5, handlelength=2.6)


def _name_laws(plot: Plot, ax: Any, looks: Mapping[str, Style]) -> None:
    """The names of curves with a law, right of the plot, each at the height where its line ends."""
    ends = [(curve.label, curve.law[0][-1], curve.law[1][-1]) for curve in plot.curves if curve.law]
    ax.autoscale_view()
    to_axes = ax.transData + ax.transAxes.inverted()
    heights = spread_out([to_axes.transform((x, y))[1] for _, x, y in ends], 0.085)
    for (label, _, _), height in zip(ends, heights, strict=True):
        place = {"xycoords": "axes fraction", "annotation_clip": False}
        ax.annotate(label, (1.02, height), va="center", fontsize=8, color=looks[label].colour, **place)


def spread_out(heights: Sequence[float], gap: float) -> list[float]:
    """The same order, no two closer than `gap`, none above 1."""
    order = np.argsort(heights, kind="stable")
    moved = np.array(heights, dtype=np.float64)
    for below, above in itertools.pairwise(order):
        moved[above] = max(moved[above], moved[below] + gap)
    for i, at in enumerate(order[::-1]):
        moved[at] = min(moved[at], 1.0 - i * gap)
    return [float(height) for height in moved]


def _log_ticks(line: Any) -> None:
    """Labels at powers of ten, the more between them the shorter the axis; plain numbers where they are short."""
    from matplotlib.ticker import FuncFormatter, LogFormatterMathtext, LogLocator, MaxNLocator, NullFormatter

    low, high = line.get_view_interval()
    decades = np.log10(high / low) if low > 0 else np.inf
    between = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0) if decades < 1.1 else (1.0, 2.0, 5.0) if decades < 2.75 else (1.0,)
    even = MaxNLocator(6, steps=(1, 2, 2.5, 5, 10))
    line.set_major_locator(even if decades < 0.6 else LogLocator(subs=between, numticks=9))
    line.set_minor_formatter(NullFormatter())
    if low > 1e-4 and high < 1e5:
        line.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    else:
        line.set_major_formatter(LogFormatterMathtext())


def _least(plot: Plot) -> float:
    """The least positive value of the curves."""
    values = np.concatenate([np.empty(0), *(curve.mean for curve in plot.curves)])
    return float(values[values > 0].min(initial=np.inf))


def _later(plot: Plot) -> Array:
    """Values of all curves without their first points, and the ends of their bars in the second half."""
    found = [np.empty(0)]
    for curve in plot.curves:
        known = np.isfinite(curve.mean)
        mean, error = curve.mean[known], np.nan_to_num(curve.error[known]) * (not curve.theirs)  # no bars of theirs
        half = len(mean) // 2
        found += [mean[min(int(plot.skip * len(mean)), max(len(mean) - 1, 0)) :]]
        found += [(mean - error)[half:], (mean + error)[half:]]
    return np.concatenate(found)


def _levels(plot: Plot) -> tuple[dict[str, float], dict[str, float]]:
    """Levels to draw, and those so far away that the curves would be squashed: they are only written."""
    values = _later(plot)
    if plot.yscale == "log" or len(values) == 0:
        return dict(plot.levels), {}
    low, high = float(values.min()), float(values.max())
    room = max(high - low, 1e-12)
    near = {name: level for name, level in plot.levels.items() if low - room <= level <= high + room}
    return near, {name: level for name, level in plot.levels.items() if name not in near}


def _cut(plot: Plot, ax: Any) -> None:
    """Fit the vertical range to the curves without their first points."""
    values = _later(plot)
    if len(values) == 0:
        return
    values = np.append(values, list(_levels(plot)[0].values()))
    low, high = float(values.min()), float(values.max())
    margin = 0.06 * (high - low) or 0.5
    ax.set_ylim(low - margin, high + margin)


def bar_positions(x: Array, spacing: float, phase: float, logarithmic: bool) -> Any:
    """Where to put a curve's bars and markers: evenly, each curve's a little aside of the others'.

    The last point always has one, so none is nearer to it than half a spacing. Points further apart than that have
    one each.
    """
    scale, last = _scaled(x, logarithmic), len(x) - 1
    if last > 0 and np.diff(scale).min() >= spacing > 0:
        return np.arange(len(x))
    wanted = np.arange(scale[0] + spacing * phase, scale[-1], spacing) if spacing > 0 else scale[:0]
    found = np.searchsorted(scale, wanted).clip(0, last)
    return np.unique(np.append(found[scale[last] - scale[found] >= spacing / 2], last))


def _scaled(x: Array, logarithmic: bool) -> Array:
    return np.log(np.maximum(x, 1e-12)) if logarithmic else x


def bar_spacing(plot: Plot) -> float:
    """So that a curve across the whole plot gets its number of bars."""
    ends = [_scaled(curve.x[np.isfinite(curve.mean)], plot.xscale == "log") for curve in plot.curves]
    ends = [end for end in ends if len(end)]
    return (max(end[-1] for end in ends) - min(end[0] for end in ends)) / BARS if ends else 0.0
