"""Acquisition functions: values, derivatives, far tails, and the confidence width of Theorem 4.2."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from mctsvs.gp.acquisition import (
    Acquisition,
    AcquisitionFunction,
    beta_schedule,
    expected_improvement,
    log_expected_improvement,
    probability_of_improvement,
    upper_confidence_bound,
)
from mctsvs.gp.model import KERNELS, STATIONARY
from mctsvs.gp.posterior import Posterior
from mctsvs.utils.validation import Array

BEST = 0.7
MAKERS: dict[str, Callable[[], Acquisition]] = {
    "ei": lambda: expected_improvement(BEST),
    "log-ei": lambda: log_expected_improvement(BEST),
    "ucb": lambda: upper_confidence_bound(9.0),
    "pi": lambda: probability_of_improvement(BEST),
}


def posterior(name: str, d: int = 4, n: int = 30) -> Posterior:
    kernel = KERNELS[name]
    rng = np.random.default_rng(11)
    X = rng.random((n, d))
    y = np.cos(4.0 * X).sum(axis=1)
    theta = np.append(rng.uniform(-1.0, 0.0, kernel.size(d)), np.log(1e-2))
    return Posterior.of(kernel, theta, X, (y - y.mean()) / y.std())


def differences(function: Callable[[Array], Array], Z: Array, step: float = 1e-5) -> Array:
    out = np.empty_like(Z)
    for j in range(Z.shape[1]):
        shift = np.zeros(Z.shape[1])
        shift[j] = step
        out[:, j] = (function(Z + shift) - function(Z - shift)) / (2.0 * step)
    return out


@pytest.mark.parametrize("kind", list(MAKERS))
@pytest.mark.parametrize("name", list(STATIONARY))
def test_gradient_in_the_query_points(name: str, kind: str) -> None:
    surface = AcquisitionFunction(posterior(name), MAKERS[kind]())
    Z = np.random.default_rng(12).uniform(0.05, 0.95, (8, 4))
    value, gradient = surface.value_and_gradient(Z)
    np.testing.assert_allclose(value, surface(Z), rtol=1e-12)
    np.testing.assert_allclose(gradient, differences(surface, Z), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", list(STATIONARY))
def test_gradient_of_a_sample_path(name: str) -> None:
    path = posterior(name).sample_path(np.random.default_rng(13))
    Z = np.random.default_rng(14).uniform(0.05, 0.95, (8, 4))
    value, gradient = path.value_and_gradient(Z)
    np.testing.assert_allclose(value, path(Z), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(gradient, differences(path, Z), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("kind", list(MAKERS))
def test_partial_derivatives(kind: str) -> None:
    acquisition = MAKERS[kind]()
    mean, sd = (a.ravel() for a in np.meshgrid(np.linspace(-4.0, 3.0, 15), [0.2, 0.7, 2.0]))
    value, d_mean, d_sd = acquisition(mean, sd)
    h = 1e-6
    np.testing.assert_allclose(
        d_mean, (acquisition(mean + h, sd)[0] - acquisition(mean - h, sd)[0]) / (2 * h), rtol=1e-6, atol=1e-8
    )
    np.testing.assert_allclose(
        d_sd, (acquisition(mean, sd + h)[0] - acquisition(mean, sd - h)[0]) / (2 * h), rtol=1e-6, atol=1e-8
    )
    assert value.shape == mean.shape


@pytest.mark.parametrize(("mean", "sd"), [(0.1, 0.5), (0.7, 1.0), (2.0, 0.3), (-1.0, 0.6)])
def test_values_equal_their_defining_integrals(mean: float, sd: float) -> None:
    def one(kind: str) -> float:
        return float(MAKERS[kind]()(np.array([mean]), np.array([sd]))[0][0])

    law = norm(mean, sd)
    improvement, _ = quad(lambda f: (f - BEST) * law.pdf(f), BEST, max(mean, BEST) + 12.0 * sd, epsabs=1e-12)
    assert one("ei") == pytest.approx(improvement, rel=1e-6)
    assert one("log-ei") == pytest.approx(np.log(improvement), abs=1e-6)
    assert one("pi") == pytest.approx(np.log(law.sf(BEST)), abs=1e-10)
    assert one("ucb") == pytest.approx(mean + 3.0 * sd, rel=1e-14)


def test_log_ei_is_the_logarithm_of_ei_where_that_can_be_represented() -> None:
    # phi(u) + u Phi(u) cancels: its relative error is about eps u^2, so u = -8 still has twelve digits or so
    u = np.linspace(-8.0, 30.0, 400)
    for sd in (1e-3, 1.0, 50.0):
        mean, deviation = BEST + u * sd, np.full_like(u, sd)
        expected = np.log(expected_improvement(BEST)(mean, deviation)[0])
        np.testing.assert_allclose(log_expected_improvement(BEST)(mean, deviation)[0], expected, rtol=1e-10, atol=1e-8)


def test_log_ei_against_the_asymptotic_series() -> None:
    """log h(u) = -u^2/2 - log(sqrt(2 pi) u^2) + log(1 - 3/u^2 + 15/u^4 - ...) far below zero."""
    u = -np.array([60.0, 200.0, 900.0, 1100.0, 1e4, 1e6])
    value, d_mean, d_sd = log_expected_improvement(0.0)(u, np.ones_like(u))
    series = -0.5 * u**2 - 0.5 * np.log(2.0 * np.pi) - 2.0 * np.log(-u)
    np.testing.assert_allclose(value - series, -3.0 / u**2, atol=1e-5 + 1e-15 * u[-1] ** 2)
    np.testing.assert_allclose(d_mean, -u, rtol=1e-2)  # Phi/h = |u| (1 + 2/u^2 - ...)
    np.testing.assert_allclose(d_sd, u**2, rtol=1e-2)


def test_log_ei_is_finite_and_monotone_far_below_the_best() -> None:
    # finely around the two places where the formula changes, u = -1 and u = -1000
    u = np.unique(
        np.concatenate(
            [
                -np.geomspace(1e-3, 1e6, 4000),
                np.linspace(-1.01, -0.99, 501),
                np.linspace(-1000.1, -999.9, 501),
                np.linspace(0.0, 40.0, 100),
            ]
        )
    )
    value, d_mean, d_sd = log_expected_improvement(0.0)(u, np.ones_like(u))
    for array in (value, d_mean, d_sd):
        assert np.isfinite(array).all()
    assert (np.diff(value) > 0.0).all()
    assert (d_mean > 0.0).all()
    assert (d_sd[u < 5.0] > 0.0).all()  # above, phi(u) / h(u) drowns in the rounding of 1 - u Phi(u) / h(u)


def test_log_probability_of_improvement_is_finite_and_monotone_far_below_the_best() -> None:
    u = -np.geomspace(1e6, 1e-3, 2000)
    value, d_mean, d_sd = probability_of_improvement(0.0)(u, np.ones_like(u))
    for array in (value, d_mean, d_sd):
        assert np.isfinite(array).all()
    assert (np.diff(value) > 0.0).all()


def test_beta_schedule_by_hand() -> None:
    """t = 3, d = 2, D = 10, delta = 0.4, a = 2, b = 0.5, r = 3; pi_3 = pi^2 9/6.

    log(4 D a / delta) = log 200 = 5.298317, root 2.301807; inside the logarithm 2 * 9 * 0.5 * 3 * 2.301807 = 62.148778,
    its logarithm 4.129530; 4 pi_3 / delta = 148.044066, its logarithm 4.997510.
    beta = 2 * 4.997510 + 2 * 2 * 4.129530 = 26.513142.
    """
    assert beta_schedule(3, 2, 10, delta=0.4, a=2.0, b=0.5, r=3.0) == pytest.approx(26.513142, abs=5e-6)


def test_beta_schedule_defaults_by_hand() -> None:
    """t = d = D = 1: 2 log(40 pi^2/6) + 2 log sqrt(log 40) = 8.373 + 1.305."""
    expected = 2.0 * np.log(40.0 * np.pi**2 / 6.0) + np.log(np.log(40.0))
    assert beta_schedule(1, 1, 1) == pytest.approx(expected, rel=1e-14)
    assert beta_schedule(1, 1, 1) == pytest.approx(9.679, abs=2e-3)


def test_beta_schedule_weights_sum_to_one() -> None:
    """pi_t enters as 2 log pi_t: with d = 0 nothing else depends on t, and sum 1 / pi_t must be one."""
    t = np.arange(1, 20_001)
    # beta(d=1) - 2 log(t^2 sqrt(log 40)) = 2 log(40 pi_t)
    weights = [
        np.exp(0.5 * (beta_schedule(int(i), 1, 1) - 2.0 * np.log(i**2 * np.sqrt(np.log(40.0))))) / 40.0 for i in t
    ]
    assert float(np.sum(1.0 / np.array(weights))) == pytest.approx(1.0, abs=1e-4)


def test_beta_schedule_grows() -> None:
    in_t = [beta_schedule(t, 5, 100) for t in range(1, 200)]
    in_d = [beta_schedule(7, d, 100) for d in range(1, 101)]
    in_D = [beta_schedule(7, 5, D) for D in range(5, 100)]
    for values in (in_t, in_d, in_D):
        assert (np.diff(values) > 0.0).all()
    assert in_t[0] > 0.0
    assert beta_schedule(7, 5, 100, delta=0.01) > beta_schedule(7, 5, 100, delta=0.1)
