"""Seconds to load each problem that looks its values up, and microseconds of one evaluation.

    python benchmarks/problems.py [--data DIR] [--points 1000] [--search]

Loading starts from the file, its checksum included. Evaluations are at random points, mean and 99th percentile of the
processor time. `--search` adds the best values of mcts-vs-bo on NASBench201 after the paper's 200 evaluations.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import time

import numpy as np

from mctsvs.common import InputError
from mctsvs.lab.run import run
from mctsvs.problems import data, families, make

SEEDS = range(2021, 2026)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", metavar="DIR")
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--search", action="store_true")
    arguments = parser.parse_args()
    if arguments.data is not None:
        data.set_directory(arguments.data)
    make("Levy10_20")(np.zeros(20))  # what the first call loads is not the table's
    print("| problem | D | best value | load, s | evaluate, us | 99 % within, us |\n|---|---|---|---|---|---|")
    for family in families():
        if family.kind != "table":
            continue
        data.forget()
        started = time.perf_counter()
        try:
            problem = make(family.example)
        except InputError as error:
            print(f"| {family.example} | {family.dimension} | no data: {str(error).split(':')[0]} | | | |")
            continue
        points = np.random.default_rng(0).random((arguments.points, problem.dimension))
        problem(points[0])
        loaded = time.perf_counter() - started
        times = []
        for x in points:
            before = time.process_time_ns()
            problem(x)
            times.append((time.process_time_ns() - before) / 1e3)
        mean, most = np.mean(times), np.percentile(times, 99)
        print(
            f"| {problem.name} | {problem.dimension} | {problem.optimum:.6g} "
            f"| {loaded:.3f} | {mean:.0f} | {most:.0f} |",
            flush=True,
        )
    if arguments.search:
        problem = make("NASBench201")
        bests = [run(problem, "mcts-vs-bo", budget=200, seed=seed).best for seed in SEEDS]
        listed = ", ".join(f"{best:.4f}" for best in bests)
        print(f"\nmcts-vs-bo on NASBench201, 200 evaluations, seeds {SEEDS[0]} to {SEEDS[-1]}: {listed};")
        print(f"median {np.median(bests):.4f}, best of the table {problem.optimum:.4f}")


if __name__ == "__main__":
    main()
