"""The acquisition surface that needs feasibility, and the methods that use it."""

from __future__ import annotations

import numpy as np
import pytest

from mctsvs import Optimizer, minimize
from mctsvs.gp.acquisition import AcquisitionFunction, FeasibilityWeighted, constraint_models, log_expected_improvement
from mctsvs.gp.model import Model
from mctsvs.gp.multi_output import OutputModels
from mctsvs.utils.validation import Array


@pytest.mark.parametrize("hopeful", [True, False])
def test_gradients(hopeful: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.random((30, 4))
    C = np.column_stack([0.5 - X[:, 0], np.sin(3.0 * X[:, 1]) - 0.5, X.sum(axis=1) - 2.0])
    C[::4, 1] = np.nan
    models = OutputModels()
    for _ in range(2):
        outputs = constraint_models(models, X, C)
    assert outputs is not None
    surface = AcquisitionFunction(Model().update(X, -((X - 0.3) ** 2).sum(axis=1)), log_expected_improvement(0.5))
    feasible = FeasibilityWeighted(surface if hopeful else None, outputs)
    Z = rng.random((3, 4))
    values, gradients = feasible.value_and_gradient(Z)
    assert np.allclose(values, feasible(Z))
    for j, step in enumerate(1e-4 * np.eye(4)):
        slope = (feasible(Z + step) - feasible(Z - step)) / 2e-4
        assert np.allclose(gradients[:, j], slope, rtol=0.02, atol=0.02)


def problem(x: Array) -> tuple[float, dict[str, float]]:
    return float(x.mean()), {"sum": 4.0 - float(x[:6].sum()), "curve": 20.0 * float(((x - 0.6) ** 2).sum() - 1.2)}


@pytest.mark.parametrize("method", ["bo", "bo-dsp", "bo-iso"])
def test_models_of_all_variables_find_the_border(method: str) -> None:
    result = minimize(problem, [(0.0, 1.0)] * 8, budget=32, method=method)
    assert result.success
    assert result.fun < 0.65


@pytest.mark.parametrize("method", ["bo", "mcts-vs-bo"])
def test_they_go_on_bit_for_bit_with_values_missing(method: str) -> None:
    def told(opt: Optimizer, n: int) -> list[bytes]:
        for _ in range(n):
            (trial,) = opt.ask()
            value, constraints = problem(trial.x)
            opt.tell(trial, None if trial.number % 7 == 3 else value, constraints=constraints)
        return [t.unit.tobytes() for t in opt.trials]

    box = [(0.0, 1.0)] * 8
    half = Optimizer(box, method=method, seed=1)
    told(half, 18)
    assert told(Optimizer.restore(half.state()), 15) == told(Optimizer(box, method=method, seed=1), 33)
