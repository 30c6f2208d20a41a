"""The phases of a run: what each asks next, and which phase a value leads to.

A phase is a value: `next` gives a question and the phase from now on, `answer` the phase after a value has come; often
that is the phase itself. Only an audit that finds something leads back, to the tests; a late answer can do no harm.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, get_type_hints

import numpy as np

from mctsvs.methods.auto import constants as const
from mctsvs.methods.auto import portfolio, screening
from mctsvs.methods.auto.evidence import GroupTest, TestKind
from mctsvs.methods.base import Observation
from mctsvs.utils.state import Saved, dump, load
from mctsvs.utils.validation import Array, Indices, State

if TYPE_CHECKING:
    from mctsvs.methods.auto.engine import Auto


@dataclass(frozen=True, eq=False)
class Phase(Saved):
    """What all phases have in common: what a value means whenever it comes."""

    @abstractmethod
    def next(self, search: Auto, waiting: Array) -> tuple[GroupTest, Phase]:
        """A question beside the points (p, D) that wait for their value, and the phase from now on."""

    def answer(self, search: Auto, question: GroupTest, observation: Observation) -> Phase:
        """The phase after the value of one of our points."""
        kind, y = question.kind, observation.y
        if kind is TestKind.REPEAT:
            return self if search.noisy is None else self.without_noise(search)
        if kind is TestKind.CLOSE:
            assert question.step is not None
            search.local.learn(question.step, y - question.level if np.isfinite(y) else -np.inf)
        if kind in portfolio.ARMS:
            search.portfolio.learn(kind.name, y - question.level, search.gains)
        if not np.isfinite(y):
            screening.abandon(search, question)
            return self
        if kind is TestKind.AUDIT and search.changes(question, observation):
            return Screening() if screening.reopen(search, question, observation) else OptimiseFullSpace()
        if kind in (TestKind.PROBE, TestKind.TEST):
            screening.learn(search, question, observation)
        return self

    def elsewhere(self, search: Auto, observation: Observation) -> Phase:
        """The phase after a point of another worker or an earlier run.

        Beside the incumbent it answers a question of ours, so that a worker who begins late asks nothing that is known.
        """
        if search.incumbent is None or not np.isfinite(search.level):
            return self
        evidence, changed = search.evidence, search.changed_variables(observation.x, search.incumbent)
        differs = search.differs(observation.y, search.level)
        if evidence.rejected[changed].all():  # or nothing changed at all
            if differs:
                return OptimiseFullSpace()
            if len(changed) > 0 and evidence.audits < const.AUDITS and 2 * len(changed) > evidence.rejected.sum():
                evidence.audits += 1
        elif not search.gives_up and evidence.would_test(changed):
            if not evidence.moved[changed].any():
                search.count.add(len(changed), hit=differs)
            evidence.add(changed, observation.y - search.level, hit=differs)
            if isinstance(self, Screening):
                evidence.learn_prior()
        screening.compare(search, observation)
        return self

    def without_noise(self, search: Auto) -> Phase:
        """The phase after no noise was seen."""
        return self

    def settled(self, search: Auto) -> Phase:
        """The phase after all that a value has told."""
        return self

    def describe(self, search: Auto) -> str:
        """In words: what is done, and behind a colon how far it has come."""
        return "first points"

    def state(self) -> State:
        """Begins with the name of the class, of which there are several."""
        return {"name": type(self).__name__, **{f.name: dump(getattr(self, f.name)) for f in fields(self)}}

    @classmethod
    def from_state(cls, state: State) -> Phase:
        kind = next(kind for kind in Phase.__subclasses__() if kind.__name__ == state["name"])
        return kind(**{f.name: load(get_type_hints(kind)[f.name], state[f.name]) for f in fields(kind)})


@dataclass(frozen=True, eq=False)
class Design(Phase):
    """The centre and a few points around the best so far; the best of them becomes the incumbent."""

    probe: ActiveCountTest

    def next(self, search: Auto, waiting: Array) -> tuple[GroupTest, Phase]:
        if search.incumbent is None or search.evaluated + len(waiting) < search.first:
            return search.design(near=True), self
        return NoiseTest(self.probe).next(search, waiting)

    def elsewhere(self, search: Auto, observation: Observation) -> Phase:
        after = super().elsewhere(search, observation)
        return NoiseTest(self.probe) if after is self and search.evaluated > search.first else after


@dataclass(frozen=True, eq=False)
class NoiseTest(Phase):
    """The incumbent once more: another value is noise. Until it comes, go on as if there were none."""

    probe: ActiveCountTest

    def settled(self, search: Auto) -> Phase:
        if search.noisy is None:
            return self
        return OptimiseFullSpace() if search.noisy else self.without_noise(search)

    def next(self, search: Auto, waiting: Array) -> tuple[GroupTest, Phase]:
        if search.noisy is not None:
            return self.settled(search).next(search, waiting)
        if not search.waits_for(TestKind.REPEAT) and not search.countable:
            return search.repeat(), self
        question, after = self.without_noise(search).next(search, waiting)
        return question, NoiseTest(after) if isinstance(after, ActiveCountTest) else self if isinstance(
            after, OptimiseFullSpace
        ) else after

    def without_noise(self, search: Auto) -> Phase:
        if search.left < const.ROUNDS * search.portfolio.most:  # tests need the answers of those before
            return OptimiseFullSpace()
        pays = search.count.limit >= const.FEWEST and not search.fails_mostly
        return self.probe if search.options.tests and pays else OptimiseFullSpace()


@dataclass(frozen=True, eq=False)
class ActiveCountTest(Phase):
    """Groups of variables never changed before are changed: how many variables matter?

    First a few steps in all variables: early values count too, and tests had better begin at a good point.
    With noise that the nudge could not show, every change of values looks like a hit, and all variables are modelled.
    """

    fresh: Indices  # variables not probed yet, in random order

    def next(self, search: Auto, waiting: Array) -> tuple[GroupTest, Phase]:
        size = search.count.next_size
        screening.wake(search)
        fresh = self.fresh[~search.evidence.asleep[self.fresh]]
        if len(fresh) == 0 and not search.waits_for(TestKind.PROBE):
            return self._decide(search).next(search, waiting)
        if len(fresh) == 0:  # their answers decide
            return search.step_of(search.arm(portfolio.arms(search)), waiting), self
        if search.evaluated + len(waiting) < const.FIRST_PROBE:
            kind = TestKind.APART if portfolio.in_steps(search) else TestKind.ALIKE
            return search.step_of(kind, waiting), self
        if len(fresh) == len(self.fresh) == len(search.everything) and portfolio.in_steps(search):
            return OptimiseFullSpace().next(search, waiting)
        return screening.probe(search, fresh[:size], waiting), ActiveCountTest(fresh[size:])

    def describe(self, search: Auto) -> str:
        everything = len(search.everything)
        if len(self.fresh) == everything:
            return "first steps in all variables"
        return f"counting the variables that matter: {len(self.fresh)} of {everything} not moved yet"

    def settled(self, search: Auto) -> Phase:
        return self._decide(search) if search.count.decided else self

    def _decide(self, search: Auto) -> Phase:
        """Few enough active variables to find them one by one, or a model of all?"""
        if search.count.probability_dense >= const.DENSE:
            return OptimiseFullSpace()
        search.evidence.expect(search.count.typical)
        return Screening()


@dataclass(frozen=True, eq=False)
class Screening(Phase):
    """Groups are tested until every variable is found or rejected; now and then a step of optimisation."""

    steps: int = 0  # of optimisation, beside the tests

    def next(self, search: Auto, waiting: Array) -> tuple[GroupTest, Phase]:
        evidence = search.evidence
        screening.wake(search)
        search.subspace = evidence.found
        if evidence.undecided < const.SETTLED:
            audit = search.options.audit and evidence.rejected.any() and search.left >= const.LAST
            return (Audit() if audit else OptimiseSubspace(len(search.history))).next(search, waiting)
        if search.gives_up:
            return search.step_in_all(waiting), OptimiseFullSpace()
        live = search.coordinates_of(np.flatnonzero(~evidence.rejected))
        # the found variables have the better model; worth more once they are the larger part of what matters
        most_unknown = evidence.undecided > len(search.subspace)
        in_live = most_unknown and len(live) <= const.WIDEST_MODEL
        can_step = in_live or len(search.subspace) > 0
        if not can_step or search.tested <= const.TEST_SHARE * (search.tested + self.steps):
            test = screening.next_test(search)
            if test is not None:
                return test, self
        question = search.step_in_all(waiting, among=live) if in_live else search.step(waiting)
        return question, Screening(self.steps + can_step)

    def describe(self, search: Auto) -> str:
        found, rejected = len(search.evidence.found), int(search.evidence.rejected.sum())
        open_ = len(search.everything) - found - rejected
        return f"testing groups: {found} found, {rejected} rejected, {open_} open"


@dataclass(frozen=True, eq=False)
class Audit(Phase):
    """All rejected variables are changed at once, a few times: do they act after all?"""

    def next(self, search: Auto, waiting: Array) -> tuple[GroupTest, Phase]:
        if search.evidence.audits < const.AUDITS:
            search.evidence.audits += 1
            return screening.change(search, np.flatnonzero(search.evidence.rejected), TestKind.AUDIT), self
        if search.waits_for(TestKind.AUDIT):
            return search.step(waiting), self
        return OptimiseSubspace(len(search.history)).next(search, waiting)

    def describe(self, search: Auto) -> str:
        return f"checking the rejected variables: {int(search.evidence.rejected.sum())} moved at once"


@dataclass(frozen=True, eq=False)
class OptimiseSubspace(Phase):
    """Bayesian optimisation of the found variables, to the end."""

    since: int = 0  # points before the first step

    def next(self, search: Auto, waiting: Array) -> tuple[GroupTest, Phase]:
        if screening.wake(search):
            return Screening().next(search, waiting)
        return search.step(waiting, search.arm(portfolio.found_arms(search, self.since))), self

    def describe(self, search: Auto) -> str:
        return f"optimising the found variables: {len(search.subspace)} of {len(search.everything)}"


@dataclass(frozen=True, eq=False)
class OptimiseFullSpace(Phase):
    """Bayesian optimisation of all variables, to the end, by models that treat them alike or tell them apart."""

    def next(self, search: Auto, waiting: Array) -> tuple[GroupTest, Phase]:
        spread = search.evaluated - search.tested  # tests around one point tell a model of all variables little
        known = search.noisy is False and search.tested == 0 and not search.fails_mostly
        wanted = not portfolio.all_matter(search) and not known
        if wanted and spread < const.DESIGN_OF_ALL and search.evaluated + len(waiting) < 2 * const.DESIGN_OF_ALL:
            return search.design(), self
        if search.noisy:
            alike = search.rivalry.alike(search.turn, search.history.X, search.history.y)
            return search.step_of(TestKind.ALIKE if alike else TestKind.APART, waiting), self
        return search.step_of(search.arm(portfolio.arms(search)), waiting), self

    def elsewhere(self, search: Auto, observation: Observation) -> Phase:
        return self

    def describe(self, search: Auto) -> str:
        return f"optimising all variables: {len(search.everything)}{', with noise' if search.noisy else ''}"
