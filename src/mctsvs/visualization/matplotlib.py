"""Pictures on matplotlib axes: each takes a run and returns the axes it was drawn on.

The numbers come from `mctsvs.visualization.curves`, `variables` and `surrogate_slices`, which need no plotting library.
"""

from __future__ import annotations

from textwrap import fill
from typing import Any

import numpy as np

from mctsvs.utils.formatting import shortened
from mctsvs.utils.validation import InputError
from mctsvs.visualization import curves, variables
from mctsvs.visualization.run_data import RunData, runs_of
from mctsvs.visualization.style import ACCENT, COMPARED, FAINT, INK, QUIET, SCALE
from mctsvs.visualization.surrogate_slices import Axis, SurrogateSlices

LINES = ["-", "--", ":", "-."]


def plot_convergence(source: Any, ax: Any = None) -> Any:
    """Draw the best value so far against the number of the trial; of one run, the single values too.

    Args:
        source: A Result, a Study, an Optimizer, a list of them, or a dict of label -> one of them.
        ax: The axes to draw on; new ones by default.

    Returns:
        The axes.

    Example:
        >>> plot_convergence({"auto": result, "random": other})
    """
    ax = _axes(ax)
    runs = runs_of(source)
    for i, run in enumerate(runs):
        curve = curves.convergence(run)
        if len(runs) == 1:
            ok = curve.feasible
            ax.plot(curve.trial[ok], curve.value[ok], ".", color=QUIET, markersize=3, label="evaluations")
            ax.plot(curve.trial[curve.improved], curve.best[curve.improved], "o", color=ACCENT, markersize=4)
        label = "best so far" if len(runs) == 1 else run.label
        color, line = COMPARED[i % len(COMPARED)], LINES[i % len(LINES)]
        ax.step(curve.trial, curve.best, where="post", color=color, linestyle=line, label=label)
        _look_at(ax, curve)
    ax.set(xlabel="trial", ylabel="value", title="Convergence")
    ax.legend(frameon=False)
    return ax


def _look_at(ax: Any, curve: curves.Convergence) -> None:
    """A few disastrous values must not flatten the rest."""
    seen = curve.value[np.isfinite(curve.value)]
    if len(seen) > 10 and np.isfinite(curve.best).any():
        low, high = np.quantile(seen, [0.02, 0.98])
        best = curve.best[np.isfinite(curve.best)]
        low, high = min(low, best.min()), max(high, np.quantile(best, 0.98))
        room = 0.05 * (high - low) or 1.0
        before = ax.get_ylim() if getattr(ax, "_mctsvs_seen", False) else (np.inf, -np.inf)
        ax._mctsvs_seen = True
        ax.set_ylim(min(before[0], low - room), max(before[1], high + room))


def plot_variables(source: Any, ax: Any = None, most: int = 20) -> Any:
    """Draw by how much each active variable changes the value at least, as a share of the range of all values.

    Args:
        source: A Result, a Study or an Optimizer.
        most: Variables shown at most.
        ax: The axes to draw on; new ones by default.

    Returns:
        The axes.

    Example:
        >>> ax = plot_variables(result)
    """
    run = _one(source)
    ax = _axes(ax)
    shown = variables.active(run, most)
    if not shown.rows:
        return _nothing(ax, "Active variables", shown.words or "no evaluation has succeeded yet")
    from matplotlib.ticker import PercentFormatter

    place = np.arange(len(shown.rows))
    ax.bar_label(ax.barh(place, shown.share, color=ACCENT), shown.change, padding=3, fontsize=8)
    ax.set_yticks(place, [shortened(row.name) for row in shown.rows])
    ax.invert_yaxis()
    ax.margins(x=0.12)
    ax.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=None))
    ax.set(xlabel="change seen, as a share of the range", title="Active variables")
    return ax


def plot_tree(source: Any, ax: Any = None) -> Any:
    """Draw the groups of variables as an icicle: the more variables the wider, the higher its value the darker.

    Args:
        source: A Result, a Study or an Optimizer.
        ax: The axes to draw on; new ones by default.

    Returns:
        The axes.

    Example:
        >>> ax = plot_tree(result)
    """
    run = _one(source)
    ax = _axes(ax)
    nodes = variables.tree(run)
    if nodes is None:
        return _nothing(ax, "Tree of variables", "this method has no tree")
    if len(nodes) == 1:
        return _nothing(ax, "Tree of variables", "the variables have not been split into groups")
    from matplotlib.colors import Normalize

    colours = _colours()
    norm = Normalize(float(nodes.value.min()), float(nodes.value.max()))
    for i in range(len(nodes)):
        width, shade = nodes.width[i], norm(nodes.value[i])
        ax.add_patch(_box(nodes.start[i], -nodes.depth[i] - 1.0, width, colours(shade)))
        if width > 0.12:
            text = nodes.names[i] if nodes.size[i] <= 2 else f"{nodes.size[i]} variables"
            where = nodes.start[i] + width / 2, -nodes.depth[i] - 0.5
            ax.text(*where, text, ha="center", va="center", fontsize=7, color="white" if shade > 0.6 else INK)
    depth = int(nodes.depth.max()) + 1
    ax.set(
        xlim=(0, 1), ylim=(-depth, 0), xlabel="the wider, the more variables", ylabel="depth", title="Tree of variables"
    )
    ax.set_xticks([])
    ax.set_yticks([-d - 0.5 for d in range(depth)], [str(d) for d in range(depth)])
    return ax


