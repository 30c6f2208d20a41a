"""Runs with several objectives: their trials, and the front, which takes the place of the best trial."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np

from mctsvs.gp.pareto import hypervolume, knee, non_dominated, reference_point
from mctsvs.optimizer.objectives import Objectives
from mctsvs.optimizer.trial import Trial
from mctsvs.optimizer.unit_cube import Trials
from mctsvs.utils.formatting import printable
from mctsvs.utils.validation import Array, InputError

SHOWN = 20  # points in the text of a front


@dataclass(frozen=True, eq=False)
class Front(Sequence[Trial]):
    """The trials of which none is better in every objective; a sequence of them, by the first objective.

    With measured constraints, only feasible trials are among them.

    Attributes:
        trials: The trials themselves.
        objectives: Names and directions.
        others: Values (n, M) of the feasible trials that are dominated; they give the reference point its scale.

    Example:
        >>> front = opt.front
        >>> front.points, front.values, front.hypervolume, front.knee.x
        >>> pandas.DataFrame(front.table())
    """

    trials: list[Trial]
    objectives: Objectives
    others: Array = field(default_factory=lambda: np.empty((0, 0)))

    @property
    def values(self) -> Array:
        """(k, M) the values, in the order of the objectives."""
        return np.array([trial.values for trial in self.trials], dtype=np.float64).reshape(-1, len(self.objectives))

    @property
    def points(self) -> Any:
        """What the objective was called with: (k, V) vectors, or a list of dicts for a space with names."""
        arguments = [trial.argument for trial in self.trials]
        return arguments if arguments and isinstance(arguments[0], dict) else np.array(arguments)

    @property
    def reference(self) -> Array:
        """(M,) the point from which hypervolume is measured: as given, else a little worse than the front.

        That lies 0.2 ranges of the front beyond its worst values, and moves as the front grows. Give `reference=` to
        compare runs.

        Raises:
            InputError: Nothing was given, and there is no front yet.
        """
        if self.objectives.reference is not None:
            return np.array(self.objectives.reference)
        signs = self.objectives.signs
        if not self.trials:
            raise InputError("there is no reference point yet: tell the values of at least one feasible evaluation")
        everything = np.concatenate([self.values, self.others.reshape(-1, len(signs))])
        return signs * reference_point(self.objectives.scores(everything))

    @property
    def hypervolume(self) -> float:
        """What the front dominates, down to the reference point; 0 without a front."""
        scores = self.objectives.scores
        return hypervolume(scores(self.values), scores(self.reference)) if self.trials else 0.0

    @property
    def knee(self) -> Trial:
        """The trial from which every way along the front costs most: the usual compromise.

        Raises:
            InputError: There is no front yet.
        """
        if not self.trials:
            raise InputError("there is no knee yet: tell the values of at least one feasible evaluation")
        return self.trials[knee(self.objectives.scores(self.values))]

    def table(self) -> list[dict[str, Any]]:
        """A row for each trial: its number, the objectives and the variables; pandas takes it as it is.

        Returns:
            Dicts with the same keys, except for variables that do not exist at a point.
        """
        rows = []
        for trial in self.trials:
            values = dict(zip(self.objectives.names, trial.values or (), strict=True))
            rows.append(
                {"number": trial.number, **values, **{k: v for k, v in trial.params.items() if k not in values}}
            )
        return rows

    @overload
    def __getitem__(self, index: int) -> Trial: ...

    @overload
    def __getitem__(self, index: slice) -> list[Trial]: ...

    def __getitem__(self, index: int | slice) -> Trial | list[Trial]:
        return self.trials[index]

    def __len__(self) -> int:
        return len(self.trials)

    def __iter__(self) -> Iterator[Trial]:
        return iter(self.trials)

    def __repr__(self) -> str:
        return f"Front({len(self)} points: {self.objectives.text})"

    def __str__(self) -> str:
        rows = [["trial", *map(printable, self.objectives.names)]]
        rows += [[str(t.number), *(f"{v:.6g}" for v in t.values or ())] for t in self.trials[:SHOWN]]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        return "\n".join(lines) + f"\n... and {len(self) - SHOWN} more" * (len(self) > SHOWN)


def front_of(trials: Iterable[Trial], objectives: Objectives | None) -> Front:
    """Of the trials that have values and are feasible."""
    if objectives is None:
        raise InputError("there is no front: there is one objective, and the best trial is best")
    told = [trial for trial in trials if trial.values is not None and trial.feasible]
    values = np.array([trial.values for trial in told], dtype=np.float64).reshape(-1, len(objectives))
    scores = objectives.signs * values  # as they are: rows that differ stay different
    kept = non_dominated(scores)
    rows = np.flatnonzero(kept)
    rows = rows[np.argsort(-scores[rows, 0], kind="stable")]
    return Front([told[row] for row in rows], objectives, values[~kept])


class FrontTrials(Trials):
    """All trials of a run with several objectives: a front in place of a best one."""

    def __init__(self, objectives: Objectives) -> None:
        super().__init__("maximize")
        self.objectives = objectives

    @property
    def output_names(self) -> tuple[str, ...]:
        """Of what is measured beside constraints."""
        return self.objectives.names

    def outputs(self, trial: Trial) -> tuple[float | None, ...]:
        """The values, NaN where they are missing."""
        return trial.values or (math.nan,) * len(self.objectives)

    @property
    def best(self) -> None:
        """There is none."""
        return

    @property
    def front(self) -> Front:
        """Of those told so far."""
        return front_of(self.told, self.objectives)

    def leads(self, trial: Trial) -> bool:
        """Whether it is on the front by now."""
        return any(trial is each for each in self.front)

    def scores(self, trial: Trial) -> Array | None:
        """(M,) the values as something to be maximised, NaN where they are missing."""
        M = len(self.objectives)
        if trial.values is None:
            return np.full(M, math.nan)
        return self.objectives.scores(np.array(trial.values))

    def rank(self, trial: Trial) -> float:
        """What is known of several objectives is no single merit: 0, or NaN if the trial failed."""
        return 0.0 if self.take(trial) else math.nan

    def take(self, trial: Trial) -> bool:
        """A trial that was told, as one of them; False if it failed."""
        self.order.append(trial.number)
        self.name_constraints(trial)
        if trial.failed:
            return False
        self.told.append(trial)
        if self.names and not trial.constraints:
            trial.constraints = dict.fromkeys(self.names, math.nan)
        return True
