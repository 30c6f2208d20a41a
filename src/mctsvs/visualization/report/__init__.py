"""A run as one self-contained page that opens without a network, and as a card in a notebook.

>>> study.report("report.html")
>>> mctsvs.visualization.report.write([one, other], "both.html")
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from mctsvs.utils.formatting import duration, listed, plural, short_number, shortened
from mctsvs.utils.written import output_path, written
from mctsvs.visualization import curves, variables
from mctsvs.visualization.report import figures
from mctsvs.visualization.report.page import figures_of, navigation, page, section_html
from mctsvs.visualization.report.sections import Section, paragraph, sections, table
from mctsvs.visualization.run_data import RunData, runs_of
from mctsvs.visualization.style import ACCENT

__all__ = ["card", "html", "write"]

WIDTH, HEIGHT = 320, 90
BARS = 8


def write(source: Any, path: str | os.PathLike[str]) -> Path:
    """Write the report of a run, or of several that are compared, to a file.

    Args:
        source: A Result, a Study, an Optimizer, a list of them, or a dict of label -> one of them.
        path: The file; it is replaced if it is there.

    Returns:
        The path of the file.

    Raises:
        InputError: There is nothing to show in `source`, or the file cannot be written.

    Example:
        >>> write({"one seed": result, "another": other}, "both.html")
    """
    path = output_path(path)
    with written(path):
        path.write_text(html(source), encoding="utf-8")
    return path


def html(source: Any) -> str:
    """The report as text: one HTML page that fetches nothing.

    Args:
        source: What `write` takes.

    Returns:
        The whole page.

    Raises:
        InputError: There is nothing to show in `source`.
    """
    runs = runs_of(source)
    return _alone(runs[0]) if len(runs) == 1 else _together(runs)


def subtitle(run: RunData) -> str:
    """What the run is, below the title of its page."""
    method = f"{escape(str(run.about['method']))}, " if "method" in run.about else ""
    what = escape(run.problem) if run.problem else "a function"
    return f"{method}{run.direction} {what} of {plural(len(run.space), 'variable')}"


def _alone(run: RunData) -> str:
    parts = sections(run)
    drawn = {name: one for part in parts for name, one in figures_of("", part).items()}
    body = navigation("", parts) + "".join(section_html("", part) for part in parts)
    return page(run.problem or run.label, subtitle(run), body, drawn)


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
    head = ("run", "method", "best value", "trial", "evaluations", "failed", "time", "active variables")
    rows = [_row(run) for run in runs]
    said = ""
    directions = {run.direction for run in runs}
    finished = [run for run in runs if run.best is not None]
    if len(directions) == 1 and len(finished) > 1:
        first = max(finished, key=lambda run: (run.feasible[run.best], run.sign * float(run.values[run.best or 0])))
        said = f"<b>{escape(first.label)}</b> has the best value, {short_number(float(first.values[first.best or 0]))}."
    text = paragraph(said, "Lines are the best value so far.") + table(rows, head)
    return Section("compared", "Compared", text, [figures.compared(shown)])


def _row(run: RunData) -> tuple[Any, ...]:
    best = "none" if run.best is None else short_number(float(run.values[run.best]))
    at = "" if run.best is None else f"{run.numbers[run.best]}"
    shown = curves.timeline(run)
    spent = "" if shown is None else duration(float(shown.told.max()))
    acting = listed(run.variables.named, 5) or run.variables.summary
    return run.label, run.about.get("method", ""), best, at, len(run.counted), run.failed, spent, acting


def card(source: Any, title: str) -> str:
    """A run in a notebook: a few lines, a small curve and bars, without a script, in colours that fit light and dark.

    What takes long to compute is left out.

    Args:
        source: A Result, a Study or an Optimizer.
        title: The first word of the card.

    Returns:
        A piece of HTML.
    """
    if not source.trials:
        return f"<div><b>{escape(title)}</b>: no evaluations yet</div>"
    run = RunData.of(source)
    best = "no evaluation has succeeded yet"
    if run.best is not None:
        best = f"<b style='color:{ACCENT}'>{short_number(run.values[run.best])}</b>, trial {run.numbers[run.best]}"
    if run.recommendation is not None:
        number = run.recommendation.trial.number
        best += f", a lucky one; expected at the point of trial {number}: {escape(str(run.recommendation))}"
    acting = f"; {escape(run.variables.summary)}" if run.variables.active else ""
    done = f"{len(run.counted):,} evaluations of {len(run.space):,} variables"
    done += f", {run.failed:,} failed" if run.failed else ""
    head = f"<div><b>{escape(title)}</b> <span style='opacity:.7'>{done}, {escape(run.direction)}</span></div>"
    return (
        f"<div style='font-family:system-ui,sans-serif;line-height:1.5'>{head}<div>{best}{acting}</div>"
        f"<div style='display:flex;gap:32px;flex-wrap:wrap;margin-top:8px'>{_curve(run)}{_bars(run)}</div></div>"
    )


def _curve(run: RunData) -> str:
    """The best so far as a line of steps."""
    curve = curves.convergence(run)
    rows = curve.improved
    if not len(rows):
        return ""
    y = curve.best[np.append(rows, len(curve.best) - 1)]
    x = np.append(rows + 1, len(curve.best))
    low, high = float(y.min()), float(np.quantile(y, 0.9) if run.sign < 0 else y.max())
    low = float(np.quantile(y, 0.1)) if run.sign > 0 else low
    across = 4 + (WIDTH - 8) * x / max(len(curve.best), 1)
    down = 4 + (HEIGHT - 8) * (1 - np.clip((y - low) / ((high - low) or 1.0), 0, 1))
    path = f"M{across[0]:.1f},{down[0]:.1f}" + "".join(
        f"H{a:.1f}V{d:.1f}" for a, d in zip(across[1:], down[1:], strict=True)
    )
    return (
        f"<svg width='{WIDTH}' height='{HEIGHT}' role='img' aria-label='best value so far'>"
        f"<path d='{path}' fill='none' stroke='{ACCENT}' stroke-width='2'/></svg>"
    )


def _bars(run: RunData) -> str:
    shown = variables.active(run, BARS)
    longest = float(shown.share.max(initial=1e-300))
    rows = "".join(
        f"<tr title='{escape(str(row))}'>"
        f"<td style='padding:0 8px 0 0;text-align:left'>{escape(shortened(row.name))}</td>"
        f"<td><div style='background:{ACCENT};height:9px;width:{120 * row.share / longest:.0f}px'></div></td></tr>"
        for row in shown.rows
    )
    return f"<table style='font-size:12px;border:0'>{rows}</table>" if rows else ""
