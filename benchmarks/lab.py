"""The experiment runner under stress: killed at random moments, and the speed-up of two workers.

    python benchmarks/lab.py kill [--kills 5]       the table of a grid killed again and again, and of one left alone
    python benchmarks/lab.py speed-up [--runs 200]  seconds of a grid on one worker and on two
    python benchmarks/lab.py all

Exit status 1: a bar was missed.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import csv
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from mctsvs.bench import grid
from mctsvs.bench.algorithms import ConfiguredMethod
from mctsvs.bench.run_store import RunStore

EFFICIENCY = 0.85  # of the ideal speed-up


def compare(folder: Path) -> list[str]:
    what = ["Hartmann6_60", "Levy10_60", "--methods", "mcts-vs-bo,dropout-bo[d=5],mcts-vs-rs,random"]
    what += ["--seeds", "2021-2026", "--budget", "90", "--workers", "2", "-o", str(folder)]
    return [sys.executable, "-m", "mctsvs", "compare", *what]


def table(folder: Path) -> list[list[str]]:
    """Without the two columns of seconds."""
    with (folder / "results.csv").open(newline="") as file:
        return [row[:-2] for row in csv.reader(file)]


def stamps(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in (folder / "runs").glob("*.json.gz")}


def kill(options: argparse.Namespace) -> bool:
    """kill -9 at random moments, then the same command."""
    rng = np.random.default_rng(options.seed)
    with tempfile.TemporaryDirectory() as place:
        undisturbed, disturbed = Path(place) / "a", Path(place) / "b"
        started = time.perf_counter()
        subprocess.run(compare(undisturbed), check=True, capture_output=True)
        whole = time.perf_counter() - started
        print(f"undisturbed: {whole:.1f} s, {len(stamps(undisturbed))} runs")
        again = 0
        for number in range(options.kills):
            before = stamps(disturbed)
            process = subprocess.Popen(compare(disturbed), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            moment = float(rng.uniform(0.1, 0.45)) * whole
            time.sleep(moment)
            process.kill()
            process.wait()
            time.sleep(0.5)  # its workers notice
            after = stamps(disturbed)
            again += sum(after.get(name) != stamp for name, stamp in before.items())
            print(f"kill {number + 1} after {moment:.1f} s: {len(before)} -> {len(after)} runs stored")
        before = stamps(disturbed)
        subprocess.run(compare(disturbed), check=True, capture_output=True)
        after = stamps(disturbed)
        again += sum(after[name] != stamp for name, stamp in before.items())
        same = table(undisturbed) == table(disturbed)
        print(f"| killed {options.kills} times: same table | {same} |\n| runs done twice | {again} |")
        return same and again == 0


def speed_up(options: argparse.Namespace) -> bool:
    """The same short runs on one worker and on two."""
    cases = [ConfiguredMethod("mcts-vs-bo"), ConfiguredMethod("dropout-bo")]
    seeds = range(2021, 2021 + options.runs // 2)
    spent = []
    for workers in (1, 2):
        with tempfile.TemporaryDirectory() as place:
            jobs = grid.jobs(["Hartmann6_60"], cases, seeds, options.budget)
            started = time.perf_counter()
            progress = grid.run_jobs(jobs, RunStore(Path(place)), workers)
            spent.append(time.perf_counter() - started)
            busy = sum(map(sum, progress.spent.values())) / (workers * spent[-1])
            print(f"{progress.done} runs on {workers} of the workers: {spent[-1]:.1f} s, {busy:.3f} of it inside runs")
    efficiency = spent[0] / (2 * spent[1])
    print(f"| speed-up of two workers, share of the ideal | {efficiency:.3f} | >= {EFFICIENCY} |")
    return efficiency >= EFFICIENCY


def main() -> int:
    parser = argparse.ArgumentParser(description="The experiment runner under stress.")
    parser.add_argument("part", nargs="?", default="all", choices=["kill", "speed-up", "all"])
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--budget", type=int, default=40, help="evaluations of a short run")
    parser.add_argument("--seed", type=int, default=0, help="of the moments to kill at")
    options = parser.parse_args()
    met = [run(options) for name, run in (("kill", kill), ("speed-up", speed_up)) if options.part in (name, "all")]
    return int(not all(met))


if __name__ == "__main__":
    sys.exit(main())
