"""Our methods as an Optuna sampler.

>>> study = optuna.create_study(sampler=MCTSVSSampler(seed=0))
>>> study.optimize(objective, n_trials=600)

The parameters that every trial so far has had are moved by the method; others, such as those of a branch, by an
independent sampler. Any number of processes may work on one storage: before each point the sampler reads the trials
that were finished since, whoever ran them, so the shared history is each worker's history. `auto` takes from it what
others' tests have shown. Which variables a trial was made by moving is kept in its system attributes, from which the
variable score of `mcts-vs-bo` and its kin is computed; their tree is each worker's own, grown by its own choices.

Where trials have no other parameters, no point that the sampler can know of is asked for again, until all are known.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mctsvs.methods import registry
from mctsvs.methods.base import Engine, Observation, Pending, Proposal
from mctsvs.methods.constraint_ranking import ConstraintRanking
from mctsvs.methods.history import EXTERNAL
from mctsvs.optimizer.active_variables import Evidence, Points, VariableStatuses, rows_of, summary_of
from mctsvs.optimizer.trial import as_noise
from mctsvs.space import Region, Space
from mctsvs.space.deduplicate import KnownPoints
from mctsvs.utils.validation import Array, Indices, InputError, check_seed

try:
    import optuna
    from optuna.samplers import BaseSampler
    from optuna.trial import TrialState
except ImportError:
    raise InputError("the sampler needs Optuna, not installed here: pip install 'mctsvs[optuna]'") from None

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.study import Study
    from optuna.trial import FrozenTrial

VARIABLES = "mctsvs:variables"  # system attribute: names of the parameters moved
FIXED = "fixed_params"  # Optuna's, of trials enqueued by the user
CONSTRAINTS = "constraints"  # Optuna's, of trials whose sampler has a `constraints_func`


class _Follower:
    """An engine that follows one study over one space of parameters."""

    def __init__(
        self,
        study_id: int,
        search_space: dict[str, BaseDistribution],
        engine: Engine,
        points: KnownPoints,
        noise: float | None = None,
    ) -> None:
        self.study_id, self.search_space, self.noise = study_id, search_space, noise
        self.engine, self.points, self.space = engine, points, points.space
        self.alone = True  # no trial has had parameters beside these
        self.warned = False
        self.positions = {name: v for v, name in enumerate(self.space.names)}
        self.everything = np.arange(len(self.space))
        self.finished = 0  # trials before this one are all known
        self.known: set[int] = set()  # and these after it
        self.proposal_ids: dict[int, int] = {}  # of unfinished trials whose points this engine proposed
        self.merit: ConstraintRanking | None = None  # from the first trial on that has constraints

    def learn(self, trials: Sequence[FrozenTrial], sign: float) -> None:
        """Tell the engine what has finished since; trials that do not fit the space say nothing about it."""
        for trial in trials[self.finished :]:
            if not trial.state.is_finished() or trial.number in self.known:
                continue
            self.known.add(trial.number)
            proposal_id, unit = self.proposal_ids.pop(trial.number, EXTERNAL), self.unit(trial)
            self.alone &= all(name in self.search_space or d.single() for name, d in trial.distributions.items())
            if unit is not None:
                self.points.add(unit)
                complete = trial.state == TrialState.COMPLETE and trial.value is not None
                y = sign * float(trial.value or 0.0) if complete else np.nan
                self.engine.observe([self.observation(trial, unit, y if np.isfinite(y) else np.nan, proposal_id)])
        while self.finished in self.known:
            self.known.remove(self.finished)
            self.finished += 1

    def observation(self, trial: FrozenTrial, unit: Array, y: float, proposal_id: int) -> Observation:
        """With the constraints, where there are any: y is then the merit, see `mctsvs.methods.constraint_ranking`."""
        given = trial.system_attrs.get(CONSTRAINTS)
        row = None if given is None else np.array(given, dtype=np.float64)
        if row is not None and self.merit is None and len(row):
            self.merit = ConstraintRanking(len(row))
        if self.merit is None:
            return Observation(unit, y, self.moved(trial), proposal_id, noise=self.noise)
        row = self.merit.unknown if row is None or len(row) != len(self.merit.unknown) else row
        merit = self.merit.add(y, row)
        return Observation(unit, merit, self.moved(trial), proposal_id, y, row, self.noise)

    def pending(self, trials: Sequence[FrozenTrial]) -> Pending:
        """Those of the trials that have all of their parameters."""
        units = {t.number: unit for t in trials if (unit := self.unit(t)) is not None}
        for unit in units.values():
            self.points.add(unit)
        proposal_ids = np.array([self.proposal_ids.get(number, EXTERNAL) for number in units], dtype=np.intp)
        return Pending(np.array(list(units.values())).reshape(len(units), self.space.n_coordinates), proposal_ids)

    @property
    def exhausted(self) -> bool:
        """Whether every point is known. A point that is may still be new by the other parameters of its trial."""
        return self.alone and self.points.left <= 0

    def anything(self, number: int) -> Array:
        """A random point, since Optuna wants one."""
        if not self.warned:
            self.warned = True
            warnings.warn(
                f"all {self.space.size:.0f} points of the space have been tried: from here on they are drawn at random",
                stacklevel=2,
            )
        return self.space.snap(np.random.default_rng([self.points.seed, number]).random(self.space.n_coordinates))

    def fresh(self, proposal: Proposal, number: int) -> Array:
        """The proposed point, or one near it that is not known."""
        unit = self.space.snap(proposal.x)
        if self.alone and not proposal.again:
            unit = self.points.fresh(unit, proposal.variables, number)
            self.points.add(unit)
        return unit

    def moved(self, trial: FrozenTrial) -> Indices:
        """The variables the trial was made by moving; all of them, where nobody says."""
        names = trial.system_attrs.get(VARIABLES, ())
        moved = sorted(self.positions[name] for name in names if name in self.positions)
        return np.array(moved, dtype=np.intp) if moved else self.everything

    def unit(self, trial: FrozenTrial) -> Array | None:
        """The trial's point in the unit cube; None if it has none in this space."""
        try:
            return self.space.encode_params({name: trial.params[name] for name in self.space.names})
        except (KeyError, InputError):
            return None


