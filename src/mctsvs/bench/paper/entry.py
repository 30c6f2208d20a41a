"""What a table or figure of the paper is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from mctsvs.bench.algorithms import ConfiguredMethod

if TYPE_CHECKING:
    from mctsvs.bench.paper.metrics import Metric

Axis = Literal["evaluations", "seconds"]


@dataclass(frozen=True)
class Panel:
    """The cases compared on a problem, in one set of axes."""

    problem: str
    cases: tuple[ConfiguredMethod, ...]
    axis: Axis = "evaluations"


@dataclass(frozen=True)
class EntryDescription:
    """What there is to read about it."""

    place: str  # in the paper
    labels: tuple[str, ...]  # in the paper's source
    title: str
    says: str  # what the paper reports
    note: str = ""


@dataclass(frozen=True)
class RunPlan:
    """How much is run."""

    seeds: tuple[int, ...] = tuple(range(2021, 2026))
    budget: int = 600
    budgets: Mapping[str, int] = field(default_factory=dict)  # of methods too slow for the whole budget
    fewer: Mapping[str, int] = field(default_factory=dict)  # how many of the seeds, for methods too slow for all
    quick: int = 60  # evaluations with --quick


@dataclass(frozen=True)
class PublishedResults:
    """The numbers of others to set beside ours."""

    printed: Mapping[ConfiguredMethod, Mapping[str, Any]] = field(default_factory=dict)
    """Case -> problem -> number the paper prints; in its table of tests (mean, standard deviation, mark)."""
    logs: tuple[tuple[str, str, str], ...] = ()
    """Where the authors' runs of this entry lie, if not at the usual place: see `mctsvs.bench.paper.author_logs`."""
    unlike: tuple[str, ...] = ()
    """Problems on which the authors' runs of this entry are on another scale than their figure."""


@dataclass(frozen=True)
class PaperEntry:
    """One table or figure of the paper."""

    name: str
    about: EntryDescription
    panels: tuple[Panel, ...] = ()
    measure: Metric | None = None  # None: made without runs
    effort: RunPlan = RunPlan()
    published: PublishedResults = PublishedResults()

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(panel.problem for panel in self.panels))

    def cases(self, problem: str | None = None) -> tuple[ConfiguredMethod, ...]:
        """All cases on a problem, or on any, in the order of the panels."""
        panels = [panel for panel in self.panels if problem in (None, panel.problem)]
        return tuple(dict.fromkeys(case for panel in panels for case in panel.cases))

    @property
    def methods(self) -> set[str]:
        return {case.method for case in self.cases()}
