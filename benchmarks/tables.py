"""The tables of results pages, made of files of runs: every cell can be computed again without the runs themselves.

    python benchmarks/tables.py collect STORE ... --to docs/results/tables/NAME.csv [--at 50,100,200]
           [--problems PATTERN ...] [--methods NAME ...] [--seeds 0-9] [--recommended] [--wall] [--add]
    python benchmarks/tables.py write [PAGE ...] [--check]
    python benchmarks/tables.py print "ranks coco.csv D=40 groups"
    python benchmarks/tables.py headline README.md

`collect` makes a file anew out of finished runs (rows.py says what is in a line; `--recommended`: true values of
recommended points; `--wall`: milliseconds of the wall clock, as `mctsvs bench compare` shows). With `--methods`, lines
are in that order. Of several stores the last that has a run counts; with `--add` the file itself is the first.

`print` shows one table, `headline` writes the README's between its marks.

In a page a table stands between `<!-- table: KIND NAME.csv OPTIONS -->` and `<!-- /table -->`; `write` computes all of
them, `--check` only names the first that differs. OPTIONS choose runs: `problem=NAME` or several with commas between,
`D=40`. KIND is one of

    values      a line for each problem and method; larger is better
    compare     one problem, with marks of significance, as `mctsvs bench compare` has it; larger is better
    parts       a line for each method, a column for each problem: the last two points, and whether leaving out a
                part is worse or better than the file's first method, the whole; larger is better
    regret      one problem, a line for each method
    ranks       a suite: mean ranks; with the option `groups` also by group of functions
    lead        a suite: mean rank of the file's first method and the next best, a line for each number of variables
    feasible    a suite with constraints: mean ranks, and on how many problems there is a feasible value
    first       one problem with constraints: when there is a feasible value, and the best one
    limits      TuRBO with exact draws and at the published limit, in 600 evaluations
    draws       what the limit does to draws of one model
    entries     the experiments of the paper, from the numbers in docs/results/paper; it names no file
"""

from __future__ import annotations

import argparse
import csv
import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np

import rows
import sampling
import suites
from mctsvs.bench import comparison, problems
from mctsvs.bench.algorithms import ConfiguredMethod
from mctsvs.bench.comparison import markdown_table
from mctsvs.bench.paper.experiments import ENTRIES
from mctsvs.bench.paper.page import Page
from mctsvs.bench.problems import coco
from mctsvs.bench.run_store import Runs
from mctsvs.bench.stats import Summary, summary
from rows import Run, by_dimension, by_method, parts_of, points_of

PAGES = Path(__file__).parents[1] / "docs" / "results"
BLOCK = re.compile(r"<!-- table: ([^>]*) -->\n(.*?)<!-- /table -->", re.DOTALL)


def ms(runs: Sequence[Run]) -> str:
    return f"{np.mean([run.ms for run in runs]):.0f}"


def values(runs: Sequence[Run]) -> str:
    points, groups = points_of(runs), dict[tuple[str, str, int], list[Run]]()
    for run in runs:
        groups.setdefault((run.problem, run.method, run.budget), []).append(run)
    lines = []
    for (problem, method, _), group in groups.items():
        found = [summary([run.at[n] for run in group if n in run.at]) for n in points]
        cells = [f"{one.mean:.4g}" + f" ± {one.error:.2g}" * (one.n > 1) if one.n else "" for one in found]
        last = max(group[0].at)
        worst = f"{min(run.at[last] for run in group):.4g}" + ("" if last == points[-1] else f" at {last}")
        lines.append([problem, method, str(len(group)), *cells, worst, ms(group)])
    head = ["problem", "method", "seeds", *(f"at {n}" for n in points), f"worst at {points[-1]}", "ms"]
    return markdown_table(head, lines)


