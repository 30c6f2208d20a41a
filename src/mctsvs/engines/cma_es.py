"""CMA-ES, the evolution strategy with covariance matrix adaptation, by the `cma` package (pycma).

    Hansen and Ostermeier, Evolutionary Computation, 2001; the separable form beyond `FULL_LIMIT` coordinates:
    Ros and Hansen, PPSN 2008; restarts with a doubled population: Auger and Hansen, CEC 2005.

Points are drawn one by one from the present normal distribution, and the distribution moves when as many values as
the population has members have come in, whichever points they belong to. Told in order this is the textbook's
generation; told late, a point counts in the generation that is open then (shortened to a plausible step, as in
Hansen, 2011, "Injecting external solutions"); never told, another point takes its place.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from mctsvs.common import Array, Indices, InputError, State
from mctsvs.engines import Observation, Proposal
from mctsvs.engines.base import HistoryEngine

COVARIANCES = ("auto", "full", "diagonal")
FULL_LIMIT = 1000  # coordinates; a full matrix of 100,000 would take 75 GiB
CONVERGED = 1e-9  # standard deviation, in widths of the box, below which a run has nothing left to find
FLAT = 0.75  # share of a generation with one value that makes it flat


@contextmanager
def quiet() -> Iterator[None]:
    """pycma warns when it is imported without a plotting library, and sets filters of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@dataclass(frozen=True)
class Generation:
    """One update of the distribution: all that has to be kept to repeat it."""

    drawn: int  # points drawn before it, since the start
    members: list[int]  # numbers of the points told
    values: list[float]  # theirs; NaN for a failure

    def state(self) -> State:
        return {"drawn": self.drawn, "members": list(self.members), "values": list(self.values)}


class Strategy:
    """pycma's object with a generator of its own, from a seed and a list of updates: the same ones, the same points.

    pycma offers no way to save it but pickle. Repeating its updates takes milliseconds each, is exact, and needs
    only the values told. Its `stop` is not used: it reads a file of signals, and compares values with constants.
    """

    def __init__(self, dimension: int, seed: int, population: int, sigma: float, diagonal: bool) -> None:
        self.dimension, self.sigma, self.diagonal = dimension, sigma, diagonal
        self.population = population
        self.rng = np.random.default_rng(seed)
        self.drawn = 0
        self.run = 0  # restarts so far
        self.points: dict[int, tuple[int, int, Array]] = {}  # number -> run, generation, point not yet used
        self.waiting: list[int] = []  # those without a value
        self._start(np.full(dimension, 0.5))

    def _start(self, centre: Array) -> None:
        with quiet():
            cma: Any = import_module("cma")  # it has no types

            options = {
                "bounds": [0.0, 1.0],  # by a smooth transformation of the coordinates near the bounds
                "popsize": self.population,
                "CMA_diagonal": self.diagonal,
                # pycma's choice beyond 300 coordinates needs two particular points first in every generation,
                # which nobody can promise when values come in any order
                "AdaptSigma": cma.sigma_adaptation.CMAAdaptSigmaCSA,
                "randn": lambda *shape: self.rng.standard_normal(shape),
                "seed": np.nan,  # leaves numpy's module-level generator alone
                "verbose": -9,
            }
            self.inner: Any = cma.CMAEvolutionStrategy(centre, self.sigma, options)
        self.generation, self.flat = 0, 0

    def draw(self) -> Array:
        with quiet():
            (x,) = self.inner.ask(1)
        self.points[self.drawn] = (self.run, self.generation, x)
        self.waiting.append(self.drawn)
        self.drawn += 1
        point: Array = np.clip(x, 0.0, 1.0)
        return point

    def claim(self, x: Array) -> int | None:
        """Number of the point drawn that became x; None if it was drawn before a restart, or never.

        Integers and categories move a point before it is evaluated, so the nearest one waiting is taken.
        """
        if not self.waiting:
            return None
        number = min(self.waiting, key=lambda i: float(((self.points[i][2] - x) ** 2).sum()))
        self.waiting.remove(number)
        if self.points[number][0] != self.run:
            del self.points[number]
            return None
        return number

    def update(self, members: Sequence[int], values: Sequence[float]) -> None:
        """Move the distribution; a failure counts as the worst value of its generation."""
        drawn = [self.points.pop(number) for number in members]
        loss = -np.array(values)  # pycma minimises
        if np.isnan(loss).all():
            return  # nothing to be learned: draw again
        loss[np.isnan(loss)] = np.nanmax(loss)
        late = [k for k, (_, generation, _) in enumerate(drawn) if generation != self.generation]
        with quiet():
            self.inner.tell([x for _, _, x in drawn], loss.tolist(), check_points=late)
        self.generation += 1
        ordered = np.sort(loss)
        self.flat = self.flat + 1 if ordered[0] == ordered[int(FLAT * len(ordered))] else 0
        if float(np.max(self.inner.stds)) < CONVERGED or self.flat > 1:
            self.run += 1
            self.population *= 2
            self._start(self.rng.random(self.dimension))


