"""Likelihood and posterior against independent implementations with the same parameters."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from mctsvs.gp.kernels import Additive
from mctsvs.gp.likelihood import JITTER, Likelihood
from mctsvs.gp.model import KERNELS
from mctsvs.gp.posterior import Posterior
from mctsvs.utils.validation import Array

CASES = [(1, 1), (2, 3), (12, 4), (60, 7), (300, 3)]  # (n, d); 300 is past the blocked path's limit of 256


def data(n: int, d: int, seed: int = 0) -> tuple[Array, Array, Array, Array]:
    """X, y, query points (some of them data points), and d + 1 log kernel parameters."""
    rng = np.random.default_rng([seed, n, d])
    X, Z = rng.random((n, d)), rng.random((9, d))
    Z[0] = X[0]
    y = np.sin(5.0 * X).sum(axis=1) + 0.1 * rng.standard_normal(n)
    return X, y, Z, np.append(rng.uniform(-1.2, 0.8, d), 0.4)


def radial(A: Array, B: Array, lengthscales: Array, kind: str) -> Array:
    """Correlations by the textbook formula, from explicit differences."""
    scaled = (A[:, None, :] - B[None, :, :]) / lengthscales
    squared: Array = (scaled**2).sum(axis=2)
    if kind == "se":
        out: Array = np.exp(-0.5 * squared)
        return out
    r = np.sqrt(5.0 * squared)
    matern: Array = (1.0 + r + r**2 / 3.0) * np.exp(-r)
    return matern


def additive(A: Array, B: Array, lengthscales: Array, kind: str) -> Array:
    d = A.shape[1]
    terms = [radial(A[:, [j]], B[:, [j]], lengthscales[[j]], kind) for j in range(d)]
    mean: Array = np.mean(terms, axis=0)
    return mean


def dense(K: Array, cross: Array, variance: float, y: Array, noise: float) -> tuple[float, Array, Array]:
    """Log marginal likelihood, mean and sd by explicit inversion."""
    A = K + noise * np.eye(len(y))
    inverse = np.linalg.inv(A)
    evidence = -0.5 * y @ inverse @ y - 0.5 * np.linalg.slogdet(A)[1] - 0.5 * len(y) * np.log(2.0 * np.pi)
    sd = np.sqrt(variance - np.einsum("ij,jk,ik->i", cross, inverse, cross))
    return float(evidence), cross @ inverse @ y, sd


@pytest.mark.parametrize(("n", "d"), CASES)
@pytest.mark.parametrize("name", ["matern52", "se"])
def test_agrees_with_scikit_learn(name: str, n: int, d: int) -> None:
    X, y, Z, theta = data(n, d)
    log_noise = np.log(1e-3)
    lengthscales = np.exp(theta[:d])
    shape = Matern(lengthscales, nu=2.5) if name == "matern52" else RBF(lengthscales)
    reference = GaussianProcessRegressor(
        ConstantKernel(np.exp(theta[d])) * shape, alpha=np.exp(log_noise) + JITTER, optimizer=None
    ).fit(X, y)
    full = np.append(theta, log_noise)

    value, _ = Likelihood(KERNELS[name], X, y)(full)
    assert -value == pytest.approx(reference.log_marginal_likelihood_value_, rel=1e-8, abs=1e-8)
    mean, sd = Posterior.of(KERNELS[name], full, X, y).predict(Z)
    expected_mean, expected_sd = reference.predict(Z, return_std=True)
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(sd, expected_sd, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("n", "d"), CASES)
def test_joint_additive_agrees_with_dense_numpy(n: int, d: int) -> None:
    X, y, Z, joint = data(n, d)
    other = np.append(np.random.default_rng(n).uniform(-2.0, 0.0, d), -1.0)
    noise = 1e-3

    def covariance(A: Array, B: Array) -> Array:
        first: Array = np.exp(joint[d]) * radial(A, B, np.exp(joint[:d]), "se")
        second: Array = np.exp(other[d]) * additive(A, B, np.exp(other[:d]), "se")
        return first + second

    theta = np.concatenate([joint, other, [np.log(noise)]])
    variance = float(np.exp(joint[d]) + np.exp(other[d]))
    evidence, expected_mean, expected_sd = dense(covariance(X, X), covariance(Z, X), variance, y, noise + JITTER)
    kernel = KERNELS["joint-additive"]
    value, _ = Likelihood(kernel, X, y)(theta)
    assert -value == pytest.approx(evidence, rel=1e-8, abs=1e-8)
    mean, sd = Posterior.of(kernel, theta, X, y).predict(Z)
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(sd, expected_sd, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("kind", ["matern52", "se"])
def test_additive_alone_agrees_with_dense_numpy(kind: str) -> None:
    X, y, Z, theta = data(20, 5)
    lengthscales, scale = np.exp(theta[:5]), float(np.exp(theta[5]))
    K = scale * additive(X, X, lengthscales, kind)
    evidence, expected_mean, expected_sd = dense(K, scale * additive(Z, X, lengthscales, kind), scale, y, 1e-2 + JITTER)
    kernel = Additive("matern52" if kind == "matern52" else "se")
    full = np.append(theta, np.log(1e-2))
    assert -Likelihood(kernel, X, y)(full)[0] == pytest.approx(evidence, rel=1e-8)
    mean, sd = Posterior.of(kernel, full, X, y).predict(Z)
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(sd, expected_sd, rtol=1e-6, atol=1e-8)


def test_posterior_of_a_single_point_by_hand() -> None:
    """k(x, x) = 2, noise 1 (less the jitter): mean at x is 2/3 y, variance 2 - 4/3."""
    theta = np.array([0.0, np.log(2.0), np.log(1.0 - JITTER)])
    x = np.array([[0.3]])
    mean, sd = Posterior.of(KERNELS["matern52"], theta, x, np.array([1.5])).predict(x)
    assert mean[0] == pytest.approx(1.0, abs=1e-12)
    assert sd[0] == pytest.approx(np.sqrt(2.0 / 3.0), abs=1e-12)
