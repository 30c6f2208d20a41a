"""Our methods beside other libraries, on one protocol.

    python benchmarks/peers.py [--problems NAME ...] [--methods NAME ...] [--seeds 10] [--budget 200] [--workers 2]
                               [--centre] [--results results/peers.jsonl] [--table docs/results/peers.md]
                               [--readme README.md]

Active variables at random positions, optima at random places (both from the problem's seed s, the method's seed is s +
1000), one thread a process. The best TRUE value after 50, 100, 200 and 600 evaluations, where the search may see a
noisy one (NAME@SD) or one on plateaus (NAME~STEP), with standard error and worst, and processor seconds an evaluation.
`--centre` gives every method the centre of the cube as its first point: on several test functions that point alone is
better than anything a good method finds in a hundred evaluations, so without it nobody is given that gift. Every
finished run is stored at once and never repeated; the table is of all runs stored. "mcts-vs without audit" leaves out
that part; "mcts-vs with budget" is told the budget, as `minimize` does. BoTorch (`botorch`; on an
accelerator with BOTORCH_DEVICE=cuda) and SMAC3 (`smac`) need minutes a run.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import math
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import stored
from botorch_default import next_point
from mctsvs import Optimizer, problems
from mctsvs.common import Array, State
from mctsvs.engines.subspace import SubspaceEngine
from mctsvs.solve.subspace import Subspace
from other_libraries import LIBRARIES

PROBLEMS = (
    "Hartmann6_500",
    "Levy10_300",
    "Hartmann6_500@0.1",
    "Levy10_300@1",
    "Hartmann6_1000",
    "Hartmann6_10_500",
    "Hartmann6_5_500_v",
    "Levy60",
    "Ackley60",
    "Rosenbrock60",
)
METHODS = ("mcts-vs", "mcts-vs-bo", "bo-dsp", "turbo", "baxus", "saas", "optuna-tpe", "cma-es", "random")
HEADLINE = ("Hartmann6_500", "Levy10_300", "Hartmann6_5_500_v", "Hartmann6_500@0.1", "Levy10_300@1")
POINTS = (50, 100, 200, 600)
KNOWN = " with budget"  # after a method's name: it is told how many evaluations there will be


class BotorchSolver:
    """BoTorch's defaults as a solver, on one point at a time."""

    options: ClassVar[tuple[str, ...]] = ()
    batch = None

    def propose(self, n: int, subspace: Subspace, rng: np.random.Generator) -> Array:
        return next_point(subspace.X, subspace.y, os.environ.get("BOTORCH_DEVICE", "cpu"))

    def state(self) -> State:
        return {}

    def restore(self, state: State, subspace: Subspace | None) -> None:
        """Every proposal fits anew."""


def optimizer(method: str, problem: problems.Problem, seed: int, budget: int) -> Any:
    """Something to ask and tell."""
    if method in LIBRARIES:
        return LIBRARIES[method](problem, seed, budget)
    if method != "botorch":
        name, _, part = method.partition(" without ")
        options: dict[str, Any] = {part: False} if part else {}
        if name.endswith(KNOWN):
            name, options = name.removesuffix(KNOWN), {"budget": budget}
        return Optimizer(problem.space, direction=problem.direction, method=name, seed=seed, **options)
    import torch

    torch.manual_seed(seed)
    opt = Optimizer(problem.space, direction=problem.direction, method="bo-dsp", seed=seed)
    engine = opt._engine
    assert isinstance(engine, SubspaceEngine)
    engine.solver = BotorchSolver()
    return opt


def make(name: str, seed: int) -> problems.Problem:
    """The problem with its variables and optimum moved; `NAME~STEP` rounds its values down, so that it has plateaus."""
    name, _, step = name.partition("~")
    if name == "Pairs":
        return pairs(seed)
    problem = problems.make(name, shuffle=True, shift=True, seed=seed)
    if not step:
        return problem
    width, smooth = float(step), problem.function
    return replace(problem, function=lambda x: width * math.floor(smooth(x) / width))


def pairs(seed: int) -> problems.Problem:
    """Three pairs among 200 variables: a variable does nothing while its partner is not near its place."""
    rng = np.random.default_rng([seed, 7])
    active, places = rng.permutation(200)[:6].reshape(3, 2), 0.2 + 0.6 * rng.random((3, 2))

    def value(x: Array) -> float:
        near = np.maximum(0.0, 1.0 - 2.5 * np.abs(x[active] - places))
        return float(near.prod(axis=1).sum())

    bounds = np.tile([0.0, 1.0], (200, 1))
    return problems.Problem("Pairs", "variables that act only together", bounds, value, optimum=3.0)


