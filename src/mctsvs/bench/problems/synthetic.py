"""The synthetic problems: a test function of n variables hidden among D, of which the other D - n do nothing.

As in the paper (Section 5.1 and the appendix): `Hartmann6_300` is Hartmann of 6 variables among 300,
`Hartmann6_5_500` the sum of 5 copies on consecutive blocks of 6 variables, `Hartmann6_5_500_v` the same with
weights 1, 0.5, 0.25, ... All are maximised. D may be left out: `Ackley20` is `Ackley20_20`.

Shuffling puts the n variables at random positions. Shifting evaluates the function at x - s, where s moves
the optimiser to a place drawn uniformly from the middle 80 % of the box in every active variable, or, where shift is
a number, by up to that share of the box. The
functions are defined on all of R^n and nowhere better than at their optimiser, so the optimum keeps its
value; where x - s leaves the usual domain it simply goes on (Hartmann: flat, near zero; Branin: steep).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from mctsvs.bench.problems import functions
from mctsvs.objectives.problem import Family, Problem, Variation
from mctsvs.utils.validation import Array, Indices, InputError

LARGEST_DIMENSION = 10_000_000


@dataclass(frozen=True, eq=False)
class Base:
    """A function of its own n variables, before it is hidden among D."""

    function: Callable[[Array], float]
    optimum: float
    optimizer: Array
    bounds: Array
    """Shape (n, 2)."""
    padding: tuple[float, float]
    """Bounds of the variables that do nothing."""
    weights: Array
    options: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class HartmannSum:
    """Weighted sum of Hartmann6 over consecutive blocks of six variables."""

    weights: Array

    def __call__(self, x: Array) -> float:
        return float(self.weights @ functions.hartmann_blocks(x))


@dataclass(frozen=True, eq=False)
class Hidden:
    """The function of D variables that reads only `positions`, and is moved by `offset`."""

    function: Callable[[Array], float]
    positions: slice | Indices
    offset: Array | None

    def __call__(self, x: Array) -> float:
        own = x[self.positions]
        return self.function(own if self.offset is None else own - self.offset)


def hide(name: str, title: str, base: Base, dimension: int, variation: Variation) -> Problem:
    """The base function among `dimension` variables: placed, moved and made noisy as `variation` says."""
    shuffling, shifting, noise = variation.generators()
    n = len(base.optimizer)
    positions: Indices = np.arange(n)
    if variation.shuffle:
        positions = shuffling.permutation(dimension)[:n]
    optimizer_part, offset = base.optimizer, None
    if variation.shift:
        low, high = base.bounds.T
        places = shifting.uniform(0.1, 0.9, size=n)
        if not isinstance(variation.shift, bool):
            places = (base.optimizer - low) / (high - low) + (places - 0.5) / 0.4 * variation.shift
        optimizer_part = low + (high - low) * places
        offset = optimizer_part - base.optimizer

    bounds = np.tile(np.array(base.padding), (dimension, 1))
    bounds[positions] = base.bounds
    optimizer = bounds.mean(axis=1)
    optimizer[positions] = optimizer_part
    order = np.argsort(positions)
    return Problem(
        name=name,
        description=f"{title}: {n} of {dimension} variables matter{variation.words()}",
        bounds=bounds,
        function=Hidden(base.function, positions if variation.shuffle else slice(0, n), offset),
        direction="maximize",
        optimum=base.optimum,
        optimizer=optimizer,
        active=positions[order],
        weights=base.weights[order],
        noise=variation.noise,
        paper_options=dict(base.options),
        generator=noise,
    )


def check_dimension(name: str, stem: str, needed: int, dimension: int) -> None:
    """Raises `InputError` unless the function fits."""
    if dimension < needed:
        raise InputError(f"{name} has fewer variables than {stem} needs: D must be at least {needed}")
    if dimension > LARGEST_DIMENSION:
        raise InputError(f"{name} has too many variables: D must be at most {LARGEST_DIMENSION}")


def hartmann(match: re.Match[str], variation: Variation) -> Problem:
    """Hartmann6_D, Hartmann6_k_D, Hartmann6_k_D_v."""
    groups = match.groupdict()
    copies = int(groups.get("k") or 1)
    needed = 6 * copies
    dimension = int(groups["D"] or needed)
    weighted = match[0].lower().endswith("_v")
    stem = f"Hartmann6_{copies}" if "k" in groups else "Hartmann6"
    name = f"{stem}_{dimension}" + ("_v" if weighted else "")
    if copies < 1:
        raise InputError(f"{name} has no Hartmann function in it: k must be at least 1")
    check_dimension(name, stem, needed, dimension)
    weights: Array = np.power(0.5 if weighted else 1.0, np.arange(copies, dtype=np.float64))
    base = Base(
        function=HartmannSum(weights),
        optimum=float(weights.sum()) * functions.HARTMANN_OPTIMUM,
        optimizer=np.tile(functions.HARTMANN_OPTIMIZER, copies),
        bounds=np.tile([0.0, 1.0], (needed, 1)),
        padding=(0.0, 1.0),
        weights=np.repeat(weights, 6),
        options={"cp": 0.1},
    )
    mixed = f"Sum of {copies} Hartmann functions" + (" weighted 0.5^i" if weighted else "")
    return hide(name, mixed if "k" in groups else "Hartmann function", base, dimension, variation)


def branin(match: re.Match[str], variation: Variation) -> Problem:
    """Branin2_D."""
    dimension = int(match["D"] or 2)
    name = f"Branin2_{dimension}"
    check_dimension(name, "Branin2", 2, dimension)
    base = Base(
        function=functions.branin,
        optimum=functions.BRANIN_OPTIMUM,
        optimizer=functions.BRANIN_OPTIMIZER,
        bounds=np.array([[-5.0, 10.0], [0.0, 15.0]]),
        padding=(0.0, 1.0),
        weights=np.ones(2),
    )
    return hide(name, "Branin function", base, dimension, variation)


@dataclass(frozen=True)
class AnySize:
    """Builds the problems of a function that takes any number of variables and with one optimum for all of them."""

    stem: str
    function: Callable[[Array], float]
    smallest: int
    box: tuple[float, float]
    optimal_coordinate: float
    optimum: float = 0.0
    options: Mapping[str, float] = field(default_factory=dict)

    def __call__(self, match: re.Match[str], variation: Variation) -> Problem:
        n = int(match["N"])
        dimension = int(match["D"] or n)
        name = f"{self.stem}{n}_{dimension}"
        if n < self.smallest:
            raise InputError(f"{name} has too small a function in it: N must be at least {self.smallest}")
        check_dimension(name, f"{self.stem}{n}", n, dimension)
        base = Base(
            function=self.function,
            optimum=self.optimum,
            optimizer=np.full(n, self.optimal_coordinate),
            bounds=np.tile(self.box, (n, 1)),
            padding=self.box,
            weights=np.ones(n),
            options=self.options,
        )
        return hide(name, f"{self.stem} function", base, dimension, variation)


def names(text: str) -> re.Pattern[str]:
    """A pattern of names, in any case; `<N>` stands for a number that the match calls N."""
    return re.compile(re.sub(r"<(\w)>", r"(?P<\1>[0-9]{1,20})", text), re.IGNORECASE | re.ASCII)


FAMILIES = [
    Family(
        form="Hartmann6_D",
        pattern=names("Hartmann6(?:_<D>)?"),
        example="Hartmann6_300",
        description="Hartmann function of 6 variables on the unit cube, at most 3.32237",
        build=hartmann,
        optimum="3.32237",
    ),
    Family(
        form="Hartmann6_k_D",
        pattern=names("Hartmann6_<k>_<D>"),
        example="Hartmann6_5_500",
        description="Sum of k Hartmann functions of 6 variables each, at most k times 3.32237",
        build=hartmann,
        optimum="3.32237 k",
    ),
    Family(
        form="Hartmann6_k_D_v",
        pattern=names("Hartmann6_<k>_<D>_v"),
        example="Hartmann6_5_500_v",
        description="Sum of k Hartmann functions, each weighted half as much as the one before",
        build=hartmann,
        optimum="< 6.64474",
    ),
    Family(
        form="LevyN_D",
        pattern=names("Levy<N>(?:_<D>)?"),
        example="Levy10_300",
        description="Minus the Levy function of N variables on [-10, 10], at most 0",
        build=AnySize("Levy", functions.levy, 1, (-10.0, 10.0), 1.0, options={"cp": 10.0}),
        optimum="0",
    ),
    Family(
        form="Branin2_D",
        pattern=names("Branin2(?:_<D>)?"),
        example="Branin2_500",
        description="Minus the Branin function of 2 variables on [-5, 10] x [0, 15], at most -0.397887",
        build=branin,
        optimum="-0.397887",
    ),
    Family(
        form="AckleyN_D",
        pattern=names("Ackley<N>(?:_<D>)?"),
        example="Ackley20_300",
        description="Minus the Ackley function of N variables on [-5, 10], at most 0",
        build=AnySize("Ackley", functions.ackley, 1, (-5.0, 10.0), 0.0),
        optimum="0",
    ),
    Family(
        form="RosenbrockN_D",
        pattern=names("Rosenbrock<N>(?:_<D>)?"),
        example="Rosenbrock10_300",
        description="Minus the Rosenbrock function of N variables on [-5, 10], at most 0",
        build=AnySize("Rosenbrock", functions.rosenbrock, 2, (-5.0, 10.0), 1.0),
        optimum="0",
    ),
    Family(
        form="StyblinskiN_D",
        pattern=names("Styblinski(?:Tang)?<N>(?:_<D>)?"),
        example="Styblinski60_60",
        description="Minus the mean of Styblinski and Tang's function over N variables on [-5, 5], at most 39.1662",
        build=AnySize(
            "Styblinski",
            functions.styblinski_tang,
            1,
            (-5.0, 5.0),
            functions.TANG_OPTIMIZER,
            functions.TANG_OPTIMUM,
        ),
        optimum="39.1662",
    ),
    Family(
        form="GriewankN_D",
        pattern=names("Griewank<N>(?:_<D>)?"),
        example="Griewank60_60",
        description="Minus the Griewank function of N variables on [-600, 600], at most 0",
        build=AnySize("Griewank", functions.griewank, 1, (-600.0, 600.0), 0.0),
        optimum="0",
    ),
    Family(
        form="RotatedN_D",
        pattern=names("Rotated<N>(?:_<D>)?"),
        example="Rotated8_300",
        description="Minus a quadratic function of N variables on [-5, 5] with axes of its own, at most 0",
        build=AnySize("Rotated", functions.rotated, 1, (-5.0, 5.0), 0.0),
        optimum="0",
    ),
]
"""One entry for each form of name."""
