"""How far a grid of runs has come: a live display on a terminal, lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from mctsvs.bench.grid import Listener, Progress
from mctsvs.bench.run_store import Job
from mctsvs.utils.formatting import clock

SHOWN = 12  # problems with their best value


@contextmanager
def display(console: Console, title: str = "") -> Iterator[Listener]:
    """Of a grid; yields the function to be told of every event."""
    if not console.is_terminal:
        yield lambda progress, event, job: _line(console, progress, event, job)
        return
    with Live(console=console, refresh_per_second=4, transient=True) as live:
        yield lambda progress, event, job: live.update(_screen(progress, title))


def _line(console: Console, progress: Progress, event: str, job: Job) -> None:
    if event == "failed":
        console.print(f"FAILED {job}: {progress.failures[-1].error}", soft_wrap=True, markup=False, highlight=False)
    elif event == "done":
        left = clock(progress.seconds_left())
        best, by = progress.best.get(job.problem, (float("nan"), job))
        text = f"{progress.finished}/{progress.total} {job}; best so far {best:.6g} ({by.case.label}); {left} left"
        console.print(text, soft_wrap=True, markup=False, highlight=False)


def _screen(progress: Progress, title: str) -> Group:
    head = Table.grid(padding=(0, 2))
    counts = f"{progress.finished}/{progress.total} runs"
    if progress.failures:
        counts += f", {len(progress.failures)} failed"
    overall = ProgressBar(total=progress.total, completed=progress.finished, width=40)
    head.add_row(Text(title or "runs"), overall, Text(counts), Text(f"{clock(progress.seconds_left())} left"))
    table = Table("best so far", "", "method", "seed", box=None, padding=(0, 2), header_style="dim")
    for problem, (best, job) in list(progress.best.items())[-SHOWN:]:
        table.add_row(problem, f"{best:.6g}", Text(job.case.label), str(job.seed))
    running = [
        Text(f"  {job}: {evaluations}/{job.budget}", style="dim") for job, evaluations in progress.running.values()
    ]
    return Group(head, table, *running)
