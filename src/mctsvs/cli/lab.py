"""The commands of the laboratory: `mctsvs compare` and `mctsvs reproduce`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from mctsvs import problems
from mctsvs.cli.progress import display
from mctsvs.common import InputError
from mctsvs.lab import cases, comparison, figures, frame, grid, reproduce, table
from mctsvs.lab.cases import Case
from mctsvs.lab.entries import ENTRIES
from mctsvs.lab.groups import collect
from mctsvs.lab.store import Store
from mctsvs.optimizer import check_budget, check_seed
from mctsvs.problems import data

DEFAULT_METHODS = "mcts-vs-bo,dropout-bo,bo,random"


def add_commands(commands: Any, whole: Callable[[str], int]) -> None:
    """Add the commands to the command line's parser."""
    command = commands.add_parser(
        "compare",
        help="compare methods on problems over several seeds",
        description="Run every method on every problem with every seed, on several processes. What is finished is "
        "kept at once: the same command goes on where it was stopped.",
    )
    command.add_argument("problems", nargs="+", metavar="PROBLEM", help="names such as Hartmann6_300")
    command.add_argument(
        "--methods",
        default=DEFAULT_METHODS,
        metavar="LIST",
        help="separated by commas, with options in brackets if wanted: mcts-vs-bo[cp=0.1,k=10]; default: %(default)s",
    )
    command.add_argument(
        "--seeds", default="2021-2025", metavar="LIST", help="2021-2025 or 1,2,5; default: %(default)s"
    )
    command.add_argument("--budget", type=whole, default=600, metavar="N", help="evaluations; default: %(default)s")
    command.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="METHOD:NAME=VALUE",
        help="an option for every case of that method; may be repeated",
    )
    command.add_argument("--paper", action="store_true", help="all methods as the paper set them")
    command.add_argument("--shuffle", action="store_true", help="put the variables that matter at random positions")
    command.add_argument("--shift", action="store_true", help="move the optimum to a random place")
    command.add_argument("--noise", type=float, default=0.0, metavar="SD", help="standard deviation of added noise")
    command.add_argument(
        "--problem-seed", type=whole, metavar="S", help="of shuffle and shift; default: the seed of each run"
    )
    command.add_argument("--reference", metavar="METHOD", help="what the others are tested against; default: the first")
    command.add_argument("--format", choices=table.FORMATS, default="csv", help="of the table; default: %(default)s")
    command.add_argument("--by-seconds", action="store_true", help="draw against wall seconds too")
    _shared(command, whole, "comparison")
    command.set_defaults(command=compare)

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
        "--paper", action="store_true", help="the paper's exploration constant, candidate search and TuRBO bursts"
    )
    command.add_argument("--without", default="", metavar="LIST", help="methods to leave out, such as saasbo,alebo")
    command.add_argument(
        "--fewer", default="", metavar="LIST", help="seeds of slow methods, such as turbo=30,saasbo=1; default: all"
    )
    command.add_argument("--runs", type=Path, metavar="DIR", help="where finished runs are kept; default: DIR/runs")
    _shared(command, whole, "reproduction")
    command.set_defaults(command=reproduce_entries)


def _shared(command: Any, whole: Callable[[str], int], folder: str) -> None:
    command.add_argument(
        "--workers", type=whole, default=grid.default_workers(), metavar="N", help="processes; default: %(default)s"
    )
    command.add_argument(
        "-o", "--output", type=Path, default=Path(folder), metavar="DIR", help="folder; default: %(default)s"
    )
    command.add_argument("--data", type=Path, metavar="DIR", help="where measured data is looked for first")
    command.add_argument("--quiet", action="store_true", help="no progress")


