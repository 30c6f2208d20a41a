"""How a study was last run, as the command line stores it among the user's attributes."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Mapping
from pathlib import Path
from reprlib import repr as short
from typing import Any, NamedTuple

from mctsvs.utils.validation import StudyError

NAME = "command"
GROUPS = "groups"  # the attribute with the groups of variables: name -> how many


class SavedCommand(NamedTuple):
    """The arguments of `mctsvs run`."""

    problem: str | None
    variation: dict[str, Any]
    workers: int | None
    dask: str | None
    ray: str | None
    asynchronous: bool
    timeout: float | None
    max_failures: int
    budget: int
    target: float | None = None
    patience: int | None = None
    own: str | None = None  # what the user called an objective of his own; never run because a file says so

    @classmethod
    def of(cls, attrs: Mapping[str, Any], path: Path) -> SavedCommand | None:
        """The one among these attributes; None where there is none."""
        if NAME not in attrs:
            return None
        if not isinstance(attrs[NAME], dict) or set(attrs[NAME]) != set(cls._fields):
            raise _foreign(path, NAME, attrs[NAME])
        return cls(**attrs[NAME])

    def check_modest(self, path: Path) -> None:
        """That it asks for nothing that only the user may grant: another machine, or more of this one than it has."""
        cpus = os.cpu_count() or 1
        wish = ""
        if self.dask is not None:
            wish = f"--dask {shlex.quote(self.dask)}"
        elif self.ray is not None:
            wish = f"--ray {shlex.quote(self.ray)}".removesuffix(" ''")
        elif self.workers is not None and self.workers > cpus:
            wish = f"--workers {self.workers}"
        if wish:
            raise StudyError(
                f"the study {str(path)!r} was run with {wish}, which is repeated only if you ask for it: add it if you "
                f"trust the file, or add --workers {cpus} to use the processors of this machine"
            )


def groups_of(attrs: Mapping[str, Any], declared: Collection[str], path: Path) -> dict[str, tuple[str, ...]] | None:
    """Name -> variables of each group that an objective gets together; None where they are not stored."""
    stored = attrs.get(GROUPS)
    if stored is None:
        return None
    if not isinstance(stored, dict) or not all(type(n) is int and 0 < n <= len(declared) for n in stored.values()):
        raise _foreign(path, GROUPS, stored)
    groups = {str(name): tuple(f"{name}{i}" for i in range(count)) for name, count in stored.items()}
    if not {member for members in groups.values() for member in members} <= set(declared):
        raise _foreign(path, GROUPS, stored)
    return groups


def _foreign(path: Path, name: str, value: Any) -> StudyError:
    return StudyError(
        f"the study {str(path)!r} was not written by this version of mctsvs: its attribute {name!r} is "
        f"{short(value)}; repeat the command that began it"
    )
