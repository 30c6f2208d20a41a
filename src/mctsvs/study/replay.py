"""From the journal back to trials, and to the optimizer as it was: bit for bit.

The method's memory stands for the first so many events; the few after it are repeated by asking and telling the
method again. What it then proposes must be what is in the journal; where another machine's arithmetic makes a
difference, the journal is right.

What is intact in a damaged study, as a study.
"""

from __future__ import annotations

import contextlib
import math
import os
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from mctsvs.optimizer import DIRECTIONS, Optimizer
from mctsvs.space import Space
from mctsvs.space.constraints import given_again
from mctsvs.study import codec
from mctsvs.study.errors import DamagedError, clear_errors, damaged
from mctsvs.study.journal import Journal
from mctsvs.study.schema import Event
from mctsvs.trial import NOTHING, Trial, TrialDetails, TrialTimes
from mctsvs.utils.validation import Array, Indices, StudyError

WITHOUT_POINT = Event._fields.index("variables")
SOURCES = ("proposed", "enqueued", "default", "repeated")
UNREADABLE = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, MemoryError, RecursionError)


@dataclass
class StudyContents:
    """What a journal holds. The events in `log` are without their points, which are those of the trials."""

    identity: dict[str, Any]  # space, direction, method, options, seed
    space: Space
    trials: list[Trial] = field(default_factory=list)
    units: Array = field(default_factory=lambda: np.empty((0, 0)))  # (n, D) points of the trials
    enqueued: list[Array] = field(default_factory=list)
    results: dict[int, tuple[float, str]] = field(default_factory=dict)  # values the method is not told yet
    details: dict[int, TrialDetails] = field(default_factory=dict)  # what was told beside values
    strikes: Counter[int] = field(default_factory=Counter)  # workers that a trial has cost
    told: list[int] = field(default_factory=list)  # numbers of trials, in the order of telling
    log: list[Event] = field(default_factory=list)
    known: int = 0  # events that the memory stands for
    memory: dict[str, Any] | None = None

    def note(self, event: Event) -> None:
        """Something that has happened, and is stored."""
        self.log.append(Event._make((*event[:WITHOUT_POINT], b"", b"")) if event.point else event)
        if event.kind == "result":
            self.results[event.number] = value_of(event), event.text
        elif event.kind in ("tell", "import"):
            self.results.pop(event.number, None)
            self.strikes.pop(event.number, None)
        elif event.kind == "details":
            self.details[event.number] = TrialDetails.read(event.text)
        elif event.kind == "strike":
            self.strikes[event.number] += 1
        elif event.kind == "enqueue":
            self.enqueued.append(np.array(codec.unpack_point(event.point)))

    def events(self, trials: list[Trial]) -> Iterator[Event]:
        """The log with its points, of these trials."""
        enqueued = iter(self.enqueued)
        for event in self.log:
            if event.kind == "enqueue":
                yield event._replace(point=codec.pack_point(next(enqueued)))
            elif event.kind in ("ask", "import"):
                trial = trials[event.number]
                variables = codec.pack_positions(trial.variables, len(self.space))
                yield event._replace(variables=variables, point=codec.pack_point(trial.unit))
            else:
                yield event


def value_of(event: Event) -> float:
    return math.nan if event.value is None else event.value


def read(journal: Journal, *, memory: bool = True) -> StudyContents:
    """All of a journal, checked; without the method's memory everything is repeated by `optimizer`."""
    journal.snapshot()
    try:
        identity = checked_identity(journal.meta()["identity"])
        contents = StudyContents(identity, Space.from_state(identity["space"]))
        _fill(contents, journal, memory)
    except UNREADABLE as error:
        if isinstance(error, DamagedError):
            raise
        raise damaged(journal.path, f"{type(error).__name__} while reading it") from None
    finally:
        with clear_errors(journal.path):
            journal.release()
    return contents


