"""SCBO's transforms, its order of points, and that it finds feasible ones."""

from __future__ import annotations

import numpy as np

from mctsvs import Optimizer, minimize
from mctsvs.methods.solvers.scbo import bilog, copula
from mctsvs.utils.validation import Array


def problem(x: Array) -> tuple[float, dict[str, float]]:
    return float(x.mean()), {"sum": 6.0 - float(x[:8].sum()), "curve": 50.0 * float(((x - 0.6) ** 2).sum() - 1.5)}


def test_values_become_normal_scores_and_constraints_keep_their_signs() -> None:
    scores = copula(np.array([3.0, np.nan, 1e9, -5.0]))
    assert np.isnan(scores[1])
    assert np.allclose(scores[[3, 0, 2]], [-0.96742157, 0.0, 0.96742157])
    assert np.array_equal(np.sign(bilog(np.array([-2.0, 0.0, 1e300]))), [-1.0, 0.0, 1.0])


def test_it_finds_better_feasible_points_than_random_search() -> None:
    box = [(0.0, 1.0)] * 10
    found, random = (minimize(problem, box, budget=150, method=method) for method in ("scbo", "random"))
    assert found.success
    assert not random.feasible or found.fun < random.fun


def test_without_a_feasible_point_the_violation_falls() -> None:
    result = minimize(lambda x: (x[0], {"never": 1.0 + x[1] + x[2]}), [(0.0, 1.0)] * 10, budget=80, method="scbo")
    assert not result.feasible
    assert result.x[1] + result.x[2] < 0.3


def test_it_goes_on_bit_for_bit_with_values_and_constraints_missing() -> None:
    def told(opt: Optimizer, n: int) -> list[bytes]:
        for _ in range(n):
            (trial,) = opt.ask()
            value, constraints = problem(trial.x)
            if trial.number % 5 == 4:
                del constraints["curve"]
            opt.tell(trial, None if trial.number % 7 == 3 else value, constraints=constraints)
        return [t.unit.tobytes() for t in opt.trials]

    box, options = [(0.0, 1.0)] * 10, {"method": "scbo", "seed": 1}
    half = Optimizer(box, **options)  # type: ignore[arg-type]
    told(half, 33)
    assert told(Optimizer.restore(half.state()), 27) == told(Optimizer(box, **options), 60)  # type: ignore[arg-type]
