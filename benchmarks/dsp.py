"""bo-dsp and mcts-vs beside BoTorch's default model and log EI: value and seconds on the same problems and seeds.

    python benchmarks/dsp.py [--only bo-dsp|mcts-vs|botorch] [--seeds 5] [--workers 1] [--device cpu|cuda]
                             [--results FILE]

Hartmann6_500 and Levy10_300 with the active variables at random positions, 100 evaluations, one thread each.
BoTorch: SingleTaskGP with its defaults, 20 Sobol points, optimize_acqf with 4 restarts from 512 raw samples, half
of them around the best points, on the processor or on an accelerator (`--device cuda`). Every finished run is stored
at once; seconds are comparable with one worker only. Needs botorch.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import stored
from botorch_default import next_point
from mctsvs import Optimizer, problems
from mctsvs.common import Array

PROBLEMS = ("Hartmann6_500", "Levy10_300")
BUDGET = 100


def ours(method: str, problem: problems.Problem, seed: int, device: str) -> tuple[list[float], float]:
    opt = Optimizer(problem.bounds, direction="maximize", method=method, seed=seed)
    values, seconds = [], 0.0
    for _ in range(BUDGET):
        started = time.perf_counter()
        (trial,) = opt.ask()
        seconds += time.perf_counter() - started
        values.append(problem(trial.x))
        started = time.perf_counter()
        opt.tell(trial, values[-1])
        seconds += time.perf_counter() - started
    return values, seconds


def botorch(problem: problems.Problem, seed: int, device: str) -> tuple[list[float], float]:
    import torch

    torch.manual_seed(seed)
    low, high = problem.bounds.T
    engine = torch.quasirandom.SobolEngine(problem.dimension, scramble=True, seed=seed)
    points: Array = engine.draw(20).double().numpy()
    values = [problem(low + x * (high - low)) for x in points]
    started = time.perf_counter()
    while len(values) < BUDGET:
        points = np.concatenate([points, next_point(points, np.array(values), device)])
        values.append(problem(low + points[-1] * (high - low)))
    return values, time.perf_counter() - started


RUNNERS: dict[str, Callable[[problems.Problem, int, str], tuple[list[float], float]]] = {
    "bo-dsp": partial(ours, "bo-dsp"),
    "mcts-vs": partial(ours, "mcts-vs"),
    "botorch": botorch,
}


def job(name: str, who: str, seed: int, device: str) -> dict[str, Any]:
    values, seconds = RUNNERS[who](problems.make(name, shuffle=True, seed=seed), seed, device)
    best = np.maximum.accumulate(values)
    row = {"problem": name, "who": who, "seed": seed, "device": device, "best": best[-1], "seconds": seconds}
    return {**row, "at": {str(n): best[n - 1] for n in (40, 60, 80, 100)}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=tuple(RUNNERS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--device", default="cpu", help="where BoTorch computes; default: %(default)s")
    parser.add_argument("--results", type=Path, default=Path("results/dsp.jsonl"))
    arguments = parser.parse_args()
    wanted = [
        (name, who, seed, arguments.device)
        for seed in range(2021, 2021 + arguments.seeds)
        for name in PROBLEMS
        for who in ([arguments.only] if arguments.only else list(RUNNERS))
    ]
    rows = stored.finish(
        job,
        wanted,
        ("problem", "who", "seed"),
        arguments.results,
        arguments.workers,
        lambda row: f"{row['problem']} {row['who']} {row['best']:.3f}",
    )
    print(
        "| problem | method | seeds | mean best at 100 ± standard error | worst | seconds |\n|---|---|---|---|---|---|"
    )
    for name in PROBLEMS:
        for who in RUNNERS:
            group = [row for row in rows if row["problem"] == name and row["who"] == who]
            if group:
                best = np.array([row["best"] for row in group])
                error = best.std(ddof=1) / np.sqrt(len(best)) if len(best) > 1 else float("nan")
                seconds = np.mean([row["seconds"] for row in group])
                label = "BoTorch default" if who == "botorch" else who
                cells = f"{best.mean():.3f} ± {error:.3f} | {best.min():.3f} | {seconds:.1f}"
                print(f"| {name} | {label} | {len(best)} | {cells} |")


if __name__ == "__main__":
    main()
