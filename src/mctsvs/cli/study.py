"""`mctsvs run --study`, `resume`, `show`, `export` and `salvage`: runs that are kept in a file."""

from __future__ import annotations

import argparse
import hashlib
import os
import shlex
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from mctsvs.bench import problems
from mctsvs.bench.problems import data
from mctsvs.cli import objective as own
from mctsvs.cli import summary
from mctsvs.cli import summary as learned
from mctsvs.cli.arguments import add_data, add_limits, limits_of, whole
from mctsvs.cli.progress import follower
from mctsvs.objectives.user_function import UserProblem
from mctsvs.optimize import begin_at
from mctsvs.space import Space
from mctsvs.study import Study
from mctsvs.study.saved_command import GROUPS, NAME, SavedCommand
from mctsvs.utils.formatting import printable
from mctsvs.utils.validation import InputError, StudyError, check_count


def add_run_arguments(command: argparse.ArgumentParser) -> None:
    """What `run` takes in addition when it keeps a study."""
    group = command.add_argument_group("keeping the run in a file, many evaluations at once")
    group.add_argument("--study", type=Path, metavar="FILE", help="store everything there; the same command goes on")
    _add_worker_arguments(group)


def add_commands(commands: Any) -> None:
    """The commands of their own."""
    command = commands.add_parser(
        "resume",
        help="go on with a run that is kept in a file",
        description="Go on with a study, a run that is kept in a file, as it was run before unless told otherwise.",
    )
    command.add_argument("study", type=Path, metavar="FILE", help="what was given to mctsvs run --study")
    command.add_argument(
        "problem", nargs="?", metavar="FILE.py:FUNCTION", help="an objective of your own, which a study does not hold"
    )
    own.add_arguments(command)
    command.add_argument("--budget", type=whole, metavar="N", help="evaluations in all; default: as before")
    _add_worker_arguments(command)
    add_limits(command, failures=None)
    add_data(command)
    command.add_argument("--quiet", action="store_true", help="no display of how far the run is")
    command.set_defaults(command=resume)

    command = commands.add_parser(
        "show",
        help="show what a study has found",
        description="Show what a study has found, also while it is running.",
    )
    command.add_argument("study", type=Path, metavar="FILE", help="the study")
    add_data(command)
    command.set_defaults(command=show)

    command = commands.add_parser(
        "export",
        help="write a study's evaluations as a table",
        description="Write a study's evaluations as a table, a row for each, with a column for each variable.",
    )
    command.add_argument("study", type=Path, metavar="FILE", help="the study")
    command.add_argument(
        "table", type=Path, metavar="TABLE", help="the file to write; its name ends in .csv or .parquet"
    )
    command.set_defaults(command=export)

    command = commands.add_parser(
        "salvage",
        help="save what is intact in a damaged study",
        description="Save what is intact in a damaged study: all that was written before the damage.",
    )
    command.add_argument("study", type=Path, metavar="FILE", help="the damaged study; it stays as it is")
    command.add_argument("new", type=Path, metavar="NEW", help="the study to write")
    command.set_defaults(command=rescue)


def _add_worker_arguments(group: Any) -> None:
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


def check_run_arguments(arguments: argparse.Namespace) -> None:
    """Options that mean nothing without a study are refused."""
    if arguments.study is not None:
        return
    for name in ("workers", "dask", "ray", "asynchronous", "timeout"):
        own_clock = name == "timeout" and arguments.program is not None  # a program is stopped without a study too
        if getattr(arguments, name) not in (None, False) and not own_clock:
            raise InputError(f"--{name} needs --study FILE: evaluations elsewhere are kept in a study")


@dataclass(frozen=True)
class Objective:
    """A problem as a study calls it; its noise follows from the point, so that evaluating it again repeats it."""

    problem: problems.Problem
    space: Space
    seed: int

    def __call__(self, argument: Any) -> Any:
        x = self.space.vector(argument) if isinstance(argument, Mapping) else np.asarray(argument)
        digest = hashlib.blake2b(x.tobytes(), digest_size=8).digest()
        return self.problem.evaluate(x, np.random.default_rng([self.seed, 1, int.from_bytes(digest, "little")]))


