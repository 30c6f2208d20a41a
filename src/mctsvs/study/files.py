"""The files of a study on the disk: made whole or not at all, nobody else's touched, and noticed when they go."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from mctsvs.study.errors import unwritable
from mctsvs.utils.validation import StudyError

HELPERS = ("-wal", "-shm", "-journal")  # endings of the files that SQLite keeps beside a database


def helpers(path: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """SQLite's files beside this one, as far as they are there."""
    real = os.path.realpath(path)
    for ending in HELPERS:
        with contextlib.suppress(FileNotFoundError):
            yield Path(real + ending), os.lstat(real + ending)


def check_helpers(path: Path) -> None:
    """SQLite would follow a link in their place, and write over what is behind it."""
    for file, found in helpers(path):
        if not stat.S_ISREG(found.st_mode):
            raise StudyError(f"{str(file)!r} is not a plain file, as it would be beside a study: move it away")


def write_new(path: Path, data: bytes) -> None:
    """A new file of that content; there under its name only once it is complete, and never in another's place."""
    for left_over, _ in helpers(path):  # SQLite would take what is in it for the end of the new file
        raise StudyError(
            f"{str(left_over)!r} is left over from another file called {path.name!r}: delete it, or move it away, "
            f"before a new study is begun there"
        )
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    try:
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            _rename(fresh, path)
        finally:
            fresh.unlink(missing_ok=True)
    except FileExistsError:
        raise StudyError(f"{str(path)!r} exists already: give the name of a new file") from None
    except OSError as error:
        raise unwritable(path, error) from None


def _rename(fresh: Path, path: Path) -> None:
    try:
        os.link(fresh, path)  # unlike a renaming, fails where there is something
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if os.path.lexists(path):
            raise FileExistsError from None
        fresh.rename(path)


def save_beside(path: Path, data: bytes) -> Path:
    """Write the data under a name like this one that is free, beside it or else among the temporary files."""
    for folder in (path.parent, Path(tempfile.gettempdir())):
        for number in range(1, 1000):
            free = folder / f"{path.stem}-saved-{number}{path.suffix}"
            if os.path.lexists(free) or any(True for _ in helpers(free)):
                continue
            try:
                write_new(free, data)
            except StudyError:
                break
            return free
    raise StudyError(f"nothing could be written beside {str(path)!r} or in {tempfile.gettempdir()!r}")


class FilePresence:
    """Whether a file, and SQLite's log beside it, are still those that were opened."""

    def __init__(self, path: Path) -> None:
        self.path, self.log = os.path.realpath(path), os.path.realpath(path) + "-wal"
        found = os.stat(self.path)
        self.file, self.size = _identity(found), found.st_size
        self.log_file: tuple[int, int] | None = None  # made at the first change
        self.looked = 0.0
        self.unseen = False  # there was a change since

    def wrong(self, now: float, interval: float = 0.0) -> str:
        """What has happened to it, in words; nothing: it is as it was, or has been looked at within the interval."""
        self.unseen = now - self.looked < interval
        if self.unseen:
            return ""
        self.looked = now
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            return "it was deleted or renamed"
        if _identity(found) != self.file:
            return "another file has taken its place"
        if found.st_size < self.size:
            return f"it was cut off after {found.st_size} bytes"
        self.size = found.st_size
        try:
            log = _identity(os.stat(self.log))
        except FileNotFoundError:
            return "" if self.log_file is None else f"{self.log!r} was deleted"
        self.log_file = self.log_file or log
        return "" if log == self.log_file else f"another file has taken the place of {self.log!r}"


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino
