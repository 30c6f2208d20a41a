"""A whole run in one call, as scipy's users know it: `minimize` and `maximize`."""

from __future__ import annotations

import difflib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from mctsvs import methods
from mctsvs.common import InputError, check_bool, check_count
from mctsvs.distinct import SpaceExhausted
from mctsvs.optimizer import Optimizer
from mctsvs.progress import Follower, somebody
from mctsvs.result import Result, result_of
from mctsvs.stopping import Ending, Limits, Status, Watch
from mctsvs.study import Study, StudyError
from mctsvs.study.points import first_points
from mctsvs.study.points import rows as rows_of
from mctsvs.trial import Trial, split

Objective = Callable[[Any], Any]
Callback = Callable[[Any, Trial], object]


def minimize(f: Objective, space: Any = None, budget: int | None = None, **arguments: Any) -> Result:
    """Minimise f with `budget` evaluations, or fewer where something else ends the run: see `Result.message`.

    f gets the point as a vector, or as a dict if `space` is a dict. Returning None, NaN or an infinity marks the
    evaluation as failed. With measured constraints it returns a value and a dict, `(value, {"stress": 0.3})`, whose
    numbers are at most 0 where the constraint holds.

    x0            a point to begin with, or several: vectors, dicts, or a CSV file with a column for each variable; if
                  it has one called value too, these evaluations are known and do not count
    constraints   what every point satisfies: "x1 + 2*x2 <= 100", functions of the point, ...; see `Optimizer`
    noise         standard deviation of the noise of f's values, 0 for exact ones, where it is known; see `Result`
    seed          a whole number, 0: the same seed gives the same points. None draws one.
    method        a name from `mctsvs methods`; further arguments are that method's options
    target        a value at least this good ends the run; where constraints are measured, of a feasible point
    max_seconds   no evaluation begins later than so many seconds after the call
    patience      so many evaluations in a row that were no better than the best before end the run
    max_failures  so many failures in a row, 30, end the run
    workers, executor, asynchronous, timeout    evaluations at once, by whom, and how long each may take: see
                  `Study.optimize`
    study         a file that keeps everything; the same call goes on where it ended
    callback      called as callback(optimizer, trial) after each evaluation; with a study or workers it gets the study.
                  Raising StopIteration, or returning True, ends the run
    progress      show how far the run is: on a terminal, or as a line below a notebook's cell; in a pipe, nothing.
                  The standard `logging` is told under "mctsvs", with or without it

    Ctrl-C and too many failures give the result so far (`success`, `status`, `message`). An exception in f is raised
    with the result so far as its attribute `result`; with a study or workers it is a failed evaluation. If no
    evaluation succeeded at all, that is an error.

    >>> result = minimize(lambda x: ((x - 0.3) ** 2).sum(), [(0, 1)] * 50, budget=100, seed=0)
    >>> result.x, result.fun, result.importance
    """
    return _optimise("minimize", f, space, budget, **arguments)


def maximize(f: Objective, space: Any = None, budget: int | None = None, **arguments: Any) -> Result:
    """Maximise f with `budget` evaluations; all arguments are those of `minimize`."""
    return _optimise("maximize", f, space, budget, **arguments)


def _optimise(
    direction: str,
    f: Objective,
    space: Any,
    budget: int | None,
    *,
    x0: Any = None,
    study: str | os.PathLike[str] | None = None,
    callback: Callback | None = None,
    progress: bool = False,
    **arguments: Any,
) -> Result:
    limits = Limits(**{name: arguments.pop(name) for name in LIMITS if name in arguments})
    crew = {name: arguments.pop(name) for name in CREW if name in arguments}
    _check_names(arguments)
    if space is None:
        raise InputError("there is no space: give the variables second, such as [(0, 1)] * 50")
    if budget is None:
        raise InputError("there is no budget: say how many evaluations there may be, such as budget=100")
    if not callable(f):
        raise InputError(f"the objective {f!r:.60} is not a function: give something that can be called with a point")
    check_count("budget", budget)
    check_bool("progress", progress)
    if study is None and not _needed(crew):
        opt = Optimizer(space, direction=direction, budget=budget, **arguments)
        begin_at(opt, x0)
        return _run(opt, f, Watch(limits, direction == "maximize", callback), progress)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.db" if study is None else study
        with Study(path, space, direction=direction, **{"seed": 0, **arguments}) as kept:
            if not kept.trials and not kept.optimizer.queue:
                begin_at(kept, x0)
            return _run_study(kept, f, budget, {**vars(limits), **crew, "callback": callback, "progress": progress})


def _needed(crew: Mapping[str, Any]) -> bool:
    """Whether anything but evaluating one point after the other is asked for."""
    return any(value is not None and (name, value) != ("asynchronous", False) for name, value in crew.items())


