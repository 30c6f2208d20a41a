"""The SAAS prior and averages over several posteriors: densities, gradients, leave-one-out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import halfcauchy, norm

from mctsvs.gp.acquisition import AcquisitionLike, expected_improvement, log_expected_improvement
from mctsvs.gp.ensemble import Ensemble, ImprovementAcquisition, MomentAcquisition, leave_one_out
from mctsvs.gp.kernels import Joint
from mctsvs.gp.posterior import Posterior
from mctsvs.methods.solvers.saas import half_cauchy, log_tau_density
from mctsvs.utils.validation import Array

KERNEL = Joint("matern52")


def ensemble_of(n: int = 12, d: int = 3) -> Ensemble:
    rng = np.random.default_rng(0)
    X, y = rng.random((n, d)), rng.standard_normal(n)
    thetas = np.concatenate([rng.normal(-0.5, 0.5, (3, d)), np.full((3, 1), 0.2), np.full((3, 1), -4.0)], axis=1)
    shifts = np.array([0.0, 0.3, -0.4])
    members = tuple(Posterior.of(KERNEL, t, X, y - s) for t, s in zip(thetas, shifts, strict=True))
    return Ensemble(members, np.array([0.5, 0.2, 0.3]), shifts)


@pytest.mark.parametrize("tau", [0.1, 1e-3])
def test_penalty_is_the_half_cauchy_density_over_log_rho(tau: float) -> None:
    prior = half_cauchy(KERNEL, 4, tau)
    t = np.linspace(-2.0, 5.0, 40)
    found = []
    for value in t:
        theta = prior.start.copy()
        theta[1] = value
        found.append(prior.penalty(theta)[0])
    rho = np.exp(-2.0 * t)
    difference = np.array(found) + halfcauchy.logpdf(rho, scale=tau) + np.log(rho)
    np.testing.assert_allclose(difference, difference[0], atol=1e-9)


def test_penalty_gradient() -> None:
    prior = half_cauchy(KERNEL, 5, 0.05)
    theta = prior.start + np.random.default_rng(0).standard_normal(7)
    _, gradient = prior.penalty(theta)
    for i in range(7):
        step = 1e-6 * np.eye(7)[i]
        expected = (prior.penalty(theta + step)[0] - prior.penalty(theta - step)[0]) / 2e-6
        assert gradient[i] == pytest.approx(expected, rel=1e-6, abs=1e-7)


def test_mode_of_the_lengthscale_is_at_tau() -> None:
    prior = half_cauchy(KERNEL, 2, 0.01)
    theta = prior.start.copy()
    theta[:2] = -0.5 * np.log(0.01)
    np.testing.assert_allclose(prior.penalty(theta)[1][:2], 0.0, atol=1e-12)


def test_weights_of_tau() -> None:
    """The half-Cauchy density of scale 0.1 in log tau."""
    taus = np.array([1.0, 0.1, 0.01])
    expected = halfcauchy.logpdf(taus, scale=0.1) + np.log(taus)
    found = np.array([log_tau_density(tau) for tau in taus])
    np.testing.assert_allclose(found - found[0], expected - expected[0], atol=1e-12)


def test_moments_are_those_of_the_mixture() -> None:
    ensemble = ensemble_of()
    Z = np.random.default_rng(1).random((4, 3))
    seen: list[tuple[Array, Array]] = []

    def spy(mean: Array, sd: Array) -> tuple[Array, Array, Array]:
        seen.append((mean, sd))
        return mean, mean, sd

    MomentAcquisition(ensemble, spy)(Z)
    rng = np.random.default_rng(2)
    pairs = [m.predict(Z) for m in ensemble.members]
    which = rng.choice(3, 400_000, p=ensemble.weights)
    for i in range(4):
        means = np.array([m[i] for m, _ in pairs]) + ensemble.shifts
        sds = np.array([s[i] for _, s in pairs])
        drawn = rng.normal(means[which], sds[which])
        assert seen[0][0][i] == pytest.approx(drawn.mean(), abs=0.02)  # standard error 0.002
        assert seen[0][1][i] == pytest.approx(drawn.std(), abs=0.02)


def test_averaged_improvement() -> None:
    ensemble = ensemble_of()
    Z = np.random.default_rng(1).random((5, 3))
    total = np.zeros(5)
    for member, w, shift in zip(ensemble.members, ensemble.weights, ensemble.shifts, strict=True):
        mean, sd = member.predict(Z)
        total += w * expected_improvement(0.7)(mean + shift, sd)[0]
    np.testing.assert_allclose(ImprovementAcquisition(ensemble, 0.7)(Z), np.log(total), rtol=1e-9)


@pytest.mark.parametrize("lies", [0, 2])
@pytest.mark.parametrize("kind", ["moments", "improvement"])
def test_surface_gradients(kind: str, lies: int) -> None:
    ensemble = ensemble_of().with_fantasies(np.random.default_rng(5).random((lies, 3)), -1.0)
    surface: AcquisitionLike = ImprovementAcquisition(ensemble, 0.7)
    if kind == "moments":
        surface = MomentAcquisition(ensemble, log_expected_improvement(0.7))
    Z = np.random.default_rng(3).random((4, 3))
    value, gradient = surface.value_and_gradient(Z)
    np.testing.assert_allclose(value, surface(Z), rtol=1e-9)
    for j in range(3):
        step = 1e-6 * np.eye(3)[j]
        expected = (surface(Z + step) - surface(Z - step)) / 2e-6
        np.testing.assert_allclose(gradient[:, j], expected, rtol=1e-4, atol=1e-6)


def test_leave_one_out_is_what_its_name_says() -> None:
    rng = np.random.default_rng(0)
    X, y, theta = rng.random((9, 2)), rng.standard_normal(9), np.array([-0.5, -0.2, 0.1, -3.0])
    expected = 0.0
    for i in range(9):
        rest = np.arange(9) != i
        mean, sd = Posterior.of(KERNEL, theta, X[rest], y[rest]).predict(X[i : i + 1])
        expected += float(norm.logpdf(y[i], mean[0], np.sqrt(sd[0] ** 2 + np.exp(-3.0))))
    assert leave_one_out(Posterior.of(KERNEL, theta, X, y)) == pytest.approx(expected, rel=1e-5)
