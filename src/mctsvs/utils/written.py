"""Files that are written for the user: pages, tables and summaries. None of them ever replaces a study."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from reprlib import repr as short
from typing import Any

from mctsvs.utils.validation import InputError

SQLITE = b"SQLite format 3\0"
BESIDE = ("-wal", "-shm", "-journal", ".lock")  # endings of the files that belong to a study


def output_path(path: Any) -> Path:
    """The file that somebody wants written."""
    if not isinstance(path, str | os.PathLike) or not Path(path).name:
        raise InputError(f"cannot write to {short(path)}: give the name of a file")
    return Path(path)


@contextmanager
def written(path: Path) -> Iterator[None]:
    """Around the writing of a file: what keeps it from being written is one sentence."""
    check_output(path)
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error.strerror or error}") from None


def check_output(path: Path) -> None:
    """Whether a file can be written there: better said before a run than after it."""
    if not path.parent.is_dir():
        raise InputError(f"cannot write {str(path)!r}: the folder {str(path.parent)!r} does not exist")
    if path.is_dir():
        raise InputError(f"cannot write {str(path)!r}: it is a folder, give the name of a file in it")
    owner = next((Path(str(path).removesuffix(end)) for end in BESIDE if str(path).endswith(end)), path)
    try:
        if owner.is_file() and _beginning(owner) == SQLITE:
            raise InputError(f"cannot write {str(path)!r}, which is a study or another database: give another name")
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error.strerror or error}") from None


def _beginning(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(len(SQLITE))