def job(problem_name: str, method: str, seed: int, budget: int, centre: bool) -> dict[str, Any]:
    name, _, noise = problem_name.partition("@")
    problem = make(name, seed)
    rng = np.random.default_rng([seed, 99])
    opt = optimizer(method, problem, seed + 1000, budget)
    if centre:
        opt.enqueue([problem.bounds.mean(axis=1)])
    sign = 1.0 if problem.direction == "maximize" else -1.0
    true, seconds = [], 0.0
    for _ in range(budget):
        started = time.process_time()
        (trial,) = opt.ask()
        seconds += time.process_time() - started
        true.append(problem(trial.x))
        value = true[-1] + float(noise or 0.0) * rng.standard_normal()
        started = time.process_time()
        opt.tell(trial, value)
        seconds += time.process_time() - started
    best = sign * np.maximum.accumulate(sign * np.array(true))
    at = {str(n): float(best[n - 1]) for n in POINTS if n <= budget}
    who = {"problem": problem_name, "method": method, "seed": seed, "budget": budget, "centre": centre}
    return {**who, "at": at, "seconds": seconds / budget}


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown, a line for each problem and method."""
    groups: dict[tuple[bool, str, str, str], list[dict[str, Any]]] = defaultdict(list)
    points = [str(n) for n in POINTS if any(str(n) in row["at"] for row in rows)]
    for row in rows:
        groups[row["centre"], row["problem"], row["method"], str(row["budget"])].append(row)
    head = ["problem", "method", "seeds", *(f"at {n}" for n in points), f"worst at {points[-1]}", "ms"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for (centre, problem, method, _), group in sorted(groups.items()):
        cells = []
        for n in points:
            values = np.array([row["at"][n] for row in group if n in row["at"]])
            error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
            cells.append(f"{values.mean():.4g} ± {error:.2g}" if len(values) else "")
        last = [n for n in points if n in group[0]["at"]][-1]
        worst = f"{min(row['at'][last] for row in group):.4g}" + ("" if last == points[-1] else f" at {last}")
        ms = 1e3 * float(np.mean([row["seconds"] for row in group]))
        label = problem + (", centre given" if centre else "")
        lines.append("| " + " | ".join([label, method, str(len(group)), *cells, worst, f"{ms:.0f}"]) + " |")
    return "\n".join(lines)


def headline(rows: list[dict[str, Any]]) -> str:
    """The README's table: after 100 and 200 evaluations, best mean of the first problem first."""
    lines = []
    for method in {row["method"] for row in rows}:
        groups = [enough(rows, problem, method) for problem in HEADLINE]
        if not all(groups):
            continue
        cells, ms = [], 1e3 * np.mean([row["seconds"] for group in groups for row in group])
        for group in groups:
            ends = [np.array([row["at"][n] for row in group]) for n in ("100", "200") if n in group[0]["at"]]
            cells.append("; ".join(map(short, ends)) + (" at 100" if len(ends) == 1 else "") + f" ({len(group)})")
        first = float(np.mean([row["at"]["100"] for row in groups[0]]))
        name = f"**{method}**" if method == "mcts-vs" else method
        lines.append((-first, "| " + " | ".join([name, *cells, f"{ms:.0f}"]) + " |"))
    head = ["after 100; 200 evaluations (runs)", *HEADLINE, "ms"]
    best = "| optimum | " + " | ".join(f"{problems.make(p.partition('@')[0]).optimum:.4g}" for p in HEADLINE) + " | |"
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *(t for _, t in sorted(lines)), best])


def enough(rows: list[dict[str, Any]], problem: str, method: str) -> list[dict[str, Any]]:
    """At least three runs of 200 evaluations, or of 100, or none."""
    kept = [row for row in rows if (row["problem"], row["method"], row["centre"]) == (problem, method, False)]
    groups = [[row for row in kept if row["budget"] == budget] for budget in (200, 100)]
    return next((group for group in groups if len(group) >= 3), [])


def short(values: Array) -> str:
    """Mean and standard error."""
    digits = 2 if np.abs(values).max() >= 10 else 3
    return f"{values.mean():.{digits}f} ± {values.std(ddof=1) / np.sqrt(len(values)):.{digits}f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="*", default=PROBLEMS)
    parser.add_argument("--methods", nargs="*", default=METHODS)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--budget", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--centre", action="store_true")
    parser.add_argument("--results", type=Path, default=Path("results/peers.jsonl"))
    parser.add_argument("--table", type=Path, help="write the table there, below the line <!-- table -->")
    parser.add_argument("--readme", type=Path, help="write the headline table there, between <!-- peers --> marks")
    arguments = parser.parse_args()
    wanted = [
        (problem, method, seed, arguments.budget, arguments.centre)
        for seed in range(arguments.seeds)
        for problem in arguments.problems
        for method in arguments.methods
    ]
    rows = stored.finish(
        job,
        wanted,
        ("problem", "method", "seed", "budget", "centre"),
        arguments.results,
        arguments.workers,
        lambda row: f"{row['problem']} {row['method']} {row['at']}",
    )
    print(table(rows))
    if arguments.table is not None:
        text = arguments.table.read_text().partition("<!-- table -->")[0]
        arguments.table.write_text(text + "<!-- table -->\n\n" + table(rows) + "\n")
    if arguments.readme is not None:
        before, rest = arguments.readme.read_text().split("<!-- peers -->")
        after = rest.split("<!-- /peers -->")[1]
        arguments.readme.write_text(f"{before}<!-- peers -->\n{headline(rows)}\n<!-- /peers -->{after}")


if __name__ == "__main__":
    main()
