"""What a benchmark problem is, and what a family of problems that share a naming pattern is."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from mctsvs.common import Array, Indices, InputError


@dataclass(frozen=True, eq=False)
class Problem:
    """An objective over D variables, with what is known about it.

    >>> from mctsvs.problems import make
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
    function: Callable[[Array], float]
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

    def __call__(self, x: npt.ArrayLike) -> float:
        """The value at `x`, shape (D,), with noise from the problem's own generator if it is noisy."""
        return self.evaluate(x)

    def evaluate(self, x: npt.ArrayLike, rng: np.random.Generator | None = None) -> float:
        """The value at `x`, shape (D,), with noise from `rng` if the problem is noisy."""
        try:
            point = np.asarray(x, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"{self.name} takes a vector of {self.dimension} numbers, not {x!r:.60}") from None
        if point.shape != (self.dimension,):
            given = f"{point.size} numbers" if point.ndim == 1 else f"an array of shape {point.shape}"
            raise InputError(f"{self.name} takes a vector of {self.dimension} numbers, not {given}")
        value = float(self.function(point))
        if self.noise == 0:
            return value
        return value + self.noise * float((rng or self.generator).standard_normal())


@dataclass(frozen=True)
class Variation:
    """How a problem differs from its plain form; every random choice follows from `seed`."""

    shuffle: bool = False
    shift: bool = False
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

    @property
    def stem(self) -> str:
        """The word the names begin with: `Levy`."""
        return re.split(r"[^A-Za-z]", self.example, maxsplit=1)[0]
