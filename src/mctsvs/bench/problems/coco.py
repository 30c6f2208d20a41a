"""COCO's test suites by name (package coco-experiment): functions whose optima lie at random places, all minimised.

    Hansen et al., COCO: a platform for comparing continuous optimizers, Optimization Methods and Software, 2021;
    Varelas et al., GECCO 2018 (bbob-largescale); Tusar et al., GECCO 2019 (bbob-mixint).

`bbob-largescale_f8_80_i11` is function 8 of that suite in 80 variables, its 11th instance, which moves and rotates it;
the first where none is said. The values are COCO's own, in its units. Nothing is logged, so COCO writes no files.

COCO does not tell where an optimum is, but it does tell its value for the suite bbob, whatever the dimension, and the
functions of bbob-largescale have the same ones. Nor does it tell values without noise: `CocoInstance.noiseless` does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from mctsvs.bench.problems.declare import pattern, require
from mctsvs.objectives.problem import Family, Problem, Variation
from mctsvs.space import Float, Integer
from mctsvs.utils.validation import Array, InputError

LAST_INSTANCE = 1000
SKIPPED = 10_000  # noise that may go by before the first value: milliseconds
CAUCHY, MODERATE, SEVERE = 1000.0, 0.01, 107  # added to every value under Cauchy noise, or so much of it before f107
TINY = 1.01e-8  # added to every noisy value
FEW, MANY = (2, 3, 5, 10, 20, 40), (20, 40, 80, 160, 320, 640)


@dataclass(frozen=True)
class Suite:
    """The numbers that COCO gives its functions, and the dimensions they come in."""

    functions: range
    dimensions: tuple[int, ...]
    known: bool = False  # whether the value of the optimum is that of the suite bbob
    noisy: bool = False


SUITES = {
    "bbob": Suite(range(1, 25), FEW, known=True),
    "bbob-largescale": Suite(range(1, 25), MANY, known=True),
    "bbob-mixint": Suite(range(1, 25), (5, 10, 20, 40, 80, 160)),
    "bbob-constrained": Suite(range(1, 55), FEW),
    "bbob-noisy": Suite(range(101, 131), FEW, noisy=True),
}
GROUPS = {  # of the 24 functions of bbob, bbob-largescale and bbob-mixint, as COCO has them
    "separable": range(1, 6),
    "moderate conditioning": range(6, 10),
    "high conditioning": range(10, 15),
    "multimodal, adequate structure": range(15, 20),
    "multimodal, weak structure": range(20, 25),
}

NOISY_GROUPS = {
    "moderate noise": range(101, 107),
    "severe noise": range(107, 122),
    "severe, multimodal": range(122, 131),
}


@dataclass(frozen=True)
class CocoInstance:
    """One function of a suite, as a function of x. A copy, in this or another process, makes COCO's object anew.

    COCO has one stream of noise a process, which begins anew when a noisy function is made; `skip` numbers of it go by
    before the first value.
    """

    suite: str
    function: int
    dimension: int
    number: int
    skip: int = 0

    @cached_property
    def made(self) -> Any:
        """COCO's object, made when first used."""
        import cocoex

        index = self.function - SUITES[self.suite].functions.start + 1
        where = f"dimensions: {self.dimension} function_indices: {index}"
        made = cocoex.Suite(self.suite, f"instances: {self.number}", where)[0]
        for _ in range(self.skip):
            made(made.initial_solution)
        return made

    def noiseless(self, x: Array) -> float:
        """The value without noise, which COCO does not tell.

        Its noisy functions come in threes, one function under Gaussian, uniform and Cauchy noise. The last leaves four
        values of five alone but for a constant, so the first value that comes twice is it.
        """
        if not SUITES[self.suite].noisy:
            return float(self.made(x))
        start = SUITES[self.suite].functions.start
        cauchy = replace(self, function=self.function + 2 - (self.function - start) % 3, skip=0)
        seen: set[float] = set()
        while (value := float(cauchy.made(x))) not in seen:
            seen.add(value)
        return value - (MODERATE if cauchy.function < SEVERE else 1.0) * CAUCHY - TINY

    def __reduce__(self) -> tuple[Any, ...]:
        return CocoInstance, (self.suite, self.function, self.dimension, self.number, self.skip)

    def __call__(self, x: Array) -> Any:
        """The value, and the constraints where there are any: c1, c2, ..."""
        value = float(self.made(x))
        if not self.made.number_of_constraints:
            return value
        return value, {f"c{k}": float(c) for k, c in enumerate(self.made.constraint(x), 1)}

    @property
    def optimum(self) -> float | None:
        """The least value, where COCO tells it."""
        if not SUITES[self.suite].known:
            return None
        import cocoex

        return float(cocoex.BareProblem("bbob", self.function, min(FEW), self.number).best_value())


