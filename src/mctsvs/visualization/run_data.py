"""A run as pictures need it, read in the same way from a Result, a Study or an Optimizer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mctsvs.optimizer.active_variables import VariableStatuses
from mctsvs.optimizer.unit_cube import Trials
from mctsvs.space import Space
from mctsvs.utils.validation import Array, Indices, InputError

if TYPE_CHECKING:
    from mctsvs.methods.mcts_vs.tree import Node
    from mctsvs.optimizer.trial import Recommendation, Trial

Expected = Callable[[Array], tuple[Array, Array]]  # points (m, D) -> mean and deviation of the objective, (m,) each


@dataclass
class RunData:
    """A run as it is now; what takes thinking is computed when it is first asked for."""

    label: str
    space: Space
    direction: str
    trials: Sequence[Trial]
    about: Mapping[str, Any] = field(default_factory=dict)  # method, seed, options, budget, ... as far as known
    explain: Callable[[], VariableStatuses] = VariableStatuses
    groups: Callable[[], Node | None] = lambda: None
    advice: Callable[[], Recommendation | None] = lambda: None
    expected: Expected | None = None  # by the model of the method
    chosen: Callable[[], Trial | None] | None = None  # the best trial, where whoever ran it says so

    @classmethod
    def of(cls, source: Any, label: str = "") -> RunData:
        """The run in a Result, a Study, an Optimizer, or what looks like one."""
        if isinstance(source, RunData):
            return source
        trials, variables = getattr(source, "trials", None), getattr(type(source), "variables", None)
        if trials is None or variables is None:
            raise InputError(f"there is nothing to see in {source!r:.60}: give a Result, a Study or an Optimizer")
        if getattr(source, "objectives", None) is not None:
            raise InputError("pictures show one objective: front.table() and to_dataframe() have several")
        space = getattr(source, "space", None) or (trials[0].space if trials else None)
        if space is None:
            raise InputError("there is nothing to see yet: no point has been evaluated")
        names = ("method", "seed", "options", "budget", "path", "user_attrs")
        about = {name: value for name in names if (value := getattr(source, name, None)) is not None}
        about |= getattr(source, "about", {})
        label = label or (Path(about["path"]).stem if "path" in about else str(about.get("method", "run")))
        direction = str(getattr(source, "direction", about.get("direction", "minimize")))
        run = cls(label, space, direction, trials, about)
        run.explain = source.variables if callable(variables) else lambda: source.variables
        run.groups, run.advice = (lambda: getattr(source, "tree", None)), (lambda: advice_of(source))
        run.expected = expected_of(source)
        if hasattr(type(source), "best"):
            run.chosen = lambda: source.best if getattr(source, "has_best", True) else None
        return run

    @property
    def command(self) -> Mapping[str, Any]:
        """What the command line has noted in the study: the benchmark problem and how it was run. Else empty."""
        note = dict(self.about.get("user_attrs") or {}).get("command")
        return note if isinstance(note, dict) else {}

    @property
    def problem(self) -> str:
        """The name of the benchmark problem; empty where it is not known."""
        return str(self.command.get("problem") or "")

    @cached_property
    def variables(self) -> VariableStatuses:
        """What evaluations prove about each variable; empty while none has succeeded."""
        return self.explain() if len(self.succeeded) else VariableStatuses()

    @cached_property
    def recommendation(self) -> Recommendation | None:
        """The point to take where values are noisy, and the best of them is a lucky one; None elsewhere."""
        return self.advice() if len(self.succeeded) else None

    @cached_property
    def tree(self) -> Node | None:
        return self.groups()

    @cached_property
    def told(self) -> list[Trial]:
        """Trials that have been evaluated, in their order."""
        return [trial for trial in self.trials if trial.value is not None]

    @cached_property
    def counted(self) -> list[Trial]:
        """Those of them that a budget counts: all but the imported ones."""
        return [trial for trial in self.told if trial.counts]

    @property
    def failed(self) -> int:
        """How many of those counted have failed."""
        return sum(trial.failed for trial in self.counted)

    @cached_property
    def numbers(self) -> Indices:
        """(n,) of the trials told: what each is called wherever it is named."""
        return np.array([trial.number for trial in self.told], dtype=np.intp)

    @cached_property
    def values(self) -> Array:
        """(n,) of those told; NaN: it failed."""
        return np.array([trial.value for trial in self.told], dtype=np.float64)

    @cached_property
    def feasible(self) -> npt.NDArray[np.bool_]:
        """(n,) which of those told have a value and are known to keep all constraints."""
        kept = [getattr(trial, "feasible", True) is not False for trial in self.told]
        return np.array(kept, dtype=bool) & np.isfinite(self.values)

    @cached_property
    def succeeded(self) -> Indices:
        """Rows of those told that have a value."""
        return np.flatnonzero(np.isfinite(self.values))

    @cached_property
    def units(self) -> Array:
        """(n, D) points of those told, in the unit cube."""
        points = np.empty((len(self.told), self.space.n_coordinates))
        for row, trial in zip(points, self.told, strict=True):
            row[:] = trial.unit
        return points

    @property
    def sign(self) -> float:
        """What a value is multiplied with so that larger is better."""
        return 1.0 if self.direction == "maximize" else -1.0

    @cached_property
    def best(self) -> int | None:
        """Row, among those told, of the best trial, see `Optimizer.best`; None while none has a value."""
        best = Trials.of(self.told, self.direction).best if self.chosen is None else self.chosen()
        return None if best is None or not best.has_value else int(np.searchsorted(self.numbers, best.number))

    @property
    def point(self) -> Trial | None:
        """The trial whose point is to be taken: the best one, or the recommended one where values are noisy."""
        if self.recommendation is not None:
            return self.recommendation.trial
        return None if self.best is None else self.told[self.best]

    @cached_property
    def position(self) -> dict[str, int]:
        return {name: v for v, name in enumerate(self.space.names)}


def advice_of(source: Any) -> Recommendation | None:
    """What a Result, a Study or an Optimizer recommends where values are noisy; None elsewhere."""
    if hasattr(source, "recommendation"):
        advice = source.recommendation
    else:
        advice = source.recommend() if source.has_best else None
    return advice if advice is not None and advice.sd > 0.0 and advice.trial.feasible else None


def expected_of(source: Any) -> Expected | None:
    """The model of a Result, a Study or an Optimizer; None for a result that was stored without it."""
    core = getattr(getattr(source, "optimizer", source), "_core", None)
    return getattr(source, "expected", None) if core is None else core.expected


def runs_of(source: Any) -> list[RunData]:
    """The runs in one source, in a list of them, or in a dict of label -> source; no two of one label."""
    if isinstance(source, Mapping):
        runs = [RunData.of(item, str(label)) for label, item in source.items()]
    elif isinstance(source, Iterable) and not hasattr(source, "trials"):
        runs = [RunData.of(item) for item in source]
    else:
        runs = [RunData.of(source)]
    if not runs:
        raise InputError("there is nothing to see: the list is empty")
    seen: dict[str, int] = {}
    for run in runs:
        seen[run.label] = seen.get(run.label, 0) + 1
        if seen[run.label] > 1:
            run.label = f"{run.label} ({seen[run.label]})"
    return runs
