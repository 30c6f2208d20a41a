"""Figures of the variables: which matter, their groups, the model along them, the best points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mctsvs.visualization.report.plotly import Figure, below, figure, plain, text, wrapped
from mctsvs.visualization.style import number
from mctsvs.visualization.surrogate_slices import Axis, Contour, Slice
from mctsvs.visualization.variables import Icicle, Importance, Parallel


def scores(shown: Importance) -> Figure:
    names, score = [text(name) for name in shown.names], shown.score
    colours = ["@accent" if value > 0.5 else "@faint" for value in score]
    bar = {
        "type": "bar",
        "orientation": "h",
        "y": names,
        "x": plain(score),
        "marker": {"color": colours},
        "hovertemplate": "%{y}: %{x:.3f}<extra></extra>",
    }
    half = {"type": "line", "x0": 0.5, "x1": 0.5, "yref": "paper", "y0": 0, "y1": 1}
    return figure(
        [bar],
        90 + 22 * len(names),
        wide=False,
        alt="How sure it is that each variable matters",
        xaxis={"title": {"text": "how sure it is that it matters"}, "range": [0, 1.02]},
        yaxis={"autorange": "reversed", "type": "category", "automargin": True},
        shapes=[{**half, "line": {"color": "@quiet", "width": 1, "dash": "dot"}}],
        showlegend=False,
    )


def effects(shown: Importance) -> Figure:
    names = [text(effect.name) for effect in shown.effects]
    size = np.array([effect.size for effect in shown.effects])
    low, high = (np.array([getattr(effect, end) for effect in shown.effects]) for end in ("low", "high"))
    dots = {
        "type": "scatter",
        "mode": "markers",
        "y": names,
        "x": plain(size),
        "marker": {"color": "@accent", "size": 8},
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": plain(np.maximum(high - size, 0)),
            "arrayminus": plain(np.maximum(size - low, 0)),
            "color": "@quiet",
            "thickness": 1.5,
            "width": 4,
        },
        "hovertemplate": "%{y} changes the value by %{x:.4g}<extra></extra>",
    }
    return figure(
        [dots],
        90 + 22 * len(names),
        wide=False,
        alt="How much each variable changes the value, with its uncertainty",
        xaxis={"title": {"text": "change of the value along the variable"}, "rangemode": "tozero"},
        yaxis={"autorange": "reversed", "type": "category", "automargin": True},
        showlegend=False,
    )


def tree(nodes: Icicle) -> Figure:
    ids = [f"n{i}" for i in range(len(nodes))]
    inner = set(nodes.parent)
    labels = [
        text(nodes.names[i], 16) if nodes.size[i] == 1 else f"{nodes.size[i]} variables" for i in range(len(nodes))
    ]
    hover = [
        f"<b>{nodes.size[i]} variable{'s' * bool(nodes.size[i] != 1)}</b><br>{wrapped(nodes.names[i])}"
        f"<br>value {number(nodes.value[i])}<br>visits {nodes.visits[i]}"
        for i in range(len(nodes))
    ]
    trace = {
        "type": "icicle",
        "ids": ids,
        "labels": labels,
        "parents": ["" if parent < 0 else ids[parent] for parent in nodes.parent],
        "values": [0.0 if i in inner else float(f"{w:.5g}") for i, w in enumerate(nodes.width)],
        "hovertext": hover,
        "hoverinfo": "text",
        "textinfo": "label",
        "sort": False,
        "tiling": {"orientation": "v", "pad": 1},
        "pathbar": {"visible": False},
        "marker": {
            "colors": plain(nodes.value),
            "colorscale": "@scale",
            "showscale": True,
            "line": {"color": "@page", "width": 1},
            "colorbar": {"title": {"text": "value", "side": "right"}, "thickness": 10, "outlinewidth": 0, "len": 0.9},
        },
    }
    margin = {"l": 4, "r": 4, "t": 8, "b": 8}
    return figure([trace], min(620, 110 + 44 * (int(nodes.depth.max()) + 1)), alt="Tree of variables", margin=margin)


def cut(shown: Slice) -> Figure:
    """One slice."""
    x, choices = shown.axis.values, shown.axis.kind == "choices"
    low, high = shown.mean - 2 * shown.sd, shown.mean + 2 * shown.sd
    dots = {
        "type": "scatter",
        "mode": "markers",
        "name": "evaluations nearby",
        "x": _along(shown.axis, shown.seen),
        "y": plain(shown.value),
        "marker": {"color": "@quiet", "size": 4, "opacity": 0.6},
        "cliponaxis": False,
        "hovertemplate": "%{x}: %{y:.6g}<extra></extra>",
    }
    line = {
        "type": "scatter",
        "mode": "markers" if choices else "lines",
        "name": "model",
        "x": _along(shown.axis, x),
        "y": plain(shown.mean),
        "line": {"color": "@accent", "width": 2},
        "marker": {"color": "@accent", "size": 9},
        "hovertemplate": "%{x}: about %{y:.4g}<extra></extra>",
    }
    if choices:
        line["error_y"] = {"type": "data", "array": plain(2 * shown.sd), "color": "@quiet", "thickness": 1.5}
        data = [dots, line]
    else:
        edge = {"type": "scatter", "mode": "lines", "x": plain(x), "line": {"width": 0}, "hoverinfo": "skip"}
        band = [{**edge, "y": plain(low)}, {**edge, "y": plain(high), "fill": "tonexty", "fillcolor": "@shade"}]
        data = [*band, dots, line]
    shapes = [] if choices else [_mark(shown.at)]
    room = 0.08 * (float(high.max() - low.min()) or 1.0)
    return figure(
        data,
        230,
        wide=False,
        alt=f"Model along {shown.axis.name}",
        xaxis={"title": {"text": text(shown.axis.name, 30)}, **_scale(shown.axis)},
        yaxis={"title": {"text": "value"}, "range": plain([low.min() - room, high.max() + room])},
        shapes=shapes,
        showlegend=False,
    )


def _mark(at: float) -> dict[str, Any]:
    line = {"color": "@ink", "width": 1, "dash": "dot"}
    return {"type": "line", "x0": at, "x1": at, "yref": "paper", "y0": 0, "y1": 1, "line": line}


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
    surface: dict[str, Any] = {
        "type": "contour" if smooth else "heatmap",
        "x": _along(shown.first, shown.first.values),
        "y": _along(shown.second, shown.second.values),
        "z": [plain(row) for row in shown.mean],
        "colorscale": "@scale",
        "reversescale": minimise,
        "colorbar": {"thickness": 10, "outlinewidth": 0, "title": {"text": "value", "side": "right"}},
        "hovertemplate": "%{x}, %{y}: about %{z:.4g}<extra></extra>",
    }
    if smooth:
        surface |= {"ncontours": 14, "line": {"width": 0.4, "color": "@page"}}
    dots = {
        "type": "scatter",
        "mode": "markers",
        "x": _along(shown.first, shown.seen[0]),
        "y": _along(shown.second, shown.seen[1]),
        "marker": {"color": "@page", "size": 4, "line": {"color": "@ink", "width": 0.6}},
        "cliponaxis": False,
        "hoverinfo": "skip",
    }
    star = {
        "type": "scatter",
        "mode": "markers",
        "x": _along(shown.first, [shown.at[0]]),
        "y": _along(shown.second, [shown.at[1]]),
        "marker": {"symbol": "star", "size": 13, "color": "@page", "line": {"color": "@ink", "width": 1.2}},
        "hovertemplate": "the best point<extra></extra>",
    }
    return figure(
        [surface, dots, star],
        320,
        wide=False,
        alt=f"Model over {shown.first.name} and {shown.second.name}",
        xaxis={"title": {"text": text(shown.first.name, 30)}, **_scale(shown.first)},
        yaxis={"title": {"text": text(shown.second.name, 30)}, **_scale(shown.second)},
        showlegend=False,
    )


def parallel(shown: Parallel) -> Figure:
    names = list(range(len(shown.names)))
    data: list[dict[str, Any]] = []
    rest: dict[str, list[Any]] = {"x": [], "y": []}
    for row in shown.place[shown.best :]:
        rest["x"] += [*names, None]
        rest["y"] += [*plain(np.round(row, 3)), None]
    if rest["x"]:
        thin = {"color": "@faint", "width": 1}
        data.append({"type": "scatter", "mode": "lines", "name": "others", **rest, "line": thin, "hoverinfo": "skip"})
    for i in reversed(range(shown.best)):
        first = i == 0
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers" if first else "lines",
                "name": "best point" if first else f"the best {shown.best}",
                "legendgroup": "best" if first else "good",
                "showlegend": i in (0, shown.best - 1),
                "x": names,
                "y": plain(np.round(shown.place[i], 4)),
                "line": {"color": "@accent", "width": 3 if first else 1.2},
                "opacity": 1.0 if first else 0.55,
                "hovertemplate": f"evaluation {shown.evaluation[i]}: {number(shown.value[i])}<extra></extra>",
            }
        )
    ticks = [
        f"{text(name, 12)}<br>{text(low, 8)} – {text(high, 8)}"
        for name, (low, high) in zip(shown.names, shown.ends, strict=True)
    ]
    return figure(
        data,
        360,
        alt="The best points on one axis for each variable",
        xaxis={"tickvals": names, "ticktext": ticks, "range": [-0.3, len(names) - 0.7], "automargin": True},
        yaxis={"title": {"text": "place in its range"}, "range": [-0.03, 1.03]},
        legend=below(),
    )
