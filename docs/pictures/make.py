"""Makes the pictures of the docs and the README: `make pictures`. They are of real runs, and kept with the pages.

terminal.svg    the display of `mctsvs run` in the middle of a run
"""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from mctsvs import Optimizer, problems
from mctsvs.progress.account import Account
from mctsvs.progress.follower import Follower
from mctsvs.progress.screen import screen

HERE = Path(__file__).parent
PROBLEM, BUDGET, SEEN, SEED = "Hartmann6_300", 200, 78, 3


class Patient:
    """A view that draws nothing, and so sees every account."""

    wants_importance = True

    def begin(self, account: Account) -> None: ...

    def told(self, account: Account, due: bool) -> None: ...

    def end(self, account: Account) -> None: ...


def terminal() -> None:
    """The run stops where the picture is taken; an evaluation is taken to last a second."""
    problem = problems.make(PROBLEM, shuffle=True, shift=True, seed=0)
    opt = Optimizer(problem.space, direction=problem.direction, budget=BUDGET, seed=SEED)
    follower = Follower(Patient(), f"mcts-vs on {PROBLEM}")
    follower.begin(opt, BUDGET)
    for _ in range(SEEN):
        (trial,) = opt.ask()
        opt.tell(trial, problem(trial.x))
        follower.allowance.began -= 1.0
        follower.told(trial)
    console = Console(record=True, width=100, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(f"$ mctsvs run {PROBLEM} --shuffle --shift --budget {BUDGET}", style="dim", highlight=False)
    console.print(screen(follower.account))
    console.save_svg(str(HERE / "terminal.svg"), title="mctsvs run")


if __name__ == "__main__":
    terminal()
