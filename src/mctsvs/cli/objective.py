"""The objective of a run: its arguments, a function or program of the user's own, or what a study names.

`SavedCommand` is how a study was last run, which the command line stores among the study's attributes.
"""

from __future__ import annotations

import argparse
import math
import os
import shlex
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from reprlib import repr as short
from typing import Any, NamedTuple

from mctsvs.objectives.problem import Problem
from mctsvs.objectives.space_file import SpaceFile, read_space
from mctsvs.objectives.user_function import find_function, function_problem, user_problem
from mctsvs.objectives.user_program import UserProgram
from mctsvs.optimizer import DIRECTIONS
from mctsvs.optimizer.trial import Trial
from mctsvs.space import Space
from mctsvs.study import Study
from mctsvs.utils import plugins
from mctsvs.utils.formatting import listed
from mctsvs.utils.validation import InputError, StudyError, closest

NAME = "command"
GROUPS = "groups"  # the attribute with the groups of variables: name -> how many


class SavedCommand(NamedTuple):
    """The arguments of `mctsvs run`."""

    problem: str | None
    variation: dict[str, Any]
    workers: int | None
    dask: str | None
    ray: str | None
    asynchronous: bool
    timeout: float | None
    max_failures: int
    budget: int
    target: float | None = None
    patience: int | None = None
    own: str | None = None  # what the user called an objective of his own; never run because a file says so
    value: str | None = None  # the name of its value, where it is a program

    @classmethod
    def of(cls, attrs: Mapping[str, Any], path: Path) -> SavedCommand | None:
        """The one among these attributes; None where there is none."""
        if NAME not in attrs:
            return None
        given = attrs[NAME]
        if not isinstance(given, dict) or not set(cls._fields) - {"value"} <= set(given) <= set(cls._fields):
            raise _foreign(path, NAME, given)  # before there were names, a value had none
        return cls(**given)

    def check_modest(self, path: Path) -> None:
        """That it asks for nothing that only the user may grant: another machine, or more of this one than it has."""
        cpus = os.cpu_count() or 1
        wish = ""
        if self.dask is not None:
            wish = f"--dask {shlex.quote(self.dask)}"
        elif self.ray is not None:
            wish = f"--ray {shlex.quote(self.ray)}".removesuffix(" ''")
        elif self.workers is not None and self.workers > cpus:
            wish = f"--workers {self.workers}"
        if wish:
            raise StudyError(
                f"the study {str(path)!r} was run with {wish}, which is repeated only if you ask for it: add it if you "
                f"trust the file, or add --workers {cpus} to use the processors of this machine"
            )


def groups_of(attrs: Mapping[str, Any], declared: Collection[str], path: Path) -> dict[str, tuple[str, ...]] | None:
    """Name -> variables of each group that an objective gets together; None where they are not stored."""
    stored = attrs.get(GROUPS)
    if stored is None:
        return None
    if not isinstance(stored, dict) or not all(type(n) is int and 0 < n <= len(declared) for n in stored.values()):
        raise _foreign(path, GROUPS, stored)
    groups = {str(name): tuple(f"{name}{i}" for i in range(count)) for name, count in stored.items()}
    if not {member for members in groups.values() for member in members} <= set(declared):
        raise _foreign(path, GROUPS, stored)
    return groups


def _foreign(path: Path, name: str, value: Any) -> StudyError:
    return StudyError(
        f"the study {str(path)!r} was not written by this version of mctsvs: its attribute {name!r} is "
        f"{short(value)}; repeat the command that began it"
    )


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What an objective of one's own is described with."""
    group = command.add_argument_group("the objective")
    group.add_argument(
        "--command",
        dest="program",
        metavar="COMMAND",
        help="a program in place of a function, such as './simulate --a {a}'; the last number printed counts",
    )
    group.add_argument(
        "--value",
        metavar="NAME",
        help="with --command: the value is the last number printed after NAME, whatever is printed later",
    )
    group.add_argument(
        "--constraint",
        action="append",
        default=[],
        metavar="NAME",
        help="with --command: a measured constraint, the number printed after NAME; it holds where that is at most 0",
    )
    group.add_argument("--space", type=Path, metavar="FILE", help="TOML file with the variables")
    group.add_argument("--direction", choices=DIRECTIONS, help="default: as the file says, else minimize")


