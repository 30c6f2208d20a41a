"""Bayesian optimisation of the found variables."""

from __future__ import annotations

import numpy as np
import pytest

from mctsvs.common import Array
from mctsvs.solve.found import FIRST_BOX, LEAST_BOX, Box, FoundVariables, failure_share, stalled

NONE = np.empty((0, 3))


def bowl(x: Array) -> float:
    return -float(((x - [0.2, 0.6, 0.9]) ** 2).sum())


def search(solver: FoundVariables, budget: int, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.random((6, 3))
    y = np.array([bowl(x) for x in X])
    while len(y) < budget:
        at = int(np.argmax(y))
        x, _, local = solver.propose(X, y, X[at], float(y[at]), NONE, NONE, rng)
        value = bowl(x)
        if local:
            solver.box.update(3, success=value > y[at])
        X, y = np.vstack([X, x]), np.append(y, value)
    return X, y


@pytest.mark.parametrize("without", [None, "additive", "local", "best"])
def test_finds_the_optimum_of_a_bowl(without: str | None) -> None:
    X, y = search(FoundVariables(**({without: False} if without else {})), 34, 0)
    assert y.max() > -1e-4
    assert ((X >= 0) & (X <= 1)).all()


def test_restored_solver_goes_on_alike() -> None:
    solver = FoundVariables()
    X, y = search(solver, 20, 1)
    again = FoundVariables()
    again.restore(solver.state())
    at = int(np.argmax(y))
    points = [
        one.propose(X, y, X[at], float(y[at]), NONE, NONE, np.random.default_rng(2))[0] for one in (solver, again)
    ]
    assert np.array_equal(points[0], points[1])


def test_every_other_point_is_of_a_model_of_the_best() -> None:
    solver = FoundVariables()
    search(solver, 40, 1)
    assert solver.of_all.theta is not None
    assert solver.of_best.theta is not None
    assert solver.of_best.fitted < solver.of_all.fitted
    alone = FoundVariables(best=False)
    search(alone, 40, 1)
    assert alone.of_best.theta is None


def test_a_waiting_point_is_not_proposed_again() -> None:
    solver = FoundVariables()
    X, y = search(solver, 20, 3)
    at = int(np.argmax(y))
    first, promise, _ = solver.propose(X, y, X[at], float(y[at]), NONE, NONE, np.random.default_rng(4))
    second, then, _ = solver.propose(X, y, X[at], float(y[at]), first[None], NONE, np.random.default_rng(4))
    assert not np.allclose(first, second, atol=1e-6) or then < promise


def test_share_of_failures_nearby() -> None:
    X = np.array([[0.0], [0.01], [0.02], [0.03], [0.04], [0.9]])
    failed = np.array([[0.025], [0.95], [0.96], [0.97], [0.98], [0.99]])
    share = failure_share(failed, X)
    assert share[0] == 0.0, "an accident among successes"
    assert (share[2:] >= 0.8).all(), "a place where everything fails"
    assert len(failure_share(NONE, np.zeros((4, 3)))) == 0


def test_box_grows_shrinks_and_begins_again() -> None:
    box = Box()
    for _ in range(3):
        box.update(5, success=True)
    assert box.width == 2 * FIRST_BOX
    before = box.width
    for _ in range(5):
        box.update(5, success=False)
    assert box.width == before / 2
    widths = []
    for _ in range(60):
        box.update(5, success=False)
        widths.append(box.width)
    assert min(widths) >= LEAST_BOX
    assert FIRST_BOX in widths


def test_stalled_is_measured_against_the_good_values() -> None:
    bad, good = np.full(40, -1e6), np.linspace(0.0, 1.0, 20)
    assert not stalled(np.concatenate([bad, good]), patience=20)
    assert not stalled(good, patience=20)
    assert stalled(np.concatenate([bad, good, np.full(20, 1.0001)]), patience=20)
    assert not stalled(np.concatenate([bad, good, np.full(20, 1.1)]), patience=20)
