"""The figures of the page: what happened when, then the variables, the model along them and the best points."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from mctsvs.utils.formatting import plural, short_number
from mctsvs.utils.validation import Array, Indices
from mctsvs.visualization.curves import Constraints, Convergence, Selection, Story, Timeline
from mctsvs.visualization.style import (
    DASHES,
    MOST_DOTS,
    Figure,
    below,
    colour_bar,
    figure,
    names_axis,
    plain,
    scatter,
    text,
    thinned,
    titled,
    upright,
    wrapped,
)
from mctsvs.visualization.surrogate_slices import Axis, Contour, Slice
from mctsvs.visualization.variables import ActiveVariables, Icicle, Parallel

SWITCH = 1e2  # between the smallest and the largest value: of more, the reader may choose a logarithmic axis
POWERS = 1e3  # of more, the axis is logarithmic to begin with
OUTCOMES = {  # symbol, colour, size, words
    "better": ("diamond", "@accent", 8, "a new best value"),
    "changed": ("circle", "@ink", 6, "a test whose value changed: something in it acts"),
    "same": ("circle-open", "@quiet", 5, "a test that changed nothing"),
    "worse": ("circle", "@faint", 4, "no improvement"),
    "failed": ("x", "@quiet", 6, "failed"),
}
COLOURS = ["@accent", "@ink", "@second", "@third", "@quiet"]


def value_axis(curves: Sequence[Convergence], title: str) -> dict[str, Any]:
    """The layout of an axis of values worth looking at, with a switch to a logarithmic one over powers of ten.

    A few disastrous values must not flatten the rest.
    """
    axis = titled(title)
    lows, highs = [], []
    for curve in curves:
        seen, best = curve.value[np.isfinite(curve.value)], curve.best[np.isfinite(curve.best)]
        if len(best):
            low, high = np.quantile(seen, [0.05, 0.95])
            lows.append(min(float(low), float(best[-1])))
            highs.append(max(float(high), float(best[-1])))
    if not lows or min(lows) == max(highs):
        return {"yaxis": axis}
    low, high = min(lows), max(highs)
    ranges = {"linear": _with_room(low, high)}
    if low <= 0 or high / low <= SWITCH:
        return {"yaxis": {**axis, "range": ranges["linear"]}}
    ranges["log"] = _with_room(np.log10(low), np.log10(high))
    kind = "log" if high / low > POWERS else "linear"
    buttons = [
        {"label": name, "method": "relayout", "args": [{"yaxis.type": name, "yaxis.range": ends}]}
        for name, ends in ranges.items()
    ]
    place = {"type": "buttons", "direction": "right", "x": 1, "xanchor": "right", "y": 1.02, "yanchor": "bottom"}
    look = {"showactive": False, "bgcolor": "@page", "bordercolor": "@faint", "font": {"color": "@soft", "size": 11}}
    menu = {**place, **look, "pad": {"t": 0, "b": 4}, "buttons": buttons}
    return {"yaxis": {**axis, "type": kind, "range": ranges[kind]}, "updatemenus": [menu]}


def _with_room(low: float, high: float) -> list[Any]:
    room = 0.06 * (high - low)
    return plain([low - room, high + room])


def convergence(curve: Convergence, story: Story) -> Figure:
    rows = thinned(len(curve.value), keep=curve.improved)
    ok = rows[curve.feasible[rows]]
    broken = rows[~curve.feasible[rows] & np.isfinite(curve.value[rows])]
    words = [f"{escape(story.purpose[i])}, {plural(int(story.moved[i]), 'variable')} moved" for i in ok]
    data = [_dots(curve.trial[ok], curve.value[ok], "evaluations", words, color="@quiet", size=4, opacity=0.55)]
    if len(broken):
        x, y = curve.trial[broken], curve.value[broken]
        data.append(_dots(x, y, "breaks a constraint", [], color="@quiet", size=5, symbol="x-thin-open"))
    data += [_steps(curve, "best so far", "@accent"), _changes(curve)]
    alt = "Value of each trial, with the best so far as a line"
    across = titled("trial", range=_all_trials(curve.trial))
    return figure(data, 360, alt=alt, xaxis=across, **value_axis([curve], "value"), legend=below())


def _dots(x: Array | Indices, y: Array, name: str, words: list[str], **marker: Any) -> dict[str, Any]:
    hover = "trial %{x}: %{y:.6g}<br>%{text}"
    return scatter("markers", plain(x), plain(y), hover=hover, name=name, text=words, marker=marker)


def _steps(curve: Convergence, name: str, color: str, dash: str = "solid") -> dict[str, Any]:
    rows = np.append(curve.improved[-MOST_DOTS:], len(curve.best) - 1) if len(curve.improved) else np.arange(0)
    line = {"color": color, "width": 2, "shape": "hv", "dash": dash}
    hover = f"{escape(name)}<br>after %{{x}}: %{{y:.6g}}"
    return scatter("lines", plain(curve.trial[rows]), plain(curve.best[rows]), hover=hover, name=text(name), line=line)


def _changes(curve: Convergence) -> dict[str, Any]:
    rows = curve.improved[-MOST_DOTS:]
    x, y, marker = plain(curve.trial[rows]), plain(curve.best[rows]), {"color": "@accent", "size": 7}
    return scatter("markers", x, y, hover="new best at trial %{x}: %{y:.6g}", name="new best", marker=marker)


def _all_trials(*numbers: Indices) -> list[int]:
    return [-1, 1 + max(int(trial.max(initial=0)) for trial in numbers)]


def compared(curves: Sequence[Convergence]) -> Figure:
    """The best values so far of several runs; lines differ in dash and in lightness."""
    data = [
        _steps(curve, curve.label, COLOURS[i % len(COLOURS)], DASHES[i % len(DASHES)]) for i, curve in enumerate(curves)
    ]
    alt = "Best value so far of each study"
    across = titled("trial", range=_all_trials(*(curve.trial for curve in curves)))
    return figure(data, 380, alt=alt, xaxis=across, **value_axis(curves, "best value so far"), legend=below())


def story(shown: Story, values: Array) -> Figure:
    """A lane for each purpose, a mark for each evaluation, phases as bands behind them."""
    lanes = list(dict.fromkeys(shown.purpose))
    kept = np.array([i for i, word in enumerate(shown.outcome) if word in ("better", "changed")], dtype=np.intp)
    rows = thinned(len(shown.purpose), 2 * MOST_DOTS, keep=kept)
    data = []
    for outcome, (symbol, color, size, words) in OUTCOMES.items():
        own = [i for i in rows.tolist() if shown.outcome[i] == outcome]
        if own:
            x, y = plain(shown.trial[own]), [wrapped(shown.purpose[i], 16) for i in own]
            said = [f"{plural(int(shown.moved[i]), 'variable')} moved, value {short_number(values[i])}" for i in own]
            marker = {"symbol": symbol, "color": color, "size": size}
            hover = f"trial %{{x}}: {words}<br>%{{text}}"
            name = words.partition(":")[0]
            data.append(scatter("markers", x, y, hover=hover, name=name, text=said, marker=marker))
    alt = "What each evaluation was for and what came of it"
    across = titled("trial", range=_all_trials(shown.trial), showgrid=False)
    order = {"categoryorder": "array", "categoryarray": [wrapped(lane, 16) for lane in lanes]}
    upwards = names_axis(**order, showgrid=False)
    height = 150 + 38 * len(lanes)
    return figure(data, height, alt=alt, xaxis=across, yaxis=upwards, legend=below(), shapes=_bands(shown))


def _bands(shown: Story) -> list[dict[str, Any]]:
    place = {"type": "rect", "yref": "paper", "y0": 0, "y1": 1, "layer": "below", "line": {"width": 0}}
    return [
        {**place, "x0": band.first - 0.5, "x1": band.last + 0.5, "fillcolor": "@band2" if band.tests else "@band"}
        for band in shown.bands
    ]


def selection(shown: Selection) -> Figure:
    middle = (shown.edges[:-1] + shown.edges[1:] - 1) / 2.0
    z = [plain(np.round(row, 3)) for row in shown.share]
    trace: dict[str, Any] = {"type": "heatmap", "x": plain(middle), "y": [text(name) for name in shown.names], "z": z}
    trace |= {"zmin": 0, "zmax": 1, "xgap": 0.5, "ygap": 1, "colorscale": "@scale"}
    trace["colorbar"] = colour_bar("share moved", tickformat=".0%")
    trace["hovertemplate"] = "%{y} moved in %{z:.0%} of the evaluations around %{x:.0f}<extra></extra>"
    names = names_axis(tickfont={"size": 10}, nticks=60)
    across = titled("evaluation", showgrid=False)
    return figure([trace], 100 + 15 * len(shown.names), alt="Which variables moved when", xaxis=across, yaxis=names)


def constraints(shown: Constraints) -> Figure:
    rows = thinned(len(shown.trial))
    symbols, x, data = ["circle", "diamond", "square", "cross"], plain(shown.trial[rows]), []
    for i, name in enumerate(shown.names):
        marker = {"symbol": symbols[i % 4], "color": COLOURS[i % 4], "size": 5, "opacity": 0.7}
        hover = f"{escape(name)} at trial %{{x}}: %{{y:.4g}}"
        data.append(scatter("markers", x, plain(shown.value[rows, i]), hover=hover, name=text(name), marker=marker))
    zero = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": 0, "y1": 0, "line": {"color": "@ink", "width": 1}}
    alt, upwards = "Measured constraints of each trial", titled("constraint, kept at 0 or below")
    layout: dict[str, Any] = {"xaxis": titled("trial"), "yaxis": upwards, "shapes": [zero]}
    return figure(data, 320, alt=alt, **layout, legend=below(), showlegend=True)


def time_used(shown: Timeline) -> Figure:
    rows = thinned(len(shown.trial), 400)
    data = []
    for name, spent, color, dash in (
        ("evaluating", np.nancumsum(shown.evaluating), "@ink", "solid"),
        ("thinking", np.cumsum(shown.thinking), "@accent", "dash"),
    ):
        line, hover = {"color": color, "dash": dash, "width": 2}, f"%{{y:.3g}} s {name} up to trial %{{x}}"
        data.append(scatter("lines", plain(shown.trial[rows]), plain(spent[rows]), hover=hover, name=name, line=line))
    alt, upwards = "Seconds spent evaluating and thinking", titled("seconds in all", rangemode="tozero")
    wide = len(shown.workers) < 2
    return figure(data, 280, wide=wide, alt=alt, xaxis=titled("trial"), yaxis=upwards, legend=below())


def workers(shown: Timeline) -> Figure:
    """A lane for each worker, a line for each evaluation."""
    x: list[Any] = []
    y: list[Any] = []
    for i in thinned(len(shown.trial), 600).tolist():
        seconds = shown.evaluating[i]
        begun = shown.told[i] - seconds if np.isfinite(seconds) else shown.asked[i]
        x += [float(f"{begun:.6g}"), float(f"{shown.told[i]:.6g}"), None]
        y += [shown.worker[i], shown.worker[i], None]
    marker = {"color": "@accent", "size": 5, "symbol": "line-ns-open"}
    line = {"color": "@accent", "width": 8}
    lane = scatter("lines+markers", x, y, hover="%{y} at %{x:.3g} s", line=line, marker=marker)
    height, alt = max(280, 110 + 24 * len(shown.workers)), "When each worker was evaluating"
    across = titled("seconds since the start")
    upwards = names_axis(categoryorder="array", categoryarray=shown.workers)
    return figure([lane], height, wide=False, alt=alt, xaxis=across, yaxis=upwards, showlegend=False)


def active(shown: ActiveVariables) -> Figure:
    """A bar for each variable: the share of the range by which it alone has changed the value, and the change."""
    known = zip(shown.rows, shown.at, strict=True)
    hover = [f"{wrapped(str(row))}<br>at the best point: {escape(at)}" for row, at in known]
    bar: dict[str, Any] = {
        "type": "bar",
        "orientation": "h",
        "y": [text(row.name) for row in shown.rows],
        "x": plain(shown.share),
    }
    bar |= {"marker": {"color": "@accent"}, "hovertext": hover, "hoverinfo": "text", "cliponaxis": False}
    bar |= {"text": [text(change) for change in shown.change], "textposition": "outside"}
    room = plain([0.0, 1.12 * float(shown.share.max())])  # for the numbers beside the bars
    across = titled("change seen, as a share of the range", tickformat=".0%", range=room)
    alt, height = "By how much each active variable changes the value at least", 90 + 22 * len(shown.rows)
    return figure([bar], height, alt=alt, xaxis=across, yaxis=names_axis(), showlegend=False)


def tree(nodes: Icicle) -> Figure:
    ids = [f"n{i}" for i in range(len(nodes))]
    inner = set(nodes.parent)
    counts = [plural(int(size), "variable") for size in nodes.size]
    labels = [text(nodes.names[i], 16) if nodes.size[i] == 1 else counts[i] for i in range(len(nodes))]
    hover = [
        f"<b>{counts[i]}</b><br>{wrapped(nodes.names[i])}<br>value {short_number(nodes.value[i])}"
        f"<br>visits {nodes.visits[i]}"
        for i in range(len(nodes))
    ]
    parents = ["" if parent < 0 else ids[parent] for parent in nodes.parent]
    values = [0.0 if i in inner else float(f"{w:.5g}") for i, w in enumerate(nodes.width)]
    look = {"textinfo": "label", "sort": False, "tiling": {"orientation": "v", "pad": 1}, "pathbar": {"visible": False}}
    marker = {"colors": plain(nodes.value), "colorscale": "@scale", "showscale": True}
    marker |= {"line": {"color": "@page", "width": 1}, "colorbar": colour_bar("value", len=0.9)}
    trace = {"type": "icicle", "ids": ids, "labels": labels, "parents": parents, "values": values, **look}
    trace |= {"hovertext": hover, "hoverinfo": "text", "marker": marker}
    margin = {"l": 4, "r": 4, "t": 8, "b": 8}
    return figure([trace], min(620, 110 + 44 * (int(nodes.depth.max()) + 1)), alt="Tree of variables", margin=margin)


def cut(shown: Slice) -> Figure:
    """One slice."""
    x, y, choices = _along(shown.axis, shown.axis.values), plain(shown.mean), shown.axis.kind == "choices"
    low, high = shown.mean - 2 * shown.sd, shown.mean + 2 * shown.sd
    marker = {"color": "@quiet", "size": 4, "opacity": 0.6}
    seen, value = _along(shown.axis, shown.seen), plain(shown.value)
    look: dict[str, Any] = {"marker": marker, "cliponaxis": False, "name": "evaluations nearby"}
    dots = scatter("markers", seen, value, hover="%{x}: %{y:.6g}", **look)
    hover, look = "%{x}: about %{y:.4g}", {"name": "model", "marker": {"color": "@accent", "size": 9}}
    if choices:
        error = {"type": "data", "array": plain(2 * shown.sd), "color": "@quiet", "thickness": 1.5}
        data = [dots, scatter("markers", x, y, hover=hover, **look, error_y=error)]
    else:
        upper = {"fill": "tonexty", "fillcolor": "@shade"}
        band = [scatter("lines", x, plain(edge), line={"width": 0}) for edge in (low, high)]
        line = scatter("lines", x, y, hover=hover, **look, line={"color": "@accent", "width": 2})
        data = [band[0], band[1] | upper, dots, line]
    room = 0.08 * (float(high.max() - low.min()) or 1.0)
    across = titled(text(shown.axis.name, 30), **_scale(shown.axis))
    upwards = titled("value", range=plain([low.min() - room, high.max() + room]))
    shapes = [] if choices else [upright(shown.at, "@ink")]
    alt, rest = f"Model along {shown.axis.name}", {"shapes": shapes, "showlegend": False}
    return figure(data, 230, wide=False, alt=alt, xaxis=across, yaxis=upwards, **rest)


def _scale(axis: Axis) -> dict[str, Any]:
    if axis.kind == "choices":
        return {"type": "category"}
    ends = np.array([axis.values[0], axis.values[-1]])
    if ends[0] == ends[1]:
        return {"type": axis.kind}
    return {"type": axis.kind, "range": plain(np.log10(ends) if axis.kind == "log" else ends)}


def _along(axis: Axis, values: Sequence[Any]) -> list[Any]:
    return [text(value) for value in values] if axis.kind == "choices" else plain(values)


def contour(shown: Contour, *, minimise: bool) -> Figure:
    smooth = "choices" not in (shown.first.kind, shown.second.kind)  # there is nothing between two choices
    x, y = _along(shown.first, shown.first.values), _along(shown.second, shown.second.values)
    surface: dict[str, Any] = {"type": "contour" if smooth else "heatmap", "x": x, "y": y}
    surface |= {"z": [plain(row) for row in shown.mean], "colorscale": "@scale", "reversescale": minimise}
    surface |= {"colorbar": colour_bar("value"), "hovertemplate": "%{x}, %{y}: about %{z:.4g}<extra></extra>"}
    if smooth:
        surface |= {"ncontours": 14, "line": {"width": 0.4, "color": "@page"}}
    seen = _along(shown.first, shown.seen[0]), _along(shown.second, shown.seen[1])
    at = _along(shown.first, [shown.at[0]]), _along(shown.second, [shown.at[1]])
    marker = {"color": "@page", "size": 4, "line": {"color": "@ink", "width": 0.6}}
    dots = scatter("markers", *seen, marker=marker, cliponaxis=False)
    marker = {"symbol": "star", "size": 13, "color": "@page", "line": {"color": "@ink", "width": 1.2}}
    star = scatter("markers", *at, hover="the best point", marker=marker)
    across = titled(text(shown.first.name, 30), **_scale(shown.first))
    upwards = titled(text(shown.second.name, 30), **_scale(shown.second))
    alt = f"Model over {shown.first.name} and {shown.second.name}"
    return figure([surface, dots, star], 320, wide=False, alt=alt, xaxis=across, yaxis=upwards, showlegend=False)


def parallel(shown: Parallel) -> Figure:
    places = list(range(len(shown.names)))
    data: list[dict[str, Any]] = []
    x: list[Any] = []
    y: list[Any] = []
    for row in shown.place[shown.best :]:
        x += [*places, None]
        y += [*plain(np.round(row, 3)), None]
    if x:
        data.append(scatter("lines", x, y, name="others", line={"color": "@faint", "width": 1}))
    for i in reversed(range(shown.best)):
        first = i == 0
        look: dict[str, Any] = {
            "line": {"color": "@accent", "width": 3 if first else 1.2},
            "opacity": 1.0 if first else 0.55,
        }
        look |= {"legendgroup": "best" if first else "good", "showlegend": i in (0, shown.best - 1)}
        look["name"] = "best point" if first else f"the best {shown.best}"
        mode, hover = (
            "lines+markers" if first else "lines",
            f"trial {shown.trial[i]}: {short_number(shown.value[i])}",
        )
        data.append(scatter(mode, places, plain(np.round(shown.place[i], 4)), hover=hover, **look))
    ticks = [
        f"{text(name, 12)}<br>{text(low, 8)} – {text(high, 8)}"
        for name, (low, high) in zip(shown.names, shown.ends, strict=True)
    ]
    across = {"tickvals": places, "ticktext": ticks, "range": [-0.3, len(places) - 0.7], "automargin": True}
    upwards = titled("place in its range", range=[-0.03, 1.03])
    alt = "The best points on one axis for each variable"
    return figure(data, 360, alt=alt, xaxis=across, yaxis=upwards, legend=below())
