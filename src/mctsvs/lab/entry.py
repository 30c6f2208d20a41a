"""What a table or figure of the paper is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Axis = Literal["evaluations", "seconds"]
Measure = Literal["best", "seconds", "recall", "significance", "regret", "complexity"]


@dataclass(frozen=True)
class Panel:
    """One set of axes: the cases compared on a problem."""

    problem: str
    cases: tuple[str, ...]
    axis: Axis = "evaluations"


@dataclass(frozen=True)
class Entry:
    """One table or figure."""

    name: str
    place: str
    """Where it stands in the paper."""
    labels: tuple[str, ...]
    """Its labels in the paper's source."""
    title: str
    says: str
    panels: tuple[Panel, ...]
    seeds: tuple[int, ...] = tuple(range(2021, 2026))
    budget: int = 600
    budgets: Mapping[str, int] = field(default_factory=dict)
    """Of methods too slow for the whole budget."""
    fewer: Mapping[str, int] = field(default_factory=dict)
    """Seeds of methods too slow for all of them: how many of the first."""
    measure: Measure = "best"
    reference: str = ""
    """What the others are tested against."""
    printed: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Case -> problem -> number the paper prints; for `significance` (mean, standard deviation, mark)."""
    logs: tuple[tuple[str, str, str], ...] = ()
    """Where the authors' runs of this entry lie, if not at the usual place: see `mctsvs.lab.authors`."""
    unlike: tuple[str, ...] = ()
    """Problems on which the authors' runs of this entry are on another scale than their figure."""
    quick: int = 60
    """Evaluations with --quick."""
    note: str = ""

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(panel.problem for panel in self.panels))

    def cases(self, problem: str) -> tuple[str, ...]:
        """All cases on a problem, in the order of the panels."""
        return tuple(dict.fromkeys(case for panel in self.panels if panel.problem == problem for case in panel.cases))
