"""From the journal back to trials, and to the optimizer as it was: bit for bit.

The method's state stands for the first so many events; the few after it are repeated by asking and telling the method
again. What it then proposes must be what is in the journal; where another machine's arithmetic makes a difference, the
journal is right.
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

from mctsvs.optimizer import Optimizer
from mctsvs.optimizer.front import FrontTrials
from mctsvs.optimizer.objectives import Objectives
from mctsvs.optimizer.optimizer import aims
from mctsvs.optimizer.trial import NOTHING, Trial, TrialDetails, TrialTimes
from mctsvs.optimizer.unit_cube import Trials
from mctsvs.space import Space
from mctsvs.space.constraints import Unstored, given_again
from mctsvs.study import codec
from mctsvs.study.errors import DamagedError, damaged
from mctsvs.study.journal import Event, Journal
from mctsvs.utils.validation import Array, StudyError


@dataclass
class StudyContents:
    """What a journal holds. The events in `log` are without their points, which are those of the trials."""

    identity: dict[str, Any]  # space, direction, method, options, seed
    space: Space
    trials: list[Trial] = field(default_factory=list)
    enqueued: list[Array] = field(default_factory=list)
    results: dict[int, Event] = field(default_factory=dict)  # values that the method is not told yet
    strikes: Counter[int] = field(default_factory=Counter)  # workers that a trial has cost
    log: list[Event] = field(default_factory=list)
    known: int = 0  # events that the method's state stands for
    method_state: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        several = self.identity.get("objectives")
        self.objectives = None if several is None else Objectives.from_state(several)
        self.ranked = Trials(self.identity["direction"]) if self.objectives is None else FrontTrials(self.objectives)

    def take(self, event: Event) -> None:
        """An event that was read: what it says of the trials, and all that `note` does."""
        if event.kind in ("ask", "import"):
            asked = event.kind == "ask"
            trial = Trial(
                event.number,
                codec.unpack_point(event.point),
                codec.unpack_positions(event.variables, len(self.space)),
                self.space,
                iteration=event.iteration,
                source=event.text if asked else "imported",
                proposal_id=event.proposal_id,
                times=TrialTimes(asked=event.value if asked else None),
            )
            self.trials.append(trial)
        if event.kind in ("tell", "import"):
            trial = self.trials[event.number]
            trial.value, trial.message = value_of(event), event.text
            _set_details(trial, details_of(event))
            if event.times:
                trial.purpose = trial.times.unpack(event.times)
            self.ranked.take(trial)
        self.note(event)

    def note(self, event: Event) -> None:
        """An event that is stored."""
        self.log.append(event._replace(variables=b"", point=b"") if event.point else event)
        if event.kind == "result":
            self.results[event.number] = event
        elif event.kind in ("tell", "import"):
            self.results.pop(event.number, None)
            self.strikes.pop(event.number, None)
        elif event.kind == "strike":
            self.strikes[event.number] += 1
        elif event.kind == "enqueue":
            self.enqueued.append(codec.unpack_point(event.point))

    @property
    def told(self) -> list[int]:
        """Numbers of trials, in the order of telling."""
        return [event.number for event in self.log if event.kind in ("tell", "import")]

    @property
    def budget(self) -> int | None:
        return _budget(self.log)

    @property
    def best(self) -> Trial | None:
        """As of the trials read; see `Optimizer.best`."""
        return self.ranked.best

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


def details_of(event: Event) -> TrialDetails:
    return TrialDetails.read(event.details) if event.details else NOTHING


def _set_details(trial: Trial, details: TrialDetails) -> None:
    trial.constraints, trial.noise, trial.attrs = details.constraints, details.noise, dict(details.attrs)
    trial.values = details.values


def _budget(log: list[Event]) -> int | None:
    return next((event.number for event in reversed(log) if event.kind == "plan"), None)


def _explained(plan: Event) -> int | None:
    return None if plan.value is None else int(plan.value)


def read(journal: Journal, *, method_state: bool = True) -> StudyContents:
    """All of a journal, checked; without the method's state everything is repeated by `revive`."""
    with journal.snapshot():
        identity = journal.meta()["identity"]
        contents = StudyContents(identity, Space.from_state(identity["space"]))
        stored = journal.method_state() if method_state else None
        for event in journal.events():
            contents.take(event)
            if stored is not None and stored.seq == journal.length:
                contents.known, contents.method_state = stored.seq, journal.unpacked(stored)
        if stored is not None and contents.method_state is None:
            raise damaged(journal.path, "the method's state is not what was written")
    return contents