class MCTSVSSampler(BaseSampler):  # type: ignore[misc, unused-ignore]
    """Any of our methods in Optuna.

    Args:
        method: A name that `mctsvs methods` lists.
        seed: A whole number; None draws one. Workers on one storage need different ones, or None.
        noise: Standard deviation of the values' noise, 0 for exact ones; None where it is not known.
        independent_sampler: For parameters that not all trials have; default: Optuna's TPE.
        constraints_func: As Optuna's samplers take it: of a finished trial, the measured constraints, at most 0 where
            they hold. They are kept in the trial, so that every worker on the storage knows them.
        **options: Options of the method.

    Raises:
        InputError: An argument cannot be used; the sentence says why.

    Example:
        >>> study = optuna.create_study(sampler=MCTSVSSampler(seed=0))
        >>> study.optimize(objective, n_trials=600)
        >>> study.sampler.variables()
    """

    def __init__(
        self,
        *,
        method: str = registry.DEFAULT,
        seed: int | None = None,
        noise: float | None = None,
        independent_sampler: BaseSampler | None = None,
        constraints_func: Callable[[FrozenTrial], Sequence[float]] | None = None,
        **options: Any,
    ) -> None:
        registry.make(method, np.array([0, 1]), np.random.default_rng(0), **options)  # says what is wrong with them
        self._method, self._options, self._noise = method, dict(options), as_noise(noise)
        self._rng = np.random.default_rng(check_seed(seed))
        independent_seed = int(self._rng.integers(2**32))
        self._independent = independent_sampler or optuna.samplers.TPESampler(seed=independent_seed)
        self._constraints = constraints_func
        self._intersection = optuna.search_space.IntersectionSearchSpace()
        self._follower: _Follower | None = None
        self._home: int | None = os.getpid()  # None for a copy
        self._lock = threading.RLock()  # n_jobs runs trials in threads

    @property
    def engine(self) -> Engine | None:
        """The method's decisions in the study that the sampler follows at present; None before it was asked."""
        return None if self._follower is None else self._follower.engine

    def variables(self) -> VariableStatuses:
        """Say which parameters act, of the study that the sampler follows at present; see `Optimizer.variables`.

        Returns:
            A row for each parameter, whose `evidence` counts the points that the sampler has learnt; empty before it
            was asked.
        """
        with self._lock:
            follower = self._follower
            if follower is None:
                return VariableStatuses()
            history, noisy = follower.engine.history, follower.engine.noise_seen
            outputs = np.column_stack([history.objective, history.constraints.reshape(len(history), -1)])
            noise = np.full(len(history), np.nan if self._noise is None else self._noise) if noisy else None
            points = Points.of(follower.space, history.X, outputs, noise, np.arange(len(history)))
        names = ["value", *(f"constraint {i}" for i in range(outputs.shape[1] - 1))]
        rows = rows_of(follower.space, names, Evidence(points, exact=noisy is False))
        return VariableStatuses(rows, summary_of(rows, noisy))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _home=None)
        self._lock = threading.RLock()

    def reseed_rng(self) -> None:
        """Optuna's way to say that there may be copies of the sampler, which must not all propose the same.

        It says so before each trial of a thread too: threads share the sampler itself, and what it has built up stays.
        """
        with self._lock:
            self._rng = np.random.default_rng()
            self._independent.reseed_rng()
            if self._home != os.getpid():
                self._follower, self._home = None, os.getpid()

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        with self._lock:
            shared = self._intersection.calculate(study)
        return {name: distribution for name, distribution in shared.items() if not distribution.single()}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        self._raise_error_if_multi_objective(study)
        search_space = {name: d for name, d in search_space.items() if not d.single()}
        fixed = trial.system_attrs.get(FIXED, {}).keys()
        if search_space.keys() <= fixed:
            return {}
        with self._lock:
            follower = self._follow(study, search_space)
            trials = study._get_trials(deepcopy=False, use_cache=True)
            follower.learn(trials, 1.0 if study.direction.name == "MAXIMIZE" else -1.0)
            running = [t for t in trials if not t.state.is_finished() and t.number != trial.number]
            pending = follower.pending(running)
            if follower.exhausted:
                return follower.space.params(follower.anything(trial.number))
            (proposal,) = follower.engine.propose(1, pending)
            unit = follower.fresh(proposal, trial.number)
            own = not search_space.keys() & fixed  # else the trial's point is another one than was proposed
            if own:
                follower.proposal_ids[trial.number] = proposal.proposal_id
        if own:
            moved = [follower.space.names[v] for v in proposal.variables]
            study._storage.set_trial_system_attr(trial._trial_id, VARIABLES, moved)
        return follower.space.params(unit)

    def _follow(self, study: Study, search_space: dict[str, BaseDistribution]) -> _Follower:
        """The engine for these parameters; if they have changed, a new one, which reads all trials again."""
        follower = self._follower
        same = follower is not None and follower.study_id == study._study_id and follower.search_space == search_space
        if follower is None or not same:
            space, seed = Space.of(search_space), int(self._rng.integers(2**63))
            engine = registry.make(self._method, space.offsets, np.random.default_rng(seed), **self._options)
            region = Region(space)
            if not region.plain:
                engine.within(region)
            points = KnownPoints(region, seed)
            follower = self._follower = _Follower(study._study_id, dict(search_space), engine, points, self._noise)
        return follower

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        self._raise_error_if_multi_objective(study)
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        self._independent.before_trial(study, trial)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        if self._constraints is not None and state in (TrialState.COMPLETE, TrialState.PRUNED):
            constraints = tuple(float(c) for c in self._constraints(trial))
            study._storage.set_trial_system_attr(trial._trial_id, CONSTRAINTS, constraints)
        self._independent.after_trial(study, trial, state, values)
