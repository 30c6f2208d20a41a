"""Arguments that several commands share, and how their text is read."""

from __future__ import annotations

import argparse
import sys
from typing import Any, NoReturn

from rich.console import Console
from rich.table import Table


class Parser(argparse.ArgumentParser):
    """Errors as one sentence."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def add_variation(command: Any, problem_seed: int | None, default: str) -> None:
    """How a problem is varied; `default` says what its seed is if none is given."""
    command.add_argument("--shuffle", action="store_true", help="put the variables that matter at random positions")
    command.add_argument("--shift", action="store_true", help="move the optimum to a random place")
    command.add_argument("--noise", type=float, default=0.0, metavar="SD", help="standard deviation of added noise")
    command.add_argument(
        "--problem-seed",
        type=whole,
        default=problem_seed,
        metavar="S",
        help=f"of shuffle and shift; default: {default}",
    )


def add_data(command: Any) -> None:
    command.add_argument("--data", metavar="DIR", help="where to look for data first (see: mctsvs data)")


def show(table: Table) -> None:
    """Print a table in full width when piped, so that nothing is cut."""
    Console(width=None if sys.stdout.isatty() else 200).print(table)