def parts(runs: Sequence[Run]) -> str:
    points, methods = points_of(runs)[-2:], by_method(runs)
    problems = list(dict.fromkeys(run.problem for run in runs))
    whole = {(run.problem, run.seed): run for run in next(iter(methods.values()))}
    lines = []
    for method, group in methods.items():
        cells = []
        for problem in problems:
            own = [run for run in group if run.problem == problem]
            found = [summary([run.at[n] for run in own]) for n in points]
            gains = [summary([run.at[n] - whole[problem, run.seed].at[n] for run in own]) for n in points]
            both = zip(found, gains, strict=True)
            cells.append("; ".join(f"{one.mean:.4g}{verdict(gain)}" for one, gain in both if one.n))
        lines.append([method, *cells])
    return markdown_table([f"at {points[0]}; {points[1]}", *problems], lines)


def verdict(gain: Summary) -> str:
    """Of differences paired by seed: a mark where their mean is twice its standard error or more."""
    clear = gain.n > 1 and abs(gain.mean) >= 2.0 * gain.error and gain.mean != 0.0
    return "" if not clear else " (better)" if gain.mean > 0.0 else " (worse)"


def compare(runs: Sequence[Run]) -> str:
    def side_by_side(group: Sequence[Run]) -> Runs:
        best = np.array([[list(run.at.values())[-1]] for run in group])
        seconds = np.array([[run.ms * run.budget / 1e3] for run in group])
        seeds, recall = tuple(run.seed for run in group), np.full(len(group), np.nan)
        return Runs(seeds=seeds, best=best, thinking=seconds, elapsed=seconds, recall=recall, cpu=seconds[:, 0])

    own = {ConfiguredMethod(method): side_by_side(group) for method, group in by_method(runs).items()}
    return comparison.table(own, next(iter(own.values())))


def regret(runs: Sequence[Run]) -> str:
    points, lines = points_of(runs), []
    for method, group in by_method(runs).items():
        found = [summary([run.at[n] for run in group]) for n in points]
        cells = [f"{one.mean:.3f} ± {one.error:.3f}" for one in found]
        lines.append((found[-1].mean, [method, str(len(group)), *cells, ms(group)]))
    head = ["method", "runs", *(f"regret at {n}" for n in points), "ms"]
    return markdown_table(head, [line for _, line in sorted(lines)])


def contest(runs: Sequence[Run], methods: Sequence[str] = ()) -> suites.SuiteRanking:
    """Of runs of one suite, with equally many variables and evaluations; default: of all methods."""
    losses = {}
    for run in runs:
        trace = losses[run.problem, run.method] = np.full(run.budget, np.nan)
        for n, value in run.at.items():
            trace[n - 1 :] = value
    suite = parts_of(runs[0].problem)[0]
    return suites.SuiteRanking.of(losses, methods or list(by_method(runs)), coco.SUITES[suite].known)


def group_of(problem: str) -> str:
    """The name of COCO's group of functions that a problem of a suite is in."""
    groups = coco.NOISY_GROUPS if problem.startswith("bbob-noisy") else coco.GROUPS
    return next(group for group, functions in groups.items() if parts_of(problem)[1] in functions)


def ranks(runs: Sequence[Run], *, groups: bool = False) -> str:
    found, points = contest(runs), points_of(runs)
    return suites.section(found, group_of, points) if groups else suites.overall(found, points)


def lead(runs: Sequence[Run]) -> str:
    points, lines = points_of(runs), []
    for dimension, group in by_dimension(runs).items():
        found, cells = contest(group), []
        for n in points:
            first, *others = found.mean_ranks(n)
            means = {name: f"{rank.mean:.2f}" for name, rank in zip(found.methods[1:], others, strict=True)}
            least = min(means.values(), key=float)
            best = ", ".join(f"{name} {mean}" for name, mean in means.items() if mean == least)
            cells.append(f"{first.mean:.2f} ± {first.error:.2f} ({best})")
        lines.append([str(dimension), *cells])
    return markdown_table(["variables", *(f"after {n}" for n in points)], lines)


def feasible(runs: Sequence[Run]) -> str:
    found, points, methods = contest(runs), points_of(runs), by_method(runs)
    there = np.isfinite(found.loss).sum(axis=0)
    mean_ranks = [found.mean_ranks(n) for n in points]
    lines = []
    for k, (method, group) in enumerate(methods.items()):
        cells = [f"{of[k].mean:.2f} | {there[k, n - 1]}" for n, of in zip(points, mean_ranks, strict=True)]
        lines.append((mean_ranks[-1][k].mean, [method, *cells, ms(group)]))
    head = ["method", *(f"{what} at {n}" for n in points for what in ("rank", "feasible")), "ms"]
    return markdown_table(head, [line for _, line in sorted(lines)])


def first(runs: Sequence[Run]) -> str:
    points, lines = points_of(runs), []
    for method, group in by_method(runs).items():
        firsts, cells = [run.feasible for run in group], []
        for n in points:
            found = summary([run.at[n] for run in group])
            known = found.n == len(group)
            cells.append(f"{found.mean:.2f} ± {found.error:.2f}" if known else f"{found.n} of {len(group)} feasible")
        latest = "not in all" if np.isnan(firsts).any() else f"{max(firsts):.0f}"
        lines.append([method, str(len(group)), latest, *cells, ms(group)])
    head = ["method", "seeds", "first feasible, worst seed", *(f"best at {n}" for n in points), "ms"]
    return markdown_table(head, lines)


def limits(path: Path) -> str:
    with path.open(newline="") as file:
        return sampling.tables(list(csv.DictReader(file)), path.parents[1] / "paper")


def draws(path: Path) -> str:
    with path.open(newline="") as file:
        header, *lines = csv.reader(file)
    return markdown_table([name.replace("_", " ") for name in header], lines)


def entries(folder: Path) -> str:
    """How many of our values are better, level with and worse than the authors', and Kendall's tau of the orders."""
    lines = []
    for name, entry in ENTRIES.items():
        page = Page.read(entry, folder / "paper")
        cells = []
        for numbers in (page.library, page.paper):
            verdict = page.verdict(numbers) if numbers and entry.measure.judged else None
            cells.append(f"{verdict.better} / {verdict.level} / {verdict.worse}" if verdict else "")
            cells.append(verdict.tau if verdict else "")
        where = entry.about.place.partition(" (")[0]
        lines.append([f"`{name}`", where, *cells, f"[csv](paper/{name}.csv)"])
    head = ["experiment", "in the paper", "library's settings", "tau", "paper's settings", "tau", "numbers"]
    return markdown_table(head, lines)


KINDS: dict[str, Callable[..., str]] = {
    kind.__name__: kind for kind in (values, parts, compare, regret, ranks, lead, feasible, first)
}
OF_FILES: dict[str, Callable[[Path], str]] = {"limits": limits, "draws": draws}


def computed(mark: str, folder: Path) -> str:
    """The table that a mark asks for."""
    kind, *words = mark.split()
    if kind == "entries":
        return f"\n{entries(folder)}\n\n"
    path, *options = [folder / "tables" / words[0], *words[1:]]
    if kind in OF_FILES:
        return f"\n{OF_FILES[kind](path)}\n\n"
    runs, flags = rows.read(path), {}
    for option in options:
        key, _, value = str(option).partition("=")
        if key in ("problem", "method"):
            runs = [run for run in runs if getattr(run, key) in value.split(",")]
        elif key == "D":
            runs = by_dimension(runs)[int(value)]
        else:
            flags[key] = True
    return f"\n{KINDS[kind](runs, **flags).strip()}\n\n"


HEADLINE = {
    "Hartmann6_500": "fresh.csv",
    "Levy10_300": "fresh.csv",
    "Ackley60": "fresh.csv",
    "Hartmann6_500@0.1": "noise.csv",
}
LISTED = ("auto", "bo-dsp", "cma-es", "baxus", "turbo", "saas", "random")
PEERS = re.compile(r"<!-- peers -->\n(.*?)<!-- /peers -->", re.DOTALL)


def headline(folder: Path) -> str:
    """The README's table: mean best value after 200 evaluations."""
    runs = {
        problem: [r for r in rows.read(folder / file) if r.problem == problem] for problem, file in HEADLINE.items()
    }
    lines = []
    for method in LISTED:
        groups = [by_method(own).get(method, []) for own in runs.values()]
        cells = [f"{summary([run.at[200] for run in group]).mean:.4g}" if group else "" for group in groups]
        lines.append([f"**{method}** (default)" if method == "auto" else method, *cells])
    best = [f"{problems.make(name.partition('@')[0]).optimum:.4g}" for name in runs]
    return markdown_table(["method", *runs], [*lines, ["optimum", *best]])


