"""The command line of the benchmark: `mctsvs bench run`, `compare`, `reproduce`, `problems` and `data`."""

from __future__ import annotations

import argparse
import functools
import re
import shlex
import sys
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from mctsvs.bench import algorithms, comparison, data_commands, figures, grid, problems, results
from mctsvs.bench.algorithms import ConfiguredMethod
from mctsvs.bench.display import display
from mctsvs.bench.paper import page, reproduce
from mctsvs.bench.paper.experiments import ENTRIES, PaperEntry
from mctsvs.bench.problems import data
from mctsvs.bench.record import paper_options
from mctsvs.bench.run_store import Job, Runs, RunStore, collect
from mctsvs.cli import run as execution
from mctsvs.cli.arguments import Parser, whole
from mctsvs.optimizer import DIRECTIONS
from mctsvs.utils import plugins
from mctsvs.utils.formatting import clock
from mctsvs.utils.validation import InputError, check_count

DEFAULT_METHODS = "auto,mcts-vs,bo-dsp,random"
MOST_SEEDS = 100_000  # more are a slip of the finger


def parser() -> argparse.ArgumentParser:
    """The commands of `mctsvs bench` and their arguments."""
    top = Parser(
        prog="mctsvs bench",
        description="Benchmark problems, comparisons of methods, and the experiments of the MCTS-VS paper.",
    )
    commands = top.add_subparsers(required=True, title="commands", metavar="COMMAND", parser_class=Parser)
    _add_run(commands)
    _add_compare(commands)
    _add_reproduce(commands)
    text = "list the benchmark problems, with what each of them needs"
    command = commands.add_parser("problems", help=text, description=f"{text.capitalize()}.")
    command.set_defaults(command=list_problems)
    data_commands.add(commands)
    return top


def examples() -> list[str]:
    """A name of each family of problems."""
    return [family.example for family in problems.families()]


def _add_run(commands: Any) -> None:
    command = commands.add_parser(
        "run",
        help="optimise a benchmark problem",
        description="Optimise a benchmark problem, and print what was found. With --study, the run is kept in a file, "
        "and mctsvs resume, show, report, watch and export take it.",
    )
    command.add_argument("problem", metavar="PROBLEM", help="a name such as Hartmann6_300 (see: mctsvs bench problems)")
    execution.add_arguments(command, budget=600)
    command.set_defaults(seed=2021)
    command.add_argument(
        "--paper",
        action="store_true",
        help="set what the paper sets for the method, such as its exploration constant and its search among candidates",
    )
    _add_data(command)
    _add_variation(command, problem_seed=0, default="%(default)s")
    command.set_defaults(command=run_problem, program=None)


def _add_variation(command: Any, problem_seed: int | None, default: str) -> None:
    """How a problem is varied; `default` says what its seed is if none is given."""
    command = command.add_argument_group("varying the problem")
    command.add_argument("--shuffle", action="store_true", help="put the variables that matter at random positions")
    command.add_argument("--shift", action="store_true", help="move the optimum to a random place")
    command.add_argument("--noise", type=float, metavar="SD", help="add noise of this standard deviation")
    command.add_argument(
        "--problem-seed",
        type=whole,
        default=problem_seed,
        metavar="S",
        help=f"seed of --shuffle and --shift; default: {default}",
    )


def _add_data(command: Any) -> None:
    help = "look for the data of problems there first (see: mctsvs bench data)"
    command.add_argument("--data", metavar="DIR", help=help)


def run_problem(arguments: argparse.Namespace) -> int:
    """`mctsvs bench run`."""
    if arguments.data is not None:
        data.set_directory(arguments.data)
    variation = {
        "shuffle": arguments.shuffle,
        "shift": arguments.shift,
        "noise": arguments.noise or 0.0,
        "seed": arguments.problem_seed,
    }
    if plugins.is_spec(arguments.problem):
        raise InputError(f"{arguments.problem!r} is an objective of your own: run it with mctsvs run")
    problem = problems.make(arguments.problem, **variation)
    problem = replace(problem, where=(*problem.where, *arguments.where))
    method, given = arguments.method, execution.options_of(arguments.set)
    options = paper_options(method, problem, given, arguments.paper)
    if arguments.paper and options == paper_options(method, problem, given):
        raise InputError(
            f"--paper changes nothing for {method!r}: the paper sets nothing for it; its method is --method mcts-vs"
        )
    return execution.execute(arguments, problem, options, variation)


