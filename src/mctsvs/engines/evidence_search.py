"""The default method: find the variables that matter by tests that are steps, then optimise those alone.

A run goes through phases, each of which can only lead to a later one:

    design      a few points spread over the cube; the best of them becomes the incumbent
    replicate   the incumbent once more: a different value means noise, and then all variables are modelled
    probe       fresh random groups of variables are changed: how many variables matter?
    tests       few enough: groups are tested until every variable is found or rejected (`Evidence`); one point in
                seven is a step of Bayesian optimisation, in the variables not rejected yet or in those found
    audit       all rejected variables at once, three times: if they act after all, all variables are modelled
    found       Bayesian optimisation of the found variables (`FoundVariables`), with fresh epochs out of local optima
    full        Bayesian optimisation of all variables (`AllVariables`)

Every test is also a step: the changed point becomes the incumbent if it is better. All evaluations are shared, so
that a change of phase loses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import ClassVar

import numpy as np

from mctsvs.common import Array, Indices, State, check_count
from mctsvs.engines import Observation, Proposal
from mctsvs.engines.base import HistoryEngine, latin_hypercube
from mctsvs.engines.parts import Parts
from mctsvs.gp.categories import blocks_of, other_category
from mctsvs.gp.search import quasi_random
from mctsvs.select.evidence import Evidence
from mctsvs.select.sparsity import AFFORDABLE, ActiveCount
from mctsvs.solve.all_variables import WIDEST_MODEL, AllVariables
from mctsvs.solve.found import PATIENCE, FoundVariables, stalled
from mctsvs.tree import Node

DESIGN, FULL_DESIGN = 10, 20  # points before the first decision, and before the model of all variables
SETTLED = 0.05  # expected number of active variables left at which testing ends
TEST_SHARE = 0.85  # of the evaluations while testing; the others are steps
TESTABLE = 0.6  # of a known budget, after the design, may go into tests
GIVE_UP = 1.6  # times the tests worth spending, without an end
FEWEST = 4  # variables that tests must be able to find to be begun at all
LAST = 15  # evaluations left at which nothing is audited any more
AUDITS = 3
SAME = 1e-9  # values closer than this share of their range are equal
HOPELESS = -9.2  # log EI (of standardised values) below which nothing more is expected from this epoch
COUNTERS = ("asked", "designed", "probed", "tested", "steps", "audits", "epoch", "spent")


@dataclass(frozen=True)
class Question:
    """What a proposal asks; answered when its value is told."""

    kind: str
    level: float = 0.0  # the incumbent's value at the time
    base: Array | None = None  # the incumbent, where the value is to be compared with its own
    group: Indices | None = None  # the variables that were changed


class EvidenceSearch(HistoryEngine):
    """See the module's description.

    budget   evaluations there will be, where that is known: it says how many tests are worth their price, and whether
             an audit or a fresh start still pays. Going on beyond it is fine.
    The others are the parts of the method.
    """

    options: ClassVar[tuple[str, ...]] = ("budget", *(field.name for field in fields(Parts)))

    def __init__(
        self, offsets: Indices, rng: np.random.Generator, *, budget: int | None = None, **options: bool
    ) -> None:
        super().__init__(offsets, rng)
        self.parts = Parts(**options)
        if budget is not None:
            check_count("budget", budget, 1)
        n = len(offsets) - 1
        self.budget = budget
        self.affordable = None if budget is None else TESTABLE * (budget - DESIGN)
        self.asked = 0
        self.phase = "design"
        self.iteration = 0
        self.open: dict[int, Question] = {}
        self.incumbent: Array | None = None
        self.level = -np.inf  # the incumbent's value
        self.evidence = Evidence(n)
        self.count = ActiveCount(n, affordable=self.affordable)
        self.fresh: Indices = rng.permutation(n)  # variables not probed yet are those from `probed` on
        self.designed = self.probed = 0
        self.tested = self.steps = 0  # own tests answered, and steps of optimisation beside and after them
        self.audits = 0
        self.epoch = 0  # first row of the history that the model of the found variables sees
        self.spent = 0  # proposals in a row that promised nothing
        self.restart: list[Array] = []  # first points of a new epoch
        self.found: Indices = np.empty(0, dtype=np.intp)
        self.optimiser = FoundVariables(additive=self.parts.additive, local=self.parts.box, best=self.parts.best)
        self.full = AllVariables(self.owner, best=self.parts.best)

    # ------------------------------------------------------------------ proposing

    def propose(self, n: int, pending: Array) -> list[Proposal]:
        proposals: list[Proposal] = []
        for _ in range(n):
            waiting = np.concatenate([pending, *(p.x[None] for p in proposals)])
            question, x, variables = self._next(waiting)
            self.asked += 1
            if question.kind == "design":
                proposals.append(Proposal(x, variables))
                continue
            self.iteration += 1
            self.open[self.iteration] = question
            proposals.append(Proposal(x, variables, self.iteration))
        return proposals

    def _next(self, waiting: Array) -> tuple[Question, Array, Indices]:
        asked = len(self.history) + len(self.history.failures) + len(waiting)
        if self.incumbent is None or (self.phase == "design" and asked < DESIGN):
            return self._design()
        elsewhere = max(0, asked - len(waiting) - self.asked)  # points of earlier runs and other workers
        if self.phase == "full" and self.designed + elsewhere < FULL_DESIGN and asked < 2 * FULL_DESIGN:
            return self._design()  # probes around one point tell a model of all variables little
        if self.phase == "design":
            self.phase = "replicate" if self.count.limit >= FEWEST else "full"
            return self._next(waiting)
        if self.phase == "replicate":
            if not any(question.kind == "replicate" for question in self.open.values()):
                return Question("replicate", self.level, self.incumbent), self.incumbent.copy(), self.everything
            return self._probe() or self._design()  # its value is awaited: go on as if there were no noise
        if self.phase == "probe":
            return self._probe() or self._design()
        if self.phase == "tests":
            return self._test(waiting)
        if self.phase == "audit" and self.audits < AUDITS:
            self.audits += 1
            return self._change(np.flatnonzero(self.evidence.rejected), "audit")
        if self.phase == "audit" and not any(question.kind == "audit" for question in self.open.values()):
            self.phase = "found"
        if self.phase in ("audit", "found"):
            return self._step(waiting)
        return self._all(waiting)

    def _design(self) -> tuple[Question, Array, Indices]:
        at, self.designed = self.designed, self.designed + 1
        x = self.spread[at] if at < FULL_DESIGN else self.rng.random(self.dimension)
        return Question("design"), x, self.everything

    @cached_property
    def spread(self) -> Array:
        """One Latin hypercube for the whole run, with a generator of its own: it need not be saved.

        Not Sobol points: twenty of them in hundreds of dimensions have columns that are copies of each other, so that a
        variable that does nothing looks like one that matters. (Hartmann6_500 with noise after 100 evaluations: 3.25
        from the hypercube, 2.92 from Sobol points, four seeds.)
        """
        rng = np.random.default_rng(np.asarray(self.fresh[:64], dtype=np.uint32))
        return latin_hypercube(FULL_DESIGN, self.dimension, rng)

    def _probe(self) -> tuple[Question, Array, Indices] | None:
        group = self.fresh[self.probed : self.probed + self.count.next_size]
        if len(group) == 0:
            self._decide()
            return None
        self.probed += len(group)
        return self._change(group, "probe")

    def _change(self, group: Indices, kind: str) -> tuple[Question, Array, Indices]:
        """The incumbent with other values of the group: half of them anywhere, half pushed by 0.2 to 0.8."""
        assert self.incumbent is not None
        coordinates = self._coordinates(group)
        x, k = self.incumbent.copy(), len(coordinates)
        anywhere, push = self.rng.random(k), (x[coordinates] + 0.2 + 0.6 * self.rng.random(k)) % 1.0
        x[coordinates] = np.where(self.rng.random(k) < 0.5, anywhere, push)
        for block in blocks_of(self.owner, coordinates):
            category = coordinates[block]
            x[category] = other_category(self.incumbent, category, self.rng)
        return Question(kind, self.level, self.incumbent, group), x, group

    def _test(self, waiting: Array) -> tuple[Question, Array, Indices]:
        evidence = self.evidence
        self._take_found()
        if evidence.undecided >= SETTLED and evidence.tests > self._most_tests:
            self.phase = "full"
            return self._all(waiting)
        if evidence.undecided < SETTLED:
            audit = self.parts.audit and evidence.rejected.any() and self._left >= LAST
            self.phase = "audit" if audit else "found"
            return self._next(waiting)
        live = self._coordinates(np.flatnonzero(~evidence.rejected))
        # the found variables have the better model; worth more once they are the larger part of what matters
        most_unknown = evidence.undecided > len(self.found)
        modelled = self.parts.live and most_unknown and len(live) <= WIDEST_MODEL
        can_step = modelled or len(self.found)
        if not can_step or self.tested <= TEST_SHARE * (self.tested + self.steps):
            group = evidence.next_group(self._busy(), self.rng)
            if len(group):
                return self._change(group, "test")
        if not modelled:
            return self._step(waiting)
        self.steps += 1
        return self._all(waiting, among=live)

    def _busy(self) -> Indices:
        """Variables in tests under way."""
        groups = [question.group for question in self.open.values() if question.group is not None]
        return np.concatenate([np.empty(0, dtype=np.intp), *groups])

    def _step(self, waiting: Array) -> tuple[Question, Array, Indices]:
        """One point of Bayesian optimisation in the found variables."""
        assert self.incumbent is not None
        if len(self.found) == 0:
            return self._all(waiting)
        moved = self._coordinates(self.found)
        x = self.incumbent.copy()
        if self.restart:
            x[moved] = self.restart.pop()
            return Question("epoch", self.level), x, self.found
        rows = slice(self.epoch, None)
        X, y = self.history.X[rows][:, moved], self.history.y[rows]
        if len(y) < 2:  # the first points of an epoch are still awaited
            x[moved] = self.rng.random(len(moved))
            return Question("epoch", self.level), x, self.found
        failed = self.history.failures_beside(x, moved)[:, moved]  # others may be the doing of other variables
        point, promise, local = self.optimiser.propose(
            X, y, x[moved], self.level, waiting[:, moved], failed, self.rng, blocks=blocks_of(self.owner, moved)
        )
        self.spent = self.spent + 1 if promise < HOPELESS else 0
        d = len(moved)
        over = self.spent >= 2 or stalled(y, 4 * d + PATIENCE)
        if self.parts.epochs and over and self.phase == "found" and min(len(y), self._left) >= 4 * d + 20:
            self._new_epoch(d)
            return self._step(waiting)
        self.steps += 1
        x[moved] = point
        return Question("box" if local else "step", self.level), x, self.found

    def _new_epoch(self, d: int) -> None:
        """Forget the model and the incumbent, not the best point: look for another optimum from fresh points."""
        self.epoch, self.spent = len(self.history), 0
        self.optimiser.forget()
        self.restart = list(quasi_random(d + 4, d, self.rng))
        self.level = -np.inf

    def _all(self, waiting: Array, among: Indices | None = None) -> tuple[Question, Array, Indices]:
        """One point of Bayesian optimisation in all variables, or in those coordinates alone."""
        probability = self.evidence.probability
        found = self.full.propose(self.history, waiting, probability, self.iteration, self.rng, among=among)
        return Question("full"), *found

    # ------------------------------------------------------------------ learning

    def absorb(self, batch: Sequence[Observation]) -> None:
        super().absorb(batch)
        for observation in batch:
            question = self.open.pop(observation.iteration, Question("foreign"))
            if not observation.proposed and np.isfinite(observation.y):
                self._learn_from_elsewhere(observation)
            self._answer(question, observation)

    def _answer(self, question: Question, observation: Observation) -> None:
        y, kind = observation.y, question.kind
        if not np.isfinite(y):
            if kind == "replicate":  # an incumbent that may fail is noise of another kind
                self.phase = "full"
            return
        if question.base is not None:
            changed = self._changed_variables(observation.x, question.base)
            differs = abs(y - question.level) > self._tolerance
            if kind == "replicate":
                if differs or not self.parts.tests:
                    self.phase = "full"
                elif self.phase == "replicate":
                    self.phase = "probe"
            elif kind == "audit":
                if differs:
                    self.phase = "full"
            elif len(changed):
                self.tested += 1
                self.evidence.add(changed, y - question.level, hit=differs)
                if kind == "probe":
                    self.count.add(len(changed), hit=differs)
                else:
                    self.evidence.learn_prior()
        if kind == "box":
            gain = 1e-3 * float(self.history.y.std())
            self.optimiser.box.update(len(self._coordinates(self.found)), success=y > question.level + gain)
        kept_apart = question.base is not None and not self.parts.accept
        if self.incumbent is None or (y > self.level and not kept_apart):
            self.incumbent, self.level = np.array(observation.x), y
        if self.phase == "probe" and self.count.decided:
            self._decide()

    def _learn_from_elsewhere(self, observation: Observation) -> None:
        """A point of another worker or an earlier run, beside the incumbent: the same answer as to a question of ours.

        So a worker that begins late, or again, asks nothing that is known.
        """
        if self.incumbent is None or not np.isfinite(self.level) or self.phase == "full":
            return
        evidence, changed = self.evidence, self._changed_variables(observation.x, self.incumbent)
        differs = abs(observation.y - self.level) > self._tolerance
        if len(changed) == 0:
            if differs:
                self.phase = "full"
            elif self.phase in ("design", "replicate") and len(self.history) + len(self.history.failures) > DESIGN:
                self.phase = "probe" if self.parts.tests else "full"
        elif evidence.rejected[changed].all():
            if differs:
                self.phase = "full"
            elif self.audits < AUDITS and 2 * len(changed) > evidence.rejected.sum():
                self.audits += 1
        elif evidence.tests <= self._most_tests and evidence.would_test(changed):
            if not evidence.moved[changed].any():
                self.count.add(len(changed), hit=differs)
            evidence.add(changed, observation.y - self.level, hit=differs)
            if self.phase == "tests":
                evidence.learn_prior()

    @property
    def _most_tests(self) -> float:
        return GIVE_UP * (AFFORDABLE if self.affordable is None else self.affordable)

    @property
    def _left(self) -> float:
        """Evaluations left, as far as known."""
        return np.inf if self.budget is None else self.budget - self.asked

    @property
    def _tolerance(self) -> float:
        """Smaller differences are rounding: relative to the range of values, so that units do not matter."""
        y = self.history.y
        return max(SAME * float(y.max() - y.min()), 1e-14 * float(np.abs(y).max()))

    def _changed_variables(self, x: Array, base: Array) -> Indices:
        """A rounded integer or a category may be where it was; units converted there and back differ in a last bit."""
        return np.unique(self.owner[np.abs(x - base) > 1e-9])

    def _decide(self) -> None:
        """Few enough active variables to find them one by one, or a model of all?"""
        if self.count.probability_dense < 0.5 or not self.parts.decision:
            self.phase = "tests"
            self.evidence.expect(self.count.typical)
        else:
            self.phase = "full"

    def _take_found(self) -> None:
        found = self.evidence.found
        if not np.array_equal(found, self.found):
            self.found = found
            self.optimiser.forget()

    # ------------------------------------------------------------------ explaining

    def importance(self) -> Array:
        """The probability that each variable matters; the relevance in a model where no tests could tell."""
        if self.phase in ("design", "replicate", "full"):
            return super().importance()
        return self.evidence.probability.copy()

    @property
    def tree(self) -> Node | None:
        return self.evidence.tree if self.evidence.tests else None

    # ------------------------------------------------------------------ saving

    def state(self) -> State:
        return {
            **super().state(),
            "phase": self.phase,
            "iteration": self.iteration,
            "open": [(i, q.kind, q.level, q.base, q.group) for i, q in self.open.items()],
            "incumbent": self.incumbent,
            "level": self.level,
            "evidence": self.evidence.state(),
            "count": self.count.state(),
            "fresh": self.fresh.copy(),
            "counters": [getattr(self, name) for name in COUNTERS],
            "restart": [point.copy() for point in self.restart],
            "found": self.found.copy(),
            "optimiser": self.optimiser.state(),
            "full": self.full.state(),
        }

    def restore(self, state: State) -> None:
        super().restore(state)
        self.phase, self.iteration = state["phase"], state["iteration"]
        self.open = {i: Question(*rest) for i, *rest in state["open"]}
        self.incumbent, self.level = state["incumbent"], state["level"]
        self.evidence = Evidence.restore(state["evidence"])
        self.count = ActiveCount.restore(len(self.everything), state["count"], self.affordable)
        self.fresh = state["fresh"]
        self.__dict__.pop("spread", None)
        for name, count in zip(COUNTERS, state["counters"], strict=True):
            setattr(self, name, count)
        self.restart, self.found = list(state["restart"]), state["found"]
        self.optimiser.restore(state["optimiser"])
        self.full.restore(state["full"], self.history)
