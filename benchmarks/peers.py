"""Values: our methods beside other libraries, on one protocol.

    python benchmarks/peers.py [--problems NAME ...] [--methods NAME ...] [--seeds 10] [--budget 200] [--workers 2]
                               [--centre] [--results results/peers] [--table docs/results/peers.md]
                               [--readme README.md]

Active variables at random positions, optima at random places (both from the problem's seed s, the method's seed is s +
1000), one thread a process. The best TRUE value after 50, 100, 200 and 600 evaluations, where the search may see a
noisy one (NAME@SD) or one on plateaus (NAME~STEP), with standard error and worst, and processor seconds an evaluation.
`--centre` gives every method the centre of the cube as its first point: on several test functions that point alone is
better than anything a good method finds in a hundred evaluations, so without it nobody is given that gift. Every
finished run is stored at once and never repeated; the table is of all runs stored. "mcts-vs without audit" leaves out
that part; "mcts-vs with budget" is told the budget, as `minimize` does. BoTorch (`botorch`; on an accelerator with
BOTORCH_DEVICE=cuda) and SMAC3 (`smac`) need minutes a run. Ax is not here because its default is BoTorch's model,
which is; HEBO because its requirements do not build any more.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import math
import multiprocessing
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from mctsvs import problems
from mctsvs.common import Array, Indices
from mctsvs.engines.subspace import SubspaceEngine
from mctsvs.lab import loop
from mctsvs.lab.cases import Case
from mctsvs.lab.run import Record, Setting, follow
from mctsvs.lab.store import Job, Store
from mctsvs.options import Options
from mctsvs.solve.subspace import Subspace
from mctsvs.state import Saved

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


class BotorchSolver(Saved):
    """BoTorch's defaults: SingleTaskGP, log EI, 4 restarts from 512 raw samples, half near the best; a point a time."""

    options_type: ClassVar[type[Options]] = Options
    batch = None

    def __init__(self, options: Options) -> None:
        self.options = options

    def propose(self, n: int, subspace: Subspace, rng: np.random.Generator) -> Array:
        import torch
        from botorch.acquisition import LogExpectedImprovement
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from botorch.optim import optimize_acqf
        from gpytorch.mlls import ExactMarginalLogLikelihood

        torch.set_num_threads(1)
        device = os.environ.get("BOTORCH_DEVICE", "cpu")
        inputs = torch.from_numpy(subspace.X.copy()).to(device)
        values = torch.from_numpy(subspace.y.copy()).to(device)[:, None]
        cube = torch.tensor([[0.0], [1.0]], dtype=torch.double, device=device).repeat(1, subspace.dimension)
        model = SingleTaskGP(inputs, values)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
            surface = LogExpectedImprovement(model, best_f=values.max())
            around = {"sample_around_best": True}
            x, _ = optimize_acqf(surface, bounds=cube, q=1, num_restarts=4, raw_samples=512, options=around)
        chosen: Array = x.detach().cpu().numpy()
        return chosen


def botorch(problem: problems.Problem, seed: int) -> loop.Search:
    """BoTorch in the loop of `bo-dsp`: the same initial points, one model of all variables."""
    import torch

    torch.manual_seed(seed)
    opt = loop.optimizer(problem, "bo-dsp", seed=seed)
    assert isinstance(opt._engine, SubspaceEngine)
    opt._engine.solver = BotorchSolver(Options())
    return opt


@dataclass(eq=False)
class SmacPoint:
    """A point to evaluate, and what SMAC3 calls it; all variables are moved."""

    number: int
    x: Array
    handle: Any
    variables: Indices = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    iteration: int = 0
    value: float | None = None


class Smac:
    """SMAC3's facade for many variables: a random forest and log EI, after 20 Sobol points; larger is better."""

    def __init__(self, problem: problems.Problem, seed: int, budget: int) -> None:
        from ConfigSpace import ConfigurationSpace, Float
        from smac import HyperparameterOptimizationFacade as Facade
        from smac import Scenario

        self.asked = 0
        self.names = [f"x{i:05d}" for i in range(problem.dimension)]
        bounds = problem.bounds.tolist()
        space = ConfigurationSpace(seed=seed)
        space.add([Float(name, tuple(bound)) for name, bound in zip(self.names, bounds, strict=True)])
        folder = tempfile.mkdtemp()
        scenario = Scenario(space, n_trials=budget, seed=seed, deterministic=True, output_directory=folder)
        design = Facade.get_initial_design(scenario, n_configs=20)
        self.facade = Facade(scenario, lambda config, seed=0: 0.0, initial_design=design, logging_level=False)

    def ask(self) -> list[SmacPoint]:
        info, self.asked = self.facade.ask(), self.asked + 1
        return [SmacPoint(self.asked - 1, np.array([info.config[name] for name in self.names]), info)]

    def tell(self, point: SmacPoint, value: float | None) -> None:
        from smac.runhistory.dataclasses import TrialValue

        assert value is not None
        point.value = value
        self.facade.tell(point.handle, TrialValue(cost=-value))


