"""`mctsvs run` and `mctsvs resume`: one run of an objective, in memory or kept in a study, and what it printed."""

from __future__ import annotations

import argparse
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

from mctsvs.cli import objective, summary
from mctsvs.cli.arguments import add_criteria, add_worker_arguments, criteria_of, literal, whole
from mctsvs.cli.objective import GROUPS, NAME, SavedCommand
from mctsvs.loop.loop import InMemory, OfTrial, Workers, run
from mctsvs.loop.record import Recorded, RunRecord, RunSettings
from mctsvs.loop.stopping import INTERRUPTED, StopReason, StopStatus, counted
from mctsvs.methods import registry
from mctsvs.objectives.problem import Problem
from mctsvs.objectives.user_function import UserProblem
from mctsvs.objectives.user_program import UserProgram
from mctsvs.optimize import enqueue_x0
from mctsvs.optimizer import Optimizer
from mctsvs.optimizer.optimizer import SETTINGS
from mctsvs.space import Space
from mctsvs.study import Study
from mctsvs.utils import plugins
from mctsvs.utils.formatting import printable
from mctsvs.utils.validation import EvaluationFailed, InputError, StudyError, check_count
from mctsvs.utils.written import check_output
from mctsvs.visualization.progress import ProgressReporter

PLAIN: Mapping[str, Any] = {"shuffle": False, "shift": False, "noise": 0.0, "seed": 0}
"""The variation of an objective of the user's own."""


def add_commands(commands: Any) -> None:
    command = commands.add_parser(
        "run",
        usage="mctsvs run FILE.py:FUNCTION --space FILE [options]\n"
        "       mctsvs run --command COMMAND --space FILE [options]",
        help="optimise a function or program of your own",
        description="Optimise a function or program of your own, and print what was found. Benchmark problems are run "
        "with mctsvs bench run.",
    )
    command.add_argument(
        "problem", metavar="FILE.py:FUNCTION", nargs="?", help="a Python function; it gets its variables by name"
    )
    objective.add_arguments(command)
    add_arguments(command, budget=200)
    command.add_argument("--noise", type=float, metavar="SD", help="the noise that the values have, 0 for exact ones")
    command.add_argument(
        "--replicates", type=int, metavar="N", help="last evaluations, of the recommended point, where values are noisy"
    )
    command.add_argument(
        "--explain", type=float, metavar="SHARE", help="of the budget, at its end, that proves which variables act"
    )
    command.set_defaults(command=run_own)

    command = commands.add_parser(
        "resume",
        help="go on with a run that is kept in a file",
        description="Go on with a study, a run that is kept in a file, as it was run before unless told otherwise.",
    )
    command.add_argument("study", type=Path, metavar="FILE", help="the study file")
    command.add_argument(
        "problem", nargs="?", metavar="FILE.py:FUNCTION", help="an objective of your own, which a study does not hold"
    )
    objective.add_arguments(command)
    command.add_argument("--budget", type=whole, metavar="N", help="evaluations in all; default: as before")
    add_worker_arguments(command)
    add_criteria(command, failures=None)
    command.add_argument("--quiet", action="store_true", help="no display of how far the run is")
    objective.add_data(command)
    command.set_defaults(command=resume)


def add_arguments(command: argparse.ArgumentParser, budget: int) -> None:
    """What every run takes."""
    objective.add_points(command)
    command.add_argument(
        "--method", default=registry.DEFAULT, metavar="NAME", help="default: %(default)s (see: mctsvs methods)"
    )
    command.add_argument("--budget", type=whole, default=budget, metavar="N", help="evaluations; default: %(default)s")
    command.add_argument(
        "--seed", type=whole, default=0, metavar="S", help="the same seed gives the same run; default: %(default)s"
    )
    command.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="an option of the method; may be repeated"
    )
    command.add_argument("--json", type=Path, metavar="FILE", help="write everything about the run to this file")
    command.add_argument("--quiet", action="store_true", help="no display of how far the run is")
    add_criteria(command, failures=30)
    group = command.add_argument_group("keeping the run in a file, many evaluations at once")
    group.add_argument("--study", type=Path, metavar="FILE", help="store everything there; the same command goes on")
    add_worker_arguments(group)


def options_of(pairs: list[str]) -> dict[str, Any]:
    """NAME=VALUE pairs; values are Python literals, anything else is a string."""
    chosen: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not (name and equals):
            raise InputError(f"--set {pair!r} is not an option: write NAME=VALUE, such as --set cp=0.1")
        chosen[name] = literal(text)
    return chosen


def run_own(arguments: argparse.Namespace) -> int:
    """`mctsvs run`."""
    problem = objective.own_objective(arguments)
    settings = {name: getattr(arguments, name) for name in SETTINGS}
    options = options_of(arguments.set) | {name: value for name, value in settings.items() if value is not None}
    return execute(arguments, problem, options, PLAIN)


