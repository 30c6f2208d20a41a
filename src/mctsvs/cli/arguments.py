"""Arguments that several commands share, and how their text is read."""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from rich.console import Console
from rich.table import Table

from mctsvs.loop.stopping import StoppingCriteria
from mctsvs.utils.formatting import printable
from mctsvs.utils.validation import closest


class Parser(argparse.ArgumentParser):
    """Errors as one sentence, with what was probably meant."""

    def error(self, message: str) -> NoReturn:
        if choice := re.search(r"invalid choice: '(.*)' \(choose from (.*)\)", message):
            known = [word.strip("'") for word in choice[2].split(", ")]
            message = f"invalid choice: {choice[1]!r}, {_meant(choice[1], known)} choose from {', '.join(known)}"
        self.exit(2, f"{self.prog}: {printable(message)} (see {self.prog} --help)\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """All are to be known, and each command knows its own."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(self._unknown(unknown))
        return found, unknown

    def _unknown(self, words: Sequence[str]) -> str:
        options = [word.partition("=")[0] for word in words if word.startswith("-")]
        if not options:
            return f"{words[0]!r} is one argument too many"
        return f"unknown option {options[0]}: {_meant(options[0], self._option_string_actions)}".rstrip(" :")


def _meant(word: str, known: Sequence[str] | dict[str, Any]) -> str:
    meant = closest(word, known)
    return "" if meant is None else f"did you mean {meant}?"


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Warnings as one sentence each, as errors are."""

    def say(message: Warning | str, *_: Any, **__: Any) -> None:
        print(f"mctsvs: {printable(str(message))}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.showwarning = say
        yield


def whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def add_variation(command: Any, problem_seed: int | None, default: str, noise: str = "") -> None:
    """How a problem is varied; `default` says what its seed is if none is given, `noise` what else noise may mean."""
    command = command.add_argument_group("varying a problem that is given by name")
    command.add_argument("--shuffle", action="store_true", help="put the variables that matter at random positions")
    command.add_argument("--shift", action="store_true", help="move the optimum to a random place")
    command.add_argument("--noise", type=float, metavar="SD", help=f"add noise of this standard deviation{noise}")
    command.add_argument(
        "--problem-seed",
        type=whole,
        default=problem_seed,
        metavar="S",
        help=f"seed of --shuffle and --shift; default: {default}",
    )


def add_data(command: Any) -> None:
    command.add_argument("--data", metavar="DIR", help="look for the data of problems there first (see: mctsvs data)")


def add_limits(command: Any, failures: int | None) -> None:
    """What ends a run before its budget; `failures` None: what a study was run with before."""
    group = command.add_argument_group("ending the run before its budget")
    group.add_argument("--target", type=float, metavar="VALUE", help="when a value is at least this good")
    group.add_argument("--max-seconds", type=float, metavar="S", help="when so many seconds are over")
    group.add_argument("--patience", type=whole, metavar="N", help="after so many evaluations that were no better")
    group.add_argument(
        "--max-failures",
        type=whole,
        default=failures,
        metavar="N",
        help=f"after so many failed evaluations in a row; default: {'as before' if failures is None else failures}",
    )


def limits_of(arguments: argparse.Namespace) -> StoppingCriteria:
    return StoppingCriteria(arguments.target, arguments.max_seconds, arguments.patience, arguments.max_failures)


def show(table: Table) -> None:
    """Print a table in full width when piped, so that nothing is cut."""
    Console(width=None if sys.stdout.isatty() else 200).print(table)