def search(method: str, problem: problems.Problem, seed: int, budget: int) -> Any:
    """Something to ask and tell."""
    if method == "smac":
        return Smac(problem, seed, budget)
    if method == "botorch":
        return botorch(problem, seed)
    name, _, part = method.partition(" without ")
    known = budget if name.endswith(KNOWN) else None
    options = {part: False} if part else {}
    return loop.optimizer(problem, name.removesuffix(KNOWN), seed=seed, budget=known, options=options)


def make(name: str, seed: int) -> problems.Problem:
    """The problem with its variables and optimum moved; with noise (@SD), or rounded down to plateaus (~STEP)."""
    name, _, noise = name.partition("@")
    name, _, step = name.partition("~")
    problem = pairs(seed) if name == "Pairs" else problems.make(name, shuffle=True, shift=True, seed=seed)
    problem = replace(problem, noise=float(noise or 0.0))
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


def play(job: Job, folder: Path) -> str:
    """One run, stored; in words."""
    problem, true = make(job.problem, job.seed), list[float]()
    smooth = problem.function

    def function(x: Array) -> float:
        true.append(float(smooth(x)))
        return true[-1]

    opponent = search(job.case.method, problem, job.seed + 1000, job.budget)
    if job.variation:
        opponent.enqueue([problem.bounds.mean(axis=1)])
    record = Record(Setting(job.problem, job.case.method, job.seed, job.budget), extra={"true": true})
    follow(replace(problem, function=function), opponent, record)
    Store(folder).save(job, record.whole(), problem.direction, problem.optimum)
    return str(job)


def finish(wanted: Sequence[Job], store: Store, workers: int) -> None:
    """Do every job that is not stored. Processes are spawned: a forked one cannot use an accelerator."""
    missing = [job for job in wanted if job not in store]
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=spawn) as pool:
        futures = [pool.submit(play, job, store.folder) for job in missing]
        for count, future in enumerate(as_completed(futures), 1):
            print(f"{count}/{len(missing)} {future.result()}", flush=True)


def rows(store: Store) -> Iterator[dict[str, Any]]:
    """What the tables need of every run that is stored."""
    for job, stored in store.every():
        sign = 1.0 if stored.direction == "maximize" else -1.0
        best = sign * np.maximum.accumulate(sign * np.array(stored.series("true")))
        yield {
            "problem": job.problem,
            "method": job.case.method,
            "budget": job.budget,
            "centre": bool(job.variation),
            "at": {str(n): float(best[n - 1]) for n in POINTS if n <= job.budget},
            "seconds": stored.record["cpu_seconds"] / job.budget,
        }


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
    parser.add_argument("--results", type=Path, default=Path("results/peers"), help="folder of the finished runs")
    parser.add_argument("--table", type=Path, help="write the table there, below the line <!-- table -->")
    parser.add_argument("--readme", type=Path, help="write the headline table there, between <!-- peers --> marks")
    arguments = parser.parse_args()
    variation = {"centre": True} if arguments.centre else {}
    wanted = [
        Job(problem, Case(method), seed, arguments.budget, variation)
        for seed in range(arguments.seeds)
        for problem in arguments.problems
        for method in arguments.methods
    ]
    store = Store(arguments.results, print)
    with store.claimed():
        finish(wanted, store, arguments.workers)
    stored = list(rows(store))
    print(table(stored))
    if arguments.table is not None:
        text = arguments.table.read_text().partition("<!-- table -->")[0]
        arguments.table.write_text(text + "<!-- table -->\n\n" + table(stored) + "\n")
    if arguments.readme is not None:
        before, rest = arguments.readme.read_text().split("<!-- peers -->")
        after = rest.split("<!-- /peers -->")[1]
        arguments.readme.write_text(f"{before}<!-- peers -->\n{headline(stored)}\n<!-- /peers -->{after}")


if __name__ == "__main__":
    main()
