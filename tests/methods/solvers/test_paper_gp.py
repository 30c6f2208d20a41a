"""The MCTS-VS paper's model: the same as scikit-learn's, and what it proposes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from mctsvs.methods import solvers
from mctsvs.methods.history import History
from mctsvs.methods.solvers import Subspace
from mctsvs.methods.solvers.paper_gp import PaperGP
from mctsvs.utils.validation import Array


def _data(n: int, d: int, width: float) -> tuple[Array, Array]:
    X = np.random.default_rng(n).random((n, d)) * width
    return X, np.sin(3.0 * X[:, 0]) + X[:, 1] ** 2 - 3.0


@pytest.mark.needs("sklearn")
@pytest.mark.parametrize(("n", "d", "width"), [(12, 3, 1.0), (60, 5, 20.0), (80, 40, 1.0)])
def test_fit_and_predictions_are_those_of_scikit_learn(n: int, d: int, width: float) -> None:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern

    X, y = _data(n, d, width)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs: Any = GaussianProcessRegressor(ConstantKernel(1.0) * Matern(1.0, nu=2.5), alpha=0.01).fit(X, y)
    ours = PaperGP.of(X, y)
    np.testing.assert_allclose(ours.theta, theirs.kernel_.theta, rtol=1e-6, atol=1e-6)
    Z = np.random.default_rng(0).random((30, d)) * width
    for found, expected in zip(ours.predict(Z), theirs.predict(Z, return_std=True), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-8)


def test_proposals_are_distinct_candidates_where_improvement_is_expected() -> None:
    X, _ = _data(40, 2, 1.0)
    history = History(2)
    for x in X:
        history.add(x, -5.0 * float(((x - 0.3) ** 2).sum()))
    solver = solvers.make("bo", surrogate="scikit-learn", candidates=256)
    points = solver.propose(3, Subspace(history, np.arange(2), np.empty((0, 2))), np.random.default_rng(1))
    assert len(np.unique(points, axis=0)) == 3
    assert np.abs(points - 0.3).max() < 0.25


def test_many_wide_variables_leave_the_lengthscale_where_it_was() -> None:
    """At twenty units a side no two points are within reach of a lengthscale of one: the likelihood is flat in it."""
    rng = np.random.default_rng(0)
    model = PaperGP.of(rng.random((60, 50)) * 20.0, rng.standard_normal(60) - 20.0)
    assert abs(model.theta[1]) < 1e-6
