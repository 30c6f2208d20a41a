"""Steps close to the best point, by a quadratic model."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mctsvs.methods.auto.local_quadratic import LEAST, RADIUS, LocalQuadratic, Quadratic, Regression, Step
from mctsvs.utils.validation import Array, Indices

D = 6


def run(f: Callable[[Array], Array], d: int, points: int, batch: int = 1, seed: int = 0) -> tuple[Array, Array]:
    """All points (n, d) and outputs (n, 1 + m) of a run of the local arm alone; the loss is the first output."""
    rng = np.random.default_rng(seed)
    X = 0.5 + 0.2 * (rng.random((d + 2, d)) - 0.5)
    Y = np.array([f(x) for x in X])
    local = LocalQuadratic()

    def order(Y: Array) -> Indices:
        over = np.maximum(Y[:, 1:], 0.0).sum(axis=1)
        return np.lexsort([np.where(over > 0.0, 0.0, Y[:, 0]), over])

    while len(X) < points:
        best = int(order(Y)[0])
        steps = [local.propose(X, Y, best, rng, beside=k > 0) for k in range(batch)]
        for step in steps:
            X, Y = np.vstack([X, step.x]), np.vstack([Y, f(step.x)])
            better = int(order(Y[[best, -1]])[0]) == 1
            local.learn(step, float(Y[best, 0] - Y[-1, 0]) if better else -1.0)
    return X, Y


def bowl(x: Array) -> Array:
    weights = np.logspace(0, 3, len(x))
    return np.array([float(weights @ (x - 0.3) ** 2)])


def test_a_bowl_is_solved_to_the_last_digits() -> None:
    _, Y = run(bowl, D, 60)
    assert Y.min() < 1e-10


def test_points_of_a_batch_differ_and_find_the_bottom_too() -> None:
    X, Y = run(bowl, D, 150, batch=10)
    assert len(np.unique(X, axis=0)) == len(X)
    assert Y.min() < 1e-6


def test_a_narrow_valley_is_followed() -> None:
    def valley(x: Array) -> Array:
        z = 4.0 * (x - 0.5)
        return np.array([float((100.0 * (z[1:] - z[:-1] ** 2) ** 2 + (1.0 - z[:-1]) ** 2).sum())])

    _, Y = run(valley, 2, 150)
    assert Y.min() < 1e-8


@pytest.mark.parametrize("batch", [1, 10])
def test_measured_constraints_hold_at_the_best_point(batch: int) -> None:
    """The best allowed point of the bowl is where a plane touches it: by hand."""

    def f(x: Array) -> Array:
        return np.array([float(((x - 0.3) ** 2).sum()), 2.0 - x.sum()])

    _, Y = run(f, D, 200, batch)
    feasible = Y[:, 1] <= 0.0
    least = D * (2.0 / D - 0.3) ** 2
    assert Y[feasible, 0].min() == pytest.approx(least, rel=0.02)
    assert (Y[feasible, 0] >= least).all()


def test_points_stay_in_the_cube() -> None:
    X, Y = run(lambda x: np.array([float(x.sum())]), D, 40)
    assert X.min() >= 0.0
    assert X.max() <= 1.0
    assert Y.min() == 0.0


def test_failures_of_one_region_count_once() -> None:
    local = LocalQuadratic(radius=0.1)
    for _ in range(50):
        local.learn(Step(np.zeros(D), 0.1, 0.1), -1.0)
    assert local.radius == pytest.approx(0.095)


def test_a_success_is_not_undone_by_failures_beside_it() -> None:
    local = LocalQuadratic(radius=0.1)
    local.learn(Step(np.zeros(D), 0.1, 0.1, promise=1.0), 1.0)
    assert local.radius == pytest.approx(0.2)
    local.learn(Step(np.zeros(D), 0.1, 0.1), -np.inf)
    assert local.radius == pytest.approx(0.2)


def test_a_region_that_is_too_small_begins_again() -> None:
    local = LocalQuadratic(radius=LEAST)
    local.learn(Step(np.zeros(D), LEAST, LEAST, promise=1.0), -1.0)
    assert local.radius == RADIUS


def test_a_quadratic_is_told_exactly_by_points_enough() -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((D, D))
    exact = Quadratic(rng.standard_normal(D), A @ A.T)
    S = rng.standard_normal((60, D)) / np.sqrt(D)
    fitted = Regression(S).fit(np.array([exact(s) for s in S]), None)
    assert np.allclose(fitted.slope, exact.slope, atol=1e-3)
    assert np.allclose(fitted.hessian, exact.hessian, atol=1e-2)


@given(st.integers(0, 10**6), st.integers(1, 8))
def test_the_minimum_is_in_the_ball_between_bounds_and_no_worse_than_its_centre(seed: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((d, d))
    model = Quadratic(rng.standard_normal(d), A + A.T)
    low, high = -rng.random(d), rng.random(d)
    step = model.minimum(low, high)
    assert np.linalg.norm(step) <= 1.0 + 1e-12
    assert ((step >= low - 1e-12) & (step <= high + 1e-12)).all()


def test_values_times_a_power_of_two_give_the_same_points() -> None:
    (X, _), (Z, _) = run(bowl, D, 30), run(lambda x: 1024.0 * bowl(x), D, 30)
    assert np.array_equal(X, Z)