def _add_compare(commands: Any) -> None:
    command = commands.add_parser(
        "compare",
        help="compare methods on problems over several seeds",
        description="Run every method on every problem with every seed, on several processes. What is finished is "
        "kept at once: the same command goes on where it was stopped.",
    )
    command.add_argument(
        "problems", nargs="+", metavar="PROBLEM", help="names such as Hartmann6_300, or file.py:function of your own"
    )
    command.add_argument(
        "--methods",
        default=DEFAULT_METHODS,
        metavar="LIST",
        help="separated by commas, with options in brackets if wanted: mcts-vs-bo[cp=0.1,k=10]; file.py:Engine is a "
        "method of your own; default: %(default)s",
    )
    command.add_argument(
        "--seeds", default="2021-2030", metavar="LIST", help="2021-2025 or 1,2,5; default: %(default)s"
    )
    command.add_argument("--budget", type=whole, default=600, metavar="N", help="evaluations; default: %(default)s")
    command.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="METHOD:NAME=VALUE",
        help="an option for every case of that method; may be repeated",
    )
    command.add_argument("--paper", action="store_true", help="every method as the paper sets it, if it does")
    command.add_argument("--reference", metavar="METHOD", help="test the others against it; default: the first")
    command.add_argument(
        "--format", choices=results.FORMATS, default="csv", help="form of the table; default: %(default)s"
    )
    command.add_argument("--by-seconds", action="store_true", help="draw against wall seconds too")
    _add_shared(command, "comparison")
    own = command.add_argument_group("an objective of your own")
    own.add_argument("--space", metavar="FILE", help="TOML file with its variables")
    own.add_argument("--direction", choices=DIRECTIONS, help="default: as the file says, else minimize")
    _add_variation(command, problem_seed=None, default="the seed of each run")
    command.set_defaults(command=stoppable(compare))


def _add_reproduce(commands: Any) -> None:
    command = commands.add_parser(
        "reproduce",
        help="reproduce tables and figures of the paper",
        description="Run the experiments of the MCTS-VS paper and write figures, numbers and pages that set them "
        "beside the paper's. What is finished is kept: the same command goes on where it was stopped.",
    )
    command.add_argument("names", nargs="*", metavar="NAME", help="entries (see --list), or all")
    command.add_argument("--list", action="store_true", help="list the entries")
    command.add_argument("--seeds", metavar="LIST", help="such as 2021-2025; default: the paper's")
    command.add_argument("--budget", type=whole, metavar="N", help="evaluations; default: the paper's")
    command.add_argument("--quick", action="store_true", help="two seeds and few evaluations: does everything run?")
    command.add_argument(
        "--paper", action="store_true", help="every method as the paper set it; numbers go to NAME-paper.csv"
    )
    command.add_argument(
        "--pages", action="store_true", help="run nothing: pages and figures again, from the numbers in the folder"
    )
    command.add_argument(
        "--only", default="", metavar="LIST", help="methods to run; numbers of the others in DIR stay as they are"
    )
    command.add_argument("--without", default="", metavar="LIST", help="methods to leave out, such as saasbo,alebo")
    command.add_argument(
        "--fewer", default="", metavar="LIST", help="seeds of slow methods, such as turbo=30,saasbo=1; default: all"
    )
    command.add_argument("--runs", type=Path, metavar="DIR", help="where finished runs are kept; default: DIR/runs")
    _add_shared(command, "reproduction")
    command.set_defaults(command=stoppable(reproduce_entries))


def _add_shared(command: Any, folder: str) -> None:
    command.add_argument(
        "--workers", type=whole, default=grid.default_workers(), metavar="N", help="runs at once; default: %(default)s"
    )
    command.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path(folder),
        metavar="DIR",
        help="folder for everything; default: %(default)s",
    )
    _add_data(command)
    command.add_argument("--quiet", action="store_true", help="no progress")


