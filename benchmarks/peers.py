"""Values: our methods beside other libraries, on one protocol.

    python benchmarks/peers.py [--problems NAME ...] [--methods NAME ...] [--seeds 0-9] [--budget 200] [--workers 2]
                               [--centre] [--results results/peers]
    python benchmarks/peers.py coco [--suite bbob-largescale] [--dimensions 40,80] [--functions 1-24]
                               [--instances 11-13] [--methods NAME ...] [--budget 200] [--workers 2]
                               [--results results/coco] [--figure STEM]

Active variables at random positions, optima at random places (both from the problem's seed s, the method's seed is s +
1000), one thread a process. The best TRUE value after 50, 100, 200 and 600 evaluations, where the search may see a
noisy one (NAME@SD) or one on plateaus (NAME~STEP), or the optimum is moved by up to a share of the box alone
(NAME^SHARE), with standard error and worst, and processor seconds an evaluation.
Where it sees a noisy one, a second table has the true value of the point recommended by then, which is what a user
gets: that of best expected value for our methods and those that run inside ours, the luckiest one for others.
`--centre` gives every method the centre of the cube as its first point: on several test functions that point alone is
better than anything a good method finds in a hundred evaluations, so without it nobody is given that gift. `--batch`
asks for so many points at once, and tells their values together; it belongs into a folder of results of its own. Every
finished run is stored at once and never repeated; the table is of all runs stored. "auto without audit" leaves out
that part; "auto with budget" is told the budget, as `minimize` does. Beside our methods there are `pycma` (from a
random point) and "pycma from centre", `nevergrad` (NGOpt, which is told the budget), `botorch` (on an accelerator
with BOTORCH_DEVICE=cuda) and `smac` (SMAC3); these two need minutes a run. `cobyqa` is SciPy's and `lq-cma-es` pycma's
with a surrogate; both begin at the centre and take one point at a time. Ax is not here because its default is
BoTorch's model, which is; HEBO because its requirements do not build any more.

`coco` runs every function of a suite of COCO's once for each instance, which is the run's seed too, and shows ranks: of
all stored runs of these methods on these instances, a table for each dimension and budget, of the problems that all
methods have run. A method whose library is not installed is left out. Of bbob-noisy, the true values of the recommended
points are ranked. Tables of pages are made of the stored runs by tables.py.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import importlib.util
import itertools
import math
import multiprocessing
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import mixed
import native
import outside
import rows
import suites
import tables
from mctsvs.bench import problems
from mctsvs.bench.algorithms import ConfiguredMethod
from mctsvs.bench.problems import coco
from mctsvs.bench.record import RunRecord, RunSettings, follow, make_optimizer
from mctsvs.bench.run_store import Job, RunStore
from mctsvs.methods import registry
from mctsvs.utils.validation import Array
from rows import Run

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
METHODS = ("auto", "mcts-vs-bo", "bo-dsp", "turbo", "baxus", "saas", "optuna-tpe", "cma-es", "random")
POINTS = (50, 100, 200, 600)
NEEDS = {**outside.NEEDS, **native.NEEDS}
SUITES = ("bbob", "bbob-largescale", "bbob-mixint", "bbob-noisy")  # those whose value alone says who is ahead
SUITE_POINTS = (20, 50, 100, 200, 500, 1000, 2000)
KNOWN = " with budget"  # after a method's name: it is told how many evaluations there will be


def search(method: str, problem: problems.Problem, seed: int, budget: int, batch: int = 1) -> Any:
    """Something to ask and tell."""
    if method in outside.NEEDS:
        return outside.search(method, problem, seed, budget, batch)
    if method in native.NEEDS:
        return native.search(method, problem, seed, budget)
    name, _, part = method.partition(" without ")
    known = budget if name.endswith(KNOWN) else None
    options = {part: False} if part else {}
    return make_optimizer(problem, name.removesuffix(KNOWN), seed=seed, budget=known, options=options)


def make(name: str, seed: int) -> problems.Problem:
    """The problem with its variables and optimum moved (^SHARE: a little); with noise (@SD), or on plateaus (~STEP)."""
    name, _, noise = name.partition("@")
    name, _, step = name.partition("~")
    name, _, reach = name.partition("^")
    moved = not name.startswith("bbob")  # COCO's instances are moved by themselves
    shift = float(reach) if reach else moved
    own: dict[str, Any] = {
        "Pairs": pairs,
        "Mixed100": mixed.make,
        "Conditional100": partial(mixed.make, conditional=True),
    }
    problem = own[name](seed) if name in own else problems.make(name, shuffle=moved, shift=shift, seed=seed)
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
    problem, true, points = make(job.problem, job.seed), list[float](), list[Array]()
    noisy, chosen = problem.noise > 0.0 or job.problem.startswith("bbob-noisy"), [math.nan] * job.budget
    smooth = problem.function
    batch = int(job.variation.get("batch", 1))
    opponent = search(job.case.method, problem, job.seed + 1000, job.budget, batch)

    def look() -> None:
        """Not on the clock of the method, between two of its evaluations."""
        if noisy and len(points) in POINTS:
            chosen[len(points) - 1] = recommended(opponent, record.series.values, problem.direction)

    def function(x: Array) -> float:
        look()
        points.append(x)
        true.append(float(smooth(x)))
        return true[-1]

    if job.variation.get("centre"):
        opponent.enqueue([problem.bounds.mean(axis=1)])
    extra = {"true": true} | ({"recommended": chosen} if noisy else {})
    record = RunRecord(RunSettings(job.problem, job.case.method, job.seed, job.budget), extra=extra)
    follow(replace(problem, function=function), opponent, record, batch=batch)
    look()
    if isinstance(problem, coco.CocoProblem) and noisy:  # only now: it uses COCO's one stream of noise
        true[:] = [problem.instance.noiseless(x) for x in points]
    RunStore(folder).save(job, record, problem.direction, problem.optimum)
    return str(job)


def recommended(opponent: Any, values: Sequence[float], direction: str) -> int:
    """The number of the evaluation whose point a user would take."""
    if hasattr(opponent, "recommend"):
        return int(opponent.recommend().trial.number)
    return int(np.argmax(values) if direction == "maximize" else np.argmin(values))


def finish(wanted: Sequence[Job], store: RunStore, workers: int) -> None:
    """Do every job that is not stored; one that fails is said, and the others go on.

    Processes are spawned: a forked one cannot use an accelerator.
    """
    missing = [job for job in wanted if job not in store]
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=spawn) as pool:
        futures = [pool.submit(play, job, store.folder) for job in missing]
        for count, future in enumerate(as_completed(futures), 1):
            failed = future.exception()
            said = future.result() if failed is None else f"failed: {type(failed).__name__}: {failed}"
            print(f"{count}/{len(missing)} {said}", flush=True)


def usable(names: Sequence[str]) -> list[str]:
    """The methods whose libraries are here; what is left out is said."""
    here = []
    for name in names:
        if name in NEEDS:
            absent = [] if importlib.util.find_spec(NEEDS[name]) else [NEEDS[name]]
        else:
            absent = registry.missing(registry.find(name.partition(" with")[0]))
        if absent:
            print(f"{name} is left out: it needs {' and '.join(absent)}")
        else:
            here.append(name)
    return here


def contests(runs: Iterable[Run], methods: Sequence[str]) -> dict[str, suites.SuiteRanking]:
    """A contest of these methods for each dimension and budget, of the problems that all of them have run."""
    groups: dict[tuple[str, int, int], list[Run]] = defaultdict(list)
    for run in sorted(runs, key=lambda run: rows.parts_of(run.problem)):
        suite, _, D, _ = rows.parts_of(run.problem)
        groups[suite, D, run.budget].append(run)
    found = {
        f"{suite}, {D} variables, {budget} evaluations": tables.contest(groups[suite, D, budget], methods)
        for suite, D, budget in sorted(groups)
    }
    return {title: one for title, one in found.items() if one.problems}


def run_suite(arguments: argparse.Namespace) -> None:
    """All functions of a suite of COCO's: the runs that are missing, then tables of all that are stored."""
    suite, names, store = arguments.suite, usable(arguments.methods), RunStore(arguments.results, print)
    wanted = [
        Job(coco.name_of(suite, f, D, i), ConfiguredMethod(method), i, arguments.budget, batches(arguments.batch))
        for D, f, i, method in itertools.product(arguments.dimensions, arguments.functions, arguments.instances, names)
    ]
    with store.locked():
        finish(wanted, store, arguments.workers)
    stored = rows.finished(store.folder, range(1, arguments.budget + 1), recommended=coco.SUITES[suite].noisy)
    found = contests((run for run in stored if belongs(run.problem, arguments)), names)
    for title, one in found.items():
        print(f"## {title}\n\n{suites.section(one, tables.group_of, SUITE_POINTS)}")
    if arguments.figure is not None:
        suites.figure(found, arguments.figure)


