"""Benchmark problems by name: objectives whose bounds, optimum and important variables are known.

>>> from mctsvs.problems import make
>>> problem = make("Hartmann6_300", shuffle=True, seed=1)
>>> problem.dimension, len(problem.active), round(problem.optimum, 5)
(300, 6, 3.32237)

A further family is one more line in `FAMILIES`.
"""

from __future__ import annotations

import difflib
import re

from mctsvs.common import InputError
from mctsvs.problems import cancer, hpolib, lasso, mopta, mujoco, nas, rover, svm, synthetic
from mctsvs.problems.problem import Family, Problem, Variation

__all__ = ["FAMILIES", "Family", "Problem", "Variation", "families", "make"]

FAMILIES: list[Family] = [
    *synthetic.FAMILIES,
    *nas.FAMILIES,
    *hpolib.FAMILIES,
    *mujoco.FAMILIES,
    *rover.FAMILIES,
    *mopta.FAMILIES,
    *lasso.FAMILIES,
    *svm.FAMILIES,
    *cancer.FAMILIES,
]


def families() -> list[Family]:
    """All families of problems, in the order in which to list them."""
    return list(FAMILIES)


def make(name: str, *, shuffle: bool = False, shift: bool = False, noise: float = 0.0, seed: int = 0) -> Problem:
    """The problem called `name` (upper or lower case), for example `Hartmann6_300`.

    `shuffle` puts the variables that matter at random positions; `shift` moves the optimum to a random place,
    its value unchanged; `noise` is the standard deviation of Gaussian noise on each evaluation. All three
    follow from `seed`, each on its own.
    """
    variation = Variation(shuffle, shift, noise, seed)
    for family in FAMILIES:
        if match := family.pattern.fullmatch(str(name)):
            return family.build(match, variation)
    forms = ", ".join(family.form for family in FAMILIES)
    raise InputError(f"unknown problem {name!r}: did you mean {_closest(str(name))!r}? Names are {forms}")


def _closest(name: str) -> str:
    """A name that `make` accepts: the spelling put right where that is enough, else the closest example."""
    tidy = re.sub(r"[-\s]+", "_", name.strip())
    word = re.split(r"[^A-Za-z]", tidy, maxsplit=1)[0]
    stems = {family.stem.lower(): family.stem for family in FAMILIES}
    similar = difflib.get_close_matches(word.lower(), stems, n=1, cutoff=0.6)
    if not similar:
        examples = {_simple(family.example): family.example for family in FAMILIES}
        closest = difflib.get_close_matches(_simple(name), examples, n=1, cutoff=0.6)
        return examples[closest[0]] if closest else FAMILIES[0].example
    stem = stems[similar[0]]
    repaired = stem + tidy[len(word) :]
    try:
        if any(family.pattern.fullmatch(repaired) for family in FAMILIES):
            return make(repaired).name
    except InputError:
        pass
    related = [family.example for family in FAMILIES if family.stem == stem]
    return max(related, key=lambda example: difflib.SequenceMatcher(None, repaired, example).ratio())


def _simple(name: str) -> str:
    """Letters and digits only, in lower case."""
    return re.sub(r"[^a-z0-9]", "", name.lower())
