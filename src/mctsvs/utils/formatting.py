"""Names, numbers and durations as people read them, and text made fit for one line of a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

LONGEST = 500  # characters of a message


def listed(names: Sequence[str], most: int = 6) -> str:
    """x17, x203 and 4 others."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {plural(len(names) - most, 'other')}"
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def plural(count: int, word: str) -> str:
    """1 variable, 1,200 variables."""
    return f"{count:,} {word}{'s' * (count != 1)}"


def short_number(value: float) -> str:
    """A value for people: four digits, and no 1e+04 for ten thousand."""
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e7 else f"{value:.4g}"


def short_value(value: Any) -> str:
    """The value of a variable: a float with six digits, anything else as Python writes it."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def percent(share: float) -> str:
    """Two digits: 43%, 8.3%, 0.54%."""
    if 0.0 < share < 1e-4:
        return "<0.01%"
    return f"{100 * share:.3g}%" if share > 0.995 else f"{100 * share:.2g}%"


def clock(seconds: float | None) -> str:
    """Whole seconds, as a display counts them: 34 s, 5 min 20 s, 3 h 12 min."""
    if seconds is None:
        return "?"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def duration(seconds: float) -> str:
    """The same for a time that may be very short: 25 µs, 120 ms, 1.2 s."""
    if seconds < 1e-3:
        return f"{1e6 * seconds:.0f} µs"
    if seconds < 1:
        return f"{1e3 * seconds:.3g} ms"
    return f"{seconds:.2g} s" if seconds < 10 else clock(seconds)


def shortened(name: str, most: int = 22) -> str:
    """A long name without its middle."""
    return name if len(name) <= most else f"{name[: most - 9]}…{name[-8:]}"


def printable(text: str) -> str:
    """The text with control characters, line breaks and the like written as escapes: no terminal obeys it."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def tidy(text: str) -> str:
    """The text on one line, printable, of a bearable length."""
    text = printable(" ".join(text.split()))
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def as_text(value: Any) -> str:
    """str(value) as characters that can be stored, or, where it has no text of its own, its type."""
    try:
        return str(value).encode("utf-8", "replace").decode()
    except Exception:
        return f"a {type(value).__name__} without a text"
