"""The engine that composes selector, solver and fill-in."""

from __future__ import annotations

import numpy as np
import pytest

from mctsvs import Optimizer
from mctsvs.methods import registry
from mctsvs.methods.base import Observation, Pending, latin_hypercube
from mctsvs.methods.history import History
from mctsvs.methods.solvers import MOST_AVOIDED, Subspace
from mctsvs.utils.validation import InputError


def test_points_of_one_subset_differ_from_the_best_only_there() -> None:
    rng = np.random.default_rng(0)
    engine = registry.make("mcts-vs-rs", np.arange(31), rng, k=1)
    nothing = Pending.of([], 30)
    for _ in range(12):
        (p,) = engine.propose(1, nothing)
        engine.observe([Observation(p.x, float(p.x.sum()), p.variables, p.proposal_id)])
    for _ in range(60):
        best = engine.history.X[engine.history.best(1)[0]].copy()
        fresh = not engine.queue  # type: ignore[attr-defined]
        (p,) = engine.propose(1, nothing)
        if fresh:
            others = np.setdiff1d(np.arange(30), p.variables)
            assert np.array_equal(p.x[others], best[others])
        engine.observe([Observation(p.x, float(p.x.sum()), p.variables, p.proposal_id)])


def test_asking_for_many_gives_the_same_points_as_asking_for_one() -> None:
    """Within a batch, that is: what is told in between may change the next one."""
    one = Optimizer([(0, 1)] * 20, method="mcts-vs-bo", seed=3)
    many = Optimizer([(0, 1)] * 20, method="mcts-vs-bo", seed=3)
    for _ in range(5):
        singles = []
        for _ in range(3):
            singles += one.ask()
        triple = many.ask(3)
        assert all(np.array_equal(a.x, b.x) for a, b in zip(singles, triple, strict=True))
        for a, b in zip(singles, triple, strict=True):
            one.tell(a, float(a.x.sum()))
            many.tell(b, float(b.x.sum()))


@pytest.mark.parametrize("method", ["bo", "mcts-vs-bo"])
def test_waiting_and_failed_points_are_not_proposed_again(method: str) -> None:
    opt = Optimizer([(0, 1)] * 2, method=method, seed=0, options={"samples": 1})
    trials = opt.ask(12)
    for trial in trials:
        opt.tell(trial, float(((trial.x - 0.5) ** 2).sum()))
    seen = []
    for step in range(15):
        (trial,) = opt.ask()
        seen.append(trial.x)
        if step % 2:
            opt.tell(trial, None)
    distances = [np.linalg.norm(a - b) for i, a in enumerate(seen) for b in seen[:i]]
    assert min(distances) > 1e-4


def test_latin_hypercube() -> None:
    points = latin_hypercube(7, 5, np.random.default_rng(0))
    assert (np.sort(np.floor(points * 7), axis=0) == np.arange(7)[:, None]).all()


def test_options_are_checked() -> None:
    with pytest.raises(InputError, match=r"'mcts-vs-rs' has no option 'kernel': mctsvs methods mcts-vs-rs lists"):
        Optimizer([(0, 1)] * 3, method="mcts-vs-rs", options={"kernel": "se"})
    with pytest.raises(InputError, match=r"unknown kernel 'rbf': use one of matern52"):
        Optimizer([(0, 1)] * 3, method="bo", options={"kernel": "rbf"})
    with pytest.raises(InputError, match=r"unknown method 'mcts-vs-b0': did you mean 'mcts-vs-bo'"):
        Optimizer([(0, 1)] * 3, method="mcts-vs-b0")
    with pytest.raises(InputError, match="samples=0"):
        Optimizer([(0, 1)] * 3, method="mcts-vs-bo", options={"samples": 0})
    with pytest.raises(InputError, match="d=0"):
        Optimizer([(0, 1)] * 3, method="dropout-rs", options={"d": 0})