def run(
    arguments: argparse.Namespace, problem: problems.Problem, options: Mapping[str, Any], variation: Mapping[str, Any]
) -> int:
    """`mctsvs run ... --study FILE`."""
    named = arguments.problem if _is_named(arguments) else None
    with Study(
        arguments.study,
        problem.space,
        direction=problem.direction,
        method=arguments.method,
        seed=arguments.seed,
        constraints=list(problem.where),
        **options,
    ) as study:
        problem = own.with_constraints(problem, study)
        before = SavedCommand.of(study.user_attrs, study.path)
        if before is not None and (before.problem, before.variation) != (named, dict(variation)):
            was = before.problem or "another objective"
            raise StudyError(
                f"the study {str(study.path)!r} was begun with another problem or variation, {was}: repeat the command "
                f"that began it, or give another file"
            )
        if not study.trials and not study.optimizer.queue:
            begin_at(study, arguments.x0)
        arguments.own = None if named else arguments.problem or arguments.program
        kept = {name: getattr(arguments, name) for name in SavedCommand._fields[2:]}
        study.set_user_attr(NAME, SavedCommand(named, dict(variation), **kept)._asdict())
        if isinstance(problem, UserProblem) and problem.file is not None:
            study.set_user_attr(GROUPS, {name: len(members) for name, members in problem.file.groups.items()})
        again = _resuming(study, arguments) if named else "the same command"
        return _go(study, Objective(problem, study.space, study.seed), problem, arguments, again)


def _is_named(arguments: argparse.Namespace) -> bool:
    """Whether it is one of our problems, which a study file may name; a user's program must be given by the user."""
    try:
        problems.make(str(arguments.problem))
    except InputError:
        return False
    return True


def resume(arguments: argparse.Namespace) -> int:
    """`mctsvs resume FILE`: as the study was run last, unless told otherwise."""
    if not arguments.study.exists():
        raise StudyError(f"there is no study {str(arguments.study)!r}: begin one with mctsvs run PROBLEM --study FILE")
    _look_in(arguments.data)
    with Study(arguments.study) as study:
        note = SavedCommand.of(study.user_attrs, study.path)
        named = _names(arguments, study, note)
        if note is None:  # begun by a program
            note = SavedCommand(None, {}, None, None, None, False, None, 30, _said(arguments.budget, study))
        problem = _problem(study, note) if named else own.named_again(arguments, study)
        for name in ("budget", "timeout", "max_failures", "target", "patience"):
            if getattr(arguments, name) is None:
                setattr(arguments, name, getattr(note, name))
        if arguments.dask is None and arguments.ray is None and arguments.workers is None:
            note.check_modest(study.path)
            arguments.workers = note.workers
            arguments.asynchronous |= note.asynchronous
        if note.variation:
            study.set_user_attr(NAME, note._replace(budget=arguments.budget)._asdict())
        again = _resuming(study, arguments) if note.problem else "the same command"
        return _go(study, Objective(problem, study.space, study.seed), problem, arguments, again)


def _names(arguments: argparse.Namespace, study: Study, note: SavedCommand | None) -> bool:
    """Whether the study names its objective; if not, the user must."""
    given = arguments.problem or arguments.program
    if note is not None and note.problem is not None:
        if given is not None:
            raise StudyError(f"the study {str(study.path)!r} is of {note.problem}, not of {given!r}: leave that out")
        return True
    if given is None:
        was = "" if note is None or note.own is None else f", which was {printable(note.own)!r}"
        raise StudyError(
            f"the study {str(study.path)!r} does not name its objective{was}: name it again, such as "
            f"mctsvs resume {shlex.quote(str(study.path))} FILE.py:FUNCTION, or repeat the program that "
            f"began it"
        )
    return False


def _said(budget: int | None, study: Study) -> int:
    if budget is None:
        raise StudyError(f"the study {str(study.path)!r} does not say how many evaluations it is for: add --budget N")
    return check_count("budget", budget)


def _words(name: str, value: Any) -> str:
    """An option as it is typed."""
    return f"--{name} {shlex.quote(str(value))}" if value != "" else f"--{name}"


def _resuming(study: Study, arguments: argparse.Namespace) -> str:
    """The command that goes on."""
    given = {name: getattr(arguments, name) for name in ("dask", "ray")}
    given["workers"] = arguments.workers if (arguments.workers or 0) > (os.cpu_count() or 1) else None
    words = [_words(name, value) for name, value in given.items() if value is not None]
    return " ".join([f"mctsvs resume {shlex.quote(str(study.path))}", *words])


def _problem(study: Study, note: SavedCommand) -> problems.Problem:
    """The problem that the study names."""
    problem = problems.make(str(note.problem), **note.variation)
    if Space.of(problem.space) != study.space:
        raise StudyError(
            f"the study {str(study.path)!r} names the problem {problem.name}, but its variables are different: give a "
            f"file that was written by this version of mctsvs"
        )
    return problem


