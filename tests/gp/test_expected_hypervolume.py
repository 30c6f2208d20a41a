"""Expected hypervolume improvement: against draws, against each other, and gradients against differences."""

from __future__ import annotations

import numpy as np
import pytest

from mctsvs.gp.expected_hypervolume import (
    Improvement,
    JointAcquisition,
    LogEHVIByRays,
    LogEHVIOfTwo,
    LogEIOfOne,
    ScaledPosterior,
)
from mctsvs.gp.model import KERNELS
from mctsvs.gp.pareto import hypervolume, non_dominated
from mctsvs.gp.posterior import Posterior
from mctsvs.gp.priors import PRIORS
from mctsvs.utils.validation import Array

REFERENCE = np.array([-0.3, -0.2])


def front_of(M: int, seed: int = 0) -> Array:
    Y = np.random.default_rng(seed).random((30, M))
    return Y[non_dominated(Y)]


def directions(count: int, M: int) -> Array:
    w = np.abs(np.random.default_rng(1).standard_normal((count, M))) + 1e-3
    return np.asarray(w / np.linalg.norm(w, axis=1, keepdims=True))


def by_draws(front: Array, reference: Array, mean: Array, sd: Array, count: int = 4000) -> tuple[float, float]:
    draws = mean + sd * np.random.default_rng(2).standard_normal((count, len(mean)))
    before = hypervolume(front, reference)
    gains = [hypervolume(np.vstack([front, y]), reference) - before for y in draws]
    return float(np.mean(gains)), float(np.std(gains)) / np.sqrt(count)


@pytest.mark.parametrize(
    ("mean", "sd"), [([0.9, 0.9], [0.3, 0.2]), ([0.2, 1.1], [0.5, 0.1]), ([-0.5, 0.4], [0.4, 0.6])]
)
def test_closed_form_is_the_mean_of_draws(mean: list[float], sd: list[float]) -> None:
    front, m, s = front_of(2), np.array(mean), np.array(sd)
    expected, error = by_draws(front, REFERENCE, m, s)
    value = float(np.exp(LogEHVIOfTwo(front, REFERENCE)(m[None], s[None])[0]))
    assert abs(value - expected) < 4.0 * error  # fails once in 16,000 seeds


def test_points_beyond_the_reference_do_not_count() -> None:
    front = np.array([[0.5, 0.5], [2.0, -1.0], [-1.0, 2.0]])
    mean, sd = np.array([[0.6, 0.4]]), np.array([[0.3, 0.3]])
    alone = LogEHVIOfTwo(front[:1], REFERENCE)(mean, sd)
    assert LogEHVIOfTwo(front, REFERENCE)(mean, sd) == pytest.approx(alone)
    nothing = LogEHVIOfTwo(front[1:], REFERENCE)(mean, sd)
    ei = [LogEIOfOne(k, REFERENCE[k])(mean, sd) for k in (0, 1)]
    assert nothing == pytest.approx(ei[0] + ei[1])


def test_rays_order_points_as_the_closed_form_does() -> None:
    front, rng = front_of(2), np.random.default_rng(3)
    mean, sd = rng.uniform(0.5, 1.2, (60, 2)), rng.uniform(0.02, 0.2, (60, 2))
    exact = LogEHVIOfTwo(front, REFERENCE)(mean, sd)
    rays = LogEHVIByRays(front, REFERENCE, directions(2000, 2))(mean, sd)
    near = exact > -8.0
    assert np.ptp((rays - exact)[near]) < 0.25
    assert np.corrcoef(rays, exact)[0, 1] > 0.99


def test_rays_in_three_objectives_are_the_mean_of_draws_up_to_a_constant() -> None:
    front, reference = front_of(3), np.full(3, -0.2)
    points = [([0.9, 0.9, 0.8], [0.1, 0.1, 0.1]), ([0.6, 1.0, 0.7], [0.2, 0.05, 0.1]), ([0.3, 0.8, 1.1], [0.2] * 3)]
    rays = LogEHVIByRays(front, reference, directions(3000, 3))
    ratios = []
    for mean, sd in points:
        m, s = np.array(mean), np.array(sd)
        ratios.append(float(np.exp(rays(m[None], s[None])[0])) / by_draws(front, reference, m, s, 1500)[0])
    assert np.ptp(ratios) < 0.15 * np.mean(ratios)


IMPROVEMENTS: list[Improvement] = [
    LogEHVIOfTwo(front_of(2), REFERENCE),
    LogEHVIOfTwo(np.empty((0, 2)), REFERENCE),
    LogEHVIByRays(front_of(2), REFERENCE, directions(48, 2)),
    LogEHVIByRays(np.array([[-1.0, -1.0]]), REFERENCE, directions(48, 2)),  # nothing is better than the reference
    LogEIOfOne(1, 0.9),
]


@pytest.mark.parametrize("improvement", IMPROVEMENTS)
def test_slopes_are_those_of_differences(improvement: Improvement) -> None:
    rng = np.random.default_rng(4)
    mean, sd = rng.uniform(-0.5, 1.2, (20, 2)), rng.uniform(0.05, 0.5, (20, 2))
    value, d_mean, d_sd = improvement.with_slopes(mean, sd)
    assert value == pytest.approx(improvement(mean, sd))
    for k in (0, 1):
        step = 1e-6 * np.eye(2)[k]
        by_mean = (improvement(mean + step, sd) - improvement(mean - step, sd)) / 2e-6
        by_sd = (improvement(mean, sd + step) - improvement(mean, sd - step)) / 2e-6
        assert d_mean[:, k] == pytest.approx(by_mean, rel=1e-4, abs=1e-5)
        assert d_sd[:, k] == pytest.approx(by_sd, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("improvement", IMPROVEMENTS)
def test_values_far_from_the_data_are_finite(improvement: Improvement) -> None:
    mean, sd = np.array([[-30.0, -40.0], [0.5, 0.5], [3.0, -50.0]]), np.array([[0.01, 0.01], [1e-7, 1e-7], [0.1, 0.1]])
    assert all(np.isfinite(part).all() for part in improvement.with_slopes(mean, sd))


def test_gradient_in_the_points() -> None:
    rng = np.random.default_rng(5)
    X, kernel = rng.random((25, 4)), KERNELS["shared+iso"]
    theta = PRIORS["objective"](kernel, 4).start
    theta[-1] = -4.0  # noise enough that differences are not rounding
    values = np.column_stack([X[:, 0] + X[:, 1] ** 2, 1.0 - X[:, 0] + X[:, 2] ** 2])
    posteriors = [ScaledPosterior(Posterior.of(kernel, theta, X, y, constant_mean=True), 0.3, 2.0) for y in values.T]
    acqf = JointAcquisition(posteriors, LogEHVIOfTwo(front_of(2), REFERENCE))
    Z = rng.random((6, 4))
    value, gradient = acqf.value_and_gradient(Z)
    assert value == pytest.approx(acqf(Z))
    for j in range(4):
        step = 1e-6 * np.eye(4)[j]
        assert gradient[:, j] == pytest.approx((acqf(Z + step) - acqf(Z - step)) / 2e-6, rel=1e-3, abs=1e-5)
