"""Measured constraints: best feasible values beside methods and libraries that take constraints in their own terms.

    python benchmarks/constrained.py coco [--dimensions 20,40] [--functions 1-54] [--instance 1] [--budget 400]
    python benchmarks/constrained.py mopta [--seeds 5] [--budget 1000]          both: [--methods NAME ...]

`coco`: all functions of COCO's bbob-constrained, mean rank of the best feasible value after 100, 200, 300 and 400
evaluations; runs without a feasible point share the last rank. Nobody is given COCO's feasible initial solution.
`mopta`: MOPTA08c, 124 variables and 68 constraints. Methods are our own by name, Optuna's TPE with constraints, and
pycma's augmented Lagrangian. Finished runs are stored in --results and never repeated. One thread a process.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import json
import multiprocessing
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np

import rows
import tables
from mctsvs import Optimizer
from mctsvs.bench import problems
from mctsvs.bench.problems import coco
from mctsvs.utils.validation import Array

RIVALS = ["auto", "scbo", "tpe with constraints", "pycma's augmented Lagrangian", "random"]
POINTS = (100, 200, 300, 400, 500, 1000)
SIGMA = 0.25  # first deviation of CMA-ES, of the width of every range

Measured = Callable[[Array], tuple[float, Array]]
"""A point of the unit cube -> value to be minimised, and constraints, at most 0 where they hold."""


class Spent(Exception):
    """The budget is."""


class Run:
    """A problem over the unit cube that counts, and keeps the best feasible value."""

    def __init__(self, name: str, budget: int) -> None:
        problem: Any = problems.make(name)
        self.problem, self.budget, self.n = problem, budget, problem.dimension
        self.low, self.width = problem.bounds[:, 0], np.ptp(problem.bounds, axis=1)

        self.trace: list[float] = []

    def __call__(self, u: Array) -> tuple[float, Array]:
        if len(self.trace) == self.budget:
            raise Spent
        x = self.low + np.clip(u, 0.0, 1.0) * self.width
        value, named = self.problem(x)
        constraints = np.array(list(named.values()))
        feasible = bool((constraints <= 0.0).all())
        best = self.trace[-1] if self.trace else np.inf
        self.trace.append(min(best, float(value)) if feasible else best)
        return float(value), constraints


def own(method: str, run: Run, seed: int) -> None:
    opt = Optimizer([(0.0, 1.0)] * run.n, method=method, seed=seed, budget=run.budget)
    while True:
        (trial,) = opt.ask()
        value, constraints = run(trial.x)
        opt.tell(trial, value, constraints={f"c{k}": c for k, c in enumerate(constraints)})


def tpe(run: Run, seed: int) -> None:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.TPESampler(seed=seed, constraints_func=lambda trial: trial.user_attrs["constraints"])
    study = optuna.create_study(sampler=sampler)

    def objective(trial: Any) -> float:
        value, constraints = run(np.array([trial.suggest_float(f"x{i}", 0.0, 1.0) for i in range(run.n)]))
        trial.set_user_attr("constraints", constraints.tolist())
        return value

    study.optimize(objective)


def augmented_lagrangian(run: Run, seed: int) -> None:
    import cma

    last: dict[bytes, tuple[float, Array]] = {}

    def at(u: Array) -> tuple[float, Array]:
        key = np.asarray(u).tobytes()
        if key not in last:
            last.clear()
            last[key] = run(np.asarray(u))
        return last[key]

    fitness = cma.ConstrainedFitnessAL(lambda u: at(u)[0], lambda u: list(at(u)[1]))
    while True:
        options = {"bounds": [0.0, 1.0], "verbose": -9, "seed": seed + 1 + len(run.trace)}
        strategy = cma.CMAEvolutionStrategy(np.full(run.n, 0.5), SIGMA, options)
        while not strategy.stop():
            points = strategy.ask()
            strategy.tell(points, [fitness(u) for u in points])
            fitness.update(strategy)


def play(problem: str, method: str, seed: int, budget: int, path: Path) -> str:
    """One run, stored."""
    warnings.simplefilter("ignore")
    run, before = Run(problem, budget), time.process_time()
    try:
        if method == "tpe with constraints":
            tpe(run, seed)
        elif method.startswith("pycma"):
            augmented_lagrangian(run, seed)
        else:
            own(method, run, seed)
    except Spent:
        pass
    seconds = time.process_time() - before
    trace = [None if np.isinf(v) else v for v in run.trace]
    path.write_text(json.dumps({"problem": problem, "method": method, "seed": seed, "trace": trace, "cpu": seconds}))
    return f"{method} on {problem}, seed {seed}: {run.trace[-1]:.6g} in {seconds:.0f} s"


def finish(jobs: Sequence[tuple[str, str, int]], arguments: argparse.Namespace) -> list[rows.Run]:
    """Every job; those not stored are run."""
    arguments.results.mkdir(parents=True, exist_ok=True)

    def path(job: tuple[str, str, int]) -> Path:
        words = "-".join([*map(str, job), str(arguments.budget)])
        return Path(arguments.results) / f"{words.replace(' ', '-')}.json"

    missing = [job for job in jobs if not path(job).exists()]
    with ProcessPoolExecutor(arguments.workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        futures = [pool.submit(play, *job, arguments.budget, path(job)) for job in missing]
        for count, future in enumerate(as_completed(futures), 1):
            print(f"{count}/{len(missing)} {future.result()}", flush=True)
    stored = {(run.problem, run.method, run.seed, run.budget): run for run in rows.finished(arguments.results, POINTS)}
    return [stored[(*job, arguments.budget)] for job in jobs]


def run_coco(arguments: argparse.Namespace) -> None:
    for D in arguments.dimensions:
        names = [coco.name_of("bbob-constrained", f, D, arguments.instance) for f in arguments.functions]
        jobs = [(name, method, arguments.instance) for name in names for method in arguments.methods]
        runs = finish(jobs, arguments)
        print(f"\n{D} variables, {len(names)} functions, instance {arguments.instance}\n\n{tables.feasible(runs)}")


def run_mopta(arguments: argparse.Namespace) -> None:
    jobs = [("MOPTA08c", method, seed) for method in arguments.methods for seed in range(arguments.seeds)]
    print(tables.first(finish(jobs, arguments)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    suite = commands.add_parser("coco")
    suite.add_argument("--dimensions", type=rows.whole_numbers, default=[20, 40])
    suite.add_argument("--functions", type=rows.whole_numbers, default=list(range(1, 55)))
    suite.add_argument("--instance", type=int, default=1)
    suite.set_defaults(budget=400, methods=RIVALS, command=run_coco)
    car = commands.add_parser("mopta")
    car.add_argument("--seeds", type=int, default=5)
    car.set_defaults(budget=1000, methods=["auto", "scbo"], command=run_mopta)
    for command in (suite, car):
        command.add_argument("--methods", nargs="+", default=command.get_default("methods"))
        command.add_argument("--budget", type=int, default=command.get_default("budget"))
        command.add_argument("--results", type=Path, default=Path("results/constrained"))
        command.add_argument("--workers", type=int, default=1)
    arguments = parser.parse_args()
    arguments.command(arguments)


if __name__ == "__main__":
    main()
