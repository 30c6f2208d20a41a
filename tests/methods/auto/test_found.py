"""Bayesian optimisation of the found variables."""

from __future__ import annotations

import numpy as np

from mctsvs.gp.trust_region import FIRST_LENGTH
from mctsvs.methods.auto.constants import LEAST_BOX
from mctsvs.methods.auto.subspace_search import SubspaceModel, View, failure_share, stalled
from mctsvs.utils.validation import Array

NONE = np.empty((0, 3))


def bowl(x: Array) -> float:
    return -float(((x - [0.2, 0.6, 0.9]) ** 2).sum())


def view(X: Array, y: Array, waiting: Array = NONE) -> View:
    at = int(np.argmax(y))
    return View(X, y, X[at], float(y[at]), waiting=waiting, failed=NONE)


def search(model: SubspaceModel, budget: int, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.random((6, 3))
    y = np.array([bowl(x) for x in X])
    while len(y) < budget:
        candidate = model.propose(view(X, y), rng)
        value = bowl(candidate.x)
        if candidate.local:
            model.learn(3, success=value > y.max())
        X, y = np.vstack([X, candidate.x]), np.append(y, value)
    return X, y


def test_finds_the_optimum_of_a_bowl() -> None:
    X, y = search(SubspaceModel(), 34, 0)
    assert y.max() > -1e-4
    assert ((X >= 0) & (X <= 1)).all()


def test_a_restored_model_goes_on_alike() -> None:
    model, again = SubspaceModel(), SubspaceModel()
    X, y = search(model, 20, 1)
    again.restore(model.state())
    points = [one.propose(view(X, y), np.random.default_rng(2)).x for one in (model, again)]
    assert np.array_equal(points[0], points[1])


def test_every_other_point_is_of_a_model_of_the_best() -> None:
    both = SubspaceModel()
    search(both, 40, 1)
    assert 0 < both.of_best.fitted < both.of_all.fitted


def test_a_waiting_point_is_not_proposed_again() -> None:
    model = SubspaceModel()
    X, y = search(model, 20, 3)
    first = model.propose(view(X, y), np.random.default_rng(4))
    second = model.propose(view(X, y, first.x[None]), np.random.default_rng(4))
    assert not np.allclose(first.x, second.x, atol=1e-6) or second.promise < first.promise


def test_share_of_failures_nearby() -> None:
    X = np.array([[0.0], [0.01], [0.02], [0.03], [0.04], [0.9]])
    failed = np.array([[0.025], [0.95], [0.96], [0.97], [0.98], [0.99]])
    share = failure_share(failed, X)
    assert share[0] == 0.0, "an accident among successes"
    assert (share[2:] >= 0.8).all(), "a place where everything fails"
    assert len(failure_share(NONE, np.zeros((4, 3)))) == 0


def test_the_trust_region_begins_again_when_it_is_small() -> None:
    model, lengths = SubspaceModel(), []
    for _ in range(60):
        model.learn(5, success=False)
        lengths.append(model.region.length)
    assert lengths[4] == FIRST_LENGTH / 2
    assert min(lengths) >= LEAST_BOX
    assert FIRST_LENGTH in lengths[5:]


def test_an_epoch_forgets_and_begins_with_fresh_points() -> None:
    model, rng = SubspaceModel(), np.random.default_rng(0)
    X, y = search(model, 34, 0)
    assert not model.exhausted(y, 3, left=20)
    model.hopeless = 2
    assert model.exhausted(y, 3, left=40)
    assert not model.exhausted(y, 3, left=20), "too few evaluations are left for another one"
    model.begin_epoch(34, 3, rng)
    assert (model.epoch, model.hopeless, model.of_all.theta) == (34, 0, None)
    fresh = [model.propose(view(X, y), rng) for _ in range(7)]
    assert all(candidate.promise == np.inf for candidate in fresh)
    assert model.propose(view(X, y), rng).promise < np.inf


def test_stalled_is_measured_against_the_good_values() -> None:
    bad, good = np.full(40, -1e6), np.linspace(0.0, 1.0, 20)
    assert not stalled(np.concatenate([bad, good]), patience=20)
    assert not stalled(good, patience=20)
    assert stalled(np.concatenate([bad, good, np.full(20, 1.0001)]), patience=20)
    assert not stalled(np.concatenate([bad, good, np.full(20, 1.1)]), patience=20)
