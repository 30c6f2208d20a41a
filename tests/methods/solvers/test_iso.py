"""The model of all variables alike: which points it sees, its two turns, and spaces of every width."""

from __future__ import annotations

import numpy as np
import pytest

from mctsvs import Optimizer
from mctsvs.gp.optimize_acqf import crossovers
from mctsvs.methods.history import History
from mctsvs.methods.solvers import ISOTROPIC, Subspace, make
from mctsvs.methods.solvers.bo import STEP, Best, IsotropicSearch
from mctsvs.space import Categorical, Float, Integer
from mctsvs.utils.validation import Array, InputError

CENTRE = 0.37


def value(x: Array) -> float:
    return -float(((x - CENTRE) ** 2).sum())


def filled(n: int, d: int, seed: int = 0) -> Subspace:
    rng, history = np.random.default_rng(seed), History(d)
    for x in rng.random((n, d)):
        history.add(x, value(x))
    return Subspace(history, np.arange(d), np.empty((0, d)))


def solver(**options: object) -> IsotropicSearch:
    made = make("iso", **{**ISOTROPIC, **options})
    assert isinstance(made, IsotropicSearch)
    return made


@pytest.mark.parametrize("d", [1, 2, 40])
def test_finds_a_bowl(d: int) -> None:
    """Its bottom is off the centre; after 40 evaluations nearly all that the centre lacks is gained."""
    opt = Optimizer([(0.0, 1.0)] * d, direction="maximize", method="bo-iso", seed=3)
    values = []
    for _ in range(40):
        (trial,) = opt.ask()
        values.append(value(trial.x))
        opt.tell(trial, values[-1])
    assert values[0] == pytest.approx(value(np.full(d, 0.5)))
    assert max(values) > 0.1 * values[0]


def test_very_many_variables() -> None:
    s = filled(12, 2000)
    (x,) = solver().propose(1, s, np.random.default_rng(0))
    assert value(x) > 0.9 * s.y.max()  # negative: at most a tenth worse than the best
    assert ((x >= 0.0) & (x <= 1.0)).all()


def test_the_design_begins_at_the_centre() -> None:
    opt = Optimizer([(0.0, 1.0)] * 3, method="bo-iso", seed=0)
    first, *others = (trial.x for trial in opt.ask(10))
    assert np.array_equal(first, [0.5, 0.5, 0.5])
    assert (np.sort(np.floor(9 * np.array(others)), axis=0) == np.arange(9)[:, None]).all()
    plain = Optimizer([(0.0, 1.0)] * 3, method="bo-iso", seed=0, options={"centre": False})
    assert not np.array_equal(plain.ask()[0].x, first)


def test_the_centre_of_a_mixed_space_has_a_category() -> None:
    space = {"a": Float(0.0, 2.0), "n": Integer(0, 10), "c": Categorical(["x", "y", "z"])}
    found = set()
    for seed in range(12):
        opt = Optimizer(space, method="bo-iso", seed=seed)
        (trial,) = opt.ask()
        assert trial.params["a"] == pytest.approx(1.0)
        assert trial.params["n"] == 5
        found.add(trial.params["c"])
    assert found == {"x", "y", "z"}


def test_models_take_turns_once_there_are_points_enough() -> None:
    s, one = solver(), filled(80, 40)
    rng = np.random.default_rng(0)
    s.propose(1, one, rng)
    assert s.of_best.model.posterior is None
    s.propose(1, one, rng)
    assert s.of_all.model.posterior is not None
    assert s.of_best.model.posterior is not None
    assert len(s.of_all.model.posterior.X) == 80
    best = one.X[np.sort(np.argsort(-one.y, kind="stable")[:40])]
    assert np.array_equal(s.of_best.model.posterior.X, best)
    alone = solver(best_share=1.0)
    for _ in range(3):
        alone.propose(1, one, rng)
    assert alone.of_best.model.posterior is None


def test_of_many_points_the_best_half_and_a_spread_over_the_others() -> None:
    s, one = solver(most_points=20), filled(100, 3)
    s.propose(1, one, np.random.default_rng(0))
    assert s.of_all.model.posterior is not None
    order = np.argsort(-one.y, kind="stable")
    expected = np.sort(np.concatenate([order[:10], order[np.linspace(10, 99, 10).astype(int)]]))
    assert np.array_equal(s.of_all.model.posterior.X, one.X[expected])
    s.propose(1, one, np.random.default_rng(0))
    assert s.of_best.model.posterior is not None
    expected = np.sort(np.concatenate([order[:10], order[np.linspace(10, 49, 10).astype(int)]]))
    assert np.array_equal(s.of_best.model.posterior.X, one.X[expected])


def test_count_of_the_best() -> None:
    best = Best(0.5, fewest=30, enough=1.0)
    assert [best.count(n, 40) for n in (10, 39, 40, 59, 60, 61, 200)] == [10, 39, 30, 30, 30, 30, 100]
    assert best.count(20, 2) == 20


def test_restoring_goes_on_bit_for_bit_with_a_part_of_the_points() -> None:
    options = {"most_points": 15}
    one, two = solver(**options), solver(**options)
    s, rng = filled(14, 3), np.random.default_rng(1)
    for step in range(12):
        if step == 6:
            two.restore(one.state())
            twin = np.random.Generator(np.random.PCG64())
            twin.bit_generator.state = rng.bit_generator.state
        (x,) = one.propose(1, s, rng)
        if step >= 6:
            assert np.array_equal(two.propose(1, s, twin)[0], x)
        s.history.add(x, value(x))
        s = Subspace(s.history, s.coordinates, s.waiting)


def test_a_known_point_becomes_a_step_from_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    one, s = filled(20, 3), solver()
    best = one.X[np.argmax(one.y)]
    monkeypatch.setattr(s.of_all, "propose", lambda n, subspace, rng: subspace.X[:n].copy())
    points = s.propose(2, one, np.random.default_rng(0))
    distances = np.linalg.norm(points - best, axis=1)
    assert (distances > 0.0).all()
    assert (distances < 10.0 * STEP).all()  # of three normal steps: beyond is a chance of 1e-20


def test_crossovers_are_made_of_two_good_points() -> None:
    best = np.random.default_rng(0).random((8, 30))
    points = crossovers(60, best, np.random.default_rng(1))
    assert points.shape == (60, 30)
    assert ((points >= 0.0) & (points <= 1.0)).all()
    for x in points[1::2]:  # every coordinate is one of the eight's, most of them one of the three best's
        shares = (best == x).mean(axis=1)
        assert (best == x).any(axis=0).all()
        assert shares[:3].max() > 0.15
    assert np.array_equal(crossovers(4, best[:1], np.random.default_rng(2)), np.repeat(best[:1], 4, axis=0))


def test_options_are_checked() -> None:
    with pytest.raises(InputError, match="best_share=0"):
        Optimizer([(0.0, 1.0)] * 2, method="bo-iso", options={"best_share": 0.0})
    with pytest.raises(InputError, match="unknown kernel 'iso'"):
        Optimizer([(0.0, 1.0)] * 2, method="bo-iso", options={"kernel": "iso"})
