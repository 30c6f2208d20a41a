"""A whole run in one call, as scipy's users know it: `minimize` and `maximize`.

What a run has found, named as scipy's users know it.
"""

from __future__ import annotations

import difflib
import math
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mctsvs.loop.stopping import COMPLETE, Status, StoppingCriteria, StoppingMonitor, StopReason, counted
from mctsvs.methods import registry
from mctsvs.methods.mcts_vs.tree import Node
from mctsvs.optimizer import Optimizer
from mctsvs.space.deduplicate import SpaceExhausted
from mctsvs.study import Study
from mctsvs.study.tables import first_points
from mctsvs.study.tables import rows as rows_of
from mctsvs.trial import Recommendation, Trial, split
from mctsvs.utils.validation import InputError, StudyError, check_bool, check_count, listed
from mctsvs.visualization.progress import ProgressReporter

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
    limits = StoppingCriteria(**{name: arguments.pop(name) for name in LIMITS if name in arguments})
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
        return _run(opt, f, StoppingMonitor(limits, direction == "maximize", callback), progress)
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
    own = registry.options_of(registry.find(options.get("method", registry.DEFAULT)))
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
        return result_of(study.optimizer, StopReason(Status.INTERRUPTED, "stopped by Ctrl-C"))
    except StudyError:
        if study._stop_reason.status is not Status.FAILING or not study.has_best:
            raise
    return result_of(study.optimizer, study._stop_reason)


def _run(opt: Optimizer, f: Objective, watch: StoppingMonitor, progress: bool) -> Result:
    view = None
    if progress:
        from mctsvs.visualization.terminal import choose_view  # rich is loaded where something is shown

        view = choose_view()
    ending = StopReason(Status.DONE, "")
    assert opt.budget is not None
    try:
        with ProgressReporter(view) as follower:
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
        ending = StopReason(Status.INTERRUPTED, "stopped by Ctrl-C")
    except SpaceExhausted:
        ending = StopReason(Status.EXHAUSTED, "every point of the space has been evaluated")
    except Exception as error:
        error.result = result_of(opt, StopReason(Status.RAISED, "the function raised"))  # type: ignore[attr-defined]
        raise
    result = result_of(opt, ending)
    if result.best is None and ending.status is not Status.INTERRUPTED:
        failed = InputError(f"all {result.nfev} evaluations failed: the function returned no finite number")
        failed.result = result  # type: ignore[attr-defined]
        raise failed
    return result


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """What `minimize` and `maximize` return, named as in scipy.

    Where values are known to be noisy (given, told, or seen by the method) `x` is the point of best expected value
    among those evaluated, `fun` that value, and `best` the luckiest trial; elsewhere `x` and `fun` are those of `best`.
    """

    x: Any  # a dict for a space with names, else a vector; None if no evaluation succeeded
    fun: float  # NaN if none has a value
    trials: list[Trial] = field(default_factory=list)
    importance: dict[str, float] = field(default_factory=dict)  # name -> score, most important first
    status: Status = Status.DONE
    message: str = ""
    number: int = -1  # of the trial of `x`
    tree: Node | None = None  # of groups of variables, for methods that have one
    about: dict[str, Any] = field(default_factory=dict)  # direction, method, options, seed and budget of the run
    best: Trial | None = None
    recommend: Callable[[], Recommendation] | None = None  # for those who ask for it: it takes a model

    @property
    def success(self) -> bool:
        """Whether the run came to its end, and a value was found, where there are constraints a feasible one."""
        return self.feasible and self.status in COMPLETE

    @property
    def feasible(self) -> bool:
        """Whether `x` satisfies the measured constraints; if not, it is the point that violates them least."""
        return not math.isnan(self.fun) and (self.best is None or self.best.feasible)

    @cached_property
    def recommendation(self) -> Recommendation | None:
        """The point of best expected value, whether or not values are known to be noisy; see `Optimizer.recommend`."""
        return None if self.recommend is None else self.recommend()

    def __getstate__(self) -> dict[str, Any]:
        """For pickle: what follows from the optimizer is computed, and the optimizer left behind."""
        return {**self.__dict__, "recommendation": self.recommendation, "recommend": None}

    @property
    def nfev(self) -> int:
        """Evaluations made."""
        return sum(trial.value is not None for trial in self.trials)

    def __repr__(self) -> str:
        best = self.number + 1
        found = "nothing succeeded" if not best else f"fun={self.fun:.6g} at evaluation {best} of {self.nfev}"
        matter = [name for name, score in self.importance.items() if score > 0.5]
        more = "" if not matter else f", {listed(matter)} {'matters' if len(matter) == 1 else 'matter'}"
        return f"Result({found}{more}: {self.message})"

    def _repr_html_(self) -> str:
        from mctsvs.visualization.report.card import card

        return card(self, f"Result, {self.about.get('method', '')}".rstrip(", "))

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write what the search has learned as one page that any browser opens, without a network."""
        from mctsvs.visualization.report import write

        return write(self, path)


def result_of(opt: Optimizer, ending: StopReason) -> Result:
    """Of a run of the optimizer that ended so."""
    told = [trial for trial in opt.trials if trial.value is not None and trial.source != "imported"]
    failures = sum(trial.failed for trial in told)
    missing = sum(not trial.has_value for trial in told) - failures
    parts = [counted(len(told), opt.budget or 0)]
    parts += [f"{failures} of them failed"] * bool(failures)
    parts += [f"{missing} of them without a value"] * bool(missing)
    parts += [ending.message] * bool(ending.message)
    best = opt.best if opt.has_best else None
    if best is not None and not best.feasible:
        those = "those with a value" if missing and best.has_value else "them"
        parts.append(f"none of {those} feasible: x violates {violated(best)}, the least in total")
    importance = opt.importance() if best is not None else {}
    where, value, number, recommend = None, math.nan, -1, None
    if best is not None:
        where, value, number, recommend = best.argument, best.value or 0.0, best.number, opt.recommend
        if opt.noisy and best.feasible:
            chosen = opt.recommend()
            where, value, number, recommend = chosen.trial.argument, chosen.mean, chosen.trial.number, lambda: chosen
    about = {name: getattr(opt, name) for name in ("direction", "method", "options", "seed", "budget")}
    message = ", ".join(parts)
    return Result(
        where, value, opt.trials, importance, ending.status, message, number, opt.tree, about, best, recommend
    )


def violated(trial: Trial) -> str:
    """The constraints that do not hold there, and by how much; what is not known may not hold."""
    found = {name: c for name, c in (trial.constraints or {}).items() if not c <= 0.0}
    return listed([f"{name} (not known)" if math.isnan(c) else f"{name} by {c:.3g}" for name, c in found.items()])
