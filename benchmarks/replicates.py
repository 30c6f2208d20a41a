"""Do replicates pay? The last evaluations of a noisy run spent on the recommended point, or on the search as before.

    python benchmarks/replicates.py [--problems NAME ...] [--seeds 100-105] [--budget 200] [--last 10]

Each run is made once up to the last evaluations, and goes on in both ways from the same state. Regret is that of the
TRUE value of the point recommended at the end. Problems are those of peers.py: NAME@SD, or a function of bbob-noisy.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse

import numpy as np

import peers
import rows
from mctsvs import Optimizer
from mctsvs.bench.problems import Problem, coco
from mctsvs.utils.validation import Array

FEW = ("Levy10_300@1", "Hartmann6_500@0.1")
MANY = tuple(coco.name_of("bbob-noisy", f, 40, 1) for f in (101, 107, 108, 113, 116, 122, 128))


def regrets(name: str, seed: int, budget: int, last: int) -> list[float]:
    """Before the last evaluations, after more of the search, and after replicates."""
    problem, rng = peers.make(name, seed), np.random.default_rng([seed, 7])

    def measure(x: Array) -> float:
        return float(problem.function(x)) + problem.noise * rng.standard_normal()

    def advance(opt: Optimizer, evaluations: int, *, replicate: bool = False) -> Array:
        """The point recommended in the end."""
        for _ in range(evaluations):
            if replicate:
                opt.enqueue([opt.recommend().x])
            (trial,) = opt.ask()
            opt.tell(trial, measure(trial.x))
        return opt.recommend().x

    opt = Optimizer(problem.space, direction=problem.direction, seed=seed + 1000)
    before = advance(opt, budget - last)
    other = Optimizer.restore(opt.state())
    chosen = [before, advance(opt, last), advance(other, last, replicate=True)]
    return [abs(true_value(problem, x) - (problem.optimum or 0.0)) for x in chosen]


def true_value(problem: Problem, x: Array) -> float:
    if isinstance(problem, coco.CocoProblem):
        return problem.instance.noiseless(x)
    return float(problem.function(x))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="*", default=[*FEW, *MANY])
    parser.add_argument("--seeds", type=rows.whole_numbers, default=range(100, 106), help="default: 100-105")
    parser.add_argument("--budget", type=int, default=200)
    parser.add_argument("--last", type=int, default=10)
    arguments = parser.parse_args()
    print("| problem | runs | regret before | after search | after replicates | replicates better / worse |")
    print("|---|---|---|---|---|---|")
    for name in arguments.problems:
        found = np.array([regrets(name, seed, arguments.budget, arguments.last) for seed in arguments.seeds])
        cells = " | ".join(f"{mean:.4g}" for mean in found.mean(axis=0))
        better, worse = int((found[:, 2] < found[:, 1]).sum()), int((found[:, 2] > found[:, 1]).sum())
        print(f"| {name} | {len(found)} | {cells} | {better} / {worse} |", flush=True)


if __name__ == "__main__":
    main()
