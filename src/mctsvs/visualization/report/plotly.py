"""Plotly figures as plain dicts, so that no plotting library is needed to make them; what all of them share.

Colours are names ("@accent", "@scale") that the page replaces by those of its light or dark theme. Long runs are
thinned: what is drawn grows with the picture, not with the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from mctsvs.utils.validation import Indices
from mctsvs.visualization.style import shortened

Figure = dict[str, Any]  # data, layout, and for the page: height, wide
MOST_DOTS = 1500


def figure(data: Sequence[Any], height: int, *, wide: bool = True, alt: str = "", **layout: Any) -> Figure:
    return {"data": list(data), "layout": layout, "height": height, "wide": wide, "alt": alt}


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
