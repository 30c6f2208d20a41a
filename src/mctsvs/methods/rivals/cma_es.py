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

from mctsvs.methods.base import Engine, Observation, Pending, Proposal
from mctsvs.utils.options import Options, option
from mctsvs.utils.validation import Array, Indices, State

COVARIANCES = ("auto", "full", "diagonal")
STARTS = ("centre", "random")
TOWARDS = ("better", "worse")
FULL_LIMIT = 1000  # coordinates; a full matrix of 100,000 would take 75 GiB
CONVERGED = 1e-9  # standard deviation, in widths of the box, below which a run has nothing left to find
FLAT = 0.75  # share of a generation with one value that makes it flat


@dataclass(frozen=True)
class EvolutionOptions(Options):
    """population  values that make a generation (the paper's 20); doubled at each restart, which follows convergence
    sigma       first standard deviation in widths of the box; pycma keeps it at most a
                third, so the paper's 0.8 (Hartmann, width 1) and 10 (Levy, width 20) both mean that third here.
    start       centre of the box, or a random point, as in the MCTS-VS paper's experiments
    towards     better values; or worse ones, what a minimiser does that is told the value to be maximised: only to see
                what that gives (docs/results/notes.md)
    covariance  full: learns how variables go together, D^2 numbers; diagonal: one step size per variable, D numbers;
                auto: full up to 1,000 coordinates, diagonal beyond
    """

    population: int = option(20, least=4)
    sigma: float = option(0.1, above=0, most=1)
    start: str = option("centre", among=STARTS)
    towards: str = option("better", among=TOWARDS)
    covariance: str = option("auto", among=COVARIANCES)

    def diagonal(self, dimension: int) -> bool:
        # a full matrix of one number has no axes to learn
        return self.covariance == "diagonal" or (self.covariance == "auto" and dimension > FULL_LIMIT) or dimension == 1


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


class Strategy:
    """pycma's object with a generator of its own, from a seed and a list of updates: the same ones, the same points.

    pycma offers no way to save it but pickle. Repeating its updates takes milliseconds each, is exact, and needs
    only the values told. Its `stop` is not used: it reads a file of signals, and compares values with constants.
    """

    def __init__(self, dimension: int, seed: int, options: EvolutionOptions) -> None:
        self.dimension, self.options = dimension, options
        self.population = options.population
        self.rng = np.random.default_rng(seed)
        self.drawn = 0
        self.run = 0  # restarts so far
        self._start(self.rng.random(dimension) if options.start == "random" else np.full(dimension, 0.5))

    def _start(self, centre: Array) -> None:
        with quiet():
            cma: Any = import_module("cma")  # it has no types

            options = {
                "bounds": [0.0, 1.0],  # by a smooth transformation of the coordinates near the bounds
                "popsize": self.population,
                "CMA_diagonal": self.options.diagonal(self.dimension),
                # pycma's choice beyond 300 coordinates needs two particular points first in every generation,
                # which nobody can promise when values come in any order
                "AdaptSigma": cma.sigma_adaptation.CMAAdaptSigmaCSA,
                "randn": lambda *shape: self.rng.standard_normal(shape),
                "seed": np.nan,  # leaves numpy's module-level generator alone
                "verbose": -9,
            }
            self.inner: Any = cma.CMAEvolutionStrategy(centre, self.options.sigma, options)
        self.generation, self.flat = 0, 0
        self.asked = False  # since the last update
        self.points: dict[int, tuple[int, Array]] = {}  # number -> generation, point of this run not yet used

    def draw(self) -> Array:
        x = self._ask()
        self.points[self.drawn] = (self.generation, x)
        self.drawn += 1
        point: Array = np.clip(x, 0.0, 1.0)
        return point

    def draw_until(self, drawn: int) -> None:
        while self.drawn < drawn:
            self.draw()

    def _ask(self) -> Array:
        with quiet():
            (x,) = self.inner.ask(1)
        self.asked = True
        point: Array = x
        return point

    def update(self, generation: Generation) -> None:
        """Move the distribution; a failure counts as the worst value of its generation."""
        drawn = [self.points.pop(number) for number in generation.members]
        loss = np.array(generation.values) * (1.0 if self.options.towards == "worse" else -1.0)  # pycma minimises
        if np.isnan(loss).all():
            return  # nothing to be learned: draw again
        loss[np.isnan(loss)] = np.nanmax(loss)
        late = [k for k, (born, _) in enumerate(drawn) if born != self.generation]
        if not self.asked:  # pycma wants a question between two updates; large batches fill generations without one
            self._ask()
        with quiet():
            self.inner.tell([x for _, x in drawn], loss.tolist(), check_points=late)
        self.generation, self.asked = self.generation + 1, False
        ordered = np.sort(loss)
        self.flat = self.flat + 1 if ordered[0] == ordered[int(FLAT * len(ordered))] else 0
        if float(np.max(self.inner.stds)) < CONVERGED or self.flat > 1:
            self.run += 1
            self.population *= 2
            self._start(self.rng.random(self.dimension))


class CMAES(Engine):
    """Evolution of a normal distribution over all variables. A proposal's number is the number of its draw."""

    options_type: ClassVar[type[EvolutionOptions]] = EvolutionOptions
    options: EvolutionOptions
    saved = ("seed", "past", "members", "values")
    seed: int
    past: list[Generation]
    members: list[int]  # of the open generation
    values: list[float]

    def __init__(self, offsets: Indices, rng: np.random.Generator, options: EvolutionOptions) -> None:
        super().__init__(offsets, rng, options)
        self.seed = int(rng.integers(2**63))
        self.past, self.members, self.values = [], [], []
        self._strategy: Strategy | None = None

    @property
    def strategy(self) -> Strategy:
        """Made when first needed, from all that happened so far."""
        if self._strategy is None:
            self._strategy = strategy = Strategy(self.dimension, self.seed, self.options)
            for generation in self.past:
                strategy.draw_until(generation.drawn)
                strategy.update(generation)
            strategy.draw_until(self.proposed)
        return self._strategy

    def propose(self, n: int, pending: Pending) -> list[Proposal]:
        strategy = self.strategy
        return [self.proposal(strategy.draw(), self.everything, strategy.generation + 1) for _ in range(n)]

    def observe(self, batch: Sequence[Observation]) -> None:
        super().observe(batch)
        for observation in batch:
            if observation.proposal_id not in self.strategy.points:
                continue  # drawn before a restart, or never
            self.members.append(observation.proposal_id)
            self.values.append(float(observation.y))
            if len(self.members) == self.strategy.population:
                self.past.append(Generation(self.proposed, self.members, self.values))
                self.strategy.update(self.past[-1])
                self.members, self.values = [], []

    def restore(self, state: State) -> None:
        """The strategy is made again from the rest."""
        super().restore(state)
        self._strategy = None
