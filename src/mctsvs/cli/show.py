"""`mctsvs show`, `export`, `salvage`, `report` and `watch`: what studies have found, as text, tables and pages."""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from mctsvs.cli import objective, summary
from mctsvs.cli.arguments import whole
from mctsvs.cli.objective import SavedCommand
from mctsvs.study import Study
from mctsvs.utils.formatting import printable
from mctsvs.utils.validation import InputError, StudyError


def add_commands(commands: Any) -> None:
    command = commands.add_parser(
        "show",
        help="show what a study has found",
        description="Show what a study has found, also while it is running.",
    )
    command.add_argument("study", type=Path, metavar="FILE", help="the study")
    objective.add_data(command)
    command.set_defaults(command=show)

    command = commands.add_parser(
        "export",
        help="write a study's evaluations as a table",
        description="Write a study's evaluations as a table, a row for each, with a column for each variable.",
    )
    command.add_argument("study", type=Path, metavar="FILE", help="the study")
    help = "the file to write; its name ends in .csv or .parquet"
    command.add_argument("table", type=Path, nargs="?", metavar="TABLE", help=help)
    command.add_argument("-o", "--output", type=Path, metavar="TABLE", help="another way to name it")
    command.set_defaults(command=export)

    command = commands.add_parser(
        "salvage",
        help="save what is intact in a damaged study",
        description="Save what is intact in a damaged study: all that was written before the damage.",
    )
    command.add_argument("study", type=Path, metavar="FILE", help="the damaged study; it stays as it is")
    command.add_argument("new", type=Path, metavar="NEW", help="the study to write")
    command.set_defaults(command=rescue)

    command = commands.add_parser(
        "report",
        help="write what studies have learned as one page for a browser",
        description="Write what a study has learned as one page that any browser opens, without a network; several are "
        "compared.",
    )
    command.add_argument(
        "studies", nargs="+", type=Path, metavar="FILE", help="one or more studies; several are compared"
    )
    command.add_argument("-o", "--output", type=Path, metavar="PAGE", help="default: the first study's name with .html")
    command.set_defaults(command=report)
    command = commands.add_parser(
        "watch",
        help="show studies on a page that follows them while they run",
        description="Show studies on a page that follows them while they run. The files are only read, and the page is "
        "for this machine alone; for other machines, name a --host and use the address with the token that is printed.",
    )
    command.add_argument("studies", nargs="+", type=Path, metavar="FILE", help="a study, or a folder with studies")
    command.add_argument("--port", type=whole, default=8765, metavar="N", help="default: %(default)s; 0: any free one")
    command.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="default: %(default)s, this machine")
    command.set_defaults(command=watch)


def show(arguments: argparse.Namespace) -> int:
    """`mctsvs show FILE`; a problem whose data or extra is not here is left out."""
    with Study(arguments.study, readonly=True) as study:
        note = SavedCommand.of(study.user_attrs, study.path)
        problem = None
        if note is not None and note.problem is not None:
            try:
                problem = objective.stored_problem(study, note, arguments.data)
            except StudyError:
                raise
            except InputError as error:
                print(f"mctsvs: {printable(str(error))}", file=sys.stderr)
        variables = summary.summarise(study, problem, name=(note.own or "") if note is not None else "")
        if note is not None and study.evaluated < note.budget:
            print(f"{'to do':<16}{note.budget - study.evaluated} of {note.budget} evaluations")
        summary.show_variables(study, variables)
    return 0


def export(arguments: argparse.Namespace) -> int:
    """`mctsvs export FILE TABLE`."""
    table = arguments.table or arguments.output
    if table is None:
        raise InputError("there is no file to write: name it, such as mctsvs export run.db run.csv")
    with Study(arguments.study, readonly=True) as study:
        print(f"{study.export(table)} trials in {table}")
    return 0


def rescue(arguments: argparse.Namespace) -> int:
    """`mctsvs salvage FILE NEW`."""
    from mctsvs.study.replay import salvage

    print(f"{salvage(arguments.study, arguments.new)} evaluations saved in {arguments.new}")
    return 0


def report(arguments: argparse.Namespace) -> int:
    from mctsvs.visualization.report import write

    page = arguments.output or arguments.studies[0].with_suffix(".html")
    with ExitStack() as opened:
        studies = [opened.enter_context(Study(path, readonly=True)) for path in arguments.studies]
        write(studies if len(studies) > 1 else studies[0], page)
    print(f"{page} ({page.stat().st_size / 1e6:.1f} MB): open it in a browser")
    return 0


def watch(arguments: argparse.Namespace) -> int:
    from mctsvs.visualization.dashboard import serve

    serve(arguments.studies, arguments.host, arguments.port, lambda text: print(text, flush=True))
    return 0