@dataclass(frozen=True, eq=False)
class CocoProblem(Problem):
    """A problem of a suite; some have whole variables, some have constraints, which come with the value.

    >>> problem = make("bbob-constrained_f8_20")
    >>> value, constraints = problem(x)
    >>> problem.n_constraints, (problem.constraints(x) <= 0).all()
    """

    instance: CocoInstance = field(kw_only=True)

    @property
    def space(self) -> Any:
        """The bounds, or the variables where some are whole: those come first."""
        whole = self.instance.made.number_of_integer_variables
        if not whole:
            return self.bounds
        kinds = [Integer(int(low), int(high)) for low, high in self.bounds[:whole]]
        return [*kinds, *(Float(float(low), float(high)) for low, high in self.bounds[whole:])]

    @property
    def n_constraints(self) -> int:
        return int(self.instance.made.number_of_constraints)

    def constraints(self, x: npt.ArrayLike) -> Array:
        """(n_constraints,), feasible where at most 0."""
        point = self._point(x)
        return np.array(self.instance.made.constraint(point) if self.n_constraints else [], dtype=np.float64)


def name_of(suite: str, function: int, dimension: int, number: int) -> str:
    """How a problem is written; the first instance is not."""
    return f"{suite}_f{function}_{dimension}" + (f"_i{number}" if number != 1 else "")


def coco(match: re.Match[str], variation: Variation) -> Problem:
    words = match["suite"].lower().replace("_", "-")
    function, dimension, number = (int(match[group] or 1) for group in ("f", "D", "i"))
    name = name_of(words, function, dimension, number)
    suite = SUITES[words]
    noise = variation.only_noise(name)
    if function not in suite.functions:
        raise InputError(f"{name} is not there: functions go from {suite.functions[0]} to {suite.functions[-1]}")
    if dimension not in suite.dimensions:
        raise InputError(f"{name} is not there: D is one of {', '.join(map(str, suite.dimensions))}")
    if not 1 <= number <= LAST_INSTANCE:
        raise InputError(f"{name} is not there: instances go from 1 to {LAST_INSTANCE}")
    require(name, "coco", "cocoex")
    skip = int(noise.integers(SKIPPED)) if suite.noisy else 0
    instance = CocoInstance(words, function, dimension, number, skip)
    return CocoProblem(
        name=name,
        description=f"COCO {words}: function {function}, instance {number}{variation.words()}",
        bounds=np.column_stack([instance.made.lower_bounds, instance.made.upper_bounds]),
        function=instance,
        direction="minimize",
        optimum=instance.optimum,
        noise=variation.noise,
        generator=noise,
        instance=instance,
    )


def _pattern(suites: str) -> re.Pattern[str]:
    numbers = r"_f0*(?P<f>[0-9]{1,9})_0*(?P<D>[0-9]{1,9})(?:_i0*(?P<i>[0-9]{1,9}))?"
    return pattern(f"(?P<suite>{suites}){numbers}")


FAMILIES = [
    Family(
        form="bbob-T_fN_D",
        pattern=_pattern("bbob(?:[-_](?:largescale|mixint|constrained))?"),
        example="bbob_f8_20",
        description="COCO's function N of bbob, bbob-largescale, bbob-mixint or bbob-constrained; _ik: its instance k",
        build=coco,
        extra="coco",
    ),
    Family(
        form="bbob-noisy_fN_D",
        pattern=_pattern("bbob[-_]noisy"),
        example="bbob-noisy_f101_20",
        description="COCO's functions under noise, from 101 on; _ik: instance k",
        build=coco,
        noisy=True,
        extra="coco",
    ),
]
