"""One run of a method on a benchmark problem, and its record."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Protocol

import numpy as np

from mctsvs.bench.paper.paper_settings import set_by_paper
from mctsvs.bench.problems import Problem
from mctsvs.loop.evaluation import Evaluation
from mctsvs.loop.loop import InMemory, Run, Workers
from mctsvs.loop.record import Clock, Recorded, RunRecord, RunSettings, without_nan
from mctsvs.loop.stopping import StoppingCriteria, StoppingMonitor, StopStatus
from mctsvs.methods import presets, registry
from mctsvs.optimizer import Optimizer
from mctsvs.optimizer.trial import TrialTimes
from mctsvs.utils.validation import Array, EvaluationFailed, Indices, InputError, check_count

__all__ = [
    "Clock",
    "Point",
    "RunRecord",
    "RunSettings",
    "follow",
    "make_optimizer",
    "paper_options",
    "run",
    "without_nan",
]

Progress = Callable[[float], object]
"""Called after each evaluation with the best value so far, NaN while all have failed."""


def make_optimizer(
    problem: Problem, method: str, *, seed: int, budget: int | None = None, options: Mapping[str, Any] | None = None
) -> Optimizer:
    """An optimizer for the problem; with a budget, it knows how many evaluations there will be."""
    chosen = {"constraints": problem.where, **(options or {})}
    return Optimizer(problem.space, direction=problem.direction, method=method, seed=seed, budget=budget, **chosen)


def paper_options(method: str, problem: Problem, options: Mapping[str, Any], faithful: bool = False) -> dict[str, Any]:
    """Options with what the paper sets by problem: Dropout's d is the number of variables that matter.

    `faithful` adds the paper's settings (`mctsvs.methods.presets`), its exploration constant, the width of the box its
    model works in, and what it sets for rivals (`mctsvs.bench.paper.paper_settings`).
    """
    chosen, found = dict(options), registry.find(method)
    known = registry.options_of(found)
    if faithful and found.name in presets.PAPER:
        own = {"settings": "paper", **problem.paper_options, **set_by_paper(found.name, problem.name)}
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
) -> RunRecord:
    """Optimise `problem` with exactly `budget` evaluations.

    Args:
        problem: The problem; an evaluation that raises `EvaluationFailed` is recorded with its message.
        method: Name of a method.
        budget: Evaluations.
        seed: Seed of the method.
        options: Options of the method.
        variation: How the problem was varied, for the record.
        faithful: Whether the method is run as the paper sets it; see `paper_options`.
        progress: Called after each evaluation.

    Raises:
        InputError: The space has fewer points than the budget.
    """
    chosen = paper_options(method, problem, options or {}, faithful)
    clock = Clock()
    with clock:
        opt = make_optimizer(problem, method, seed=seed, budget=check_count("budget", budget), options=chosen)
    record = RunRecord(RunSettings(problem.name, method, opt.seed, budget, chosen, dict(variation or {})), clock=clock)
    follow(problem, opt, record, progress)
    record.conclude(opt)
    return record


def follow(
    problem: Problem, search: Any, record: RunRecord, progress: Progress | None = None, *, batch: int = 1
) -> RunRecord:
    """Fill in `record` with a run of `search`, an Optimizer or another `Search`.

    What is on the record's clock already was spent before. Noise is drawn from the run's seed. With a batch, so many
    points are asked for at once, and evaluated one after the other.
    """
    noise, budget = np.random.default_rng([record.setting.seed, 1]), record.setting.budget
    trials = InMemory(search) if isinstance(search, Optimizer) else ForeignTrials(search, problem.direction)
    recorded = Recorded(trials, record, problem.direction)
    monitor = StoppingMonitor(StoppingCriteria(max_failures=budget + 1), problem.direction, worked=True)
    told = (lambda trial: None) if progress is None else lambda trial: progress(record.best)
    workers = Workers(catch=(EvaluationFailed,))
    if batch > 1:
        workers = Workers(batch, Immediately(), catch=(EvaluationFailed,))
    try:
        reason = Run(recorded, budget, monitor, workers, attrgetter("x"), told)(lambda x: problem.evaluate(x, noise))
    finally:
        recorded.conclude(problem.active)
    if reason.status in (StopStatus.EXHAUSTED, StopStatus.NOT_FOUND):
        raise InputError(f"{problem.name} has fewer points than {budget}: {reason.message}")
    return record


class Immediately(Executor):
    """Evaluates in this process, at the time of asking."""

    def submit(self, f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future = Future[Any]()
        try:
            future.set_result(f(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class Search(Protocol):
    """Another library, or a reference method: whatever can be asked for points and told their values."""

    def ask(self) -> list[Any]: ...

    def tell(self, trial: Any, value: float | None, /) -> object: ...


@dataclass(eq=False)
class Point:
    """A point of a `Search`, with what the loop reads of a trial; a subclass adds what the search needs."""

    number: int
    x: Array = field(repr=False)
    variables: Indices = field(default_factory=lambda: np.empty(0, dtype=np.intp), repr=False)
    iteration: int = 0  # 0: the initial design
    value: float | None = None
    message: str = ""
    asker: None = None
    times: TrialTimes = field(default_factory=TrialTimes, repr=False)

    @property
    def has_value(self) -> bool:
        return self.value is not None and not math.isnan(self.value)

    @property
    def failed(self) -> bool:
        return not self.has_value

    @property
    def feasible(self) -> bool:
        return True


class ForeignTrials:
    """The points of a `Search` as the loop knows trials."""

    def __init__(self, search: Search, direction: str) -> None:
        self.optimizer, self.sign = search, 1.0 if direction == "maximize" else -1.0
        self.best = -math.inf
        self.pending: list[Any] = []
        self.early: dict[int, Evaluation] = {}
        self.deaths: Mapping[int, int] = {}

    def plan(self, budget: int) -> None:
        """Such searches are told when they are made."""

    def ask(self, n: int) -> list[Any]:
        asked = self.optimizer.ask()
        while len(asked) < n:  # a search that gives several at once gives them all
            asked += self.optimizer.ask()
        return asked

    def tell(self, trial: Any, evaluation: Evaluation) -> tuple[Any, bool]:
        tell: Any = self.optimizer.tell  # a problem with constraints needs a search that takes them
        value = None if math.isnan(evaluation.value) else evaluation.value
        if evaluation.constraints is None:
            tell(trial, value)
        else:
            tell(trial, value, constraints=evaluation.constraints)
        if trial.value is None:
            trial.value = evaluation.value
        score = self.sign * evaluation.value
        better = score > self.best
        self.best = max(self.best, score) if better else self.best
        return trial, better

    def keep(self, trial: Any, evaluation: Evaluation) -> None:
        self.early[trial.number] = evaluation

    def record_death(self, trial: Any, message: str) -> int:
        raise NotImplementedError
