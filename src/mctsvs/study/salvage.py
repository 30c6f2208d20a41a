"""What is intact in a damaged study, as a study."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from mctsvs.study.errors import DamagedError, StudyError
from mctsvs.study.journal import Journal


def salvage(path: str | os.PathLike[str], new: str | os.PathLike[str]) -> int:
    """Copy all events before the first damaged one into a new study; how many evaluations they hold.

    The method's memory is left out: it follows from the events, at the price of thinking again when resumed.
    """
    old, fresh = Path(path), Path(new)
    if not fresh.parent.is_dir():
        raise StudyError(f"cannot write {str(fresh)!r}: the folder {str(fresh.parent)!r} does not exist")
    source = Journal(old, readonly=True, alone=False)
    intact = []
    try:
        meta = source.meta()
        if "identity" not in meta:
            raise StudyError(f"nothing can be saved of {str(old)!r}: what it is about is lost")
        with contextlib.suppress(DamagedError):
            for event in source.events():
                intact.append(event)
    finally:
        source.close()
    Journal.create(fresh, meta, intact)
    return sum(event.kind in ("tell", "import") for event in intact)
