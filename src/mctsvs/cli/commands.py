"""Arguments of each command, and what it prints."""

from __future__ import annotations

import argparse
import math
import sys
import textwrap
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

import mctsvs
from mctsvs.bench import commands as lab
from mctsvs.bench import problems
from mctsvs.bench.algorithms import literal
from mctsvs.bench.problems import data
from mctsvs.bench.record import Interrupted, RunRecord, StoppedEarly, paper_options, run
from mctsvs.cli import completion, objective, pages, study, summary
from mctsvs.cli.arguments import Parser, add_data, add_limits, add_variation, limits_of, show, whole
from mctsvs.cli.progress import follower
from mctsvs.methods import registry
from mctsvs.optimize import begin_at
from mctsvs.optimizer import Optimizer
from mctsvs.utils.formatting import printable
from mctsvs.utils.validation import InputError, check_count

EXAMPLES = """\
examples:
  mctsvs run Hartmann6_300 --budget 200                      a benchmark problem of 300 variables
  mctsvs run tune.py:train --space space.toml                a function of yours; space.toml declares its variables
  mctsvs run --command './simulate --a {a}' --space a.toml   a program of yours; the last number it prints counts
  mctsvs run Hartmann6_300 --study run.db --workers 4        kept in a file, on four processes; after any accident
  mctsvs resume run.db                                       ... goes on
  mctsvs watch run.db                                        on a page that follows it; mctsvs report run.db keeps one

mctsvs COMMAND --help says more about each."""
RUN_USAGE = """\
mctsvs run PROBLEM [options]
       mctsvs run FILE.py:FUNCTION --space FILE [options]
       mctsvs run --command COMMAND --space FILE [options]"""


def parser() -> argparse.ArgumentParser:
    """All commands and their arguments."""
    top = Parser(
        prog="mctsvs",
        description="Optimise expensive functions of many variables, few of which matter.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"mctsvs {mctsvs.__version__}")
    commands = top.add_subparsers(required=True, title="commands", metavar="COMMAND", parser_class=Parser)
    _add_run(commands)
    study.add_commands(commands)
    pages.add_commands(commands)
    lab.add_commands(commands)
    for name, function, text in (
        ("problems", list_problems, "list the benchmark problems, with what each of them needs"),
        ("methods", list_methods, "list the methods, with the extra that each of them needs"),
        ("data", list_data, "list the data sets that problems need, and where they are"),
    ):
        command = commands.add_parser(name, help=text, description=f"{text.capitalize()}.")
        command.set_defaults(command=function)
        if function is list_data:
            command.add_argument("--data", metavar="DIR", help="where to look first")
    completion.add_command(commands)
    return top


def _add_run(commands: Any) -> None:
    command = commands.add_parser(
        "run",
        usage=RUN_USAGE,
        help="optimise a benchmark problem, or a function or program of your own",
        description="Optimise a benchmark problem, or a function or program of your own, and print what was found.",
    )
    command.add_argument(
        "problem",
        metavar="PROBLEM",
        nargs="?",
        help="a name such as Hartmann6_300 (see: mctsvs problems), or path/to/file.py:function of your own",
    )
    objective.add_arguments(command)
    objective.add_first(command)
    command.add_argument(
        "--method", default=registry.DEFAULT, metavar="NAME", help="default: %(default)s (see: mctsvs methods)"
    )
    command.add_argument("--budget", type=whole, default=600, metavar="N", help="evaluations; default: %(default)s")
    command.add_argument(
        "--seed", type=whole, default=2021, metavar="S", help="the same seed gives the same run; default: %(default)s"
    )
    command.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="an option of the method; may be repeated"
    )
    command.add_argument(
        "--paper",
        action="store_true",
        help="set what the paper sets for the method, such as its exploration constant and its search among candidates",
    )
    command.add_argument("--json", type=Path, metavar="FILE", help="write everything about the run to this file")
    add_data(command)
    command.add_argument("--quiet", action="store_true", help="no display of how far the run is")
    add_limits(command, failures=30)
    known = "; of an objective of your own: the noise that its values have, 0 for exact ones"
    add_variation(command, problem_seed=0, default="%(default)s", noise=known)
    study.add_run_arguments(command)
    command.set_defaults(command=run_problem)


def options(pairs: list[str]) -> dict[str, Any]:
    """NAME=VALUE pairs; values are Python literals, anything else is a string."""
    chosen: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not (name and equals):
            raise InputError(f"--set {pair!r} is not an option: write NAME=VALUE, such as --set cp=0.1")
        chosen[name] = literal(text)
    return chosen


def _chosen(arguments: argparse.Namespace) -> dict[str, Any]:
    """The method's options, and the noise of an objective of the user's own."""
    known = {"noise": arguments.noise} if objective.is_own(arguments) and arguments.noise is not None else {}
    return {**options(arguments.set), **known}


