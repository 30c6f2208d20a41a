"""What can go wrong with a study file, in one sentence each."""

from __future__ import annotations

import errno
import shutil
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mctsvs.utils.validation import StudyError

LITTLE = 1 << 20  # bytes: a disk with less room is full
UNREADABLE = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    MemoryError,
    RecursionError,
    struct.error,
)


class DamagedError(StudyError):
    """The file holds other bytes than were written."""


class LostError(StudyError):
    """The file is no longer there, or no longer the one that was opened."""


def damaged(path: Path, what: str) -> DamagedError:
    return DamagedError(
        f"the study {str(path)!r} is damaged ({what}): use an earlier copy, "
        f"or save what is intact with `mctsvs salvage {path} NEW.db`"
    )


def full(path: Path) -> StudyError:
    return StudyError(f"the disk is full: {str(path)!r} keeps everything that was stored before; make room and resume")


def unwritable(path: Path, error: OSError) -> StudyError:
    """The error of a file beside the study, or of the study before SQLite has it."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return full(path)
    return StudyError(f"cannot write {str(path)!r}: {error.strerror or error}")


@contextmanager
def clear_errors(path: Path) -> Iterator[None]:
    """Turns SQLite's errors into sentences about the study."""
    try:
        yield
    except (UnicodeDecodeError, MemoryError) as error:  # of SQLite's own words about a damaged file, or absurd sizes
        raise damaged(path, type(error).__name__) from None
    except sqlite3.Error as error:
        raise _sentence(path, error) from None


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """The same, and what cannot be understood is damaged."""
    try:
        with clear_errors(path):
            yield
    except StudyError:
        raise
    except UNREADABLE as error:
        raise damaged(path, f"{type(error).__name__} while reading it") from None


def _sentence(path: Path, error: sqlite3.Error) -> StudyError:
    text, name = str(error), repr(str(path))
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the kind; the higher bits say more exactly where
    if "closed database" in text:
        return StudyError(f"the study {name} is closed: open it again")
    if code == sqlite3.SQLITE_FULL or "full" in text:
        return full(path)
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PROTOCOL) and _no_room(path):
        return full(path)
    if code == sqlite3.SQLITE_READONLY or "readonly" in text:
        return StudyError(f"cannot write to the study {name}: the file or its folder is read-only")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL) or "locked" in text:
        return StudyError(f"the study {name} is locked by another program: close it there")
    if code == sqlite3.SQLITE_CANTOPEN or "unable to open" in text:
        return StudyError(f"cannot open the study {name}: {_why(path)}")
    if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_IOERR_SHORT_READ:
        return damaged(path, "it ends too early")
    if code == sqlite3.SQLITE_IOERR or "I/O" in text:
        return StudyError(f"the disk failed under the study {name} ({text}): what was stored before is kept")
    if code == sqlite3.SQLITE_NOTADB or "not a database" in text:
        return DamagedError(f"{name} is not a study, or its beginning is damaged: give a file made by mctsvs")
    return damaged(path, text)


def _no_room(path: Path) -> bool:
    try:
        return shutil.disk_usage(path.absolute().parent).free < LITTLE
    except OSError:
        return False


def _why(path: Path) -> str:
    if path.is_dir():
        return "it is a folder"
    if not path.parent.is_dir():
        return f"the folder {str(path.parent)!r} does not exist"
    return "there is no such file" if not path.exists() else "it may not be read"