def stoppable(command: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """The command; after Ctrl-C it says what becomes of its runs."""

    @functools.wraps(command)
    def run(arguments: argparse.Namespace) -> int:
        try:
            return command(arguments)
        except KeyboardInterrupt:
            print("mctsvs: stopped; finished runs are kept, and the same command goes on", file=sys.stderr)
            return 130

    return run


def say(line: str) -> None:
    """A line that --quiet does not silence; where a display is live, it comes out above."""
    print(f"mctsvs: {line}", file=sys.stderr, flush=True)


def seeds(text: str) -> list[int]:
    """2021-2025, 1,2,5 or a mixture."""
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d{1,30})(?:-(\d{1,30}))?", part.strip(), re.ASCII)
        if match is None:
            raise InputError(f"--seeds {text!r} is no list of seeds: write 2021-2025, or 2021,2022, or a mixture")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise InputError(f"--seeds {text!r} names no seed in {part.strip()!r}: the first must not be the larger")
        if len(found) + last - first >= MOST_SEEDS:
            raise InputError(f"--seeds {text!r} names too many seeds: give {MOST_SEEDS:,} at most")
        found.extend(range(first, last + 1))
    return list(dict.fromkeys(found))


def chosen_cases(text: str, settings: Sequence[str], paper: bool) -> list[ConfiguredMethod]:
    """The cases of --methods with the options of --set."""
    found = [algorithms.parse(part) for part in algorithms.split(text)]
    if not found:
        raise InputError(f"--methods {text!r} names no method: write names separated by commas")
    for setting in settings:
        method, colon, pair = setting.partition(":")
        if not (colon and "=" in pair):
            raise InputError(f"--set {setting!r} is no option: write METHOD:NAME=VALUE, such as mcts-vs-bo:cp=0.1")
        if method not in {case.method for case in found}:
            raise InputError(f"--set {setting!r} is for {method!r}, which is not among the methods to compare")
        option = algorithms.parse(f"{method}[{pair}]").options
        found = [case.with_options(option) if case.method == method else case for case in found]
    return list(dict.fromkeys(case.with_options({}, paper) for case in found))


def chosen_reference(
    text: str, settings: Sequence[str], paper: bool, compared: Sequence[ConfiguredMethod]
) -> ConfiguredMethod:
    """The case that --reference names, as --methods would or with all its options."""
    named = algorithms.parse(text)
    own = [setting for setting in settings if setting.partition(":")[0] == named.method]
    for case in (chosen_cases(text, own, paper)[0], named):
        if case in compared:
            return case
    labels = ", ".join(case.label for case in compared)
    raise InputError(f"--reference {text!r} is not among the methods: use one of {labels}")


def compare(arguments: argparse.Namespace) -> int:
    """`mctsvs bench compare`."""
    data.set_directory(arguments.data)
    wanted_cases = chosen_cases(arguments.methods, arguments.set, arguments.paper)
    variation = {"shuffle": arguments.shuffle, "shift": arguments.shift, "noise": arguments.noise or 0.0}
    wanted_seeds = seeds(arguments.seeds)
    check_count("budget", arguments.budget)
    own = {name: value for name in ("space", "direction") if (value := getattr(arguments, name)) is not None}
    made = [problems.resolve(name, **variation, **own, seed=arguments.problem_seed or 0) for name in arguments.problems]
    reference = None
    if arguments.reference is not None:
        reference = chosen_reference(arguments.reference, arguments.set, arguments.paper, wanted_cases)
    for problem in made:
        for case in wanted_cases:
            case.check(problem)
    plain = {name: value for name, value in {**variation, **own}.items() if value}
    names = list(dict.fromkeys(problem.name for problem in made))
    jobs = grid.jobs(
        names, wanted_cases, wanted_seeds, arguments.budget, variation=plain, problem_seed=arguments.problem_seed
    )
    store = RunStore(arguments.output / "runs", say)
    results.check_table(arguments.output / f"results.{arguments.format}")
    console = Console(stderr=True, quiet=arguments.quiet)
    with store.locked():  # until everything is written: another command in this folder writes the same files
        with display(console) as listen:
            progress = grid.run_jobs(jobs, store, arguments.workers, listen)
        varied = ", ".join(f"{name}={value}" for name, value in plain.items())
        title = f"{', '.join(names)}{f' ({varied})' if varied else ''}"
        head = comparison.head(title, compare_command(arguments), store.last_day(jobs), progress.versions)
        written, text = _write(jobs, store, arguments, head, reference)
    if sys.stdout.isatty():
        from rich.markdown import Markdown

        Console().print(Markdown(text))
    elif text:
        print(text)
    print(f"{progress.done} runs done now, {progress.skipped} before; in {arguments.output}: {', '.join(written)}")
    return report(progress.failures)


