"""Ask and tell: the public face of a run, in the user's units."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from reprlib import repr as short
from typing import Any, Never

from mctsvs.methods import registry
from mctsvs.methods.mcts_vs.tree import Node
from mctsvs.optimizer.active_variables import VariableStatuses
from mctsvs.optimizer.front import Front, FrontTrials, front_of
from mctsvs.optimizer.objectives import DIRECTIONS, Objectives
from mctsvs.optimizer.trial import Recommendation, Trial, TrialDetails, as_noise
from mctsvs.optimizer.unit_cube import UnitCubeOptimizer, encode, encode_all
from mctsvs.space import Region, Space
from mctsvs.space.constraints import given_again, stored
from mctsvs.utils.formatting import as_text
from mctsvs.utils.threads import one_blas_thread
from mctsvs.utils.validation import (
    Array,
    InputError,
    State,
    as_number,
    as_value,
    check_choice,
    check_count,
    check_number,
    check_seed,
)

FORMAT = 3  # of Optimizer.state()
SETTINGS = ("noise", "explain", "replicates")  # kept with the method's options in states and studies
SEVERAL = ("directions", "objectives", "reference")  # arguments about several objectives
ARGUMENTS = ("space", "bounds", "direction", *SEVERAL, "method", "seed", "budget", "constraints", *SETTINGS)


NO_BEST = "there is no best trial of several objectives: front has the best compromises, and knee the usual one of them"


class Optimizer:
    """Decides what to evaluate next; whoever asks evaluates it and tells the value.

    It can be pickled and copied: the copy goes on bit for bit. Threads may share it.

    Args:
        space: A list of (low, high) pairs, an array of them, or a dict of name -> `Float`, `Integer`, `Categorical`
            and others; see `mctsvs.Space`.
        bounds: Another word for `space`. Exactly one of the two is given.
        direction: "minimize" or "maximize".
        directions: The same of each of several objectives, in a list; see `front`.
        objectives: The same with names, such as {"cost": "minimize", "lift": "maximize"}.
        reference: Of several objectives, values that the front is to be better than: hypervolume is measured from them.
            By default they lie a little beyond the front.
        method: A name that `mctsvs methods` lists, or a class of your own as "file.py:Class".
        seed: A whole number: the same seed gives the same points in any process. None draws one.
        budget: Evaluations there will be, where that is known: see `plan`.
        constraints: What every point satisfies, one or a list of: a text such as "x1 + 2*x2 <= 100", a function of the
            point that says whether it is allowed, `scipy.optimize.LinearConstraint`,
            `scipy.optimize.NonlinearConstraint`.
        noise: Standard deviation of the values' noise, 0 for exact ones; None where it is not known. Of single values
            it can be told with them.
        explain: Share of the budget, at its end, that proves which variables act; see `variables`. By default 0.06 for
            the default method where values are exact, and 0 elsewhere.
        replicates: Evaluations at the end of the budget that measure the recommended point anew where values are noisy.
            By default 5 for the default method, fewer below 60 evaluations, and 0 elsewhere.
        options: Options of the method, by name; `mctsvs methods NAME` lists them.

    Raises:
        InputError: An argument cannot be used; the sentence says why.

    Attributes:
        space: The variables, a `Space`.
        region: The part of the unit cube that the constraints leave.
        direction: As given; of several objectives, all with their names.
        objectives: Names and directions of several objectives; None for one.
        method: The name under which the method is listed.
        options: Of the method, as given.
        seed: As given, or as drawn.
        noise: As given.

    Example:
        >>> opt = Optimizer([(-5, 10)] * 300, direction="minimize", seed=0)
        >>> for _ in range(600):
        ...     (trial,) = opt.ask()
        ...     opt.tell(trial, f(trial.x))
        >>> opt.best.x, opt.best.value, opt.variables()

        >>> opt = Optimizer([(0, 1)] * 100, directions=["minimize", "maximize"])
        >>> (trial,) = opt.ask()
        >>> opt.tell(trial, [1.2, 3.4])
        >>> opt.front.values, opt.hypervolume, opt.knee.x
    """

    def __init__(
        self,
        space: Space | Mapping[str, Any] | Sequence[Any] | Array | None = None,
        *,
        bounds: Space | Mapping[str, Any] | Sequence[Any] | Array | None = None,
        direction: str = "minimize",
        directions: Sequence[str] | None = None,
        objectives: Mapping[str, str] | None = None,
        reference: Sequence[float] | Mapping[str, float] | None = None,
        method: str = registry.DEFAULT,
        seed: int | None = 0,
        budget: int | None = None,
        constraints: Any = (),
        noise: float | None = None,
        explain: float | None = None,
        replicates: int | None = None,
        options: Mapping[str, Any] | None = None,
        **unknown: Never,
    ) -> None:
        chosen: dict[str, Any] = {**(options or {}), **unknown}
        self.space = Space.of(one_space(space, bounds))
        self.region = Region(self.space, constraints)
        self.objectives = Objectives.of(directions, objectives, reference)
        if directions is not None and self.objectives is None:
            (direction,) = directions
        self.direction = check_choice("direction", direction, DIRECTIONS)
        if self.objectives is not None:
            refuse_for_several(direction=direction == "maximize", noise=noise, explain=explain, replicates=replicates)
            self.direction = self.objectives.text
        self.method, self.options = registry.canonical(method), chosen
        self.noise = as_noise(noise)
        settings: dict[str, Any] = dict(
            zip(SETTINGS, (self.noise, as_share(explain), as_replicates(replicates)), strict=True)
        )
        self.options = chosen | {name: value for name, value in settings.items() if value is not None}
        self.seed = check_seed(seed)
        several = None if self.objectives is None else FrontTrials(self.objectives)
        registry.check(method if several is None else registry.for_several(method), chosen, ARGUMENTS)
        self._core = UnitCubeOptimizer(self.region, direction, method, self.seed, chosen, **settings, trials=several)
        if self.objectives is not None and self.objectives.reference is not None:
            self._core.engine.aim(self.objectives.signs * self.objectives.reference)
        if budget is not None:
            self.plan(budget)

    def plan(self, budget: int, explained: int | None = None) -> None:
        """Say how many evaluations there will be in all: some methods then know what is worth its price.

        Args:
            budget: Larger or smaller than before, where it is said again. Going on beyond it is fine.
            explained: How many of the last ones prove which variables act, in place of what `explain` says.

        Raises:
            InputError: It is not a whole number of at least 1.

        Example:
            >>> opt.plan(600)
        """
        if explained is not None:
            check_count("explained", explained)
        self._core.plan(check_count("budget", budget), explained)

    def ask(self, n: int = 1) -> list[Trial]:
        """Choose the next points to evaluate.

        Points asked for and not yet told are taken into account. No point is asked for twice, unless none is left and
        values are known to be noisy: then points are evaluated again, the least often evaluated first.

        Args:
            n: How many.

        Returns:
            n trials, always as a list; fewer where the space has fewer points left.

        Raises:
            SpaceExhausted: No point is left.

        Example:
            >>> (trial,) = opt.ask()
            >>> batch = opt.ask(8)
        """
        return self._core.ask(check_count("n", n))

    def tell(
        self,
        trial: Trial | int,
        value: float | Sequence[float] | Mapping[str, float] | Array | None,
        message: str = "",
        *,
        constraints: Mapping[str, float] | None = None,
        noise: float | None = None,
    ) -> None:
        """Give the value of a trial. What is in the trial's `attrs` is kept with it.

        Args:
            trial: One from `ask`, or its number; in any order.
            value: None, NaN and infinities say that the evaluation failed: it is avoided, never fitted. Of several
                objectives, all values in a list, or in a dict if they have names.
            message: Why it failed.
            constraints: Name -> measured value, at most 0 where the constraint holds; None or NaN where it is not
                known. The first trial that has any says which there are. A value may be missing beside them.
            noise: The value's standard deviation, where it is known.

        Raises:
            InputError: The value is not a number, or the trial is not waiting for one.

        Example:
            >>> opt.tell(trial, 3.2)
            >>> opt.tell(trial, None, "the mesh did not converge")
            >>> opt.tell(trial, 3.2, constraints={"stress": -0.1})
        """
        with self._core.lock:
            waiting = self._core.trials.waiting(trial)
            told = checked(self.objectives, value, constraints, noise, waiting.attrs)
            self._core.record(waiting, told[0], as_text(message), told[1])

    def add(
        self,
        point: Mapping[str, Any] | Sequence[Any] | Array,
        value: float | Sequence[float] | Mapping[str, float] | Array | None,
        message: str = "",
        *,
        constraints: Mapping[str, float] | None = None,
        noise: float | None = None,
    ) -> Trial:
        """Tell an evaluation made elsewhere, such as in an earlier run: the method learns from it.

        Args:
            point: A vector, or a dict of name -> value.
            value: As in `tell`.
            message: As in `tell`.
            constraints: As in `tell`.
            noise: As in `tell`.

        Returns:
            The trial made of it.

        Raises:
            InputError: The point is not of this space or violates a constraint, or the value is not a number.

        Example:
            >>> opt.add([0.5] * 300, 1.25)
        """
        unit = encode(self.region, point)
        told = checked(self.objectives, value, constraints, noise)
        return self._core.insert(unit, told[0], as_text(message), told[1])

    def enqueue(self, points: Iterable[Mapping[str, Any] | Sequence[Any] | Array]) -> None:
        """Have points asked for before the method's own.

        Args:
            points: Vectors, or dicts of name -> value.

        Raises:
            InputError: One of them is not a point of this space or violates a constraint; then none is taken.

        Example:
            >>> opt.enqueue([[0.5] * 300, [0.1] * 300])
        """
        units = encode_all(self.region, points)
        with self._core.lock:
            self._core.queue.extend(units)

    @property
    def budget(self) -> int | None:
        """Evaluations there will be, where that was said."""
        return self._core.budget

    @property
    def trials(self) -> list[Trial]:
        """All trials in the order they were asked for."""
        return self._core.trials.all

    @property
    def pending(self) -> list[Trial]:
        """Trials asked for and not yet told."""
        return list(self._core.trials.pending.values())

    @property
    def evaluated(self) -> int:
        """How many trials were told, without those imported. A budget counts these."""
        return self._core.trials.evaluated

    @property
    def enqueued(self) -> list[Array]:
        """Points of `enqueue` that were not asked for yet, as vectors."""
        return [self.space.decode(unit) for unit in self._core.queue]

    @property
    def best(self) -> Trial:
        """The best trial told so far; of equal ones, the one that was asked for first.

        With measured constraints, the best feasible one; until there is one, of those with a value the one that
        violates them least, or where no value is known, of all: see `mctsvs.methods.constraint_ranking`.

        Raises:
            InputError: No evaluation has succeeded yet, or there are several objectives.
        """
        if self.objectives is not None:
            raise InputError(NO_BEST)
        best = self._core.trials.best
        if best is None:
            raise InputError("there is no best trial yet: tell the value of at least one evaluation that succeeded")
        return best

    @property
    def has_best(self) -> bool:
        """Whether an evaluation has not failed yet; never with several objectives."""
        return self._core.trials.best is not None

    @property
    def front(self) -> Front:
        """Of several objectives, the feasible trials of which none is better in every objective; see `Front`.

        Raises:
            InputError: There is one objective.
        """
        with self._core.lock:
            return front_of(self._core.trials.told, self.objectives)

    @property
    def hypervolume(self) -> float:
        """Of several objectives, the volume that the front dominates, down to `reference`; 0 without a front."""
        return self.front.hypervolume

    @property
    def reference(self) -> Array:
        """Of several objectives, the point that hypervolume is measured from; see `Front.reference`."""
        return self.front.reference

    @property
    def knee(self) -> Trial:
        """Of several objectives, the usual compromise: the trial of the front at which every other way costs most."""
        return self.front.knee

    @property
    def noisy(self) -> bool | None:
        """Whether values are noisy: as given, as told with a value, or as the method has seen; None: not known."""
        return self._core.noisy

    def recommend(self) -> Recommendation:
        """Find the point of best expected value among those evaluated.

        That is the best trial, unless values are known to be noisy: given, told, or seen at a point evaluated twice.
        Then a model of all evaluations chooses it; with measured constraints, among the feasible ones, if there are
        any. Where the budget was known, its last evaluations have measured that point anew, and the mean is theirs.

        Returns:
            The trial, with mean and standard deviation of the objective there; see `Recommendation`.

        Raises:
            InputError: No evaluation has succeeded yet.

        Example:
            >>> chosen = opt.recommend()
            >>> chosen.x, chosen.mean, chosen.sd
        """
        assert self.best is not None
        with self._core.lock, one_blas_thread():
            return self._core.recommend()

    def variables(self, *, ranked: bool = False) -> VariableStatuses:
        """Say which variables act, as far as evaluations prove it.

        A variable is active if two evaluations that differ in it alone had different values. Under noise, an inert one
        is called active in at most one run of a hundred. See `VariableStatus` and the page "Which variables act".

        Args:
            ranked: Fit a model to rank all variables. That is an estimate, and proves nothing.

        Returns:
            A row for each variable, the largest effect first, as a list that pandas takes as it is.

        Example:
            >>> rows = opt.variables()
            >>> rows.summary, rows.active
            >>> pandas.DataFrame(rows)
        """
        with self._core.lock, one_blas_thread():
            return self._core.explanation.statuses(ranked=ranked)

    def describe(self) -> str:
        """Say what the method is doing.

        Returns:
            A few words, such as "testing groups: 6 found, 210 rejected, 84 open"; empty for a method that cannot say.

        Example:
            >>> opt.describe()
            'screening: 6 found, 210 rejected, 84 open'
        """
        with self._core.lock:
            return self._core.engine.describe()

    @property
    def tree(self) -> Node | None:
        """The tree of variable groups (variables, value, visits, children), for methods that have one; print it."""
        root = self._core.engine.tree
        return None if root is None else root.named(self.space.names)

    def __repr__(self) -> str:
        best = f", best {self.best.value:.6g}" if self.has_best and self.best.has_value else ""
        if self.objectives is not None:
            best = f", {len(self.front)} of them on the front"
        return (
            f"Optimizer({self.method}, {self.direction} {len(self.space)} variables, {len(self.trials)} trials{best})"
        )

    def _repr_html_(self) -> str:
        from mctsvs.visualization.report import card

        return f"<pre>{escape(repr(self))}</pre>" if self.objectives else card(self, f"Optimizer, {self.method}")

    def state(self) -> State:
        """Save the run.

        Returns:
            Everything, as plain numbers, strings, lists, dicts and arrays, never code.

        Example:
            >>> again = Optimizer.restore(opt.state())  # goes on bit for bit
        """
        return {
            "format": FORMAT,
            "space": self.space.to_state(),
            "direction": self.direction,
            **({} if self.objectives is None else {"objectives": self.objectives.to_state()}),
            "method": self.method,
            "options": dict(self.options),
            "seed": self.seed,
            **self._core.state(),
            **({"constraints": stored(self.region.constraints)} if self.region.constrained else {}),
        }

    @classmethod
    def restore(cls, state: State, constraints: Any = None) -> Optimizer:
        """Go on from a saved run.

        Args:
            state: From `state`.
            constraints: As the run had them; needed if functions are among them, which are not saved.

        Returns:
            An optimizer that goes on bit for bit.

        Raises:
            InputError: The state is of another version, or the constraints are others.

        Example:
            >>> again = Optimizer.restore(opt.state())
        """
        if state.get("format") != FORMAT:
            raise InputError(f"the state has format {state.get('format')!r}: this version reads format {FORMAT}")
        opt = cls(
            Space.from_state(state["space"]),
            **aims(state),
            method=state["method"],
            seed=state["seed"],
            constraints=given_again(state.get("constraints", []), constraints),
            **state["options"],
        )
        opt._core.restore(state)
        return opt

    def __getstate__(self) -> dict[str, Any]:
        """For pickles and copies: constraints that are functions are pickled too, if they can be."""
        with self._core.lock:
            notes = [(trial.times, trial.purpose, trial.attrs) for trial in self.trials]
            return {"state": self.state(), "constraints": self.region.constraints or None, "notes": notes}

    def __setstate__(self, pickled: dict[str, Any]) -> None:
        self.__dict__ = type(self).restore(pickled["state"], pickled["constraints"]).__dict__
        for trial, (times, purpose, attrs) in zip(self.trials, pickled["notes"], strict=True):
            trial.times, trial.purpose, trial.attrs = times, purpose, attrs


def aims(state: State) -> dict[str, Any]:
    """Directions as `Optimizer` takes them, from its state or a study's description."""
    if "objectives" in state:
        return Objectives.from_state(state["objectives"]).arguments
    return {"direction": state["direction"]}


