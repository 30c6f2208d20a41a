"""Declaring problems: families of one problem, families of tables, patterns of names, and what has to be installed."""

from __future__ import annotations

import functools
import importlib.util
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mctsvs.objectives.problem import Family, Problem, Variation
from mctsvs.utils.validation import Array, InputError

Details = Callable[[], Mapping[str, Any]]
"""The fields of a problem that follow from its data; a missing file is noticed when it is called."""


def box(low: float, high: float, dimension: int) -> Array:
    """(dimension, 2) the bounds of variables that all have the same ones."""
    return np.tile([low, high], (dimension, 1))


def pattern(text: str) -> re.Pattern[str]:
    """A pattern of names, in any case."""
    return re.compile(text, re.IGNORECASE | re.ASCII)


def require(problem: str, extra: str, *modules: str) -> None:
    """Raises `InputError` with the command that installs what is missing."""
    absent = [module for module in modules if importlib.util.find_spec(module) is None]
    if absent:
        raise InputError(
            f"problem {problem!r} needs {' and '.join(absent)}, not installed here: pip install 'mctsvs[{extra}]'"
        )


def build(
    name: str, description: str, bounds: Array, variation: Variation, details: Details, kind: type[Problem] = Problem
) -> Problem:
    """A problem that can be varied by noise only."""
    noise = variation.only_noise(name)
    fields = details()
    words = description + variation.words()
    return kind(name=name, description=words, bounds=bounds, noise=variation.noise, generator=noise, **fields)


def single(
    name: str,
    spelling: str,
    summary: str,
    description: str,
    bounds: Array,
    details: Callable[[Variation], Mapping[str, Any]],
    *,
    needs: tuple[str, ...] = (),
    kind: type[Problem] = Problem,
    evaluation: str = "training",
    **about: Any,
) -> Family:
    """The family of one problem, to which only noise can be added.

    Args:
        name: The problem's name, and the family's form and example.
        spelling: A regular expression of everything that is taken for the name.
        summary: One line for the list of families.
        description: One line of the problem itself.
        bounds: (D, 2).
        details: The other fields of the problem: at least its function.
        needs: Modules of the extra `about["extra"]`.
        kind: The class of the problem.
        evaluation: The `kind` of the family.
        **about: Further fields of the family.
    """

    def found(variation: Variation) -> Mapping[str, Any]:
        require(name, about.get("extra", ""), *needs)
        return details(variation)

    return Family(
        form=name,
        pattern=pattern(spelling),
        example=name,
        description=summary,
        build=lambda match, variation: build(
            name, description, bounds, variation, functools.partial(found, variation), kind
        ),
        dimension=str(len(bounds)),
        kind=evaluation,
        **about,
    )
