"""MOPTA08 from its Fortran sources, which are read as text: every number stands in a line NAME(I) = X or NAME(I,J) = X.

`func.f90` has the bounds, the limits and which variables each constraint reads; `g1.f` to `g68.f` have the kriging
models. Constraints of one kind share their measured designs, which are kept once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from mctsvs.bench.problems.mopta import DIMENSION, LIMITS, POWER
from mctsvs.bench.problems.originals.files import Arrays, Originals, Tables, decoded
from mctsvs.bench.problems.originals.plain_pickle import Refused
from mctsvs.utils.validation import Array

NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[DdEe][-+]?\d+)?"
ASSIGNMENT = re.compile(
    rf"^[ \t]*(\w+)[ \t]*\([ \t]*(\d+)[ \t]*(?:,[ \t]*(\d+)[ \t]*)?\)[ \t]*=[ \t]*({NUMBER})[ \t\r]*$", re.MULTILINE
)
POWER_LINE = re.compile(rf"^[ \t]*p[ \t]*=[ \t]*({NUMBER})", re.MULTILINE)
CALL = re.compile(r"^[ \t]*call[ \t]+g(\d+)[ \t]*\([ \t]*x(\w+)[ \t]*,", re.MULTILINE | re.IGNORECASE)
INPUTS = ("uuuu", "eeee", "ssss", "rrrr", "xxxx")  # kinds of inputs; the last one: all variables
MOST_NUMBERS = 1_000_000  # in one file


def convert(originals: Originals) -> Tables:
    """The numbers of the 68 models, and what they share."""
    (name,) = originals.paths
    files = _sources(originals, name)
    function = decoded(files["func"]())
    common = assignments(function)
    table: Arrays = {
        name: _vector(common, name, length)
        for name, length in (("mmmm", DIMENSION), ("aaaa", DIMENSION), ("ssss", LIMITS), ("xl", DIMENSION))
    }
    table |= {"xu": _vector(common, "xu", DIMENSION), "gu": _vector(common, "gu", LIMITS)}
    for kind in INPUTS[:-1]:
        table[f"{kind}2opt"] = _vector(common, f"{kind}2opt").astype(np.int16)
    reads = {int(number): INPUTS.index(kind.lower()) for number, kind in _calls(function)}
    designs: dict[bytes, int] = {}
    whole, real = [], []
    for g in range(LIMITS):
        text = decoded(files[f"g{g + 1}"]())
        found = assignments(text)
        design = _matrix(found, "s")
        model = designs.setdefault(design.tobytes(), len(designs))
        table[f"S{model}"] = design
        n, inputs = design.shape
        for ours, theirs, length in (("theta", "theta", inputs), ("beta", "beta", inputs + 1), ("pcoef", "pcoef", n)):
            table[f"{ours}{g}"] = _matrix(found, theirs, length)[:, 0]
        power = POWER_LINE.search(text)
        if power is None or _number(power[1]) != POWER or _matrix(found, "evp", 1)[0, 0] != 0:
            raise Refused(f"g{g + 1} in it is no model of power {POWER} without a nugget")
        whole.append(
            [model, reads[g + 1], n, inputs, int(_vector(found, "nused")[0]), int(_vector(found, "uselog")[0])]
        )
        real.append([POWER, _vector(found, "offset")[0], 0.0])
    table |= {"meta_int": np.array(whole, dtype=np.int64), "meta_float": np.array(real)}
    return {"mopta08.npz": table}


def _calls(function: str) -> list[tuple[str, str]]:
    """Number and inputs of each constraint."""
    return [(number, kind[:4]) for number, kind in CALL.findall(function)]


def _sources(originals: Originals, name: str) -> dict[str, Callable[[], bytes]]:
    """func and g1 to g68."""
    wanted = {"func", *(f"g{g}" for g in range(1, LIMITS + 1))}
    files: dict[str, Callable[[], bytes]] = {}
    for path, read in originals.members(name):
        place = PurePosixPath(path.lower())
        if place.stem in wanted and place.suffix in (".f", ".f90", ".for"):
            files[place.stem] = read
    missing = sorted(wanted - files.keys())
    if missing:
        raise Refused(f"it has no {missing[0]}.f of MOPTA08")
    return files


Assignments = dict[str, list[tuple[int, int, float]]]


def _number(text: str) -> float:
    return float(text.upper().replace("D", "E"))


def assignments(text: str) -> Assignments:
    """Name in lower case -> the places that it is given numbers at."""
    found: Assignments = {}
    for count, match in enumerate(ASSIGNMENT.finditer(text)):
        if count > MOST_NUMBERS:
            raise Refused(f"one of its files has more than {MOST_NUMBERS:,} numbers")
        name, i, j, number = match.groups()
        found.setdefault(name.lower(), []).append((int(i), int(j or 1), _number(number)))
    return found


def _matrix(found: Assignments, name: str, rows: int | None = None) -> Array:
    """The numbers of an array that is given all of them."""
    if name not in found:
        raise Refused(f"a source in it has no numbers of {name}")
    i, j, numbers = (np.array(column) for column in zip(*found[name], strict=True))
    shape = (int(i.max()), int(j.max()))
    if i.min() < 1 or j.min() < 1 or shape[0] * shape[1] != len(numbers) or rows not in (None, shape[0]):
        raise Refused(f"a source in it has {len(numbers)} numbers of {name}, up to place {shape}")
    matrix: Any = np.full(shape, np.nan)
    matrix[i - 1, j - 1] = numbers
    if not np.isfinite(matrix).all():
        raise Refused(f"some numbers of {name} in it are missing")
    return np.asarray(matrix)


def _vector(found: Assignments, name: str, length: int | None = None) -> Array:
    return _matrix(found, name, length)[:, 0]
