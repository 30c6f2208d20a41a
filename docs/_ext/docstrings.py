"""Docstrings as this project writes them, for Sphinx: plain text in which columns are tables of names.

space       a list of pairs, or a dict         becomes a definition list
`Optimizer`                                     code
an indented block, or one that begins with >>>  stays as it is
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

COLUMNS = re.compile(r"([\w*][\w*, ]*?) {2,}(\S.*)")


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", rewrite)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def rewrite(app: Any, what: str, name: str, object_: Any, options: Any, lines: list[str]) -> None:
    lines[:] = [line for paragraph in paragraphs(lines) for line in (*restructured(paragraph), "")]


def paragraphs(lines: list[str]) -> Iterator[list[str]]:
    for empty, group in groupby(lines, key=lambda line: not line.strip()):
        if not empty:
            yield list(group)


def restructured(paragraph: list[str]) -> list[str]:
    """One paragraph in reStructuredText."""
    if paragraph[0].startswith(">>>"):
        return paragraph
    if paragraph[0].startswith(" "):
        return ["::", "", *(f"    {line}" for line in paragraph)]
    rows: list[list[str]] = []
    for line in paragraph:
        found = COLUMNS.fullmatch(line)
        if found and (rows or line is paragraph[0]):
            rows.append([found[1], found[2]])
        elif rows and line.startswith(" "):
            rows[-1][1] += " " + line.strip()
        elif rows:  # a sentence below the table
            return [*table(rows), "", *(marked(rest) for rest in paragraph[paragraph.index(line) :])]
    return table(rows) if rows else [marked(line) for line in paragraph]


def table(rows: list[list[str]]) -> list[str]:
    return [line for name, text in rows for line in (f"``{name}``", f"    {marked(text)}")]


def marked(text: str) -> str:
    """Single back quotes are code; a star or an underscore is itself."""
    text = re.sub(r"(?<!`)`([^`]+)`(?!`)", "\0\\1\0", text)
    text = re.sub(r"([*|]|(?<=\w)_(?=\W|$))", r"\\\1", text)
    return re.sub("\0(.*?)\0", lambda code: "``" + code[1].replace("\\", "") + "``", text)
