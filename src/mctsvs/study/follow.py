"""A study that another process writes, read as it grows: only what is new, nothing written, no method needed."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import numpy as np

from mctsvs.study.contents import UNREADABLE, Contents, Reader, read
from mctsvs.study.errors import DamagedError, clear_errors, damaged
from mctsvs.study.journal import Journal


class Followed:
    """What is in a study by now; `look` brings it up to date."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal: Journal | None = None
        self.contents: Contents | None = None
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
            reader = Reader(self.contents, self.journal)
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
