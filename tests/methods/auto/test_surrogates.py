"""The models that propose steps."""

from __future__ import annotations

import numpy as np

from mctsvs.methods.auto.evidence import TestKind as Kind
from mctsvs.methods.auto.surrogates import Surrogates, of_found
from mctsvs.methods.history import History
from mctsvs.utils.validation import Array

MOVED = np.array([1, 4, 7])
NONE = np.empty((0, 9))


def bowl(x: Array) -> float:
    return -float(((x[MOVED] - [0.2, 0.6, 0.9]) ** 2).sum())


def search(model: Surrogates, budget: int, seed: int) -> History:
    rng, history = np.random.default_rng(seed), History(9)
    for x in rng.random((6, 9)):
        history.add(x, bowl(x))
    while len(history) < budget:
        x = ask(model, history, rng)
        history.add(x, bowl(x))
    return history


def ask(model: Surrogates, history: History, rng: np.random.Generator, waiting: Array = NONE) -> Array:
    turn = len(history)
    model.choose(turn, np.ones(9), rng, among=MOVED)
    return model.propose(Kind.STEP, turn, history, waiting, rng)


def test_finds_the_optimum_of_a_bowl_and_moves_no_other_variable() -> None:
    history = search(Surrogates(np.arange(9)), 34, 0)
    assert history.y.max() > -1e-4
    others = np.setdiff1d(np.arange(9), MOVED)
    assert len(np.unique(history.X[6:, others], axis=0)) <= 6


def test_a_restored_model_goes_on_alike() -> None:
    model, again = Surrogates(np.arange(9)), Surrogates(np.arange(9))
    history = search(model, 20, 1)
    again.restore(model.state())
    points = [ask(one, history, np.random.default_rng(2)) for one in (model, again)]
    assert np.array_equal(points[0], points[1])


def test_every_other_point_is_of_a_model_of_the_best() -> None:
    model = Surrogates(np.arange(9))
    search(model, 120, 1)
    posterior = model.found.of_best.model.posterior
    assert posterior is not None
    assert len(posterior.y) == 80


def test_a_waiting_point_is_not_proposed_again() -> None:
    model = Surrogates(np.arange(9))
    history = search(model, 20, 3)
    first = ask(model, history, np.random.default_rng(4))
    second = ask(model, history, np.random.default_rng(4), first[None])
    assert np.abs(first - second).max() > 1e-6


def test_expectation_of_the_found_variables() -> None:
    X = np.random.default_rng(0).random((40, 9))
    y = np.array([bowl(x) for x in X])
    Z = np.random.default_rng(1).random((50, 9))
    mean, sd = of_found(X[:, MOVED], y)(Z[:, MOVED])
    true = np.array([bowl(z) for z in Z])
    assert np.abs(mean - true).mean() < 0.1 * true.std()
    assert (sd > 0.0).all()