def execute(
    arguments: argparse.Namespace, problem: Problem, options: Mapping[str, Any], variation: Mapping[str, Any]
) -> int:
    """Run the problem as the arguments say, print what was found; the exit code."""
    check_count("budget", arguments.budget)
    registry.find(arguments.method)
    if arguments.study is not None:
        if arguments.json is not None:
            raise InputError("--json does not go with --study: the study holds everything, see mctsvs export")
        return _begin_study(arguments, problem, options, variation)
    for name in ("dask", "ray", "asynchronous"):
        if getattr(arguments, name) not in (None, False):
            raise InputError(f"--{name} needs --study FILE: evaluations elsewhere are kept in a study")
    if arguments.json is not None:
        check_output(arguments.json)
    return _run_in_memory(arguments, problem, options, variation)


def _run_in_memory(
    arguments: argparse.Namespace, problem: Problem, options: Mapping[str, Any], variation: Mapping[str, Any]
) -> int:
    opt = Optimizer(
        problem.space,
        direction=problem.direction,
        method=arguments.method,
        seed=arguments.seed,
        budget=arguments.budget,
        constraints=list(problem.where),
        **options,
    )
    enqueue_x0(opt, arguments.x0)
    settings = RunSettings(problem.name, opt.method, opt.seed, arguments.budget, dict(options), dict(variation))
    record = RunRecord(settings)
    if opt.has_best and opt.best.feasible:  # known before the first evaluation
        record.best, record.best_x = float(opt.best.value or 0.0), opt.best.x.tolist()
    recorded = Recorded(InMemory(opt), record, problem.direction)
    timeout = None if isinstance(problem.function, UserProgram) else arguments.timeout  # a program is ended anyway
    several = arguments.workers is not None or timeout is not None
    workers = Workers(arguments.workers, timeout=timeout) if several else Workers(catch=(EvaluationFailed,))
    f: Any = Objective(problem, opt.space, opt.seed) if several else _Sequential(problem, opt.space, opt.seed)
    reason = INTERRUPTED
    try:
        with polite_end():
            reason = run(
                recorded,
                opt,
                f,
                arguments.budget,
                criteria_of(arguments),
                workers,
                progress=reporter(arguments, problem),
            )
    except KeyboardInterrupt:
        record.interrupted = True
    recorded.conclude(problem.active)
    if arguments.json is not None:
        record.conclude(opt)
        record.save(arguments.json)
    share = f"{record.recall or 0.0:.3f}, mean share of the variables that matter among those selected"
    return conclude(opt, problem, reason, arguments.budget, *([("recall", share)] if record.recall is not None else []))


def reporter(arguments: argparse.Namespace, problem: Problem) -> ProgressReporter:
    """A display on a terminal, lines elsewhere."""
    label = printable(f"{getattr(arguments, 'method', '')} on {problem.name:.40}".removeprefix(" on "))
    if arguments.quiet:
        return ProgressReporter(None, label)
    from mctsvs.visualization.terminal import choose_view

    return ProgressReporter(choose_view(keep=False, lines=True), label)


@dataclass(frozen=True)
class Objective(OfTrial):
    """A problem as the loop calls it; its noise follows from the trial's number, whoever evaluates it and when."""

    problem: Problem
    space: Space
    seed: int

    @property
    def __wrapped__(self) -> Any:
        """What evaluates a point, for `inspect.unwrap`."""
        return self.problem.function

    def __call__(self, trial: tuple[int, Any]) -> Any:
        number, argument = trial
        x = self.space.vector(argument) if isinstance(argument, Mapping) else np.asarray(argument)
        return self.problem.evaluate(x, np.random.default_rng([self.seed, 1, number]))


class _Sequential:
    """The same for one evaluation after the other, with one stream of noise, as in a comparison."""

    def __init__(self, problem: Problem, space: Space, seed: int) -> None:
        self.problem, self.space, self.noise = problem, space, np.random.default_rng([seed, 1])

    def __call__(self, argument: Any) -> Any:
        x = self.space.vector(argument) if isinstance(argument, Mapping) else np.asarray(argument)
        return self.problem.evaluate(x, self.noise)


def conclude(
    owner: Optimizer | Study, problem: Problem, reason: StopReason, budget: int, *more: tuple[str, str]
) -> int:
    """Print what was found, with `more` rows, and on standard error what went wrong; the exit code."""
    done = sum(t.counts for t in owner.trials)
    if not done and reason.status is not StopStatus.INTERRUPTED:
        raise InputError(f"nothing was evaluated: {reason.message or 'the budget is used up'}")
    summary.summarise(owner, problem, *more)
    said = objective.never_printed(problem, owner.trials)
    if not owner.has_best:
        last = next((t.message for t in reversed(owner.trials) if t.failed), "")
        said.append(f"all {done} evaluations failed, the last with: {last}")
    elif not owner.best.feasible:
        said.append(summary.infeasible(done, owner.best))
    if reason.status is StopStatus.FAILING and owner.has_best:
        last_failure = next(t for t in reversed(owner.trials) if t.failed)
        said.append(f"{reason.message}, trial {last_failure.number} with: {last_failure.message}")
    elif reason.message and reason.status is not StopStatus.FAILING:
        said.append(f"{counted(done, budget)}, {reason.message}")
    for sentence in said:
        print(f"mctsvs: {printable(sentence)}", file=sys.stderr)
    if reason.status is StopStatus.INTERRUPTED:
        return 130
    if not (owner.has_best and owner.best.feasible and owner.best.has_value):
        return 1
    return 2 if reason.status is StopStatus.FAILING else 0


