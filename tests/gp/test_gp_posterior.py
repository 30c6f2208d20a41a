"""Posterior: extension by new points, exact replay, and drawn sample paths."""

from __future__ import annotations

import numpy as np
import pytest

from mctsvs.gp.kernels import Joint
from mctsvs.gp.likelihood import JITTER
from mctsvs.gp.model import KERNELS, STATIONARY
from mctsvs.gp.posterior import Posterior
from mctsvs.utils.validation import Array


def data(name: str, n: int, d: int = 3, noise: float = 1e-3) -> tuple[Array, Array, Array]:
    """theta, X, y."""
    rng = np.random.default_rng([n, d])
    X = rng.random((n, d))
    y = np.sin(6.0 * X).sum(axis=1)
    return np.append(rng.uniform(-1.0, 0.0, KERNELS[name].size(d)), np.log(noise)), X, y


def same(one: Posterior, two: Posterior) -> bool:
    """Bit for bit."""
    return (
        np.array_equal(one.factor, two.factor)
        and np.array_equal(one.weights, two.weights)
        and np.array_equal(one.X, two.X)
        and np.array_equal(one.y, two.y)
        and one.jitter == two.jitter
        and one.blocks == two.blocks
    )


@pytest.mark.parametrize("blocks", [(1, 1), (5, 1, 1, 1), (20, 30), (40, 3, 7), (290, 20)])
@pytest.mark.parametrize("name", list(STATIONARY))
def test_extended_equals_conditioning_on_everything(name: str, blocks: tuple[int, ...]) -> None:
    n = sum(blocks)
    theta, X, y = data(name, n)
    Z = np.random.default_rng(1).random((12, 3))
    grown = Posterior.of(KERNELS[name], theta, X[: blocks[0]], y[: blocks[0]])
    for end in np.cumsum(blocks)[1:]:
        grown = grown.extended(X[len(grown.X) : end], y[:end])
    whole = Posterior.of(KERNELS[name], theta, X, y)
    assert grown.blocks == blocks
    assert whole.blocks == (n,)
    np.testing.assert_allclose(grown.factor, whole.factor, atol=1e-8)
    for one, two in zip(grown.predict(Z), whole.predict(Z), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-8, atol=1e-8)


def test_extension_takes_new_values_for_the_old_points_too() -> None:
    theta, X, y = data("matern52", 20)
    Z = np.random.default_rng(1).random((5, 3))
    first = Posterior.of(KERNELS["matern52"], theta, X[:15], y[:15])
    before = first.predict(Z)
    grown = first.extended(X[15:], 3.0 * y - 1.0)
    whole = Posterior.of(KERNELS["matern52"], theta, X, 3.0 * y - 1.0)
    np.testing.assert_allclose(grown.predict(Z)[0], whole.predict(Z)[0], atol=1e-8)
    after = first.predict(Z)
    assert np.array_equal(before[0], after[0]), "extension changed the old posterior"
    assert np.array_equal(before[1], after[1])


def test_no_new_points_only_change_the_values() -> None:
    theta, X, y = data("se", 12)
    first = Posterior.of(KERNELS["se"], theta, X, y)
    other = first.extended(X[:0], -y)
    assert other.blocks == (12,)
    assert np.array_equal(other.factor, first.factor)
    assert np.array_equal(other.weights, -first.weights)
    assert same(other, first.with_values(-y))


@pytest.mark.parametrize("blocks", [(4,), (1, 1, 1), (30, 5, 1, 2), (270, 15, 15)])
@pytest.mark.parametrize("name", list(STATIONARY))
def test_replay_is_bit_for_bit(name: str, blocks: tuple[int, ...]) -> None:
    theta, X, y = data(name, sum(blocks))
    Z = np.random.default_rng(2).random((6, 3))
    rng = np.random.default_rng(3)
    grown = Posterior.of(KERNELS[name], theta, X[: blocks[0]].copy(), y[: blocks[0]])
    for end in np.cumsum(blocks)[1:]:  # values on the way are standardised otherwise; only the last ones count
        values = y if end == len(y) else rng.standard_normal(end)
        grown = grown.extended(X[len(grown.X) : end].copy(), values)
    again = Posterior.replay(KERNELS[name], theta, X, y, blocks)
    assert same(grown, again)
    for one, two in zip(grown.predict(Z), again.predict(Z), strict=True):
        assert np.array_equal(one, two)


