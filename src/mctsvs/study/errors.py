"""What can go wrong with a study file, in one sentence each."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mctsvs.common import InputError


class StudyError(InputError):
    """A study that cannot be used as asked: one sentence that says why and what would be right."""


class DamagedError(StudyError):
    """The file holds other bytes than were written."""


def damaged(path: Path, what: str) -> DamagedError:
    return DamagedError(
        f"the study {str(path)!r} is damaged ({what}): take a copy from before, "
        f"or save what is intact with `mctsvs salvage {path} NEW.db`"
    )


@contextmanager
def clear_errors(path: Path) -> Iterator[None]:
    """SQLite's errors as sentences about the study."""
    try:
        yield
    except (UnicodeDecodeError, MemoryError) as error:  # of SQLite's own words about a damaged file, or absurd sizes
        raise damaged(path, type(error).__name__) from None
    except sqlite3.Error as error:
        text, name = str(error), repr(str(path))
        if "closed database" in text:
            raise StudyError(f"the study {name} is closed: open it again") from None
        if "full" in text:
            raise StudyError(f"the disk is full: {name} keeps all it had stored before; make room and resume") from None
        if "readonly" in text:
            raise StudyError(f"cannot write to the study {name}: the file or its folder is read-only") from None
        if "locked" in text:
            raise StudyError(f"the study {name} is locked by another program: close it there") from None
        if "unable to open" in text:
            raise StudyError(f"cannot open the study {name}: {_why(path)}") from None
        if "I/O" in text:
            raise StudyError(f"the disk failed under the study {name} ({text}): what it stored before stays") from None
        if "not a database" in text:
            raise StudyError(
                f"{name} is not a study, or its beginning is damaged: give a file made by mctsvs"
            ) from None
        raise damaged(path, text) from None


def _why(path: Path) -> str:
    if path.is_dir():
        return "it is a folder"
    if not path.parent.is_dir():
        return f"the folder {str(path.parent)!r} does not exist"
    return "there is no such file" if not path.exists() else "it may not be read"
