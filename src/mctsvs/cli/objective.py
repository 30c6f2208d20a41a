"""An objective of the user's own: its arguments, which of them go together, and how it is named again for a study."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from mctsvs.bench import problems
from mctsvs.objectives.space_file import SpaceFile, read_space
from mctsvs.objectives.user_function import find_function, function_problem, user_problem
from mctsvs.objectives.user_program import UserProgram
from mctsvs.optimizer import DIRECTIONS
from mctsvs.space import Space
from mctsvs.study import Study
from mctsvs.study.saved_command import NAME, groups_of
from mctsvs.trial import Trial
from mctsvs.utils import plugins
from mctsvs.utils.validation import InputError, StudyError, closest, listed


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


def is_own(arguments: argparse.Namespace) -> bool:
    """Whether the objective is a function or program of the user's."""
    return arguments.problem is None or plugins.is_spec(arguments.problem)


def objective(
    arguments: argparse.Namespace, variation: dict[str, Any], kept: SpaceFile | None = None
) -> problems.Problem:
    """The problem by name, or the user's own function or program, with the constraints given.

    `kept` has the variables of a study, for an objective that comes without any.
    """
    problem = _objective(arguments, variation, kept)
    return replace(problem, where=(*problem.where, *arguments.where))


def _objective(arguments: argparse.Namespace, variation: dict[str, Any], kept: SpaceFile | None) -> problems.Problem:
    target: str | None = arguments.problem
    if target is None and arguments.program is None:
        raise InputError(
            "there is nothing to optimise: give a PROBLEM such as Hartmann6_300, a file.py:function, or --command"
        )
    if target is not None and arguments.program is not None:
        raise InputError(f"give either {target!r} or --command, not both")
    if target is not None and arguments.constraint:
        raise InputError("--constraint goes with --command: a function returns (value, {'stress': 0.3})")
    own = is_own(arguments)
    for name in ("space", "direction"):
        if not own and getattr(arguments, name) is not None:
            raise InputError(f"--{name} does not go with the problem {target!r}: it is for an objective of your own")
    for name in ("shuffle", "shift"):
        if own and variation[name]:
            raise InputError(f"--{name} does not go with an objective of your own: it is for problems by name")
    if target is None:
        file = kept if arguments.space is None else read_space(arguments.space)
        if file is None:
            raise InputError("a program of your own needs --space FILE, a TOML file that declares its variables")
        command = UserProgram.parse(arguments.program, file, arguments.timeout, arguments.constraint)
        return user_problem(arguments.program, command, file, arguments.direction)
    if own and arguments.timeout is not None and arguments.study is None:
        raise InputError("--timeout goes with --command or --study FILE: a function runs until it returns")
    if kept is not None and own and arguments.space is None:
        return function_problem(
            target, find_function(target, otherwise=kept), problems.Variation(**variation), arguments.direction
        )
    return problems.resolve(target, space=arguments.space, direction=arguments.direction, **variation)


def named_again(arguments: argparse.Namespace, study: Study) -> problems.Problem:
    """The objective that the user names again; its variables are the study's, unless it says them itself."""
    arguments.where = []
    kept = _space_file(study)
    problem = objective(arguments, {"shuffle": False, "shift": False, "noise": 0.0, "seed": 0}, kept)
    same = (kept is not None and getattr(problem, "file", None) is kept) or Space.of(problem.space) == study.space
    if not same or problem.direction != study.direction:
        raise StudyError(
            f"the variables or the direction of the study {str(study.path)!r} are not those of {problem.name}: give "
            f"the objective that it was begun with"
        )
    return with_constraints(problem, study)


def _space_file(study: Study) -> SpaceFile | None:
    """The variables as an objective gets them; None where the study does not say which of them form groups."""
    groups = groups_of(study.user_attrs, study.space.declared, study.path)
    if groups is None and NAME in study.user_attrs:
        return None
    return SpaceFile(study.space.declared, groups or {}, study.direction, vector=not study.space.named)


def with_constraints(problem: problems.Problem, study: Study) -> problems.Problem:
    """The problem with all constraints that the study measures: without one of them no trial could be feasible."""
    known = next((tuple(trial.constraints) for trial in study.trials if trial.constraints), ())
    program = problem.function
    if not known or not isinstance(program, UserProgram):
        return problem
    for name in program.constraints:
        if name not in known:
            raise StudyError(f"the study {str(study.path)!r} has no constraint {name!r}: it has {listed(known)}")
    return replace(problem, function=replace(program, constraints=known))


def never_printed(problem: problems.Problem, trials: Iterable[Trial]) -> list[str]:
    """A sentence for each constraint that a program was to print and has not printed once."""
    program, told = problem.function, [trial for trial in trials if trial.constraints]
    if not isinstance(program, UserProgram) or not told:
        return []
    known = {name for trial in told for name, value in (trial.constraints or {}).items() if not math.isnan(value)}
    said = []
    for name in program.constraints:
        if name not in known:
            meant = closest(name, program.printed)
            hint = "" if meant is None or meant == name else f"did you mean {meant!r}? "
            there = f": {hint}there was one after {listed(list(program.printed))}" if program.printed else ""
            said.append(f"the program never printed a finite number after {name!r}, a constraint{there}")
    return said
