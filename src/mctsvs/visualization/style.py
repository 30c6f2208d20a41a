"""What all pictures share: colours that differ in lightness, fit for print in grey, and the parts of Plotly figures.

A Plotly figure is a plain dict, so that no plotting library is needed to make one. Its colours are names ("@accent",
"@scale") that the page replaces by those of its light or dark theme. Long runs are thinned: what is drawn grows with
the picture, not with the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from mctsvs.utils.formatting import shortened
from mctsvs.utils.validation import Indices

ACCENT = "#0b7285"
INK = "#22272e"
QUIET = "#8a929c"
FAINT = "#d9dde2"
SCALE = ["#f1f3f4", "#c4dde2", "#86bcc7", "#4596a6", "#0b7285", "#083f4a"]  # from nothing to much
DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"]  # of compared runs: colour alone must not tell
COMPARED = ["#0b7285", "#22272e", "#c2702a", "#7a5195", "#5a8f3c", "#8a929c"]

Figure = dict[str, Any]  # data, layout, and for the page: height, wide
MOST_DOTS = 1500


def figure(data: Sequence[Any], height: int, *, wide: bool = True, alt: str = "", **layout: Any) -> Figure:
    return {"data": list(data), "layout": layout, "height": height, "wide": wide, "alt": alt}


def scatter(mode: str, x: list[Any], y: list[Any], *, hover: str = "", **more: Any) -> dict[str, Any]:
    """A trace of markers or lines; `hover` is what is said of the point under the mouse."""
    said = {"hovertemplate": f"{hover}<extra></extra>"} if hover else {"hoverinfo": "skip"}
    return {"type": "scatter", "mode": mode, "x": x, "y": y, **said, **more}


def titled(title: str, **more: Any) -> dict[str, Any]:
    """An axis of that title."""
    return {"title": {"text": title}, **more}


def names_axis(**more: Any) -> dict[str, Any]:
    """A vertical axis of names, the first at the top."""
    return {"type": "category", "autorange": "reversed", "automargin": True, **more}


def colour_bar(title: str, **more: Any) -> dict[str, Any]:
    return {"title": {"text": title, "side": "right"}, "thickness": 10, "outlinewidth": 0, **more}


def upright(at: float, color: str) -> dict[str, Any]:
    """A dotted vertical line over the whole height."""
    line = {"color": color, "width": 1, "dash": "dot"}
    return {"type": "line", "x0": at, "x1": at, "yref": "paper", "y0": 0, "y1": 1, "line": line}


def thinned(n: int, most: int = MOST_DOTS, keep: Indices | None = None) -> Indices:
    """Rows of a long series: spread evenly, those to keep among them."""
    if n <= most:
        return np.arange(n)
    spread = np.linspace(0, n - 1, most).round().astype(np.intp)
    return np.unique(np.concatenate([spread, [] if keep is None else keep[-most:]]).astype(np.intp))


def plain(values: Any) -> list[Any]:
    """Numbers with six digits, and null for what is none: short to store, and JSON has no NaN."""
    return [None if not np.isfinite(v) else float(f"{v:.6g}") for v in np.asarray(values, dtype=np.float64).tolist()]


def text(name: str, most: int = 22) -> str:
    """A name on an axis: no part of it is taken for markup."""
    return escape(shortened(name, most), quote=False)


def below() -> dict[str, Any]:
    """A legend in one row above the picture, below the sentences."""
    return {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"}


def wrapped(words: str, width: int = 60) -> str:
    """On several lines."""
    lines, line = [], ""
    for word in escape(words, quote=False).split(" "):
        if line and len(line) + len(word) > width:
            lines.append(line)
            line = ""
        line = f"{line} {word}".strip()
    return "<br>".join([*lines, line])
