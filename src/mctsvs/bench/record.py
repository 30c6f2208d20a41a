"""One run of a method on a problem, and its record."""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mctsvs.bench.loop import Clock, Search, optimizer, rounds
from mctsvs.bench.paper.paper_settings import set_by_paper
from mctsvs.bench.problems import Problem
from mctsvs.loop.stopping import Status, StoppingCriteria, StoppingMonitor, counted
from mctsvs.methods import presets, registry
from mctsvs.optimizer import Optimizer
from mctsvs.space.deduplicate import SpaceExhausted
from mctsvs.utils.validation import EvaluationFailed, Indices, InputError, check_count
from mctsvs.visualization.progress import ProgressReporter

Progress = Callable[[float], object]
"""Called after each evaluation with the best value so far, NaN while all have failed."""


@dataclass(frozen=True)
class RunSettings:
    """What is run."""

    problem: str
    method: str
    seed: int
    budget: int
    options: Mapping[str, Any] = field(default_factory=dict)
    variation: Mapping[str, Any] = field(default_factory=dict)  # shuffle, shift, noise and the problem's seed


@dataclass
class Series:
    """A number for each evaluation."""

    values: list[float] = field(default_factory=list)  # NaN: it failed
    trace: list[float] = field(default_factory=list)  # best so far
    thinking: list[float] = field(default_factory=list)  # optimiser seconds so far
    elapsed: list[float] = field(default_factory=list)  # wall seconds so far


