"""One lengthscale for all codes of a category."""

from __future__ import annotations

import numpy as np
import pytest

from mctsvs.gp.categorical_kernel import TiedLengthscales
from mctsvs.gp.likelihood import Likelihood
from mctsvs.gp.model import KERNELS
from mctsvs.gp.posterior import Posterior
from mctsvs.gp.priors import PRIORS

VARIABLE = np.array([0, 1, 1, 1, 2, 3, 3])
X = np.random.default_rng(0).random((25, 7))
Y = np.random.default_rng(1).standard_normal(25)


@pytest.mark.parametrize("name", ["se", "joint-additive", "matern52", "shared+iso"])
def test_gradient_of_the_likelihood(name: str) -> None:
    prior = PRIORS["found"](KERNELS[name], 4)
    likelihood = Likelihood(TiedLengthscales(KERNELS[name], VARIABLE), X, Y, prior, constant_mean=True)
    theta = prior.start + 0.1
    steps = 1e-6 * np.eye(len(theta))
    expected = [(likelihood(theta + step)[0] - likelihood(theta - step)[0]) / 2e-6 for step in steps]
    np.testing.assert_allclose(likelihood(theta)[1], expected, rtol=1e-4, atol=1e-4)


def test_same_as_equal_lengthscales() -> None:
    kernel, tied = KERNELS["joint-additive"], TiedLengthscales(KERNELS["joint-additive"], VARIABLE)
    theta = np.random.default_rng(2).standard_normal(11) * 0.3
    whole = np.concatenate([theta[:4][VARIABLE], theta[4:5], theta[5:9][VARIABLE], theta[9:]])
    Z = np.random.default_rng(3).random((5, 7))
    mean, sd = Posterior.of(tied, theta, X, Y, constant_mean=True).predict(Z)
    same, as_wide = Posterior.of(kernel, whole, X, Y, constant_mean=True).predict(Z)
    np.testing.assert_allclose(mean, same)
    np.testing.assert_allclose(sd, as_wide)


def test_two_other_choices_are_equally_far() -> None:
    codes = np.eye(4)
    K, _ = (
        TiedLengthscales(KERNELS["se"], np.zeros(4, dtype=np.intp))
        .cross(np.array([-0.5, 0.0]), codes)
        .covariance(codes)
    )
    assert np.allclose(K, K[0, 1] + (1.0 - K[0, 1]) * np.eye(4))
    rng = np.random.default_rng(4)
    frequencies, phases, amplitudes = TiedLengthscales(KERNELS["se"], VARIABLE).features(np.zeros(5), 7, 8, rng)
    assert (frequencies.shape, phases.shape, amplitudes.shape) == ((8, 7), (8,), (8,))
