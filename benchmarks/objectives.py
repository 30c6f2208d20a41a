"""Hypervolume of several objectives in many variables, after so many evaluations.

    python benchmarks/objectives.py                       every problem and method, three seeds
    python benchmarks/objectives.py dtlz2m-100 --methods auto --seeds 20-24 --budget 300 --out runs.csv

All are minimised over the unit cube. Where the name ends in m, optima lie at a random place in [0.15, 0.85] and the
variables are shuffled: neither a start at the centre nor a border is a gift.

    dtlz2m-D[-M]    DTLZ2 of D variables and M objectives (2); reference 6 in each objective
    zdt1m-D         ZDT1; reference (11, 11)
    hartmann-D      two Hartmann functions of 6 of the D variables each, two of these in common; reference (0, 0)
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse
import csv
import importlib.util
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mctsvs import Optimizer
from mctsvs.bench.problems.synthetic import HARTMANN_A, HARTMANN_ALPHA, HARTMANN_P
from mctsvs.gp.pareto import hypervolume
from mctsvs.utils.validation import Array, Indices

METHODS = ("auto", "random", "optuna-nsga2")
PROBLEMS = ("dtlz2m-100", "dtlz2m-100-3", "zdt1m-60", "hartmann-300")
AT = (50, 100, 200, 300)


@dataclass(frozen=True)
class Several:
    """A function of D variables with M values."""

    D: int
    reference: Array
    function: Callable[[Array], Array]
    most: float  # hypervolume of the whole front, NaN where it is not known


def placed(D: int, first: int, seed: int) -> tuple[Indices, Array]:
    """Order of the variables, and where the optimum of each but the first ones lies."""
    rng = np.random.default_rng(1000 + seed)
    return rng.permutation(D), rng.uniform(0.15, 0.85, D - first)


def dtlz2(D: int, M: int, seed: int) -> Several:
    """The front is a part of the unit sphere."""
    order, best = placed(D, M - 1, seed)

    def f(x: Array) -> Array:
        x = x[order]
        radius = 1.0 + ((x[M - 1 :] - best) ** 2).sum()
        angles = 0.5 * np.pi * x[: M - 1]
        cosines = np.cumprod(np.append(1.0, np.cos(angles)))[::-1]
        return np.asarray(radius * cosines * np.append(1.0, np.sin(angles)[::-1]))

    ball = {2: np.pi / 4, 3: np.pi / 6, 4: np.pi**2 / 32}.get(M, np.nan)
    return Several(D, np.full(M, 6.0), f, 6.0**M - ball)


def zdt1(D: int, seed: int) -> Several:
    order, best = placed(D, 1, seed)

    def f(x: Array) -> Array:
        x = x[order]
        g = 1.0 + 9.0 * np.abs(x[1:] - best).mean()
        return np.array([x[0], g * (1.0 - np.sqrt(x[0] / g))])

    return Several(D, np.full(2, 11.0), f, 121.0 - 1.0 / 3.0)


def hartmann(D: int, seed: int, shared: int = 2) -> Several:
    """Ten variables matter, of which two matter to both."""
    rng = np.random.default_rng(2000 + seed)
    variables = rng.permutation(D)[: 12 - shared]
    one, two = variables[:6], variables[6 - shared :]
    moves, order = rng.uniform(-0.15, 0.15, (2, 6)), rng.permutation(6)

    def value(z: Array) -> float:
        return -float(HARTMANN_ALPHA @ np.exp(-(HARTMANN_A * (z - HARTMANN_P) ** 2).sum(axis=1)))

    def f(x: Array) -> Array:
        return np.array([value(x[one] + moves[0]), value(x[two][order] + moves[1])])

    return Several(D, np.zeros(2), f, np.nan)


def problem(name: str, seed: int) -> Several:
    kind, *numbers = name.split("-")
    D, *rest = (int(number) for number in numbers)
    if kind == "dtlz2m":
        return dtlz2(D, rest[0] if rest else 2, seed)
    return {"zdt1m": zdt1, "hartmann": hartmann}[kind](D, seed)


def run(p: Several, method: str, seed: int, budget: int, batch: int = 1) -> tuple[Array, float]:
    """(budget, M) all values, and milliseconds of the method for each."""
    search = optuna_search(p, seed) if method == "optuna-nsga2" else own_search(p, method, seed, budget)
    values: list[Array] = []
    began, evaluating = time.perf_counter(), 0.0
    while len(values) < budget:
        points, tell = search(min(batch, budget - len(values)))
        before = time.perf_counter()
        found = [p.function(x) for x in points]
        evaluating += time.perf_counter() - before
        tell(found)
        values += found
    return np.array(values), 1e3 * (time.perf_counter() - began - evaluating) / budget


Search = Callable[[int], tuple[list[Array], Callable[[list[Array]], None]]]


def own_search(p: Several, method: str, seed: int, budget: int) -> Search:
    """The reference point is the problem's for the figures alone: no method is told it."""
    opt = Optimizer([(0, 1)] * p.D, directions=["minimize"] * len(p.reference), method=method, seed=seed, budget=budget)

    def ask(n: int) -> tuple[list[Array], Callable[[list[Array]], None]]:
        trials = opt.ask(n)

        def tell(values: list[Array]) -> None:
            for trial, value in zip(trials, values, strict=True):
                opt.tell(trial, value)

        return [trial.x for trial in trials], tell

    return ask


