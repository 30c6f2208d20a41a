"""The conformance suite: properties every method has, as functions that raise AssertionError.

>>> from mctsvs.testing import check_method
>>> check_method("mcts-vs-bo")

A method of your own passes them before it is worth a benchmark. Each check is short enough to be read as the
definition of its property; `CHECKS` lists them. All take the same arguments:

    method   a name that `mctsvs methods` lists, or "file.py:Class"
    options  of the method
    budget   evaluations a run, at least 16
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, overload

import numpy as np

from mctsvs.methods.base import Engine
from mctsvs.methods.history import EXTERNAL
from mctsvs.optimize import minimize
from mctsvs.optimizer import Optimizer
from mctsvs.optimizer.trial import Trial
from mctsvs.space import Categorical, Float, Integer
from mctsvs.utils.validation import Array, InputError

Options = Mapping[str, Any]
Objective = Callable[[Array], float | None]
Kind = TypeVar("Kind", bound=Engine)

BUDGET = 40
BOX: list[tuple[float, float]] = [(-3.0, 5.0)] * 12
MIXED: dict[str, Any] = {
    "rate": Float(1e-5, 1.0, log=True),
    "angle": Float(-180.0, 180.0),
    "layers": Integer(1, 9),
    "width": Integer(8, 512, log=True),
    "kind": Categorical(("relu", "tanh", "gelu")),
}


def objective(x: Array) -> float:
    """Evaluate a smooth function of two of the variables, whose values are binary fractions.

    Args:
        x: (12,) a point of `BOX`.

    Returns:
        The value.
    """
    value = (x[1] - 1.0) ** 2 + 2.0 * np.sin(x[3]) + 0.5 * x[1] * x[3]
    return float(np.round(value * 2.0**20) / 2.0**20)


def mixed_objective(params: Mapping[str, Any]) -> float:
    """Evaluate a function that depends on every kind of variable.

    Args:
        params: A point of `MIXED`.

    Returns:
        The value.
    """
    bonus = {"relu": 0.0, "tanh": 1.0, "gelu": 0.4}[params["kind"]]
    return float((np.log10(params["rate"]) + 2.0) ** 2 + abs(params["layers"] - 4) + bonus + params["width"] / 512)


@overload
def engine_of(opt: Optimizer) -> Engine: ...


@overload
def engine_of(opt: Optimizer, kind: type[Kind]) -> Kind: ...


def engine_of(opt: Optimizer, kind: type[Engine] = Engine) -> Engine:
    """Look at the method behind an optimizer, in a test of its parts.

    Args:
        opt: The optimizer; whoever changes its engine may break it.
        kind: The class that the engine is expected to be of.

    Returns:
        The engine itself, no copy.

    Example:
        >>> engine_of(Optimizer([(0, 1)] * 300), Auto).evidence.found
    """
    engine = opt._core.engine
    assert isinstance(engine, kind), f"the engine is a {type(engine).__name__}"
    return engine


def drive(opt: Optimizer, f: Objective, budget: int) -> Array:
    """Ask for points and tell their values, one at a time.

    Args:
        opt: The optimizer, which goes on from where it is.
        f: The objective; None says that the evaluation failed.
        budget: Number of evaluations.

    Returns:
        (budget, V) the points.
    """
    points = []
    for _ in range(budget):
        (trial,) = opt.ask()
        points.append(trial.x)
        opt.tell(trial, f(trial.x))
    return np.array(points)


def fingerprint(method: str, options: Options, budget: int = BUDGET) -> str:
    """Digest the points a method asks for.

    Args:
        method: As in all checks.
        options: As in all checks.
        budget: As in all checks.

    Returns:
        A hexadecimal number, the same in any process.
    """
    points = drive(Optimizer(BOX, method=method, seed=11, **options), objective, budget)
    return hashlib.sha256(np.ascontiguousarray(points).tobytes()).hexdigest()


def check_same_seed_same_points(method: str, options: Options, budget: int = BUDGET) -> None:
    """1. The same seed gives the same points, in another process too; another seed gives others."""
    here = fingerprint(method, options, budget)
    assert here == fingerprint(method, options, budget), "two runs with one seed differ in one process"
    code = (
        "import sys, json; from mctsvs.testing import fingerprint;"
        "print(fingerprint(sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])))"
    )
    command = [sys.executable, "-c", code, method, json.dumps(dict(options)), str(budget)]
    there = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert here == there, "one seed gives other points in another process"
    one = drive(Optimizer(BOX, method=method, seed=1, **options), objective, 3)
    two = drive(Optimizer(BOX, method=method, seed=2, **options), objective, 3)
    assert not np.array_equal(one, two), "the seed changes nothing"


def check_restore_continues(method: str, options: Options, budget: int = BUDGET) -> None:
    """2. Save after any tell, restore, go on: the same points as without the interruption."""
    whole = drive(Optimizer(BOX, method=method, seed=5, **options), objective, budget)
    opt = Optimizer(BOX, method=method, seed=5, **options)
    parts = []
    for _ in range(budget):
        parts.append(drive(opt, objective, 1))
        opt = Optimizer.restore(through_plain_data(opt.state()))
    assert np.array_equal(np.concatenate(parts), whole), "restored runs take another course"
    assert opt.best.number == int(np.argmin([float(t.value or 0.0) for t in opt.trials])), "the best trial was lost"
    late, interrupted = (in_any_order(method, options, budget // 2, restored=restored) for restored in (False, True))
    assert np.array_equal(late, interrupted), "runs restored while points are waiting take another course"


def in_any_order(method: str, options: Options, budget: int, *, restored: bool) -> Array:
    """Ask for three points at a time and tell them in no order, one always late.

    Args:
        method: As in all checks.
        options: As in all checks.
        budget: As in all checks.
        restored: Whether the optimizer is saved and restored after every tell.

    Returns:
        (n, V) the points.
    """
    opt = Optimizer(BOX, method=method, seed=5, **options)
    while len(opt.trials) < budget:
        opt.ask(3)
        while len(waiting := opt.pending) > 1:
            trial = waiting[len(opt.trials) % len(waiting)]
            opt.tell(trial, objective(trial.x) if trial.number % 5 else None)
            if restored:
                opt = Optimizer.restore(through_plain_data(opt.state()))
    return np.array([trial.x for trial in opt.trials])


def through_plain_data(state: Any) -> Any:
    """Copy a state through numbers, strings, lists, dicts and arrays.

    Args:
        state: From `Optimizer.state`, or a part of it.

    Returns:
        A deep copy.

    Raises:
        AssertionError: There is anything else in it.
    """
    if isinstance(state, dict):
        assert all(isinstance(key, str) for key in state), f"keys must be strings: {list(state)}"
        return {key: through_plain_data(value) for key, value in state.items()}
    if isinstance(state, list | tuple):
        return [through_plain_data(value) for value in state]
    if isinstance(state, np.ndarray):
        assert state.dtype.kind in "fiub", f"arrays must hold numbers, not {state.dtype}"
        return state.copy()
    if isinstance(state, np.generic):
        return state.item()
    assert state is None or isinstance(state, bool | int | float | str), f"not plain data: {type(state)}"
    return state


def check_affine_change_of_objective(method: str, options: Options, budget: int = BUDGET) -> None:
    """3. a f + b with a > 0 in place of f changes nothing but the values."""
    plain = drive(Optimizer(BOX, method=method, seed=3, **options), objective, budget)
    scaled = drive(Optimizer(BOX, method=method, seed=3, **options), lambda x: 1e3 * objective(x) - 8.0, budget)
    mirror = Optimizer(BOX, method=method, seed=3, direction="maximize", **options)
    mirrored = drive(mirror, lambda x: -objective(x), budget)
    assert np.array_equal(plain, mirrored), "maximising -f differs from minimising f"
    assert np.allclose(plain, scaled, rtol=0, atol=1e-6), "the scale of the objective changes the points"


def check_points_are_valid(method: str, options: Options, budget: int = BUDGET) -> None:
    """4. Every point is inside the bounds, every integer whole, every category a member."""
    opt = Optimizer(MIXED, method=method, seed=7, **options)
    for _ in range(budget):
        (trial,) = opt.ask()
        values = trial.params
        assert list(values) == list(MIXED)
        assert 1e-5 <= values["rate"] <= 1.0
        assert -180.0 <= values["angle"] <= 180.0
        assert isinstance(values["layers"], int)
        assert 1 <= values["layers"] <= 9
        assert isinstance(values["width"], int)
        assert 8 <= values["width"] <= 512
        assert values["kind"] in ("relu", "tanh", "gelu")
        assert len(trial.variables) >= 1
        assert set(trial.variables.tolist()) <= set(range(len(MIXED)))
        opt.tell(trial, mixed_objective(values))
    box = drive(Optimizer(BOX, method=method, seed=7, **options), objective, budget)
    assert ((box >= -3.0) & (box <= 5.0)).all(), "a point is outside the bounds"


def check_any_order_of_telling(method: str, options: Options, budget: int = BUDGET) -> None:
    """5. tell in any order, twice (an error), never (still asks on), with failures among them: nothing is lost."""
    opt = Optimizer(BOX, method=method, seed=9, **options)
    rng = np.random.default_rng(0)
    waiting: list[Trial] = []
    values: dict[int, float] = {}
    for step in range(budget):
        waiting += opt.ask(1 + step % 3)
        rng.shuffle(waiting)
        while len(waiting) > 4:
            trial = waiting.pop()
            if trial.number % 7 == 3:
                opt.tell(trial, None if trial.number % 2 else float("nan"))
            else:
                values[trial.number] = objective(trial.x)
                opt.tell(trial.number, values[trial.number])
            told_twice = False
            try:
                opt.tell(trial, 0.0)
                told_twice = True
            except InputError:
                pass
            assert not told_twice, "a trial was told twice without an error"
    assert {t.number for t in opt.pending} == {t.number for t in waiting}
    assert opt.best.value == min(values.values())
    assert [t.number for t in opt.trials] == list(range(len(opt.trials)))
    forgotten = Optimizer(BOX, method=method, seed=9, **options)
    assert len(forgotten.ask(budget - 10)) + len(forgotten.ask()) == budget - 9, "asking without telling stopped"
    failing = Optimizer(BOX, method=method, seed=9, **options)
    drive(failing, lambda x: None, budget - 15)
    assert all(t.failed for t in failing.trials)


def check_arguments_are_not_written_to(method: str, options: Options, budget: int = BUDGET) -> None:
    """6. Arrays given by the caller are never written to, and what was handed out never changes."""
    bounds = np.array(BOX)
    before = bounds.copy()
    opt = Optimizer(bounds, method=method, seed=4, **options)
    handed: list[tuple[Trial, Array]] = []
    for _ in range(budget):
        (trial,) = opt.ask()
        handed.append((trial, trial.x.copy()))
        trial.x[:] = 0.0  # a caller may write into its copy
        value = np.array(objective(handed[-1][1]))
        opt.tell(trial, value)
        assert value == objective(handed[-1][1])
    assert np.array_equal(bounds, before)
    assert all(np.array_equal(trial.x, x) for trial, x in handed)


def check_budget_is_exact(method: str, options: Options, budget: int = BUDGET) -> None:
    """7. Never one evaluation more, never one less."""
    for evaluations in (1, 2, budget // 3, budget - 11):
        calls: list[Array] = []

        def counted(x: Array, calls: list[Array] = calls) -> float:
            calls.append(x)
            return objective(x)

        result = minimize(counted, BOX, budget=evaluations, seed=0, method=method, **options)
        assert len(calls) == evaluations == result.nfev
        assert result.fun == min(objective(x) for x in calls)


def check_values_find_their_proposals(method: str, options: Options, budget: int = BUDGET) -> None:
    """8. A proposal's number comes back with its value: a point from elsewhere never takes its place, however near."""
    courses = []
    for first in (True, False):
        opt = Optimizer(BOX, method=method, seed=6, **options)
        while len(opt.trials) < budget:
            for trial in reversed(opt.ask(3)):
                twin = trial.number % 3 == 1  # somebody else's evaluation of the same point failed
                if twin and first:
                    opt.add(trial.x, None)
                opt.tell(trial, objective(trial.x))
                if twin and not first:
                    opt.add(trial.x, None)
        own = [trial for trial in opt.trials if trial.source == "proposed"]
        assert len({trial.proposal_id for trial in own} - {EXTERNAL}) == len(own), (
            "a proposal_id is missing, or given twice"
        )
        courses.append(np.array([trial.x for trial in own]))
    assert np.array_equal(courses[0], courses[1]), "a point from elsewhere was taken for the method's own"


