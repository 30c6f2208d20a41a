"""The phases of a run: what each asks next, and which phase a value leads to.

A phase is a value: `next` gives a question and the phase from now on, `answer` the phase after a value has come; often
that is the phase itself. Only an audit that finds something leads back, to the tests; a late answer can do no harm.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, get_type_hints

import numpy as np

from mctsvs.common import Array, Indices, State
from mctsvs.default import constants as const
from mctsvs.default import shape, testing
from mctsvs.default.questions import Kind, Question
from mctsvs.engine import Observation
from mctsvs.state import Saved, dump, load

if TYPE_CHECKING:
    from mctsvs.default.engine import EvidenceSearch


@dataclass(frozen=True, eq=False)
class Phase(Saved):
    """What all phases have in common: what a value means whenever it comes."""

    @abstractmethod
    def next(self, search: EvidenceSearch, waiting: Array) -> tuple[Question, Phase]:
        """A question beside the points (p, D) that wait for their value, and the phase from now on."""

    def answer(self, search: EvidenceSearch, question: Question, observation: Observation) -> Phase:
        """The phase after the value of one of our points."""
        kind, y = question.kind, observation.y
        if kind is Kind.NUDGE:
            search.learn_noise(question, observation)
            if isinstance(self, Nudge) and search.noisy is None and question is search.doubt:
                return self  # which asks once more
            return OptimiseAll() if search.noisy else self.without_noise(search)
        if kind is Kind.CLOSE:
            search.all_model.closer.learn(success=y > question.level)
        if kind is Kind.CHALLENGE:
            search.challenger.learn(observation.ticket, y, search.history.y, search.asked)
        if not np.isfinite(y):
            testing.abandon(search, question)
            return self
        if kind is Kind.AUDIT and search.changes(question, observation):
            return Tests() if testing.reopen(search, question, observation) else OptimiseAll()
        if kind in (Kind.PROBE, Kind.TEST):
            testing.learn(search, question, observation)
        if kind is Kind.LOCAL:
            search.learn_locally(question, y)
        if kind in (Kind.ALL, Kind.CHALLENGE) and y > question.level:
            search.all_model.trust()
        return self

    def elsewhere(self, search: EvidenceSearch, observation: Observation) -> Phase:
        """The phase after a point of another worker or an earlier run.

        Beside the incumbent it answers a question of ours, so that a worker who begins late asks nothing that is known.
        """
        if search.incumbent is None or not np.isfinite(search.level):
            return self
        evidence, changed = search.evidence, search.changed_variables(observation.x, search.incumbent)
        differs = search.differs(observation.y, search.level)
        if evidence.rejected[changed].all():  # or nothing changed at all
            if differs:
                return OptimiseAll()
            if len(changed) > 0 and evidence.audits < const.AUDITS and 2 * len(changed) > evidence.rejected.sum():
                evidence.audits += 1
        elif not search.gives_up and evidence.would_test(changed):
            if not evidence.moved[changed].any():
                search.count.add(len(changed), hit=differs)
            evidence.add(changed, observation.y - search.level, hit=differs)
            if isinstance(self, Tests):
                evidence.learn_prior()
        testing.compare(search, observation)
        return self

    def without_noise(self, search: EvidenceSearch) -> Phase:
        """The phase after no noise was seen."""
        return self

    def settled(self, search: EvidenceSearch) -> Phase:
        """The phase after all that a value has told."""
        return self

    def describe(self, search: EvidenceSearch) -> str:
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

    probe: Probe

    def next(self, search: EvidenceSearch, waiting: Array) -> tuple[Question, Phase]:
        if search.incumbent is None or search.evaluated + len(waiting) < const.DESIGN:
            return search.design(near=search.options.near), self
        return Nudge(self.probe).next(search, waiting)

    def elsewhere(self, search: EvidenceSearch, observation: Observation) -> Phase:
        after = super().elsewhere(search, observation)
        return Nudge(self.probe) if after is self and search.evaluated > const.DESIGN else after


@dataclass(frozen=True, eq=False)
class Nudge(Phase):
    """A point right beside the incumbent: another value is noise. Until it comes, go on as if there were none."""

    probe: Probe

    def next(self, search: EvidenceSearch, waiting: Array) -> tuple[Question, Phase]:
        if search.noisy is not None:
            return (OptimiseAll() if search.noisy else self.without_noise(search)).next(search, waiting)
        if not search.waits_for(Kind.NUDGE):
            return search.nudge(), self
        question, after = self.without_noise(search).next(search, waiting)
        return question, Nudge(after) if isinstance(after, Probe) else self if isinstance(after, OptimiseAll) else after

    def elsewhere(self, search: EvidenceSearch, observation: Observation) -> Phase:
        after = super().elsewhere(search, observation)
        exact = search.evidence.rejected.any()  # equal values: there is no noise
        return self.without_noise(search) if after is self and exact else after

    def without_noise(self, search: EvidenceSearch) -> Phase:
        return self.probe if search.options.tests and search.count.limit >= const.FEWEST else OptimiseAll()


@dataclass(frozen=True, eq=False)
class Probe(Phase):
    """Groups of variables never changed before are changed: how many variables matter?

    First a few steps in all variables: early values count too, and tests had better begin at a good point.
    With noise that the nudge could not show, every change of values looks like a hit, and all variables are modelled.
    """

    fresh: Indices  # variables not probed yet, in random order

    def next(self, search: EvidenceSearch, waiting: Array) -> tuple[Question, Phase]:
        size = search.count.next_size
        testing.wake(search)
        fresh = self.fresh[~search.evidence.asleep[self.fresh]]
        if len(fresh) == 0:
            return search.design(), self._decide(search)
        if search.evaluated + len(waiting) < const.FIRST_PROBE:
            if shape.challenged(search, first=True):
                return search.step_in_all(waiting, kind=Kind.CHALLENGE), self
            return search.step_in_all(waiting, alike=not shape.in_steps(search)), self
        if len(fresh) == len(self.fresh) == len(search.everything) and shape.in_steps(search):
            return OptimiseAll().next(search, waiting)
        return testing.probe(search, fresh[:size], waiting), Probe(fresh[size:])

    def describe(self, search: EvidenceSearch) -> str:
        everything = len(search.everything)
        if len(self.fresh) == everything:
            return "first steps in all variables"
        return f"counting the variables that matter: {len(self.fresh)} of {everything} not moved yet"

    def settled(self, search: EvidenceSearch) -> Phase:
        return self._decide(search) if search.count.decided else self

    def _decide(self, search: EvidenceSearch) -> Phase:
        """Few enough active variables to find them one by one, or a model of all?"""
        if search.count.probability_dense >= const.DENSE and search.options.decision:
            return OptimiseAll()
        search.evidence.expect(search.count.typical)
        return Tests()


@dataclass(frozen=True, eq=False)
class Tests(Phase):
    """Groups are tested until every variable is found or rejected; now and then a step of optimisation."""

    steps: int = 0  # of optimisation, beside the tests

    def next(self, search: EvidenceSearch, waiting: Array) -> tuple[Question, Phase]:
        evidence, found, options = search.evidence, search.found_model, search.options
        testing.wake(search)
        found.take(evidence.found)
        if evidence.undecided < const.SETTLED:
            audit = options.audit and evidence.rejected.any() and search.left >= const.LAST
            return (Audit() if audit else OptimiseFound()).next(search, waiting)
        if search.gives_up:
            return search.step_in_all(waiting), OptimiseAll()
        live = search.coordinates_of(np.flatnonzero(~evidence.rejected))
        # the found variables have the better model; worth more once they are the larger part of what matters
        most_unknown = evidence.undecided > len(found.variables)
        in_live = options.live and most_unknown and len(live) <= const.WIDEST_MODEL
        can_step = in_live or len(found.variables) > 0
        if not can_step or search.tested <= const.TEST_SHARE * (search.tested + self.steps):
            test = testing.next_test(search)
            if test is not None:
                return test, self
        question = search.step_in_all(waiting, among=live) if in_live else search.step(waiting)
        return question, Tests(self.steps + can_step)

    def describe(self, search: EvidenceSearch) -> str:
        found, rejected = len(search.evidence.found), int(search.evidence.rejected.sum())
        open_ = len(search.everything) - found - rejected
        return f"testing groups: {found} found, {rejected} rejected, {open_} open"


@dataclass(frozen=True, eq=False)
class Audit(Phase):
    """All rejected variables are changed at once, a few times: do they act after all?"""

    def next(self, search: EvidenceSearch, waiting: Array) -> tuple[Question, Phase]:
        if search.evidence.audits < const.AUDITS:
            search.evidence.audits += 1
            return testing.change(search, np.flatnonzero(search.evidence.rejected), Kind.AUDIT), self
        if search.waits_for(Kind.AUDIT):
            return search.step(waiting), self
        return OptimiseFound().next(search, waiting)

    def describe(self, search: EvidenceSearch) -> str:
        return f"checking the rejected variables: {int(search.evidence.rejected.sum())} moved at once"


@dataclass(frozen=True, eq=False)
class OptimiseFound(Phase):
    """Bayesian optimisation of the found variables, to the end; fresh epochs lead out of local optima.

    Where many were found, by the model that treats them alike; the other, with its epochs, where that gains nothing.
    """

    def next(self, search: EvidenceSearch, waiting: Array) -> tuple[Question, Phase]:
        if testing.wake(search):
            return Tests().next(search, waiting)
        if shape.found_alike(search):
            found = search.coordinates_of(search.found_model.variables)
            return search.step_in_all(waiting, among=found, alike=True), self
        return search.step(waiting, epochs=search.options.epochs), self

    def describe(self, search: EvidenceSearch) -> str:
        found = len(search.found_model.variables)
        return f"optimising the found variables: {found} of {len(search.everything)}"


@dataclass(frozen=True, eq=False)
class OptimiseAll(Phase):
    """Bayesian optimisation of all variables, to the end, by models that treat them alike or tell them apart."""

    def next(self, search: EvidenceSearch, waiting: Array) -> tuple[Question, Phase]:
        spread = search.evaluated - search.tested  # tests around one point tell a model of all variables little
        wanted = not shape.all_matter(search) and (search.tested > 0 or search.noisy is not False)
        if wanted and spread < const.DESIGN_OF_ALL and search.evaluated + len(waiting) < 2 * const.DESIGN_OF_ALL:
            return search.design(), self
        if shape.no_shape(search) and search.turn % const.CLOSE_TURNS > 0:
            return search.step_closer(waiting), self
        if shape.challenged(search):
            return search.step_in_all(waiting, kind=Kind.CHALLENGE), self
        return search.step_in_all(waiting, alike=shape.turn_of_alike(search)), self

    def elsewhere(self, search: EvidenceSearch, observation: Observation) -> Phase:
        return self

    def describe(self, search: EvidenceSearch) -> str:
        return f"optimising all variables: {len(search.everything)}{', with noise' if search.noisy else ''}"
