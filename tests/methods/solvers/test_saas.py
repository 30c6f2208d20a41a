"""SAAS with most probable parameters: sparsity, options, good points in mixed and in many variables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mctsvs import Optimizer, testing
from mctsvs.methods.history import History
from mctsvs.methods.solvers import Subspace
from mctsvs.methods.solvers.saas import SAAS, SAASOptions
from mctsvs.testing import MIXED, mixed_objective
from mctsvs.utils.validation import InputError


def test_variables_that_matter_have_the_shortest_lengthscales() -> None:
    rng = np.random.default_rng(0)
    history = History(100)
    for x in rng.random((60, 100)):
        history.add(x, float(np.sin(5.0 * x[17]) + 2.0 * (x[64] - 0.3) ** 2))
    solver = SAAS(SAASOptions())
    points = solver.propose(2, Subspace(history, np.arange(100), np.empty((0, 100))), rng)
    assert points.shape == (2, 100)
    assert ((points >= 0.0) & (points <= 1.0)).all()
    assert solver.members is not None
    for theta in solver.members.thetas:
        assert set(np.argsort(theta[:100])[:2].tolist()) == {17, 64}
        assert np.exp(-2.0 * np.median(theta[:100])) < 0.2  # the idle ones stay about or below tau
    assert solver.members.weights.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("options", [{"average": "improvement"}, {"weights": "leave-one-out", "kernel": "se"}])
@pytest.mark.parametrize("check", testing.CHECKS[1:5], ids=lambda check: check.__name__)
def test_other_options_conform(check: Any, options: dict[str, Any]) -> None:
    check("saas", {**options, "fit_iterations": 10, "taus": [0.1, 0.01]})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kernel": "joint-additive"}, "unknown kernel 'joint-additive'"),
        ({"average": "mean"}, "unknown average 'mean'"),
        ({"weights": "equal"}, "unknown weights 'equal'"),
        ({"taus": []}, r"taus=\[\]"),
        ({"taus": [0.1, 0.0]}, "taus=0.0"),
        ({"fit_points": 0}, "fit_points=0"),
        ({"refit_growth": 0.5}, "refit_growth=0.5"),
        ({"fit_iterations": 0}, "fit_iterations=0"),
    ],
)
def test_options_are_checked(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        SAASOptions(**options)


def test_more_points_than_a_posterior_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mctsvs.methods.solvers.saas.LARGEST_FIT", 40)
    monkeypatch.setattr("mctsvs.methods.solvers.saas.NEAREST", 20)
    rng = np.random.default_rng(0)
    history = History(3)
    for x in rng.random((60, 3)):
        history.add(x, float(-((x - 0.4) ** 2).sum()))
    solver = SAAS(SAASOptions(fit_points=30))
    (point,) = solver.propose(1, Subspace(history, np.arange(3), np.empty((0, 3))), rng)
    assert np.linalg.norm(point - 0.4) < 0.15


@pytest.mark.parametrize("method", ["saas", "mcts-vs-saas"])
def test_hundred_evaluations_in_a_mixed_space(method: str) -> None:
    opt = Optimizer(MIXED, method=method, seed=0)
    for _ in range(100):
        (trial,) = opt.ask()
        opt.tell(trial, mixed_objective(trial.params))
    assert opt.best.value is not None
    assert opt.best.value < 0.3  # the optimum is 8 / 512


@pytest.mark.parametrize(("method", "bar"), [("saas", 0.01), ("mcts-vs-saas", 0.3)])
def test_hundred_evaluations_in_200_variables(method: str, bar: float) -> None:
    opt = Optimizer([(0.0, 1.0)] * 200, method=method, seed=0)
    for _ in range(100):
        (trial,) = opt.ask()
        opt.tell(trial, float((trial.x[7] - 0.2) ** 2 + 2.0 * (trial.x[30] - 0.6) ** 2))
    assert opt.best.value is not None
    assert opt.best.value < bar
