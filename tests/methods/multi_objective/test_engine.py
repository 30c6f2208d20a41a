"""The default method with several objectives: batches, kinds of variables, constraints, failures, few that matter."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mctsvs import Categorical, Float, Integer, Optimizer
from mctsvs.methods.multi_objective import MultiObjective
from mctsvs.testing import engine_of
from mctsvs.utils.validation import Array

TWO = ["minimize", "minimize"]
Several = Callable[[Any], Any]


def bowls(x: Array) -> list[float]:
    """The front is the line between two points."""
    return [float(((x - 0.3) ** 2).sum()), float(((x - 0.7) ** 2).sum())]


def drive(opt: Optimizer, f: Several, budget: int, batch: int = 1) -> Array:
    points: list[Array] = []
    while len(points) < budget:
        trials = opt.ask(min(batch, budget - len(points)))
        for trial in trials:
            points.append(trial.unit)
        for trial in trials:
            opt.tell(trial, f(trial.argument))
    return np.array(points)


def optimizer(d: int = 8, **more: Any) -> Optimizer:
    return Optimizer([(0.0, 1.0)] * d, **{"directions": TWO, "reference": [1.0, 1.0], "seed": 1, **more})


def test_it_covers_the_front() -> None:
    opt = optimizer()
    drive(opt, bowls, 60)
    assert opt.hypervolume > 0.57  # 0.590 at most
    spread = np.ptp([trial.x.mean() for trial in opt.front])
    assert spread > 0.3
    assert opt.describe() == "optimising all variables: 8"


def test_directions_and_units_change_nothing() -> None:
    one, other = optimizer(seed=2), optimizer(seed=2, directions=["maximize", "minimize"], reference=[-1000.0, 34.0])
    a = drive(one, bowls, 30)
    b = drive(other, lambda x: [-1000.0 * bowls(x)[0], 2.0 * bowls(x)[1] + 32.0], 30)
    assert np.allclose(a, b, atol=1e-4)


@pytest.mark.parametrize("M", [3, 5])
def test_more_objectives(M: int) -> None:
    def f(x: Array) -> list[float]:
        return [float(((x - c) ** 2).sum()) for c in np.eye(M, len(x))]

    opts = [
        Optimizer([(0, 1)] * 6, directions=["minimize"] * M, reference=[6.0] * M, method=m) for m in ("auto", "random")
    ]
    for opt in opts:
        drive(opt, f, 40)
    assert opts[0].hypervolume > opts[1].hypervolume


@pytest.mark.parametrize("batch", [4, 30])
def test_batches_are_as_good_and_have_no_point_twice(batch: int) -> None:
    opt = optimizer()
    points = drive(opt, bowls, 60, batch)
    assert len(np.unique(points.round(9), axis=0)) == 60
    assert opt.hypervolume > 0.55


def test_three_at_once_are_the_same_as_one_three_times() -> None:
    one = optimizer(d=50)
    drive(one, bowls, 30)
    other = copy.deepcopy(one)
    at_once = [trial.x for trial in one.ask(3)]
    assert np.array_equal(at_once, [other.ask()[0].x for _ in range(3)])


def test_kinds_of_variables() -> None:
    space = {
        "rate": Float(1e-4, 1.0, log=True),
        "count": Integer(1, 9),
        "kind": Categorical(("a", "b", "c")),
        "on": Categorical((True, False)),
        "depth": Integer(1, 4, when={"on": True}),
    }

    def f(p: dict[str, Any]) -> list[float]:
        cost = p["count"] + {"a": 2.0, "b": 0.0, "c": 1.0}[p["kind"]] + p.get("depth", 0)
        return [cost, (np.log10(p["rate"]) + 2.0) ** 2 + 9.0 / p["count"] - p.get("depth", 0)]

    opt = Optimizer(space, directions=TWO, reference=[15.0, 20.0])
    drive(opt, f, 50)
    search = Optimizer(space, directions=TWO, reference=[15.0, 20.0], method="random")
    drive(search, f, 50)
    assert opt.hypervolume > search.hypervolume
    assert len({str(trial.params) for trial in opt.trials}) == 50


def test_known_constraints_hold() -> None:
    opt = optimizer(d=4, constraints=["x0 + x1 <= 1", lambda x: x[2] < 0.6])
    for x in drive(opt, bowls, 40):
        assert x[0] + x[1] <= 1.0 + 1e-9
        assert x[2] < 0.6


def test_measured_constraints_are_learnt() -> None:
    opt = optimizer()
    for _ in range(60):
        (trial,) = opt.ask()
        opt.tell(trial, bowls(trial.x), constraints={"near": 0.5 - trial.x[0]})
    assert sum(trial.feasible for trial in opt.trials[-20:]) >= 14
    assert opt.hypervolume > 0.5


def test_failures_are_avoided() -> None:
    opt = optimizer()
    drive(opt, lambda x: None if x[0] > 0.5 else bowls(x), 60)
    assert sum(trial.failed for trial in opt.trials[-20:]) <= 8
    assert len(opt.front) > 5


def test_nothing_but_failures_and_constants() -> None:
    opt = optimizer()
    drive(opt, lambda x: None, 30)
    opt = optimizer()
    drive(opt, lambda x: [1.0, 1.0], 30)
    assert len(opt.front) == 1
    opt = optimizer(d=2)
    drive(opt, lambda x: [1e300 * x[0], 1e-300 * x[1]], 30)


def few(x: Array) -> list[float]:
    """Variables 3 and 17 matter to one objective, 17 and 60 to the other."""
    return [float((x[3] - 0.3) ** 2 + (x[17] - 0.2) ** 2), float((x[60] - 0.6) ** 2 + (x[17] - 0.8) ** 2)]


@pytest.mark.parametrize("batch", [1, 10])
def test_variables_that_change_any_objective_are_found(batch: int) -> None:
    opt = optimizer(d=80, reference=[0.5, 0.5], noise=0)
    drive(opt, few, 90, batch)
    engine = engine_of(opt, MultiObjective)
    found = engine.found()
    assert found is not None
    assert sorted(found) == [3, 17, 60]
    assert opt.describe() == "optimising found variables: 3"
    assert opt.hypervolume > 0.18
    assert {"x3", "x60"} <= set(opt.variables().active) <= {"x3", "x17", "x60"}


def test_variables_that_change_a_constraint_alone_are_found() -> None:
    opt = optimizer(d=60)
    for _ in range(70):
        (trial,) = opt.ask()
        opt.tell(trial, [few(np.append(trial.x, [0.5] * 20))[0], 1.0], constraints={"c": trial.x[40] - 0.6})
    found = engine_of(opt, MultiObjective).found()
    assert found is not None
    assert sorted(found) == [3, 17, 40]


def test_tests_of_whole_numbers_and_categories_change_them() -> None:
    space: dict[str, Any] = {f"n{i}": Integer(1, 3) for i in range(30)} | {
        f"c{i}": Categorical(("a", "b")) for i in range(20)
    }
    opt = Optimizer(space, directions=TWO)
    drive(opt, lambda p: [p["n4"], p["n9"] + (p["c3"] == "a")], 80)
    found = engine_of(opt, MultiObjective).found()
    assert found is not None
    assert sorted(found) == [4, 9, 33]


def test_a_small_budget_is_not_spent_on_tests() -> None:
    opt = optimizer(d=300, budget=40)
    drive(opt, lambda x: few(x[:100]), 40)
    assert sum(trial.purpose == "testing groups" for trial in opt.trials) <= 20


def test_options() -> None:
    opt = optimizer(d=80, tests=False)
    drive(opt, few, 20)
    assert opt.describe() == "optimising all variables: 80"


def test_thousands_of_variables() -> None:
    opt = optimizer(d=5000)
    drive(opt, lambda x: few(x[:100]), 40)


def test_values_of_others_are_learnt_from() -> None:
    opt = optimizer()
    rng = np.random.default_rng(0)
    for x in rng.random((20, 8)):
        opt.add(x, bowls(x))
    assert opt.ask()[0].purpose == "step"
