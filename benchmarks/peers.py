"""Values: our methods beside other libraries, on one protocol.

    python benchmarks/peers.py [--problems NAME ...] [--methods NAME ...] [--seeds 0-9] [--budget 200] [--workers 2]
                               [--centre] [--results results/peers] [--table docs/results/peers.md]
                               [--readme README.md]
    python benchmarks/peers.py coco [--suite bbob-largescale] [--dimensions 40,80] [--functions 1-24]
                               [--instances 11-13] [--methods NAME ...] [--budget 200] [--workers 2]
                               [--results results/coco] [--page docs/results/coco.md]

Active variables at random positions, optima at random places (both from the problem's seed s, the method's seed is s +
1000), one thread a process. The best TRUE value after 50, 100, 200 and 600 evaluations, where the search may see a
noisy one (NAME@SD) or one on plateaus (NAME~STEP), or the optimum is moved by up to a share of the box alone
(NAME^SHARE), with standard error and worst, and processor seconds an evaluation.
Where it sees a noisy one, a second table has the true value of the point recommended by then, which is what a user
gets: that of best expected value for our methods and those that run inside ours, the luckiest one for others.
`--centre` gives every method the centre of the cube as its first point: on several test functions that point alone is
better than anything a good method finds in a hundred evaluations, so without it nobody is given that gift. Every
finished run is stored at once and never repeated; the table is of all runs stored. "mcts-vs without audit" leaves out
that part; "mcts-vs with budget" is told the budget, as `minimize` does. Beside our methods there are `pycma` (from a
random point) and "pycma from centre", `nevergrad` (NGOpt, which is told the budget), `botorch` (on an accelerator
with BOTORCH_DEVICE=cuda) and `smac` (SMAC3); the last two need minutes a run. Ax is not here because its default is
BoTorch's model, which is; HEBO because its requirements do not build any more.

`coco` runs every function of a suite of COCO's once for each instance, which is the run's seed too, and shows ranks: of
all stored runs of these methods on these instances, a table for each dimension and budget, of the problems that all
methods have run. A method whose library is not installed is left out. Of bbob-noisy, the true values of the recommended
points are ranked.
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
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import mixed
import native
import outside
from mctsvs import methods, problems
from mctsvs.common import Array
from mctsvs.lab import loop, suites
from mctsvs.lab.cases import Case
from mctsvs.lab.run import Record, Setting, follow
from mctsvs.lab.store import Job, Store
from mctsvs.problems import coco

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
NEEDS = {**outside.NEEDS, **native.NEEDS}
SUITES = ("bbob", "bbob-largescale", "bbob-mixint", "bbob-noisy")  # those whose value alone says who is ahead
SUITE_POINTS = (50, 100, 200, 400)
KNOWN = " with budget"  # after a method's name: it is told how many evaluations there will be


def search(method: str, problem: problems.Problem, seed: int, budget: int) -> Any:
    """Something to ask and tell."""
    if method in outside.NEEDS:
        return outside.search(method, problem, seed, budget)
    if method in native.NEEDS:
        return native.search(method, problem, seed, budget)
    name, _, part = method.partition(" without ")
    known = budget if name.endswith(KNOWN) else None
    options = {part: False} if part else {}
    return loop.optimizer(problem, name.removesuffix(KNOWN), seed=seed, budget=known, options=options)


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
    opponent = search(job.case.method, problem, job.seed + 1000, job.budget)

    def look() -> None:
        """Not on the clock of the method, between two of its evaluations."""
        if noisy and len(points) in POINTS:
            chosen[len(points) - 1] = recommended(opponent, record.series.values, problem.direction)

    def function(x: Array) -> float:
        look()
        points.append(x)
        true.append(float(smooth(x)))
        return true[-1]

    if job.variation:
        opponent.enqueue([problem.bounds.mean(axis=1)])
    extra = {"true": true} | ({"recommended": chosen} if noisy else {})
    record = Record(Setting(job.problem, job.case.method, job.seed, job.budget), extra=extra)
    follow(replace(problem, function=function), opponent, record)
    look()
    if isinstance(problem, coco.CocoProblem) and noisy:  # only now: it uses COCO's one stream of noise
        true[:] = [problem.instance.noiseless(x) for x in points]
    Store(folder).save(job, record.whole(), problem.direction, problem.optimum)
    return str(job)


def recommended(opponent: Any, values: Sequence[float], direction: str) -> int:
    """The number of the evaluation whose point a user would take."""
    if hasattr(opponent, "recommend"):
        return int(opponent.recommend().trial.number)
    return int(np.argmax(values) if direction == "maximize" else np.argmin(values))


def finish(wanted: Sequence[Job], store: Store, workers: int) -> None:
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
            "recommended": true_of_recommended(stored),
            "seconds": stored.record["cpu_seconds"] / job.budget,
        }


def true_of_recommended(stored: Any) -> dict[str, float]:
    """By number of evaluations; empty for a run without noise."""
    true, rows = stored.series("true"), stored.series("recommended")
    return {str(n): true[int(row)] for n, row in enumerate(rows, 1) if not math.isnan(row)}


def recommended_table(rows: list[dict[str, Any]]) -> str:
    """Markdown, of the noisy problems."""
    noisy = [{**row, "at": row["recommended"]} for row in rows if row["recommended"]]
    return f"True value of the recommended point:\n\n{table(noisy)}\n" if noisy else ""


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


def usable(names: Sequence[str]) -> list[str]:
    """The methods whose libraries are here; what is left out is said."""
    here = []
    for name in names:
        if name in NEEDS:
            absent = [] if importlib.util.find_spec(NEEDS[name]) else [NEEDS[name]]
        else:
            absent = methods.missing(methods.find(name.partition(" with")[0]))
        if absent:
            print(f"{name} is left out: it needs {' and '.join(absent)}")
        else:
            here.append(name)
    return here


def whole_numbers(text: str) -> list[int]:
    """2,5-7 is 2, 5, 6, 7."""
    ends = [(part.partition("-")[0], part.rpartition("-")[2]) for part in text.split(",")]
    return [number for first, last in ends for number in range(int(first), int(last) + 1)]


def contests(store: Store, arguments: argparse.Namespace, names: Sequence[str]) -> dict[str, suites.Contest]:
    """What is stored of these methods on these instances of a suite: a contest for each dimension and budget."""
    loss: dict[tuple[int, int], dict[tuple[str, str], Array]] = defaultdict(dict)
    for job, stored in sorted(store.every(), key=lambda run: parts_of(run[0].problem)):
        suite, _, D, instance = parts_of(job.problem)
        if suite == arguments.suite and instance in arguments.instances:
            above = np.array(stored.series("trace")) - (stored.optimum or 0.0)
            for n, value in true_of_recommended(stored).items():  # of a noisy suite
                above[int(n) - 1 :] = value
            loss[D, job.budget][job.problem, job.case.method] = above
    known = coco.SUITES[arguments.suite].known
    return {
        f"{arguments.suite}, {D} variables, {budget} evaluations": suites.Contest.of(loss[D, budget], names, known)
        for D, budget in sorted(loss)
    }


def run_suite(arguments: argparse.Namespace) -> None:
    """All functions of a suite of COCO's: the runs that are missing, then tables of all that are stored."""
    suite, names, store = arguments.suite, usable(arguments.methods), Store(arguments.results, print)
    wanted = [
        Job(coco.name_of(suite, f, D, i), Case(method), i, arguments.budget)
        for D, f, i, method in itertools.product(arguments.dimensions, arguments.functions, arguments.instances, names)
    ]
    with store.claimed():
        finish(wanted, store, arguments.workers)
    found = {title: one for title, one in contests(store, arguments, names).items() if one.problems}
    parts = [f"## {title}\n\n{suites.section(one, group_of, SUITE_POINTS)}" for title, one in found.items()]
    print("\n".join(parts))
    if arguments.page is not None:
        stem = arguments.page.with_suffix("")
        suites.figure(found, stem)
        text = arguments.page.read_text().partition("<!-- table -->")[0]
        shown = f"![Mean rank against evaluations]({stem.name}.png)\n\n"
        arguments.page.write_text(text + "<!-- table -->\n\n" + shown + "\n".join(parts))


