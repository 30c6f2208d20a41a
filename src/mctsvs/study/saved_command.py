"""How a study was last run, as the command line notes it in the file: anybody's word, checked before it is followed."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Collection, Mapping
from pathlib import Path
from reprlib import repr as short
from types import NoneType
from typing import Any, NamedTuple

from mctsvs.utils.validation import StudyError

NAME = "command"
GROUPS = "groups"  # the note of the groups of variables: name -> how many
VARIATION = {"shuffle": (bool,), "shift": (bool,), "noise": (int, float), "seed": (int, NoneType)}
KINDS: dict[str, tuple[type, ...]] = {
    "problem": (str, NoneType),
    "variation": (dict,),
    "workers": (int, NoneType),
    "dask": (str, NoneType),
    "ray": (str, NoneType),
    "asynchronous": (bool,),
    "timeout": (int, float, NoneType),
    "max_failures": (int,),
    "budget": (int,),
    "target": (int, float, NoneType),
    "patience": (int, NoneType),
    "own": (str, NoneType),
}
ADDED = {"target": None, "patience": None, "own": None}  # since the first form of the note


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
    def of(cls, notes: Mapping[str, Any], path: Path) -> SavedCommand | None:
        """The one in these notes, of the form in which it is written; None where there is none."""
        if NAME not in notes:
            return None
        note = {**ADDED, **notes[NAME]} if isinstance(notes[NAME], dict) else notes[NAME]
        _check(note, KINDS, path)
        _check(note["variation"], VARIATION, path)
        for name in ("workers", "timeout", "max_failures", "budget", "patience"):
            if note[name] is not None and not 0 < note[name] < math.inf:
                raise _odd(path, name, note[name])
        return cls(**note)

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
                f"the study {str(path)!r} was run with {wish}, which is not done unasked: add it if you trust the "
                f"file, or --workers {cpus} to go on with the processors that are here"
            )


def groups_of(notes: Mapping[str, Any], declared: Collection[str], path: Path) -> dict[str, tuple[str, ...]] | None:
    """Name -> variables of each group that an objective gets together; None where nobody has noted them."""
    noted = notes.get(GROUPS)
    if noted is None:
        return None
    if not isinstance(noted, dict) or not all(type(n) is int and 0 < n <= len(declared) for n in noted.values()):
        raise _odd(path, GROUPS, noted)
    groups = {str(name): tuple(f"{name}{i}" for i in range(count)) for name, count in noted.items()}
    if not {member for members in groups.values() for member in members} <= set(declared):
        raise _odd(path, GROUPS, noted)
    return groups


def _check(note: Any, kinds: Mapping[str, tuple[type, ...]], path: Path) -> None:
    if not isinstance(note, dict) or set(note) != set(kinds):
        raise _odd(path, "form", note)
    for name, value in note.items():
        if type(value) not in kinds[name]:
            raise _odd(path, name, value)


def _odd(path: Path, name: str, value: Any) -> StudyError:
    return StudyError(
        f"the study {str(path)!r} was not written by this version of mctsvs: the {name} of its last run is "
        f"{short(value)}; repeat the command that began it"
    )
