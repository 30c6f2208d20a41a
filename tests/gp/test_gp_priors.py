"""Priors: the penalty's gradient, the documented numbers, and what a density over lengthscales means."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import lognorm, norm

from mctsvs.gp.model import KERNELS, STATIONARY
from mctsvs.gp.priors import PRIORS, Prior, dimension_scaled, subspace
from mctsvs.utils.validation import Array

JOINT = KERNELS["matern52"]


def penalty_of(prior: Prior, index: int, values: Array) -> Array:
    """The penalty as a function of one log parameter, the others at their means."""
    theta = np.tile(prior.mean, (len(values), 1))
    theta[:, index] = values
    return np.array([prior.penalty(t)[0] for t in theta])


@pytest.mark.parametrize("prior_name", list(PRIORS))
@pytest.mark.parametrize("name", list(KERNELS))
def test_penalty_gradient(name: str, prior_name: str) -> None:
    prior = PRIORS[prior_name](KERNELS[name], 5)
    theta = prior.mean + np.random.default_rng(0).standard_normal(len(prior.mean))
    _, gradient = prior.penalty(theta)
    h = 1e-6
    for i in range(len(theta)):
        step = np.zeros_like(theta)
        step[i] = h
        expected = (prior.penalty(theta + step)[0] - prior.penalty(theta - step)[0]) / (2.0 * h)
        assert gradient[i] == pytest.approx(expected, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("d", [1, 6, 40])
@pytest.mark.parametrize("prior_name", list(PRIORS))
@pytest.mark.parametrize("name", list(KERNELS))
def test_shapes_and_order(name: str, prior_name: str, d: int) -> None:
    kernel = KERNELS[name]
    prior = PRIORS[prior_name](kernel, d)
    for array in (prior.mean, prior.sd, prior.low, prior.high):
        assert array.shape == (kernel.size(d) + 1,)
        assert np.isfinite(array).all()
    assert (prior.low <= prior.high).all()
    assert (prior.sd > 0.0).all()
    assert (prior.start >= prior.low).all()
    assert (prior.start <= prior.high).all()
    if name in STATIONARY:
        assert len(set(prior.mean[:d])) == 1  # all lengthscales alike


@pytest.mark.parametrize("d", [4, 5, 20, 40])
def test_subspace_numbers(d: int) -> None:
    """The research note's: log l ~ N(log 0.5 + 1/4 log(d/4), 0.7), noise ~ N(log 1e-3, 2), outputscale ~ N(0, 1)."""
    prior = subspace(JOINT, d)
    np.testing.assert_allclose(np.exp(prior.mean[:d]), 0.5 * (d / 4.0) ** 0.25, rtol=1e-12)
    np.testing.assert_allclose(prior.sd, [*[0.7] * d, 1.0, 2.0])
    np.testing.assert_allclose(np.exp(prior.mean[d:]), [1.0, 1e-3], rtol=1e-12)
    np.testing.assert_allclose(np.exp(prior.low), [*[5e-3] * d, 1e-2, 1e-6], rtol=1e-12)
    np.testing.assert_allclose(np.exp(prior.high), [*[1.6e5] * d, 1e2, 1.0], rtol=1e-12)


def test_subspace_sd_can_be_widened() -> None:
    prior = subspace(JOINT, 100, sd=1.2)
    np.testing.assert_allclose(prior.sd[:100], 1.2)
    np.testing.assert_allclose(prior.sd[100:], [1.0, 2.0])


@pytest.mark.parametrize("d", [1, 10, 300])
def test_dimension_scaled_mode_is_that_of_the_density_over_lengthscales(d: int) -> None:
    mu, s = np.sqrt(2.0) + 0.5 * np.log(d), np.sqrt(3.0)
    mode = np.exp(mu - 3.0)
    found = minimize_scalar(
        lambda t: -float(lognorm.logpdf(np.exp(t), s, scale=np.exp(mu))),
        bounds=(mu - 8.0, mu + 4.0),
        method="bounded",
        options={"xatol": 1e-9},
    )
    assert np.exp(found.x) == pytest.approx(mode, rel=1e-5)
    prior = dimension_scaled(JOINT, d)
    np.testing.assert_allclose(np.exp(prior.mean[:d]), mode, rtol=1e-12)
    best = minimize_scalar(
        lambda t: float(penalty_of(prior, 0, np.array([t]))[0]), bounds=(mu - 8.0, mu + 4.0), method="bounded"
    )
    assert np.exp(best.x) == pytest.approx(mode, rel=1e-4)


@pytest.mark.parametrize(("index", "mu", "s"), [(0, np.sqrt(2.0) + 0.5 * np.log(10.0), np.sqrt(3.0)), (-1, -4.0, 1.0)])
def test_dimension_scaled_is_the_log_normal_density_up_to_a_constant(index: int, mu: float, s: float) -> None:
    prior = dimension_scaled(JOINT, 10)
    t = np.linspace(-8.0, 4.0, 50)
    difference = penalty_of(prior, index, t) + lognorm.logpdf(np.exp(t), s, scale=np.exp(mu))
    np.testing.assert_allclose(difference, difference[0], atol=1e-9)


def test_subspace_is_a_normal_density_over_the_logarithm() -> None:
    prior = subspace(JOINT, 20)
    t = np.linspace(-4.0, 3.0, 50)
    difference = penalty_of(prior, 0, t) + norm.logpdf(t, np.log(0.5) + 0.25 * np.log(5.0), 0.7)
    np.testing.assert_allclose(difference, difference[0], atol=1e-9)


@pytest.mark.parametrize("name", list(STATIONARY))
def test_dimension_scaled_fixes_the_outputscale_and_bounds_the_noise(name: str) -> None:
    prior = dimension_scaled(KERNELS[name], 7)
    assert prior.low[7] == prior.high[7] == prior.start[7] == 0.0
    assert prior.low[-1] == pytest.approx(np.log(1e-4))


def test_a_model_of_all_variables_alike_expects_hardly_any_noise() -> None:
    kernel = KERNELS["shared+iso+cosines"]
    ordinary, alike = dimension_scaled(kernel, 60), PRIORS["alike"](kernel, 60)
    assert np.array_equal(alike.mean[:-1], ordinary.mean[:-1])
    assert np.array_equal(alike.low[:-1], ordinary.low[:-1])
    assert alike.mean[-1] < ordinary.mean[-1]
    assert np.exp(alike.low[-1]) == pytest.approx(1e-6)
    noisy = np.append(alike.mean[:-1], np.log(0.1))  # which a few values pay for
    assert alike.penalty(noisy)[0] < 4.0