def write_headline(arguments: argparse.Namespace) -> None:
    text = arguments.page.read_text(encoding="utf-8")
    made = f"<!-- peers -->\n{headline(PAGES / 'tables')}\n<!-- /peers -->"
    arguments.page.write_text(PEERS.sub(lambda _: made, text), encoding="utf-8")


def differing(page: Path) -> list[str]:
    """The marks of tables that are not what their runs give."""
    text = page.read_text(encoding="utf-8")
    return [found[1] for found in BLOCK.finditer(text) if found[2] != computed(found[1], page.parent)]


def write(arguments: argparse.Namespace) -> None:
    for page in arguments.pages or sorted(PAGES.glob("*.md")):
        if arguments.check and (wrong := differing(page)):
            raise SystemExit(f"{page.name}: {wrong[0]} is not what its runs give")
        if not arguments.check:
            text = page.read_text(encoding="utf-8")

            def filled(found: re.Match[str], folder: Path = page.parent) -> str:
                return f"<!-- table: {found[1]} -->\n{computed(found[1], folder)}<!-- /table -->"

            page.write_text(BLOCK.sub(filled, text), encoding="utf-8")


def collect(arguments: argparse.Namespace) -> None:
    chosen = {"recommended": arguments.recommended, "wall": arguments.wall}
    stored = [
        run
        for store in arguments.stores
        for run in rows.finished(store, arguments.at, **chosen)
        if any(fnmatchcase(run.problem, pattern) for pattern in arguments.problems)
        and (not arguments.methods or run.method in arguments.methods)
        and (not arguments.seeds or run.seed in arguments.seeds)
    ]
    before = rows.read(arguments.to) if arguments.add and arguments.to.exists() else []
    if before and points_of(before) != sorted(arguments.at):
        raise SystemExit(f"{arguments.to} has values at {points_of(before)}: give them as --at")
    kept = {(run.problem, run.method, run.budget, run.seed): run for run in (*before, *stored)}
    rest = by_method(before) if arguments.add else sorted(by_method(stored))
    order = list(dict.fromkeys((*arguments.methods, *rest, *by_method(stored))))

    def place(run: Run) -> tuple[object, ...]:
        return rows.natural(run.problem), order.index(run.method), run.budget, run.seed

    rows.write(sorted(kept.values(), key=place), arguments.to)
    print(f"{len(kept)} runs: {arguments.to}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("collect", help="make a file of runs")
    one.add_argument("stores", nargs="+", type=Path, metavar="STORE", help="folder of finished runs")
    one.add_argument("--to", type=Path, required=True, metavar="FILE")
    one.add_argument("--add", action="store_true", help="keep the runs in FILE that no store has done again")
    one.add_argument("--at", type=rows.whole_numbers, default=[50, 100, 200], help="evaluations, default: 50,100,200")
    one.add_argument("--problems", nargs="+", default=["*"], metavar="PATTERN")
    one.add_argument("--methods", nargs="+", default=[])
    one.add_argument("--seeds", type=rows.whole_numbers, default=[])
    one.add_argument("--recommended", action="store_true")
    one.add_argument("--wall", action="store_true")
    one.set_defaults(command=collect)
    other = commands.add_parser("write", help="compute the tables of pages")
    other.add_argument("pages", nargs="*", type=Path, metavar="PAGE", help="default: all results")
    other.add_argument("--check", action="store_true", help="write nothing")
    other.set_defaults(command=write)
    shown = commands.add_parser("print", help="show one table")
    shown.add_argument("mark", help='what stands in a mark, such as "ranks coco.csv D=40 groups"')
    shown.set_defaults(command=lambda arguments: print(computed(arguments.mark, PAGES).strip()))
    readme = commands.add_parser("headline", help="write the table of the README")
    readme.add_argument("page", type=Path)
    readme.set_defaults(command=write_headline)
    arguments = parser.parse_args()
    arguments.command(arguments)


if __name__ == "__main__":
    main()
