"""What is intact in a damaged study, as a study."""

from __future__ import annotations

import os
from pathlib import Path

from mctsvs.study.errors import DamagedError, StudyError
from mctsvs.study.journal import Journal


def salvage(path: str | os.PathLike[str], new: str | os.PathLike[str]) -> int:
    """Copy all entries before the first damaged one into a new study; how many evaluations they hold.

    The method's memory is left out: it follows from the entries, at the price of thinking again when resumed.
    """
    old, fresh = Path(path), Path(new)
    if fresh.exists():
        raise StudyError(f"{str(fresh)!r} exists already: give the name of a new file")
    if not fresh.parent.is_dir():
        raise StudyError(f"cannot write {str(fresh)!r}: the folder {str(fresh.parent)!r} does not exist")
    source = Journal(old, readonly=True)
    try:
        meta = source.meta()
        if "identity" not in meta:
            raise StudyError(f"nothing can be saved of {str(old)!r}: what it is about is lost")
        intact = []
        try:
            for entry in source.entries():
                intact.append(entry)
        except DamagedError:
            pass
    finally:
        source.close()
    Journal.create(fresh, meta)
    journal = Journal(fresh)
    try:
        for _ in journal.entries():  # finds the beginning of the chain of checksums
            pass
        journal.append(intact)
    finally:
        journal.close()
    return sum(entry.kind in ("tell", "import") for entry in intact)
