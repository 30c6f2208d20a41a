"""method = selector x solver x fill-in: the engine of nearly every method here, and the fill-ins (line 17)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from mctsvs.methods.base import Engine, Observation, Pending, Proposal, around, latin_hypercube
from mctsvs.methods.history import History
from mctsvs.methods.mcts_vs.tree import Node
from mctsvs.methods.selectors import Selector
from mctsvs.methods.solvers import Solver, Subspace
from mctsvs.utils.options import Options, option
from mctsvs.utils.validation import Array, Indices, check_choice, check_count


class FillIn(Protocol):
    """Complete points; the caller overwrites the coordinates it moves."""

    def __call__(self, n: int, history: History, owner: Indices, rng: np.random.Generator) -> Array:
        """(n, D) points; `owner` maps each coordinate to its variable."""
        ...


class BestK:
    """Each variable takes its value from one of the k best points, drawn for each variable anew (the paper's)."""

    def __init__(self, k: int = 20) -> None:
        self.k = k

    def __call__(self, n: int, history: History, owner: Indices, rng: np.random.Generator) -> Array:
        if len(history) == 0:
            return rng.random((n, len(owner)))
        rows = history.best(self.k)
        n_variables = int(owner[-1]) + 1
        donors = rows[rng.integers(0, len(rows), (n, n_variables))]
        filled: Array = history.X[donors[:, owner], np.arange(len(owner))]
        return filled


class AverageBestK:
    """Each coordinate takes its mean over the k best points."""

    def __init__(self, k: int = 20) -> None:
        self.k = k

    def __call__(self, n: int, history: History, owner: Indices, rng: np.random.Generator) -> Array:
        if len(history) == 0:
            return rng.random((n, len(owner)))
        return np.tile(history.X[history.best(self.k)].mean(axis=0), (n, 1))


class RandomFill:
    """Each coordinate is drawn uniformly: no memory, the paper's weakest choice."""

    def __call__(self, n: int, history: History, owner: Indices, rng: np.random.Generator) -> Array:
        return rng.random((n, len(owner)))


FILL_INS: dict[str, Callable[[int], FillIn]] = {
    "best-k": BestK,
    "average-best-k": AverageBestK,
    "random": lambda k: RandomFill(),
}


def make(name: str, k: int = 20) -> FillIn:
    """The fill-in of that name: best-k, average-best-k or random."""
    return FILL_INS[check_choice("fill-in", name, FILL_INS)](check_count("k", k))


@dataclass(frozen=True)
class SubspaceOptions(Options):
    """samples         N_s: points a subset gets
    burst           points it gets in place of `samples`, where a solver needs a longer run than the design gives it
    initial_points  of the initial design; default: the selector's usual number
    centre          its first point is the centre of the cube, with categories at random
    reach           how far from the centre its other points are in every coordinate; 0: a Latin hypercube
    fill_in, k      how the other variables get their values: see `mctsvs.methods.composite`
    """

    samples: int = option(3, least=1)
    burst: int | None = option(None, least=1)
    initial_points: int | None = option(None, least=1)
    centre: bool = False
    reach: float = option(0.0, least=0.0, most=0.45)
    fill_in: str = option("best-k", among=FILL_INS)
    k: int = option(20, least=1)


class SubspaceEngine(Engine):
    """Moves the variables a selector chose by a solver, and fills in the others from good points.

    Points are made a batch at a time and handed out one by one, so a caller who asks for one point or for ten gets
    the same sequence of subsets; a subset's points come in one batch or in the solver's.
    """

    options_type: ClassVar[type[SubspaceOptions]] = SubspaceOptions
    options: SubspaceOptions
    saved = ("queue", "design", "current", "left", "selector", "solver")
    queue: deque[Proposal]
    design: list[tuple[Indices, int]]
    current: Indices | None  # variables being moved, whose model the solver keeps
    left: int  # points still to be made by moving them
    selector: Selector
    solver: Solver

    def __init__(
        self,
        offsets: Indices,
        rng: np.random.Generator,
        options: SubspaceOptions,
        *,
        selector: Selector,
        solver: Solver,
    ) -> None:
        super().__init__(offsets, rng, options)
        self.selector, self.solver = selector, solver
        self.fill_in: FillIn = make(options.fill_in, options.k)
        self.design = selector.initial(options.initial_points, rng)
        self.planned = sum(n for _, n in self.design)
        self.queue, self.current, self.left = deque(), None, 0

    def propose(self, n: int, pending: Pending) -> list[Proposal]:
        proposals: list[Proposal] = []
        while len(proposals) < n:
            if not self.queue:
                self.queue.extend(self._batch(pending.beside(proposals)))
            proposals.append(self.queue.popleft())
        return proposals

    def _batch(self, waiting: Array) -> list[Proposal]:
        if len(self.history) >= self.planned:  # only points from elsewhere make it so many before the design is out
            self.design = []
        if self.design:
            variables, n = self.design.pop(0)
            return [self.proposal(x, variables, purpose="first points") for x in self.spread(self._design(n))]
        if self.left == 0 or self.current is None:
            self.current = self.selector.next(self.history, self.owner, self.rng)
            self.left = self.options.burst or self.options.samples
        variables, n = self.current, min(self.left, self.solver.batch or self.left)
        self.left -= n
        moved = self.coordinates_of(variables)
        more: dict[str, Any] = {"next_proposal_id": self.proposed, "whole": self.lattice, "region": self.region}
        subspace = Subspace(self.history, moved, waiting, self.owner, **more)
        points = values = self.solver.propose(n, subspace, self.rng)
        if len(moved) < self.dimension:
            points = self.fill_in(len(values), self.history, self.owner, self.rng)
            points[:, moved] = values
        purpose = f"step in {'all' if len(variables) == len(self.everything) else 'chosen'} variables"
        return [self.proposal(x, variables, self.selector.iteration, purpose) for x in points]

    def _design(self, n: int) -> Array:
        first = self.options.centre and self.proposed == 0
        middle, single = np.full(self.dimension, 0.5), np.bincount(self.owner)[self.owner] == 1
        if first:
            middle[~single] = self.rng.random(self.dimension)[~single]
        points = latin_hypercube(n - first, self.dimension, self.rng)
        if self.options.reach > 0.0:
            points = around(middle, points, self.options.reach, single)
        return np.concatenate([middle[None], points]) if first else points

    def observe(self, batch: Sequence[Observation]) -> None:
        super().observe(batch)
        for observation in batch:
            if np.isfinite(observation.y):
                self.selector.observe(observation.variables, observation.y)

    def describe(self) -> str:
        everything = len(self.everything)
        if self.design or self.current is None:
            return "first points"
        if len(self.current) == everything:
            return f"optimising all variables: {everything}"
        return f"choosing variables: iteration {self.selector.iteration} moves {len(self.current)} of {everything}"

    @property
    def tree(self) -> Node | None:
        return self.selector.tree
