"""SAASBO: its draws find the variables that matter, the seven properties hold with few steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mctsvs import Optimizer, testing
from mctsvs.methods.solvers.saasbo import SparseSampled, SparseSampledOptions
from mctsvs.utils.validation import Array, InputError

TINY: dict[str, Any] = {"warmup": 8, "mcmc_samples": 8, "thinning": 4, "tree_depth": 2}


def data(n: int, d: int) -> tuple[Array, Array]:
    X = np.random.default_rng(0).random((n, d))
    y = np.sin(6.0 * X[:, 1]) + X[:, 4]
    return X, (y - y.mean()) / y.std()


def test_every_draw_becomes_a_member_of_equal_weight() -> None:
    X, y = data(8, 5)
    members = SparseSampled(SparseSampledOptions(**TINY)).fit(X, y, None, np.random.default_rng(1))
    assert members.thetas.shape == (2, 7)
    assert members.shifts.shape == (2,)
    np.testing.assert_array_equal(members.weights, [0.5, 0.5])


def test_sampling_finds_the_variables_that_matter() -> None:
    X, y = data(30, 20)
    members = SparseSampled(SparseSampledOptions()).fit(X, y, None, np.random.default_rng(1))
    lengthscales = np.median(members.thetas[:, :20], axis=0)
    assert set(np.argsort(lengthscales)[:2].tolist()) == {1, 4}
    assert lengthscales[[1, 4]].max() + 1.0 < np.delete(lengthscales, [1, 4]).min()


@pytest.mark.parametrize("check", testing.CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("method", ["saasbo", "mcts-vs-saasbo"])
def test_few_steps_conform(method: str, check: Any) -> None:
    check(method, TINY, 20)


@pytest.mark.parametrize("space", ["mixed", "many"])
def test_evaluations_in_mixed_and_in_200_variables(space: str) -> None:
    options = {**TINY, "warmup": 32, "refit_growth": 1.2}
    mixed = space == "mixed"
    opt = Optimizer(testing.MIXED if mixed else [(0.0, 1.0)] * 200, method="saasbo", seed=0, **options)
    for _ in range(30):
        (trial,) = opt.ask()
        value = testing.mixed_objective(trial.params) if mixed else float((trial.x[7] - 0.2) ** 2)
        opt.tell(trial, value)
    assert opt.best.value is not None
    assert opt.best.value < (3.0 if mixed else 0.05)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"warmup": 0}, "warmup=0"),
        ({"thinning": 0}, "thinning=0"),
        ({"thinning": 9, "mcmc_samples": 8}, "thinning=9 cannot be used"),
        ({"average": "sum"}, "unknown average 'sum'"),
    ],
)
def test_options_are_checked(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        SparseSampledOptions(**options)