def _write(
    jobs: Sequence[Job], store: RunStore, arguments: argparse.Namespace, head: str, reference: ConfiguredMethod | None
) -> tuple[list[str], str]:
    """The table, and a summary and figures of whatever is finished; the names of the files, and the summary."""
    path = arguments.output / f"results.{arguments.format}"
    results.write_table(jobs, store, path)
    every = collect(jobs, store)
    if not every:
        return [path.name], ""
    text = comparison.summary(every, reference)
    page.write(arguments.output / "summary.md", head + text)
    page.write(arguments.output / "summary.tex", comparison.latex_table(every, reference))
    results.write(arguments.output / "seeds.csv", comparison.seeds(every))
    drawn = _draw(every, arguments.output, arguments.by_seconds)
    return [path.name, "summary.md", "summary.tex", "seeds.csv", *drawn], text


def compare_command(arguments: argparse.Namespace) -> str:
    """What was typed, as far as numbers depend on it."""
    words = [
        "mctsvs",
        "bench",
        "compare",
        *arguments.problems,
        "--methods",
        arguments.methods,
        "--seeds",
        arguments.seeds,
    ]
    words += ["--budget", str(arguments.budget)]
    for setting in arguments.set:
        words += ["--set", setting]
    words += [f"--{name}" for name in ("paper", "shuffle", "shift") if getattr(arguments, name)]
    for name in ("noise", "space", "direction"):
        words += [f"--{name}", str(getattr(arguments, name))] if getattr(arguments, name) else []
    words += [] if arguments.problem_seed is None else ["--problem-seed", str(arguments.problem_seed)]
    words += [] if arguments.reference is None else ["--reference", arguments.reference]
    return shlex.join(words)


def _draw(every: Mapping[tuple[str, ConfiguredMethod], Runs], folder: Path, by_seconds: bool) -> list[str]:
    paths: list[Path] = []
    names = {"figure": False, "figure-by-seconds": True} if by_seconds else {"figure": False}
    try:
        for name, seconds in names.items():
            plots = [comparison.plot(problem, own, seconds) for problem, own in comparison.by_problem(every).items()]
            paths += figures.draw(plots, folder / name)
        if (ranked := comparison.ranked(every)) is not None:
            paths += figures.draw_ranking(ranked, folder / "ranks")
    except InputError as error:
        print(f"mctsvs: no figure: {error}", file=sys.stderr)
    return [path.name for path in paths]


def report(failures: Sequence[grid.Failure]) -> int:
    """Say which runs failed; the exit code."""
    for failure in failures:
        print(f"mctsvs: failed: {failure.job}: {failure.error}", file=sys.stderr)
    if failures:
        runs = f"{len(failures)} run{'s' * (len(failures) > 1)}"
        print(f"mctsvs: {runs} failed; the same command tries again", file=sys.stderr)
    return int(bool(failures))


