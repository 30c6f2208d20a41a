"""A run as one self-contained page that opens without a network: `mctsvs report run.db -o report.html`.

>>> study.report("report.html")
>>> mctsvs.visualization.report([one, other], "both.html")

A report of one run, or of several that are compared.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from mctsvs.utils.validation import InputError, listed
from mctsvs.visualization import curves
from mctsvs.visualization.report import history_figures
from mctsvs.visualization.report.page import figures_of, navigation, page, section_html
from mctsvs.visualization.report.sections import Section, paragraph, sections, table
from mctsvs.visualization.run_data import MATTERS, RunData, runs_of
from mctsvs.visualization.style import duration, number

__all__ = ["html", "write"]


def write(source: Any, path: str | os.PathLike[str]) -> Path:
    """Write the report of a Result, a Study, an Optimizer, a list or a dict of them to this file."""
    text = html(source)
    path = Path(path)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error.strerror or error}") from None
    return path


def html(source: Any) -> str:
    """The page itself."""
    runs = runs_of(source)
    return _alone(runs[0]) if len(runs) == 1 else _together(runs)


def subtitle(run: RunData) -> str:
    method = f"{escape(str(run.about['method']))}, " if "method" in run.about else ""
    return f"{method}{run.direction} a function of {len(run.space):,} variables"


def _alone(run: RunData) -> str:
    parts = sections(run)
    drawn = {name: one for part in parts for name, one in figures_of("", part).items()}
    body = navigation("", parts) + "".join(section_html("", part) for part in parts)
    return page(run.label, subtitle(run), body, drawn)


def _together(runs: Sequence[RunData]) -> str:
    drawn: dict[str, Any] = {}
    compared = compare(runs)
    drawn.update(figures_of("all-", compared))
    body = [section_html("all-", compared)]
    for i, run in enumerate(runs):
        parts, prefix = sections(run), f"s{i}-"
        for part in parts:
            drawn.update(figures_of(prefix, part))
        inside = navigation(prefix, parts) + "".join(section_html(prefix, part) for part in parts)
        body.append(f'<details class="study"><summary>{escape(run.label)}</summary>{inside}</details>')
    said = f"{len(runs)} runs compared: {escape(listed([run.label for run in runs]))}"
    return page("Comparison", said, "".join(body), drawn)


def compare(runs: Sequence[RunData]) -> Section:
    """The runs beside each other."""
    shown = [curves.convergence(run) for run in runs]
    head = ("run", "method", "best value", "at evaluation", "evaluations", "failed", "time", "variables that matter")
    rows = [_row(run) for run in runs]
    said = ""
    directions = {run.direction for run in runs}
    finished = [run for run in runs if run.best is not None]
    if len(directions) == 1 and len(finished) > 1:
        first = max(finished, key=lambda run: run.sign * float(run.values[run.best or 0]))
        said = f"<b>{escape(first.label)}</b> has the best value, {number(float(first.values[first.best or 0]))}."
    text = paragraph(said, "Lines are the best value so far.") + table(rows, head)
    return Section("compared", "Compared", text, [history_figures.compared(shown)])


def _row(run: RunData) -> tuple[Any, ...]:
    best = "none" if run.best is None else number(float(run.values[run.best]))
    at = "" if run.best is None else f"{run.best + 1:,}"
    shown = curves.timeline(run)
    spent = "" if shown is None else duration(float(shown.told.max()))
    matter = [name for name, score in run.importance.items() if score > MATTERS]
    failed = sum(trial.failed for trial in run.told)
    return run.label, run.about.get("method", ""), best, at, len(run.told), failed, spent, listed(matter, 5)