def run_problem(arguments: argparse.Namespace) -> int:
    """`mctsvs run`."""
    if arguments.data is not None:
        data.set_directory(arguments.data)
    variation = {
        "shuffle": arguments.shuffle,
        "shift": arguments.shift,
        "noise": 0.0 if objective.is_own(arguments) else arguments.noise or 0.0,
        "seed": arguments.problem_seed,
    }
    problem = objective.objective(arguments, variation)
    check_count("budget", arguments.budget)
    registry.find(arguments.method)
    study.check_run_arguments(arguments)
    if arguments.paper:
        _check_paper(arguments.method, problem)
    if arguments.study is not None:
        if arguments.json is not None:
            raise InputError("--json does not go with --study: the study holds everything, see mctsvs export")
        chosen = paper_options(arguments.method, problem, _chosen(arguments), arguments.paper)
        return study.run(arguments, problem, chosen, variation)
    if arguments.json is not None:
        _check_file(arguments.json)
    record, ended, opt = _run(arguments, problem, variation)
    summarise(problem, record, opt)
    if arguments.json is not None:
        record.save(arguments.json)
    for sentence in objective.never_printed(problem, opt.trials):
        print(f"mctsvs: {printable(sentence)}", file=sys.stderr)
    return _report(record, ended, opt)


def _check_paper(method: str, problem: problems.Problem) -> None:
    if paper_options(method, problem, {}, faithful=True) == paper_options(method, problem, {}):
        raise InputError(
            f"--paper changes nothing for {method!r}: the paper sets nothing for it; its method is --method mcts-vs-bo"
        )


def _check_file(path: Path) -> None:
    """Better before the run than after it."""
    folder = path.parent
    if not folder.is_dir():
        raise InputError(f"cannot write {str(path)!r}: the folder {str(folder)!r} does not exist")
    if path.is_dir():
        raise InputError(f"cannot write {str(path)!r}: it is a folder, give the name of a file in it")


def _run(
    arguments: argparse.Namespace, problem: problems.Problem, variation: dict[str, Any]
) -> tuple[RunRecord, StoppedEarly | None, Optimizer]:
    """The whole run, or what there is of it after Ctrl-C or where it ended early, why it did, and its optimizer."""
    limits, ended = limits_of(arguments), None
    used: list[Optimizer] = []

    def begin(opt: Optimizer) -> None:
        used.append(opt)
        begin_at(opt, arguments.x0)

    label = f"{arguments.method} on {problem.name:.40}"
    try:
        with follower(label, quiet=arguments.quiet) as shown, study.polite_end():
            record = run(
                problem,
                arguments.method,
                budget=arguments.budget,
                seed=arguments.seed,
                options=_chosen(arguments),
                variation=variation,
                faithful=arguments.paper,
                follower=shown,
                limits=limits,
                begin=begin,
            )
    except Interrupted as stopped:
        record = stopped.record
    except StoppedEarly as early:
        record, ended = early.record, early
    return record, ended, used[0]


def _report(record: RunRecord, ended: StoppedEarly | None, opt: Optimizer) -> int:
    """Say what went wrong, if anything did; the exit code."""
    budget = record.setting.budget
    if record.interrupted:
        print(f"mctsvs: stopped after {len(record.trace)} of {budget} evaluations", file=sys.stderr)
        return 130
    nothing = math.isnan(record.best)
    if ended is not None:
        print(f"mctsvs: {printable(str(ended))}", file=sys.stderr)
        return 1 if nothing else 2 * ended.failing
    if nothing and opt.has_best:
        print(f"mctsvs: {printable(summary.infeasible(budget, opt.best))}", file=sys.stderr)
    elif nothing:
        first = f"; the first said: {record.failures[0]['message']}" if record.failures else ""
        what = "failed" if len(record.failures) == budget else "failed or violated a constraint"
        print(printable(f"mctsvs: all {budget} evaluations {what}{first}"), file=sys.stderr)
    return int(nothing)


def _none(record: RunRecord) -> str:
    failed = len(record.failures) == len(record.trace)
    return "none: all evaluations failed" if failed else summary.INFEASIBLE


def summarise(problem: problems.Problem, record: RunRecord, opt: Optimizer) -> None:
    """The result of a run, in a few lines."""
    done, seconds = len(record.trace), record.clock.wall
    failed = f", {len(record.failures)} of them failed" if record.failures else ""
    best = summary.best(opt.best, problem, numbered=False) if opt.has_best else [("best value", _none(record))]
    rows = [
        ("problem", f"{problem.name}, {problem.dimension} variables, {problem.direction}"),
        ("method", f"{record.setting.method}, seed {record.setting.seed}"),
        *best,
        ("evaluations", f"{done}{failed}"),
        ("thinking", f"{seconds:.1f} s, {1e3 * seconds / max(done, 1):.1f} ms each"),
    ]
    if record.failures and opt.has_best:
        rows.append(("last failure", record.failures[-1]["message"]))
    if record.recall is not None:
        rows.append(("recall", f"{record.recall:.3f}, mean share of the variables that matter among those selected"))
    rest = "  and {} more (--json FILE has all)"
    importance = record.importance if opt.has_best else {}
    rows += summary.variables(problem, importance, record.best_params, rest)
    if chosen := record.recommended:
        place = (chosen["mean"], chosen["sd"], chosen["trial"])
        rows += summary.recommended(*place, importance=importance, params=chosen["params"], rest=rest)
    summary.show(rows)


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
    known, complaints = registry.available()
    for method in known.values():
        name = f"{method.name} (default)" if method.name == registry.DEFAULT else method.name
        table.add_row(name, method.summary, method.extra or "-", method.paper)
    show(table)
    for complaint in complaints:
        print(complaint)
    return 0
