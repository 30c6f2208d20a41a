"""The synthetic problems: a test function of n variables hidden among D, of which the other D - n do nothing.

As in the paper (Section 5.1 and the appendix): `Hartmann6_300` is Hartmann of 6 variables among 300,
`Hartmann6_5_500` the sum of 5 copies on consecutive blocks of 6 variables, `Hartmann6_5_500_v` the same with
weights 1, 0.5, 0.25, ... All are maximised. D may be left out: `Ackley20` is `Ackley20_20`.

Shuffling puts the n variables at random positions. Shifting evaluates the function at x - s, where s moves
the optimiser to a place drawn uniformly from the middle 80 % of the box in every active variable, or, where shift is
a number, by up to that share of the box. The
functions are defined on all of R^n and nowhere better than at their optimiser, so the optimum keeps its
value; where x - s leaves the usual domain it simply goes on (Hartmann: flat, near zero; Branin: steep).

The functions take the vector of their own variables only, (n,) in natural units, and return one number. Their maxima
over all of R^n lie inside the usual domain, so that translating one never creates a better point: the Hartmann bumps
all fall off outside the unit cube, and the others attain a bound that holds everywhere.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from mctsvs.bench.problems.declare import box, pattern
from mctsvs.objectives.problem import Family, Problem, Variation
from mctsvs.utils.validation import Array, Indices, InputError

LARGEST_DIMENSION = 10_000_000

# Hartmann6 = sum_i ALPHA[i] exp(-sum_j A[i, j] (x_j - P[i, j])^2), on [0, 1]^6.
# fmt: off
HARTMANN_ALPHA: Array = np.array([1.0, 1.2, 3.0, 3.2])
HARTMANN_A: Array = np.array([
    [10.0, 3.0, 17.0, 3.5, 1.7, 8.0],
    [0.05, 10.0, 17.0, 0.1, 8.0, 14.0],
    [3.0, 3.5, 1.7, 10.0, 17.0, 8.0],
    [17.0, 8.0, 0.05, 10.0, 0.1, 14.0],
])
HARTMANN_P: Array = np.array([
    [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
    [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
    [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650],
    [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
])
# The published optimum, 3.32237 at (0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573), in full.
HARTMANN_OPTIMUM = 3.322368011415515
HARTMANN_OPTIMIZER: Array = np.array([
    0.20168951100670543, 0.15001069182345797, 0.476873974221897,
    0.2753324304940561, 0.31165161660011326, 0.6573005340656204,
])
# fmt: on

# Branin = (x2 - B x1^2 + C x1 - 6)^2 + 10 (1 - T) cos(x1) + 10, on [-5, 10] x [0, 15]; smallest value 10 T.
BRANIN_B = 5.1 / (4 * math.pi**2)
BRANIN_C = 5 / math.pi
BRANIN_T = 1 / (8 * math.pi)
BRANIN_OPTIMUM = -10 * BRANIN_T
BRANIN_OPTIMIZER: Array = np.array([math.pi, 2.275])

# Of one variable of Styblinski and Tang's function: the smallest root of 4 x^3 - 32 x + 5 and its value.
TANG_OPTIMIZER = -2.903534027771177
TANG_OPTIMUM = 39.16616570377142


def hartmann_blocks(x: Array) -> Array:
    """Hartmann6 of each consecutive block of six variables: shape (6 k,) to shape (k,)."""
    gap = x.reshape(-1, 1, 6) - HARTMANN_P
    values: Array = np.exp(-(HARTMANN_A * gap * gap).sum(axis=-1)) @ HARTMANN_ALPHA
    return values


def levy(x: Array) -> float:
    """Minus the Levy function; 0 at ones."""
    w = 1 + (x - 1) / 4
    head, last = w[:-1] - 1, float(w[-1])
    middle = head * head * (1 + 10 * np.sin(math.pi * w[:-1] + 1) ** 2)
    first = math.sin(math.pi * float(w[0])) ** 2
    return -(first + float(middle.sum()) + (last - 1) ** 2 * (1 + math.sin(2 * math.pi * last) ** 2))


def branin_function(x: Array) -> float:
    """Minus the Branin function; -0.397887 at (pi, 2.275) and two more points."""
    x1, x2 = float(x[0]), float(x[1])
    valley = x2 - BRANIN_B * x1 * x1 + BRANIN_C * x1 - 6
    return -(valley * valley + 10 * (1 - BRANIN_T) * math.cos(x1) + 10)


def ackley(x: Array) -> float:
    """Minus the Ackley function (a=20, b=0.2, c=2 pi); 0 at zeros."""
    n = len(x)
    bowl = 20 * math.exp(-0.2 * math.sqrt(float(x @ x) / n))
    ripple = math.exp(float(np.cos(2 * math.pi * x).sum()) / n)
    return bowl + ripple - 20 - math.e


def rosenbrock(x: Array) -> float:
    """Minus the Rosenbrock function; 0 at ones."""
    curve = x[1:] - x[:-1] ** 2
    slope = 1 - x[:-1]
    return -(100 * float(curve @ curve) + float(slope @ slope))


def styblinski_tang(x: Array) -> float:
    """Minus the mean over the variables of (x^4 - 16 x^2 + 5 x) / 2; 39.166 at -2.9035, another hollow at 2.7468."""
    return -float((x**4 - 16 * x * x + 5 * x).mean()) / 2


def griewank(x: Array) -> float:
    """Minus the Griewank function; 0 at zeros."""
    return -(float(x @ x) / 4000 - float(np.cos(x / np.sqrt(np.arange(1, len(x) + 1))).prod()) + 1)


@cache
def rotation(n: int) -> Array:
    """(n, n) one orthogonal matrix for each n."""
    matrix, _ = np.linalg.qr(np.random.default_rng(n).standard_normal((n, n)))
    return np.asarray(matrix)


def rotated(x: Array) -> float:
    """Minus a quadratic function whose axes are those of no variable, ten times as steep along one as along another."""
    along = rotation(len(x)) @ x
    return -float(np.logspace(0, 1, len(x)) @ (along * along))


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
        return float(self.weights @ hartmann_blocks(x))


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
        optimum=float(weights.sum()) * HARTMANN_OPTIMUM,
        optimizer=np.tile(HARTMANN_OPTIMIZER, copies),
        bounds=np.tile([0.0, 1.0], (needed, 1)),
        padding=(0.0, 1.0),
        weights=np.repeat(weights, 6),
        options={"cp": 0.1},
    )
    title = f"Sum of {copies} Hartmann functions" + (" weighted 0.5^i" if weighted else "")
    return hide(name, title if "k" in groups else "Hartmann function", base, dimension, variation)


def branin(match: re.Match[str], variation: Variation) -> Problem:
    """Branin2_D."""
    dimension = int(match["D"] or 2)
    name = f"Branin2_{dimension}"
    check_dimension(name, "Branin2", 2, dimension)
    base = Base(
        function=branin_function,
        optimum=BRANIN_OPTIMUM,
        optimizer=BRANIN_OPTIMIZER,
        bounds=np.array([[-5.0, 10.0], [0.0, 15.0]]),
        padding=(0.0, 1.0),
        weights=np.ones(2),
    )
    return hide(name, "Branin function", base, dimension, variation)


def any_size(
    example: str,
    function: Callable[[Array], float],
    interval: tuple[float, float],
    optimizer: float,
    summary: str,
    extra: str = "",
    *,
    smallest: int = 1,
    optimum: float = 0.0,
    spelling: str = "",
    options: Mapping[str, float] | None = None,
) -> Family:
    """The family of a function that takes any number of variables, of which each has the same range and optimum."""
    stem = example.rstrip("_0123456789")

    def make(match: re.Match[str], variation: Variation) -> Problem:
        n = int(match["N"])
        dimension = int(match["D"] or n)
        name = f"{stem}{n}_{dimension}"
        if n < smallest:
            raise InputError(f"{name} has too small a function in it: N must be at least {smallest}")
        check_dimension(name, f"{stem}{n}", n, dimension)
        bounds, places = box(*interval, n), np.full(n, optimizer)
        base = Base(function, optimum, places, bounds, interval, np.ones(n), options or {})
        return hide(name, f"{stem} function", base, dimension, variation)

    low, high = interval
    return Family(
        form=f"{stem}N_D",
        pattern=names(f"{spelling or stem}<N>(?:_<D>)?"),
        example=example,
        description=f"Minus {summary} on [{low:g}, {high:g}]{' ' * bool(extra)}{extra}, at most {optimum:.6g}",
        build=make,
        optimum=f"{optimum:.6g}",
    )


def names(text: str) -> re.Pattern[str]:
    """A pattern of names, in any case; `<N>` stands for a number that the match calls N."""
    return pattern(re.sub(r"<(\w)>", r"(?P<\1>[0-9]{1,20})", text))


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
    any_size("Levy10_300", levy, (-10.0, 10.0), 1.0, "the Levy function of N variables", options={"cp": 10.0}),
    Family(
        form="Branin2_D",
        pattern=names("Branin2(?:_<D>)?"),
        example="Branin2_500",
        description="Minus the Branin function of 2 variables on [-5, 10] x [0, 15], at most -0.397887",
        build=branin,
        optimum="-0.397887",
    ),
    any_size("Ackley20_300", ackley, (-5.0, 10.0), 0.0, "the Ackley function of N variables"),
    any_size("Rosenbrock10_300", rosenbrock, (-5.0, 10.0), 1.0, "the Rosenbrock function of N variables", smallest=2),
    any_size(
        "Styblinski60_60",
        styblinski_tang,
        (-5.0, 5.0),
        TANG_OPTIMIZER,
        "the mean of Styblinski and Tang's function over N variables",
        optimum=TANG_OPTIMUM,
        spelling="Styblinski(?:Tang)?",
    ),
    any_size("Griewank60_60", griewank, (-600.0, 600.0), 0.0, "the Griewank function of N variables"),
    any_size("Rotated8_300", rotated, (-5.0, 5.0), 0.0, "a quadratic function of N variables", "with axes of its own"),
]
"""One entry for each form of name."""
