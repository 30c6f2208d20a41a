"""A study that another process writes, read as it grows: only what is new, nothing written, no method needed.

The few numbers of a study that a list shows, by questions to the file alone: quick, however long the study is.
"""

from __future__ import annotations

import contextlib
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mctsvs.study.errors import DamagedError, clear_errors, damaged
from mctsvs.study.journal import Journal
from mctsvs.study.replay import UNREADABLE, EventReader, StudyContents, checked_identity, read
from mctsvs.trial import TrialDetails


class StudyFollower:
    """What is in a study by now; `look` brings it up to date."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal: Journal | None = None
        self.contents: StudyContents | None = None
        self._seen: tuple[Any, ...] = ()

    def look(self) -> bool:
        """Whether there is anything new. A file that was replaced is read from its beginning."""
        if self.journal is None or self._file() != self._seen[0]:
            self._open()
            return True
        assert self.contents is not None
        with clear_errors(self.path):
            version = self.journal.connection.execute("PRAGMA data_version").fetchone()
        if version == self._seen[1]:
            return False
        self._seen = (self._seen[0], version)
        before = self.journal.length
        try:
            self._take_more()
        except DamagedError:  # such as a file whose format has changed meanwhile
            self._open()
            return True
        return self.journal.length > before

    def _take_more(self) -> None:
        assert self.journal is not None
        assert self.contents is not None
        self.journal.snapshot()
        try:
            reader = EventReader(self.contents, self.journal)
            for event in self.journal.more_events():
                reader.take(event, np.empty((1, self.contents.space.n_coordinates)))
        except UNREADABLE as error:
            if isinstance(error, DamagedError):
                raise
            raise damaged(self.path, f"{type(error).__name__} while reading it") from None
        finally:
            with clear_errors(self.path):
                self.journal.release()

    def _open(self) -> None:
        self.close()
        journal = Journal(self.path, readonly=True)
        try:
            with clear_errors(self.path):
                version = journal.connection.execute("PRAGMA data_version").fetchone()
            self.contents = read(journal, memory=False)
        except BaseException:
            journal.close()
            raise
        self.journal, self._seen = journal, (self._file(), version)

    def _file(self) -> tuple[int, int]:
        with contextlib.suppress(OSError):
            found = os.stat(self.path)
            return found.st_dev, found.st_ino
        return (0, 0)

    @property
    def running(self) -> bool:
        """Whether a process has it open for writing, as far as its lock tells."""
        return os.path.exists(f"{os.path.realpath(self.path)}.lock")

    @property
    def budget(self) -> int | None:
        log = [] if self.contents is None else self.contents.log
        return next((event.number for event in reversed(log) if event.kind == "plan"), None)

    def close(self) -> None:
        if self.journal is not None:
            self.journal.close()
            self.journal = None


@dataclass(frozen=True)
class StudySummary:
    """What is in a study; the best value is left out where there are constraints, which it may break."""

    method: str
    direction: str
    evaluations: int
    failed: int
    best: float | None


def summarize(path: Path) -> StudySummary:
    journal = Journal(path, readonly=True)
    try:
        try:
            identity = checked_identity(journal.meta().get("identity"))
        except ValueError:
            raise damaged(path, "what it is about is lost") from None
        best = "max" if identity["direction"] == "maximize" else "min"
        query = f"SELECT count(*), count(value), {best}(value) FROM journal WHERE kind IN ('tell', 'import')"
        with clear_errors(path):
            count, succeeded, value = journal.connection.execute(query).fetchone()
        failed = count - succeeded
        if journal.count("details"):
            value, failed = None, failed - _measured_alone(journal)
        return StudySummary(identity["method"], identity["direction"], count, failed, value)
    finally:
        journal.close()


def _measured_alone(journal: Journal) -> int:
    """Evaluations of which constraints are known and the value is not."""
    with clear_errors(journal.path):
        details = dict(journal.connection.execute("SELECT number, text FROM journal WHERE kind = 'details'"))
        missing = journal.connection.execute(
            "SELECT number FROM journal WHERE kind IN ('tell', 'import') AND value IS NULL"
        ).fetchall()
    try:
        found = [TrialDetails.read(details[number]).constraints or {} for (number,) in missing if number in details]
    except ValueError:
        raise damaged(journal.path, "the details of a trial are lost") from None
    return sum(not all(math.isnan(c) for c in constraints.values()) for constraints in found)
