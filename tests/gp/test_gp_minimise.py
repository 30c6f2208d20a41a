"""The projected quasi-Newton method: against scipy's, inside its bounds, and cheap when started warm."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import Bounds, minimize

from mctsvs.gp.likelihood import FAILED, Likelihood
from mctsvs.gp.model import KERNELS, STATIONARY, fit
from mctsvs.gp.priors import subspace
from mctsvs.gp.quasi_newton import Pairs, minimise
from mctsvs.utils.validation import Array

Function = Callable[[Array], tuple[float, Array]]


def quadratic(d: int, seed: int, condition: float = 30.0) -> Function:
    """Convex, its unconstrained minimum partly outside the unit box."""
    rng = np.random.default_rng([d, seed])
    Q, _ = np.linalg.qr(rng.standard_normal((d, d)))
    H = (Q * np.geomspace(1.0, condition, d)) @ Q.T
    centre = rng.uniform(-0.7, 1.7, d)

    def function(x: Array) -> tuple[float, Array]:
        slope = H @ (x - centre)
        return 0.5 * float(slope @ (x - centre)), slope

    return function


def data(n: int, d: int = 5) -> tuple[Array, Array]:
    rng = np.random.default_rng(3)
    X = rng.random((n, d))
    y = np.sin(5.0 * X[:, 0]) + X[:, 1] ** 2 + 0.3 * X[:, 2] * X[:, 3]
    return X, (y - y.mean()) / y.std()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("d", [1, 2, 6, 15])
def test_box_constrained_quadratics(d: int, seed: int) -> None:
    function, low, high = quadratic(d, seed), np.zeros(d), np.ones(d)
    x, value = minimise(function, np.full(d, 0.5), low, high, [], iterations=500, tolerance=1e-13)
    reference = minimize(
        function,
        np.full(d, 0.5),
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(low, high),
        options={"ftol": 1e-15, "gtol": 1e-10},
    )
    assert value == pytest.approx(float(reference.fun), rel=1e-7, abs=1e-9)
    np.testing.assert_allclose(x, reference.x, atol=1e-4)


def test_a_narrow_valley_that_ends_at_a_bound() -> None:
    """Condition 1000; the minimum on the bound x1 = 1 is 0.14977, one and a half per cent below where it stops."""
    rng = np.random.default_rng([2, 12, 1000])
    Q, _ = np.linalg.qr(rng.standard_normal((2, 2)))
    H = (Q * np.array([1.0, 1000.0])) @ Q.T
    centre = rng.uniform(-0.7, 1.7, 2)

    def function(x: Array) -> tuple[float, Array]:
        slope = H @ (x - centre)
        return 0.5 * float(slope @ (x - centre)), slope

    _, value = minimise(function, np.full(2, 0.5), np.zeros(2), np.ones(2), [], iterations=500, tolerance=1e-13)
    assert value == pytest.approx(0.149772333, rel=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_never_leaves_the_bounds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    low, high = -rng.random(6), rng.random(6)
    low[2] = high[2] = 0.25  # equal bounds fix a parameter
    inner = quadratic(6, seed, 1e4)
    seen: list[Array] = []

    def function(x: Array) -> tuple[float, Array]:
        seen.append(x.copy())
        return inner(x)

    # an old pair from an unrelated problem must not lead outside either
    pairs: Pairs = [(rng.standard_normal(6), rng.standard_normal(6)) for _ in range(4)]
    x, value = minimise(function, np.full(6, 9.0), low, high, pairs, iterations=100)
    for point in [*seen, x]:
        assert (point >= low).all()
        assert (point <= high).all()
    assert x[2] == 0.25
    assert value == inner(x)[0]


def test_never_returns_worse_than_the_start() -> None:
    def bumpy(x: Array) -> tuple[float, Array]:
        return float(np.cos(25.0 * x).sum()), -25.0 * np.sin(25.0 * x)

    rng = np.random.default_rng(1)
    for start in rng.random((20, 3)):
        x, value = minimise(bumpy, start, np.zeros(3), np.ones(3), [])
        assert value <= bumpy(start)[0]
        assert value == bumpy(x)[0]


def test_steps_into_a_region_of_failure_are_shortened() -> None:
    """Beyond 0.6 nothing can be computed; the minimum of the rest is at 0.5."""

    def function(x: Array) -> tuple[float, Array]:
        if x[0] > 0.6:
            return FAILED, np.zeros(1)
        return float((x[0] - 0.5) ** 2), 2.0 * (x - 0.5)

    x, _ = minimise(function, np.zeros(1), np.zeros(1), np.ones(1), [], first_step=0.9, tolerance=1e-12)
    assert x[0] == pytest.approx(0.5, abs=1e-4)


def test_failure_everywhere_returns_the_start() -> None:
    theta, value = minimise(lambda x: (FAILED, np.zeros(2)), np.full(2, 0.3), np.zeros(2), np.ones(2), [])
    assert value == FAILED
    assert np.array_equal(theta, [0.3, 0.3])


def test_iterations_and_memory_are_limits() -> None:
    calls = 0
    inner = quadratic(15, 0, 1e5)

    def function(x: Array) -> tuple[float, Array]:
        nonlocal calls
        calls += 1
        return inner(x)

    pairs: Pairs = []
    minimise(function, np.full(15, 0.5), -np.ones(15) * 9, np.ones(15) * 9, pairs, iterations=25, tolerance=0, memory=4)
    assert len(pairs) == 4
    assert calls >= 10
    calls = 0
    minimise(function, np.full(15, 0.5), -np.ones(15) * 9, np.ones(15) * 9, [], iterations=1, tolerance=0)
    assert calls <= 8  # the start and one line search


@pytest.mark.parametrize("name", list(STATIONARY))
def test_fit_finds_what_scipy_finds(name: str) -> None:
    """From the same start: scipy's optimum is at most 0.1 nats better, the loose tolerance's price."""
    kernel = KERNELS[name]
    X, y = data(40)
    prior = subspace(kernel, 5)
    likelihood = Likelihood(kernel, X, y, prior)
    theta = fit(Likelihood(kernel, X, y, prior), prior, prior.start, [], iterations=200)
    reference = minimize(likelihood, prior.start, jac=True, method="L-BFGS-B", bounds=Bounds(prior.low, prior.high))
    assert likelihood(theta)[0] <= float(reference.fun) + 0.1
    assert likelihood(theta)[0] < likelihood(prior.start)[0] - 5.0
    # the three variables in use matter more than the one that is not: shorter lengthscales
    assert theta[:2].max() < theta[4]


@pytest.mark.parametrize("name", list(STATIONARY))
def test_a_warm_refit_is_cheaper_than_a_cold_one(name: str) -> None:
    kernel = KERNELS[name]
    X, y = data(81)
    prior = subspace(kernel, 5)

    def run(n: int, start: Array, pairs: Pairs) -> tuple[Array, float, int]:
        likelihood = Likelihood(kernel, X[:n], y[:n], prior)
        theta, value = minimise(likelihood, start, prior.low, prior.high, pairs)
        return theta, value, likelihood.evaluations

    kept: Pairs = []
    theta, _, _ = run(80, prior.start, kept)
    assert kept
    _, cold_value, cold = run(81, prior.start, [])
    _, warm_value, warm = run(81, theta, kept)
    assert warm < 0.6 * cold
    assert warm_value <= cold_value + 0.1


def test_curvature_pairs_save_evaluations_beyond_the_warm_start() -> None:
    """Refits after every tenth point, same starts, with the pairs kept and thrown away."""
    kernel = KERNELS["matern52"]
    prior = subspace(kernel, 5)
    X, y = data(120)

    def total(keep: bool) -> int:
        pairs: Pairs = []
        theta, evaluations = prior.start, 0
        for n in range(40, 121, 10):
            likelihood = Likelihood(kernel, X[:n], y[:n], prior)
            theta, _ = minimise(likelihood, theta, prior.low, prior.high, pairs, tolerance=1e-4)
            evaluations += likelihood.evaluations
            if not keep:
                pairs = []
        return evaluations

    assert total(keep=True) < total(keep=False)