def checked_identity(identity: Any) -> dict[str, Any]:
    """What a study is, if it is of the form that `Study` writes; ValueError otherwise."""
    kinds = {"space": dict, "direction": str, "method": str, "options": dict, "seed": int}
    if isinstance(identity, dict) and "constraints" in identity:
        kinds["constraints"] = list
    if not (isinstance(identity, dict) and {name: type(value) for name, value in identity.items()} == kinds):
        raise ValueError("not an identity")
    if identity["direction"] not in DIRECTIONS or identity["seed"] < 0:
        raise ValueError("not an identity")
    return identity


def _fill(contents: StudyContents, journal: Journal, memory: bool) -> None:
    stored = journal.memory() if memory else None
    known = -1 if stored is None else stored.seq
    units = contents.units = np.empty((journal.count("ask", "import"), contents.space.n_coordinates))
    if stored is not None and known == 0:
        raise damaged(journal.path, "the method's memory is not what was written")
    reader = EventReader(contents, journal)
    for seq, event in enumerate(journal.events(), 1):
        reader.take(event, units)
        if seq == known:
            assert stored is not None
            contents.known, contents.memory = seq, journal.remembered(stored)
    if known > journal.length:
        raise damaged(journal.path, f"events after number {journal.length} are missing")
    if units.size and not (units.min() >= 0.0 and units.max() <= 1.0):
        raise ValueError("a point is outside of the space")
    units.flags.writeable = False


class EventReader:
    """Takes events into the contents, one after the other."""

    def __init__(self, contents: StudyContents, journal: Journal) -> None:
        self.contents, self.journal = contents, journal
        everything = np.arange(len(contents.space))
        self.before: tuple[bytes, Indices] = (b"", everything)  # points of a batch share their variables

    def take(self, event: Event, units: Array) -> None:
        """`units` has a row for each trial, or one that is used for this one alone."""
        contents, trials, space = self.contents, self.contents.trials, self.contents.space
        if event.kind in ("ask", "import"):
            if event.number != len(trials):
                raise damaged(self.journal.path, f"trial {len(trials)} is missing")
            unit = units[event.number if len(units) > 1 else 0]
            unit[:] = codec.unpack_point(event.point)
            unit.flags.writeable = False
            if event.variables != self.before[0]:
                self.before = event.variables, codec.unpack_positions(event.variables, len(space))
            source = event.text if event.kind == "ask" else "imported"
            place = (event.iteration, source, "", event.proposal_id)
            times = TrialTimes(asked=event.value if event.kind == "ask" else None)
            trials.append(Trial(event.number, unit, self.before[1], space, None, *place, times=times))
        _check(event, trials, space)
        if event.kind in ("tell", "import"):
            trial = trials[event.number]
            trial.value, trial.message = value_of(event), event.text
            _tell_details(trial, contents.details.get(event.number, NOTHING))
            if event.kind == "tell" and event.variables:
                trial.purpose = trial.times.unpack(event.variables)
            contents.told.append(event.number)
        contents.note(event)


def _tell_details(trial: Trial, details: TrialDetails) -> None:
    trial.constraints, trial.noise, trial.attrs = details.constraints, details.noise, dict(details.attrs)


def _check(event: Event, trials: list[Trial], space: Space) -> None:
    """Whoever made the file may have made it say anything, with checksums that fit."""
    if event.kind in ("tell", "result", "strike") and not (
        0 <= event.number < len(trials) and trials[event.number].value is None
    ):
        raise ValueError("a value of no trial that waits for one")
    if event.kind == "ask" and (event.text not in SOURCES or (event.proposal_id >= 0) != (event.text == "proposed")):
        raise ValueError("a trial from nowhere")
    if event.kind == "enqueue" and len(event.point) != 8 * space.n_coordinates:
        raise ValueError("a point of another space")
    if event.kind == "details" and not (
        event.number >= len(trials) or (event.number >= 0 and trials[event.number].value is None)
    ):
        raise ValueError("details of a trial that was told already")
    if event.kind == "plan" and event.number < 1:
        raise ValueError("a plan of nothing")
    if event.value is not None and not math.isfinite(event.value):
        raise ValueError("a value that is none")


