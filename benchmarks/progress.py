"""What showing a run costs: the share of its time spent in display and log, at twenty evaluations a second.

    python benchmarks/progress.py [--seconds 20]

The objective takes what is missing to 50 ms an evaluation; the display draws on a pseudo-terminal, the log writes every
trial to a file. Exit status 1: more than 1 %.
"""

from __future__ import annotations

import argparse
import io
import logging
import os
import pty
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

from rich.console import Console

from mctsvs import Optimizer
from mctsvs.bench import problems
from mctsvs.loop.record import Clock
from mctsvs.visualization.progress import ProgressReporter
from mctsvs.visualization.terminal import LogLines, TerminalView

RATE = 20.0
BAR = 0.01


def share(problem: problems.Problem, method: str, follower: ProgressReporter, seconds: float) -> float:
    """What the follower takes of the processor, as a share of the run's seconds as they are on a quiet machine."""
    budget = int(RATE * seconds)
    opt = Optimizer(problem.space, direction=problem.direction, method=method, budget=budget, seed=0)
    shown, began = Clock(), time.perf_counter()
    with shown:
        follower.begin(opt, budget)
    for number in range(1, budget + 1):
        (trial,) = opt.ask()
        opt.tell(trial, problem(trial.x))
        with shown:
            follower.told(trial)
        time.sleep(max(0.0, began + number / RATE - time.perf_counter()))
    with shown:
        follower.end()
    return shown.processor / seconds


def terminal() -> Console:
    """A pseudo-terminal that somebody reads."""
    reader, writer = pty.openpty()

    def drain() -> None:
        with suppress(OSError):  # closed
            while os.read(reader, 65536):
                pass

    threading.Thread(target=drain, daemon=True).start()
    return Console(file=os.fdopen(writer, "w"), force_terminal=True, width=120)


def main() -> int:
    parser = argparse.ArgumentParser(description="The share of a run's time that showing it takes.")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each run")
    given = parser.parse_args()
    handler = logging.FileHandler(Path(tempfile.mkdtemp()) / "run.log")
    logging.getLogger("mctsvs").addHandler(handler)
    logging.getLogger("mctsvs").setLevel(logging.DEBUG)
    worst = 0.0
    print("| run of 20 evaluations a second, log of every trial | share of its time |\n|---|---|")
    for name, method in (("Hartmann6_300", "auto"), ("Levy60", "auto"), ("Hartmann6_500", "mcts-vs-rs")):
        problem = problems.make(name, shuffle=True, shift=True)
        for view in (TerminalView(terminal(), keep=True), LogLines(io.StringIO())):
            part = share(problem, method, ProgressReporter(view), given.seconds)
            worst = max(worst, part)
            print(f"| {method} on {name}, {type(view).__name__.lower()} | {100 * part:.2f} % |", flush=True)
    return int(worst > BAR)


if __name__ == "__main__":
    sys.exit(main())