def seeds(text: str) -> list[int]:
    """2021-2025, 1,2,5 or a mixture."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise InputError(f"--seeds {text!r} is no list of seeds: write 2021-2025, or 2021,2022, or a mixture")
        found.extend(range(check_seed(int(first)), int(last or first) + 1))
    if not found:
        raise InputError(f"--seeds {text!r} names no seed: the first must not be larger than the last")
    return list(dict.fromkeys(found))


def chosen_cases(text: str, settings: Sequence[str], paper: bool) -> list[Case]:
    """The cases of --methods with the options of --set."""
    found = [cases.parse(part) for part in cases.split(text)]
    if not found:
        raise InputError(f"--methods {text!r} names no method: write names separated by commas")
    for setting in settings:
        method, colon, pair = setting.partition(":")
        if not (colon and "=" in pair):
            raise InputError(f"--set {setting!r} is no option: write METHOD:NAME=VALUE, such as mcts-vs-bo:cp=0.1")
        if method not in {case.method for case in found}:
            raise InputError(f"--set {setting!r} is for {method!r}, which is not among the methods to compare")
        option = cases.parse(f"{method}[{pair}]").options
        found = [case.with_options(option) if case.method == method else case for case in found]
    return list(dict.fromkeys(case.with_options({}, paper) for case in found))


def compare(arguments: argparse.Namespace) -> int:
    data.set_directory(arguments.data)
    wanted_cases = chosen_cases(arguments.methods, arguments.set, arguments.paper)
    variation = {"shuffle": arguments.shuffle, "shift": arguments.shift, "noise": arguments.noise}
    wanted_seeds = seeds(arguments.seeds)
    check_budget(arguments.budget)
    made = [problems.make(name, **variation, seed=arguments.problem_seed or 0) for name in arguments.problems]
    labels = [case.label for case in wanted_cases]
    if arguments.reference is not None and cases.parse(arguments.reference).label not in labels:
        raise InputError(
            f"--reference {arguments.reference!r} is not among the methods: use one of {', '.join(labels)}"
        )
    for problem in made:
        for case in wanted_cases:
            cases.check(case, problem)
    plain = {name: value for name, value in variation.items() if value}
    names = list(dict.fromkeys(problem.name for problem in made))
    jobs = grid.jobs(names, wanted_cases, wanted_seeds, arguments.budget, plain, arguments.problem_seed)
    store = Store(arguments.output / "runs")
    console = Console(stderr=True, quiet=arguments.quiet)
    with display(console) as listen:
        progress = grid.work(jobs, store, arguments.workers, listen)
    groups = collect(jobs, store)
    path = arguments.output / f"results.{arguments.format}"
    table.write(jobs, store, path)
    written = [path.name]
    if groups:
        varied = ", ".join(f"{name}={value}" for name, value in plain.items())
        reference = None if arguments.reference is None else cases.parse(arguments.reference).label
        text = comparison.summary(groups, reference)
        head = f"# {', '.join(names)}{f' ({varied})' if varied else ''}\n\n"
        frame.write(arguments.output / "summary.md", head + text)
        written += ["summary.md", *_draw(groups, arguments.output, arguments.by_seconds)]
        if sys.stdout.isatty():
            from rich.markdown import Markdown

            Console().print(Markdown(text))
        else:
            print(text)
    print(f"{progress.done} runs done now, {progress.skipped} before; in {arguments.output}: {', '.join(written)}")
    return report(progress.failures)


def _draw(groups: Any, folder: Path, by_seconds: bool) -> list[str]:
    paths: list[Path] = []
    try:
        paths += figures.draw(comparison.panels(groups), folder / "figure")
        if by_seconds:
            paths += figures.draw(comparison.panels(groups, by_seconds=True), folder / "figure-by-seconds")
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
    if arguments.list:
        return list_entries()
    if not arguments.names:
        raise InputError("nothing to reproduce: name entries, or all (mctsvs reproduce --list shows them)")
    data.set_directory(arguments.data)
    names = list(ENTRIES) if "all" in arguments.names else arguments.names
    wanted = [reproduce.find(name) for name in dict.fromkeys(names)]
    if arguments.budget is not None:
        check_budget(arguments.budget)
    chosen_seeds = None if arguments.seeds is None else tuple(seeds(arguments.seeds))
    without = tuple(cases.parse(part).method for part in cases.split(arguments.without))
    fewer = tuple(seed_count(part) for part in cases.split(arguments.fewer))
    choice = reproduce.Choice(chosen_seeds, arguments.budget, arguments.quick, arguments.paper, without, fewer)
    folder: Path = arguments.output
    store = Store(arguments.runs or folder / "runs")
    Store(folder)
    console = Console(stderr=True, quiet=arguments.quiet)
    failures: list[grid.Failure] = []
    for entry in wanted:
        started = time.monotonic()
        with display(console, entry.name) as listen:
            outcome = reproduce.reproduce(entry, choice, store, folder, arguments.workers, listen)
        failures += outcome.failures
        for note in outcome.notes:
            print(f"mctsvs: {entry.name}: {note}", file=sys.stderr)
        if outcome.skipped:
            print(f"{entry.name}: skipped")
        else:
            written = ", ".join(path.name for path in outcome.files)
            print(f"{entry.name}: {written} ({grid.clock(time.monotonic() - started)})", flush=True)
    print(f"the pages are listed in {frame.index(folder, ENTRIES)}")
    return report(failures)


def seed_count(text: str) -> tuple[str, int]:
    """A method and the number of its seeds, from METHOD=N."""
    method, _, count = text.partition("=")
    if not (count.isdecimal() and int(count)):
        raise InputError(f"--fewer {text!r} cannot be used: give METHOD=N, such as turbo=30")
    return cases.parse(method).method, int(count)


def list_entries() -> int:
    listed = Table("name", "in the paper", "what", "seeds", "evaluations", "methods", "problems", box=box.SIMPLE)
    for entry in ENTRIES.values():
        labels = dict.fromkeys(label for problem in entry.problems for label in entry.cases(problem))
        sizes = [str(len(entry.seeds)), str(entry.budget), str(len(labels)), str(len(entry.problems))]
        listed.add_row(entry.name, entry.place, entry.title, *(sizes if entry.panels else ["-"] * 4))
    Console(width=None if sys.stdout.isatty() else 200).print(listed)
    return 0
