"""What a known constraint costs: 500 variables, of which 50 sum up to at most 1, beside the same without it.

    python benchmarks/simplex.py [--methods auto,bo-dsp,turbo,random] [--budget 200] [--seeds 3]

The objective has eight variables that matter, four of them in the sum: what is best for these alone would need a sum of
2. Seconds are those of the processor in ask and tell; of two runs of one seed, in turn. One thread.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import time

import numpy as np

from mctsvs import Optimizer
from mctsvs.utils.validation import Array

VARIABLES, SUMMED = 500, 50
BOX = [(0.0, 1.0)] * VARIABLES
CONSTRAINT = f"sum(x0:x{SUMMED - 1}) <= 1"


def objective(seed: int) -> tuple[Array, float]:
    """The variables that matter, and the best value there is under the constraint."""
    rng = np.random.default_rng(seed)
    inside, outside = rng.choice(SUMMED, 4, replace=False), SUMMED + rng.choice(VARIABLES - SUMMED, 4, replace=False)
    # four squares of (0.5 - x) whose x may sum up to 1: each is best at 0.25
    return np.concatenate([inside, outside]), 4 * 0.25**2


def run(method: str, budget: int, seed: int, *, constrained: bool) -> tuple[float, float, int]:
    """Seconds of thinking, the best value, and how many proposals were outside of the simplex."""
    active, _ = objective(seed)
    opt = Optimizer(BOX, method=method, seed=seed, budget=budget, constraints=CONSTRAINT if constrained else ())
    seconds, outside = 0.0, 0
    for _ in range(budget):
        before = time.process_time()
        (trial,) = opt.ask()
        seconds += time.process_time() - before
        x = trial.x
        outside += bool(x[:SUMMED].sum() > 1.0)
        value = float(((x[active] - 0.5) ** 2).sum())
        before = time.process_time()
        opt.tell(trial, value)
        seconds += time.process_time() - before
    return seconds, float(opt.best.value or 0.0), outside


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default="auto,mcts-vs-bo,bo-dsp,turbo,random")
    parser.add_argument("--budget", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    run("bo", 25, 0, constrained=True)  # what is imported when first needed
    print("| method | proposals outside | seconds with | without | ratio | best value above the optimum |")
    print("|---|---|---|---|---|---|")
    for method in arguments.methods.split(","):
        pairs = [
            [run(method, arguments.budget, seed, constrained=c) for c in (True, False)]
            for seed in range(arguments.seeds)
        ]
        with_, without = (sum(pair[i][0] for pair in pairs) for i in range(2))
        above = np.mean([pair[0][1] - objective(seed)[1] for seed, pair in enumerate(pairs)])
        outside = sum(pair[0][2] for pair in pairs)
        total = arguments.budget * arguments.seeds
        cells = [method, f"{outside} of {total}", f"{with_:.2f}", f"{without:.2f}", f"{with_ / without:.2f}"]
        print("| " + " | ".join([*cells, f"{above:.4f}"]) + " |", flush=True)


if __name__ == "__main__":
    main()
