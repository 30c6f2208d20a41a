"""What a benchmark problem is, and what a family of problems that share a naming pattern is."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from mctsvs.optimizer.trial import split
from mctsvs.utils.validation import Array, Indices, InputError, as_number


@dataclass(frozen=True, eq=False)
class Problem:
    """An objective over D variables, with what is known about it.

    >>> from mctsvs.bench.problems import make
    >>> problem = make("Rosenbrock10_300")
    >>> problem(problem.optimizer) == problem.optimum == 0
    True

    `function` is the true, noise-free objective in natural units. Calling the problem adds Gaussian noise of
    standard deviation `noise` where that is not zero, drawn from `generator`, so that evaluating one point
    twice gives two values. A copy sent to another process repeats the stream of the original: to evaluate in
    parallel, give each evaluation its own generator with `evaluate(x, rng)`.
    """

    name: str
    description: str
    """One line."""
    bounds: Array
    """Shape (D, 2): lowest and highest value of each variable."""
    function: Callable[[Array], Any]
    direction: Literal["maximize", "minimize"] = "maximize"
    optimum: float | None = None
    """The best known noise-free value."""
    optimizer: Array | None = None
    """A point, shape (D,), where the optimum is attained."""
    active: Indices | None = None
    """Sorted positions of the variables that matter; None: unknown."""
    weights: Array | None = None
    """How much each variable in `active` matters, in the same order; None: equally, or unknown."""
    noise: float = 0.0
    paper_options: Mapping[str, Any] = field(default_factory=dict)
    """Hyper-parameters that the paper sets for this family."""
    where: tuple[str, ...] = ()
    """What every point satisfies: `constraints` of `mctsvs.Optimizer`."""
    generator: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0), repr=False)
    """Source of the noise where the caller gives none."""

    @property
    def dimension(self) -> int:
        """The number of variables, D."""
        return len(self.bounds)

    @property
    def space(self) -> Any:
        """What `mctsvs.Space.of` accepts: the bounds, unless a subclass has another kind of variables."""
        return self.bounds

    def __call__(self, x: npt.ArrayLike) -> Any:
        """The value at `x`, shape (D,), with noise from the problem's own generator if it is noisy; see `evaluate`."""
        return self.evaluate(x)

    def evaluate(self, x: npt.ArrayLike, rng: np.random.Generator | None = None) -> Any:
        """The value at `x`, shape (D,), with noise from `rng` if the problem is noisy.

        A problem with measured constraints gives a value, None where it is missing, and a dict of them.
        """
        result = self.function(self._point(x))
        value, constraints = split(result)
        number = as_number(value)
        if number is None or math.isnan(number):
            return result  # whoever evaluates it says what is wrong
        value = number
        if self.noise > 0:
            value += self.noise * float((rng or self.generator).standard_normal())
        return value if constraints is None else (value, constraints)

    def cost(self, x: npt.ArrayLike) -> float | None:
        """Seconds that the evaluation at `x`, shape (D,), would take where it is not looked up; None: unknown."""
        seconds = getattr(self.function, "seconds", None)
        return None if seconds is None else seconds(self._point(x))

    def _point(self, x: npt.ArrayLike) -> Array:
        try:
            point = np.asarray(x, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"{self.name} takes a vector of {self.dimension} numbers, not {x!r:.60}") from None
        if point.shape != (self.dimension,):
            given = f"{point.size} numbers" if point.ndim == 1 else f"an array of shape {point.shape}"
            raise InputError(f"{self.name} takes a vector of {self.dimension} numbers, not {given}")
        return point


@dataclass(frozen=True)
class Variation:
    """How a problem differs from its plain form; every random choice follows from `seed`."""

    shuffle: bool = False
    shift: bool | float = False  # anywhere in the middle of the box, or by up to this share of it
    noise: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.noise) and self.noise >= 0):
            raise InputError(f"noise is a standard deviation, zero or larger, not {self.noise!r}")
        if self.seed < 0:
            raise InputError(f"seed is a whole number, zero or larger, not {self.seed!r}")

    def generators(self) -> list[np.random.Generator]:
        """For shuffling, shifting and noise: apart, so that switching one on leaves the others alone."""
        return [np.random.default_rng(s) for s in np.random.SeedSequence(self.seed).spawn(3)]

    def only_noise(self, name: str) -> np.random.Generator:
        """The source of noise of a problem that has no variables to hide and no optimum to move."""
        for option in ("shuffle", "shift"):
            if getattr(self, option):
                raise InputError(f"{name} cannot be varied by {option}: only noise can be added to it")
        return self.generators()[2]

    def words(self) -> str:
        """What to add to a description, with a leading comma; empty for the plain form."""
        noise = f"noise of sd {self.noise:g}" if self.noise else ""
        parts = ["shuffled" if self.shuffle else "", "shifted" if self.shift else "", noise]
        return "".join(f", {part}" for part in parts if part)


@dataclass(frozen=True)
class Family:
    """Problems whose names match one pattern."""

    form: str
    """The name with letters for the numbers: `LevyN_D`."""
    pattern: re.Pattern[str]
    """Matches every name of the family in full, ignoring case."""
    example: str
    description: str
    """One line."""
    build: Callable[[re.Match[str], Variation], Problem]
    """The problem whose name matched; raises `InputError` where its numbers cannot be."""
    dimension: str = "D"
    """The number of variables, or the letter that stands for it in `form`."""
    kind: str = "function"
    """What an evaluation is: `function`, `table`, `simulator`, `training`."""
    optimum: str = "-"
    """The best value, in words for a list; `-`: unknown."""
    noisy: bool = False
    """Whether evaluating twice gives two values even where no noise is added."""
    extra: str | None = None
    """Of the package, as in pip install 'mctsvs[extra]'."""
    data: str | None = None
    """The data set it needs (see `mctsvs.bench.problems.data`)."""

    @property
    def stem(self) -> str:
        """The word the names begin with: `Levy`."""
        return re.split(r"[^A-Za-z]", self.example, maxsplit=1)[0]
