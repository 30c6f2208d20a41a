"""Text from functions, files and libraries, made fit for one line of a terminal."""

from __future__ import annotations

from typing import Any

LONGEST = 500  # characters of a message


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
