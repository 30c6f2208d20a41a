"""The parser of all commands, and `mctsvs methods`."""

from __future__ import annotations

import argparse
import inspect
import shutil
import sys
import textwrap

import mctsvs
from mctsvs.cli import completion, run, show
from mctsvs.cli.arguments import Parser
from mctsvs.methods import registry

EXAMPLES = """\
examples:
  mctsvs run tune.py:train --space space.toml                a function of yours; space.toml declares its variables
  mctsvs run --command './simulate --a {a}' --space a.toml   a program of yours; the last number it prints counts
  mctsvs run tune.py:train --study run.db --workers 4        kept in a file, on four processes; after any accident
  mctsvs resume run.db tune.py:train                         ... goes on
  mctsvs watch run.db                                        on a page that follows it; mctsvs report run.db keeps one
  mctsvs bench run Hartmann6_300                             a benchmark problem; see mctsvs bench --help

mctsvs COMMAND --help says more about each."""


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
    run.add_commands(commands)
    show.add_commands(commands)
    text = "list the methods, or one with its options"
    command = commands.add_parser("methods", help=text, description=f"{text.capitalize()}.")
    command.add_argument("method", nargs="?", metavar="NAME", help="show this one and its options")
    command.set_defaults(command=list_methods)
    completion.add_command(commands)
    commands.add_parser("bench", help="benchmark problems, comparisons, and the paper's experiments", add_help=False)
    return top


def list_methods(arguments: argparse.Namespace) -> int:
    """`mctsvs methods`."""
    if arguments.method is not None:
        return _describe(registry.find(arguments.method))
    width = min(120, shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else 100)
    known, complaints = registry.available()
    for method in known.values():
        name = f"{method.name} (default)" if method.name == registry.DEFAULT else method.name
        also = [alias for alias, other in registry.ALIASES.items() if other == method.name]
        names = ", ".join([name, *also])
        print(f"{names}{f'   needs mctsvs[{method.extra}]' if method.extra else ''}")
        text = f"{method.summary} ({method.paper})" if method.paper else method.summary
        print(textwrap.fill(text, width, initial_indent="    ", subsequent_indent="    "))
    for complaint in complaints:
        print(complaint)
    return 0


def _describe(method: registry.Method) -> int:
    print(f"{method.name}: {method.summary} ({method.paper})" if method.paper else f"{method.name}: {method.summary}")
    for kind in registry._classes(method):
        if text := inspect.getdoc(kind.options_type):
            print(f"\n{text}" if kind.options_type.names() else "", end="\n" if kind.options_type.names() else "")
    return 0
