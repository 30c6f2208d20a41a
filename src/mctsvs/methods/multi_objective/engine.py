"""The engine: first points, tests of variables, then steps by the models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mctsvs.gp.pareto import knee
from mctsvs.methods.base import Observation, Pending, Proposal, latin_hypercube
from mctsvs.methods.history import rounding
from mctsvs.methods.initial_design import InitialDesignEngine
from mctsvs.methods.multi_objective.group_tests import FEWEST, GroupTests, Question
from mctsvs.methods.multi_objective.surrogates import Surrogates, Where
from mctsvs.methods.multi_objective.units import front_rows
from mctsvs.utils.options import Options
from mctsvs.utils.validation import Array, Indices

DESIGN = 16  # first points, and not more than two for each coordinate
TESTABLE = 0.5  # of the budget: so many tests at most


@dataclass(frozen=True)
class MultiObjectiveOptions(Options):
    """tests   find the variables that change any objective; without, all of them are modelled from the start"""

    advertised: ClassVar[bool] = False

    tests: bool = True


class MultiObjective(InitialDesignEngine):
    """See the package's description."""

    options_type: ClassVar[type[MultiObjectiveOptions]] = MultiObjectiveOptions
    several_objectives: ClassVar[bool] = True
    options: MultiObjectiveOptions
    saved = ("budget", "tests", "open", "surrogates")
    budget: int | None = None
    tests: GroupTests | None = None
    open: dict[int, Question]  # by proposal id
    surrogates: Surrogates
    reference: Array | None = None  # (M,) what the front is to be better than

    def __init__(self, offsets: Indices, rng: np.random.Generator, options: MultiObjectiveOptions) -> None:
        super().__init__(offsets, rng, options)
        design = latin_hypercube(min(DESIGN, max(4, 2 * self.dimension)), self.dimension, rng)
        single = np.bincount(self.owner)[self.owner] == 1
        design[0, single] = 0.5
        self.begin(design)
        self.open, self.surrogates = {}, Surrogates()

    def plan(self, budget: int) -> None:
        """It says how many tests are worth their price."""
        self.budget = budget

    def aim(self, reference: Array) -> None:
        self.reference = reference

    def propose(self, n: int, pending: Pending) -> list[Proposal]:
        proposals: list[Proposal] = []
        for _ in range(n):
            proposals.append(self._next(pending.beside(proposals)))
        return proposals

    def _next(self, waiting: Array) -> Proposal:
        first = self.from_design(1)
        told = np.isfinite(self.history.objectives).all(axis=1).sum() if len(self.history) else 0
        if not len(first) and told < 2:  # a batch wants more points than the design has
            first = self.rng.random((1, self.dimension))
        if len(first):
            return self.proposal(self.spread(first)[0], self.everything, purpose="first points")
        question = self._question()
        if question is not None:
            x = self._changed(question.variables)
            proposal = self.proposal(x, question.variables, self.proposed, "testing groups")
            self.open[proposal.proposal_id] = question
            return proposal
        variables = self.everything
        if self.tests is not None and self.tests.ended:
            variables = self.tests.kept(len(variables))
        coordinates = self.coordinates_of(variables)
        where = Where(coordinates, self._base(), waiting, self.lattice, self.region, self.reference)
        x = self.surrogates.propose(self.history, where, self.rng)
        return self.proposal(x, variables, self.proposed, "step")

    def _base(self) -> Array:
        """(D,) where variables that do not act stay as they are: the point that tests change, else the knee."""
        return np.array(self.history.X[self._knee if self.tests is None else self.tests.row])

    @property
    def _knee(self) -> int:
        """Row of the knee of the front so far."""
        history = self.history
        rows = np.flatnonzero(np.isfinite(history.objectives).all(axis=1))
        Y, C = history.objectives[rows], history.constraints
        front = front_rows(Y, C[rows] if len(C) else np.empty((len(rows), 0)))
        return int(rows[front[knee(Y[front])]])

    def _question(self) -> Question | None:
        """A test that is worth its price now."""
        if self.tests is None:
            if not self._testable:
                return None
            self.tests = GroupTests.begin(self.rng.permutation(len(self.everything)), self._knee)
        noisy = self.noise_seen  # then every test says that something acts
        if noisy or (self.budget is not None and self.tests.asked >= TESTABLE * self.budget):
            self.tests.stop()
        self.tests.dense |= bool(noisy)
        return self.tests.next()

    @property
    def _testable(self) -> bool:
        """Whether single groups of variables can be changed, and there are so many that it pays."""
        free = self.region is None or not self.region.constrained
        unconditional = self.lattice is None or self.lattice.settle is None
        enough = len(self.history) >= self.enough // 2
        return self.options.tests and len(self.everything) >= FEWEST and free and unconditional and enough

    def _changed(self, variables: Indices) -> Array:
        """The point of the tests with other values of these variables."""
        base, coordinates = self._base(), self.coordinates_of(variables)
        x = base.copy()
        x[coordinates] = (x[coordinates] + self.rng.uniform(0.2, 0.8, len(coordinates))) % 1.0
        if self.lattice is not None:  # another value of each, and none of those that are not asked about
            x = np.where(np.isin(np.arange(len(x)), coordinates), self.lattice.changed(x, base, self.rng), base)
        return x

    def observe(self, batch: Sequence[Observation]) -> None:
        super().observe(batch)
        for observation in batch:
            question = self.open.pop(observation.proposal_id, None)
            if question is not None and self.tests is not None:
                self.tests.answer(question, acts=self._changes(observation, self.tests.row))

    def _changes(self, observation: Observation, row: int) -> bool:
        """Whether any objective or measured constraint is another one than at the point that was changed.

        A failure is a change too.
        """
        outputs = self.history.outputs
        if not np.isfinite(observation.y) or observation.objectives is None:
            return True
        now = observation.objectives
        if self.history.constrained:
            constraints = self.history.constraints[0] * np.nan
            now = np.append(now, constraints if observation.constraints is None else observation.constraints)
        same = (np.abs(now - outputs[row]) <= rounding(outputs)) | (np.isnan(now) & np.isnan(outputs[row]))
        return not same.all()

    def describe(self) -> str:
        if len(self.design):
            return "first points"
        tests = self.tests
        if tests is None or tests.dense:
            return f"optimising all variables: {len(self.everything)}"
        found, rejected = len(tests.active), len(tests.rejected)
        if tests.ended:
            return f"optimising found variables: {len(tests.kept(len(self.everything)))}"
        return f"testing groups: {found} found, {rejected} rejected, {len(self.everything) - found - rejected} open"

    def found(self) -> Indices | None:
        """Those that tests have found, where they have ended."""
        tests = self.tests
        return np.array(tests.active, dtype=np.intp) if tests is not None and tests.ended and not tests.dense else None