def revive(contents: StudyContents, constraints: Any = None, *, readonly: bool = False) -> Optimizer:
    """The optimizer that wrote these contents, as it was after the last event; it takes over the trials.

    `constraints` are needed where functions are among them, unless nothing more is asked of it.
    """
    unstored = Unstored() if readonly and constraints is None else None
    identity = contents.identity
    opt = Optimizer(
        contents.space,
        **aims(identity),
        method=identity["method"],
        seed=identity["seed"],
        constraints=given_again(identity.get("constraints", []), constraints, unstored),
        **identity["options"],
    )
    enqueued = iter(contents.enqueued)
    if contents.method_state is not None:
        _restore(opt, contents, enqueued)
    same = True
    for (kind, _), group in groupby(contents.log[contents.known :], key=lambda event: (event.kind, event.call)):
        events = list(group)
        if kind == "ask":
            same &= _ask_again(opt, contents, len(events))
            continue
        for event in events:
            if kind == "tell":
                opt._core.record(opt._core.trials.waiting(event.number), value_of(event), event.text, details_of(event))
            elif kind == "plan":
                opt.plan(event.number, _explained(event))
            elif kind == "enqueue":
                opt._core.queue.append(next(enqueued))
            elif kind == "import":
                opt._core.insert(contents.trials[event.number].unit, value_of(event), event.text, details_of(event))
    if unstored is not None:
        unstored.repeating = False
    elif not same:
        warnings.warn(
            "this machine or version of mctsvs computes other points than those that wrote the study: the run goes on, "
            "but not bit for bit as it would have gone on there",
            RuntimeWarning,
            stacklevel=3,
        )
    return opt


def _restore(opt: Optimizer, contents: StudyContents, enqueued: Iterator[Array]) -> None:
    """Everything as it was when the method's state was stored."""
    assert contents.method_state is not None
    log = contents.log[: contents.known]
    kinds = Counter(event.kind for event in log)
    asked, answered = kinds["ask"] + kinds["import"], kinds["tell"] + kinds["import"]
    trials, told = contents.trials[:asked], contents.told[:answered]
    for number in set(range(asked)).difference(told):
        trials[number].value, trials[number].message = None, ""
        _set_details(trials[number], NOTHING)
    units = np.array([trial.unit for trial in trials]).reshape(asked, contents.space.n_coordinates)
    opt._core.restore_method(trials, units, told, contents.method_state)
    planned = next((event for event in reversed(log) if event.kind == "plan"), None)
    if planned is not None:
        opt._core.budget, opt._core.explained = planned.number, _explained(planned)
    queue = [next(enqueued) for _ in range(kinds["enqueue"])]
    opt._core.queue.extend(queue[sum(trial.source == "enqueued" for trial in trials) :])


def _ask_again(opt: Optimizer, contents: StudyContents, n: int) -> bool:
    """Whether the method proposes what it proposed before; what it did propose before is what counts."""
    same = True
    for trial in opt.ask(n):
        before = contents.trials[trial.number]
        same &= np.array_equal(trial.unit, before.unit) and np.array_equal(trial.variables, before.variables)
        trial.unit, trial.variables, trial.iteration = before.unit, before.variables, before.iteration
        trial.asker, trial.times = None, before.times
        trial.purpose = before.purpose or trial.purpose
    return same


def salvage(path: str | os.PathLike[str], new: str | os.PathLike[str]) -> int:
    """Copy all events before the first damaged one into a new study.

    The method's state is left out: it follows from the events, and is computed again when the study is resumed.

    Args:
        path: The damaged study, which stays as it is.
        new: The study to write.

    Returns:
        How many evaluations the new study holds.

    Raises:
        StudyError: Nothing can be saved, or the new study cannot be written.
    """
    old, fresh = Path(path), Path(new)
    if not fresh.parent.is_dir():
        raise StudyError(f"cannot write {str(fresh)!r}: the folder {str(fresh.parent)!r} does not exist")
    source = Journal(old, readonly=True)
    intact = []
    try:
        meta = source.meta()
        if "identity" not in meta:
            raise StudyError(f"nothing of {str(old)!r} can be saved: its description is lost")
        with contextlib.suppress(DamagedError):
            for event in source.events():
                intact.append(event)
    finally:
        source.close()
    Journal.create(fresh, meta, intact)
    return sum(event.kind in ("tell", "import") for event in intact)