def check_the_plan_may_change(method: str, options: Options, budget: int = BUDGET) -> None:
    """9. The budget may be said at any time, larger or smaller than before; the same one again changes nothing."""
    once, twice = (Optimizer(BOX, method=method, seed=2, budget=budget, **options) for _ in range(2))
    for _ in range(4):
        twice.plan(budget)
        one, two = (drive(opt, objective, budget // 4) for opt in (once, twice))
        assert np.array_equal(one, two), "the same plan, said again, changes the points"
    for planned in (2 * budget, 1, budget):
        once.plan(planned)
        again = Optimizer.restore(through_plain_data(once.state()))
        assert again.budget == planned
        assert np.array_equal(drive(once, objective, 2), drive(again, objective, 2)), "a restored run plans otherwise"


def check_measured_constraints(method: str, options: Options, budget: int = BUDGET) -> None:
    """10. Constraints, values that are missing beside them, and a restore in between: feasible points are the best."""

    def told(opt: Optimizer, n: int) -> Optimizer:
        for _ in range(n):
            (trial,) = opt.ask()
            limits = {"a": float(trial.x[0]) - 3.0, "b": 1e3 * float(trial.x[2] + trial.x[5] - 2.0)}
            if trial.number % 5 == 3:
                del limits["b"]
            opt.tell(trial, None if trial.number % 6 == 2 else objective(trial.x), constraints=limits)
        return opt

    half = budget // 2
    whole = told(Optimizer(BOX, method=method, seed=4, **options), budget)
    rest = told(Optimizer.restore(told(Optimizer(BOX, method=method, seed=4, **options), half).state()), budget - half)
    assert np.array_equal([t.x for t in whole.trials], [t.x for t in rest.trials]), "restored, it asks for other points"
    feasible = [t for t in whole.trials if t.feasible and t.has_value]
    if not feasible:  # a method that takes small steps may need longer; the best is then the nearest to it
        assert not whole.best.feasible
        return
    assert whole.best.value == min(t.value for t in feasible if t.value is not None), "a better feasible point is known"


def check_several_objectives(method: str, options: Options, budget: int = BUDGET) -> None:
    """11. With several objectives the same holds: one seed, units, restores; or a sentence says that it takes one."""

    def told(opt: Optimizer, n: int, scale: float = 1.0) -> Optimizer:
        for _ in range(n):
            for trial in opt.ask(2):
                values = [scale * objective(trial.x) - 8.0 * (scale - 1.0), -objective(trial.x[::-1])]
                opt.tell(trial, None if trial.number % 9 == 5 else values)
        return opt

    def begin() -> Optimizer:
        return Optimizer(BOX, directions=["minimize", "maximize"], method=method, seed=8, **options)

    refused = ""
    try:
        begin()
    except InputError as error:
        refused = str(error)
    if refused:
        assert "one objective" in refused or "no option" in refused, f"it says something else: {refused}"
        return
    half = budget // 4
    whole, scaled = told(begin(), 2 * half), told(begin(), 2 * half, 1024.0)
    parts = told(Optimizer.restore(through_plain_data(told(begin(), half).state())), half)
    points = [np.array([trial.x for trial in opt.trials]) for opt in (whole, parts, scaled)]
    assert np.array_equal(points[0], points[1]), "restored, it asks for other points"
    assert np.allclose(points[0], points[2], rtol=0, atol=1e-6), "the scale of an objective changes the points"
    told_values = np.array([trial.values for trial in whole.trials if trial.values is not None]) * [1.0, -1.0]
    for trial in whole.front:
        better = (told_values <= np.array(trial.values) * [1.0, -1.0]).all(axis=1)
        assert len(np.unique(told_values[better], axis=0)) == 1, "a point of the front is dominated"


CHECKS: tuple[Callable[[str, Options, int], None], ...] = (
    check_same_seed_same_points,
    check_restore_continues,
    check_affine_change_of_objective,
    check_points_are_valid,
    check_any_order_of_telling,
    check_arguments_are_not_written_to,
    check_budget_is_exact,
    check_values_find_their_proposals,
    check_the_plan_may_change,
    check_measured_constraints,
    check_several_objectives,
)


def check_method(method: str, *, budget: int = BUDGET, **options: Any) -> None:
    """Run all checks on a method.

    Args:
        method: A name that `mctsvs methods` lists, or "file.py:Class".
        budget: Evaluations a run, at least 16.
        **options: Of the method.

    Raises:
        AssertionError: It lacks a property; the message says which.

    Example:
        >>> check_method("evolution.py:OnePlusOne", d=3)
    """
    for check in CHECKS:
        check(method, options, budget)