@dataclass
class RunRecord:
    """What a run leaves behind; `save` writes it as JSON."""

    setting: RunSettings
    series: Series = field(default_factory=Series)
    clock: Clock = field(default_factory=Clock)
    best: float = math.nan  # NaN, null in the file: all evaluations failed
    best_x: list[float] = field(default_factory=list)
    best_params: dict[str, Any] = field(default_factory=dict)  # the same by name, where the variables have names
    constraints: dict[str, float] = field(default_factory=dict)  # measured there, or where they are violated least
    recommended: dict[str, Any] = field(default_factory=dict)  # where values are noisy: trial, mean, sd, x and params
    importance: dict[str, float] = field(default_factory=dict)  # of every variable, most important first
    # {"variables": [...], "evaluations": n} for each iteration of the method; the first is the initial design
    iterations: list[dict[str, Any]] = field(default_factory=list)
    recall: float | None = None
    # {"evaluation": number, "message": why} for each that failed, counted from 0
    failures: list[dict[str, Any]] = field(default_factory=list)
    interrupted: bool = False  # by Ctrl-C: fewer than `budget` evaluations were made
    extra: dict[str, list[float]] = field(default_factory=dict)  # what only some methods measure, by evaluation

    @property
    def trace(self) -> list[float]:
        return self.series.trace

    def state(self) -> dict[str, Any]:
        """Everything as plain data, without levels."""
        seconds = {
            "optimizer_seconds": self.clock.wall,  # spent in ask and tell
            "cpu_seconds": self.clock.processor,
            "wall_seconds": self.series.elapsed[-1] if self.series.elapsed else 0.0,
        }
        own = {name: value for name, value in vars(self).items() if name not in ("setting", "series", "clock")}
        return {**asdict(self.setting), **seconds, **asdict(self.series), **own}

    def save(self, path: Path) -> None:
        try:
            path.write_text(json.dumps(without_nan(self.state()), indent=1, allow_nan=False) + "\n")
        except OSError as error:
            raise InputError(f"cannot write {str(path)!r}: {error.strerror}") from None

    def whole(self) -> RunRecord:
        """Itself; `Interrupted` if it was stopped."""
        if self.interrupted:
            raise Interrupted(self)
        return self


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a run; `record` holds what was found until then."""

    def __init__(self, record: RunRecord) -> None:
        super().__init__()
        self.record = record


class StoppedEarly(InputError):
    """A run that ended before its budget, and why; `record` holds what was found until then."""

    def __init__(self, record: RunRecord, why: str, *, failing: bool = False) -> None:
        super().__init__(why)
        self.record, self.failing = record, failing  # failing: too many evaluations in a row


def without_nan(value: Any) -> Any:
    """The same with None for NaN, which JSON does not know."""
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_nan(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def recall(iterations: list[Indices], active: Indices) -> float | None:
    """Mean over iterations t of d*_t / d: the share of the d valid variables among those selected (Table 2).

    Selected in an iteration of Algorithm 1 are the variables of its leaf, each of them moved in one of the subsets.
    """
    shares = [np.isin(active, variables).mean() for variables in iterations]
    return float(np.mean(shares)) if shares else None


def paper_options(method: str, problem: Problem, options: Mapping[str, Any], faithful: bool = False) -> dict[str, Any]:
    """Options with what the paper sets by problem: Dropout's d is the number of variables that matter.

    `faithful` adds the paper's settings (`mctsvs.methods.presets`), its exploration constant, the width of the box its model
    works in, and what it sets for rivals (`mctsvs.bench.paper.paper_settings`).
    """
    chosen = dict(options)
    known = registry.options_of(registry.find(method))
    if faithful and method in presets.PAPER:
        own = {"settings": "paper", **problem.paper_options, **set_by_paper(method, problem.name)}
        widths = np.ptp(problem.bounds, axis=1)
        if np.ptp(widths) == 0.0:  # its model has one lengthscale for all variables, in their own units
            own["width"] = float(widths[0])
        for name, value in own.items():
            if name in known:
                chosen.setdefault(name, value)
    if "d" in known and problem.active is not None:
        chosen.setdefault("d", len(problem.active))
    return chosen


def run(
    problem: Problem,
    method: str,
    *,
    budget: int,
    seed: int,
    options: Mapping[str, Any] | None = None,
    variation: Mapping[str, Any] | None = None,
    faithful: bool = False,
    progress: Progress | None = None,
    follower: ProgressReporter | None = None,
    importance: bool = True,
    limits: StoppingCriteria | None = None,
    begin: Callable[[Optimizer], object] | None = None,
) -> RunRecord:
    """Optimise `problem` with exactly `budget` evaluations; `StoppedEarly` if no point is left, or a limit was reached.

    `importance=False` leaves out what is only computed at the end, a model of all variables that takes seconds.
    One that raises `EvaluationFailed` is recorded with its message and the run goes on. `begin` is called with the
    optimizer before the first evaluation.
    """
    check_count("budget", budget)
    chosen = paper_options(method, problem, options or {}, faithful)
    started = time.perf_counter()
    opt = optimizer(problem, method, seed=seed, budget=budget, options=chosen)
    record = RunRecord(RunSettings(problem.name, method, opt.seed, budget, chosen, dict(variation or {})))
    record.clock.wall = time.perf_counter() - started
    ended = None
    if begin is not None:
        begin(opt)
        if opt.has_best and opt.best.feasible:
            record.best, record.best_x = float(opt.best.value or 0.0), opt.best.x.tolist()
    if follower is not None:
        follower.begin(opt, budget)
        progress = _told(follower, opt)
    try:
        watch = None if limits is None else StoppingMonitor(limits, problem.direction == "maximize")
        follow(problem, opt, record, progress, watch)
    except StoppedEarly as early:
        ended = early
    if opt.has_best:
        record.best_params = opt.best.params if opt.space.named else {}
        record.constraints = dict(opt.best.constraints or {})
    if importance:
        record.importance = opt.importance()
        record.recommended = _recommended(opt)
    if ended is not None:
        raise ended
    return record.whole()


def _recommended(opt: Optimizer) -> dict[str, Any]:
    """The point of best expected value, where values are known to be noisy."""
    if not (opt.noisy and opt.has_best and opt.best.feasible):
        return {}
    chosen = opt.recommend()
    params = chosen.params if opt.space.named else {}
    found = {"mean": chosen.mean, "sd": chosen.sd, "x": chosen.x.tolist(), "params": params}
    return {"trial": chosen.trial.number, **found}


def _told(follower: ProgressReporter, opt: Optimizer) -> Progress:
    return lambda best: follower.told(opt.trials[-1])


class MovedVariables:
    """The variables that each iteration moved, and its number of evaluations."""

    def __init__(self) -> None:
        self.subsets: dict[int, list[Indices]] = {}
        self.evaluations = Counter[int]()

    def add(self, trial: Any) -> None:
        subsets = self.subsets.setdefault(trial.iteration, [])
        if not subsets or subsets[-1] is not trial.variables:  # a batch shares one array
            subsets.append(trial.variables)
        self.evaluations[trial.iteration] += 1

    def fill(self, record: RunRecord, problem: Problem) -> None:
        found = {t: np.unique(np.concatenate(subsets)) for t, subsets in self.subsets.items()}
        record.iterations = [{"variables": v.tolist(), "evaluations": self.evaluations[t]} for t, v in found.items()]
        if problem.active is not None:
            record.recall = recall([v for t, v in found.items() if t > 0], problem.active)


def follow(
    problem: Problem,
    search: Search,
    record: RunRecord,
    progress: Progress | None = None,
    watch: StoppingMonitor | None = None,
) -> None:
    """Fill in `record` with a run of `search`; what is on its clock already was spent before."""
    started = time.perf_counter() - record.clock.wall
    noise = np.random.default_rng([record.setting.seed, 1])
    series, moved = record.series, MovedVariables()
    sign = 1.0 if problem.direction == "maximize" else -1.0

    def evaluate(trial: Any) -> Any:
        try:
            return problem.evaluate(trial.x, noise)
        except EvaluationFailed as failure:
            record.failures.append({"evaluation": trial.number, "message": str(failure)})
            return None

    try:
        for trial in rounds(search, evaluate, record.setting.budget, record.clock):
            moved.add(trial)
            value = float(trial.value)
            better = sign * value > sign * record.best or (math.isnan(record.best) and not math.isnan(value))
            better = better and getattr(trial, "feasible", True)
            if better:
                record.best, record.best_x = value, trial.x.tolist()
            series.values.append(value)
            series.trace.append(record.best)
            series.thinking.append(record.clock.wall)
            series.elapsed.append(time.perf_counter() - started)
            if progress is not None:
                progress(record.best)
            if watch is not None and watch.told(search, trial, better=better) is not None:
                raise _ended(record, watch)
    except KeyboardInterrupt:
        record.interrupted = True
    except SpaceExhausted as error:
        raise StoppedEarly(record, str(error)) from None
    finally:
        moved.fill(record, problem)


def _ended(record: RunRecord, watch: StoppingMonitor) -> StoppedEarly:
    assert watch.ending is not None
    done = len(record.series.values)
    if watch.ending.status is not Status.FAILING:
        return StoppedEarly(record, f"{counted(done, record.setting.budget)}, {watch.ending.message}")
    message = record.failures[-1]["message"] if record.failures else "no finite number"
    why = f"the last {watch.failures} evaluations all failed, evaluation {done - 1} with: {message}"
    return StoppedEarly(record, why, failing=True)
