"""`mctsvs run` on an objective of the user's own: its arguments, and which of them go together."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from mctsvs import plugins, problems
from mctsvs.common import InputError
from mctsvs.optimizer import DIRECTIONS
from mctsvs.problems.command import Command
from mctsvs.problems.own import own_problem
from mctsvs.problems.space_file import read_space


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What an objective of one's own is described with."""
    group = command.add_argument_group("an objective of your own")
    group.add_argument(
        "--command",
        dest="program",
        metavar="COMMAND",
        help="a program of your own in place of PROBLEM, such as './simulate --a {a}'; the last number printed counts",
    )
    group.add_argument(
        "--constraint",
        action="append",
        default=[],
        metavar="NAME",
        help="with --command: a measured constraint, the number printed after NAME; it holds where that is at most 0",
    )
    group.add_argument("--space", type=Path, metavar="FILE", help="TOML file with the variables of your objective")
    group.add_argument("--direction", choices=DIRECTIONS, help="default: as the file says, else minimize")


def add_first(command: argparse.ArgumentParser) -> None:
    """Where points may lie, and where to begin."""
    group = command.add_argument_group("points")
    group.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="CONSTRAINT",
        help="what every point satisfies, such as 'x1 + 2*x2 <= 100' or 'sum(x0:x9) <= 1'; may be repeated",
    )
    group.add_argument(
        "--x0",
        type=Path,
        metavar="FILE",
        help="CSV file of points to begin with; with a column called value, these evaluations are known",
    )


def objective(arguments: argparse.Namespace, variation: dict[str, Any]) -> problems.Problem:
    """The problem by name, or the user's own function or program, with the constraints given."""
    problem = _objective(arguments, variation)
    return replace(problem, where=(*problem.where, *arguments.where))


def _objective(arguments: argparse.Namespace, variation: dict[str, Any]) -> problems.Problem:
    target: str | None = arguments.problem
    if target is None and arguments.program is None:
        raise InputError(
            "there is nothing to optimise: give a PROBLEM such as Hartmann6_300, a file.py:function, or --command"
        )
    if target is not None and arguments.program is not None:
        raise InputError(f"give either {target!r} or --command, not both")
    if target is not None and arguments.constraint:
        raise InputError("--constraint goes with --command: a function returns (value, {'stress': 0.3})")
    own = target is None or plugins.is_spec(target)
    for name in ("space", "direction"):
        if not own and getattr(arguments, name) is not None:
            raise InputError(f"--{name} does not go with the problem {target!r}: it is for an objective of your own")
    for name in ("shuffle", "shift", "noise"):
        if own and variation[name]:
            raise InputError(f"--{name} does not go with an objective of your own: it is for problems by name")
    if target is None:
        if arguments.space is None:
            raise InputError("a program of your own needs --space FILE, a TOML file that declares its variables")
        file = read_space(arguments.space)
        command = Command.parse(arguments.program, file, arguments.timeout, arguments.constraint)
        return own_problem(arguments.program, command, file, arguments.direction)
    if own and arguments.timeout is not None and arguments.study is None:
        raise InputError("--timeout goes with --command or --study FILE: a function runs until it returns")
    return problems.resolve(target, space=arguments.space, direction=arguments.direction, **variation)