HINTS = {  # what other libraries call it
    "n_jobs": "evaluations at once are workers=",
    "n_workers": "evaluations at once are workers=",
    "max_workers": "evaluations at once are workers=",
    "n_trials": "the number of evaluations is budget=",
    "n_calls": "the number of evaluations is budget=",
    "n_iter": "the number of evaluations is budget=",
    "maxiter": "the number of evaluations is budget=",
    "max_iter": "the number of evaluations is budget=",
    "maxfun": "the number of evaluations is budget=",
    "maxfev": "the number of evaluations is budget=",
    "max_evals": "the number of evaluations is budget=",
    "num_evals": "the number of evaluations is budget=",
    "random_state": "the seed is seed=",
    "rng": "the seed is seed=",
    "bounds": "the variables are space=, the second argument",
    "dimensions": "the variables are space=, the second argument",
    "search_space": "the variables are space=, the second argument",
    "storage": "the file that keeps everything is study=",
    "callbacks": "one function is called after each evaluation, callback=",
    "time_limit": "seconds for the whole run are max_seconds=, for one evaluation timeout=",
    "max_time": "seconds for the whole run are max_seconds=, for one evaluation timeout=",
    "x_0": "points to begin with are x0=",
    "initial_guess": "points to begin with are x0=",
    "init": "points to begin with are x0=",
    "sigma": "the standard deviation of the noise is noise=",
    "tol": "a run ends by target=, patience= or max_seconds=",
    "direction": "use minimize or maximize",
    "algorithm": "the method is method=",
    "verbose": "to see how far the run is, progress=True",
    "disp": "to see how far the run is, progress=True",
}
LIMITS = ("target", "max_seconds", "patience", "max_failures")
CREW = ("workers", "executor", "asynchronous", "timeout")
NAMES = ("x0", "study", "callback", "progress", "constraints", "noise", "seed", "method", *LIMITS, *CREW)


def _check_names(options: Mapping[str, Any]) -> None:
    """What is nearly right is said; what else is not known is for the method to refuse."""
    own = methods.options_of(methods.find(options.get("method", methods.DEFAULT)))
    for name in options:
        if name in NAMES or name in own:
            continue
        if name in HINTS:
            raise InputError(f"there is no argument {name!r} here: {HINTS[name]}")
        meant = difflib.get_close_matches(name, NAMES, n=1, cutoff=0.75)
        if meant:
            raise InputError(f"there is no argument {name!r} here: did you mean {meant[0]}=?")


def begin_at(owner: Optimizer | Study, x0: Any) -> None:
    """Points to begin with: one, a list of them, or a CSV file; where that has values, they are known."""
    if x0 is None:
        return
    if not isinstance(x0, str | os.PathLike):
        owner.enqueue(_listed(x0))
        return
    path = Path(x0)
    points = first_points(path, owner.space)
    if points is not None:
        opt = owner.optimizer if isinstance(owner, Study) else owner
        for row, point in enumerate(points, 1):
            with _in_row(row, path):
                opt.unit_of(point)
        owner.enqueue(points)
    elif isinstance(owner, Study):
        owner.import_points(path)
    else:
        known = rows_of(path, owner.space, owner.direction)
        for row, (unit, *_) in enumerate(known, 1):
            with _in_row(row, path):
                owner.region.check(unit)
        for unit, value, message, details in known:
            owner.insert(unit, value, message, details)


@contextmanager
def _in_row(row: int, path: Path) -> Iterator[None]:
    """What is wrong is said with its place."""
    try:
        yield
    except InputError as error:
        raise InputError(f"row {row} of the file {str(path)!r}: {error}") from None


def _listed(x0: Any) -> list[Any]:
    """One point is a dict or a vector of numbers; several are a list of them."""
    several = isinstance(x0, list | tuple | np.ndarray) and len(x0) and not np.isscalar(x0[0])
    return list(x0) if several else [x0]


def _run_study(study: Study, f: Objective, budget: int, how: Mapping[str, Any]) -> Result:
    try:
        study.optimize(f, budget, **how)
    except KeyboardInterrupt:
        return result_of(study.optimizer, Ending(Status.INTERRUPTED, "stopped by Ctrl-C"))
    except StudyError:
        if study.ending.status is not Status.FAILING or not study.has_best:
            raise
    return result_of(study.optimizer, study.ending)


def _run(opt: Optimizer, f: Objective, watch: Watch, progress: bool) -> Result:
    view = somebody() if progress else None
    ending = Ending(Status.DONE, "")
    assert opt.budget is not None
    try:
        with Follower(view) as follower:
            follower.begin(opt, opt.budget)
            for _ in range(opt.budget):
                (trial,) = opt.ask()
                value, constraints = split(f(trial.argument))
                opt.tell(trial, value, constraints=constraints)
                follower.told(trial)
                if watch.told(opt, trial, better=opt.has_best and opt.best is trial) is not None:
                    break
        ending = watch.ending or ending
    except KeyboardInterrupt:
        ending = Ending(Status.INTERRUPTED, "stopped by Ctrl-C")
    except SpaceExhausted:
        ending = Ending(Status.EXHAUSTED, "every point of the space has been evaluated")
    except Exception as error:
        error.result = result_of(opt, Ending(Status.RAISED, "the function raised"))  # type: ignore[attr-defined]
        raise
    result = result_of(opt, ending)
    if result.best is None and ending.status is not Status.INTERRUPTED:
        failed = InputError(f"all {result.nfev} evaluations failed: the function returned no finite number")
        failed.result = result  # type: ignore[attr-defined]
        raise failed
    return result
