"""What is behind `Optimizer`, in the unit cube: trials in order, points never asked for twice, and the method."""

from __future__ import annotations

import math
import numbers
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from reprlib import repr as short
from typing import TYPE_CHECKING, Any

import numpy as np

from mctsvs.methods import registry
from mctsvs.methods.base import Observation, Pending, Proposal
from mctsvs.methods.constraint_ranking import ConstraintRanking
from mctsvs.methods.history import History
from mctsvs.optimizer.explanation import MOST, PURPOSES, SHARE, Explanation
from mctsvs.optimizer.explanation import SOURCE as EXPLAIN
from mctsvs.optimizer.trial import NOTHING, Recommendation, Trial, TrialDetails, as_attrs, with_all
from mctsvs.space import Region, Space
from mctsvs.space.deduplicate import KnownPoints, SpaceExhausted
from mctsvs.utils.threads import one_blas_thread
from mctsvs.utils.validation import LARGEST, Array, Indices, InputError, State, as_vector

if TYPE_CHECKING:
    from mctsvs.gp.model import Predictor

REPLICATE = "replicate"  # source of trials that measure the recommended point again
REPLICATES, PER_REPLICATE = 5, 12  # evaluations of it, and evaluations of the budget that one of these needs
CONTENDERS = 5  # of the best trials, at least, for the recommended point