def reproduce_entries(arguments: argparse.Namespace) -> int:
    """`mctsvs bench reproduce`."""
    if arguments.list:
        return list_entries()
    data.set_directory(arguments.data)
    entries, choice = wanted(arguments)
    folder: Path = arguments.output
    if arguments.pages:
        return make_pages(entries, folder)
    store = RunStore(arguments.runs or folder / "runs", say)
    RunStore(folder)
    console = Console(stderr=True, quiet=arguments.quiet)
    failures: list[grid.Failure] = []
    skipped: list[str] = []
    for entry in entries:
        started = time.monotonic()
        with store.locked() if entry.panels else nullcontext(), display(console, entry.name) as listen:
            outcome = reproduce.reproduce(entry, choice, store, folder, workers=arguments.workers, listen=listen)
        failures += outcome.failures
        for note in outcome.notes:
            print(f"mctsvs: {entry.name}: {note}", file=sys.stderr)
        if outcome.skipped:
            skipped.append(entry.name)
            print(f"{entry.name}: skipped")
        else:
            written = ", ".join(path.name for path in outcome.files)
            print(f"{entry.name}: {written} ({clock(time.monotonic() - started)})", flush=True)
    asked = set(skipped) & set(arguments.names)  # with `all`, what cannot be run here is left out
    return max(report(failures), int(bool(asked)))


def make_pages(entries: Sequence[PaperEntry], folder: Path) -> int:
    """Pages and figures of the numbers in a folder."""
    for entry in entries:
        outcome = reproduce.ReproductionResult()
        written = ", ".join(path.name for path in reproduce.page_of(entry, folder, outcome))
        for note in outcome.notes:
            print(f"mctsvs: {entry.name}: {note}", file=sys.stderr)
        print(f"{entry.name}: {written}", flush=True)
    return 0


def wanted(arguments: argparse.Namespace) -> tuple[list[PaperEntry], reproduce.ReproduceOptions]:
    """The entries that are asked for, and how they are to be run."""
    if not (arguments.names or arguments.list):
        raise InputError("nothing to reproduce: name entries, or all (mctsvs bench reproduce --list shows them)")
    names = list(ENTRIES) if "all" in arguments.names else arguments.names
    return [reproduce.find(name) for name in dict.fromkeys(names)], _choice(arguments)


def _choice(arguments: argparse.Namespace) -> reproduce.ReproduceOptions:
    if arguments.budget is not None:
        check_count("budget", arguments.budget)
    return reproduce.ReproduceOptions(
        seeds=None if arguments.seeds is None else tuple(seeds(arguments.seeds)),
        budget=arguments.budget,
        quick=arguments.quick,
        paper=arguments.paper,
        only=tuple(algorithms.parse(part).method for part in algorithms.split(arguments.only)),
        without=tuple(algorithms.parse(part).method for part in algorithms.split(arguments.without)),
        fewer=tuple(seed_count(part) for part in algorithms.split(arguments.fewer)),
        data=arguments.data is not None,
    )


def seed_count(text: str) -> tuple[str, int]:
    """A method and the number of its seeds, from METHOD=N."""
    method, _, count = text.partition("=")
    if not (count.isdecimal() and int(count)):
        raise InputError(f"--fewer {text!r} cannot be used: give METHOD=N, such as turbo=30")
    return algorithms.parse(method).method, int(count)


def list_entries() -> int:
    listed = Table("name", "in the paper", "what", "seeds", "evaluations", "methods", "problems", box=box.SIMPLE)
    for entry in ENTRIES.values():
        effort, about = entry.effort, entry.about
        sizes = [len(effort.seeds), effort.budget, len(entry.cases()), len(entry.problems)]
        listed.add_row(entry.name, about.place, about.title, *(map(str, sizes) if entry.panels else ["-"] * 4))
    Console(width=None if sys.stdout.isatty() else 160).print(listed)
    return 0


def list_problems(arguments: argparse.Namespace) -> int:
    rows = [("name", "example", "D", "kind", "noise", "optimum", "extra", "data")]
    for family in problems.families():
        noise = "always" if family.noisy else "no"
        needed = (family.extra or "-", family.data or "-")
        rows.append((family.form, family.example, family.dimension, family.kind, noise, family.optimum, *needed))
    widths = [max(map(len, column)) + 2 for column in zip(*rows, strict=True)]
    about = ["", *(family.description for family in problems.families())]
    for row, text in zip(rows, about, strict=True):
        print("".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
        print(textwrap.fill(text, 96, initial_indent="    ", subsequent_indent="    "))
    print("\nIn names, D is the number of variables, N and k are other numbers, T is a task and may be left out.")
    print("All can be made noisy with --noise. `mctsvs bench data` says where data is and how to get it.")
    return 0