# runs that are kept


def _begin_study(
    arguments: argparse.Namespace, problem: Problem, options: Mapping[str, Any], variation: Mapping[str, Any]
) -> int:
    """`mctsvs run ... --study FILE`."""
    own = isinstance(problem, UserProblem)
    named = None if own else arguments.problem
    with Study(
        arguments.study,
        problem.space,
        direction=problem.direction,
        method=arguments.method,
        seed=arguments.seed,
        constraints=list(problem.where),
        **options,
    ) as study:
        problem = objective.with_constraints(problem, study)
        before = SavedCommand.of(study.user_attrs, study.path)
        if before is not None and (before.problem, before.variation) != (named, dict(variation)):
            was = before.problem or "another objective"
            raise StudyError(
                f"{str(study.path)!r} was created for {was}, or for another variation of it: give another file"
            )
        if not study.trials and not study.optimizer.enqueued:
            enqueue_x0(study, arguments.x0)
        arguments.own = (arguments.problem or arguments.program) if own else None
        arguments.value = getattr(problem.function, "value", None)
        kept = {name: getattr(arguments, name) for name in SavedCommand._fields[2:]}
        study.set_user_attr(NAME, SavedCommand(named, dict(variation), **kept)._asdict())
        if isinstance(problem, UserProblem) and problem.file is not None:
            study.set_user_attr(GROUPS, {name: len(members) for name, members in problem.file.groups.items()})
        again = _resuming(study, arguments) if named else "the same command"
        return _go(study, problem, arguments, again)


def resume(arguments: argparse.Namespace) -> int:
    """`mctsvs resume FILE`: as the study was run last, unless told otherwise."""
    if not arguments.study.exists():
        raise StudyError(f"there is no study {str(arguments.study)!r}: begin one with mctsvs run ... --study FILE")
    with Study(arguments.study) as study:
        note = SavedCommand.of(study.user_attrs, study.path)
        named = _names(arguments, study, note)
        if note is None:  # begun by a program
            note = SavedCommand(None, {}, None, None, None, False, None, 30, _budget(arguments.budget, study))
        problem = (
            objective.stored_problem(study, note, arguments.data) if named else objective.named_again(arguments, study)
        )
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
        return _go(study, problem, arguments, again)


def _names(arguments: argparse.Namespace, study: Study, note: SavedCommand | None) -> bool:
    """Whether the study names its objective; if not, the user must."""
    given = arguments.problem or arguments.program
    if note is not None and note.problem is not None:
        if given is not None:
            raise StudyError(f"{str(study.path)!r} was created for {note.problem}, not for {given!r}: leave that out")
        return True
    if given is None:
        own = None if note is None else note.own
        was = "" if own is None else f", which was {printable(own)!r}"
        again = "FILE.py:FUNCTION" if own is None else own if plugins.is_spec(own) else f"--command {shlex.quote(own)}"
        raise StudyError(
            f"the study {str(study.path)!r} cannot load its objective{was}: name it again, such as mctsvs resume "
            f"{shlex.quote(str(study.path))} {again}, or repeat the program that began it"
        )
    return False


def _budget(budget: int | None, study: Study) -> int:
    if budget is None:
        raise StudyError(f"the study {str(study.path)!r} does not say how many evaluations it is for: add --budget N")
    return check_count("budget", budget)


def _resuming(study: Study, arguments: argparse.Namespace) -> str:
    """The command that goes on."""
    given = {name: getattr(arguments, name) for name in ("dask", "ray")}
    given["workers"] = arguments.workers if (arguments.workers or 0) > (os.cpu_count() or 1) else None
    words = [
        f"--{name} {shlex.quote(str(value))}" if value != "" else f"--{name}"
        for name, value in given.items()
        if value is not None
    ]
    return " ".join([f"mctsvs resume {shlex.quote(str(study.path))}", *words])


def _go(study: Study, problem: Problem, arguments: argparse.Namespace, again: str) -> int:
    if study.evaluated >= arguments.budget:
        used = f"the study has {study.evaluated} evaluations already: give a larger --budget to go on"
        print(f"mctsvs: {used}", file=sys.stderr)
    try:
        with polite_end(), _executor(arguments) as executor:
            workers = Workers(arguments.workers, executor, arguments.asynchronous, arguments.timeout)
            f = Objective(problem, study.space, study.seed)
            shown = reporter(argparse.Namespace(method=study.method, quiet=arguments.quiet), problem)
            reason = study._run(f, arguments.budget, criteria_of(arguments), workers, progress=shown)
    except KeyboardInterrupt as stopped:
        done = str(stopped).partition("; the same call")[0] or "stopped"
        print(f"mctsvs: {done}\nmctsvs: go on with: {again}", file=sys.stderr)
        return 130
    return conclude(study, problem, reason, arguments.budget)


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
