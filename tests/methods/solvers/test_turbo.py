"""TuRBO: regions grow, shrink and start anew; candidates stay in the box; draws of several regions compete."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mctsvs import Optimizer, testing
from mctsvs.gp.trust_region import FIRST_LENGTH, LONGEST, SHORTEST
from mctsvs.methods.composite import SubspaceEngine
from mctsvs.methods.history import History
from mctsvs.methods.solvers import Subspace
from mctsvs.methods.solvers.turbo import LOCAL_POINTS, Region, RegionOptions, TuRBO, TuRBOOptions


def subspace(history: History) -> Subspace:
    d = history.X.shape[1]
    return Subspace(history, np.arange(d), np.empty((0, d)))


def test_a_region_doubles_after_successes_and_halves_after_failures() -> None:
    region, options = Region(best=0.0), RegionOptions(patience=5)
    y = np.array([1.0, 2.0, 3.0, 2.0, 2.5, 2.9, 1.0, 0.0, 3.0005])
    for row in range(3):
        region.learn(np.array([row]), y, options, d=2)
    assert (region.length, region.successes) == (LONGEST, 0)
    region.learn(np.arange(3, 8), y, options, d=2)
    assert region.length == LONGEST / 2
    assert region.best == 3.0
    region.learn(np.array([8]), y, options, d=2)  # below a thousandth of the spread
    assert (region.successes, region.failures) == (0, 1)
    region.learn(np.array([], dtype=np.intp), y, options, d=2)
    assert region.failures == 1
    assert region.rows.tolist() == list(range(9))


def test_a_region_too_small_starts_anew_with_points_of_its_own() -> None:
    rng = np.random.default_rng(0)
    history = History(3)
    for x in rng.random((20, 3)):
        history.add(x, float(-x.sum()))
    solver = TuRBO(TuRBOOptions(start_points=7))
    solver.propose(4, subspace(history), rng)
    solver.regions[0].length = SHORTEST / 2
    solver.propose(4, subspace(history), rng)
    assert solver.regions[0].length == FIRST_LENGTH
    assert solver.regions[0].rows.tolist() == []
    assert len(solver.regions[0].design) == 3  # four of the seven were handed out


def test_candidates_move_a_few_coordinates_and_stay_in_the_box() -> None:
    rng = np.random.default_rng(0)
    centre = rng.random(200)
    low, high = np.clip(centre - 0.1, 0, 1), np.clip(centre + 0.1, 0, 1)
    points = TuRBO(TuRBOOptions(candidates=500)).candidates(low, high, centre, rng)
    moved = (points != centre).sum(axis=1)
    assert ((points >= low) & (points <= high)).all()
    assert moved.min() >= 1
    # 500 draws of Binomial(200, 0.1), mean 20, of which a few fall on the box's clipped side: the mean's standard
    # error is 0.19, so 1.5 is off by chance with probability below 1e-9
    assert abs(moved.mean() - 20.0) < 1.5


def test_regions_keep_their_own_points() -> None:
    opt = Optimizer([(0.0, 1.0)] * 4, method="turbo-m", seed=0, options={"regions": 3, "start_points": 5})
    for _ in range(60):
        (trial,) = opt.ask()
        opt.tell(trial, float(((trial.x - 0.3) ** 2).sum()))
    solver = testing.engine_of(opt, SubspaceEngine).solver
    assert isinstance(solver, TuRBO)
    regions = solver.regions
    rows = [row for region in regions for row in region.rows]
    assert len(regions) == 3
    assert sorted(rows) == sorted(set(rows))
    assert min(len(region.rows) for region in regions) >= 4
    assert opt.best.value is not None
    assert opt.best.value < 0.02


def test_a_point_belongs_to_the_region_that_proposed_it_wherever_it_was_moved() -> None:
    rng = np.random.default_rng(0)
    history = History(3)
    solver = TuRBO(TuRBOOptions(regions=2, start_points=2))
    assert len(solver.propose(4, Subspace(history, np.arange(3), np.empty((0, 3)), next_proposal_id=10), rng)) == 4
    assert solver.region_of_proposal == {10: 0, 11: 0, 12: 1, 13: 1}
    for proposal_id in (13, 10, -1):  # in any order; one from elsewhere; all at the same place
        history.add(np.full(3, 0.5), 1.0, proposal_id)
    solver.propose(1, Subspace(history, np.arange(3), np.empty((0, 3)), next_proposal_id=14), rng)
    assert [region.rows.tolist() for region in solver.regions] == [[1, 2], [0]]
    assert set(solver.region_of_proposal) == {11, 12, 14}


@pytest.mark.parametrize("method", ["turbo", "turbo-m", "mcts-vs-turbo", "dropout-turbo", "lasso-turbo", "bo-dsp"])
def test_hundred_evaluations(method: str) -> None:
    """On a mixed space of five variables and on a box of two hundred, better than the initial design."""
    mixed = Optimizer(testing.MIXED, method=method, seed=1)
    many = Optimizer([(0.0, 1.0)] * 200, method=method, seed=1)
    values: dict[str, list[float]] = {"mixed": [], "many": []}
    for _ in range(100):
        (trial,) = mixed.ask()
        values["mixed"].append(testing.mixed_objective(trial.params))
        mixed.tell(trial, values["mixed"][-1])
        (trial,) = many.ask()
        values["many"].append(float((trial.x[7] - 0.2) ** 2 + (trial.x[150] - 0.9) ** 2))
        many.tell(trial, values["many"][-1])
    assert min(values["mixed"]) < min(values["mixed"][:12])
    assert min(values["many"]) < 0.02


def test_failures_are_bad_values_that_no_parameter_is_fitted_to() -> None:
    rng = np.random.default_rng(0)
    plain, failing = History(3), History(3)
    for x in rng.random((30, 3)):
        plain.add(x, float(x[0]))
        failing.add(x, float(x[0]))
    for x in rng.random((250, 3)):
        failing.add(x, np.nan)
    posteriors = []
    for history in (plain, failing):
        region = Region(rows=np.arange(30))
        posterior, centre, _ = region.condition(subspace(history))
        posteriors.append(posterior)
        assert np.array_equal(centre, history.X[np.argmax(history.y)])
    one, two = posteriors
    assert np.array_equal(one.theta, two.theta)
    assert len(two.X) == 30 + LOCAL_POINTS, "of very many, the nearest"
    assert np.array_equal(two.y[30:], np.full(LOCAL_POINTS, one.y.min()))


@pytest.mark.parametrize(
    ("options", "words"), [({"regions": 0}, "regions=0"), ({"patience": -1}, "patience=-1"), ({"prior": "x"}, "'x'")]
)
def test_options_are_checked(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        TuRBOOptions(**options)
