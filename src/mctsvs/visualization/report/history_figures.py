"""Figures of what happened when."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from mctsvs.utils.validation import Array, Indices
from mctsvs.visualization.curves import Constraints, Convergence, Selection, Story, Timeline
from mctsvs.visualization.report.plotly import MOST_DOTS, Figure, below, figure, plain, text, thinned, wrapped
from mctsvs.visualization.style import DASHES, number

POWERS = 1e3  # between the smallest and the largest value: more are drawn on a logarithmic axis
OUTCOMES = {  # symbol, colour, size, words
    "better": ("diamond", "@accent", 8, "a new best value"),
    "changed": ("circle", "@ink", 6, "a test whose value changed: something in the group matters"),
    "same": ("circle-open", "@quiet", 5, "a test that changed nothing: the group does not matter"),
    "worse": ("circle", "@faint", 4, "no improvement"),
    "failed": ("x", "@quiet", 6, "failed"),
}


def value_axis(curves: Sequence[Convergence], title: str) -> dict[str, Any]:
    """Of values worth looking at: a few disastrous ones must not flatten the rest. Logarithmic over powers of ten."""
    axis: dict[str, Any] = {"title": {"text": title}}
    lows, highs = [], []
    for curve in curves:
        seen, best = curve.value[np.isfinite(curve.value)], curve.best[np.isfinite(curve.best)]
        if len(best):
            low, high = np.quantile(seen, [0.05, 0.95])
            lows.append(min(float(low), float(best[-1])))
            highs.append(max(float(high), float(best[-1])))
    if not lows or min(lows) == max(highs):
        return axis
    low, high = min(lows), max(highs)
    if low > 0 and high / low > POWERS:
        low, high = np.log10(low), np.log10(high)
        axis["type"] = "log"
    room = 0.06 * (high - low)
    return {**axis, "range": plain([low - room, high + room])}


def convergence(curve: Convergence, story: Story) -> Figure:
    rows = thinned(len(curve.value), keep=curve.improved)
    ok = rows[curve.feasible[rows]]
    broken = rows[~curve.feasible[rows] & np.isfinite(curve.value[rows])]
    words = [f"{escape(story.purpose[i])}, {story.moved[i]} variables moved" for i in ok]
    data = [_dots(curve.evaluation[ok], curve.value[ok], "evaluations", words, color="@quiet", size=4, opacity=0.55)]
    if len(broken):
        x, y = curve.evaluation[broken], curve.value[broken]
        data.append(_dots(x, y, "breaks a constraint", [], color="@quiet", size=5, symbol="x-thin-open"))
    data += [_steps(curve, "best so far", "@accent"), _changes(curve)]
    return figure(
        data,
        360,
        alt="Value against evaluation, with the best so far as a line",
        xaxis={"title": {"text": "evaluation"}, "range": [0, len(curve.value) + 1]},
        yaxis=value_axis([curve], "value"),
        legend=below(),
    )


def _dots(x: Array | Indices, y: Array, name: str, words: list[str], **marker: Any) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": plain(x),
        "y": plain(y),
        "text": words,
        "hovertemplate": "evaluation %{x}: %{y:.6g}<br>%{text}<extra></extra>",
        "marker": marker,
    }


def _steps(curve: Convergence, name: str, color: str, dash: str = "solid") -> dict[str, Any]:
    rows = np.append(curve.improved[-MOST_DOTS:], len(curve.best) - 1) if len(curve.improved) else np.arange(0)
    line = {"color": color, "width": 2, "shape": "hv", "dash": dash}
    x, y = plain(curve.evaluation[rows]), plain(curve.best[rows])
    hover = f"{escape(name)}<br>after %{{x}}: %{{y:.6g}}<extra></extra>"
    return {
        "type": "scatter",
        "mode": "lines",
        "name": text(name),
        "x": x,
        "y": y,
        "line": line,
        "hovertemplate": hover,
    }


def _changes(curve: Convergence) -> dict[str, Any]:
    rows = curve.improved[-MOST_DOTS:]
    dots = _dots(curve.evaluation[rows], curve.best[rows], "new best", [], color="@accent", size=7)
    return {**dots, "hovertemplate": "new best at evaluation %{x}: %{y:.6g}<extra></extra>"}


def compared(curves: Sequence[Convergence]) -> Figure:
    """The best values so far of several runs; lines differ in dash and in lightness."""
    colours = ["@accent", "@ink", "@second", "@third", "@quiet"]
    data = [
        _steps(curve, curve.label, colours[i % len(colours)], DASHES[i % len(DASHES)]) for i, curve in enumerate(curves)
    ]
    longest = max(len(curve.value) for curve in curves)
    return figure(
        data,
        380,
        alt="Best value so far of each study against evaluation",
        xaxis={"title": {"text": "evaluation"}, "range": [0, longest + 1]},
        yaxis=value_axis(curves, "best value so far"),
        legend=below(),
    )


def story(shown: Story, values: Array) -> Figure:
    """A lane for each purpose, a mark for each evaluation, phases as bands behind them."""
    lanes = list(dict.fromkeys(shown.purpose))
    kept = np.array([i for i, word in enumerate(shown.outcome) if word in ("better", "changed")], dtype=np.intp)
    rows = thinned(len(shown.purpose), 2 * MOST_DOTS, keep=kept)
    data = []
    for outcome, (symbol, color, size, words) in OUTCOMES.items():
        own = [i for i in rows.tolist() if shown.outcome[i] == outcome]
        if own:
            said = [f"{shown.moved[i]} variables moved, value {number(values[i])}" for i in own]
            data.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": words.partition(":")[0],
                    "x": [i + 1 for i in own],
                    "y": [wrapped(shown.purpose[i], 16) for i in own],
                    "text": said,
                    "hovertemplate": f"evaluation %{{x}}: {words}<br>%{{text}}<extra></extra>",
                    "marker": {"symbol": symbol, "color": color, "size": size},
                }
            )
    return figure(
        data,
        150 + 34 * len(lanes),
        alt="What each evaluation was for and what came of it",
        xaxis={"title": {"text": "evaluation"}, "range": [0, len(shown.purpose) + 1], "showgrid": False},
        yaxis={
            "type": "category",
            "categoryorder": "array",
            "categoryarray": [wrapped(lane, 16) for lane in lanes],
            "autorange": "reversed",
            "automargin": True,
            "showgrid": False,
        },
        legend=below(),
        shapes=_bands(shown),
    )


def _bands(shown: Story) -> list[dict[str, Any]]:
    place = {"type": "rect", "yref": "paper", "y0": 0, "y1": 1, "layer": "below", "line": {"width": 0}}
    return [
        {**place, "x0": band.first - 0.5, "x1": band.last + 0.5, "fillcolor": "@band2" if band.tests else "@band"}
        for band in shown.bands
    ]


def selection(shown: Selection) -> Figure:
    middle = (shown.edges[:-1] + shown.edges[1:] - 1) / 2.0
    trace = {
        "type": "heatmap",
        "x": plain(middle),
        "y": [text(name) for name in shown.names],
        "z": [plain(np.round(row, 3)) for row in shown.share],
        "zmin": 0,
        "zmax": 1,
        "xgap": 0.5,
        "ygap": 1,
        "colorscale": "@scale",
        "colorbar": {
            "title": {"text": "share moved", "side": "right"},
            "thickness": 10,
            "outlinewidth": 0,
            "tickformat": ".0%",
        },
        "hovertemplate": "%{y} moved in %{z:.0%} of the evaluations around %{x:.0f}<extra></extra>",
    }
    return figure(
        [trace],
        100 + 15 * len(shown.names),
        alt="Which variables moved when",
        xaxis={"title": {"text": "evaluation"}, "showgrid": False},
        yaxis={"type": "category", "autorange": "reversed", "automargin": True, "tickfont": {"size": 10}, "nticks": 60},
    )


def constraints(shown: Constraints) -> Figure:
    rows = thinned(len(shown.evaluation))
    symbols, colours = ["circle", "diamond", "square", "cross"], ["@accent", "@ink", "@second", "@third"]
    data = []
    for i, name in enumerate(shown.names):
        marker = {"symbol": symbols[i % 4], "color": colours[i % 4], "size": 5, "opacity": 0.7}
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": text(name),
                "x": plain(shown.evaluation[rows]),
                "y": plain(shown.value[rows, i]),
                "marker": marker,
                "hovertemplate": f"{escape(name)} at evaluation %{{x}}: %{{y:.4g}}<extra></extra>",
            }
        )
    zero = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": 0, "y1": 0}
    return figure(
        data,
        320,
        alt="Measured constraints against evaluation",
        xaxis={"title": {"text": "evaluation"}},
        yaxis={"title": {"text": "constraint, kept at 0 or below"}},
        shapes=[{**zero, "line": {"color": "@ink", "width": 1}}],
        legend=below(),
        showlegend=True,
    )


def time_used(shown: Timeline) -> Figure:
    rows = thinned(len(shown.evaluation), 400)
    sums = {
        "evaluating": (np.nancumsum(shown.evaluating), "@ink", "solid"),
        "thinking": (np.cumsum(shown.thinking), "@accent", "dash"),
    }
    data = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": name,
            "x": plain(shown.evaluation[rows]),
            "y": plain(total[rows]),
            "line": {"color": color, "dash": dash, "width": 2},
            "hovertemplate": f"%{{y:.3g}} s {name} up to evaluation %{{x}}<extra></extra>",
        }
        for name, (total, color, dash) in sums.items()
    ]
    return figure(
        data,
        280,
        wide=len(shown.workers) < 2,
        alt="Seconds spent evaluating and thinking",
        xaxis={"title": {"text": "evaluation"}},
        yaxis={"title": {"text": "seconds in all"}, "rangemode": "tozero"},
        legend=below(),
    )


def workers(shown: Timeline) -> Figure:
    """A lane for each worker, a line for each evaluation."""
    rows = thinned(len(shown.evaluation), 600)
    names = {worker: f"worker {i}" for i, worker in enumerate(shown.workers, 1)}
    x: list[Any] = []
    y: list[Any] = []
    for i in rows.tolist():
        seconds = shown.evaluating[i]
        begun = shown.told[i] - seconds if np.isfinite(seconds) else shown.asked[i]
        x += [float(f"{begun:.6g}"), float(f"{shown.told[i]:.6g}"), None]
        y += [names[shown.worker[i]], names[shown.worker[i]], None]
    lane = {"type": "scatter", "mode": "lines+markers", "x": x, "y": y, "line": {"color": "@accent", "width": 8}}
    return figure(
        [
            {
                **lane,
                "marker": {"color": "@accent", "size": 5, "symbol": "line-ns-open"},
                "hovertemplate": "%{y} at %{x:.3g} s<extra></extra>",
            }
        ],
        max(280, 110 + 24 * len(names)),
        wide=False,
        alt="When each worker was evaluating",
        xaxis={"title": {"text": "seconds since the start"}},
        yaxis={"type": "category", "automargin": True},
        showlegend=False,
    )