@pytest.mark.parametrize("name", list(STATIONARY))
def test_extension_by_duplicates_does_not_raise(name: str) -> None:
    theta, X, y = data(name, 10)
    theta[-1] = -60.0  # no noise: only the jitter keeps the copies apart
    posterior = Posterior.of(KERNELS[name], theta, X, y)
    for copies in (X[:1], X, np.repeat(X[:2], 20, axis=0), X[:1] + 1e-12):
        values = np.append(posterior.y, np.zeros(len(copies)))
        posterior = posterior.extended(copies, values)
        mean, sd = posterior.predict(X)
        assert np.isfinite(mean).all()
        assert np.isfinite(sd).all()
        assert (sd > 0.0).all()


def test_more_jitter_when_the_factorisation_fails_and_replay_still_exact() -> None:
    """A huge outputscale drowns the usual jitter, so that extension has to start again with a larger one."""
    kernel = Joint("se")
    theta = np.array([3.0, 3.0, 20.0, -60.0])
    rng = np.random.default_rng(4)
    X = rng.random((60, 2))
    first = Posterior.of(kernel, theta, X[:3], np.zeros(3))
    grown = first.extended(X[3:], np.zeros(60))
    assert grown.jitter > JITTER
    assert np.isfinite(grown.predict(X)[1]).all()
    assert same(grown, Posterior.replay(kernel, theta, X, np.zeros(60), grown.blocks))


@pytest.mark.parametrize("name", list(STATIONARY))
def test_predictions_return_to_the_prior_far_away_and_to_the_data_nearby(name: str) -> None:
    kernel = KERNELS[name]
    theta = np.append(np.full(kernel.size(2), -4.0), -16.0)
    theta[2] = 0.6
    X = np.array([[0.1, 0.1], [0.2, 0.15]])
    posterior = Posterior.of(kernel, theta, X, np.array([1.0, -2.0]))
    mean, sd = posterior.predict(np.array([[0.9, 0.9]]))
    assert abs(mean[0]) < 1e-6
    assert sd[0] == pytest.approx(np.sqrt(posterior.cross.variance(X[:1])), rel=1e-6)
    mean, sd = posterior.predict(X)
    np.testing.assert_allclose(mean, [1.0, -2.0], atol=1e-5)
    assert (sd < 1e-3).all()


@pytest.mark.parametrize("name", list(STATIONARY))
def test_sample_paths_have_the_posteriors_mean_and_variance(name: str) -> None:
    """z-tests at 5 sigma: three kernels, 6 points, 2 moments, 36 tests at 5.7e-7 each: 2e-5 false alarms a run.

    The random features' second moments are exact for every number of features, so few of them keep this fast; the
    standard error of the variance comes from the draws, because features are not exactly Gaussian.
    """
    theta, X, y = data(name, 8, noise=1e-2)
    Z = np.concatenate([X[:1], np.random.default_rng(5).random((4, 3)), [[1.0, 0.0, 1.0]]])
    posterior = Posterior.of(KERNELS[name], theta, X, y)
    mean, sd = posterior.predict(Z)
    rng = np.random.default_rng(6)
    draws = np.array([posterior.sample_path(rng, 32)(Z) for _ in range(6000)])
    root = np.sqrt(len(draws))
    z_mean = (draws.mean(axis=0) - mean) / (draws.std(axis=0) / root)
    squares = (draws - mean) ** 2
    z_variance = (squares.mean(axis=0) - sd**2) / (squares.std(axis=0) / root)
    assert np.abs(z_mean).max() < 5.0
    assert np.abs(z_variance).max() < 5.0


