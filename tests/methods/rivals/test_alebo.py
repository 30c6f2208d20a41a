"""ALEBO: its polytope, its kernel and the samples of it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import check_grad, linprog

from mctsvs.gp.likelihood import Likelihood
from mctsvs.gp.posterior import Posterior
from mctsvs.gp.priors import Prior
from mctsvs.methods.base import Observation, Pending
from mctsvs.methods.rivals import alebo_kernel
from mctsvs.methods.rivals.alebo import ALEBO, ALEBOOptions, Polytope
from mctsvs.utils.validation import Array


@pytest.fixture
def polytope() -> Polytope:
    return Polytope(np.random.default_rng(0).standard_normal((60, 4)))


class Linear:
    """A surface whose maximum over a polytope a linear program knows."""

    def __init__(self, slope: Array) -> None:
        self.slope = slope

    def __call__(self, Z: Array) -> Array:
        return np.asarray(Z @ self.slope)

    def value_and_gradient(self, Z: Array) -> tuple[Array, Array]:
        return self(Z), np.tile(self.slope, (len(Z), 1))


class Bowl:
    """-|v - centre|^2 with unequal weights."""

    def __init__(self, centre: Array) -> None:
        self.centre, self.weights = centre, np.arange(1.0, len(centre) + 1.0)

    def __call__(self, Z: Array) -> Array:
        return -np.asarray((Z - self.centre) ** 2 @ self.weights)

    def value_and_gradient(self, Z: Array) -> tuple[Array, Array]:
        return self(Z), -2.0 * (Z - self.centre) * self.weights


def test_hit_and_run_stays_inside_and_is_uniform_in_a_cube(polytope: Polytope) -> None:
    rng = np.random.default_rng(1)
    V = polytope.walk(np.zeros((100, 4)), 50, rng)
    assert (np.abs(V @ polytope.G.T) <= 1.0 + 1e-12).all()
    W = Polytope(np.eye(2)).walk(np.zeros((4000, 2)), 40, rng)
    # uniform on [-1, 1]: mean 0 with sd 0.009, mean square 1/3 with sd 0.005; four of them is 6e-5
    assert np.abs(W.mean(axis=0)).max() < 0.036
    assert np.abs((W**2).mean(axis=0) - 1.0 / 3.0).max() < 0.02


def test_climbing_a_plane_reaches_the_vertex_of_the_linear_program(polytope: Polytope) -> None:
    slope = np.array([1.0, -2.0, 0.5, 3.0])
    point, value = polytope.climb(Linear(slope), np.zeros(4), iterations=100)
    G = np.concatenate([polytope.G, -polytope.G])
    best = slope @ linprog(-slope, A_ub=G, b_ub=np.ones(len(G)), bounds=(None, None)).x
    assert np.abs(polytope.G @ point).max() <= 1.0 + 1e-12
    assert value == pytest.approx(best, rel=1e-3)


def test_climbing_a_bowl_inside_reaches_its_top(polytope: Polytope) -> None:
    centre = polytope.walk(np.zeros((1, 4)), 20, np.random.default_rng(2))[0] * 0.5
    point, _ = polytope.climb(Bowl(centre), np.zeros(4))
    assert np.allclose(point, centre, atol=0.02)


def problem(d: int = 3, n: int = 12) -> tuple[Likelihood, Prior, Array]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    prior = alebo_kernel.prior(d)
    likelihood = Likelihood(alebo_kernel.Mahalanobis(), X, np.sin(X @ np.array([1.0, 0.5, 0.0])), prior)
    theta = prior.start + 0.4 * rng.standard_normal(len(prior.start))
    return likelihood, prior, theta


def test_the_kernel_s_gradients() -> None:
    likelihood, _, theta = problem()

    def value(t: Array) -> float:
        return likelihood(t)[0]

    def gradient(t: Array) -> Array:
        return likelihood(t)[1]

    error = check_grad(value, gradient, theta)
    assert error < 1e-4 * float(np.linalg.norm(likelihood(theta)[1]))
    X = np.random.default_rng(1).standard_normal((10, 3))
    posterior = Posterior.of(alebo_kernel.Mahalanobis(), theta, X, X[:, 0])
    mean, sd, pull_back = posterior.predict_with_pull_back(X[:1] + 0.3)
    slope = pull_back(np.ones(1), np.ones(1))[0]
    for i in range(3):
        step = np.zeros((1, 3))
        step[0, i] = 1e-6
        ahead = sum(posterior.predict(X[:1] + 0.3 + step))
        assert (ahead - mean - sd)[0] / 1e-6 == pytest.approx(slope[i], abs=1e-4)


def test_a_diagonal_matrix_is_the_ard_kernel() -> None:
    from mctsvs.gp.kernels import Joint

    X = np.random.default_rng(0).standard_normal((5, 2))
    theta = np.array([2.0, 0.0, 0.5, np.log(1.7)])
    ard = Joint("se").to(np.array([-np.log(2.0), -np.log(0.5), np.log(1.7)]), X)
    assert np.allclose(alebo_kernel.Mahalanobis().to(theta, X).covariance(X)[0], ard.covariance(X)[0])


def test_laplace_samples_surround_the_fit_and_are_no_wider_than_the_prior() -> None:
    likelihood, prior, theta = problem()
    theta = alebo_kernel.most_probable(likelihood, prior, [theta], iterations=60)
    samples = alebo_kernel.laplace(likelihood, prior, theta, 400, np.random.default_rng(0))
    assert (samples[:, -2:] == theta[-2:]).all()
    spread = samples[:, :-2].std(axis=0)
    assert (spread < 1.15).all()  # sd 1 at most, known to 3.5 %: four of them
    assert (spread > 0.0).all()
    assert np.abs(samples.mean(axis=0) - theta).max() < 0.2


def test_points_lie_on_the_embedding_inside_the_box() -> None:
    engine = ALEBO(np.arange(81), np.random.default_rng(0), ALEBOOptions(d=3, samples=4))
    points = []
    for _ in range(30):
        (p,) = engine.propose(1, Pending.of([], 80))
        points.append(2.0 * p.x - 1.0)
        engine.observe([Observation(p.x, float(-np.sum((p.x[:2] - 0.7) ** 2)), p.variables, p.proposal_id)])
    X = np.array(points)
    assert np.abs(X).max() <= 1.0
    assert np.allclose(X @ engine.embedding.Q @ engine.embedding.Q.T, X, atol=1e-10)
    assert np.linalg.matrix_rank(X, tol=1e-8) == 3
