"""What a study is about: begun, opened, and refused where it is not the one that the caller means."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from reprlib import repr as short
from typing import Any

from mctsvs.optimizer import Optimizer
from mctsvs.space import Space, constraints
from mctsvs.study import codec
from mctsvs.study.journal import Journal
from mctsvs.study.lock import WriterLock
from mctsvs.study.session import Session
from mctsvs.utils import plugins
from mctsvs.utils.validation import InputError, StudyError


def checked_path(path: Any) -> Path:
    if path == ":memory:":
        raise InputError("a study is a file, not ':memory:': give a name such as 'run.db', or use mctsvs.Optimizer")
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"a study's file cannot be {short(path)}: give its name first, such as Study('run.db', space)")
    return Path(path)


def open_ledger(path: Path, given: Mapping[str, Any], options: Mapping[str, Any], *, readonly: bool) -> Session:
    """The study in this file, which is begun if there is none; it must be what is given."""
    if readonly:
        return _opened(Session(path, None), given, options)
    if not path.exists() and "space" not in given:
        raise StudyError(f"there is no study {str(path)!r}: give a space to begin one")
    if not path.parent.is_dir():
        folder = str(path.parent)
        raise StudyError(f"cannot begin a study in {str(path)!r}: the folder {folder!r} does not exist")
    lock = WriterLock(path)
    try:
        if not path.exists():
            _create(path, given, options)
        lock.claim()
        ledger = Session(path, lock)
    except BaseException:
        lock.release()
        raise
    return _opened(ledger, given, options)


def _opened(ledger: Session, given: Mapping[str, Any], options: Mapping[str, Any]) -> Session:
    try:
        contents = ledger.contents
        found = differences(contents.identity, contents.space, given, options)
        if found:
            raise StudyError(
                f"the study {str(ledger.path)!r} is another one: {'; '.join(found)} (give what it was begun with, or "
                f"another file)"
            )
        ledger.constraints = given.get("constraints")
        ledger.named = "method" in given or not plugins.is_spec(contents.identity["method"])
        if ledger.lock is not None:
            _ = ledger.optimizer  # now, so that what is wrong with it is said now
    except BaseException:
        ledger.close()
        raise
    return ledger


def _create(path: Path, given: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    opt = Optimizer(**{"direction": "minimize", **given}, **options)
    identity = {
        "space": opt.space.to_state(),
        "direction": opt.direction,
        "method": opt.method,
        "options": opt.options,
        "seed": opt.seed,
        **({"constraints": constraints.stored(opt.region.constraints)} if opt.region.constrained else {}),
    }
    try:
        Journal.create(path, {"identity": identity})
    except TypeError as error:
        raise StudyError(f"these options cannot be stored: {error}") from None


def differences(
    identity: Mapping[str, Any], space: Space, given: Mapping[str, Any], options: Mapping[str, Any]
) -> list[str]:
    """What is given and is not as stored, in words; what is not given is as stored."""
    found = []
    for name in ("direction", "method", "seed"):
        if name in given and not (name == "seed" and given[name] is None) and given[name] != identity[name]:
            found.append(f"its {name} is {identity[name]}, not {given[name]}")
    stored = identity["options"]
    for name, value in options.items():
        with contextlib.suppress(TypeError):  # what cannot be stored is not what was stored
            value = codec.unpack(codec.pack(value))  # a tuple is stored as a list
        if name not in stored:
            found.append(f"its option {name} has the default, not {short(value)}")
        elif stored[name] != value:
            found.append(f"its option {name} is {short(stored[name])}, not {short(value)}")
    known = identity.get("constraints", [])
    if "constraints" in given and (now := constraints.stored(constraints.as_list(given["constraints"]))) != known:
        found.append(f"its constraints are {short(known)}, not {short(now)}" if known else "it has no constraints")
    if "space" in given and given["space"] != space:
        found.append(_space(space, given["space"]))
    return found


def _space(stored: Space, given: Space) -> str:
    if len(stored) != len(given):
        return f"it has {len(stored)} variables, not {len(given)}"
    if stored.named != given.named:
        return "its variables have names" if stored.named else "its variables have no names"
    pairs = zip(stored.names, stored.variables, given.names, given.variables, strict=True)
    for name, variable, other_name, other in pairs:
        if name != other_name:
            return f"it has a variable {name!r} where {other_name!r} is given"
        if variable != other:
            return f"its variable {name} is {variable}, not {other}"
    return "its space differs"
