"""Terms that treat all variables alike: against dense numpy, finite differences, and their own single precision."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mctsvs.gp.acquisition import AcquisitionFunction, log_expected_improvement
from mctsvs.gp.isotropic_kernels import Cosines, Isotropic, SharedLengthscale, quadratic
from mctsvs.gp.kernels import Joint, Kernel, Sum
from mctsvs.gp.likelihood import JITTER, Likelihood
from mctsvs.gp.model import KERNELS, LARGEST_FIT, Model, ModelSettings
from mctsvs.gp.posterior import Posterior
from mctsvs.gp.priors import dimension_scaled
from mctsvs.utils.validation import Array, InputError

M = 3
EXACT = Cosines(M, np.float64)
COMPOSITIONS: dict[str, Kernel] = {
    "shared": SharedLengthscale("se"),
    "shared-matern52": SharedLengthscale("matern52"),
    "isotropic": Isotropic(),
    "cosines": EXACT,
    "shared+iso": Sum(SharedLengthscale("se"), Isotropic()),
    "shared+iso+cosines": Sum(SharedLengthscale("se"), Isotropic(), EXACT),
    "matern52+iso+cosines": Sum(SharedLengthscale("matern52"), Isotropic(), EXACT),
    "se+iso+cosines": Sum(Joint("se"), Isotropic(), EXACT),
    "nested": Sum(Joint("se"), Sum(Isotropic(), EXACT)),
}
WHOLE = "shared+iso+cosines"


def data(kernel: Kernel, n: int, d: int) -> tuple[Array, Array, Array]:
    """theta, X, y."""
    rng = np.random.default_rng([n, d])
    X = rng.random((n, d))
    y = np.cos(5.0 * X).sum(axis=1) + rng.standard_normal(n)
    return np.append(rng.uniform(-1.5, 0.0, kernel.size(d)), np.log(0.05)), X, (y - y.mean()) / y.std()


def dense(A: Array, B: Array, theta: Array) -> Array:
    """The whole kernel, as its formula is written."""
    d = A.shape[1]
    squared = ((A[:, None] - B) ** 2).sum(axis=-1)
    q = [((((2 * U - 1) ** 2).sum(axis=1)) - d / 3) / np.sqrt(4 * d / 45) for U in (A, B)]
    K: Array = np.exp(theta[1]) * np.exp(-0.5 * squared / np.exp(2 * theta[0])) + np.exp(theta[2]) * np.outer(*q)
    for m in range(1, M + 1):
        K = K + np.exp(theta[2 + m]) * np.cos(np.pi * m * (A[:, None] - B)).mean(axis=-1)
    return K


def differences(function: Callable[[Array], float], x: Array, step: float = 1e-5) -> Array:
    return np.array([(function(x + step * e) - function(x - step * e)) / (2.0 * step) for e in np.eye(len(x))])


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("name", COMPOSITIONS)
@pytest.mark.parametrize("constant_mean", [False, True])
def test_gradient_of_the_likelihood(name: str, d: int, constant_mean: bool) -> None:
    kernel = COMPOSITIONS[name]
    theta, X, y = data(kernel, 30, d)
    likelihood = Likelihood(kernel, X, y, constant_mean=constant_mean)
    _, gradient = likelihood(theta)
    np.testing.assert_allclose(gradient, differences(lambda t: likelihood(t)[0], theta), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("name", COMPOSITIONS)
def test_gradient_of_mean_and_deviation(name: str, d: int) -> None:
    """One query and several take different routines; far from the data the prior variance dominates the deviation."""
    kernel = COMPOSITIONS[name]
    theta, X, y = data(kernel, 6, d)
    posterior = Posterior.of(kernel, theta, X, y)
    Z = np.random.default_rng(1).random((4, d))
    for part in (Z, Z[:1]):
        _, sd, pull_back = posterior.predict_with_pull_back(part)
        one, zero = np.ones(len(part)), np.zeros(len(part))
        for i, got in enumerate((pull_back(one, zero), pull_back(zero, one))):
            expected = [differences(lambda z, i=i: float(posterior.predict(z[None])[i][0]), z) for z in part]  # type: ignore[misc]
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=2e-6 / sd.min())


@pytest.mark.parametrize("d", [1, 2, 7])
def test_agrees_with_dense_numpy(d: int) -> None:
    kernel = COMPOSITIONS[WHOLE]
    theta, X, y = data(kernel, 25, d)
    Z = np.random.default_rng(2).random((9, d))
    A = dense(X, X, theta) + (np.exp(theta[-1]) + JITTER) * np.eye(25)
    k = dense(Z, X, theta)
    evidence = -0.5 * y @ np.linalg.solve(A, y) - 0.5 * np.linalg.slogdet(A)[1] - 12.5 * np.log(2.0 * np.pi)
    assert -Likelihood(kernel, X, y)(theta)[0] == pytest.approx(evidence, rel=1e-9)
    mean, sd = Posterior.of(kernel, theta, X, y).predict(Z)
    np.testing.assert_allclose(mean, k @ np.linalg.solve(A, y), rtol=1e-8, atol=1e-8)
    variance = np.diag(dense(Z, Z, theta)) - np.einsum("ij,ji->i", k, np.linalg.solve(A, k.T))
    np.testing.assert_allclose(sd, np.sqrt(variance), rtol=1e-7, atol=1e-8)


def test_single_precision_is_far_below_the_noise() -> None:
    theta, X, y = data(COMPOSITIONS[WHOLE], 60, 40)
    theta[-1] = np.log(1e-4)
    Z = np.random.default_rng(3).random((20, 40))
    exact = Posterior.of(COMPOSITIONS[WHOLE], theta, X, y)
    single = Posterior.of(Sum(SharedLengthscale("se"), Isotropic(), Cosines(M)), theta, X, y)
    for one, two in zip(exact.predict(Z), single.predict(Z), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-4)
    surfaces = [AcquisitionFunction(posterior, log_expected_improvement(1.0)) for posterior in (exact, single)]
    one, two = (surface.value_and_gradient(Z)[1] for surface in surfaces)
    np.testing.assert_allclose(one, two, atol=1e-3 * np.abs(one).max())


def test_the_bowl_has_mean_0_and_variance_1_over_the_cube() -> None:
    """z-tests at 5 sigma, two of them: 1e-6 false alarms a run."""
    q = quadratic(np.random.default_rng(4).random((40_000, 12)))
    assert abs(q.mean()) < 5.0 / 200.0
    assert abs((q**2).mean() - 1.0) < 5.0 * (q**2).std() / 200.0


@pytest.mark.parametrize("centre", [0.2, 0.5, 0.8])
def test_a_bowl_is_learnt_from_fewer_points_than_variables(centre: float) -> None:
    """With the isotropic term a model of 40 points of 60 variables predicts a bowl, wherever its bottom is."""
    rng = np.random.default_rng(5)
    X, Z = rng.random((40, 60)), rng.random((200, 60))
    shares = []
    for kernel in ("shared", "shared+iso"):
        settings = ModelSettings(kernel=kernel, prior="dimension-scaled", winsorise=False, constant_mean=True)
        at = np.concatenate([X, [[0.5] * 60]])  # the centre shows that there is a bowl
        values = -((at - centre) ** 2).sum(axis=1)
        mean, _ = Model(settings).update(at, values).predict(np.concatenate([Z, 0.5 + 0.3 * (Z - 0.5)]))
        truth = -((np.concatenate([Z, 0.5 + 0.3 * (Z - 0.5)]) - centre) ** 2).sum(axis=1)
        error = mean - (truth - values.mean()) / values.std()
        shares.append(float((error**2).mean()))
    assert shares[1] < 0.7 * shares[0]


@pytest.mark.parametrize("name", [name for name in KERNELS if "shared" in name or "+" in name])
def test_extension_and_replay(name: str) -> None:
    kernel = KERNELS[name]
    theta, X, y = data(kernel, 40, 4)
    Z = np.random.default_rng(6).random((8, 4))
    grown = Posterior.of(kernel, theta, X[:30], y[:30]).extended(X[30:33], y[:33]).extended(X[33:], y)
    whole = Posterior.of(kernel, theta, X, y)
    for one, two in zip(grown.predict(Z), whole.predict(Z), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-5)  # the cosines are in single precision
    again = Posterior.replay(kernel, theta, X, y, grown.blocks)
    assert np.array_equal(grown.factor, again.factor)
    for one, two in zip(grown.predict(Z), again.predict(Z), strict=True):
        assert np.array_equal(one, two)


def test_features_of_the_cosines_have_their_variance() -> None:
    """z-test at 5 sigma: 6e-7 false alarms a run."""
    theta = np.array([0.0, -1.0, -0.5])
    rng, x, z = np.random.default_rng(7), np.array([0.3, 0.9]), np.array([0.1, 0.6])
    products = np.empty(400)
    for i in range(400):
        frequencies, phases, amplitudes = EXACT.features(theta, 2, 64, rng)
        products[i] = (amplitudes**2 * np.cos(frequencies @ x + phases) * np.cos(frequencies @ z + phases)).sum()
    expected = EXACT.cross(theta, x[None]).covariance(z[None])[0][0, 0]
    assert abs(products.mean() - expected) < 5.0 * products.std() / 20.0


def test_the_isotropic_term_has_no_sample_paths() -> None:
    theta, X, y = data(COMPOSITIONS["shared+iso"], 10, 2)
    with pytest.raises(InputError, match="no sample paths"):
        Posterior.of(COMPOSITIONS["shared+iso"], theta, X, y).sample_path(np.random.default_rng(0))


@pytest.mark.parametrize("d", [1, 60])
def test_prior_numbers(d: int) -> None:
    prior = dimension_scaled(KERNELS["shared+iso+cosines"], d)
    spectrum = np.exp(-0.5 * (0.15 * np.pi * np.arange(1, 6)) ** 2)
    weights = -3.0 + np.log(spectrum / spectrum.sum())
    np.testing.assert_allclose(prior.mean, [np.sqrt(2.0) + 0.5 * np.log(d) - 3.0, 0.0, -4.0, *weights, -5.0])
    np.testing.assert_allclose(prior.sd, [np.sqrt(3.0), 1.0, *[2.0] * 6, 1.0])
    assert prior.low[1] == prior.high[1] == 0.0
    assert len(prior.mean) == KERNELS["shared+iso+cosines"].size(d) + 1


def test_restart_takes_the_better_of_mode_and_last_parameters() -> None:
    """After a fit to noise alone the lengthscale is long; a bowl is then fitted as well as from the mode."""
    rng = np.random.default_rng(8)
    X = rng.random((40, 3))
    settings = ModelSettings(kernel="shared", prior="dimension-scaled", restart=True, iterations=1)
    fresh, used = Model(settings), Model(settings, theta=np.array([11.0, 0.0, 1.5]))
    y = np.sin(5.0 * X).sum(axis=1)
    fresh.update(X, y)
    used.update(X, y)
    assert fresh.theta is not None
    assert used.theta is not None
    assert np.array_equal(fresh.theta, used.theta)


def test_many_points_with_a_shared_lengthscale() -> None:
    rng = np.random.default_rng(9)
    X = rng.random((LARGEST_FIT + 1, 2))
    model = Model(ModelSettings(kernel="shared+iso", prior="dimension-scaled", fit_points=30, iterations=2))
    y = -((X - 0.5) ** 2).sum(axis=1)
    for _ in range(2):
        posterior = model.update(X, y)
        assert X[np.argmax(y)] in posterior.X
    assert len(posterior.X) < LARGEST_FIT
