"""Importance: what it says of variables that matter, of those that do not, and of pure noise.

    python benchmarks/relevance.py [noise|found|ranks] [--seeds 5] [--method NAME]

noise   variables of pure noise with a score above 0.5, in runs of the method
found   of the variables that matter with noisy values, how many have a score above 0.5, and how many others
ranks   of the variables that matter, by importance and by the variable score of Eq. 2; rank 0 is the most important

The active variables are at random positions.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse

import numpy as np

from mctsvs.bench import problems
from mctsvs.bench.record import make_optimizer
from mctsvs.methods.composite import SubspaceEngine
from mctsvs.methods.mcts_vs.selector import MCTS
from mctsvs.optimizer import Optimizer
from mctsvs.utils.validation import Array, Indices
from turns import spend


def noise(seeds: int, method: str) -> None:
    print(f"| pure noise, {method} | runs | variables above 0.5 | largest in a run |\n|---|---|---|---|")
    for d, n in ((40, 100), (100, 100), (40, 300), (100, 300)):
        above = []
        for seed in range(seeds):
            rng = np.random.default_rng(seed + 1000)
            opt = Optimizer([(0.0, 1.0)] * d, method=method, seed=seed + 1000, budget=n)
            for _ in range(n):
                (trial,) = opt.ask()
                opt.tell(trial, float(rng.standard_normal()))
            above.append(sum(score > 0.5 for score in opt.importance().values()))
        print(f"| D = {d}, n = {n} | {seeds} | {sum(above)} of {d * seeds} | {max(above)} |", flush=True)


def found(seeds: int, method: str) -> None:
    print(f"| {method}, 300 evaluations, {seeds} runs | of those that matter | others |\n|---|---|---|")
    for name, sd in (("Hartmann6_100", 0.1), ("Levy10_100", 1.0), ("Hartmann6_300", 0.0)):
        counts = []
        for seed in range(seeds):
            problem = problems.make(name, shuffle=True, noise=sd, seed=seed + 1000)
            assert problem.active is not None
            opt = make_optimizer(problem, method, seed=seed + 1000, budget=300)
            spend(problem, opt, 300)
            important = opt._core.engine.importance() > 0.5
            right = int(important[problem.active].sum())
            counts.append((right, int(important.sum()) - right))
        right_, wrong = np.mean(counts, axis=0)
        matter = name.partition("_")[0].lstrip("HartmnLevy")
        print(f"| {name}, noise {sd:g} | {right_:.1f} of {matter} | {wrong:.1f} |", flush=True)


def ranks(seeds: int, method: str) -> None:
    print("| problem, evaluations | seed | by importance | by the score of Eq. 2 |\n|---|---|---|---|")
    for name, budget in (("Hartmann6_300", 300), ("Levy10_300", 300)):
        for seed in range(seeds):
            problem = problems.make(name, shuffle=True, seed=seed + 3)
            assert problem.active is not None
            opt = make_optimizer(problem, "mcts-vs-bo", seed=seed + 1)
            spend(problem, opt, budget)
            engine = opt._core.engine
            assert isinstance(engine, SubspaceEngine)
            assert isinstance(engine.selector, MCTS)
            by_model = ranked(engine.importance(), problem.active)
            by_score = ranked(engine.selector.information.score, problem.active)
            print(f"| {name}, {budget} | {seed} | {by_model} | {by_score} |", flush=True)


def ranked(score: Array, active: Indices) -> list[int]:
    order = np.argsort(-score, kind="stable")
    return sorted(np.flatnonzero(np.isin(order, active)).tolist())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", choices=("noise", "found", "ranks"), default="ranks")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--method", default="auto")
    arguments = parser.parse_args()
    {"noise": noise, "found": found, "ranks": ranks}[arguments.part](arguments.seeds, arguments.method)


if __name__ == "__main__":
    main()
