"""Whether a study is the one the caller means, and if not, what differs."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from reprlib import repr as short
from typing import Any

from mctsvs.space import Space
from mctsvs.study import codec


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