def test_tree_and_ranking_are_shown() -> None:
    opt = Optimizer([(0, 1)] * 30, method="mcts-vs-rs", seed=0)
    for _ in range(100):
        (trial,) = opt.ask()
        opt.tell(trial, float(trial.x[4]))
    assert opt.tree is not None
    assert opt.tree.variables.tolist() == list(range(30))
    assert "30 variables" in str(opt.tree)
    ranked = {row.rank: row.name for row in opt.variables(ranked=True)}
    assert sorted(ranked) == list(range(1, 31))  # type: ignore[type-var]
    assert ranked[1] == "x4"
    assert Optimizer([(0, 1)] * 3, method="bo").tree is None


def test_of_very_many_points_to_avoid_a_changing_share_is() -> None:
    rng = np.random.default_rng(0)
    history = History(5)
    for x in rng.random((120, 5)):
        history.add(x, np.nan)
    waiting, coordinates = rng.random((900, 5)), np.array([1, 3])
    few = Subspace(history, coordinates, waiting[:20]).avoid
    assert np.array_equal(few, np.concatenate([history.failures, waiting[:20]])[:, coordinates])
    everything = np.concatenate([history.failures, waiting])[:, coordinates]
    many = [Subspace(history, coordinates, waiting[:n]).avoid for n in range(880, 901)]
    assert {avoid.shape for avoid in many} == {(MOST_AVOIDED, 2)}
    reached = [(everything[:, None] == avoid).all(axis=2).any(axis=1) for avoid in many]
    # a share of a fifth each: 21 even shares that had nothing in common would leave out less than one in a hundred
    assert np.mean(np.any(reached, axis=0)) > 0.9


@pytest.mark.parametrize("method", ["bo", "mcts-vs-bo", "turbo", "hesbo"])
def test_points_stay_apart_beside_hundreds_that_wait(method: str) -> None:
    opt = Optimizer([(0.0, 1.0)] * 6, method=method, seed=0)
    for _ in range(30):
        (trial,) = opt.ask()
        opt.tell(trial, float(np.square(trial.x[:2] - 0.3).sum()))
    opt.ask(300)
    X = np.array([trial.x for trial in opt.trials])
    apart = np.abs(X[:, None] - X).max(axis=2) + np.eye(len(X))
    assert apart.min() > 1e-6


def test_all_variables_are_one_array_that_nobody_can_write_to() -> None:
    opt = Optimizer([(0.0, 1.0)] * 6, method="hesbo", seed=0)
    one, two = opt.ask(2)
    assert one.variables is two.variables
    assert not one.variables.flags.writeable


@pytest.mark.parametrize(("dimension", "reach"), [(40, 0.2), (40, 0.0), (9, 0.2)])
def test_a_design_around_the_centre(dimension: int, reach: float) -> None:
    """Corners of a box, where that is asked for and coordinates are many."""
    opt = Optimizer([(0.0, 1.0)] * dimension, method="bo-iso", seed=1, options={"reach": reach})
    points = np.array([trial.unit for trial in opt.ask(10)])
    steps = np.abs(points - 0.5)
    assert (steps[0] == 0.0).all()
    if dimension == 40 and reach > 0.0:
        assert ((steps[1:] >= 0.18 - 1e-12) & (steps[1:] <= 0.22 + 1e-12)).all()
        assert len(np.unique(points > 0.5, axis=0)) == 10
    else:
        assert steps[1:].max() > 0.4


def test_every_part_of_a_design_lies_around_the_centre() -> None:
    opt = Optimizer([(0.0, 1.0)] * 40, method="mcts-vs-bo", seed=1, options={"centre": True, "reach": 0.45})
    steps = np.array([np.abs(trial.unit - 0.5) for trial in opt.ask(12)])
    assert (steps[0] == 0.0).all()
    assert ((steps[1:] >= 0.4) & (steps[1:] <= 0.5)).all()
