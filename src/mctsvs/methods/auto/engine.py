"""The engine: what a run knows, the questions that can be asked of it, and the phase that chooses among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from mctsvs.gp.standardize import ordinary_range
from mctsvs.methods.auto import constants as const
from mctsvs.methods.auto.box_corners import Mask
from mctsvs.methods.auto.constants import AutoOptions
from mctsvs.methods.auto.evidence import ActiveCount, Evidence, GroupTest, TestKind
from mctsvs.methods.auto.local_quadratic import LocalQuadratic
from mctsvs.methods.auto.phases import ActiveCountTest, Audit, Design, OptimiseFullSpace, OptimiseSubspace, Phase
from mctsvs.methods.auto.portfolio import ModelSelection, Portfolio
from mctsvs.methods.auto.surrogates import Surrogates, of_found
from mctsvs.methods.base import Engine, Observation, Pending, Proposal, around, latin_hypercube
from mctsvs.utils.validation import Array, Indices

if TYPE_CHECKING:
    from mctsvs.gp.model import Predictor


@dataclass
class FirstPoints:
    """The centre and one Latin hypercube for the whole run, then points anywhere.

    Not Sobol points: a few of them in hundreds of dimensions have equal columns, whose variables no model tells apart.
    """

    owner: Indices  # (D,) variable of each coordinate
    seed: int  # of a generator of its own, so that the hypercube need not be saved
    used: int = 0

    @cached_property
    def points(self) -> Array:
        """(n, D) the middle of every range first, with categories as the hypercube has them."""
        rng = np.random.default_rng(self.seed)
        points = latin_hypercube(const.DESIGN_OF_ALL, len(self.owner), rng)
        points[0, np.bincount(self.owner)[self.owner] == 1] = 0.5
        return points

    def next(self, rng: np.random.Generator) -> Array:
        self.used += 1
        return self.points[self.used - 1] if self.used <= const.DESIGN_OF_ALL else rng.random(len(self.owner))


class Auto(Engine):
    """See the package's description."""

    options_type: ClassVar[type[AutoOptions]] = AutoOptions
    explains: ClassVar[bool] = True
    options: AutoOptions
    # fmt: off
    saved = ("budget", "phase", "open", "incumbent", "level", "evidence", "count", "tested", "noisy", "repeats",
             "rivalry", "portfolio", "local", "first_points", "subspace", "surrogates")
    # fmt: on
    budget: int | None = None  # evaluations there will be, where that is known
    phase: Phase
    open: dict[int, GroupTest]  # by proposal id
    incumbent: Array | None = None
    level: float = -np.inf  # the incumbent's value
    evidence: Evidence
    count: ActiveCount
    tested: int = 0  # own probes and tests answered
    noisy: bool | None = None  # whether values differ that should not; None: not known
    repeats: int = 0  # points evaluated again, answered
    rivalry: ModelSelection  # of the models of all variables, under noise
    portfolio: Portfolio  # which arm has the next turn
    local: LocalQuadratic
    first_points: FirstPoints
    subspace: Indices  # the variables found, when they were last looked for
    surrogates: Surrogates

    def __init__(self, offsets: Indices, rng: np.random.Generator, options: AutoOptions) -> None:
        super().__init__(offsets, rng, options)
        n = len(offsets) - 1
        order = rng.permutation(n)
        self.phase, self.open = Design(ActiveCountTest(order)), {}
        self.evidence, self.count = Evidence(n), ActiveCount(n)
        self.first_points = FirstPoints(self.owner, int(rng.integers(2**63)))
        self.subspace, self.surrogates = np.empty(0, dtype=np.intp), Surrogates(self.owner)
        self.rivalry, self.portfolio, self.local = ModelSelection(), Portfolio(), LocalQuadratic()

    def plan(self, budget: int) -> None:
        """It says how many tests are worth their price, and whether an audit still pays."""
        self.budget = budget
        self.count.afford(self._affordable)

    def propose(self, n: int, pending: Pending) -> list[Proposal]:
        proposals: list[Proposal] = []
        for _ in range(n):
            question, self.phase = self.phase.next(self, pending.beside(proposals))
            iteration = 0 if question.kind is TestKind.DESIGN else self.turn + 1
            again = question.kind is TestKind.REPEAT
            proposals.append(self.proposal(question.x, question.variables, iteration, question.kind.value, again=again))
            self.open[proposals[-1].proposal_id] = question
            self.portfolio.most = max(self.portfolio.most, len(self.open))
        return proposals

    def observe(self, batch: Sequence[Observation]) -> None:
        super().observe(batch)
        self._look_for_noise()
        for observation in batch:
            question = self.open.pop(observation.proposal_id, None)
            if question is not None and question.kind is TestKind.REPEAT:  # a failure says nothing of noise
                self.repeats += 1
                self._look_for_noise()
            if question is not None:
                self.phase = self.phase.answer(self, question, observation)
            elif np.isfinite(observation.y):
                self.phase = self.phase.elsewhere(self, observation)
            self._accept(observation)
            self.phase = self.phase.settled(self)

    def _look_for_noise(self) -> None:
        """Noise that is told or seen changes the plan at once.

        There is none where that is told, or where points evaluated again, also by others, had the same values.
        """
        noise = self.noise_seen
        if noise:
            if not self.noisy and not isinstance(self.phase, Design):
                self.phase = OptimiseFullSpace()
            self.noisy = True
        elif self.noisy is None:
            values, repeats = self.history.distinct, max(self.repeats, len(self.history.repeats))
            needed = const.REPEATS if len(np.unique(values)) < len(values) else 1  # values that tie may agree by chance
            if repeats >= needed or (noise is False and len(self.history.noise)):
                self.noisy = False

    def _accept(self, observation: Observation) -> None:
        """The incumbent is the best point."""
        x, y = observation.x, observation.y
        if np.isfinite(y) and (self.incumbent is None or y > self.level):
            self.incumbent, self.level = np.array(x), y

    @property
    def evaluated(self) -> int:
        return len(self.history) + len(self.history.failures)

    @property
    def first(self) -> int:
        """Points of the design."""
        return min(const.DESIGN, 2 * self.dimension)

    @property
    def countable(self) -> bool:
        """Whether all points can be evaluated: then none is twice as long as others are left."""
        return self.region is not None and self.region.size <= max(const.COUNTABLE, self.budget or 0)

    @property
    def fails_mostly(self) -> bool:
        """Whether most points fail: so would tests, which go farther than steps."""
        return len(self.history.failures) > len(self.history)

    @property
    def asked(self) -> int:
        """Points evaluated, and those of ours that wait for their value."""
        return self.evaluated + len(self.open)

    @property
    def left(self) -> float:
        """Evaluations left, as far as known."""
        return np.inf if self.budget is None else self.budget - self.proposed

    @property
    def _affordable(self) -> float:
        return const.AFFORDABLE if self.budget is None else const.TESTABLE * (self.budget - const.DESIGN)

    @property
    def continuous(self) -> Array:
        """(D,) bool: coordinates that are neither a category's nor on a grid."""
        single: Array = np.bincount(self.owner)[self.owner] == 1
        return single if self.region is None else single & np.isinf(self.region.levels)

    @property
    def gives_up(self) -> bool:
        """Whether there were tests enough to have found all that they can find."""
        return self.evidence.tests > const.GIVE_UP * self._affordable

    @property
    def turn(self) -> int:
        """Questions asked so far, beside the design."""
        return self.proposed - self.first_points.used

    def waits_for(self, kind: TestKind) -> bool:
        return self.waiting_for(kind) > 0

    def waiting_for(self, kind: TestKind) -> int:
        """Points of this kind that wait for their value."""
        return sum(question.kind is kind for question in self.open.values())

    @property
    def busy(self) -> Indices:
        """Variables in tests under way."""
        tests = (TestKind.PROBE, TestKind.TEST, TestKind.AUDIT)
        groups = [question.variables for question in self.open.values() if question.kind in tests]
        return np.concatenate([np.empty(0, dtype=np.intp), *groups])

    @property
    def tolerance(self) -> float:
        """Smaller differences are rounding: relative to the range of values, so that units do not matter."""
        top, spread = float(self.history.y.max()), ordinary_range(self.history.y)
        return max(const.SAME * spread, 1e-14 * max(abs(top), abs(top - spread)))

    def differs(self, y: float, level: float) -> bool:
        return abs(y - level) > self.tolerance

    def changes(self, question: GroupTest, observation: Observation) -> bool:
        """Whether the value, or any measured constraint, is another one than at the point that was changed."""
        jump = self.constraint_jump(question, observation)
        return self.differs(observation.y, question.level) if jump is None else jump > const.SAME

    def constraint_jump(self, question: GroupTest, observation: Observation) -> float | None:
        """The largest change of value and constraints against their ranges; None where there are no constraints.

        Merits will not do: that of an infeasible point depends on when it was told.
        """
        history = self.history
        if not history.constrained or observation.constraints is None or observation.objective is None:
            return None
        base = self.incumbent if question.base is None else question.base
        rows = [] if base is None else np.flatnonzero((history.X - base == 0.0).all(axis=1)).tolist()
        if not rows:
            return None
        known = np.column_stack([history.objective, history.constraints])
        now, before = np.append(observation.objective, observation.constraints), known[rows[-1]]
        ranges = np.array(
            [np.ptp(column[~np.isnan(column)]) if not np.isnan(column).all() else 0.0 for column in known.T]
        )
        change = np.abs(now - before) / np.where(ranges > 0.0, ranges, 1.0)
        change[np.isnan(now) & np.isnan(before)] = 0.0
        return float(np.nan_to_num(change, nan=1.0).max())

    def changed_variables(self, x: Array, base: Array, least: float = 1e-9) -> Indices:
        """A rounded integer or a category may be where it was; units converted there and back differ in a last bit."""
        return np.unique(self.owner[np.abs(x - base) > least])

    def design(self, *, near: bool = False) -> GroupTest:
        """A point of the design: spread over the cube, or near the best so far if the centre is better than a few such.

        Grids and categories are spread in any case: a step may not leave their value.
        """
        x = self.first_points.next(self.rng)
        if near and self.first_points.used > const.SPREAD and self._centred:
            base = self.first_points.points[0] if self.incumbent is None else self.incumbent
            x = around(base, x, const.NEAR, self.continuous)
        return GroupTest(TestKind.DESIGN, self.spread(x[None])[0], self.everything, self.level)

    @property
    def _centred(self) -> bool:
        """Whether the best point, as far as known, is none of those spread over the cube."""
        if self.region is not None and self.region.constrained:
            return False  # a corner may not be allowed
        if self.incumbent is None:
            return True
        away = np.abs((self.first_points.points[1:] - self.incumbent)[:, self.continuous])
        return bool((away.max(axis=1, initial=0.0) > const.SAME_POINT).all())

    def repeat(self) -> GroupTest:
        """The best point once more: noise shows in its value. The second time a point of a middling value."""
        order = self.history.best(len(self.history))
        row = order[len(order) // 2 if self.repeats == 1 else 0]
        return GroupTest(TestKind.REPEAT, self.history.X[row].copy(), self.everything, self.level)

    def idle(self, moved: Indices) -> Indices:
        """The other variables, those that matter least first."""
        others = np.setdiff1d(self.everything, moved)
        return others[np.argsort(self.evidence.probability[others], kind="stable")]

    def step(self, waiting: Array, kind: TestKind = TestKind.STEP) -> GroupTest:
        """A step in the found variables, by the model that this kind names."""
        if len(self.subspace) == 0:
            return self.step_in_all(waiting)
        found = self.coordinates_of(self.subspace)
        if kind is TestKind.CLOSE:
            return self.step_close(np.isin(np.arange(len(self.owner)), found), waiting)
        return self.step_in_all(waiting, among=found, kind=kind)

    def step_in_all(self, waiting: Array, among: Indices | None = None, *, kind: TestKind = TestKind.ALL) -> GroupTest:
        """A step of Bayesian optimisation in all variables, or in those coordinates alone.

        Where known constraints leave no room for these, what does not matter gives way to what does.
        """
        model, turn = self.surrogates, self.turn
        model.lattice, model.region = self.lattice, self.region
        model.choose(turn, self.evidence.probability, self.rng, among=among)
        x = model.propose(kind, turn, self.history, waiting, self.rng)
        variables = np.unique(self.owner[model.moved])
        if among is not None and self.incumbent is not None and self.region is not None and self.region.constrained:
            x = self.region.make_room(x, self.incumbent, self.idle(variables))
        return GroupTest(kind, x, variables, self.level)

    @property
    def free(self) -> Mask:
        """(D,) bool: coordinates in which small steps can be taken at the best point."""
        free: Mask = self.continuous.astype(np.bool_)
        if self.region is not None:
            best = self.history.X[self.history.best(1)[0]]
            free = free & self.region.active(best[None])[0][self.owner]
        return free

    def arm(self, arms: list[TestKind]) -> TestKind:
        """Which of these has the next turn."""
        return TestKind[self.portfolio.next([kind.name for kind in arms])]

    @property
    def gains(self) -> Array:
        """(g,) what the best value has gained, each time that it has."""
        steps = np.diff(np.maximum.accumulate(self.history.y))
        return steps[steps > 0.0]

    def step_of(self, kind: TestKind, waiting: Array) -> GroupTest:
        """A step of that arm, in all variables."""
        if kind is TestKind.CLOSE:
            return self.step_close(self.free, waiting)
        return self.step_in_all(waiting, kind=kind)

    def step_close(self, free: Mask, waiting: Array) -> GroupTest:
        """A step of the local arm in these coordinates (D,) bool; all others as at the best point."""
        history = self.history
        loss = -history.objective[:, None]
        Y = np.column_stack([loss, history.constraints]) if history.constrained else loss
        best = int(np.argmax(history.y))
        known = np.asarray(np.isfinite(Y).all(axis=1))  # not where a constraint was not measured
        if not known[best]:
            return self.step_in_all(waiting)
        x = history.X[best].copy()
        X, waits = history.X[np.ix_(known, free)], self.waiting_for(TestKind.CLOSE)
        step = self.local.propose(X, Y[known], int(known[:best].sum()), self.rng, beside=waits)
        x[free] = step.x
        return GroupTest(TestKind.CLOSE, x, np.unique(self.owner[free]), self.level, step=step)

    def surrogate(self) -> Predictor:
        """The model of the found variables, where these are optimised; else one of all variables."""
        if self.found() is None or self.noisy or not len(self.subspace):
            return super().surrogate()
        moved, (X, y, _) = self.coordinates_of(self.subspace), self.told
        predict = of_found(X[:, moved], y)
        return lambda Z: predict(Z[:, moved])

    def found(self) -> Indices | None:
        """Those that tests have found, where they have ended."""
        if not isinstance(self.phase, Audit | OptimiseSubspace):
            return None
        found = self.evidence.found
        return np.asarray(found[np.argsort(-self.evidence.effect[found], kind="stable")])

    def describe(self) -> str:
        return self.phase.describe(self)
