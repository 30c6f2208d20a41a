"""LASSO-VS: finds variables with a linear effect, counts categories as one, is random where nothing is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mctsvs import Optimizer
from mctsvs.methods.history import History
from mctsvs.methods.selectors import Lasso, LassoOptions
from mctsvs.testing import MIXED, mixed_objective
from mctsvs.utils.validation import Array, InputError

pytest.importorskip("sklearn")


def history_of(X: Array, y: Array) -> History:
    history = History(X.shape[1])
    for x, value in zip(X, y, strict=True):
        history.add(x, float(value))
    return history


@pytest.mark.parametrize("alpha", [None, 0.05])
def test_linear_effects_are_found(alpha: float | None) -> None:
    rng = np.random.default_rng(0)
    X = rng.random((80, 200))
    y = 3.0 * X[:, 5] - 2.0 * X[:, 77] + X[:, 150] + 0.1 * rng.standard_normal(80)
    selector = Lasso(200, LassoOptions(d=3, alpha=alpha))
    assert selector.next(history_of(X, y), np.arange(200), rng).tolist() == [5, 77, 150]
    assert selector.iteration == 1


def test_coordinates_of_a_category_are_summed() -> None:
    """Neither of the category's coordinates has the largest coefficient, their sum has."""
    rng = np.random.default_rng(1)
    X = rng.random((100, 5))
    y = 2.0 * X[:, 0] + 1.5 * X[:, 3] - 1.5 * X[:, 4]
    owner = np.array([0, 1, 2, 3, 3])
    assert Lasso(4, LassoOptions(d=1, alpha=1e-3)).next(history_of(X, y), owner, rng).tolist() == [3]


@pytest.mark.parametrize("rows", [0, 3, 40])
def test_without_evidence_the_choice_is_random_and_complete(rows: int) -> None:
    """No points, too few of them, or a constant objective."""
    rng = np.random.default_rng(0)
    history = history_of(rng.random((rows, 50)), np.ones(rows))
    selector = Lasso(50, LassoOptions(d=10))
    drawn = [selector.next(history, np.arange(50), rng) for _ in range(60)]
    assert all(len(set(v.tolist())) == 10 for v in drawn)
    # a variable is missed 60 times with probability 0.8^60 = 1.5e-6
    assert len(set(np.concatenate(drawn).tolist())) == 50


def test_zero_coefficients_are_filled_at_random() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((60, 30))
    history = history_of(X, X[:, 4])
    selector = Lasso(30, LassoOptions(d=6, alpha=0.2))  # leaves the one coefficient
    drawn = [selector.next(history, np.arange(30), rng) for _ in range(20)]
    assert all(4 in v and len(v) == 6 for v in drawn)
    assert len({tuple(v.tolist()) for v in drawn}) > 10


def test_constant_columns_do_no_harm() -> None:
    rng = np.random.default_rng(0)
    X = np.full((20, 6), 0.5)
    assert len(Lasso(6, LassoOptions(d=2)).next(history_of(X, rng.random(20)), np.arange(6), rng)) == 2


@pytest.mark.parametrize(
    ("options", "words"), [({"d": 0}, "d=0"), ({"alpha": 0.0}, "alpha=0.0"), ({"alpha": float("nan")}, "alpha=nan")]
)
def test_options_are_checked(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        LassoOptions(**options)


def test_hundred_evaluations_in_a_mixed_space() -> None:
    opt = Optimizer(MIXED, method="lasso-bo", seed=0)
    for _ in range(100):
        (trial,) = opt.ask()
        opt.tell(trial, mixed_objective(trial.params))
    assert opt.best.value is not None
    assert opt.best.value < 0.3  # the optimum is 8 / 512


def test_hundred_evaluations_in_200_variables() -> None:
    opt = Optimizer([(0.0, 1.0)] * 200, method="lasso-bo", seed=0, options={"d": 5})
    for _ in range(100):
        (trial,) = opt.ask()
        opt.tell(trial, float(3.0 * trial.x[7] + 2.0 * (trial.x[30] - 0.5) ** 2))
    assert opt.best.value is not None
    assert opt.best.value < 0.15
