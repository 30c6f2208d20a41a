"""Where a run is shown while it goes on: on a terminal of any width, in a notebook, as lines of a log, or nowhere."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from mctsvs.optimizer.active_variables import VariableStatus
from mctsvs.utils.formatting import clock, percent, printable
from mctsvs.utils.output import Output
from mctsvs.visualization.progress import ProgressView, RunStats

FULL, PARTS = "█", " ▏▎▍▌▋▊▉"
BARS = 8  # variables with a bar
ROWS = 6  # of the curve, at most
DOTS = ((0x40, 0x04, 0x02, 0x01), (0x80, 0x20, 0x10, 0x08))  # of a braille character: by column, from below


class Screen:
    """Drawn with the width that the terminal has at that moment."""

    def __init__(self, account: RunStats) -> None:
        self.account = account

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        account, width = self.account, options.max_width
        body = _body(account, width)
        yield Group(_head(account, width), *([Text()] if body else []), *body)


def _head(account: RunStats, width: int) -> Group:
    title = Text(printable(account.label), style="bold", no_wrap=True, overflow="ellipsis")
    title.append(f"  {account.direction}", style="dim")
    counts = f"{account.evaluated}/{account.budget} evaluations"
    counts += f", {account.failed} failed" if account.failed else ""
    left = "done" if account.evaluated >= account.budget else f"{clock(account.seconds_left)} left"
    times = f"{clock(account.seconds)}, {left}"
    row = Table.grid(padding=(0, 2))
    room = max(10, width - len(counts) - len(times) - 4)
    bar = ProgressBar(total=account.budget, completed=account.evaluated, width=min(50, room))
    row.add_row(bar, Text(counts), Text(times, style="dim"))
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim")
    facts.add_column(overflow="ellipsis", no_wrap=True)
    facts.add_row("best value", _best(account))
    if account.phase:
        facts.add_row("phase", Text(printable(account.phase)))
    each = f", {1e3 * account.thinking / account.made:.3g} ms an evaluation" if account.made else ""
    facts.add_row("thinking", Text(f"{100 * account.share_thinking:.0f} % of the time{each}"))
    return Group(title, row, facts, *(Text(printable(words)) for words in account.found))


def _best(account: RunStats) -> Text:
    if not account.steps:
        return Text("none yet")
    _, value = account.steps[-1]
    more = "" if account.feasible else ", violates constraints"
    return Text.assemble((f"{value:.6g}", "bold green"), f"  trial {account.trial}{more}")


def _body(account: RunStats, width: int) -> list[Table]:
    """Bars and curve, beside each other where there is room for both."""
    variables = account.explain()
    named = set(variables.named[:BARS])
    rows = [row for row in variables if row.name in named]
    beside = width >= 76 or not rows
    wide = min(60, width - 4) if not rows else min(48, width - 36) if beside else min(60, width - 4)
    tables = [_bars(rows, min(32, width - 4))] if rows else []
    if len(account.steps) > 1 and wide >= 16:
        tables.append(_curve(account, wide))
    if len(tables) == 2 and beside:
        both = Table.grid(padding=(0, 3))
        both.add_row(*tables)
        tables = [both]
    return tables


def _bars(rows: Sequence[VariableStatus], width: int) -> Table:
    """By how much each variable changes the value at least, as a share of its range."""
    table = Table.grid(padding=(0, 1))
    longest = min(14, max(len(row.name) for row in rows))
    table.add_row(Text("active", style="dim"))
    for row in rows:
        short = Text(printable(row.name), no_wrap=True)
        short.truncate(longest, overflow="ellipsis")
        drawn = bar(row.share, max(4, width - longest - 7))
        table.add_row(short, Text(drawn, style="cyan"), Text(percent(row.share), justify="right"))
    return table


def _curve(account: RunStats, width: int) -> Table:
    """The best value over the evaluations, with its first and last value beside it."""
    curve = account.curve(2 * (width - 12))
    seen = [value for value in curve if not math.isnan(value)]
    lines = braille(curve, ROWS)
    table = Table.grid(padding=(0, 1))
    table.add_row(Text("best value by evaluation", style="dim"), "")
    for row, line in enumerate(lines):
        mark = f"{max(seen):.4g}" if row == 0 else f"{min(seen):.4g}" if row == len(lines) - 1 else ""
        table.add_row(Text(line, style="green"), Text(mark, style="dim"))
    return table


def bar(share: float, width: int) -> str:
    """A bar of so many characters for the whole, in eighths of a character."""
    eighths = round(8 * width * min(max(share, 0.0), 1.0))
    partial = PARTS[eighths % 8] if eighths % 8 else ""
    return (FULL * (eighths // 8) + partial).ljust(width)


def braille(values: Sequence[float], rows: int) -> list[str]:
    """A curve of steps in braille characters, two values a character and four levels a line; no dot for NaN."""
    known = [value for value in values if not math.isnan(value)]
    low, high = min(known), max(known)
    cells = [[0] * ((len(values) + 1) // 2) for _ in range(rows)]
    before: int | None = None
    for i, value in enumerate(values):
        if math.isnan(value):
            continue
        level = round((4 * rows - 1) * (value - low) / (high - low)) if high > low else 0
        start = level if before is None else before
        for filled in range(min(level, start), max(level, start) + 1):
            cells[rows - 1 - filled // 4][i // 2] |= DOTS[i % 2][filled % 4]
        before = level
    return ["".join(chr(0x2800 + cell) for cell in row) for row in cells]


class LogLines:
    """A line at each tenth of the evaluations and when the phase changes, for logs and pipes."""

    def __init__(self, stream: Any = None) -> None:
        self.stream = stream or Output(sys.stderr)
        self.phase = ""

    def begin(self, account: RunStats) -> None:
        self.phase = account.phase.partition(":")[0]
        self._print(f"{account.label}: {account.line()}")

    def told(self, account: RunStats, due: bool) -> None:
        phase = account.phase.partition(":")[0]
        tenth = account.evaluated * 10 // account.budget > (account.evaluated - 1) * 10 // account.budget
        if tenth or phase != self.phase:
            self.phase = phase
            self._print(account.line())

    def end(self, account: RunStats) -> None:
        for words in account.found:
            self._print(words)

    def _print(self, text: str) -> None:
        print(text, file=self.stream, flush=True)


class NotebookView:
    """One line of text below the cell, replaced as the run goes on: no widget, so it is there when the page is read."""

    def __init__(self, display: Any) -> None:
        self.display, self.handle = display, None

    def begin(self, account: RunStats) -> None:
        self.handle = self.display(self._bundle(account), raw=True, display_id=True)

    def told(self, account: RunStats, due: bool) -> None:
        if due:
            self._update(account)

    def end(self, account: RunStats) -> None:
        self._update(account)

    def _update(self, account: RunStats) -> None:
        if self.handle is not None:
            self.handle.update(self._bundle(account), raw=True)

    def _bundle(self, account: RunStats) -> dict[str, str]:
        return {"text/plain": "\n".join([f"{account.label}: {account.line()}", *account.found])}


class TerminalView:
    """A display that is drawn anew in place; see `mctsvs.visualization.terminal`."""

    def __init__(self, console: Any, *, keep: bool) -> None:
        from rich.live import Live

        self.live = Live(console=console, auto_refresh=False, transient=not keep)

    def begin(self, account: RunStats) -> None:
        self.live.start()
        self._draw(account)

    def told(self, account: RunStats, due: bool) -> None:
        if due:
            self._draw(account)

    def end(self, account: RunStats) -> None:
        self._draw(account)
        self.live.stop()

    def _draw(self, account: RunStats) -> None:
        self.live.update(Screen(account), refresh=True)


def choose_view(*, keep: bool = True, lines: bool = False) -> ProgressView | None:
    """The view that fits where this process runs; None where nobody looks.

    keep    the last display stays on the terminal
    lines   where there is neither terminal nor notebook, lines of text instead of nothing
    """
    if (display := _notebook()) is not None:
        return NotebookView(display)
    from rich.console import Console

    console = Console(file=Output(sys.stderr))  # type: ignore[arg-type]
    if console.is_terminal and not console.is_dumb_terminal:
        return TerminalView(console, keep=keep)
    return LogLines() if lines else None


def _notebook() -> Any:
    """IPython's display function, in a kernel of a notebook."""
    if "ipykernel" not in sys.modules:
        return None
    from IPython import get_ipython
    from IPython.display import display

    return display if hasattr(get_ipython(), "kernel") else None
