"""Studies that another process writes: followed as they grow, or summarised.

Nothing is written, and no method is needed.
"""

from __future__ import annotations

import contextlib
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mctsvs.optimizer.trial import NOTHING, TrialDetails
from mctsvs.study.errors import clear_errors
from mctsvs.study.journal import Journal
from mctsvs.study.replay import StudyContents, read


class StudyFollower:
    """What is in a study by now; `look` brings it up to date."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal: Journal | None = None
        self.contents: StudyContents | None = None
        self._file: tuple[int, int] | None = None
        self._version: Any = None

    def look(self) -> bool:
        """Whether there is anything new. A file that was replaced is read from its beginning."""
        if self.journal is None or self._file != self._file_now():
            self._open()
            return True
        assert self.contents is not None
        version, before = self._version_now(self.journal), self.journal.length
        if version != self._version:
            self._version = version
            with self.journal.snapshot():
                for event in self.journal.more_events():
                    self.contents.take(event)
        return self.journal.length > before

    def _open(self) -> None:
        self.close()
        journal = Journal(self.path, readonly=True)
        try:
            self._file, self._version = self._file_now(), self._version_now(journal)
            self.contents = read(journal, method_state=False)
        except BaseException:
            journal.close()
            raise
        self.journal = journal

    def _file_now(self) -> tuple[int, int] | None:
        with contextlib.suppress(OSError):
            found = os.stat(self.path)
            return found.st_dev, found.st_ino
        return None

    def _version_now(self, journal: Journal) -> Any:
        """A number of SQLite's that changes with the file."""
        with clear_errors(self.path):
            return journal.connection.execute("PRAGMA data_version").fetchone()

    @property
    def running(self) -> bool:
        """Whether a process has it open for writing, as far as its lock tells."""
        return os.path.exists(f"{os.path.realpath(self.path)}.lock")

    @property
    def budget(self) -> int | None:
        return None if self.contents is None else self.contents.budget

    def close(self) -> None:
        if self.journal is not None:
            self.journal.close()
            self.journal = None


@dataclass(frozen=True)
class StudySummary:
    """What is in a study; imported trials are not counted.

    The best value is left out where there are constraints, which it may violate.
    """

    method: str
    direction: str
    evaluations: int
    failed: int
    best: float | None


def summarize(path: Path) -> StudySummary:
    """The few numbers of a study that a list shows, by questions to the file alone: quick, however long it is."""
    journal = Journal(path, readonly=True)
    try:
        with journal.snapshot():
            identity = journal.meta()["identity"]
            query = "SELECT value, details, kind = 'tell' FROM journal WHERE kind IN ('tell', 'import')"
            told = journal.connection.execute(query).fetchall()
            details = [TrialDetails.read(text) if text else NOTHING for _, text, _ in told]
    finally:
        journal.close()
    values = [value for value, *_ in told if value is not None]
    counted = [(value, d) for (value, _, counts), d in zip(told, details, strict=True) if counts]
    unknown = [value is None and d.values is None for value, d in counted]
    failed = [
        u and all(map(math.isnan, (d.constraints or {}).values())) for u, (_, d) in zip(unknown, counted, strict=True)
    ]
    best = None
    if values and not any(d.constraints for d in details):
        best = max(values) if identity["direction"] == "maximize" else min(values)
    return StudySummary(identity["method"], identity["direction"], len(counted), sum(failed), best)
