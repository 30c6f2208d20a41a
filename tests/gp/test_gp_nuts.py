"""The sampler draws from the densities it is given, and that of the SAAS model is the one written down."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import cdist

from mctsvs.methods.solvers import nuts
from mctsvs.methods.solvers.saas import SAASPosterior
from mctsvs.utils.validation import Array


def test_moments_of_a_normal_density_whose_scales_differ_by_a_thousand() -> None:
    """Mean and variance of thinned draws: a false alarm in 10,000 if they were independent (|z| > 4.1 of eight)."""
    sd = np.array([0.01, 1.0, 10.0, 3.0])
    draws = nuts.sample(
        lambda z: (-0.5 * float(((z / sd) ** 2).sum()), -z / sd**2),
        np.ones(4),
        np.random.default_rng(0),
        warmup=300,
        steps=4000,
        thinning=2,
        tree_depth=8,
    )
    n = len(draws)
    assert np.abs((draws / sd).mean(axis=0)).max() < 4.1 / np.sqrt(n)
    assert np.abs(((draws / sd) ** 2).mean(axis=0) - 1.0).max() < 4.1 * np.sqrt(2.0 / n)


def test_quantiles_of_a_skewed_density() -> None:
    """log x of x ~ Gamma(2, 1): Kolmogorov's distance, a false alarm in 1,000."""

    def density(z: Array) -> tuple[float, Array]:
        return float(2.0 * z[0] - np.exp(z[0])), 2.0 - np.exp(z)

    draws = nuts.sample(
        density, np.zeros(1), np.random.default_rng(1), warmup=200, steps=6000, thinning=4, tree_depth=6
    )
    assert stats.kstest(np.exp(draws[:, 0]), stats.gamma(2.0).cdf).pvalue > 1e-3


def test_no_draw_comes_from_where_the_density_ends() -> None:
    def density(z: Array) -> tuple[float, Array]:
        return (float(-0.5 * z @ z), -z) if z[0] > 0 else (-np.inf, np.zeros(2))

    draws = nuts.sample(density, np.ones(2), np.random.default_rng(2), warmup=100, steps=500, thinning=1, tree_depth=6)
    assert draws[:, 0].min() > 0
    assert len(np.unique(draws[:, 0])) > 250


def test_the_same_generator_draws_the_same() -> None:
    X = np.random.default_rng(0).random((10, 3))
    density = SAASPosterior(X, X[:, 0] - X[:, 0].mean())
    steps = {"warmup": 30, "steps": 10, "thinning": 5, "tree_depth": 4}
    one, two = (nuts.sample(density, np.zeros(7), np.random.default_rng(3), **steps) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert one.shape == (2, 7)


@pytest.mark.parametrize("warmup", [1, 19, 20, 40, 149, 150, 256, 1000])
def test_windows_end_in_order_before_the_step_size_is_tuned_last(warmup: int) -> None:
    ends = nuts.windows(warmup)
    assert ends == sorted(set(ends))
    assert all(0 < end < warmup for end in ends)
    assert bool(ends) == (warmup >= 20)


def test_the_sparse_density_is_the_product_of_its_parts() -> None:
    """Against scipy's densities and a covariance written out; at two points, since constants are left out."""
    rng = np.random.default_rng(4)
    X, y = rng.random((9, 4)), rng.standard_normal(9)
    density = SAASPosterior(X, y)

    def expected(z: Array) -> float:
        c, tau, outputscale, noise, mean = np.exp(z[:4]), *np.exp(z[4:7]), z[7]
        lengthscale = 1.0 / np.sqrt(tau * c)
        r = np.sqrt(5.0) * cdist(X / lengthscale, X / lengthscale)
        K = outputscale * (1.0 + r + r**2 / 3.0) * np.exp(-r) + (noise + 1e-6 + 1e-8) * np.eye(9)
        parts = [
            stats.halfcauchy.logpdf(c).sum(),
            stats.halfcauchy(scale=0.1).logpdf(tau),
            stats.gamma(2.0, scale=1 / 0.15).logpdf(outputscale),
            stats.gamma(0.9, scale=0.1).logpdf(noise),
            stats.norm.logpdf(mean),
            z[:7].sum(),  # the Jacobian of the logarithms
            stats.multivariate_normal(np.full(9, mean), K).logpdf(y),
        ]
        return float(np.sum(parts))

    one, two = rng.normal(0.0, 0.7, 8), rng.normal(0.0, 0.7, 8)
    assert density(one)[0] - density(two)[0] == pytest.approx(expected(one) - expected(two), rel=1e-9)


def test_the_sparse_density_has_its_gradient() -> None:
    rng = np.random.default_rng(5)
    density = SAASPosterior(rng.random((12, 5)), rng.standard_normal(12))
    z, h = rng.normal(0.0, 0.7, 9), 1e-5
    differences = [(density(z + h * e)[0] - density(z - h * e)[0]) / (2.0 * h) for e in np.eye(9)]
    np.testing.assert_allclose(density(z)[1], differences, rtol=1e-6, atol=1e-7)


def test_where_nothing_can_be_computed_the_density_is_zero() -> None:
    density = SAASPosterior(np.random.default_rng(6).random((5, 2)), np.arange(5.0))
    assert density(np.full(6, 1e3))[0] == -np.inf
    assert density(np.full(6, np.nan))[0] == -np.inf
