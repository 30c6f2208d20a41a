"""A study is begun, or opened and compared with what the caller gives: one that is not meant is refused."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from reprlib import repr as short
from typing import Any

from mctsvs.optimizer import Optimizer
from mctsvs.optimizer.objectives import Objectives
from mctsvs.space import Space, constraints
from mctsvs.study import codec
from mctsvs.study.files import WriterLock
from mctsvs.study.journal import Journal
from mctsvs.study.session import Session, hand_over
from mctsvs.utils import plugins
from mctsvs.utils.validation import InputError, StudyError, as_number


def checked_path(path: Any) -> Path:
    if path == ":memory:":
        raise InputError("a study is a file, not ':memory:': give a name such as 'run.db', or use mctsvs.Optimizer")
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"a study's file cannot be {short(path)}: give its name first, such as Study('run.db', space)")
    return Path(path)


def open_session(path: Path, given: Mapping[str, Any], options: Mapping[str, Any], *, readonly: bool) -> Session:
    """The study in this file, which is begun if there is none; what is given must be what it was begun with."""
    if readonly:
        return _checked(Session(path, None), given, options)
    if not path.exists() and "space" not in given:
        raise StudyError(f"there is no study {str(path)!r}: give a space to begin one")
    if not path.parent.is_dir():
        raise StudyError(
            f"cannot begin a study in {str(path)!r}: the folder {str(path.parent)!r} does not exist; create it first"
        )
    hand_over(path)
    lock = WriterLock(path)
    try:
        if not path.exists():
            _begin(path, given, options)
        session = Session(path, lock)
    except BaseException:
        lock.release()
        raise
    return _checked(session, given, options)


def _checked(session: Session, given: Mapping[str, Any], options: Mapping[str, Any]) -> Session:
    try:
        contents = session.contents
        found = differences(contents.identity, contents.space, given, options)
        if found:
            raise StudyError(
                f"{str(session.path)!r} was created with different settings: {'; '.join(found)}. Pass the original "
                f"settings or choose another file."
            )
        session.constraints = given.get("constraints")
        session.method_given = "method" in given or not plugins.is_spec(contents.identity["method"])
        if session.lock is not None:
            _ = session.optimizer  # now, so that what is wrong with it is said now
    except BaseException:
        session.close()
        raise
    return session


def _begin(path: Path, given: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    objectives: Objectives | None = given.get("objectives")
    aims = {"direction": "minimize"} if objectives is None else objectives.arguments
    opt = Optimizer(**{**aims, **given, **(aims if objectives else {})}, **options)
    identity = {
        "space": opt.space.to_state(),
        "direction": opt.direction,
        **({} if objectives is None else {"objectives": objectives.to_state()}),
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
    several = given.get("objectives")
    if several is not None and several.to_state() != identity.get("objectives"):
        found.append(f"direction is {identity['direction']!r}, not {several.text!r}")
        if several.text == identity["direction"]:
            found = ["the reference point is another one"]
    for name in ("direction", "method", "seed"):
        if name in given and not (name == "seed" and given[name] is None) and given[name] != identity[name]:
            found.append(f"{name} is {identity[name]!r}, not {given[name]!r}")
    stored = identity["options"]
    for name, value in options.items():
        try:
            value = codec.unpack(codec.pack(value))  # a tuple is stored as a list
        except TypeError:
            value = as_number(value)  # a number of another library is stored as a float
        if name not in stored:
            found.append(f"option {name} has its default value, not {short(value)}")
        elif stored[name] != value:
            found.append(f"option {name} is {short(stored[name])}, not {short(value)}")
    known = identity.get("constraints", [])
    if "constraints" in given and (now := constraints.stored(constraints.as_list(given["constraints"]))) != known:
        found.append(f"constraints are {short(known)}, not {short(now)}" if known else "it has no constraints")
    if "space" in given and given["space"] != space:
        found.append(_space_difference(space, given["space"]))
    return found


def _space_difference(stored: Space, given: Space) -> str:
    if len(stored) != len(given):
        return f"the number of variables is {len(stored)}, not {len(given)}"
    if stored.named != given.named:
        return f"the variables have {'names' if stored.named else 'no names'}"
    pairs = zip(stored.names, stored.variables, given.names, given.variables, strict=True)
    for name, variable, other_name, other in pairs:
        if name != other_name:
            return f"the variable {name!r} has another name, {other_name!r}"
        if variable != other:
            return f"the variable {name} is {variable}, not {other}"
    return "the space differs"