def _box(x: float, y: float, width: float, color: Any) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x, y), width, 1.0, facecolor=color, edgecolor="white", linewidth=0.8)


def plot_selection(source: Any, ax: Any = None, most: int = 30) -> Any:
    """Draw which variables moved when: the darker, the larger the share of evaluations that moved the variable.

    Args:
        source: A Result, a Study or an Optimizer.
        most: Variables shown at most.
        ax: The axes to draw on; new ones by default.

    Returns:
        The axes.

    Example:
        >>> ax = plot_selection(result)
    """
    run = _one(source)
    ax = _axes(ax)
    shown = curves.selection(run, most)
    if not shown.varied:
        return _nothing(ax, "Variables moved", "the evaluations moved all variables")
    extent = (0.5, len(run.told) + 0.5, len(shown.names) - 0.5, -0.5)
    ax.imshow(shown.share, aspect="auto", extent=extent, cmap=_colours(), vmin=0, vmax=1, interpolation="nearest")
    ax.set_yticks(range(len(shown.names)), [shortened(name) for name in shown.names], fontsize=7)
    ax.set(xlabel="evaluation", title="Variables moved")
    return ax


def plot_slices(source: Any, axes: Any = None, most: int = 6) -> Any:
    """Draw what the method's model expects when one active variable of the best point changes.

    The band is two deviations, and dots are evaluations nearby.

    Args:
        source: A Result, a Study or an Optimizer.
        most: Variables shown at most, each on axes of its own.
        axes: The axes to draw on; new ones by default.

    Returns:
        An array of axes; one that says why, where no variable is known to act or there is no model.

    Example:
        >>> axes = plot_slices(result, most=4)
    """
    surface = SurrogateSlices(_one(source), most)
    if surface.missing:
        return np.array([_nothing(_axes(None if axes is None else np.ravel(axes)[0]), "Slices", surface.missing)])
    found = surface.slices()
    if axes is None:
        import matplotlib.pyplot as plt

        columns = min(3, len(found))
        rows = -(-len(found) // columns)
        _, axes = plt.subplots(rows, columns, figsize=(3.2 * columns, 2.6 * rows), squeeze=False, layout="constrained")
    axes = np.ravel(axes)
    for ax, one in zip(axes, found, strict=False):
        x = one.axis.values
        if one.axis.kind == "choices":
            ax.errorbar(range(len(x)), one.mean, 2 * one.sd, fmt="o", color=ACCENT)
            ax.set_xticks(range(len(x)), x)
        else:
            ax.fill_between(x, one.mean - 2 * one.sd, one.mean + 2 * one.sd, color=FAINT, linewidth=0)
            ax.plot(x, one.mean, color=ACCENT)
            ax.axvline(one.at, color=INK, linewidth=0.8, linestyle=":")
            ax.set_xscale(one.axis.kind)
        seen = [x.index(value) for value in one.seen] if one.axis.kind == "choices" else one.seen
        ax.plot(seen, one.value, ".", color=QUIET, markersize=3, zorder=1)
        low, high = (one.mean - 2 * one.sd).min(), (one.mean + 2 * one.sd).max()
        room = 0.08 * (high - low) or 1.0
        ax.set(xlabel=one.axis.name, ylabel="value", ylim=(low - room, high + room))
    for ax in axes[len(found) :]:
        ax.set_axis_off()
    return axes


def plot_contour(source: Any, first: str | None = None, second: str | None = None, ax: Any = None) -> Any:
    """Draw the method's model over two active variables, all others as at the best point.

    Args:
        source: A Result, a Study or an Optimizer.
        first: The name of one variable; by default that of the largest effect.
        second: The name of the other; by default the next one.
        ax: The axes to draw on; new ones by default.

    Returns:
        The axes.

    Raises:
        InputError: A variable is not known to act.

    Example:
        >>> ax = plot_contour(result, "x17", "x203")
    """
    surface = SurrogateSlices(_one(source), most=len(_one(source).space))
    for name in filter(None, (first, second)):
        if name not in surface.names:
            raise InputError(f"there is no contour of {name!r}: no evaluation shows that it acts")
    if surface.missing or len(surface.names) < 2:
        return _nothing(_axes(ax), "Model", surface.missing or surface.run.variables.summary)
    others = [name for name in surface.names if name not in (first, second)]
    names = first or others.pop(0), second or others.pop(0)
    if names[0] == names[1]:
        raise InputError("a contour needs two variables: give another name, or look at slices")
    ax = _axes(ax)
    shown = surface.contour(*names)
    colours = _colours(reverse=surface.run.sign < 0)
    filled = ax.contourf(_ticks(ax, shown.first, "x"), _ticks(ax, shown.second, "y"), shown.mean, 14, cmap=colours)
    ax.figure.colorbar(filled, ax=ax, label="value")
    if "choices" not in (shown.first.kind, shown.second.kind):
        ax.plot(*shown.at, "*", color="white", markeredgecolor=INK, markersize=12)
    ax.set(xlabel=names[0], ylabel=names[1], title="Model around the best point")
    return ax


def _ticks(ax: Any, axis: Axis, which: str) -> Any:
    """Positions of the axis' values; choices stand at 0, 1, ..."""
    if axis.kind != "choices":
        getattr(ax, f"set_{which}scale")(axis.kind)
        return axis.values
    places = range(len(axis.values))
    getattr(ax, f"set_{which}ticks")(places, axis.values)
    return places


def plot_parallel(source: Any, ax: Any = None, points: int = 20) -> Any:
    """Draw the best points in colour before some of the others, on one axis for each active variable.

    Args:
        source: A Result, a Study or an Optimizer.
        points: How many points are in colour.
        ax: The axes to draw on; new ones by default.

    Returns:
        The axes.

    Example:
        >>> ax = plot_parallel(result)
    """
    run = _one(source)
    ax = _axes(ax)
    shown = variables.parallel(run, points)
    if not shown.names:
        return _nothing(ax, "The best points", run.variables.summary or "no evaluation has succeeded yet")
    across = np.arange(len(shown.names))
    for i in reversed(range(len(shown.place))):
        good = i < shown.best
        ax.plot(across, shown.place[i], color=ACCENT if good else FAINT, alpha=0.7, linewidth=1.4 if good else 0.8)
    ticks = [f"{shortened(n, 14)}\n{low} to {high}" for n, (low, high) in zip(shown.names, shown.ends, strict=True)]
    ax.set_xticks(across, ticks, fontsize=8)
    ax.set(ylim=(-0.03, 1.03), ylabel="place in its range", title=f"The best {shown.best} points")
    return ax


def plot_constraints(source: Any, ax: Any = None) -> Any:
    """Draw measured constraints over time: what is above 0 is broken.

    Args:
        source: A Result, a Study or an Optimizer.
        ax: The axes to draw on; new ones by default.

    Returns:
        The axes.

    Example:
        >>> ax = plot_constraints(result)
    """
    run = _one(source)
    ax = _axes(ax)
    shown = curves.constraints(run)
    if shown is None:
        return _nothing(ax, "Constraints", "no evaluation has any")
    for i, name in enumerate(shown.names):
        ax.plot(shown.trial, shown.value[:, i], ".", markersize=4, color=COMPARED[i % len(COMPARED)], label=name)
    ax.axhline(0.0, color=INK, linewidth=0.8)
    ax.set(xlabel="trial", ylabel="constraint (kept at 0 or below)", title="Constraints")
    ax.legend(frameon=False)
    return ax


def plot_timeline(source: Any, ax: Any = None) -> Any:
    """Draw the seconds spent evaluating and thinking, added up.

    Args:
        source: A Result, a Study or an Optimizer.
        ax: The axes to draw on; new ones by default.

    Returns:
        The axes.

    Example:
        >>> ax = plot_timeline(result)
    """
    run = _one(source)
    ax = _axes(ax)
    shown = curves.timeline(run)
    if shown is None:
        return _nothing(ax, "Time", "no times are known")
    evaluating, thinking = np.nancumsum(shown.evaluating), np.cumsum(shown.thinking)
    ax.plot(shown.trial, evaluating, color=INK, label="evaluating")
    ax.plot(shown.trial, thinking, color=ACCENT, linestyle="--", label="thinking")
    ax.set(xlabel="trial", ylabel="seconds in all", title="Time")
    ax.legend(frameon=False)
    return ax


def _colours(*, reverse: bool = False) -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("mctsvs", SCALE[::-1] if reverse else SCALE)


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise InputError("pictures need matplotlib, not installed here: pip install 'mctsvs[plot]'") from None
    return plt.subplots(figsize=(7, 4), layout="constrained")[1]


def _one(source: Any) -> RunData:
    runs = runs_of(source)
    if len(runs) > 1:
        raise InputError(f"this picture is of one run, not of {len(runs)}: give one of them")
    return runs[0]


def _nothing(ax: Any, title: str, why: str) -> Any:
    ax.set_title(title)
    ax.text(0.5, 0.5, fill(why, 60), ha="center", va="center", color=QUIET, transform=ax.transAxes)
    ax.set_axis_off()
    return ax