def add_points(command: argparse.ArgumentParser) -> None:
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


def own_objective(arguments: argparse.Namespace, kept: SpaceFile | None = None) -> Problem:
    """The user's own function or program, with the constraints given.

    `kept` has the variables of a study, for an objective that comes without any.
    """
    target: str | None = arguments.problem
    if target is None and arguments.program is None:
        raise InputError("there is nothing to optimise: give a file.py:function, or --command with a program")
    if target is not None and arguments.program is not None:
        raise InputError(f"give either {target!r} or --command, not both")
    if target is None:
        file = kept if arguments.space is None else read_space(arguments.space)
        if file is None:
            raise InputError("a program needs --space FILE, a TOML file that declares its variables")
        program = UserProgram.parse(arguments.program, file, arguments.timeout, arguments.constraint, arguments.value)
        problem = user_problem(arguments.program, program, file, arguments.direction)
    else:
        if not plugins.is_spec(target):
            raise InputError(
                f"{target!r} is no file.py:function; a benchmark problem is run with mctsvs bench run {target}"
            )
        if arguments.constraint or arguments.value is not None:
            option = "--constraint" if arguments.constraint else "--value"
            raise InputError(f"{option} goes with --command: a function returns (value, {{'stress': 0.3}})")
        file = None if arguments.space is None else read_space(arguments.space)
        problem = function_problem(target, find_function(target, file, otherwise=kept), arguments.direction)
    return replace(problem, where=(*problem.where, *getattr(arguments, "where", ())))


def named_again(arguments: argparse.Namespace, study: Study) -> Problem:
    """The objective that the user names again; its variables are the study's, unless it says them itself."""
    groups = groups_of(study.user_attrs, study.space.declared, study.path)
    kept = None
    if groups is not None or NAME not in study.user_attrs:
        kept = SpaceFile(study.space.declared, groups or {}, study.direction, vector=not study.space.named)
    problem = own_objective(arguments, kept)
    same = (kept is not None and getattr(problem, "file", None) is kept) or Space.of(problem.space) == study.space
    if not same or problem.direction != study.direction:
        raise StudyError(
            f"{problem.name} has other variables, or another direction, than the study {str(study.path)!r}"
        )
    return with_constraints(problem, study)


def add_data(command: argparse.ArgumentParser) -> None:
    command.add_argument("--data", metavar="DIR", help="look for the data of a benchmark problem there first")


def stored_problem(study: Study, note: SavedCommand, data: str | None) -> Problem:
    """The benchmark problem that the study names; the benchmark is loaded for such studies alone."""
    if data is not None:
        import_module("mctsvs.bench.problems.data").set_directory(data)
    problem: Problem = import_module("mctsvs.bench.problems").make(str(note.problem), **note.variation)
    if Space.of(problem.space) != study.space:
        raise StudyError(f"the study {str(study.path)!r} names {problem.name}, which has other variables")
    return problem


def with_constraints(problem: Problem, study: Study) -> Problem:
    """The problem with what the study knows its program by: its value, and all constraints that it measures.

    Without one of them no trial could be feasible.
    """
    known = next((tuple(trial.constraints) for trial in study.trials if trial.constraints), ())
    program = problem.function
    if not isinstance(program, UserProgram):
        return problem
    note = SavedCommand.of(study.user_attrs, study.path)
    if note is not None and note.own is not None and program.value != note.value:
        if program.value is not None:
            was = "the last number" if note.value is None else repr(note.value)
            raise StudyError(f"the value of the study {str(study.path)!r} is {was}, not {program.value!r}")
        program = replace(program, value=note.value)
        problem = replace(problem, function=program)
    if not known:
        return problem
    for name in program.constraints:
        if name not in known:
            raise StudyError(f"the study {str(study.path)!r} has no constraint {name!r}: it has {listed(known)}")
    return replace(problem, function=replace(program, constraints=known))


def never_printed(problem: Problem, trials: Iterable[Trial]) -> list[str]:
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
