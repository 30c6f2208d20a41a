"""Everything about one run as plain data: values, best so far, seconds, and the variables that each iteration moved."""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mctsvs.loop.evaluation import Evaluation
from mctsvs.loop.loop import AskTell
from mctsvs.optimizer import Optimizer
from mctsvs.utils.validation import Indices
from mctsvs.utils.written import written


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
class EvaluationSeries:
    """A number for each evaluation."""

    values: list[float] = field(default_factory=list)  # NaN: it failed
    trace: list[float] = field(default_factory=list)  # best so far
    thinking: list[float] = field(default_factory=list)  # optimiser seconds so far
    elapsed: list[float] = field(default_factory=list)  # wall seconds so far


class Clock:
    """Seconds inside `with clock:` so far, by the wall and of the processor, which other work does not lengthen."""

    def __init__(self) -> None:
        self.wall = self.processor = 0.0
        self._since = 0.0, 0.0

    def __enter__(self) -> None:
        self._since = time.perf_counter(), time.process_time()

    def __exit__(self, *_: object) -> None:
        self.wall += time.perf_counter() - self._since[0]
        self.processor += time.process_time() - self._since[1]


@dataclass
class RunRecord:
    """What a run leaves behind; `save` writes it as JSON."""

    setting: RunSettings
    series: EvaluationSeries = field(default_factory=EvaluationSeries)
    clock: Clock = field(default_factory=Clock)
    best: float = math.nan  # NaN, null in the file: all evaluations failed
    best_x: list[float] = field(default_factory=list)
    best_params: dict[str, Any] = field(default_factory=dict)  # the same by name, where the variables have names
    constraints: dict[str, float] = field(default_factory=dict)  # measured there, or where they are violated least
    recommended: dict[str, Any] = field(default_factory=dict)  # where values are noisy: trial, mean, sd, x, params, ...
    variables: list[dict[str, Any]] = field(default_factory=list)  # those proved to act; see `VariableStatus`
    summary: str = ""  # which variables act, in words
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
        with written(path):
            path.write_text(json.dumps(without_nan(self.state()), indent=1, allow_nan=False) + "\n")

    def conclude(self, opt: Optimizer) -> None:
        """What the optimizer knows at the end."""
        if opt.has_best:
            self.best_params = opt.best.params if opt.space.named else {}
            self.constraints = dict(opt.best.constraints or {})
        rows = opt.variables()
        self.variables = [asdict(row) for row in rows if row.status == "active"]
        self.summary = rows.summary
        if opt.noisy and opt.has_best and opt.best.feasible:
            chosen = opt.recommend()
            params = chosen.params if opt.space.named else {}
            found: dict[str, Any] = {"mean": chosen.mean, "sd": chosen.sd, "replicates": chosen.replicates}
            found |= {"x": chosen.x.tolist(), "params": params}
            self.recommended = {"trial": chosen.trial.number, **found}


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


class Recorded:
    """Passes everything on to whoever keeps the trials (`AskTell`), and writes it into a record."""

    def __init__(self, trials: AskTell, record: RunRecord, direction: str) -> None:
        self.trials, self.record = trials, record
        self.sign = 1.0 if direction == "maximize" else -1.0
        self.started = time.perf_counter() - record.clock.wall
        self.subsets: dict[int, list[Indices]] = {}  # of variables that each iteration moved
        self.evaluations = Counter[int]()

    @property
    def optimizer(self) -> Any:
        return self.trials.optimizer

    @property
    def early(self) -> Mapping[int, Evaluation]:
        return self.trials.early

    @property
    def deaths(self) -> Mapping[int, int]:
        return self.trials.deaths

    @property
    def pending(self) -> list[Any]:
        return self.trials.pending

    def plan(self, budget: int) -> None:
        self.trials.plan(budget)

    def ask(self, n: int) -> list[Any]:
        with self.record.clock:
            return self.trials.ask(n)

    def tell(self, trial: Any, evaluation: Evaluation) -> tuple[Any, bool]:
        record, series = self.record, self.record.series
        with record.clock:
            trial, better = self.trials.tell(trial, evaluation)
        if trial.failed and evaluation.message:
            record.failures.append({"evaluation": trial.number, "message": evaluation.message})
        if better and trial.feasible and trial.has_value:
            record.best, record.best_x = float(trial.value), trial.x.tolist()
        series.values.append(float(trial.value))
        series.trace.append(record.best)
        series.thinking.append(record.clock.wall)
        series.elapsed.append(time.perf_counter() - self.started)
        subsets = self.subsets.setdefault(trial.iteration, [])
        if not subsets or subsets[-1] is not trial.variables:  # a batch shares one array
            subsets.append(trial.variables)
        self.evaluations[trial.iteration] += 1
        return trial, better

    def keep(self, trial: Any, evaluation: Evaluation) -> None:
        self.trials.keep(trial, evaluation)

    def record_death(self, trial: Any, message: str) -> int:
        return self.trials.record_death(trial, message)

    def conclude(self, active: Indices | None = None) -> None:
        """The iterations; with the variables that matter, `recall` too."""
        found = {t: np.unique(np.concatenate(subsets)) for t, subsets in self.subsets.items()}
        self.record.iterations = [
            {"variables": v.tolist(), "evaluations": self.evaluations[t]} for t, v in found.items()
        ]
        if active is not None:
            self.record.recall = recall([v for t, v in found.items() if t > 0], active)
