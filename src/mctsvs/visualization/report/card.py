"""A run in a notebook: a few lines, a small curve and bars; no script, and colours that fit light and dark."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from mctsvs.utils.validation import listed
from mctsvs.visualization.curves import convergence
from mctsvs.visualization.run_data import MATTERS, RunData
from mctsvs.visualization.style import ACCENT, number, shortened

WIDTH, HEIGHT = 320, 90
BARS = 8


def card(source: Any, title: str) -> str:
    """Of a Result, a Study or an Optimizer; what takes long to compute is left out."""
    if not source.trials:
        return f"<div><b>{escape(title)}</b>: no evaluations yet</div>"
    run = RunData.of(source)
    best = "no evaluation has succeeded yet"
    if run.best is not None:
        best = f"<b style='color:{ACCENT}'>{number(run.values[run.best])}</b> at evaluation {run.best + 1:,}"
    failed = sum(trial.failed for trial in run.told)
    done = f"{len(run.told):,} evaluations of {len(run.space):,} variables" + (f", {failed:,} failed" if failed else "")
    head = f"<div><b>{escape(title)}</b> <span style='opacity:.7'>{done}, {escape(run.direction)}</span></div>"
    return (
        f"<div style='font-family:system-ui,sans-serif;line-height:1.5'>{head}<div>{best}{_matter(run)}</div>"
        f"<div style='display:flex;gap:32px;flex-wrap:wrap;margin-top:8px'>{_curve(run)}{_bars(run)}</div></div>"
    )


def _matter(run: RunData) -> str:
    found = [shortened(name) for name, score in run.importance.items() if score > MATTERS]
    return f"; {escape(listed(found))} matter{'s' * (len(found) == 1)}" if found else ""


def _curve(run: RunData) -> str:
    """The best so far as a line of steps."""
    curve = convergence(run)
    rows = curve.improved
    if not len(rows):
        return ""
    y = curve.best[np.append(rows, len(curve.best) - 1)]
    x = np.append(curve.evaluation[rows], len(curve.best))
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
    rows = "".join(
        f"<tr><td style='padding:0 8px 0 0;text-align:left'>{escape(shortened(name))}</td>"
        f"<td><div style='background:{ACCENT};height:9px;width:{120 * score:.0f}px'></div></td></tr>"
        for name, score in list(run.importance.items())[:BARS]
        if score > 0.01
    )
    return f"<table style='font-size:12px;border:0'>{rows}</table>" if rows else ""
