"""An optimizer and its journal, in step: everything is stored before anybody learns of it.

One thread at a time: everything that changes or reads more than one thing holds `mutex`.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mctsvs.optimizer import Optimizer
from mctsvs.study import codec
from mctsvs.study.errors import LostError
from mctsvs.study.files import save_beside
from mctsvs.study.journal import Journal
from mctsvs.study.lock import WriterLock
from mctsvs.study.replay import StudyContents, optimizer, read
from mctsvs.study.schema import Event
from mctsvs.study.tables import Row
from mctsvs.trial import NOTHING, Trial, TrialDetails
from mctsvs.utils.validation import Array, InputError, StudyError

LEAST_THINKING = 50.0  # the method's memory is stored when repeating its thoughts would take this many times longer


class Session:
    """Of one study; without a lock, only to be read."""

    def __init__(self, path: Path, lock: WriterLock | None) -> None:
        self.path, self.lock = path, lock
        self._mutex = threading.RLock()
        self.journal = Journal(path, readonly=lock is None)
        try:
            self._contents = read(self.journal)
        except BaseException:
            self.journal.close()
            raise
        self.named = True  # a method from a file is imported only if the caller names that file
        self.constraints: Any = None  # as the caller gives them: functions are not stored
        self._optimizer: Optimizer | None = None
        self._stale = False  # the optimizer may have done what the journal does not have
        self._ended = ""  # why it cannot be changed any longer
        self._thinking = self._price = 0.0  # seconds since the memory was stored, and seconds to store it
        self._process = os.getpid()

    @property
    def mutex(self) -> contextlib.AbstractContextManager[Any]:
        """In a child made by fork, the thread that held it may not be there."""
        return self._mutex if os.getpid() == self._process else contextlib.nullcontext()

    @property
    def contents(self) -> StudyContents:
        """What the journal holds, read again where that is needed."""
        with self.mutex:
            if self._stale and os.getpid() == self._process:
                self._contents = read(self.journal)
                self._optimizer, self._stale = None, False
            return self._contents

    @property
    def optimizer(self) -> Optimizer:
        """As it is after the last event; made when first needed."""
        with self.mutex:
            current = self.contents
            if self._optimizer is None:
                self._optimizer = self._revive(current)
            return self._optimizer

    @property
    def revived(self) -> Optimizer | None:
        """The optimizer, where there is one."""
        return None if self._optimizer is None else self.optimizer

    def _revive(self, current: StudyContents) -> Optimizer:
        if not self.named:
            method = current.identity["method"]
            raise StudyError(
                f"the method of the study {str(self.path)!r} is the file {method!r}, which is not imported just "
                f"because a study says so: name it with method="
            )
        try:
            return optimizer(current, self.constraints)
        except InputError:  # such as a library that is not installed here
            raise
        except Exception:  # another version of the method remembers other things; what happened is the same
            self._contents = read(self.journal, memory=False)
        try:
            return optimizer(self._contents, self.constraints)
        except InputError:
            raise
        except Exception as error:
            raise StudyError(
                f"the study {str(self.path)!r} cannot be resumed ({type(error).__name__}): this version of mctsvs does "
                f"not understand it; its trials can be read and exported"
            ) from None

    def plan(self, budget: int) -> None:
        with self.writing():
            opt = self.optimizer
            if opt.budget != budget:
                self._stale = True  # until the end is reached: whatever happens between, the journal is right
                self._store([Event("plan", budget)])
                opt.plan(budget)
                self._stale = False

    def ask(self, n: int) -> list[Trial]:
        with self.writing():
            opt = self.optimizer
            self._stale = True
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
            self._store(events, remember=self._thinking >= LEAST_THINKING * self._price)
            self._stale = False
        return trials

    def tell(self, trial: Trial | int, value: float, message: str, details: TrialDetails) -> None:
        """Without details, those that were kept with the value are told."""
        with self.writing():
            opt = self.optimizer
            waiting = opt._core.trials.waiting(trial)
            number = waiting.number
            details = opt._core.trials.check(details or self._contents.details.get(number, NOTHING))
            self._stale = True
            waiting.times.told = time.time()
            times = waiting.times.pack(waiting.purpose)
            told = Event("tell", number, value=_stored(value), text=message, variables=times)
            self._store([*self._details(number, details), told])
            before = time.perf_counter()
            opt._core.record(waiting, value, message, details)
            spent = time.perf_counter() - before
            self._thinking += spent
            waiting.times.thinking += spent
            self._stale = False

    def keep(self, trial: Trial | int, value: float, message: str, details: TrialDetails) -> None:
        with self.writing():
            number = self.optimizer._core.trials.waiting(trial).number
            details = self.optimizer._core.trials.check(details)
            result = Event("result", number, value=_stored(value), text=message)
            self._store([*self._details(number, details), result])

    def _details(self, number: int, details: TrialDetails) -> list[Event]:
        """What is not stored yet."""
        if not details or details == self._contents.details.get(number):
            return []
        return [Event("details", number, text=details.text)]

    def strike(self, trial: Trial | int, message: str) -> int:
        with self.writing():
            number = self.optimizer._core.trials.waiting(trial).number
            self._store([Event("strike", number, text=message)])
            return self._contents.strikes[number]

    def enqueue(self, units: Sequence[Array]) -> None:
        with self.writing():
            opt = self.optimizer
            self._stale = True
            self._store([Event("enqueue", point=codec.pack_point(unit)) for unit in units])
            opt._core.queue.extend(units)
            self._stale = False

    def insert(self, rows: Sequence[Row]) -> None:
        with self.writing():
            opt = self.optimizer
            first, events = len(opt.trials), []
            rows = [(unit, value, text, opt._core.trials.check(details)) for unit, value, text, details in rows]
            self._stale = True
            for number, (unit, value, text, details) in enumerate(rows, first):
                events += self._details(number, details)
                place = codec.pack_point(unit)
                events.append(Event("import", number, first, value=_stored(value), text=text, point=place))
            self._store(events)
            for unit, value, text, details in rows:
                opt._core.insert(unit, value, text, details)
            self._store([], remember=True)
            self._stale = False

    def note(self, name: str, value: Any) -> None:
        with self.writing():
            try:
                self.journal.set_meta(name, value)
            except LostError as error:
                raise self._rescued(error, []) from None

    def save(self) -> None:
        """Store the method's memory, if it has thought since."""
        with self.mutex:
            if self._optimizer is not None and not (self._stale or self._ended) and self._thinking > 0.0:
                self._store([], remember=True)

    def save_if_possible(self) -> None:
        """The same, but what keeps it from being stored keeps nobody from ending: it follows from the journal."""
        try:
            self.save()
        except LostError:
            raise
        except StudyError:
            self._thinking = 0.0

    def writing(self) -> contextlib.AbstractContextManager[Any]:
        """The mutex, for a change; in a child process it may be held by a thread that is not there."""
        self.check_writable()
        return self._mutex

    def check_writable(self) -> None:
        if self.lock is None:
            raise StudyError(
                f"the study {str(self.path)!r} was opened with readonly=True: open it without to change it"
            )
        if os.getpid() != self._process:
            raise StudyError(
                f"the study {str(self.path)!r} belongs to process {self._process}: tell it the values there"
            )
        if self._ended:
            raise StudyError(self._ended)

    def _store(self, events: list[Event], *, remember: bool = False) -> None:
        before = time.perf_counter()
        stale, self._stale = self._stale, True
        memory = None
        if remember:
            assert self._optimizer is not None
            memory = codec.pack(self._optimizer._core.method_state())
        try:
            self.journal.append(events, memory)
        except LostError as error:
            raise self._rescued(error, events) from None
        for event in events:
            self._contents.note(event)
        self._stale = stale
        if remember:
            self._thinking, self._price = 0.0, time.perf_counter() - before

    def _rescued(self, error: LostError, events: Sequence[Event]) -> LostError:
        """The file is gone: all that is in memory goes into another one, these events included."""
        for event in events:
            self._contents.note(event)
        self._stale = False  # there is nothing to read any longer
        identity = {"identity": self._contents.identity}
        trials = self._contents.trials if self._optimizer is None else self._optimizer.trials
        try:
            where = save_beside(self.path, Journal.contents(identity, self._contents.events(trials)))
        except StudyError as failure:
            self._ended = f"{error}, and {failure}: export() still writes the trials of this process"
        else:
            self._ended = f"{error}: all {len(trials)} trials are saved in {str(where)!r}, go on with that"
        return LostError(self._ended)

    def _check_end(self) -> None:
        try:
            self.journal.check_end()
        except LostError as error:
            raise self._rescued(error, []) from None

    def close(self) -> None:
        """Store what is worth it and let other processes write; done again, it does nothing."""
        if os.getpid() != self._process:
            return
        with self.mutex:
            try:
                if self.lock is not None and not self._ended:
                    self.save_if_possible()
                    self._check_end()
            finally:
                self._ended = f"the study {str(self.path)!r} is closed: open it again"
                self.journal.close()
                if self.lock is not None:
                    self.lock.release()


def _stored(value: float) -> float | None:
    return None if math.isnan(value) else value
