"""Benchmark problems by name: objectives whose bounds, optimum and important variables are known.

>>> from mctsvs.bench.problems import make
>>> problem = make("Hartmann6_300", shuffle=True, seed=1)
>>> problem.dimension, len(problem.active), round(problem.optimum, 5)
(300, 6, 3.32237)

A further family is one more line in `FAMILIES`, or an entry point of another package in the group `mctsvs.problems`: a
`Family`, or a function that knows its variables.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mctsvs.bench.problems import (
    coco,
    lasso,
    mopta,
    mujoco,
    nasbench101,
    nasbench_asr,
    rover,
    svm,
    synthetic,
    tables,
)
from mctsvs.objectives.problem import Family, Problem, Variation
from mctsvs.utils import plugins
from mctsvs.utils.validation import InputError

__all__ = ["FAMILIES", "Family", "Problem", "Variation", "available", "families", "make", "resolve"]

FAMILIES: list[Family] = [
    *synthetic.FAMILIES,
    *tables.FAMILIES,
    *nasbench101.FAMILIES,
    *nasbench_asr.FAMILIES,
    *mujoco.FAMILIES,
    *rover.FAMILIES,
    *mopta.FAMILIES,
    *lasso.FAMILIES,
    *svm.FAMILIES,
    *coco.FAMILIES,
]


def families() -> list[Family]:
    """All families of problems, in the order in which to list them: the built-in ones, then those of packages."""
    return available()[0]


def available() -> tuple[list[Family], list[str]]:
    """The families, and a sentence on each of a package that cannot be used."""
    found, complaints = PACKAGES.all()
    return [*FAMILIES, *found.values()], complaints


def _outside(name: str, spec: str) -> Family:
    """Somebody else's family, or the family of one problem that a function makes."""
    family = plugins.load(spec, "problem")
    if not isinstance(family, Family):
        family = _function_family(name, spec)
    if any(other.pattern.fullmatch(family.example) for other in FAMILIES):
        raise InputError(f"{family.example!r} is the name of a built-in problem")
    return family


PACKAGES = plugins.Group("mctsvs.problems", "problem", _outside)


def _function_family(name: str, spec: str) -> Family:
    """A function that knows its variables, as a family of one problem."""
    from mctsvs.objectives.user_function import description, find_function

    function = find_function(spec)

    def build(match: re.Match[str], variation: Variation) -> Problem:
        return _own(name, function, variation)

    pattern = re.compile(re.escape(name), re.IGNORECASE)
    return Family(name, pattern, name, description(spec), build, dimension=str(len(function.file.variables)))


def _own(name: str, function: Any, variation: Variation, direction: str | None = None) -> Problem:
    """A function of the user's; nothing is known of it, so noise is all that can be added."""
    from mctsvs.objectives.user_function import function_problem

    noise = variation.only_noise(name)
    return replace(function_problem(name, function, direction), noise=variation.noise, generator=noise)


def resolve(text: str, *, space: str | Path | None = None, direction: str | None = None, **variation: Any) -> Problem:
    """The problem a user means: a name with its variation, as for `make`, or `path/to/file.py:function`.

    A function's variables are in the TOML file `space`, or said by an attribute `space`, its own or one beside it.
    """
    if plugins.is_spec(text):
        from mctsvs.objectives.space_file import read_space
        from mctsvs.objectives.user_function import find_function

        found = find_function(text, None if space is None else read_space(Path(space)))
        return _own(text, found, Variation(**variation), direction)
    for option, value in (("space", space), ("direction", direction)):
        if value is not None:
            raise InputError(f"{option} does not go with the problem {text!r}: it is for an objective of your own")
    return make(text, **variation)


def make(
    name: str, *, shuffle: bool = False, shift: bool | float = False, noise: float = 0.0, seed: int = 0
) -> Problem:
    """The problem called `name` (upper or lower case), for example `Hartmann6_300`.

    `shuffle` puts the variables that matter at random positions; `shift` moves the optimum to a random place,
    its value unchanged; `noise` is the standard deviation of Gaussian noise on each evaluation. All three
    follow from `seed`, each on its own. A name may come from a stored study, so none makes this import a file.
    """
    variation = Variation(shuffle, shift, noise, seed)
    if (built_in := _build(str(name), FAMILIES, variation)) is not None:
        return built_in
    known, complaints = available()
    if (found := _build(str(name), known, variation)) is not None:
        return found
    forms = ", ".join(family.form for family in known)
    also = "".join(f"; {complaint}" for complaint in complaints)
    raise InputError(f"unknown problem {name!r}: did you mean {_closest(str(name), known)!r}? Names are {forms}{also}")


def _build(name: str, known: Sequence[Family], variation: Variation) -> Problem | None:
    for family in known:
        if match := family.pattern.fullmatch(name):
            return family.build(match, variation)
    return None


def _closest(name: str, known: Sequence[Family]) -> str:
    """A name that `make` accepts: the spelling put right where that is enough, else the closest example."""
    tidy = re.sub(r"[-\s]+", "_", name.strip())
    word = re.split(r"[^A-Za-z]", tidy, maxsplit=1)[0]
    stems = {family.stem.lower(): family.stem for family in known}
    similar = difflib.get_close_matches(word.lower(), stems, n=1, cutoff=0.6)
    if not similar:
        examples = {_simple(family.example): family.example for family in known}
        closest = difflib.get_close_matches(_simple(name), examples, n=1, cutoff=0.6)
        return examples[closest[0]] if closest else FAMILIES[0].example
    stem = stems[similar[0]]
    repaired = stem + tidy[len(word) :]
    try:
        if (problem := _build(repaired, known, Variation())) is not None:
            return problem.name
    except InputError:
        pass
    related = [family.example for family in known if family.stem == stem]
    return max(related, key=lambda example: difflib.SequenceMatcher(None, repaired, example).ratio())


def _simple(name: str) -> str:
    """Letters and digits only, in lower case."""
    return re.sub(r"[^a-z0-9]", "", name.lower())