def checked(
    objectives: Objectives | None,
    value: Any,
    constraints: Any = None,
    noise: Any = None,
    attrs: Mapping[str, Any] | None = None,
) -> tuple[float, TrialDetails]:
    """What is told of an evaluation: the value, NaN for several objectives, and all that comes beside it."""
    if objectives is None:
        return as_value(value), TrialDetails.of(constraints, noise, attrs)
    refuse_for_several(noise=noise)
    return math.nan, TrialDetails.of(constraints, noise, attrs, objectives.values(value))


def refuse_for_several(*, direction: bool = False, **settings: Any) -> None:
    """What nothing is done with where there are several objectives, unless it asks for nothing."""
    if direction:
        raise InputError("give either direction= or directions=, which says it of each objective")
    for name, value in settings.items():
        if value is not None and as_number(value) != 0.0:
            raise InputError(f"{name}={short(value)} cannot be used with several objectives: leave it out")


def one_space(space: Any, bounds: Any) -> Any:
    """The variables, which are given as `space` or as `bounds`."""
    if bounds is None and space is None:
        raise InputError("there is no space: give the variables, such as [(0, 1)] * 50 or {'rate': (0.1, 10)}")
    if bounds is not None and space is not None:
        raise InputError("give either space or bounds, which are the same; a first point goes to x0= or enqueue()")
    return space if bounds is None else bounds


def as_share(given: Any) -> float | None:
    """A share of the budget."""
    return None if given is None else check_number("explain", given, least=0.0, most=1.0)


def as_replicates(given: Any) -> int | None:
    """A number of evaluations, which may be none."""
    return given if given is None or given == 0 else check_count("replicates", given)
