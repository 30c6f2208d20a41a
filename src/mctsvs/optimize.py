"""A whole run in one call: `minimize` and `maximize`, and the `Result` they return, named as in scipy."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Never

import numpy as np

from mctsvs.loop.loop import InMemory, Workers, run
from mctsvs.loop.stopping import INTERRUPTED, SUCCESSFUL, Callback, StoppingCriteria, StopReason, StopStatus, counted
from mctsvs.methods import registry
from mctsvs.methods.mcts_vs.tree import Node
from mctsvs.optimizer import Optimizer, one_space
from mctsvs.optimizer.active_variables import VariableStatuses
from mctsvs.optimizer.front import Front
from mctsvs.optimizer.objectives import Objectives
from mctsvs.optimizer.optimizer import NO_BEST, SETTINGS, SEVERAL, refuse_for_several
from mctsvs.optimizer.trial import Recommendation, Trial
from mctsvs.utils.formatting import listed, printable
from mctsvs.utils.validation import Array, EvaluationFailed, InputError, check_count

if TYPE_CHECKING:
    import pandas

    from mctsvs.study import Study

Objective = Callable[..., Any]


def minimize(
    f: Objective,
    space: Any = None,
    budget: int | None = None,
    *,
    bounds: Any = None,
    x0: Any = None,
    constraints: Any = (),
    noise: float | None = None,
    explain: float | None = None,
    replicates: int | None = None,
    directions: Sequence[str] | None = None,
    objectives: Mapping[str, str] | None = None,
    reference: Sequence[float] | Mapping[str, float] | None = None,
    seed: int | None = 0,
    method: str = registry.DEFAULT,
    options: Mapping[str, Any] | None = None,
    target: float | None = None,
    max_seconds: float | None = None,
    patience: int | None = None,
    max_failures: int = 30,
    workers: int | None = None,
    executor: Executor | None = None,
    asynchronous: bool = False,
    timeout: float | None = None,
    study: str | os.PathLike[str] | None = None,
    callback: Callback | Sequence[Callback] | None = None,
    progress: bool = False,
    **unknown: Never,
) -> Result:
    """Minimise f with `budget` evaluations, or fewer where something else ends the run.

    Ctrl-C and too many failures give the result so far (`success`, `status`, `message`). An exception in f is raised
    with the result so far as its attribute `result`; with a study or workers it is a failed evaluation.

    Args:
        f: The objective. It gets the point as a vector, or as a dict if `space` is a dict; a function whose arguments
            are named like the variables gets them as keywords. It returns a value, or with measured constraints a
            value and a dict, `(value, {"stress": 0.3})`, whose numbers are at most 0 where the constraint holds.
            None, NaN and infinities mark the evaluation as failed. With several objectives it returns all values in a
            tuple or list, or in a dict if they have names.
        space: The variables: a list of (low, high) pairs, an array of shape (n, 2), `scipy.optimize.Bounds`, or a
            dict of name -> `Float`, `Integer`, ...; see `Space`.
        budget: Evaluations in all.
        bounds: Another word for `space`.
        x0: A point to begin with, or several: vectors, dicts, a DataFrame, or a CSV file with a column for each
            variable. If there is a column called value too, these evaluations are known and do not count.
        constraints: What every point satisfies: "x1 + 2*x2 <= 100", functions of the point, ...; see `Optimizer`.
        noise: Standard deviation of the noise of f's values where it is known, 0 for exact ones; see `Result`.
        explain: Share of the budget, at its end, that proves which variables act; see `Optimizer`.
        replicates: Evaluations at the end that measure the recommended point anew where values are noisy; see
            `Optimizer`.
        directions: "minimize" or "maximize" of each of several objectives, in a list; the result is then a
            `FrontResult`.
        objectives: The same with names, such as {"cost": "minimize", "lift": "maximize"}.
        reference: Of several objectives, values that the front is to be better than; see `Optimizer`.
        seed: The same whole number gives the same points. None draws one.
        method: A name that `mctsvs methods` lists.
        options: Options of the method, by name.
        target: The run ends when a feasible point has a value at least this good.
        max_seconds: No evaluation begins later than this many seconds after the call.
        patience: The run ends after this many evaluations in a row without improvement.
        max_failures: The run ends after this many failures in a row. If nothing has succeeded yet, it ends after three
            equal ones of a TypeError, NameError, KeyError, AttributeError or ImportError.
        workers: Evaluations at once, in processes of this machine.
        executor: A `concurrent.futures.Executor` that evaluates; see `Study.optimize`.
        asynchronous: A free worker gets a new point at once, in place of batches.
        timeout: Seconds for one evaluation.
        study: A file that keeps everything; the same call goes on where it ended.
        callback: Called as `callback(optimizer, trial)` after each evaluation, with a study as `callback(study,
            trial)`; one of a single argument is called as scipy calls it. A list of them is possible. True, or
            StopIteration, ends the run.
        progress: Show how far the run is, on a terminal or below a notebook's cell. The standard `logging` is told
            under "mctsvs" in any case.

    Returns:
        What was found; see `Result`, and with several objectives `FrontResult`.

    Raises:
        InputError: An argument cannot be used, or no evaluation succeeded.

    Example:
        >>> result = minimize(lambda x: ((x - 0.3) ** 2).sum(), [(0, 1)] * 50, budget=100, seed=0)
        >>> result.x, result.fun

        >>> result = minimize(lambda x: (x[0], x[1] - x[0]), [(0, 1)] * 9, 50, directions=["minimize", "maximize"])
        >>> result.front.values, result.hypervolume, result.knee.x
    """
    given = dict(locals())
    del given["unknown"]
    return _optimise("minimize", unknown, **given)


def maximize(
    f: Objective,
    space: Any = None,
    budget: int | None = None,
    *,
    bounds: Any = None,
    x0: Any = None,
    constraints: Any = (),
    noise: float | None = None,
    explain: float | None = None,
    replicates: int | None = None,
    seed: int | None = 0,
    method: str = registry.DEFAULT,
    options: Mapping[str, Any] | None = None,
    target: float | None = None,
    max_seconds: float | None = None,
    patience: int | None = None,
    max_failures: int = 30,
    workers: int | None = None,
    executor: Executor | None = None,
    asynchronous: bool = False,
    timeout: float | None = None,
    study: str | os.PathLike[str] | None = None,
    callback: Callback | Sequence[Callback] | None = None,
    progress: bool = False,
    **unknown: Never,
) -> Result:
    """Maximise f with `budget` evaluations; everything else is as in `minimize`.

    Args:
        f: The objective.
        space: The variables.
        budget: Evaluations in all.
        bounds: Another word for `space`. This and all further arguments are those of `minimize`.

    Returns:
        What was found; see `Result`.

    Example:
        >>> result = maximize(lambda x: -((x - 0.3) ** 2).sum(), [(0, 1)] * 50, budget=100, seed=0)
    """
    given = dict(locals())
    del given["unknown"]
    return _optimise("maximize", unknown, **given)


def _optimise(
    direction: str,
    unknown: Mapping[str, Any],
    *,
    f: Objective,
    space: Any,
    budget: Any,
    bounds: Any,
    x0: Any,
    study: Any,
    callback: Any,
    progress: bool,
    method: str,
    options: Mapping[str, Any] | None,
    **rest: Any,
) -> Result:
    if not isinstance(options or {}, Mapping):
        raise InputError(f"options={options!r:.60} cannot be used: give a dict of name -> value")
    for name in options or {}:
        if not isinstance(name, str):
            raise InputError(f"options={options!r:.60} cannot be used: the name {name!r:.60} must be a string")
    chosen = {**(options or {}), **check_keywords(unknown, method, NAMES)}
    criteria = StoppingCriteria(**{name: rest.pop(name) for name in CRITERIA})
    evaluators = {name: rest.pop(name) for name in WORKERS}
    problem = {"direction": direction, "method": method, "seed": rest["seed"], **chosen}
    problem |= {name: rest[name] for name in (*SETTINGS, *SEVERAL) if rest.get(name) is not None}
    if not (isinstance(rest["constraints"], tuple) and not rest["constraints"]):
        problem["constraints"] = rest["constraints"]
    space = one_space(space, bounds)
    if budget is None:
        raise InputError("there is no budget: say how many evaluations there may be, such as budget=100")
    if not callable(f):
        raise InputError(f"the objective {f!r:.60} is not a function: give something that can be called with a point")
    budget = check_count("budget", budget)
    if study is not None:
        from mctsvs.study import Study  # SQLite, which only a run that is kept needs

        if problem.keys() & SEVERAL:
            del problem["direction"]
        with Study(study, space, **problem) as kept:
            if kept.objectives is not None:
                refuse_for_several(target=criteria.target)
            if not kept.trials and not kept.optimizer.enqueued:
                enqueue_x0(kept, x0)
            return _run_study(kept, f, budget, criteria, Workers(**evaluators), callback=callback, progress=progress)
    workers = Workers(**evaluators)
    if workers.here:
        workers = Workers(catch=(EvaluationFailed,))
    opt = Optimizer(space, budget=budget, **problem)
    if opt.objectives is not None:
        refuse_for_several(target=criteria.target)
    enqueue_x0(opt, x0)
    return _run(opt, f, budget, criteria, workers, callback=callback, progress=progress)


CRITERIA = ("target", "max_seconds", "patience", "max_failures")
WORKERS = ("workers", "executor", "asynchronous", "timeout")
NAMES = tuple(name for name in minimize.__annotations__ if name not in ("unknown", "return"))
HINTS = {  # what other libraries call it
    **dict.fromkeys(("n_jobs", "n_workers", "max_workers"), "evaluations at once are workers="),
    **dict.fromkeys(
        ("n_trials", "n_calls", "n_iter", "maxiter", "max_iter", "maxfun", "maxfev", "max_evals", "num_evals"),
        "the number of evaluations is budget=",
    ),
    **dict.fromkeys(("random_state", "rng"), "the seed is seed="),
    **dict.fromkeys(("dimensions", "search_space"), "the variables are space=, the second argument"),
    **dict.fromkeys(("storage", "db"), "the file that keeps everything is study="),
    "callbacks": "functions called after each evaluation are callback=, one or a list",
    **dict.fromkeys(("time_limit", "max_time"), "seconds for the run are max_seconds=, for one evaluation timeout="),
    **dict.fromkeys(("x_0", "initial_guess", "init", "y0"), "points to begin with are x0=, known values a file x0="),
    "sigma": "the standard deviation of the noise is noise=",
    "tol": "a run ends by target=, patience= or max_seconds=",
    "direction": "use minimize or maximize",
    **dict.fromkeys(SEVERAL, "several objectives are minimize(f, space, budget, directions=['minimize', 'maximize'])"),
    "algorithm": "the method is method=",
    **dict.fromkeys(("verbose", "disp"), "to see how far the run is, progress=True"),
    "args": "bind further arguments yourself, as functools.partial or a lambda does",
    **dict.fromkeys(("jac", "hess"), "no derivative is used: leave it out"),
    **dict.fromkeys(("n_initial_points", "acq_func", "sampler", "pruner"), "the method decides that: see method="),
}


def check_keywords(unknown: Mapping[str, Any], method: str, names: Sequence[str]) -> Mapping[str, Any]:
    """Keywords that are options of the method; others are refused with the name that was probably meant."""
    own = registry.options_of(registry.find(method))
    for name in unknown:
        if name not in own and name in HINTS:
            raise InputError(f"there is no argument {name!r} here: {HINTS[name]}")
    registry.check(method, unknown, names)
    return unknown


def enqueue_x0(owner: Optimizer | Study, x0: Any) -> None:
    """Points to begin with: one, a list of them, or a table; where that has values, they are known."""
    if x0 is None:
        return
    from mctsvs.study.tables import first_points, is_table, rows  # tables, which few runs begin with

    if not is_table(x0):
        owner.enqueue(_points(x0))
        return
    opt = owner if isinstance(owner, Optimizer) else owner.optimizer
    points = first_points(x0, opt.region)
    if points is not None:
        owner.enqueue(points)
    elif owner.objectives is not None:
        raise InputError("x0= has values of one objective: several go to Optimizer.add, or leave the values out")
    elif isinstance(owner, Optimizer):
        for unit, value, message, details in rows(x0, opt.region, opt.direction):
            opt._core.insert(unit, value, message, details)
    else:
        owner.import_points(x0)


def _points(x0: Any) -> list[Any]:
    """One point is a dict or a vector of numbers; several are a list of them."""
    listed = isinstance(x0, list | tuple) or (isinstance(x0, np.ndarray) and x0.ndim > 0)
    several = listed and len(x0) and not np.isscalar(x0[0]) and getattr(x0[0], "shape", None) != ()
    return list(x0) if several else [x0]


def _run_study(study: Study, f: Objective, budget: int, *how: Any, **more: Any) -> Result:
    reason, before = INTERRUPTED, study.evaluated
    with suppress(KeyboardInterrupt):
        reason = study._run(f, budget, *how, **more)
    return _checked(result_of(study.optimizer, reason, before), reason)


def _run(opt: Optimizer, f: Objective, budget: int, *how: Any, **more: Any) -> Result:
    reason = INTERRUPTED
    try:
        reason = run(InMemory(opt), opt, f, budget, *how, **more)
    except KeyboardInterrupt:
        pass
    except Exception as error:
        error.result = result_of(opt, StopReason(StopStatus.RAISED, "the function raised"))  # type: ignore[attr-defined]
        raise
    return _checked(result_of(opt, reason), reason)


def _checked(result: Result, reason: StopReason) -> Result:
    """The result, unless there is none."""
    if not result.any_known and reason.status is not StopStatus.INTERRUPTED:
        made = result.before + result.nfev
        if not made:
            raise InputError(f"nothing was evaluated: {reason.message}")
        last = next((t.message for t in reversed(result.trials) if t.message), "the function returned no finite number")
        failed = InputError(f"all {made} evaluations failed, the last with: {last}")
        failed.result = result  # type: ignore[attr-defined]
        raise failed
    return result


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """What `minimize` and `maximize` return, named as in scipy.

    Where values are known to be noisy (given, told, or seen at a point evaluated twice) `x` is the point of best
    expected value among those evaluated, `fun` that value, and `best` the luckiest trial. Elsewhere `x` and `fun` are
    those of `best`: `fun` is what f returned at `x`, and the best of all values.

    Attributes:
        x: The point found: a dict for a space with names, else a vector; None if no evaluation succeeded.
        fun: The value there; NaN if none has a value.
        trials: All trials, in the order they were asked for.
        status: Why the run ended, as a number.
        message: Why the run ended, in words.
        number: Number of the trial of `x`.
        tree: The tree of variable groups, for methods that have one.
        about: Direction, method, options, seed and budget of the run.
        best: The trial of the best value.
        recommend: Computes `recommendation`.
        before: Evaluations of earlier calls, which the study has kept.
        explain: Computes `variables`.
        expected: Mean and deviation of the objective at points of the unit cube, by the model that pictures show.

    Example:
        >>> result = minimize(f, [(0, 1)] * 50, budget=100)
        >>> result.x, result.fun, result.success, result.message
    """

    x: Any
    fun: float
    trials: list[Trial] = field(default_factory=list)
    status: StopStatus = StopStatus.DONE
    message: str = ""
    number: int = -1
    tree: Node | None = None
    about: dict[str, Any] = field(default_factory=dict)
    best: Trial | None = None
    recommend: Callable[[], Recommendation] | None = None
    before: int = 0
    explain: Callable[[], VariableStatuses] | None = None
    expected: Callable[[Array], tuple[Array, Array]] | None = None

    @property
    def success(self) -> bool:
        """Whether the run came to its end, and a value was found, where there are constraints a feasible one."""
        return self.feasible and self.status in SUCCESSFUL

    @property
    def feasible(self) -> bool:
        """Whether `x` satisfies the measured constraints; if not, it is the point that violates them least."""
        return not math.isnan(self.fun) and (self.best is None or self.best.feasible)

    @property
    def any_known(self) -> bool:
        """Whether an evaluation has succeeded."""
        return self.best is not None

    @cached_property
    def recommendation(self) -> Recommendation | None:
        """The point to take, with an interval where values are noisy; see `Optimizer.recommend`."""
        return None if self.recommend is None else self.recommend()

    @cached_property
    def variables(self) -> VariableStatuses:
        """Which variables act, as far as evaluations prove it: a row for each; see `Optimizer.variables`."""
        return VariableStatuses() if self.explain is None else self.explain()

    def __getstate__(self) -> dict[str, Any]:
        """For pickle: what follows from the optimizer is computed, and the optimizer left behind."""
        computed = {"recommendation": self.recommendation, "variables": self.variables}
        return {**self.__dict__, **computed, "recommend": None, "explain": None, "expected": None}

    @property
    def nfev(self) -> int:
        """Evaluations made in this call: without those imported, and those of earlier calls that a study keeps."""
        return sum(trial.counts for trial in self.trials) - self.before

    @property
    def nit(self) -> int:
        """The same, under the name that scipy has for iterations."""
        return self.nfev

    def keys(self) -> tuple[str, ...]:
        """The names that `result[name]` knows, so that `dict(result)` is what scipy's users expect."""
        return ("x", "fun", "success", "status", "message", "nfev", "nit", "trials", "variables", "best")

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __getitem__(self, name: str) -> Any:
        """`result["x"]`, as scipy's results allow."""
        if name not in self.keys():
            raise KeyError(f"a result has no {name!r}: it has {', '.join(self.keys())}")
        return getattr(self, name)

    def to_dataframe(self) -> pandas.DataFrame:
        """A row for each trial, as `Study.to_dataframe` has it; needs pandas.

        Example:
            >>> result.to_dataframe()[["number", "value"]]
        """
        from mctsvs.study.tables import dataframe

        if not self.trials:
            raise InputError("there is no table: the result has no trials")
        return dataframe(self.trials, self.trials[0].space, times=True)

    def __repr__(self) -> str:
        found = "nothing succeeded" if self.number < 0 else f"fun={self.fun:.6g} at trial {self.number}"
        chosen = None if self.recommend is None else self.recommendation
        if chosen is not None and chosen.sd > 0.0:
            found = f"values are noisy; expected at x: {chosen}"
        more = f", {self.variables.summary}" if self.variables.active else ""
        return f"Result({found}{more}: {self.message})"

    def _repr_html_(self) -> str:
        from mctsvs.visualization.report import card

        return card(self, f"Result, {self.about.get('method', '')}".rstrip(", "))

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write what the search has learned as one page that any browser opens, without a network.

        Example:
            >>> result.report("report.html")
        """
        from mctsvs.visualization.report import write

        return write(self, path)


@dataclass(frozen=True, eq=False, repr=False)
class FrontResult(Result):
    """What `minimize` returns for several objectives: a front in place of `x`, `fun` and `best`, which it refuses.

    Attributes:
        front: The trials of which none is better in every objective, with their points and values; see `Front`.

    Example:
        >>> result = minimize(f, [(0, 1)] * 50, budget=200, directions=["minimize", "maximize"])
        >>> result.front.points, result.front.values, result.hypervolume, result.reference, result.knee.x
        >>> pandas.DataFrame(result.front.table())
    """

    front: Front = field(kw_only=True)

    def __getattribute__(self, name: str) -> Any:
        if name in ("x", "fun", "best", "recommendation"):
            raise InputError(NO_BEST)
        return super().__getattribute__(name)

    @property
    def objectives(self) -> Objectives:
        """Names and directions."""
        return self.front.objectives

    @property
    def hypervolume(self) -> float:
        """What the front dominates, down to `reference`."""
        return self.front.hypervolume

    @property
    def reference(self) -> Array:
        """(M,) the point that hypervolume is measured from; see `Front.reference`."""
        return self.front.reference

    @property
    def knee(self) -> Trial:
        """The trial of the front at which every other way costs most: the usual compromise."""
        return self.front.knee

    @property
    def feasible(self) -> bool:
        """Whether a point satisfies the measured constraints."""
        return len(self.front) > 0

    @property
    def any_known(self) -> bool:
        """Whether an evaluation has succeeded."""
        return any(trial.has_value for trial in self.trials)

    def __getstate__(self) -> dict[str, Any]:
        """For pickle: see `Result`."""
        return {**self.__dict__, "variables": self.variables, "explain": None}

    def keys(self) -> tuple[str, ...]:
        """The names that `result[name]` knows."""
        others = tuple(name for name in Result.keys(self) if name not in ("x", "fun", "best"))
        return ("front", "hypervolume", "reference", "knee", *others)

    def to_dataframe(self) -> pandas.DataFrame:
        """A row for each trial, with a column for each objective in place of one for the value; needs pandas."""
        from mctsvs.study.tables import dataframe

        if not self.trials:
            raise InputError("there is no table: the result has no trials")
        return dataframe(self.trials, self.trials[0].space, times=True, objectives=self.front.objectives)

    def __repr__(self) -> str:
        found = f"{len(self.front)} points on the front" if self.feasible else "no front"
        more = f", hypervolume {self.hypervolume:.6g}" if self.feasible else ""
        return f"FrontResult({found}{more}: {self.message})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}\n{escape(str(self.front))}</pre>"


def result_of(opt: Optimizer, ending: StopReason, before: int = 0) -> Result:
    """Of a run of the optimizer that ended so; `before`: evaluations of earlier calls."""
    told = [trial for trial in opt.trials if trial.counts]
    failures = sum(trial.failed for trial in told)
    missing = sum(not trial.has_value for trial in told) - failures
    parts = [counted(len(told), opt.budget or 0)]
    parts += [f"{before} of them in earlier calls"] * bool(before)
    parts += [f"{failures} of them failed"] * bool(failures)
    parts += [f"{missing} of them without a value"] * bool(missing)
    parts += [ending.message] * bool(ending.message)
    best = opt.best if opt.has_best else None
    if best is not None and not best.feasible:
        those = "those with a value" if missing and best.has_value else "them"
        parts.append(f"none of {those} feasible: {infeasibility(best, 'x')}")
    where, value, number, recommend = None, math.nan, -1, None
    if best is not None:
        where, value, number, recommend = best.argument, best.value or 0.0, best.number, opt.recommend
        if opt.noisy and best.feasible:
            chosen = opt.recommend()
            where, value, number, recommend = chosen.trial.argument, chosen.mean, chosen.trial.number, lambda: chosen
    front = None if opt.objectives is None else opt.front
    if front is not None and not len(front) and any(trial.has_value for trial in told):
        parts.append("none of them feasible")
    about = {name: getattr(opt, name) for name in ("direction", "method", "options", "seed", "budget")}
    message = ", ".join(parts)
    computed: dict[str, Any] = {"recommend": recommend, "explain": opt.variables, "expected": opt._core.expected}
    known = (ending.status, message, number, opt.tree, about, best)
    if front is not None:
        return FrontResult(None, math.nan, opt.trials, *known, explain=opt.variables, before=before, front=front)
    return Result(where, value, opt.trials, *known, **computed, before=before)


def infeasibility(best: Trial, name: str) -> str:
    """Why the best trial, or its point, of this name is not feasible: what does not hold there may be not known."""
    if not best.constraints:
        return f"{name} has no measured constraint"
    found = {n: c for n, c in best.constraints.items() if not c <= 0.0}
    words = [f"{n} (not known)" if math.isnan(c) else f"{n} by {c:.3g}" for n, c in found.items()]
    return printable(f"{name} violates {listed(words)}, the least in total")
