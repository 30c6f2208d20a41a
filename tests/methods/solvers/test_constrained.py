"""The search with models of objective and measured constraints, and the default method that uses it."""

from __future__ import annotations

import math

import pytest

from mctsvs import Categorical, Float, Integer, Optimizer, minimize
from mctsvs.utils.validation import Array


def problem(x: Array) -> tuple[float, dict[str, float]]:
    """The optimum, 2.0 / 3, lies where both constraints hold with equality; most of the cube is infeasible."""
    return float(x.mean()), {"sum": 10.0 - float(x[:15].sum()), "curve": 1e3 * float(((x - 0.7) ** 2).sum() - 3.0)}


def told(opt: Optimizer, n: int) -> Optimizer:
    for _ in range(n):
        (trial,) = opt.ask()
        value, constraints = problem(trial.x)
        opt.tell(trial, value if trial.number % 7 else None, constraints=constraints)
    return opt


def test_the_default_finds_the_corner_of_the_constraints() -> None:
    result = minimize(problem, [(0.0, 1.0)] * 20, budget=80)
    assert result.success
    assert result.fun < minimize(problem, [(0.0, 1.0)] * 20, budget=400, method="random").fun - 0.05
    assert abs(problem(result.x)[1]["sum"]) < 0.05


def test_it_goes_on_bit_for_bit_with_values_missing() -> None:
    box = [(0.0, 1.0)] * 20
    whole = told(Optimizer(box, seed=2, budget=60), 60)
    half = Optimizer.restore(told(Optimizer(box, seed=2, budget=60), 40).state())
    assert [t.unit.tobytes() for t in told(half, 20).trials] == [t.unit.tobytes() for t in whole.trials]


def test_batches_and_constraints_that_are_not_all_known() -> None:
    opt = Optimizer([(0.0, 1.0)] * 8, seed=0)
    for i in range(12):
        trials = opt.ask(4)
        assert len({t.unit.tobytes() for t in trials}) == 4
        for trial in trials:
            a, b = 0.3 - trial.x[0], 0.5 - trial.x[1]
            opt.tell(trial, float(trial.x.sum()), constraints={"a": a} if i % 3 == 2 else {"a": a, "b": b})
    assert opt.best.feasible


@pytest.mark.parametrize("impossible", [1.0, 1e12])
def test_what_never_holds_is_violated_as_little_as_can_be(impossible: float) -> None:
    def f(x: Array) -> tuple[float, dict[str, float]]:
        return float(x[0]), {"never": impossible * (1.0 + float(x[1]) ** 2)}

    result = minimize(f, [(0.0, 1.0)] * 10, budget=60)
    assert not result.feasible
    assert result.x[1] < 0.1


def test_mixed_variables() -> None:
    space = {"a": Float(0.1, 10.0, log=True), "n": Integer(1, 20), "kind": Categorical(["x", "y", "z"])}

    def f(p: dict[str, object]) -> tuple[float, dict[str, float]]:
        n, a = int(str(p["n"])), float(str(p["a"]))
        return a * n + 5.0 * (p["kind"] != "y"), {"least": 30.0 - n * n * (1.0 + (p["kind"] == "y"))}

    result = minimize(f, space, budget=50)
    assert result.success
    assert result.fun < 1.0


def test_variables_of_constraints_alone_are_found_too() -> None:
    def f(x: Array) -> tuple[float, dict[str, float]]:
        return float(x[3] + (x[17] - 0.4) ** 2), {"a": 0.6 - float(x[41]), "b": float(x[60]) * 10.0 - 4.0}

    opt = Optimizer([(0.0, 1.0)] * 80, seed=0, budget=120)
    for _ in range(120):
        (trial,) = opt.ask()
        value, constraints = f(trial.x)
        opt.tell(trial, value, constraints=constraints)
    assert set(opt.variables().active) == {"x3", "x17", "x41", "x60"}
    assert opt.best.feasible
    assert opt.best.value is not None
    assert opt.best.value < 0.01


@pytest.mark.parametrize("method", ["auto", "scbo", "bo"])
def test_constraints_that_always_hold_and_no_value_at_all(method: str) -> None:
    opt = Optimizer([(0.0, 1.0)] * 4, method=method, seed=0)
    for _ in range(20):
        opt.tell(opt.ask()[0], None, constraints={"c": -1.0})
    repeats = sum(trial.purpose == "looking for noise" for trial in opt.trials)
    assert len({trial.x.tobytes() for trial in opt.trials}) == 20 - repeats


@pytest.mark.parametrize("method", ["auto", "scbo", "bo", "random"])
def test_infinite_constraints_hold_or_do_not(method: str) -> None:
    opt = Optimizer([(0.0, 1.0)] * 4, method=method, seed=0)
    for _ in range(25):
        (trial,) = opt.ask()
        room = float(trial.x[0]) - 0.5
        c = -room if abs(room) < 0.2 else -math.copysign(math.inf, room)
        opt.tell(trial, float(trial.x.sum()), constraints={"c": c})
        assert trial.constraints == {"c": c}
        assert trial.feasible == (room >= 0.0)
    assert opt.best.feasible
    assert opt.best.value is not None
    assert opt.best.value < 1.8


@pytest.mark.parametrize("method", ["auto", "scbo", "bo"])
def test_values_that_are_all_missing_or_huge(method: str) -> None:
    opt = Optimizer([(0.0, 1.0)] * 6, method=method, seed=0)
    for i in range(30):
        (trial,) = opt.ask()
        limits = {"a": 0.5 - float(trial.x[0]), "b": 1e300 if i == 20 else float(trial.x[1]) - 0.2}
        value = None if i < 18 else 1e12 if i % 2 else float(trial.x.sum())
        opt.tell(trial, value, constraints=limits)
        assert opt.best.has_value == (i >= 18)
    assert opt.best.feasible
