"""Ask and tell: trial numbers, direction, validation, and the way from the user's units to the unit cube."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from reprlib import repr as short
from typing import Any

import numpy as np

from mctsvs.methods import registry
from mctsvs.methods.base import Engine, HistoryEngine, Observation, Pending, Proposal
from mctsvs.methods.history import History
from mctsvs.methods.mcts_vs.tree import Node
from mctsvs.space import Region, Space
from mctsvs.space.constraints import given_again, stored
from mctsvs.space.deduplicate import KnownPoints, SpaceExhausted
from mctsvs.trial import NOTHING, Recommendation, Trial, TrialDetails, Trials, as_noise, as_value, choose_replicates
from mctsvs.utils.threads import one_blas_thread
from mctsvs.utils.validation import Array, Indices, InputError, State, check_choice, check_count, check_seed

DIRECTIONS = ("minimize", "maximize")
FORMAT = 3  # of Optimizer.state()
CONTENDERS = 5  # of the best trials, at least, for the recommended point


class Optimizer:
    """Decides what to evaluate next.

    >>> opt = Optimizer([(-5, 10)] * 300, direction="minimize", seed=0)
    >>> for _ in range(600):
    ...     (trial,) = opt.ask()
    ...     opt.tell(trial, f(trial.x))
    >>> opt.best.x, opt.best.value, opt.importance()

    space       a list of (low, high) pairs, or a dict of name -> Float, Integer, ... (see `mctsvs.Space`)
    direction   "minimize" or "maximize"
    method      a name from `mctsvs methods`; further keyword arguments are that method's options
    seed        a whole number: the same seed gives the same points in any process. None draws one.
    budget      evaluations there will be, where that is known: see `plan`
    noise       standard deviation of the values' noise, 0 for exact ones; None: not known. Of single values it can be
                told with them
    constraints what every point satisfies, one or a list of: "x1 + 2*x2 <= 100", a function of the point that says
                whether it is allowed, `scipy.optimize.LinearConstraint`, `scipy.optimize.NonlinearConstraint`
    """

    def __init__(
        self,
        space: Any,
        *,
        direction: str = "minimize",
        method: str = registry.DEFAULT,
        seed: int | None = 0,
        budget: int | None = None,
        constraints: Any = (),
        noise: float | None = None,
        **options: Any,
    ) -> None:
        self.space = Space.of(space)
        self.region = Region(self.space, constraints)
        self.direction = check_choice("direction", direction, DIRECTIONS)
        self.method, self.options = registry.canonical(method), options
        self.noise = as_noise(noise)
        if noise is not None:  # with the options it is kept in states and studies
            self.options = {**options, "noise": self.noise}
        self.seed = check_seed(seed)
        self.queue: deque[Array] = deque()  # points of the user's, in the unit cube, to be asked for first
        self._all = Trials(direction)
        self._known = KnownPoints(self.region, self.seed)
        self._lock = threading.RLock()  # threads may share an optimizer
        self._engine: Engine = registry.make(method, self.space.offsets, np.random.default_rng(self.seed), **options)
        if not self.region.plain and isinstance(self._engine, HistoryEngine):
            self._engine.within(self.region)
        self.budget: int | None = None
        if budget is not None:
            self.plan(budget)

    def plan(self, budget: int) -> None:
        """How many evaluations there will be in all: some methods then know what is worth its price.

        It may be said again, larger or smaller, and going on beyond it is fine.
        """
        with self._lock:
            self.budget = check_count("budget", budget)
            self._engine.plan(self.budget)

    def ask(self, n: int = 1) -> list[Trial]:
        """The next n points to evaluate; always a list. Points asked for and not yet told are taken into account.

        No point is asked for twice. Of a space that has fewer than n points left, these; of one that has none,
        `SpaceExhausted` is raised, or where values are known to be noisy, points are evaluated again, the least often
        evaluated first.
        """
        n = check_count("n", n)
        with self._lock, one_blas_thread():
            asked: list[Trial] = []
            before = time.perf_counter()
            while self.queue and len(asked) < n:
                asked.append(self._new(self.queue.popleft(), self._everything, source="enqueued"))
            if len(asked) < n and self._start is not None and self._start not in self._known:
                asked.append(self._new(self._start.copy(), self._everything, source="default"))
            if len(asked) < n:
                try:
                    asked += self._proposed(n - len(asked))
                except SpaceExhausted:
                    asked = asked or self._again(n)
                    if not asked:
                        raise
            now, thinking = time.time(), (time.perf_counter() - before) / len(asked)
            for trial in asked:
                trial.times.asked, trial.times.thinking = now, thinking
        return asked

    def _proposed(self, n: int) -> list[Trial]:
        """Points of the method's, none of them known; fewer than n where no more are left."""
        asked: list[Trial] = []
        wanted = self._known.room(n)
        for p in self._engine.propose(wanted, Pending.of(self.pending, self.space.n_coordinates)):
            place = {"iteration": p.iteration, "ticket": p.ticket, "purpose": p.purpose}
            try:
                unit = self._known.fresh(self._inside(p), p.variables, len(self.trials))
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
        units = choose_replicates(self.trials, n, key=self._known.key, score=self._all.score)
        return [self._new(unit, self._everything, source="repeated", purpose="measuring again") for unit in units]

    @cached_property
    def _start(self) -> Array | None:
        """The point of the variables' defaults, asked for before the method's own."""
        start = self.space.start
        return None if start is None else self.region.repair(start)

    def _inside(self, proposal: Proposal) -> Array:
        """The point proposed, or one near it that satisfies the known constraints; moved as it was, if possible."""
        region, x = self.region, self.space.snap(proposal.x)
        if region.contains(x) or not self.trials:
            return region.repair(x)
        X = np.array([trial.unit for trial in self.trials])  # all of them are inside
        nearest = X[int(((X - x) ** 2).sum(axis=1).argmin())]
        return region.repair(x, towards=nearest, moved=proposal.variables)

    @property
    def _everything(self) -> Indices:
        return np.arange(len(self.space))

    def _new(self, unit: Array, variables: Indices, **more: Any) -> Trial:
        unit.flags.writeable = False
        self._remember(unit)
        return self._all.add(Trial(len(self.trials), unit, variables, self.space, **more))

    def _remember(self, unit: Array) -> None:
        self._known.add(unit)
        if self.region.first is None:
            self.region.first = unit

    def tell(
        self,
        trial: Trial | int,
        value: float | None,
        message: str = "",
        *,
        constraints: Mapping[str, float] | None = None,
        noise: float | None = None,
    ) -> None:
        """The value of a trial, given by itself or by its number. None, NaN and infinities: it failed.

        constraints     name -> measured value, at most 0 where the constraint holds; None or NaN where it is not known.
                        The first trial that has any says which there are. A value may be missing beside them.
        noise           the value's standard deviation, where it is known

        A failed evaluation is recorded, with `message` to say why, and avoided, never fitted. What is in the trial's
        `attrs` is kept with it.
        """
        with self._lock:
            trial = self.waiting(trial)
            self.record(trial, as_value(value), message, TrialDetails.of(constraints, noise, trial.attrs))

    def record(self, trial: Trial, value: float, message: str, details: TrialDetails) -> None:
        """The same, of a trial that waits, with what was checked."""
        with self._lock, one_blas_thread():
            before = time.perf_counter()
            merit = self._all.tell(trial, value, message, details)
            self._engine.absorb([self._observation(trial, merit)])
            if trial.times.told is None:  # otherwise this is repeated from a journal
                trial.times.told = time.time()
                trial.times.thinking += time.perf_counter() - before

    def enqueue(self, points: Iterable[Any]) -> None:
        """Points to be asked for before the method's own: vectors, or dicts of name -> value."""
        units = [self.unit_of(point) for point in points]
        with self._lock:
            self.queue.extend(units)

    def add(
        self,
        point: Any,
        value: float | None,
        message: str = "",
        *,
        constraints: Mapping[str, float] | None = None,
        noise: float | None = None,
    ) -> Trial:
        """An evaluation made elsewhere, such as in an earlier run: the method learns from it. See `tell`."""
        return self.insert(self.unit_of(point), as_value(value), message, TrialDetails.of(constraints, noise))

    def insert(self, unit: Array, value: float, message: str = "", details: TrialDetails = NOTHING) -> Trial:
        """The same at a point of the unit cube."""
        with self._lock:
            details = self._all.check(details)
            trial = self._new(unit, self._everything, source="imported")
            self.record(trial, value, message, details)
        return trial

    def check(self, details: TrialDetails) -> TrialDetails:
        """As they will be kept: see `Trials.check`."""
        return self._all.check(details)

    def unit_of(self, point: Any) -> Array:
        """A point in the user's units, a vector or a dict, in the unit cube; an error if it violates a constraint."""
        unit = self._encoded(point)
        self.region.check(unit)
        return unit

    def _encoded(self, point: Any) -> Array:
        if isinstance(point, Mapping):
            return self.space.encode_params(point)
        try:
            vector = np.asarray(point, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"{short(point)} is not a point: give a vector, or a dict of name -> value") from None
        if vector.ndim != 1:
            raise InputError(
                f"a point of shape {vector.shape} does not fit: give a vector of {len(self.space)} numbers"
            )
        return self.space.encode(vector)

    def _observation(self, trial: Trial, merit: float) -> Observation:
        place = (trial.unit, merit, trial.variables, trial.ticket)
        row = self._all.row(trial)
        noise = self.noise if trial.noise is None else trial.noise
        if row is None:
            return Observation(*place, noise=noise)
        return Observation(*place, self._all.score(trial), row, noise)

    def waiting(self, trial: Trial | int) -> Trial:
        """The trial, given by itself or by its number, if it is still to be told; else an error that says why not."""
        return self._all.waiting(trial)

    @property
    def trials(self) -> list[Trial]:
        """All trials in the order they were asked for."""
        return self._all.trials

    @property
    def best(self) -> Trial:
        """The best trial told so far (the earliest, if several are equal).

        With measured constraints, the best feasible one; until there is one, of those with a value the one that
        violates them least, or where no value is known, of all: see `mctsvs.methods.constraint_ranking`.
        """
        if self._all.best is None:
            raise InputError("there is no best trial yet: tell the value of at least one evaluation that succeeded")
        return self._all.best

    @property
    def noisy(self) -> bool | None:
        """Whether values are noisy: as given, as told with a value, or as the method has seen; None: not known."""
        seen: bool | None = getattr(self._engine, "noise_seen", None)  # engines of other packages need not have it
        return bool(self.noise) if seen is None and self.noise is not None else seen

    def recommend(self) -> Recommendation:
        """The point of best expected value among those evaluated, with mean and standard deviation.

        Where values are exact that is the best trial. Where they are noisy, or nobody knows, it is computed when called
        from a model of all evaluations; with measured constraints, among the feasible ones, if there are any. Where the
        noise is not given or told, it is one of the best tenth of the values: a model may take a rough objective for
        noise.
        """
        with self._lock, one_blas_thread():
            best = self.best
            if not best.has_value:
                return Recommendation(best, math.nan, math.nan)
            told = [t for t in self.trials if t.has_value and t.feasible] or [best]
            if self.noisy is False or not isinstance(self._engine, HistoryEngine):
                return Recommendation(best, float(best.value or 0.0), 0.0)
            contenders = told
            if self.noise is None and any(t.noise is None for t in told):
                contenders = sorted(told, key=self._all.score, reverse=True)[: max(CONTENDERS, len(told) // 10)]
            mean, sd = self._engine.expected(np.array([t.unit for t in contenders]))
        row = int(np.argmax(mean))
        return Recommendation(contenders[row], self._all.sign * float(mean[row]), float(sd[row]))

    @property
    def has_best(self) -> bool:
        """Whether an evaluation has not failed yet."""
        return self._all.best is not None

    @property
    def pending(self) -> list[Trial]:
        """Trials asked for and not yet told."""
        return list(self._all.pending.values())

    def importance(self) -> dict[str, float]:
        """Name -> score between 0 and 1, most important first; scores do not depend on the objective's scale.

        Computed when called, from all evaluations so far; see `mctsvs.gp.importance` for what a score means.
        """
        with self._lock, one_blas_thread():
            score = self._engine.importance()
        return self._by_name(score)

    def known_importance(self) -> dict[str, float] | None:
        """The same where the method keeps it anyway; None where a model of all variables would have to be fitted."""
        known = getattr(self._engine, "known_importance", None)
        with self._lock:
            score = None if known is None else known()
        return None if score is None else self._by_name(score)

    def _by_name(self, score: Array) -> dict[str, float]:
        names = self.space.names
        return {names[i]: float(score[i]) for i in np.argsort(-score, kind="stable")}

    def describe(self) -> str:
        """What the method is doing, in words: "testing groups: 6 found, 210 rejected, 84 open"; "" if it cannot say."""
        describe = getattr(self._engine, "describe", None)  # engines of other packages need not have it
        with self._lock:
            return "" if describe is None else str(describe())

    @property
    def tree(self) -> Node | None:
        """The tree of variable groups (variables, value, visits, children), for methods that have one; print it."""
        root = self._engine.tree
        return None if root is None else root.named(self.space.names)

    def __repr__(self) -> str:
        best = f", best {self.best.value:.6g}" if self.has_best and self.best.has_value else ""
        return (
            f"Optimizer({self.method}, {self.direction} {len(self.space)} variables, {len(self.trials)} trials{best})"
        )

    def _repr_html_(self) -> str:
        from mctsvs.visualization.report import card

        return card(self, f"Optimizer, {self.method}")

    def state(self) -> State:
        """Everything, as plain numbers, strings and arrays; `Optimizer.restore` goes on from it bit for bit."""
        return {
            "format": FORMAT,
            "space": self.space.to_state(),
            "direction": self.direction,
            "method": self.method,
            "options": dict(self.options),
            "seed": self.seed,
            "budget": self.budget,
            "units": np.array([t.unit for t in self.trials]).reshape(-1, self.space.n_coordinates),
            "variables": [t.variables.copy() for t in self.trials],
            "values": [t.value for t in self.trials],
            "iterations": [t.iteration for t in self.trials],
            "sources": [t.source for t in self.trials],
            "messages": [t.message for t in self.trials],
            "tickets": [t.ticket for t in self.trials],
            "queue": [unit.copy() for unit in self.queue],
            "best": self.best.number if self.has_best else None,
            "engine": self._engine.state(),
            **self._details(),
            **({"constraints": stored(self.region.constraints)} if self.region.constrained else {}),
        }

    def _details(self) -> State:
        """What is told beside values, where anything is."""
        found = {str(t.number): t.details.text for t in self.trials if t.details}
        if not found:
            return {}
        return {"details": found, "told": [t.number for t in self._all.told]}

    def memory(self) -> State:
        """What the method keeps beside the trials: small, and together with them all that `recall` needs."""
        state = self._engine.state()
        state.pop("history", None)
        return state

    def recall(self, trials: Sequence[Trial], units: Array, told: Sequence[int], memory: State) -> None:
        """Go on, bit for bit, from trials whose values came in the order `told`; for an optimizer not used yet.

        `units` (n, D) are the points of the trials, read-only: where all were told in order, none is copied.
        """
        for trial in trials:
            self._all.add(trial)
            self._remember(trial.unit)
        merits = [self._all.rank(trials[number]) for number in told]
        if isinstance(self._engine, HistoryEngine):
            rows = [number for number, merit in zip(told, merits, strict=True) if not math.isnan(merit)]
            X = units[: len(rows)] if rows == list(range(len(rows))) else units[rows]
            observations = [self._observation(trials[n], merit) for n, merit in zip(told, merits, strict=True)]
            memory = {**memory, "history": History.state_of(observations, X)}
        self._engine.restore(memory)

    @classmethod
    def restore(cls, state: State, constraints: Any = None) -> Optimizer:
        """The optimizer whose `state()` this is; `constraints` are needed if functions are among them."""
        if state.get("format") != FORMAT:
            raise InputError(f"the state has format {state.get('format')!r}: this version reads format {FORMAT}")
        opt = cls(
            Space.from_state(state["space"]),
            direction=state["direction"],
            method=state["method"],
            seed=state["seed"],
            constraints=given_again(state.get("constraints", []), constraints),
            **state["options"],
        )
        opt.budget = state["budget"]
        names = ("units", "variables", "values", "iterations", "sources", "messages", "tickets")
        columns = [state[name] for name in names]
        for number, (unit, variables, value, *rest) in enumerate(zip(*columns, strict=True)):
            unit = np.array(unit)
            unit.flags.writeable = False
            opt._all.add(Trial(number, unit, np.array(variables), opt.space, value, *rest))
            opt._remember(unit)
        opt.queue.extend(np.array(unit) for unit in state["queue"])
        for number, text in state.get("details", {}).items():
            details, trial = TrialDetails.read(text), opt.trials[int(number)]
            trial.constraints, trial.noise, trial.attrs = details.constraints, details.noise, details.attrs
        for number in state.get("told", ()):
            opt._all.rank(opt.trials[number])
        if state["best"] is not None:
            opt._all.best = opt.trials[state["best"]]
        opt._engine.restore(state["engine"])
        return opt
