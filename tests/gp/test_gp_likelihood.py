"""Gradient of the likelihood against finite differences, and the buffers it reuses."""

from __future__ import annotations

import numpy as np
import pytest

from mctsvs.gp.kernels import Additive, Joint, Kernel, Sum
from mctsvs.gp.likelihood import FAILED, JITTER, Likelihood
from mctsvs.gp.model import KERNELS, STATIONARY
from mctsvs.gp.priors import dimension_scaled, subspace
from mctsvs.methods.rivals.alebo import Mahalanobis
from mctsvs.utils.validation import Array

STEP = 1e-5


def problem(kernel: Kernel, n: int, d: int, *, prior: bool) -> tuple[Likelihood, Array]:
    """A likelihood and a point that is no optimum: every component of the gradient is at work."""
    rng = np.random.default_rng([n, d])
    X = rng.random((n, d))
    y = rng.standard_normal(n) + 2.0 * X[:, 0]
    theta = np.append(rng.uniform(-1.5, 0.5, kernel.size(d)), np.log(0.05))
    return Likelihood(kernel, X, y, subspace(kernel, d) if prior else None), theta


def differences(likelihood: Likelihood, theta: Array) -> Array:
    out = np.empty_like(theta)
    for i in range(len(theta)):
        step = np.zeros_like(theta)
        step[i] = STEP
        out[i] = (likelihood(theta + step)[0] - likelihood(theta - step)[0]) / (2.0 * STEP)
    return out


@pytest.mark.parametrize("prior", [False, True])
@pytest.mark.parametrize("n", [1, 2, 7, 40, 256, 257, 300])  # row blocks begin above 256
@pytest.mark.parametrize("name", list(STATIONARY))
def test_gradient(name: str, n: int, prior: bool) -> None:
    likelihood, theta = problem(KERNELS[name], n, 3, prior=prior)
    _, gradient = likelihood(theta)
    np.testing.assert_allclose(gradient, differences(likelihood, theta), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize(
    "kernel",
    [
        Additive("matern52"),
        Additive("se"),
        Sum(Joint("matern52"), Additive("se")),
        Sum(Mahalanobis(), Additive("se")),  # blocks of other sizes
        Sum(Joint("se"), Additive("se"), Additive("matern52")),
    ],
)
def test_gradient_of_other_compositions(kernel: Kernel) -> None:
    likelihood, theta = problem(kernel, 25, 4, prior=False)
    _, gradient = likelihood(theta)
    np.testing.assert_allclose(gradient, differences(likelihood, theta), rtol=2e-6, atol=2e-6)
    X = np.random.default_rng(0).random((3, 4))
    cross = kernel.cross(theta[:-1], X)
    np.testing.assert_allclose(np.diag(cross.covariance(X)[0]), cross.variance(X))


@pytest.mark.parametrize("n", [7, 300])
@pytest.mark.parametrize("name", list(STATIONARY))
def test_repeated_calls_do_not_see_each_other(name: str, n: int) -> None:
    likelihood, theta = problem(KERNELS[name], n, 3, prior=True)
    value, gradient = likelihood(theta)
    kept = gradient.copy()
    for shift in (0.5, -0.5):
        likelihood(theta + shift)
    again, gradient_again = likelihood(theta)
    assert again == value
    assert np.array_equal(gradient_again, kept)
    assert np.array_equal(gradient, kept), "an earlier result was overwritten"
    fresh_value, fresh_gradient = problem(KERNELS[name], n, 3, prior=True)[0](theta)
    assert fresh_value == value
    assert np.array_equal(fresh_gradient, kept)
    assert likelihood.evaluations == 4


@pytest.mark.parametrize("name", list(STATIONARY))
def test_prior_adds_its_penalty(name: str) -> None:
    kernel = KERNELS[name]
    plain, theta = problem(kernel, 7, 3, prior=False)
    penalised, _ = problem(kernel, 7, 3, prior=True)
    penalty, slope = subspace(kernel, 3).penalty(theta)
    assert penalised(theta)[0] == pytest.approx(plain(theta)[0] + penalty, rel=1e-14)
    np.testing.assert_allclose(penalised(theta)[1], plain(theta)[1] + slope, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", list(STATIONARY))
def test_data_are_left_alone_whatever_their_layout(name: str) -> None:
    kernel = KERNELS[name]
    rng = np.random.default_rng(5)
    wide = rng.random((30, 8))
    X, y = wide[:, ::2], rng.standard_normal(30)  # not contiguous
    before, y_before = wide.copy(), y.copy()
    theta = np.append(np.full(kernel.size(4), -0.5), -3.0)
    theta_before = theta.copy()
    strided = Likelihood(kernel, X, y)(theta)
    plain = Likelihood(kernel, X.copy(order="F"), y)(theta)
    assert strided[0] == plain[0]
    assert np.array_equal(strided[1], plain[1])
    assert np.array_equal(wide, before)
    assert np.array_equal(y, y_before)
    assert np.array_equal(theta, theta_before)


def test_a_matrix_that_cannot_be_factorised_gives_a_huge_value_and_no_slope() -> None:
    """Outputscale e^25 drowns noise and jitter: the Gram matrix of copies is singular in 64 bits."""
    X = np.full((40, 2), 0.5)
    X[:, 0] += 1e-13 * np.arange(40)
    value, gradient = Likelihood(KERNELS["se"], X, np.zeros(40))(np.array([5.0, 5.0, 25.0, -40.0]))
    assert value == FAILED
    assert not gradient.any()


def test_jitter_is_what_the_reference_tests_assume() -> None:
    assert JITTER == 1e-8


def test_gradient_under_an_unknown_constant_mean() -> None:
    rng = np.random.default_rng(5)
    X, y = rng.random((25, 3)), rng.standard_normal(25) + 2.0
    kernel = KERNELS["se"]
    likelihood = Likelihood(kernel, X, y, dimension_scaled(kernel, 3), constant_mean=True)
    theta = np.log([0.4, 0.7, 1.1, 1.0, 0.02])
    value, gradient = likelihood(theta)
    for i in range(len(theta)):
        step = np.zeros(5)
        step[i] = 1e-5
        slope = (likelihood(theta + step)[0] - likelihood(theta - step)[0]) / 2e-5
        assert gradient[i] == pytest.approx(slope, rel=1e-4, abs=1e-5)
    moved = Likelihood(kernel, X, y + 10.0, dimension_scaled(kernel, 3), constant_mean=True)
    assert moved(theta)[0] == pytest.approx(value, abs=1e-6)
