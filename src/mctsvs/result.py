"""A whole run in one call, as scipy's users know it: `minimize`, `maximize`, and what they return."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from mctsvs import methods
from mctsvs.common import InputError, check_bool, check_count, listed
from mctsvs.distinct import SpaceExhausted
from mctsvs.optimizer import Optimizer
from mctsvs.progress import Follower, somebody
from mctsvs.stopping import COMPLETE, Ending, Limits, Status, Watch, counted
from mctsvs.tree import Node
from mctsvs.trial import Recommendation, Trial, split

Objective = Callable[[Any], Any]
Callback = Callable[[Optimizer, Trial], object]


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """What `minimize` and `maximize` return, named as in scipy.

    Where values are known to be noisy (given, told, or seen by the method) `x` is the point of best expected value
    among those evaluated, `fun` that value, and `best` the luckiest trial; elsewhere `x` and `fun` are those of `best`.
    """

    x: Any  # a dict for a space with names, else a vector; None if no evaluation succeeded
    fun: float  # NaN if none succeeded
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
        from mctsvs.report.card import card

        return card(self, f"Result, {self.about.get('method', '')}".rstrip(", "))

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write what the search has learned as one page that any browser opens, without a network."""
        from mctsvs.report import write

        return write(self, path)


def minimize(
    f: Objective,
    space: Any,
    *,
    budget: int,
    seed: int | None = 0,
    method: str = methods.DEFAULT,
    callback: Callback | None = None,
    target: float | None = None,
    max_seconds: float | None = None,
    patience: int | None = None,
    max_failures: int = 30,
    progress: bool = False,
    **options: Any,
) -> Result:
    """Minimise f with `budget` evaluations, or fewer where something else ends the run: see `Result.message`.

    f gets the point as a vector, or as a dict if `space` is a dict. Returning None, NaN or an infinity marks the
    evaluation as failed. With measured constraints it returns a value and a dict, `(value, {"stress": 0.3})`, whose
    numbers are at most 0 where the constraint holds.

    noise         standard deviation of the noise of f's values, 0 for exact ones, where it is known; see `Result`
    callback      called as callback(optimizer, trial) after each evaluation; raising StopIteration, or returning True,
                  ends the run
    target        a value at least this good ends the run; where constraints are measured, of a feasible point
    max_seconds   no evaluation begins later than so many seconds after the call
    patience      so many evaluations in a row that were no better than the best before end the run
    max_failures  so many failures in a row end the run
    progress      show how far the run is: on a terminal, or as a line below a notebook's cell; in a pipe, nothing.
                  The standard `logging` is told under "mctsvs", with or without it

    Ctrl-C and too many failures give the result so far (`success`, `status`, `message`). An exception in f is raised
    with the result so far as its attribute `result`; so is an error if no evaluation succeeded at all.

    >>> result = minimize(lambda x: ((x - 0.3) ** 2).sum(), [(0, 1)] * 50, budget=100, seed=0)
    >>> result.x, result.fun, result.importance
    """
    opt = _optimizer(space, "minimize", budget, seed=seed, method=method, **options)
    limits = Limits(target, max_seconds, patience, max_failures)
    return _run(opt, f, Watch(limits, opt.direction == "maximize", callback), progress)


def maximize(
    f: Objective,
    space: Any,
    *,
    budget: int,
    seed: int | None = 0,
    method: str = methods.DEFAULT,
    callback: Callback | None = None,
    target: float | None = None,
    max_seconds: float | None = None,
    patience: int | None = None,
    max_failures: int = 30,
    progress: bool = False,
    **options: Any,
) -> Result:
    """Maximise f with `budget` evaluations; see `minimize`."""
    opt = _optimizer(space, "maximize", budget, seed=seed, method=method, **options)
    limits = Limits(target, max_seconds, patience, max_failures)
    return _run(opt, f, Watch(limits, opt.direction == "maximize", callback), progress)


ELSEWHERE = {  # what other libraries call it, or where it is
    "workers": "evaluations in parallel are a study's: Study('run.db', space).optimize(f, budget, workers=...)",
    "n_jobs": "evaluations in parallel are a study's: Study('run.db', space).optimize(f, budget, workers=...)",
    "timeout": "a time limit is a study's: Study('run.db', space).optimize(f, budget, timeout=...)",
    "x0": "first points are an optimizer's or a study's: enqueue([x0])",
    "n_trials": "the number of evaluations is budget=",
    "n_calls": "the number of evaluations is budget=",
    "maxfun": "the number of evaluations is budget=",
    "max_evals": "the number of evaluations is budget=",
    "random_state": "the seed is seed=",
    "bounds": "the bounds are the second argument",
}


def _optimizer(space: Any, direction: str, budget: int, **options: Any) -> Optimizer:
    check_count("budget", budget)
    for name in options:
        if name in ELSEWHERE:
            raise InputError(f"there is no argument {name!r} here: {ELSEWHERE[name]}")
    return Optimizer(space, direction=direction, budget=budget, **options)


def _run(opt: Optimizer, f: Objective, watch: Watch, progress: bool) -> Result:
    if not callable(f):
        raise InputError(f"the objective {f!r:.60} is not a function: give something that can be called with a point")
    view = somebody() if check_bool("progress", progress) else None
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
        error.result = _result(opt, Ending(Status.RAISED, "the function raised"))  # type: ignore[attr-defined]
        raise
    result = _result(opt, ending)
    if math.isnan(result.fun) and ending.status is not Status.INTERRUPTED:
        failed = InputError(f"all {result.nfev} evaluations failed: the function returned no finite number")
        failed.result = result  # type: ignore[attr-defined]
        raise failed
    return result


def _result(opt: Optimizer, ending: Ending) -> Result:
    told = [trial for trial in opt.trials if trial.value is not None]
    failures = sum(trial.failed for trial in told)
    parts = [counted(len(told), opt.budget or 0)]
    parts += [f"{failures} of them failed"] * bool(failures)
    parts += [ending.message] * bool(ending.message)
    best = opt.best if opt.has_best else None
    if best is not None and not best.feasible:
        parts.append(f"none of them feasible: x violates {_violated(best)}, the least in total")
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


def _violated(trial: Trial) -> str:
    found = {name: c for name, c in (trial.constraints or {}).items() if not c <= 0.0}
    return listed([f"{name} by {c:.3g}" for name, c in found.items()])
