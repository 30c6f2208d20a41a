"""Models of several functions of the same points."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mctsvs.gp.multi_output import OutputModels, Outputs, bend
from mctsvs.utils.validation import Array


def functions(X: Array) -> Array:
    """(n, 3): a plane, a bent function of two variables, a constant."""
    return np.column_stack([X @ np.arange(X.shape[1]) - 3.0, np.sin(3.0 * X[:, 0]) + X[:, 1] ** 2, np.ones(len(X))])


@pytest.fixture
def outputs() -> Outputs:
    X = np.random.default_rng(0).random((40, 6))
    Y = functions(X)
    Y[::5, 1] = np.nan
    models = OutputModels()
    for _ in range(3):
        found = models.update(X, Y, which=np.arange(3), quota=1)
    return found


def test_means_are_those_of_the_posteriors(outputs: Outputs) -> None:
    z = np.random.default_rng(1).random(6)
    means, gradients = outputs.means(z)
    for block in outputs.blocks:
        k, _ = block.posterior.cross.covariance(z[None])
        own = k[0] @ block.weights + block.offsets - outputs.levels[block.which]
        assert np.allclose(means[block.which], own, atol=1e-8)
    steps = 1e-6 * np.eye(6)
    slopes = np.column_stack([(outputs.means(z + h)[0] - outputs.means(z - h)[0]) / 2e-6 for h in steps])
    assert np.allclose(gradients, slopes, atol=1e-5)


def test_zero_lies_where_it_lies(outputs: Outputs) -> None:
    Z = np.random.default_rng(2).random((50, 6))
    means = np.array([outputs.means(z)[0] for z in Z])
    true = functions(Z)
    assert ((means > 0.0) == (true > 0.0))[:, [0, 2]].all()  # a plane is found, a constant is known
    assert np.corrcoef(means[:, 1], true[:, 1])[0, 1] > 0.95
    assert (outputs.deviations(Z[0]) >= 0.0).all()


def test_parameters_are_fitted_in_turn_and_not_where_all_is_foreseen() -> None:
    rng, models = np.random.default_rng(0), OutputModels()
    X = rng.random((60, 4))
    Y = functions(X)
    fits = []
    for n in range(10, 61):
        models.update(X[:n], Y[:n], which=np.arange(3), quota=1)
        fits.append([model.fitted for model in models.models])
    assert max(sum(a != b for a, b in zip(*pair, strict=True)) for pair in itertools.pairwise(fits)) == 1
    assert fits[-1][0] < fits[-1][1]  # the plane is foreseen


def test_tails_are_pulled_in_and_signs_kept() -> None:
    values = np.array([-1e12, -1.0, 0.0, 1e-3, 2.0, 1e12])
    bent = bend(values, 1.0)
    assert (np.sign(bent) == np.sign(values)).all()
    assert np.abs(bent).max() < 200.0
    assert (np.diff(bent) > 0.0).all()
    assert np.isclose(bent[3], 1e-3, rtol=1e-6)
