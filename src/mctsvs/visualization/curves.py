"""What happened when: convergence, the phases of the search, the variables that moved, constraints, time.

n is the number of evaluations that have been told. A trial has its own number everywhere, also where others still wait.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mctsvs.optimizer.explanation import PURPOSES, Role
from mctsvs.optimizer.explanation import SOURCE as EXPLAIN
from mctsvs.optimizer.unit_cube import REPLICATE
from mctsvs.utils.validation import Array, Indices
from mctsvs.visualization.run_data import RunData

SAME = 1e-9  # of the range of values: a smaller difference is rounding
FIRST, SCREENING = "first points", "screening the variables"
LAST = {EXPLAIN: "proving which variables act", REPLICATE: "measuring the recommended point"}  # of the budget
GROUPS = ("probing a group", "testing a group", "auditing the rejected")
TESTS = (*GROUPS, *(words for role, words in PURPOSES.items() if role != Role.REPEAT))  # of variables


@dataclass(frozen=True)
class Convergence:
    """Values in the order of the trials, and the best so far."""

    label: str
    trial: Indices  # (n,) numbers
    value: Array  # (n,) NaN: it failed
    best: Array  # (n,) NaN before the first success
    improved: Indices  # rows at which the best changed
    feasible: npt.NDArray[np.bool_]  # (n,)


def convergence(run: RunData) -> Convergence:
    value, allowed = run.values, run.feasible
    score = np.where(allowed, run.sign * value, -np.inf)
    so_far = np.maximum.accumulate(score) if len(score) else score
    before = np.concatenate([[-np.inf], so_far[:-1]]) if len(score) else score
    best = np.where(np.isfinite(so_far), run.sign * so_far, np.nan)
    return Convergence(run.label, run.numbers, value, best, np.flatnonzero(score > before), run.feasible)


@dataclass(frozen=True)
class Band:
    """Trials `first` to `last` that had one aim."""

    name: str
    first: int
    last: int

    @property
    def tests(self) -> bool:
        return self.name in (SCREENING, *LAST.values())


@dataclass(frozen=True)
class Story:
    """What each evaluation was for, and what came of it."""

    trial: Indices  # (n,) numbers
    purpose: list[str]  # (n,)
    outcome: list[str]  # (n,) "better", "changed", "same", "worse" or "failed"
    moved: Indices  # (n,) how many variables
    bands: list[Band]
    tests: int
    hits: int  # tests that changed the value


def story(run: RunData) -> Story:
    """A test changes variables of a known point: the value is a new one if one of them acts, unless it is noise."""
    purpose = [_purpose(trial) for trial in run.told]
    values, curve = run.values, convergence(run)
    finite = values[np.isfinite(values)]
    tolerance = SAME * float(np.ptp(finite)) if len(finite) else 0.0
    noisy = run.recommendation is not None
    improved, outcome = set(curve.improved.tolist()), list[str]()
    known: list[float] = []  # values so far, sorted
    for i, word in enumerate(purpose):
        if np.isnan(values[i]):
            outcome.append("failed" if run.told[i].failed else "worse")
        elif i in improved:
            outcome.append("better")
        elif word in TESTS and not noisy:
            place = bisect.bisect_left(known, values[i] - tolerance)
            outcome.append("same" if place < len(known) and known[place] <= values[i] + tolerance else "changed")
        else:
            outcome.append("worse")
        if np.isfinite(values[i]):
            bisect.insort(known, float(values[i]))
    tests = [i for i, word in enumerate(purpose) if word in TESTS and outcome[i] != "failed" and not noisy]
    moved = np.array([len(trial.variables) for trial in run.told], dtype=np.intp)
    bands = [Band(band.name, *run.numbers[[band.first, band.last]].tolist()) for band in _bands(run.told, purpose)]
    return Story(run.numbers, purpose, outcome, moved, bands, len(tests), sum(outcome[i] != "same" for i in tests))


def _purpose(trial: Any) -> str:
    if trial.source in ("enqueued", "imported", "default"):
        return "imported" if trial.source == "imported" else "points of yours"
    return str(trial.purpose or (FIRST if trial.iteration == 0 else "search"))


def _bands(told: Sequence[Any], purpose: Sequence[str]) -> list[Band]:
    """By row: first points; from the first group test to the last one; the rest; what is kept for the end.

    Tests are interspersed with steps.
    """
    tests = [i for i, word in enumerate(purpose) if word in GROUPS]
    names = []
    for i, word in enumerate(purpose):
        if told[i].source in LAST:
            names.append(LAST[told[i].source])
        elif tests and tests[0] <= i <= tests[-1]:
            names.append(SCREENING)
        elif word == "imported":
            names.append(word)
        else:
            early = word in (FIRST, "looking for noise") and not (tests and i > tests[-1])
            names.append(FIRST if early else "optimising")
    bands: list[Band] = []
    for i, name in enumerate(names):
        if bands and bands[-1].name == name:
            bands[-1] = Band(name, bands[-1].first, i)
        else:
            bands.append(Band(name, i, i))
    return _merged(bands, len(purpose))


def _merged(bands: list[Band], n: int) -> list[Band]:
    """Bands too short to be seen go with the one before them, but those at the end of the budget."""
    merged: list[Band] = []
    for band in bands:
        short = band.last - band.first + 1 < 0.02 * n and band.name not in LAST.values()
        if merged and (short or merged[-1].name == band.name):
            merged[-1] = Band(merged[-1].name, merged[-1].first, band.last)
        else:
            merged.append(band)
    return merged


@dataclass(frozen=True)
class Selection:
    """How often each variable was moved, over time."""

    names: list[str]  # the largest effect first, then those moved most often
    edges: Indices  # (b + 1,) first evaluation of each bin, and the end
    share: Array  # (names, b) of the evaluations in the bin
    total: Indices  # (names,) evaluations that moved it

    @property
    def varied(self) -> bool:
        """Whether there is anything to see: some evaluations left out some of the variables."""
        return bool(self.share.size) and float(self.share.mean()) < 0.95


def selection(run: RunData, variables: int = 30, bins: int = 60) -> Selection:
    """The variables that were seen to act, then those moved most often by evaluations that did not move all."""
    n, V = len(run.told), len(run.space)
    bins = max(1, min(bins, n))
    edges = np.linspace(0, n, bins + 1).round().astype(np.intp)
    count, moved = np.zeros((V, bins)), np.zeros(V, dtype=np.intp)
    some = np.zeros(V)
    for i, trial in enumerate(run.told):
        which, column = trial.variables, int(np.searchsorted(edges, i, side="right")) - 1
        if len(which) == V:  # the common case of methods that move all: no fancy indexing
            count[:, column] += 1.0
            moved += 1
        else:
            count[which, column] += 1.0
            moved[which] += 1
            some[which] += 1.0
    first = [run.position[name] for name in run.variables.named]
    rest = [v for v in np.argsort(-some, kind="stable").tolist() if v not in set(first)]
    rows = (first + rest)[:variables]
    share = count[rows] / np.maximum(np.diff(edges), 1)
    return Selection([run.space.names[v] for v in rows], edges + 1, share, moved[rows])


@dataclass(frozen=True)
class Constraints:
    """Measured constraints: a value of 0 or less keeps one."""

    names: list[str]
    trial: Indices  # (m,) numbers of those that have some
    value: Array  # (m, c), NaN where unknown
    feasible: npt.NDArray[np.bool_]  # (m,)
    broken: Indices  # (c,) how many broke each


def constraints(run: RunData) -> Constraints | None:
    """The measured constraints; None where no evaluation has any."""
    measured = [getattr(trial, "constraints", None) or {} for trial in run.told]
    names = list(dict.fromkeys(name for row in measured for name in row))
    if not names:
        return None
    rows = np.array([i for i, row in enumerate(measured) if row], dtype=np.intp)
    value = np.array([[measured[i].get(name, np.nan) for name in names] for i in rows], dtype=np.float64)
    return Constraints(names, run.numbers[rows], value, run.feasible[rows], np.asarray((value > 0).sum(axis=0)))


@dataclass(frozen=True)
class Failures:
    """Evaluations that failed, by what they said."""

    trial: Indices
    messages: list[tuple[str, int, int]]  # message, how often, and the last trial that said it


def failures(run: RunData) -> Failures:
    failed = [trial for trial in run.told if trial.failed]
    last = {trial.message or "no message": trial.number for trial in failed}
    said = [trial.message or "no message" for trial in failed]
    counted = [(text, times, last[text]) for text, times in Counter(said).most_common()]
    return Failures(np.array([trial.number for trial in failed], dtype=np.intp), counted)


@dataclass(frozen=True)
class Timeline:
    """Seconds of each evaluation that has times."""

    trial: Indices  # (m,) numbers
    asked: Array  # (m,) seconds since the first
    told: Array  # (m,)
    evaluating: Array  # (m,) NaN where not known
    thinking: Array  # (m,)
    worker: list[str]  # (m,) "worker 1", "worker 2", ...
    start: float  # seconds since 1970

    @property
    def workers(self) -> list[str]:
        return sorted(dict.fromkeys(self.worker), key=lambda name: (len(name), name))


def timeline(run: RunData) -> Timeline | None:
    """When each evaluation was asked and told; None where no times are known."""
    rows = [i for i, t in enumerate(run.told) if t.times.asked is not None and t.times.told is not None]
    if not rows:
        return None
    times = [run.told[i].times for i in rows]
    asked, told = (np.array([getattr(t, name) for t in times], dtype=np.float64) for name in ("asked", "told"))
    seconds = np.array([np.nan if t.seconds is None else t.seconds for t in times], dtype=np.float64)
    thinking = np.array([t.thinking for t in times], dtype=np.float64)
    start = float(asked.min())
    worker = _lanes([t.worker for t in times], asked, told)
    return Timeline(run.numbers[rows], asked - start, told - start, seconds, thinking, worker, start)


def _lanes(processes: Sequence[str], asked: Array, told: Array) -> list[str]:
    """A lane for each process. One that began after another's end takes its lane, as when a run is resumed."""
    spans: dict[str, tuple[float, float]] = {}
    for name, begun, ended in zip(processes, asked.tolist(), told.tolist(), strict=True):
        first, last = spans.get(name, (begun, ended))
        spans[name] = min(first, begun), max(last, ended)
    lanes: dict[str, int] = {}
    ends: list[float] = []  # of the lanes
    for name, (first, last) in sorted(spans.items(), key=lambda item: item[1]):
        lane = next((i for i, end in enumerate(ends) if end <= first), len(ends))
        ends[lane : lane + 1] = [last]
        lanes[name] = lane
    return [f"worker {lanes[name] + 1}" for name in processes]
