"""What the pages cost: the report of a study, the first view of a long one on the live page, and how soon news is seen.

    python benchmarks/pages.py [report | watch | news]

report   600 evaluations of 500 variables: seconds of one processor from the start to the page on the disk; its size
watch    10,000 evaluations of 500 variables: seconds of the processor from the request until the first picture is drawn
news     seconds from an evaluation in the file until it is drawn, while a run makes five a second

The last two need Chromium and the package playwright. Exit status 1: one of them misses its bar.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mctsvs import Study
from mctsvs.bench import problems

BARS = {"report": 5.0, "size": 8.0, "watch": 3.0, "news": 2.0}
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
RUN = """
import sys, time
from mctsvs import Study
def f(x):
    time.sleep(0.2)
    return float((x[2] - 0.3) ** 2)
with Study(sys.argv[1], [(0.0, 1.0)] * 50, seed=0) as study:
    study.optimize(f, 100)
"""


def processor_time() -> float:
    """Of programs that have ended: other work on the machine does not count."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def report(folder: Path) -> bool:
    problem = problems.make("Hartmann6_500", shuffle=True, seed=3)
    ok = True
    for method in ("auto", "mcts-vs-bo"):
        with Study(folder / f"{method}.db", problem.space, direction=problem.direction, method=method) as study:
            study.optimize(problem, 600)
        page = folder / f"{method}.html"
        command = [sys.executable, "-m", "mctsvs", "report", str(folder / f"{method}.db"), "-o", str(page)]
        before = processor_time()
        subprocess.run(command, check=True, capture_output=True)
        seconds, size = processor_time() - before, page.stat().st_size / 1e6
        print(f"report, {method}: {seconds:.1f} s with the start of Python, {size:.1f} MB")
        ok &= seconds <= BARS["report"] and size <= BARS["size"]
    return ok


@contextmanager
def opened(study: Path) -> Iterator[tuple[Any, str, int]]:
    """A browser, the address of the live page, and the process that serves it."""
    from playwright.sync_api import sync_playwright

    command = [sys.executable, "-u", "-m", "mctsvs", "watch", str(study), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server, sync_playwright() as driver:
        assert server.stdout is not None
        program = next(filter(None, map(shutil.which, BROWSERS)))
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield browser, server.stdout.readline().split()[2], server.pid
        finally:
            browser.close()
            server.terminate()


def used(process: int) -> float:
    """Seconds of the processor by a program that runs, on Linux."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def watch(folder: Path) -> bool:
    with Study(folder / "long.db", [(0.0, 1.0)] * 500, method="random", seed=0) as study:
        study.optimize(lambda x: float(((x[:5] - 0.3) ** 2).sum()), 10_000)
    with opened(folder / "long.db") as (browser, address, process):
        tab = browser.new_page()
        session = tab.context.new_cdp_session(tab)
        session.send("Performance.enable")
        before, began = used(process), time.perf_counter()
        tab.goto(address, wait_until="commit")
        serving = used(process) - before
        tab.locator("#convergence-0 .main-svg").first.wait_for()
        seconds = time.perf_counter() - began
        metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
    drawing = float(metrics["ThreadTime"])
    print(
        f"watch: first view after {seconds:.1f} s; of the processor, {serving:.1f} s to serve, {drawing:.1f} s to draw"
    )
    return serving + drawing <= BARS["watch"]


def news(folder: Path) -> bool:
    path = folder / "live.db"
    run = subprocess.Popen([sys.executable, "-c", RUN, str(path)])
    while not path.exists():
        time.sleep(0.1)
    delays: list[float] = []
    with opened(path) as (browser, address, _):
        tab = browser.new_page()
        tab.goto(address)
        tab.locator("#convergence-0 .main-svg").first.wait_for()
        for _ in range(8):
            with Study(path, readonly=True) as study:
                told = max(trial.times.told or 0.0 for trial in study.trials)
                n = study.evaluated
            arrived = "n => document.getElementById('convergence-0').data[0].x.length >= n"
            tab.wait_for_function(arrived, arg=n)
            delays.append(time.time() - told)
    run.wait()
    print(f"news: {statistics.median(delays):.1f} s (median of 8), the longest {max(delays):.1f} s")
    return max(delays) <= BARS["news"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = {"report": report, "watch": watch, "news": news}
    parser.add_argument("part", nargs="*", choices=[[], *parts], help="all, unless some are named")
    wanted = parser.parse_args().part or list(parts)
    with tempfile.TemporaryDirectory() as folder:
        kept = [parts[name](Path(folder)) for name in wanted]
    return int(not all(kept))


if __name__ == "__main__":
    sys.exit(main())
