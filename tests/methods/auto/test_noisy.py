"""Under noise: which of the two models of all variables is taken."""

from __future__ import annotations

import numpy as np

from mctsvs.methods.auto import constants as const
from mctsvs.methods.auto.portfolio import ModelSelection, advantage
from mctsvs.optimizer import Optimizer
from mctsvs.utils.validation import Array


def data(active: int, D: int, n: int, seed: int) -> tuple[Array, Array]:
    """A noisy bowl of some of the variables."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, D))
    value = -((X[:, :active] - 0.3) ** 2).sum(axis=1)
    return X, value + 0.1 * value.std() * rng.standard_normal(n)


def test_the_model_that_predicts_better_is_ahead() -> None:
    dense = [advantage(*data(40, 40, 68, seed)) for seed in range(4)]
    sparse = [advantage(*data(2, 40, 90, seed)) for seed in range(4)]
    assert min(dense) > const.CLEARLY
    assert max(sparse) < 0.0


def test_turns() -> None:
    dense, sparse = data(40, 40, 70, 0), data(2, 150, 70, 0)
    rivalry = ModelSelection()
    assert [rivalry.alike(turn, dense[0][:30], dense[1][:30]) for turn in range(4)] == [False, True, False, True]
    assert sum(rivalry.alike(turn, *dense) for turn in range(40)) == 30
    assert rivalry.compared == 2
    rivalry = ModelSelection()
    assert not any(rivalry.alike(turn, *sparse) for turn in range(40))
    assert (
        sum(ModelSelection(compared=2).alike(turn, dense[0], dense[1]) for turn in range(40)) == 20
    )  # few variables: both
    assert not any(rivalry.alike(turn, np.zeros((50, 3000)), np.zeros(50)) for turn in range(4))


def test_a_run_under_noise_goes_on_from_its_state() -> None:
    rng = np.random.default_rng(1)
    opt = Optimizer([(0.0, 1.0)] * 12, seed=2, noise=0.05)
    for _ in range(46):
        (trial,) = opt.ask()
        opt.tell(trial, float(((trial.x - 0.4) ** 2).sum() + 0.05 * rng.standard_normal()))
    again = Optimizer.restore(opt.state())
    for _ in range(3):
        (one,), (other,) = opt.ask(), again.ask()
        assert np.array_equal(one.unit, other.unit)
        opt.tell(one, 1.0)
        again.tell(other, 1.0)
    assert float(((opt.recommend().x - 0.4) ** 2).sum()) < 0.1
