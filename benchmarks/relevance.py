"""Importance: ranks of the variables that matter, by the model's relevance and by the variable score of Eq. 2.

    python benchmarks/relevance.py [--seeds 5]

Rank 0 is the most important of D variables; the active ones are at random positions.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse

import numpy as np

from mctsvs import problems
from mctsvs.common import Array, Indices
from mctsvs.engines.subspace import SubspaceEngine
from mctsvs.lab import loop
from mctsvs.select.mcts import MCTS


def ranks(score: Array, active: Indices) -> list[int]:
    order = np.argsort(-score, kind="stable")
    return sorted(np.flatnonzero(np.isin(order, active)).tolist())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    seeds = parser.parse_args().seeds
    print("| problem, evaluations | seed | by relevance | by the score of Eq. 2 |\n|---|---|---|---|")
    for name, budget in (("Hartmann6_300", 300), ("Levy10_300", 300)):
        for seed in range(seeds):
            problem = problems.make(name, shuffle=True, seed=seed + 3)
            assert problem.active is not None
            opt = loop.optimizer(problem, "mcts-vs-bo", seed=seed + 1)
            loop.spend(problem, opt, budget)
            engine = opt._engine
            assert isinstance(engine, SubspaceEngine)
            assert isinstance(engine.selector, MCTS)
            by_model = ranks(engine.importance(), problem.active)
            by_score = ranks(engine.selector.information.score, problem.active)
            print(f"| {name}, {budget} | {seed} | {by_model} | {by_score} |", flush=True)


if __name__ == "__main__":
    main()
