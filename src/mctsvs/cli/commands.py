"""Arguments of each command, and what it prints."""

from __future__ import annotations

import argparse
import ast
import math
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import mctsvs
from mctsvs import problems
from mctsvs.cli import lab, own, study
from mctsvs.common import InputError, check_count
from mctsvs import methods
from mctsvs.lab.run import Interrupted, Record, paper_options, run
from mctsvs.optimizer import Optimizer, Trial
from mctsvs.problems import data

SHOWN = 12  # variables listed after a run
NOTABLE = 0.02  # those at least this important, relative to the most important one


class Parser(argparse.ArgumentParser):
    """Errors as one sentence."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def parser() -> argparse.ArgumentParser:
    """All commands and their arguments."""
    top = Parser(prog="mctsvs", description="Optimise expensive functions of many variables, few of which matter.")
    top.add_argument("--version", action="version", version=f"mctsvs {mctsvs.__version__}")
    commands = top.add_subparsers(required=True, metavar="COMMAND", parser_class=Parser)

    command = commands.add_parser(
        "run",
        help="optimise a problem, or your own objective",
        description="Optimise a problem, or your own objective.",
    )
    command.add_argument(
        "problem",
        metavar="PROBLEM",
        nargs="?",
        help="a name such as Hartmann6_300 (see: mctsvs problems), or your own path/to/file.py:function",
    )
    own.add_arguments(command)
    command.add_argument("--method", default=methods.DEFAULT, help="default: %(default)s (see: mctsvs methods)")
    command.add_argument("--budget", type=whole, default=600, metavar="N", help="evaluations; default: %(default)s")
    command.add_argument("--seed", type=whole, default=2021, metavar="S", help="default: %(default)s")
    command.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="an option of the method; may be repeated"
    )
    command.add_argument(
        "--paper", action="store_true", help="the paper's exploration constant and its search among random candidates"
    )
    command.add_argument("--shuffle", action="store_true", help="put the variables that matter at random positions")
    command.add_argument("--shift", action="store_true", help="move the optimum to a random place")
    command.add_argument("--noise", type=float, default=0.0, metavar="SD", help="standard deviation of added noise")
    command.add_argument(
        "--problem-seed", type=whole, default=0, metavar="S", help="of shuffle and shift; default: %(default)s"
    )
    command.add_argument("--json", type=Path, metavar="FILE", help="write the record of the run")
    command.add_argument("--data", metavar="DIR", help="where to look for data first (see: mctsvs data)")
    command.add_argument("--quiet", action="store_true", help="no progress bar")
    study.add_run_arguments(command)
    command.set_defaults(command=run_problem)
    study.add_commands(commands)

    lab.add_commands(commands, whole)

    for name, function, text in (
        ("problems", list_problems, "list the benchmark problems"),
        ("methods", list_methods, "list the methods"),
    ):
        command = commands.add_parser(name, help=text, description=f"{text.capitalize()}.")
        command.set_defaults(command=function)

    text = "list the data sets that problems need, and where they are"
    command = commands.add_parser("data", help=text, description=f"{text.capitalize()}.")
    command.add_argument("--data", metavar="DIR", help="where to look first")
    command.set_defaults(command=list_data)
    return top


def whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def options(pairs: list[str]) -> dict[str, Any]:
    """NAME=VALUE pairs; values are Python literals, anything else is a string."""
    chosen: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not (name and equals):
            raise InputError(f"--set {pair!r} is not an option: write NAME=VALUE, such as --set cp=0.1")
        try:
            chosen[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            chosen[name] = text
    return chosen


def run_problem(arguments: argparse.Namespace) -> int:
    if arguments.data is not None:
        data.set_directory(arguments.data)
    variation = {
        "shuffle": arguments.shuffle,
        "shift": arguments.shift,
        "noise": arguments.noise,
        "seed": arguments.problem_seed,
    }
    problem = own.objective(arguments, variation)
    check_count("budget", arguments.budget)
    methods.find(arguments.method)
    study.check_run_arguments(arguments)
    if arguments.study is not None:
        if arguments.json is not None:
            raise InputError("--json does not go with --study: the study holds everything, see mctsvs export")
        chosen = paper_options(arguments.method, problem, options(arguments.set), arguments.paper)
        return study.run(arguments, problem, chosen, variation)
    if arguments.json is not None and not arguments.json.parent.is_dir():
        folder = str(arguments.json.parent)
        raise InputError(f"cannot write {str(arguments.json)!r}: the folder {folder!r} does not exist")
    if arguments.json is not None and arguments.json.is_dir():
        raise InputError(f"cannot write {str(arguments.json)!r}: it is a folder, give the name of a file in it")
    console = Console(stderr=True)

    def go(progress: Callable[[Optimizer, Trial], object] | None) -> Record:
        with study.polite_end():
            return run(
                problem,
                arguments.method,
                budget=arguments.budget,
                seed=arguments.seed,
                options=options(arguments.set),
                variation=variation,
                faithful=arguments.paper,
                progress=progress,
            )

    try:
        if arguments.quiet or not console.is_terminal:
            record = go(None)
        else:
            columns = (
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("best {task.fields[best]:.5g}"),
                TimeRemainingColumn(),
            )
            with Progress(*columns, console=console, transient=True) as bar:
                label = f"{arguments.method} on {problem.name:.40}"
                task = bar.add_task(label, total=arguments.budget, best=float("nan"))
                record = go(
                    lambda opt, _: bar.update(task, advance=1, best=opt.best.value if opt.has_best else float("nan"))
                )
    except Interrupted as stopped:
        record = stopped.record
    summarise(problem, record)
    if arguments.json is not None:
        record.save(arguments.json)
    if record.interrupted:
        print(f"mctsvs: stopped after {len(record.trace)} of {record.budget} evaluations", file=sys.stderr)
        return 130
    if math.isnan(record.best):
        first = f"; the first said: {record.failures[0]['message']}" if record.failures else ""
        print(f"mctsvs: all {record.budget} evaluations failed{first}", file=sys.stderr)
        return 1
    return 0


def summarise(problem: problems.Problem, record: Record) -> None:
    """The result of a run, in a few lines."""
    optimum = "" if problem.optimum is None else f"   (optimum {problem.optimum:.6g})"
    done = len(record.trace)
    failed = f", {len(record.failures)} of them failed" if record.failures else ""
    rows = [
        ("problem", f"{record.problem}, {problem.dimension} variables, {problem.direction}"),
        ("method", f"{record.method}, seed {record.seed}"),
        ("best value", "none: all evaluations failed" if math.isnan(record.best) else f"{record.best:.6g}{optimum}"),
        ("evaluations", f"{done}{failed}"),
        ("thinking", f"{record.optimizer_seconds:.1f} s, {1e3 * record.optimizer_seconds / max(done, 1):.1f} ms each"),
    ]
    if record.failures and not math.isnan(record.best):
        rows.append(("last failure", record.failures[-1]["message"]))
    if record.recall is not None:
        rows.append(("recall", f"{record.recall:.3f}, mean share of the variables that matter among those selected"))
    found = [name for name, score in record.importance.items() if score >= NOTABLE][:SHOWN]
    if found:
        truth = set() if problem.active is None else {f"x{i}" for i in problem.active}
        marked = [f"{name}*" if name in truth else name for name in found]
        rows.append(("variables found", " ".join(marked) + ("   (* truly matters)" if truth else "")))
    if record.best_params:
        names = list(record.best_params)
        shown = (found or names[:SHOWN]) if len(names) > SHOWN else names
        more = len(record.best_params) - len(shown)
        values = "  ".join(f"{name}={_short(record.best_params[name])}" for name in shown)
        rows.append(("best point", values + (f"  and {more} more (--json FILE has all)" if more else "")))
    for label, text in rows:
        print(f"{label:<16}{text}")


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def show(table: Table) -> None:
    """Print a table in full width when piped, so that nothing is cut."""
    console = Console(width=None if sys.stdout.isatty() else 200)
    console.print(table)


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
    print("All can be made noisy with --noise. `mctsvs data` says where data is and where it comes from.")
    return 0


def list_data(arguments: argparse.Namespace) -> int:
    if arguments.data is not None:
        data.set_directory(arguments.data)
    for name, known in data.DATASETS.items():
        files = data.found(name)
        print(f"{name}: {known.description}")
        for found in files:
            checksum = (found.checksum or "none known")[:12]
            print(f"  {found.state:<10}{found.path or found.file}, SHA-256 {checksum}")
        print(f"  {'licence':<10}{known.licence}")
        print(f"  {'original':<10}{known.source}")
        wanted = [found.file for found in files if found.state in ("missing", "damaged")]
        if wanted:
            print(f"  {'to do':<10}put {data.listed(wanted)} into {data.directories()[0] / name}")
        print()
    print(f"Looked in {', '.join(str(place) for place in data.directories())}, first to last.")
    return 0


def list_methods(arguments: argparse.Namespace) -> int:
    table = Table("name", "what it does", "extra", "paper", box=box.SIMPLE)
    for method in methods.METHODS.values():
        name = f"{method.name} (default)" if method.name == methods.DEFAULT else method.name
        table.add_row(name, method.summary, method.extra or "-", method.paper)
    show(table)
    return 0