def optuna_search(p: Several, seed: int) -> Search:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    sampler = optuna.samplers.NSGAIISampler(seed=seed)
    study = optuna.create_study(directions=["minimize"] * len(p.reference), sampler=sampler)

    def ask(n: int) -> tuple[list[Array], Callable[[list[Array]], None]]:
        trials = [study.ask() for _ in range(n)]
        points = [np.array([trial.suggest_float(f"x{i}", 0.0, 1.0) for i in range(p.D)]) for trial in trials]

        def tell(values: list[Array]) -> None:
            for trial, value in zip(trials, values, strict=True):
                study.tell(trial, value.tolist())

        return points, tell

    return ask


def seeds_of(text: str) -> list[int]:
    """0-2,7 as numbers."""
    ranges = [part.partition("-") for part in text.split(",")]
    return [seed for low, _, high in ranges for seed in range(int(low), int(high or low) + 1)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="*", default=PROBLEMS)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--seeds", default="0-2")
    parser.add_argument("--budget", type=int, default=300)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--out", type=Path, help="a CSV file with a row for each run")
    options = parser.parse_args()
    methods = [m for m in options.methods.split(",") if m != "optuna-nsga2" or importlib.util.find_spec("optuna")]
    at = [n for n in AT if n < options.budget] + [options.budget]
    rows: list[dict[str, Any]] = []
    print("| problem | method |", *(f" {n} |" for n in at), " ms |", sep="")
    print("|---|---|" + "---|" * (len(at) + 1))
    for name in options.problems:
        for method in methods:
            found, spent = [], []
            for seed in seeds_of(options.seeds):
                p = problem(name, seed)
                values, ms = run(p, method, seed, options.budget, options.batch)
                found.append([hypervolume(-values[:n], -p.reference) for n in at])
                spent.append(ms)
                place = {"problem": name, "method": method, "seed": seed, "batch": options.batch}
                rows.append({**place, **{f"after {n}": v for n, v in zip(at, found[-1], strict=True)}, "ms": ms})
            cells = [f"{np.mean(v):.2f} ± {np.std(v):.2f}" for v in np.array(found).T]
            print(f"| {name} | {method} | " + " | ".join([*cells, f"{np.mean(spent):.1f}"]) + " |", flush=True)
        if np.isfinite(p.most):
            print(f"| {name} | most possible | " + " | ".join([*[""] * (len(at) - 1), f"{p.most:.2f}", ""]) + " |")
    if options.out is not None:
        with options.out.open("w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=[*rows[0]])
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
