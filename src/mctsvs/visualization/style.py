"""Colours and words that all pictures share: one accent, and greys that differ in lightness, fit for print in grey."""

from __future__ import annotations

ACCENT = "#0b7285"
INK = "#22272e"
QUIET = "#8a929c"
FAINT = "#d9dde2"
SCALE = ["#f1f3f4", "#c4dde2", "#86bcc7", "#4596a6", "#0b7285", "#083f4a"]  # from nothing to much
DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"]  # of compared runs: colour alone must not tell
COMPARED = ["#0b7285", "#22272e", "#c2702a", "#7a5195", "#5a8f3c", "#8a929c"]


def number(value: float) -> str:
    """A value for people: four digits, and no 1e+04 for ten thousand."""
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e7 else f"{value:.4g}"


def duration(seconds: float) -> str:
    """25 µs, 120 ms, 1.2 s, 34 s, 5 min 20 s, 3 h 12 min."""
    if seconds < 1e-3:
        return f"{1e6 * seconds:.0f} µs"
    if seconds < 1:
        return f"{1e3 * seconds:.3g} ms"
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def shortened(name: str, most: int = 22) -> str:
    return name if len(name) <= most else f"{name[: most - 9]}…{name[-8:]}"
