"""Corner tests and bisection: what they find, with how many tests, and what they must not believe."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mctsvs import Categorical, Float, Integer, Optimizer
from mctsvs.methods.auto.box_corners import Bisection, BoxCorners, Mask
from mctsvs.methods.auto.engine import Auto
from mctsvs.testing import engine_of
from mctsvs.utils.validation import Array, Indices

V = 200


def corners_of(f: Callable[[Array], float], rng: np.random.Generator, size: int = 20) -> tuple[BoxCorners, int]:
    """All tests of a function of the cube, and how many there were."""
    base, other = rng.random(V), rng.random(V)
    everything, owner = np.ones(V, dtype=bool), np.arange(V)
    corners = BoxCorners.between(base, other, everything, f(base))
    for tests in range(200):
        flip = corners.next(~everything, size, rng)
        if flip is None:
            return corners, tests
        corners.add(flip.mask, f(corners.point(flip.mask, owner)), 1e-12, flip.split)
    raise AssertionError("no end of tests")


@pytest.mark.parametrize("active", [0, 1, 2, 6])
@pytest.mark.parametrize("interplay", [False, True])
def test_corners_find_what_acts(active: int, interplay: bool) -> None:
    """Wrong with probability zero: the values of a random function are equal only where nothing acts."""
    counts = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        variables, weights = rng.permutation(V)[:active], rng.normal(size=active)

        def f(x: Array, variables: Indices = variables, weights: Array = weights) -> float:
            total = float(np.sin(3.0 * x[variables]) @ weights)
            return float(np.exp(total)) if interplay else total

        corners, tests = corners_of(f, rng)
        counts.append(tests)
        assert np.flatnonzero(corners.live).tolist() == sorted(variables.tolist())
        assert sorted(int(cell[0]) for cell, _ in corners.groups()) == sorted(variables.tolist())
    assert np.mean(counts) <= 12 + 5.5 * active  # ten groups at first; halving one variable of twenty takes five


def test_equal_values_by_chance_are_not_believed() -> None:
    """Every variable of a symmetric function of whole numbers changes the value by as much as any other."""
    rng = np.random.default_rng(0)
    variables = rng.permutation(V)[:5]
    corners, _ = corners_of(
        lambda x: float((x[variables] > 0.5).sum()) + 10.0 * float((x[variables[:2]] > 0.3).sum()), rng
    )
    moved = [v for v in variables if (corners.base[v] > 0.5) != (corners.other[v] > 0.5)]
    assert set(moved) & set(np.flatnonzero(corners.live))


def bisected(f: Callable[[Array], float], base: Array, other: Array, rng: np.random.Generator) -> Bisection:
    owner, asked = np.arange(V), np.ones(V, dtype=bool)
    search = Bisection.between(base, other, asked, (f(base), f(other)))
    for _ in range(200):
        flip = search.next(rng)
        if flip is None:
            return search
        search.add(flip.mask, f(search.point(flip.mask, owner)), 1e-12)
    raise AssertionError("no end of tests")


def test_bisection_finds_variables_that_act_only_together() -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        a, b, c = rng.permutation(V)[:3].tolist()

        def f(x: Array, a: int = a, b: int = b, c: int = c) -> float:
            return float(x[a] * x[b] + 0.1 * x[c])

        search = bisected(f, np.zeros(V), np.ones(V), rng)
        assert sorted(search.found) == sorted([a, b, c])
        assert np.flatnonzero(search.live).tolist() == sorted([a, b, c])
        assert len(search.masks) <= 3 * 9 + 6


def sparse(x: Array) -> float:
    return -float((x[3] - 0.3) ** 2 + 2.0 * (x[50] - 0.6) ** 2 + (x[77] - 0.8) ** 2 + x[3] * x[50])


def masks(opt: Optimizer) -> list[Mask]:
    engine = engine_of(opt, Auto)
    assert engine.evidence.corners is not None
    return engine.evidence.corners.masks


@pytest.mark.parametrize("at", [28, 34, 41])
@pytest.mark.parametrize("batch", [1, 4])
def test_a_saved_search_goes_on_bit_for_bit(at: int, batch: int) -> None:
    opt = Optimizer([(0.0, 1.0)] * 100, direction="maximize", seed=3)
    while len(opt.trials) < at:
        for trial in opt.ask(batch):
            opt.tell(trial, sparse(trial.x))
    again = Optimizer.restore(opt.state())
    assert [mask.tolist() for mask in masks(opt)] == [mask.tolist() for mask in masks(again)]
    for _ in range(20):
        for one, two in zip(opt.ask(batch), again.ask(batch), strict=True):
            assert np.array_equal(one.unit, two.unit)
            opt.tell(one, sparse(one.x))
            again.tell(two, sparse(two.x))


@pytest.mark.parametrize("batch", [1, 5])
def test_whole_numbers_and_categories_are_found(batch: int) -> None:
    """Values are rounded after they were chosen: what is learned is of the points that were evaluated."""
    space: dict[str, object] = {f"i{j}": Integer(0, 9) for j in range(40)}
    space |= {f"c{j}": Categorical(["a", "b", "c", "d"]) for j in range(40)}
    space |= {f"x{j}": (0.0, 1.0) for j in range(40)}
    worth = {"a": 0.0, "b": 0.37, "c": 1.1, "d": -0.6}

    def f(p: dict[str, float]) -> float:
        return 0.113 * (p["i7"] - 3) ** 2 + worth[str(p["c9"])] + 1.7 * abs(p["x5"] - 0.21) + 0.071 * p["i20"]

    opt = Optimizer(space, seed=1)
    while len(opt.trials) < 120:
        for trial in opt.ask(batch):
            opt.tell(trial, f(trial.params))
    engine = engine_of(opt, Auto)
    assert {opt.space.names[v] for v in engine.evidence.found} == {"i7", "c9", "x5", "i20"}
    assert opt.best.value is not None
    assert opt.best.value < -0.55


def test_fine_steps_do_not_mislead_it() -> None:
    opt = Optimizer([(0.0, 1.0)] * 100, direction="maximize", seed=2)
    for _ in range(80):
        (trial,) = opt.ask()
        opt.tell(trial, float(np.floor(5e3 * sparse(trial.x)) / 5e3))
    found = engine_of(opt, Auto).evidence.found
    assert found.tolist() == [3, 50, 77]


def test_failures_leave_other_corners_to_ask_for() -> None:
    opt, rng = Optimizer([(0.0, 1.0)] * 100, direction="maximize", seed=5), np.random.default_rng(0)
    for _ in range(110):
        (trial,) = opt.ask()
        opt.tell(trial, None if rng.random() < 0.2 else sparse(trial.x))
    engine = engine_of(opt, Auto)
    assert engine.evidence.found.tolist() == [3, 50, 77]


def test_variables_that_do_not_exist_cost_no_test() -> None:
    """Until a parent's value makes them exist; then they are asked about."""
    space: dict[str, object] = {"kind": Categorical(["a", "b"])}
    space |= {f"x{j}": (0.0, 1.0) for j in range(40)}
    space |= {f"b{j}": Float(0.0, 1.0, when={"kind": ["b"]}) for j in range(40)}

    def f(p: dict[str, float]) -> float:
        inner = 2.0 - (p["b7"] - 0.3) ** 2 if p["kind"] == "b" else 0.0  # type: ignore[comparison-overlap]
        return inner - (p["x5"] - 0.8) ** 2

    opt = Optimizer(space, direction="maximize", seed=2)
    for _ in range(120):
        (trial,) = opt.ask()
        opt.tell(trial, f(trial.params))
    engine = engine_of(opt, Auto)
    assert {"x5", "b7"} <= {opt.space.names[v] for v in engine.evidence.found}
    assert opt.best.value is not None
    assert opt.best.value > 1.99
