"""Problems that look their values up: seconds to load each, and microseconds of one evaluation.

    python benchmarks/problems.py [--data DIR] [--points 1000]

Loading starts from the file, its checksum included. Evaluations are at random points, mean and 99th percentile of the
processor time. (`mctsvs compare NASBench201 ...` searches one.)
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import time

import numpy as np

from mctsvs.common import InputError
from mctsvs.problems import data, families, make


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", metavar="DIR")
    parser.add_argument("--points", type=int, default=1000)
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


if __name__ == "__main__":
    main()