def group_of(problem: str) -> str:
    """The name of COCO's group of functions that a problem of a suite is in."""
    groups = coco.NOISY_GROUPS if problem.startswith("bbob-noisy") else coco.GROUPS
    return next(group for group, functions in groups.items() if parts_of(problem)[1] in functions)


def parts_of(problem: str) -> tuple[str, int, int, int]:
    """Suite, function, dimension and instance."""
    name = next(filter(None, (family.pattern.fullmatch(problem) for family in coco.FAMILIES)), None)
    assert name is not None
    return name["suite"], int(name["f"]), int(name["D"]), int(name["i"] or 1)


def add_suite(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--suite", default="bbob-largescale", choices=SUITES)
    parser.add_argument("--dimensions", type=whole_numbers, default=[40, 80], help="default: 40,80")
    parser.add_argument("--functions", type=whole_numbers, default=range(1, 25), help="default: 1-24")
    parser.add_argument("--instances", type=whole_numbers, default=[11, 12, 13], help="default: 11-13")
    parser.add_argument("--methods", nargs="*", default=[*METHODS, "pycma", "nevergrad"])
    parser.add_argument("--budget", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--results", type=Path, default=Path("results/coco"), help="folder of the finished runs")
    parser.add_argument("--page", type=Path, help="write tables below the line <!-- table -->, the figure beside it")
    parser.set_defaults(command=run_suite)


def run_problems(arguments: argparse.Namespace) -> None:
    """The runs that are missing, then the table of all."""
    if arguments.budget < POINTS[0]:
        raise SystemExit(f"--budget {arguments.budget}: the tables begin at {POINTS[0]} evaluations")
    variation = {"centre": True} if arguments.centre else {}
    wanted = [
        Job(problem, Case(method), seed, arguments.budget, variation)
        for seed in arguments.seeds
        for problem in arguments.problems
        for method in arguments.methods
    ]
    store = Store(arguments.results, print)
    with store.claimed():
        finish(wanted, store, arguments.workers)
    stored = list(rows(store))
    tables = f"{table(stored)}\n\n{recommended_table(stored)}"
    print(tables)
    if arguments.table is not None:
        text = arguments.table.read_text().partition("<!-- table -->")[0]
        arguments.table.write_text(text + "<!-- table -->\n\n" + tables)
    if arguments.readme is not None:
        before, rest = arguments.readme.read_text().split("<!-- peers -->")
        after = rest.split("<!-- /peers -->")[1]
        arguments.readme.write_text(f"{before}<!-- peers -->\n{headline(stored)}\n<!-- /peers -->{after}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="*", default=PROBLEMS)
    parser.add_argument("--methods", nargs="*", default=METHODS)
    parser.add_argument("--seeds", type=whole_numbers, default=range(10), help="default: 0-9")
    parser.add_argument("--budget", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--centre", action="store_true")
    parser.add_argument("--results", type=Path, default=Path("results/peers"), help="folder of the finished runs")
    parser.add_argument("--table", type=Path, help="write the table there, below the line <!-- table -->")
    parser.add_argument("--readme", type=Path, help="write the headline table there, between <!-- peers --> marks")
    parser.set_defaults(command=run_problems)
    add_suite(parser.add_subparsers(metavar="coco").add_parser("coco", help="a suite of COCO's"))
    arguments = parser.parse_args()
    arguments.command(arguments)


if __name__ == "__main__":
    main()
