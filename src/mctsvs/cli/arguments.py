"""Arguments that several commands share, and how their text is read."""

from __future__ import annotations

import argparse
import ast
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

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


def literal(text: str) -> Any:
    """A Python literal; anything else is a string."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def add_criteria(command: Any, failures: int | None) -> None:
    """What ends a run before its budget; `failures` None: what a study was run with before."""
    group = command.add_argument_group("ending the run before its budget")
    group.add_argument(
        "--target", type=float, metavar="VALUE", help="end when a feasible point has a value at least this good"
    )
    group.add_argument("--max-seconds", type=float, metavar="S", help="begin no evaluation after this many seconds")
    group.add_argument(
        "--patience", type=whole, metavar="N", help="end after this many evaluations without improvement"
    )
    group.add_argument(
        "--max-failures",
        type=whole,
        default=failures,
        metavar="N",
        help=f"end after this many failures in a row; default: {'as before' if failures is None else failures}",
    )


def criteria_of(arguments: argparse.Namespace) -> StoppingCriteria:
    return StoppingCriteria(arguments.target, arguments.max_seconds, arguments.patience, arguments.max_failures)


def add_worker_arguments(group: Any) -> None:
    """Who evaluates, and how many at once."""
    group.add_argument(
        "--workers", type=whole, metavar="N", help="evaluations at once; processes here, unless on a cluster"
    )
    cluster = group.add_mutually_exclusive_group()
    cluster.add_argument("--dask", metavar="ADDRESS", help="evaluate on the Dask cluster of this scheduler")
    cluster.add_argument(
        "--ray", nargs="?", const="", metavar="ADDRESS", help="evaluate on a Ray cluster; without ADDRESS, here"
    )
    group.add_argument(
        "--asynchronous", action="store_true", help="a free worker gets a new point at once, instead of in batches"
    )
    group.add_argument("--timeout", type=float, metavar="SECONDS", help="an evaluation that takes longer has failed")