class UnitCubeOptimizer:
    """One run of a method; studies keep it in step with their file. Threads may share it."""

    def __init__(
        self,
        region: Region,
        direction: str,
        method: str,
        seed: int,
        options: Mapping[str, Any],
        *,
        noise: float | None = None,
        explain: float | None = None,
        replicates: int | None = None,
        trials: Trials | None = None,
    ) -> None:
        """`trials` that are given are those of several objectives."""
        self.region, self.space, self.noise = region, region.space, noise
        self.share, self.replicates = explain, replicates
        self.trials = Trials(direction) if trials is None else trials
        self.counted = 0  # trials that a budget counts
        self.explained: int | None = None  # evaluations at the end of the budget that explain, where that was said
        self.explanation = Explanation(self)
        self._surrogate: tuple[int, Predictor] | None = None  # trials told, and the model of them
        self.known = KnownPoints(region, seed)
        self.queue: deque[Array] = deque()  # points of the user's, to be asked for first
        self.budget: int | None = None
        self.lock = threading.RLock()
        several = trials is not None
        self.engine = registry.make(method, self.space.offsets, np.random.default_rng(seed), several=several, **options)
        if not region.plain:
            self.engine.within(region)

    @cached_property
    def everything(self) -> Indices:
        """All variables: one array for all trials, which nobody can write to."""
        variables = np.arange(len(self.space))
        variables.flags.writeable = False
        return variables

    @cached_property
    def start(self) -> Array | None:
        """The point of the variables' defaults, asked for before the method's own."""
        start = self.space.start
        return None if start is None else self.region.repair(start)

    @property
    def noisy(self) -> bool | None:
        """Whether values are noisy: as given, as told with a value, or as the method has seen; None: not known."""
        seen = self.engine.noise_seen
        return bool(self.noise) if seen is None and self.noise is not None else seen

    def plan(self, budget: int, explained: int | None = None) -> None:
        with self.lock:
            self.budget, self.explained = budget, explained
            self.engine.plan(budget)

    @property
    def kept(self) -> int:
        """Evaluations at the end of the budget that are not the method's: they measure what it has found."""
        if self.budget is None:
            return 0
        if self.explained is not None:
            return self.explained
        if self.noisy:
            default = min(REPLICATES, self.budget // PER_REPLICATE) if self.engine.explains else 0
            return default if self.replicates is None else self.replicates
        if self.share is None:
            return min(int(SHARE * self.budget), MOST) if self.engine.explains else 0
        return int(self.share * self.budget)

    def _closing(self) -> Trial | None:
        """One of these: the recommended point again where values are noisy, else what proves which variables act."""
        if self.noisy and self.explained is None:
            if not any(t.has_value for t in self.trials.told):
                return None
            unit = self._replicated[-1].unit if self._replicated else self.recommended().unit
            return self._new(unit.copy(), self.everything, source=REPLICATE, purpose="measuring the recommended point")
        question = self.explanation.next()
        if question is None:
            return None
        place = {"iteration": int(question.role), "purpose": PURPOSES[question.role]}
        return self._new(question.unit, question.variables, source=EXPLAIN, **place)

    @property
    def _replicated(self) -> list[Trial]:
        """The last trials, where they repeat the point recommended after all others."""
        last = takewhile(lambda t: t.source in (REPLICATE, EXPLAIN), reversed(self.trials.all))
        return [t for t in last if t.source == REPLICATE][::-1]

    def expected(self, units: Array) -> tuple[Array, Array]:
        """Mean and deviation, (m,) each, of the objective at points (m, D), by the model that pictures show."""
        with self.lock, one_blas_thread():
            seen = len(self.trials.all) - len(self.trials.pending)
            if self._surrogate is None or self._surrogate[0] != seen:
                self._surrogate = seen, self.engine.surrogate()
            mean, sd = self._surrogate[1](units)
        return self.trials.sign * mean, sd

    def recommended(self) -> Trial:
        """The trial of best expected value, by a model of all evaluations."""
        best, trials = self.trials.best, self.trials.all
        assert best is not None
        contenders = told = [t for t in trials if t.has_value and t.feasible] or [best]
        if self.noise is None and any(t.noise is None for t in told):  # a model may take a rough objective for noise
            contenders = sorted(told, key=self.trials.score, reverse=True)[: max(CONTENDERS, len(told) // 10)]
        mean, _ = self.engine.expected(np.array([t.unit for t in contenders]))
        return contenders[int(np.argmax(mean))]

    def recommend(self) -> Recommendation:
        """The point to take, and what to expect there."""
        best = self.trials.best
        assert best is not None
        if best.value is None or not best.has_value:
            return Recommendation(best, math.nan, math.nan)
        if not self.noisy:
            return Recommendation(best, best.value, 0.0)
        fresh = [t for t in self._replicated if t.has_value]
        if len(fresh) > 1:
            first = next(t for t in self.trials.all if np.array_equal(t.unit, fresh[0].unit))
            return Recommendation.measured(first, fresh, self.noise)
        chosen = self.recommended()
        mean, sd = self.engine.expected(chosen.unit[None])
        return Recommendation(chosen, self.trials.sign * float(mean[0]), float(sd[0]))

    def ask(self, n: int) -> list[Trial]:
        with self.lock, one_blas_thread():
            asked: list[Trial] = []
            before = time.perf_counter()
            while self.queue and len(asked) < n:
                asked.append(self._new(self.queue.popleft(), self.everything, source="enqueued"))
            if len(asked) < n and self.start is not None and self.start not in self.known:
                asked.append(self._new(self.start.copy(), self.everything, source="default"))
            if len(asked) < n:
                try:
                    asked += self._chosen(n - len(asked))
                except SpaceExhausted:
                    asked = asked or self._again(n)
                    if not asked:
                        raise
            now, thinking = time.time(), (time.perf_counter() - before) / len(asked)
            for trial in asked:
                trial.times.asked, trial.times.thinking = now, thinking
                trial.asker = threading.get_native_id()
        return asked

    def _chosen(self, n: int) -> list[Trial]:
        """Points of the method's, and at the end of the budget those that measure what it has found."""
        left = 0 if self.budget is None else self.budget - self.counted
        own = n if left <= 0 else min(n, max(0, left - self.kept))
        asked = self._proposed(own) if own else []
        if len(asked) < own:  # the space has no more
            return asked
        while len(asked) < min(n, left) and (trial := self._closing()) is not None:
            asked.append(trial)
        try:
            return asked + self._proposed(n - len(asked)) if len(asked) < n else asked
        except SpaceExhausted:
            if asked:  # they are trials already
                return asked
            raise

    def _proposed(self, n: int) -> list[Trial]:
        """Points of the method's, none of them known; fewer than n where no more are left."""
        asked: list[Trial] = []
        wanted = self.known.room(n)
        for p in self.engine.propose(wanted, Pending.of(list(self.trials.pending.values()), self.space.n_coordinates)):
            place = {"iteration": p.iteration, "proposal_id": p.proposal_id, "purpose": p.purpose}
            try:
                unit = p.x if p.again else self.known.fresh(self._inside(p), p.variables, len(self.trials.all))
            except SpaceExhausted:  # how many points constraints leave is not known before
                if asked:
                    break
                raise
            asked.append(self._new(unit, p.variables, **place))
        return asked

    def _again(self, n: int) -> list[Trial]:
        """Known points, where their values are noisy: a mean of several is worth more than one."""
        if not self.noisy:
            return []
        units = choose_replicates(self.trials.all, n, key=self.known.key, score=self.trials.score)
        return [self._new(unit, self.everything, source="repeated", purpose="measuring again") for unit in units]

    def _inside(self, proposal: Proposal) -> Array:
        """The point proposed, or one near it that satisfies the known constraints; moved as it was, if possible."""
        region, x = self.region, self.space.snap(proposal.x)
        if region.contains(x) or not self.trials.all:
            return region.repair(x)
        X = np.array([trial.unit for trial in self.trials.all])  # all of them are inside
        nearest = X[int(((X - x) ** 2).sum(axis=1).argmin())]
        return region.repair(x, towards=nearest, moved=proposal.variables)

    def _new(self, unit: Array, variables: Indices, **more: Any) -> Trial:
        unit.flags.writeable = False
        return self._add(Trial(len(self.trials.all), unit, variables, self.space, **more))

    def _add(self, trial: Trial) -> Trial:
        self.known.add(trial.unit)
        if self.region.first is None:
            self.region.first = trial.unit
        self.counted += trial.source != "imported"
        return self.trials.add(trial)

    def record(self, trial: Trial, value: float, message: str, details: TrialDetails) -> None:
        """The value of a trial that waits, with what was checked."""
        with self.lock, one_blas_thread():
            before = time.perf_counter()
            merit = self.trials.tell(trial, value, message, details)
            self.engine.observe([self._observation(trial, merit)])
            if trial.times.told is None:  # otherwise this is repeated from a journal
                trial.times.told = time.time()
                trial.times.thinking += time.perf_counter() - before

    def insert(self, unit: Array, value: float, message: str = "", details: TrialDetails = NOTHING) -> Trial:
        """An evaluation made elsewhere."""
        with self.lock:
            details = with_all(details, self.trials.names)
            trial = self._new(unit, self.everything, source="imported")
            self.record(trial, value, message, details)
        return trial

    def _observation(self, trial: Trial, merit: float) -> Observation:
        place = (trial.unit, merit, trial.variables, trial.proposal_id)
        row = self.trials.row(trial)
        noise = self.noise if trial.noise is None else trial.noise
        objectives = self.trials.scores(trial)
        if row is None:
            return Observation(*place, noise=noise, objectives=objectives)
        return Observation(*place, self.trials.score(trial), row, noise, objectives)

    def method_state(self) -> State:
        """What the method keeps beside the trials: small, and with them all that `restore_method` needs."""
        state = self.engine.state()
        state.pop("history")
        return state

    def restore_method(self, trials: Sequence[Trial], units: Array, told: Sequence[int], method_state: State) -> None:
        """Go on, bit for bit, from trials whose values came in the order `told`; for a run not begun yet.

        `units` (n, D) are the points of the trials, read-only: where all were told in order, none is copied.
        """
        for trial in trials:
            self._add(trial)
        merits = [self.trials.rank(trials[number]) for number in told]
        rows = [number for number, merit in zip(told, merits, strict=True) if not math.isnan(merit)]
        X = units[: len(rows)] if rows == list(range(len(rows))) else units[rows]
        observations = [self._observation(trials[n], merit) for n, merit in zip(told, merits, strict=True)]
        self.engine.restore({**method_state, "history": History.state_of(observations, X)})

    def state(self) -> State:
        """All of it, as plain data."""
        trials = self.trials.all
        details = {str(t.number): t.details.text for t in trials if t.details}
        return {
            "budget": self.budget,
            "explained": self.explained,
            "units": np.array([t.unit for t in trials]).reshape(-1, self.space.n_coordinates),
            "variables": [t.variables.copy() for t in trials],
            "values": [t.value for t in trials],
            "iterations": [t.iteration for t in trials],
            "sources": [t.source for t in trials],
            "messages": [t.message for t in trials],
            "proposal_ids": [t.proposal_id for t in trials],
            "queue": [unit.copy() for unit in self.queue],
            "engine": self.engine.state(),
            "told": list(self.trials.order),
            **({"details": details} if details else {}),
        }

    def restore(self, state: State) -> None:
        """Go on from a state; for a run not begun yet."""
        self.budget, self.explained = state["budget"], state.get("explained")
        names = ("units", "variables", "values", "iterations", "sources", "messages", "proposal_ids")
        columns = [state[name] for name in names]
        for number, (unit, variables, value, *rest) in enumerate(zip(*columns, strict=True)):
            unit = np.array(unit)
            unit.flags.writeable = False
            self._add(Trial(number, unit, np.array(variables), self.space, value, *rest))
        self.queue.extend(np.array(unit) for unit in state["queue"])
        for number, text in state.get("details", {}).items():
            self.trials.all[int(number)].take(TrialDetails.read(text))
        later = state.get("told", ())  # in earlier states without those that failed
        told = [t.number for t in self.trials.all if t.value is not None and t.number not in set(later)]
        for number in (*told, *later):
            self.trials.take(self.trials.all[number])
        self.engine.restore(state["engine"])


class Trials:
    """All trials in order, those that wait for their value, and the best one told."""

    def __init__(self, direction: str) -> None:
        self.sign = 1.0 if direction == "maximize" else -1.0
        self.all: list[Trial] = []
        self.pending: dict[int, Trial] = {}
        self.evaluated = 0  # told, without those imported: a budget counts these
        self.names: tuple[str, ...] = ()  # of the measured constraints
        self.ranking = ConstraintRanking()
        self.told: list[Trial] = []  # in the order of telling, those that have not failed
        self.order: list[int] = []  # numbers of all that were told, in this order

    @classmethod
    def of(cls, told: Iterable[Trial], direction: str) -> Trials:
        """Of trials that were told, in this order."""
        trials = cls(direction)
        for trial in told:
            trials.take(trial)
        return trials

    @property
    def best(self) -> Trial | None:
        """The best one told: everything that speaks of the best trial asks here."""
        place = self.ranking.best
        return None if place is None else self.told[place]

    def add(self, trial: Trial) -> Trial:
        self.all.append(trial)
        if trial.value is None:
            self.pending[trial.number] = trial
        else:
            self.evaluated += trial.source != "imported"
        return trial

    def tell(self, trial: Trial, value: float, message: str, details: TrialDetails) -> float:
        """Its merit: the value as something to be maximised, constraints taken into account."""
        details = with_all(details, self.names)
        trial.value, trial.message = value, message
        trial.take(details)
        del self.pending[trial.number]
        self.evaluated += trial.source != "imported"
        return self.rank(trial)

    def rank(self, trial: Trial) -> float:
        """Take its place among the others; its merit."""
        return self.ranking.merit() if self.take(trial) else math.nan

    def take(self, trial: Trial) -> bool:
        """A trial that was told, as one of them; False if it failed."""
        self.order.append(trial.number)
        if self.name_constraints(trial):
            self.ranking = ConstraintRanking(len(self.names))
            for before in self.told:
                self.ranking.take(self.score(before), None, before.number)
        if not self.ranking.take(self.score(trial), self.row(trial), trial.number):
            return False
        self.told.append(trial)
        if self.names and not trial.constraints:
            trial.constraints = dict.fromkeys(self.names, math.nan)
        return True

    def name_constraints(self, trial: Trial) -> bool:
        """Whether it is the first one that has measured constraints: then nobody knows whether they held before."""
        if not trial.constraints or self.names:
            return False
        self.names = tuple(trial.constraints)
        for before in self.told:
            before.unmeasured = True
        return True

    def leads(self, trial: Trial) -> bool:
        """Whether it is the best one by now."""
        return self.best is trial

    @property
    def output_names(self) -> tuple[str, ...]:
        """Of what is measured beside constraints."""
        return ("value",)

    def outputs(self, trial: Trial) -> tuple[float | None, ...]:
        """What was measured of it beside constraints."""
        return (trial.value,)

    def scores(self, trial: Trial) -> Array | None:
        """(M,) values of several objectives as something to be maximised; None for one objective."""
        return None

    def row(self, trial: Trial) -> Array | None:
        """(m,) the trial's constraints as a method gets them: NaN where unknown, finite where they are infinite."""
        given = trial.constraints
        if not given:
            return None
        return np.clip([given.get(name, math.nan) for name in self.names], -LARGEST, LARGEST)

    def score(self, trial: Trial) -> float:
        """The value as something to be maximised."""
        assert trial.value is not None
        return self.sign * trial.value

    def waiting(self, trial: Trial | int) -> Trial:
        """The trial, given by itself or by its number, if it is still to be told; else an error that says why not.

        It takes over the notes of a copy, such as one that comes back from another process.
        """
        number = trial.number if isinstance(trial, Trial) else trial
        if isinstance(number, bool) or not isinstance(number, numbers.Integral):
            raise InputError(
                f"cannot tell {short(trial)}: give a Trial from ask() or its number; add() takes any point with its "
                f"value"
            )
        if not 0 <= number < len(self.all):
            known_numbers = f"0 to {len(self.all) - 1}" if self.all else "none"
            raise InputError(f"trial {number} was never asked for: the numbers so far are {known_numbers}")
        known = self.all[int(number)]
        if known.value is not None:
            raise InputError(f"trial {number} was told already, with value {known.value!r}: a trial is told once")
        if isinstance(trial, Trial) and trial is not known and not np.array_equal(trial.unit, known.unit):
            raise InputError(f"trial {number} belongs to another optimizer: tell it to the one that asked for it")
        if isinstance(trial, Trial) and trial is not known:
            known.attrs.update(as_attrs(trial.attrs))
        return known


@dataclass
class _Replicated:
    """What is known of one point."""

    unit: Array
    asked: int = 0
    failed: bool = False  # every time so far
    feasible: bool = False  # at least once
    values: int = 0
    total: float = 0.0  # of the values as something to be maximised

    def take(self, trial: Trial, score: float) -> None:
        self.asked += 1
        self.failed = trial.failed and (self.failed or self.asked == 1)
        if not math.isnan(score):
            self.feasible |= trial.feasible
            self.values, self.total = self.values + 1, self.total + score

    @property
    def order(self) -> tuple[int, bool, float]:
        """Smaller is earlier."""
        return self.asked, not self.feasible, -self.total / self.values if self.values else math.inf


def choose_replicates(
    trials: Iterable[Trial], n: int, *, key: Callable[[Array], int], score: Callable[[Trial], float]
) -> list[Array]:
    """The n points to evaluate again, of the unit cube; none where all have failed.

    Those evaluated least often come first, so that all are about equally often; of these, feasible ones, then those of
    the better mean. A point that has only ever failed is left alone.
    """
    places: dict[int, _Replicated] = {}
    for trial in trials:
        place = places.setdefault(key(trial.unit), _Replicated(trial.unit))
        place.take(trial, math.nan if trial.value is None else score(trial))
    worthwhile = [place for place in places.values() if not place.failed]
    chosen = []
    for _ in range(n if worthwhile else 0):
        place = min(worthwhile, key=lambda place: place.order)  # the earliest of equal ones
        place.asked += 1
        chosen.append(place.unit.copy())
    return chosen


def encode(region: Region, point: Any) -> Array:
    """A point in the user's units, a vector or a dict, in the unit cube; an error if it violates a constraint."""
    unit = _encoded(region.space, point)
    region.check(unit)
    return unit


def encode_all(region: Region, points: Any) -> list[Array]:
    """The same for several points."""
    if not np.iterable(points):
        raise InputError(f"points {short(points)} cannot be used: give a list of vectors or dicts")
    return [encode(region, point) for point in points]


def _encoded(space: Space, point: Any) -> Array:
    if isinstance(point, Mapping):
        return space.encode_params(point)
    vector = as_vector(point)
    if vector is None:
        raise InputError(f"{short(point)} is not a point: give a vector, or a dict of name -> value")
    if vector.ndim != 1:
        raise InputError(f"a point of shape {vector.shape} does not fit: give a vector of {len(space)} numbers")
    return space.encode(vector)
