"""The default method at its limits: 100,000 variables, and thinking time by kind of problem.

python benchmarks/default.py huge        Hartmann6 among 100,000 variables, 200 evaluations: value, seconds, memory
python benchmarks/default.py thinking    processor milliseconds an evaluation up to 600 evaluations
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_name] = "1"

import resource
import sys
import time

from mctsvs import Optimizer, problems


def run(name: str, budget: int, seed: int, noise: float = 0.0) -> tuple[float, float, float]:
    """Best value, wall and processor seconds of thinking."""
    problem = problems.make(name, shuffle=True, shift=True, noise=noise, seed=seed)
    opt = Optimizer(problem.bounds, direction="maximize", method="mcts-vs", seed=seed + 1000)
    wall = processor = 0.0
    for _ in range(budget):
        started = time.perf_counter(), time.process_time()
        (trial,) = opt.ask()
        wall, processor = wall + time.perf_counter() - started[0], processor + time.process_time() - started[1]
        value = problem(trial.x)
        started = time.perf_counter(), time.process_time()
        opt.tell(trial, value)
        wall, processor = wall + time.perf_counter() - started[0], processor + time.process_time() - started[1]
    return float(opt.best.value or 0.0), wall, processor


def huge() -> None:
    for seed in range(3):
        value, wall, processor = run("Hartmann6_100000", 200, seed)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
        print(f"seed {seed}: best {value:.4f}, {wall:.1f} s ({processor:.1f} s of one core), {memory:.2f} GB at most")


def thinking() -> None:
    for label, name, noise in (
        ("sparse, D = 500", "Hartmann6_500", 0.0),
        ("dense, D = 60", "Levy60", 0.0),
        ("all variables, D = 500", "Hartmann6_500", 0.1),
    ):
        value, _, processor = run(name, 600, 0, noise)
        print(f"{label} ({name}, noise {noise:g}): {1e3 * processor / 600:.1f} ms an evaluation, best {value:.4g}")


if __name__ == "__main__":
    {"huge": huge, "thinking": thinking}[sys.argv[1] if len(sys.argv) > 1 else "huge"]()
