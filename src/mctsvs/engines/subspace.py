"""method = selector x solver x fill-in: the engine of nearly every method here."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from mctsvs.common import Array, Indices, State, check_count
from mctsvs.engines import Observation, Proposal
from mctsvs.engines.base import HistoryEngine, latin_hypercube
from mctsvs.fill import FillIn
from mctsvs.select import Selector
from mctsvs.solve import Solver
from mctsvs.solve.subspace import Subspace
from mctsvs.tree import Node


class SubspaceEngine(HistoryEngine):
    """Moves the variables a selector chose by a solver, and fills in the others from good points.

    Points are made a batch at a time and handed out one by one, so a caller who asks for one point or for ten gets
    the same sequence of subsets. A subset gets `samples` points (N_s), or `burst` where a solver needs a longer run
    than the initial design gives a subset, in one batch or in the solver's.
    """

    def __init__(
        self,
        offsets: Indices,
        selector: Selector,
        solver: Solver,
        fill_in: FillIn,
        rng: np.random.Generator,
        *,
        samples: int = 3,
        burst: int | None = None,
        initial_points: int | None = None,
    ) -> None:
        check_count("samples", samples)
        for name, value in (("burst", burst), ("initial_points", initial_points)):
            if value is not None:
                check_count(name, value)
        super().__init__(offsets, rng)
        self.selector, self.solver, self.fill_in = selector, solver, fill_in
        self.samples = samples if burst is None else burst
        self.queue: deque[Proposal] = deque()
        self.design: list[tuple[Indices, int]] = selector.initial(initial_points, rng)
        self.planned = sum(n for _, n in self.design)
        self.current: Indices | None = None  # variables being moved, whose model the solver keeps
        self.left = 0  # points still to be made by moving them

    def propose(self, n: int, pending: Array) -> list[Proposal]:
        proposals: list[Proposal] = []
        while len(proposals) < n:
            if not self.queue:
                waiting = np.concatenate([pending, *(p.x[None] for p in proposals)])
                self.queue.extend(self._batch(waiting))
            proposals.append(self.queue.popleft())
        return proposals

    def _batch(self, waiting: Array) -> list[Proposal]:
        if len(self.history) >= self.planned:  # only points from elsewhere make it so many before the design is out
            self.design = []
        if self.design:
            variables, n = self.design.pop(0)
            return [Proposal(x, variables) for x in latin_hypercube(n, len(self.owner), self.rng)]
        if self.left == 0 or self.current is None:
            self.current, self.left = self.selector.next(self.history, self.owner, self.rng), self.samples
        variables, n = self.current, min(self.left, self.solver.batch or self.left)
        self.left -= n
        moved = self._coordinates(variables)
        subspace = Subspace(self.history, moved, waiting, self.owner)
        values = self.solver.propose(n, subspace, self.rng)
        if len(moved) == len(self.owner):
            points = values
        else:
            points = self.fill_in(len(values), self.history, self.owner, self.rng)
            points[:, moved] = values
        return [Proposal(x, variables, self.selector.iteration) for x in points]

    def absorb(self, batch: Sequence[Observation]) -> None:
        super().absorb(batch)
        for observation in batch:
            if np.isfinite(observation.y):
                self.selector.observe(observation.variables, observation.y)

    @property
    def tree(self) -> Node | None:
        return self.selector.tree

    def state(self) -> State:
        return {
            **super().state(),
            "queue": [(p.x.copy(), p.variables.copy(), p.iteration) for p in self.queue],
            "design": [(variables.copy(), n) for variables, n in self.design],
            "current": None if self.current is None else self.current.copy(),
            "left": self.left,
            "selector": self.selector.state(),
            "solver": self.solver.state(),
        }

    def restore(self, state: State) -> None:
        super().restore(state)
        self.queue = deque(Proposal(*proposal) for proposal in state["queue"])
        self.design = [(variables, n) for variables, n in state["design"]]
        self.current, self.left = state["current"], state["left"]
        self.selector.restore(state["selector"])
        subspace = None
        if self.current is not None:
            waiting = np.empty((0, len(self.owner)))
            subspace = Subspace(self.history, self._coordinates(self.current), waiting, self.owner)
        self.solver.restore(state["solver"], subspace)