def belongs(problem: str, arguments: argparse.Namespace) -> bool:
    suite, _, _, instance = rows.parts_of(problem)
    return suite == arguments.suite and instance in arguments.instances


def batches(size: int) -> dict[str, Any]:
    """How a job says so."""
    return {"batch": size} if size > 1 else {}


def add_suite(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--suite", default="bbob-largescale", choices=SUITES)
    parser.add_argument("--dimensions", type=rows.whole_numbers, default=[40, 80], help="default: 40,80")
    parser.add_argument("--functions", type=rows.whole_numbers, default=range(1, 25), help="default: 1-24")
    parser.add_argument("--instances", type=rows.whole_numbers, default=[11, 12, 13], help="default: 11-13")
    parser.add_argument("--methods", nargs="*", default=[*METHODS, "pycma", "nevergrad"])
    parser.add_argument("--budget", type=int, default=200)
    parser.add_argument("--batch", type=int, default=1, help="points asked for at once")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--results", type=Path, default=Path("results/coco"), help="folder of the finished runs")
    parser.add_argument("--figure", type=Path, help="draw mean ranks there: a name without ending")
    parser.set_defaults(command=run_suite)


def run_problems(arguments: argparse.Namespace) -> None:
    """The runs that are missing, then the table of all."""
    if arguments.budget < POINTS[0]:
        raise SystemExit(f"--budget {arguments.budget}: the tables begin at {POINTS[0]} evaluations")
    variation = batches(arguments.batch) | ({"centre": True} if arguments.centre else {})
    wanted = [
        Job(problem, ConfiguredMethod(method), seed, arguments.budget, variation)
        for seed in arguments.seeds
        for problem in arguments.problems
        for method in arguments.methods
    ]
    store = RunStore(arguments.results, print)
    with store.locked():
        finish(wanted, store, arguments.workers)
    stored, chosen = (rows.finished(store.folder, POINTS, recommended=late) for late in (False, True))
    stored.sort(key=lambda run: (rows.natural(run.problem), run.method, run.budget))
    print(tables.values(stored))
    if noisy := [run for run in chosen if run.at]:
        print(f"\nTrue value of the recommended point:\n\n{tables.values(noisy)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="*", default=PROBLEMS)
    parser.add_argument("--methods", nargs="*", default=METHODS)
    parser.add_argument("--seeds", type=rows.whole_numbers, default=range(10), help="default: 0-9")
    parser.add_argument("--budget", type=int, default=200)
    parser.add_argument("--batch", type=int, default=1, help="points asked for at once")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--centre", action="store_true")
    parser.add_argument("--results", type=Path, default=Path("results/peers"), help="folder of the finished runs")
    parser.set_defaults(command=run_problems)
    add_suite(parser.add_subparsers(metavar="coco").add_parser("coco", help="a suite of COCO's"))
    arguments = parser.parse_args()
    arguments.command(arguments)


if __name__ == "__main__":
    main()