@pytest.mark.parametrize(("d", "size"), [(3, 64), (20, 64), (40, 64)])
def test_features_carry_the_whole_prior_variance(d: int, size: int) -> None:
    """Averaged over 300 draws the features' variance is the prior's; half of the features are the additive term's.

    z-test at 5 sigma, three tests: 2e-6 false alarms a run.
    """
    kernel = KERNELS["joint-additive"]
    theta = np.concatenate([np.zeros(d), [-1.0], np.full(d, -1.0), [1.0]])
    rng = np.random.default_rng(10)
    z = rng.random(d)
    squares = np.empty(300)
    for i in range(300):
        frequencies, phases, amplitudes = kernel.features(theta, d, size, rng)
        squares[i] = ((amplitudes * np.cos(frequencies @ z + phases)) ** 2).sum()
    error = squares.std() / np.sqrt(300)
    assert abs(squares.mean() - kernel.cross(theta, z[None]).variance(z[None])) < 5.0 * error


@pytest.mark.parametrize("name", list(STATIONARY))
def test_sample_paths_follow_the_generator(name: str) -> None:
    theta, X, y = data(name, 8)
    posterior = Posterior.of(KERNELS[name], theta, X, y)
    one, two, other = (posterior.sample_path(np.random.default_rng(seed))(X) for seed in (7, 7, 8))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)


def test_sample_paths_pass_through_noiseless_data() -> None:
    theta, X, y = data("matern52", 12, noise=1e-8)
    path = Posterior.of(KERNELS["matern52"], theta, X, y).sample_path(np.random.default_rng(9))
    np.testing.assert_allclose(path(X), y, atol=1e-3)


def test_a_constant_mean_is_the_generalised_least_squares_one() -> None:
    """Against the textbook formula c = 1'A^-1 y / 1'A^-1 1, and far from all data the prediction is c."""
    rng = np.random.default_rng(3)
    X, y = rng.random((30, 2)), rng.standard_normal(30) + 5.0
    kernel = KERNELS["se"]
    theta = np.log([0.05, 0.05, 1.0, 0.01])
    posterior = Posterior.of(kernel, theta, X, y, constant_mean=True)
    squared = ((X[:, None] - X) ** 2).sum(axis=-1) / 0.05**2
    A = np.exp(-0.5 * squared) + (0.01 + posterior.jitter) * np.eye(30)
    ones = np.linalg.solve(A, np.ones(30))
    assert posterior.offset == pytest.approx(ones @ y / ones.sum(), rel=1e-8)
    mean, _ = posterior.predict(np.full((1, 2), 9.0))
    assert mean[0] == pytest.approx(posterior.offset)
    longer = posterior.extended(np.array([[0.5, 0.5]]), np.append(y, 7.0))
    again = Posterior.of(kernel, theta, longer.X, longer.y, constant_mean=True)
    assert longer.predict(X)[0] == pytest.approx(again.predict(X)[0], abs=1e-6)


@pytest.mark.parametrize("constant_mean", [False, True])
def test_values_left_out_are_those_of_a_model_without_them(constant_mean: bool) -> None:
    rng = np.random.default_rng(3)
    X, y = rng.random((12, 3)), rng.standard_normal(12)
    kernel, theta = KERNELS["se"], np.log([0.4, 0.5, 0.6, 1.0, 0.01])
    posterior = Posterior.of(kernel, theta, X, y, constant_mean=constant_mean)
    for i in range(len(y)):
        kept = np.arange(len(y)) != i
        without = Posterior.of(kernel, theta, X[kept], y[kept] - posterior.offset)
        mean, _ = without.predict(X[i][None])
        assert posterior.left_out[i] == pytest.approx(mean[0] + posterior.offset, abs=1e-6)