def optimizer(contents: StudyContents, constraints: Any = None) -> Optimizer:
    """The optimizer that wrote these contents, as it was after the last event; it takes over the trials.

    `constraints` are needed where functions are among them.
    """
    identity = contents.identity
    opt = Optimizer(
        contents.space,
        direction=identity["direction"],
        method=identity["method"],
        seed=identity["seed"],
        constraints=given_again(identity.get("constraints", []), constraints),
        **identity["options"],
    )
    enqueued = iter(contents.enqueued)
    if contents.memory is not None:
        _recall(opt, contents, enqueued)
    same = True
    for (kind, _), group in groupby(contents.log[contents.known :], key=lambda event: (event.kind, event.call)):
        events = list(group)
        if kind == "ask":
            same &= _ask_again(opt, contents, len(events))
            continue
        for event in events:
            if kind == "tell":
                trial, details = opt._core.trials.waiting(event.number), contents.details.get(event.number, NOTHING)
                opt._core.record(trial, value_of(event), event.text, details)
            elif kind == "plan":
                opt.plan(event.number)
            elif kind == "enqueue":
                opt._core.queue.append(next(enqueued))
            elif kind == "import":
                details = contents.details.get(event.number, NOTHING)
                opt._core.insert(contents.units[event.number], value_of(event), event.text, details)
    if not same:
        warnings.warn(
            "this machine computes other points than the one that wrote the study: the run goes on, but not bit for "
            "bit as it would have there",
            RuntimeWarning,
            stacklevel=3,
        )
    return opt


def _recall(opt: Optimizer, contents: StudyContents, enqueued: Iterator[Array]) -> None:
    """What was so when the memory was stored."""
    assert contents.memory is not None
    log = contents.log[: contents.known]
    kinds = Counter(event.kind for event in log)
    asked, answered = kinds["ask"] + kinds["import"], kinds["tell"] + kinds["import"]
    trials, told = contents.trials[:asked], contents.told[:answered]
    for number in set(range(asked)).difference(told):
        trials[number].value, trials[number].message = None, ""
        _tell_details(trials[number], NOTHING)
    opt._core.restore_method(trials, contents.units[:asked], told, contents.memory)
    opt._core.budget = next((event.number for event in reversed(log) if event.kind == "plan"), None)
    queue = [next(enqueued) for _ in range(kinds["enqueue"])]
    opt._core.queue.extend(queue[sum(trial.source == "enqueued" for trial in trials) :])


def _ask_again(opt: Optimizer, contents: StudyContents, n: int) -> bool:
    """Whether the method proposes what it proposed before; what it did propose before is what counts."""
    same = True
    for trial in opt.ask(n):
        before = contents.trials[trial.number]
        same &= np.array_equal(trial.unit, before.unit) and np.array_equal(trial.variables, before.variables)
        trial.unit, trial.variables, trial.iteration = before.unit, before.variables, before.iteration
        trial.times, trial.purpose = before.times, before.purpose or trial.purpose
    return same


def salvage(path: str | os.PathLike[str], new: str | os.PathLike[str]) -> int:
    """Copy all events before the first damaged one into a new study; how many evaluations they hold.

    The method's memory is left out: it follows from the events, at the price of thinking again when resumed.
    """
    old, fresh = Path(path), Path(new)
    if not fresh.parent.is_dir():
        raise StudyError(f"cannot write {str(fresh)!r}: the folder {str(fresh.parent)!r} does not exist")
    source = Journal(old, readonly=True, alone=False)
    intact = []
    try:
        meta = source.meta()
        if "identity" not in meta:
            raise StudyError(f"nothing can be saved of {str(old)!r}: what it is about is lost")
        with contextlib.suppress(DamagedError):
            for event in source.events():
                intact.append(event)
    finally:
        source.close()
    Journal.create(fresh, meta, intact)
    return sum(event.kind in ("tell", "import") for event in intact)