class CMAES(HistoryEngine):
    """Evolution of a normal distribution over all variables.

    population  values that make a generation (the paper's 20); doubled at each restart, which follows convergence
    sigma       first standard deviation in widths of the box; the search starts at the centre. Of 0.05, 0.1, 0.2 and
                0.3 the default was best or second best on shifted Hartmann and Levy functions at 200 and 600
                evaluations. pycma keeps it at most a third, so the paper's 0.8 (Hartmann, width 1) and 10 (Levy,
                width 20) both mean that third here.
    covariance  full: learns how variables go together, D^2 numbers; diagonal: one step size per variable, D numbers;
                auto (default): full up to 1,000 coordinates, diagonal beyond
    """

    options: ClassVar[tuple[str, ...]] = ("population", "sigma", "covariance")

    def __init__(
        self,
        offsets: Indices,
        rng: np.random.Generator,
        *,
        population: int = 20,
        sigma: float = 0.1,
        covariance: str = "auto",
    ) -> None:
        if population < 4:
            raise InputError(f"population={population} is too small: it must be at least 4")
        if not 0.0 < sigma <= 1.0:
            raise InputError(f"sigma={sigma} is no step size for a box of width 1: it must be above 0 and at most 1")
        if covariance not in COVARIANCES:
            raise InputError(f"unknown covariance {covariance!r}: use one of {', '.join(COVARIANCES)}")
        super().__init__(offsets, rng)
        self.population, self.sigma = population, float(sigma)
        self.diagonal = covariance == "diagonal" or (covariance == "auto" and self.dimension > FULL_LIMIT)
        if self.dimension == 1:
            self.diagonal = True  # a full matrix of one number has no axes to learn
        self.seed = int(rng.integers(2**63))
        self.past: list[Generation] = []
        self.members: list[int] = []  # of the open generation
        self.values: list[float] = []
        self._strategy: Strategy | None = None

    @property
    def strategy(self) -> Strategy:
        if self._strategy is None:
            self._strategy = Strategy(self.dimension, self.seed, self.population, self.sigma, self.diagonal)
        return self._strategy

    def propose(self, n: int, pending: Array) -> list[Proposal]:
        iteration = self.strategy.generation + 1
        return [Proposal(self.strategy.draw(), self.everything, iteration) for _ in range(n)]

    def absorb(self, batch: Sequence[Observation]) -> None:
        super().absorb(batch)
        for observation in batch:
            number = self.strategy.claim(observation.x) if observation.proposed else None
            if number is None:
                continue
            self.members.append(number)
            self.values.append(float(observation.y))
            if len(self.members) == self.strategy.population:
                self.past.append(Generation(self.strategy.drawn, self.members, self.values))
                self.strategy.update(self.members, self.values)
                self.members, self.values = [], []

    def state(self) -> State:
        return {
            **super().state(),
            "seed": self.seed,
            "drawn": self.strategy.drawn,
            "waiting": list(self.strategy.waiting),
            "past": [generation.state() for generation in self.past],
            "members": list(self.members),
            "values": list(self.values),
        }

    def restore(self, state: State) -> None:
        super().restore(state)
        self.seed = state["seed"]
        self.past = [Generation(**generation) for generation in state["past"]]
        self.members, self.values = list(state["members"]), list(state["values"])
        self._strategy = None
        for generation in self.past:
            self._draw_until(generation.drawn)
            self.strategy.update(generation.members, generation.values)
        self._draw_until(state["drawn"])
        strategy = self.strategy
        strategy.waiting = list(state["waiting"])
        strategy.points = {number: strategy.points[number] for number in (*strategy.waiting, *self.members)}

    def _draw_until(self, drawn: int) -> None:
        while self.strategy.drawn < drawn:
            self.strategy.draw()
