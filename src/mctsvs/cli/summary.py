"""What is printed of a run or a study: a few lines, each with its name in front."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from mctsvs.problems import Problem
from mctsvs.study.text import printable

INDENT = 16  # of the texts
SHOWN = 12  # variables listed
FOUND = 0.5  # a larger score: the variable probably matters
Rows = list[tuple[str, str]]


def show(rows: Rows) -> None:
    """Print them under each other; names and messages may be anybody's."""
    width = shutil.get_terminal_size().columns - INDENT if sys.stdout.isatty() else 10**6
    for name, text in rows:
        lines = textwrap.wrap(printable(text), max(20, width), break_on_hyphens=False) or [""]
        print(f"{name:<{INDENT}}" + ("\n" + " " * INDENT).join(lines if len(lines) > 1 else [printable(text)]))


def optimum(problem: Problem | None) -> str:
    """Of a problem whose optimum is known, behind the best value."""
    return "" if problem is None or problem.optimum is None else f"   (optimum {problem.optimum:.6g})"


def variables(problem: Problem | None, importance: Mapping[str, float], params: Mapping[str, Any], rest: str) -> Rows:
    """The variables that were found to matter, and their values at the best point, or all of them if they are few.

    `rest` says where the others are; {} in it is their number.
    """
    found = [name for name, score in importance.items() if score > FOUND]
    truth = set() if problem is None or problem.active is None else {f"x{i}" for i in problem.active}
    marked = [f"{name}*" if name in truth else name for name in found[:SHOWN]]
    marked += [f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    marked += ["  (* truly matters)"] if truth.intersection(found) else []
    rows: Rows = [("variables found", " ".join(marked) or "none yet")] if importance else []
    if params:
        names: Sequence[str] = list(params)
        there = [name for name in found if name in params]
        shown = names if len(names) <= SHOWN else there[:SHOWN] or names[:SHOWN]
        values = "  ".join(f"{name}={as_short_text(params[name])}" for name in shown)
        more = len(names) - len(shown)
        rows.append(("best point", values + (rest.format(more) if more else "")))
    return rows


def as_short_text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
