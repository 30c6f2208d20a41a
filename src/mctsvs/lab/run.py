"""One run of a method on a problem, and its record."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mctsvs.common import Indices, InputError
from mctsvs import methods
from mctsvs.lab.settings import settings
from mctsvs.optimizer import Optimizer, Trial
from mctsvs.problems import Problem
from mctsvs.problems.failure import EvaluationFailed


@dataclass
class Record:
    """What a run leaves behind; `save` writes it as JSON."""

    problem: str
    variation: dict[str, Any]  # shuffle, shift, noise and the problem's seed
    method: str
    options: dict[str, Any]
    seed: int
    budget: int
    best: float = math.nan  # NaN, null in the file: all evaluations failed
    trace: list[float] = field(default_factory=list)  # best so far after each evaluation
    optimizer_seconds: float = 0.0  # spent in ask and tell
    cpu_seconds: float = 0.0  # the same as processor time, which other work on the machine does not lengthen
    wall_seconds: float = 0.0
    values: list[float] = field(default_factory=list)  # of each evaluation; NaN: it failed
    thinking: list[float] = field(default_factory=list)  # optimiser seconds so far, after each evaluation
    elapsed: list[float] = field(default_factory=list)  # wall seconds so far, after each evaluation
    # {"variables": [...], "evaluations": n} for each iteration of the method; the first is the initial design
    iterations: list[dict[str, Any]] = field(default_factory=list)
    recall: float | None = None
    best_x: list[float] = field(default_factory=list)
    best_params: dict[str, Any] = field(default_factory=dict)  # the same by name, where the variables have names
    # {"evaluation": number, "message": why} for each that failed, counted from 0
    failures: list[dict[str, Any]] = field(default_factory=list)
    interrupted: bool = False  # by Ctrl-C: fewer than `budget` evaluations were made
    importance: dict[str, float] = field(default_factory=dict)  # the twenty most important variables
    extra: dict[str, list[float]] = field(default_factory=dict)  # what only some methods measure, by evaluation

    def save(self, path: Path) -> None:
        try:
            path.write_text(json.dumps(without_nan(asdict(self)), indent=1, allow_nan=False) + "\n")
        except OSError as error:
            raise InputError(f"cannot write {str(path)!r}: {error.strerror}") from None


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a run; `record` holds what was found until then."""

    def __init__(self, record: Record) -> None:
        super().__init__()
        self.record = record


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

    `faithful` adds the paper's exploration constant, its search among random candidates, its limit of 50
    evaluations for TuRBO on a subset and what it sets for rivals (`mctsvs.lab.settings`).
    """
    chosen = dict(options)
    found = methods.find(method)
    known = methods.options_of(found)
    if faithful:
        burst = {"burst": 50} if found.solver == "turbo" and found.selector != "all" else {}
        own = {**problem.paper_options, **settings(method, problem.name)}
        for name, value in {**own, "acquisition_search": "candidates", **burst}.items():
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
    progress: Callable[[Optimizer, Trial], object] | None = None,
    importance: bool = True,
) -> Record:
    """Optimise `problem` with exactly `budget` evaluations.

    `importance=False` leaves out what is only computed at the end, a model of all variables that takes seconds.
    One that raises `EvaluationFailed` is recorded with its message and the run goes on.
    """
    chosen = paper_options(method, problem, options or {}, faithful)
    started = time.perf_counter()
    opt = Optimizer(problem.space, direction=problem.direction, method=method, seed=seed, budget=budget, **chosen)
    record = Record(problem.name, dict(variation or {}), method, chosen, opt.seed, budget)
    return follow(problem, opt, record, started, progress=progress, importance=importance)


def follow(
    problem: Problem,
    opt: Optimizer,
    record: Record,
    started: float,
    *,
    progress: Callable[[Optimizer, Trial], object] | None = None,
    importance: bool = True,
) -> Record:
    """Fill in `record` with a run of `opt`, which was made since `started`."""
    thinking = time.perf_counter() - started
    subsets: dict[int, list[Indices]] = {}  # moved in each iteration
    counts: dict[int, int] = {}
    noise = np.random.default_rng([opt.seed, 1])

    def evaluate(trial: Trial) -> float | None:
        try:
            return problem.evaluate(trial.x, noise)
        except EvaluationFailed as failure:
            record.failures.append({"evaluation": trial.number, "message": str(failure)})
            return None

    def step() -> None:
        nonlocal thinking
        before, cpu_before = time.perf_counter(), time.process_time()
        (trial,) = opt.ask()
        asked, cpu_asked = time.perf_counter(), time.process_time()
        value = evaluate(trial)
        evaluated, cpu_evaluated = time.perf_counter(), time.process_time()
        opt.tell(trial, value)
        thinking += asked - before + time.perf_counter() - evaluated
        record.cpu_seconds += cpu_asked - cpu_before + time.process_time() - cpu_evaluated
        moved = subsets.setdefault(trial.iteration, [])
        if not moved or moved[-1] is not trial.variables:  # a batch shares one array
            moved.append(trial.variables)
        counts[trial.iteration] = counts.get(trial.iteration, 0) + 1
        record.trace.append(float(opt.best.value or 0.0) if opt.has_best else math.nan)
        record.values.append(math.nan if trial.value is None else trial.value)
        record.thinking.append(thinking)
        record.elapsed.append(time.perf_counter() - started)
        if progress is not None:
            progress(opt, trial)

    try:
        for _ in range(record.budget):
            step()
    except KeyboardInterrupt:
        record.interrupted = True
    if opt.has_best:
        record.best, record.best_x = float(opt.best.value or 0.0), opt.best.x.tolist()
        record.best_params = opt.best.params if opt.space.named else {}
    record.optimizer_seconds, record.wall_seconds = thinking, time.perf_counter() - started
    if importance:
        record.importance = dict(list(opt.importance().items())[:20])
    selected = {t: np.unique(np.concatenate(moved)) for t, moved in subsets.items()}
    record.iterations = [{"variables": v.tolist(), "evaluations": counts[t]} for t, v in selected.items()]
    if problem.active is not None:
        record.recall = recall([v for t, v in selected.items() if t > 0], problem.active)
    if record.interrupted:
        raise Interrupted(record)
    return record