def _go(
    study: Study, objective: Objective, problem: problems.Problem, arguments: argparse.Namespace, again: str
) -> int:
    try:
        label = f"{study.method} on {problem.name:.40}"
        with polite_end(), _executor(arguments) as executor:
            study.optimize(
                objective,
                arguments.budget,
                executor=executor,
                workers=arguments.workers,
                asynchronous=arguments.asynchronous,
                timeout=arguments.timeout,
                **vars(limits_of(arguments)),
                progress=follower(label, quiet=arguments.quiet),
            )
    except KeyboardInterrupt as stopped:
        done = str(stopped).partition("; the same call")[0] or "stopped"
        print(f"mctsvs: {done}\nmctsvs: go on with: {again}", file=sys.stderr)
        return 130
    except StudyError as error:
        if study.has_best or not study.evaluated:
            raise
        print(
            f"mctsvs: {printable(str(error))}", file=sys.stderr
        )  # no result, but nothing wrong with the input: as without a study
        return 1
    summarise(study, problem)
    said = [] if study.best.feasible else [summary.infeasible(study.evaluated, study.best)]
    said += [study.message] if study.evaluated < arguments.budget else []
    for sentence in [*own.never_printed(problem, study.trials), *said]:
        print(f"mctsvs: {printable(sentence)}", file=sys.stderr)
    return int(not (study.best.feasible and study.best.has_value))


@contextmanager
def polite_end() -> Iterator[None]:
    """A polite end, as batch systems send it, is as good as Ctrl-C."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _executor(arguments: argparse.Namespace) -> Iterator[Any]:
    if arguments.dask is not None:
        from mctsvs.integrations.clusters import connect_dask

        client, executor = connect_dask(arguments.dask)
        try:
            yield executor
        finally:
            client.close()
    elif arguments.ray is not None:
        from mctsvs.integrations.clusters import start_ray

        yield start_ray(arguments.ray or None)
    else:
        yield None


def summarise(study: Study, problem: problems.Problem | None) -> dict[str, float]:
    """The study in a few lines; the importance of its variables, where it could be told."""
    trials = study.trials
    failed = [t for t in trials if t.failed]
    counts = [f"{study.evaluated}"]
    counts += [f"{len(failed)} of them failed"] if failed else []
    imported = sum(t.source == "imported" for t in trials)
    counts += [f"{imported} imported"] if imported else []
    counts += [f"{len(study.pending)} waiting"] if study.pending else []
    rows = [
        ("study", str(study.path)),
        ("problem", f"{problem.name + ', ' if problem else ''}{len(study.space)} variables, {study.direction}"),
        ("method", f"{study.method}, seed {study.seed}"),
        *(summary.best(study.best, problem) if study.has_best else [("best value", "none yet")]),
        ("evaluations", ", ".join(counts)),
    ]
    if failed:
        rows.append(("last failure", f"trial {failed[-1].number}: {failed[-1].message or 'no message'}"))
    importance: dict[str, float] = {}
    if study.has_best and len(trials) - len(study.pending) > 2:
        importance = _importance(study)
        rows += summary.variables(problem, importance, study.best.params, rest="")
        rows += _recommended(study, importance)
    summary.show(rows)
    return importance


def _importance(study: Study) -> dict[str, float]:
    """What needs the method itself is left out where that is a file that the study alone names."""
    try:
        return study.importance()
    except StudyError:
        return {}


def _recommended(study: Study, importance: Mapping[str, float]) -> summary.Rows:
    """Where values are known to be noisy."""
    try:
        if not (study.optimizer.noisy and study.best.feasible):
            return []
        chosen = study.recommend()
    except StudyError:
        return []
    return summary.recommended(
        chosen.mean, chosen.sd, chosen.trial.number, importance=importance, params=chosen.params, rest=""
    )


def _look_in(directory: str | None) -> None:
    if directory is not None:
        data.set_directory(directory)


def show(arguments: argparse.Namespace) -> int:
    """`mctsvs show FILE`; a problem whose data or extra is not here is left out."""
    _look_in(arguments.data)
    with Study(arguments.study, readonly=True) as study:
        note = SavedCommand.of(study.user_attrs, study.path)
        problem = None
        if note is not None and note.problem is not None:
            try:
                problem = _problem(study, note)
            except StudyError:
                raise
            except InputError as error:
                print(f"mctsvs: {printable(str(error))}", file=sys.stderr)
        importance = summarise(study, problem)
        if note is not None and study.evaluated < note.budget:
            print(f"{'to do':<16}{note.budget - study.evaluated} of {note.budget} evaluations")
        if importance:
            learned.show_importance(study, importance)
    return 0


def export(arguments: argparse.Namespace) -> int:
    """`mctsvs export FILE TABLE`."""
    with Study(arguments.study, readonly=True) as study:
        study.export(arguments.table)
        print(f"{len(study.trials)} trials in {arguments.table}")
    return 0


def rescue(arguments: argparse.Namespace) -> int:
    """`mctsvs salvage FILE NEW`."""
    from mctsvs.study.replay import salvage

    print(f"{salvage(arguments.study, arguments.new)} evaluations saved in {arguments.new}")
    return 0
