"""Seconds of 100 evaluations of Hartmann6_300 for every method, beside the paper's Table 1.

    python benchmarks/times.py [--seeds 3] [--methods NAME ...] [--slow] [--results results/times.jsonl]

Processor time of asking and telling only, one thread, one method after the other. `--slow` adds those that take many
minutes.
Every finished run is stored at once; running the command again goes on where it stopped.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import json
from pathlib import Path

import numpy as np

from mctsvs import problems
from mctsvs.methods import METHODS, missing
from mctsvs.lab.run import run

PROBLEM, BUDGET = "Hartmann6_300", 100
SLOW = ("saasbo", "mcts-vs-saasbo", "optuna-gp")
PAPER = {  # Table 1, Hartmann6_300
    "bo": 4.844,
    "dropout-bo": 3.237,
    "mcts-vs-bo": 3.711,
    "turbo": 9.201,
    "la-mcts-turbo": 25.853,
    "mcts-vs-turbo": 5.613,
    "saasbo": 2185.678,
    "hesbo": 51.678,
    "alebo": 470.714,
    "cma-es": 0.043,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--methods", nargs="*", choices=tuple(METHODS))
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("--results", type=Path, default=Path("results/times.jsonl"))
    arguments = parser.parse_args()
    chosen = arguments.methods or [m for m in METHODS if arguments.slow or m not in SLOW]
    arguments.results.parent.mkdir(parents=True, exist_ok=True)
    lines = arguments.results.read_text().splitlines() if arguments.results.exists() else []
    rows = [json.loads(line) for line in lines]
    done = {(row["method"], row["seed"]) for row in rows}
    for seed in range(2021, 2021 + arguments.seeds):
        for method in chosen:
            if (method, seed) in done or missing(METHODS[method]):
                continue
            problem = problems.make(PROBLEM, shuffle=True, seed=seed)
            record = run(problem, method, budget=BUDGET, seed=seed)
            rows.append({"method": method, "seed": seed, "seconds": record.cpu_seconds, "best": record.best})
            with arguments.results.open("a") as out:
                out.write(json.dumps(rows[-1]) + "\n")
    print(
        f"| method | seeds | seconds for {BUDGET} evaluations of {PROBLEM} | paper | mean best |\n|---|---|---|---|---|"
    )
    table = []
    for method in METHODS:
        group = [row for row in rows if row["method"] == method]
        if group:
            seconds, best = (float(np.mean([row[key] for row in group])) for key in ("seconds", "best"))
            paper = f"{PAPER[method]:g}" if method in PAPER else ""
            table.append((seconds, f"| {method} | {len(group)} | {seconds:.2f} | {paper} | {best:.3f} |"))
    print("\n".join(line for _, line in sorted(table)))


if __name__ == "__main__":
    main()
