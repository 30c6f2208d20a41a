"""An optimizer and its journal, in step: everything is stored before anybody learns of it.

One thread at a time: everything that changes or reads more than one thing holds `mutex`.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
import weakref
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mctsvs.loop.evaluation import Evaluation
from mctsvs.optimizer import Optimizer
from mctsvs.optimizer.optimizer import checked
from mctsvs.optimizer.trial import Trial, TrialDetails, unknown_constraint, with_all
from mctsvs.study import codec
from mctsvs.study.errors import LostError
from mctsvs.study.files import WriterLock, save_beside, write_new
from mctsvs.study.journal import Event, Journal
from mctsvs.study.replay import StudyContents, details_of, read, revive, value_of
from mctsvs.study.tables import Row
from mctsvs.utils.formatting import as_text
from mctsvs.utils.validation import Array, InputError, StudyError, as_value

LEAST_THINKING = 50.0  # the method's state is stored when repeating its thoughts would take this many times longer


_open: weakref.WeakValueDictionary[str, Session] = weakref.WeakValueDictionary()  # those that write, by their files


def hand_over(path: Path) -> None:
    """Close the study of this file if this thread has it open, as a notebook has whose cell is run again."""
    session = _open.get(os.path.realpath(path))
    if session is not None and session.thread == threading.get_native_id() and not session.optimizing:
        session.close(f"the study {str(path)!r} was opened again in this thread: use the newer object")


class Session:
    """An open study, as the loop asks it and tells it; without a lock, it is only read."""

    def __init__(self, path: Path, lock: WriterLock | None) -> None:
        self.path, self.lock = path, lock
        self._mutex = threading.RLock()
        self.journal = Journal(path, readonly=lock is None)
        try:
            self._contents = read(self.journal)
            self._meta = self.journal.meta()
        except BaseException:
            self.journal.close()
            raise
        self.method_given = True  # a method from a file is imported only if the caller names that file
        self.constraints: Any = None  # as the caller gives them: functions are not stored
        self._optimizer: Optimizer | None = None
        self._stale = False  # the optimizer may have done what the journal does not have
        self._ended = ""  # why it cannot be changed any longer
        self._thinking = self._price = 0.0  # seconds since the state was stored, and seconds to store it
        self._process, self.thread = os.getpid(), threading.get_native_id()
        self.optimizing = False
        if lock is not None:
            _open[lock.study] = self

    # what is in it

    @property
    def mutex(self) -> contextlib.AbstractContextManager[Any]:
        """In a child made by fork, the thread that held it may not be there."""
        return self._mutex if os.getpid() == self._process else contextlib.nullcontext()

    @property
    def contents(self) -> StudyContents:
        """What the journal holds, read again where that is needed."""
        with self.mutex:
            if self._stale and os.getpid() == self._process:
                before = self._contents.trials if self._optimizer is None else self._optimizer.trials
                self._contents = read(self.journal)
                self._optimizer, self._stale = None, False
                _annotate(self._contents.trials, [trial.attrs for trial in before])
            return self._contents

    @property
    def optimizer(self) -> Optimizer:
        """As it is after the last event; made when first needed."""
        with self.mutex:
            current = self.contents
            if self._optimizer is None:
                notes = [trial.attrs for trial in current.trials]
                self._optimizer = self._revive(current)
                _annotate(self._optimizer.trials, notes)
            return self._optimizer

    @property
    def trials(self) -> list[Trial]:
        with self.mutex:
            current = self.contents
            return current.trials if self._optimizer is None else self._optimizer.trials

    @property
    def best(self) -> Trial | None:
        with self.mutex:
            current = self.contents
            if self._optimizer is None:
                return current.best
            return self._optimizer.best if self._optimizer.has_best else None

    @property
    def pending(self) -> list[Trial]:
        with self.mutex:
            return [trial for trial in self.trials if trial.value is None]

    @property
    def early(self) -> dict[int, Evaluation]:
        """Values that came before their turn."""
        results = self.contents.results.items()
        known = {n: (e, details_of(e)) for n, e in results}
        return {n: Evaluation(value_of(e), e.text, 0.0, d.constraints, values=d.values) for n, (e, d) in known.items()}

    @property
    def deaths(self) -> Counter[int]:
        """Workers that each waiting trial has cost."""
        return self.contents.strikes

    def _revive(self, current: StudyContents) -> Optimizer:
        if not self.method_given:
            method = current.identity["method"]
            raise StudyError(
                f"the method of the study {str(self.path)!r} is the file {method!r}, which is not imported just "
                f"because a study says so: name it with method="
            )
        try:
            return revive(current, self.constraints, readonly=self.lock is None)
        except InputError:  # such as a library that is not installed here
            raise
        except Exception:  # another version of the method has another state; what happened is the same
            self._contents = read(self.journal, method_state=False)
        try:
            return revive(self._contents, self.constraints, readonly=self.lock is None)
        except InputError:
            raise
        except Exception as error:
            raise StudyError(
                f"the study {str(self.path)!r} cannot be resumed with this version of mctsvs "
                f"({type(error).__name__}); its trials can still be read and exported"
            ) from None

    # what changes it

    def plan(self, budget: int, explained: int | None = None) -> None:
        with self.writing():
            opt = self.optimizer
            if opt.budget != budget or explained is not None:
                with self._step():
                    self._store([Event("plan", budget, value=explained)])
                    opt.plan(budget, explained)

    def ask(self, n: int) -> list[Trial]:
        with self.writing():
            opt = self.optimizer
            with self._step():
                before = time.perf_counter()
                trials = opt.ask(n)
                self._thinking += time.perf_counter() - before
                first, size = trials[0].number, len(opt.space)
                events = [
                    Event(
                        "ask",
                        trial.number,
                        first,
                        trial.iteration,
                        trial.proposal_id,
                        trial.times.asked,
                        text=trial.source,
                        variables=codec.pack_positions(trial.variables, size),
                        point=codec.pack_point(trial.unit),
                    )
                    for trial in trials
                ]
                self._store(events, state=self._thinking >= LEAST_THINKING * self._price)
        return trials

    def tell(self, trial: Trial, evaluation: Evaluation) -> tuple[Trial, bool]:
        """The trial as it is now, and whether it is the best one."""
        evaluation = evaluation.fitting(self.optimizer._core.trials.names)
        self.record(trial, evaluation.told, evaluation.message, evaluation.constraints)
        told = self.trials[trial.number]
        return told, self.optimizer._core.trials.leads(told)

    def record(self, trial: Trial | int, value: Any, message: str, constraints: Any = None, noise: Any = None) -> None:
        """Store a value and tell it; what came with an early value still counts."""
        objectives = self._contents.objectives
        value, known = checked(objectives, value, noise=noise if objectives else None)
        message = as_text(message)
        with self.writing():
            opt = self.optimizer
            waiting = opt._core.trials.waiting(trial)
            details = replace(TrialDetails.of(constraints, noise, waiting.attrs), values=known.values)
            if waiting.number in self._contents.results:
                details = _merged(details_of(self._contents.results[waiting.number]), details, opt._core.trials.names)
            details = with_all(details, opt._core.trials.names)
            with self._step():
                waiting.times.told = time.time()
                times = waiting.times.pack(waiting.purpose)
                self._store([_valued("tell", waiting.number, value, message, details, times=times)])
                before = time.perf_counter()
                opt._core.record(waiting, value, message, details)
                spent = time.perf_counter() - before
                self._thinking += spent
                waiting.times.thinking += spent

    def keep(self, trial: Trial, evaluation: Evaluation) -> None:
        """Store a value that the method is told later, in the order of the trials."""
        with self.writing():
            trials = self.optimizer._core.trials
            waiting, evaluation = trials.waiting(trial), evaluation.fitting(trials.names)
            details = TrialDetails.of(evaluation.constraints, None, waiting.attrs, evaluation.values)
            details = with_all(details, trials.names)
            value = as_value(evaluation.value)
            self._store([_valued("result", waiting.number, value, as_text(evaluation.message), details)])

    def record_death(self, trial: Trial | int, message: str) -> int:
        """A worker died over the trial; how many it has cost by now."""
        with self.writing():
            number = self.optimizer._core.trials.waiting(trial).number
            self._store([Event("strike", number, text=as_text(message))])
            return self._contents.strikes[number]

    def enqueue(self, units: Sequence[Array]) -> None:
        with self.writing():
            opt = self.optimizer
            with self._step():
                self._store([Event("enqueue", point=codec.pack_point(unit)) for unit in units])
                opt._core.queue.extend(units)

    def insert(self, rows: Sequence[Row]) -> None:
        with self.writing():
            opt = self.optimizer
            first = len(opt.trials)
            names = opt._core.trials.names or next((tuple(d.constraints) for *_, d in rows if d.constraints), ())
            rows = [(unit, value, text, with_all(details, names)) for unit, value, text, details in rows]
            with self._step():
                events = [
                    _valued("import", number, value, text, details, call=first, point=codec.pack_point(unit))
                    for number, (unit, value, text, details) in enumerate(rows, first)
                ]
                self._store(events)
                for unit, value, text, details in rows:
                    opt._core.insert(unit, value, text, details)
                self._store([], state=True)

    def set_attr(self, name: str, value: Any) -> None:
        with self.writing(), self._saving([], {name: value}):
            self.journal.set_meta(name, value)
            self._meta[name] = codec.unpack(codec.pack(value))

    @contextlib.contextmanager
    def run(self) -> Iterator[None]:
        """One run of the loop, which leaves the study as it can be opened again."""
        with self.writing():
            if self.optimizing:
                raise StudyError(f"the study {str(self.path)!r} is being optimised already: wait, or ask and tell")
            self.optimizing = True
        try:
            yield
        finally:
            self.optimizing = False
            self.save_if_possible()

    def save(self) -> None:
        """Store the method's state, if it has thought since."""
        with self.mutex:
            if self._optimizer is not None and not (self._stale or self._ended) and self._thinking > 0.0:
                self._store([], state=True)

    def save_if_possible(self) -> None:
        """The same, but what keeps it from being stored keeps nobody from ending: it follows from the journal."""
        try:
            self.save()
        except LostError:
            raise
        except StudyError:
            self._thinking = 0.0

    def writing(self) -> contextlib.AbstractContextManager[Any]:
        """The mutex, for a change."""
        self.check_writable()
        return self._mutex

    def check_writable(self) -> None:
        if self.lock is None:
            raise StudyError(
                f"the study {str(self.path)!r} was opened with readonly=True: open it without that to change it"
            )
        if os.getpid() != self._process:
            raise StudyError(
                f"the study {str(self.path)!r} belongs to process {self._process}: tell it the values there"
            )
        if self._ended:
            raise StudyError(self._ended)

    @contextlib.contextmanager
    def _step(self) -> Iterator[None]:
        """A change of both: where it is interrupted the journal is right, and the optimizer is made again from it."""
        self._stale = True
        yield
        self._stale = False

    def _store(self, events: list[Event], *, state: bool = False) -> None:
        before = time.perf_counter()
        stale, self._stale = self._stale, True
        packed = None
        if state:
            assert self._optimizer is not None
            packed = codec.pack(self._optimizer._core.method_state())
        with self._saving(events):
            self.journal.append(events, packed)
        for event in events:
            self._contents.note(event)
        self._stale = stale
        if state:
            self._thinking, self._price = 0.0, time.perf_counter() - before

    @contextlib.contextmanager
    def _saving(self, events: Sequence[Event], attrs: Mapping[str, Any] | None = None) -> Iterator[None]:
        """Where the file is lost, all that this process has of it goes into another one, these included."""
        try:
            yield
        except LostError as error:
            for event in events:
                self._contents.note(event)
            self._stale = False  # there is nothing to read any longer
            trials = self._contents.trials if self._optimizer is None else self._optimizer.trials
            try:
                where = save_beside(
                    self.path, Journal.as_bytes({**self._meta, **(attrs or {})}, self._contents.events(trials))
                )
            except StudyError as failure:
                self._ended = f"{error}, and {failure}: export() still writes the trials of this process"
            else:
                self._ended = f"{error}: all {len(trials)} trials are saved in {str(where)!r}, go on with that file"
            raise LostError(self._ended) from None

    def backup(self, path: Path) -> None:
        with self.mutex:
            write_new(path, self.journal.as_stored())

    def close(self, why: str = "") -> None:
        """Store what is worth it and let other processes write; done again, it does nothing."""
        if os.getpid() != self._process:
            return
        with self.mutex:
            try:
                if self.lock is not None and not self._ended:
                    self.save_if_possible()
                    with self._saving([]):
                        self.journal.check()
            finally:
                self._ended = why or self._ended or f"the study {str(self.path)!r} is closed: open it again"
                try:
                    self.journal.close()
                finally:
                    if self.lock is not None:
                        self.lock.release()


def _annotate(trials: Sequence[Trial], notes: Sequence[dict[str, Any]]) -> None:
    """Give those that wait the notes of the trials they stand for: they are stored when the trial is told."""
    for trial, attrs in zip(trials, notes, strict=False):
        if trial.value is None:
            trial.attrs = attrs


def _merged(early: TrialDetails, now: TrialDetails, names: Sequence[str]) -> TrialDetails:
    noise = early.noise if now.noise is None else now.noise
    measured = None if unknown_constraint(early.constraints, names) else early.constraints
    return TrialDetails(now.constraints or measured, noise, {**early.attrs, **now.attrs}, now.values or early.values)


def _valued(kind: str, number: int, value: float, message: str, details: TrialDetails, **more: Any) -> Event:
    stored, told = None if math.isnan(value) else value, details.text if details else ""
    return Event(kind, number, value=stored, text=message, details=told, **more)
