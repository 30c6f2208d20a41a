"""Makes the pictures of the docs and the README: `make pictures`. They are of real runs, and kept with the pages.

terminal.svg    the display of `mctsvs bench run` in the middle of a run
report*.png     the report of a run, and its sections, in Chromium
"""

from __future__ import annotations

import io
import shutil
import tempfile
from pathlib import Path

from rich.console import Console

from mctsvs import Optimizer, maximize, minimize
from mctsvs.bench import problems
from mctsvs.visualization import report as reports
from mctsvs.visualization.progress import ProgressReporter, RunStats
from mctsvs.visualization.terminal import Screen

HERE = Path(__file__).parent
PROBLEM, BUDGET, SEEN, SEED = "Hartmann6_300", 200, 78, 3


class Patient:
    """A view that draws nothing, and so sees every account."""

    def begin(self, account: RunStats) -> None: ...

    def told(self, account: RunStats, due: bool) -> None: ...

    def end(self, account: RunStats) -> None: ...


def terminal() -> None:
    """The run stops where the picture is taken; an evaluation is taken to last a second."""
    problem = problems.make(PROBLEM, shuffle=True, shift=True, seed=0)
    opt = Optimizer(problem.space, direction=problem.direction, budget=BUDGET, seed=SEED)
    follower = ProgressReporter(Patient(), f"auto on {PROBLEM}")
    follower.begin(opt, BUDGET)
    for _ in range(SEEN):
        (trial,) = opt.ask()
        opt.tell(trial, problem(trial.x))
        follower.allowance.began -= 1.0
        follower.told(trial)
    console = Console(record=True, width=100, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(f"$ mctsvs bench run {PROBLEM} --shuffle --shift --budget {BUDGET}", style="dim", highlight=False)
    console.print(Screen(follower.account))
    console.save_svg(str(HERE / "terminal.svg"), title="mctsvs bench run")


def report() -> None:
    """The page at its top, on a telephone in the dark, and section by section."""
    from playwright.sync_api import sync_playwright

    problem = problems.make(PROBLEM, shuffle=True, shift=True, seed=0)
    result = maximize if problem.direction == "maximize" else minimize
    found = result(problem, problem.space, budget=300, seed=SEED)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        page = reports.write({PROBLEM: found}, Path(folder) / "report.html").as_uri()
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 960, "height": 1010}, color_scheme="light")
        tab.goto(page)
        tab.add_style_tag(content="section { padding-left: 16px; padding-right: 16px; border: 0; }")
        for name in ("convergence", "variables", "story", "selection", "slices"):
            section = tab.locator(f"#{name}")
            section.scroll_into_view_if_needed()
            section.locator(".main-svg").last.wait_for()
            tab.wait_for_timeout(300)
            if name != "convergence":
                section.screenshot(path=HERE / f"report-{name}.png")
        tab.evaluate("window.scrollTo(0, 0)")
        tab.screenshot(path=HERE / "report.png")
        phone = browser.new_page(viewport={"width": 400, "height": 800}, color_scheme="dark")
        phone.goto(page)
        phone.locator("#convergence-0 .main-svg").first.wait_for()
        phone.screenshot(path=HERE / "report-phone.png")
        browser.close()


if __name__ == "__main__":
    terminal()
    report()
