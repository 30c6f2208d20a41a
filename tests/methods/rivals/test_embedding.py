"""Sketches, the shared embedding engine, HeSBO and REMBO; a longer run of every embedding method."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mctsvs import Optimizer
from mctsvs.methods import registry
from mctsvs.methods.base import Observation, Pending
from mctsvs.methods.rivals.hesbo_rembo import REMBO, FixedOptions, HeSBO, Sketch
from mctsvs.testing import MIXED, drive, engine_of, mixed_objective, through_plain_data
from mctsvs.utils.validation import InputError

NOTHING = Pending.of([], 40)
EMBEDDINGS = ["hesbo", "rembo", "baxus", pytest.param("alebo", marks=pytest.mark.slow)]


def quadratic(x: Any) -> float:
    return float((x[3] - 0.35) ** 2 + (x[17] - 0.4) ** 2)


@pytest.mark.parametrize("make", [Sketch.hashed, Sketch.balanced])
def test_down_undoes_up(make: Any) -> None:
    rng = np.random.default_rng(0)
    sketch = make(200, 7, rng)
    U = rng.random((20, 7))
    X = sketch.up(U)
    assert X.shape == (20, 200)
    assert (X >= 0).all()
    assert (X <= 1).all()
    assert np.allclose([sketch.down(x) for x in X], U, atol=1e-14)


def test_the_paper_s_formula() -> None:
    sketch = Sketch(np.array([1, 0, 1]), np.array([1.0, -1.0, -1.0]), 2)
    z = np.array([0.5, -0.25])
    x = 2.0 * sketch.up((z[None] + 1.0) / 2.0)[0] - 1.0
    assert np.allclose(x, [-0.25, -0.5, 0.25])


def test_an_empty_bin_sits_in_the_middle() -> None:
    sketch = Sketch(np.array([0, 0, 2]), np.ones(3), 3)
    assert sketch.down(np.array([0.2, 0.2, 0.9])).tolist() == pytest.approx([0.2, 0.5, 0.9])


def test_bins_without_a_coordinate_are_not_searched() -> None:
    """Points that differ in them alone are one point, and a model that never sees them moved expects much there."""
    opt = Optimizer([(0.0, 1.0)] * 6, method="hesbo", options={"d": 6}, seed=0)
    engine = engine_of(opt, HeSBO)
    assert len(engine.moved) < 6
    points = drive(opt, lambda x: None if x[0] > 0.4 else float(x.sum()), 60)
    apart = np.abs(points[:, None] - points).max(axis=2) + np.eye(60)
    assert apart.min() > 1e-6
    for u in engine.search(3, np.empty((0, 6))):
        assert np.array_equal(np.delete(u, engine.moved), np.full(6 - len(engine.moved), 0.5))


def test_balanced_bins_differ_by_one_and_splitting_keeps_points() -> None:
    rng = np.random.default_rng(1)
    sketch = Sketch.balanced(50, 4, rng)
    assert sorted(np.bincount(sketch.bins)) == [12, 12, 13, 13]
    X = sketch.up(rng.random((5, 4)))
    finer = sketch.split(4, rng)
    assert finer.d == 16
    assert sorted(set(np.bincount(finer.bins))) == [3, 4]
    assert np.allclose([finer.up(finer.down(x)[None])[0] for x in X], X, atol=1e-14)
    for old in range(4):  # a new bin lies inside one old bin
        assert len(set(sketch.bins[finer.bins == old])) == 1
    finest = finer.split(4, rng)
    assert finest.d == 50
    assert finest.split(4, rng).d == 50


def rembo(d: int = 4, **options: Any) -> REMBO:
    return REMBO(np.arange(41), np.random.default_rng(0), FixedOptions(d=d, **options))


def test_rembo_clips_a_gaussian_projection_and_remembers_its_points() -> None:
    engine = rembo()
    design = engine.design.copy()
    proposals = engine.propose(3, NOTHING)
    for u, p in zip(design, proposals, strict=False):
        z = 2.0 * (2.0 * u - 1.0)  # sqrt(d) = 2
        assert np.allclose(2.0 * p.x - 1.0, np.clip(engine.matrix @ z, -1.0, 1.0))
    for i in (2, 0, 1):  # in any order, and rounded until another proposal is nearer
        engine.observe(
            [Observation(np.round(proposals[i].x), float(i), proposals[i].variables, proposals[i].proposal_id)]
        )
    assert np.array_equal(engine.low.X, design[[2, 0, 1]])
    assert np.array_equal(engine.low.proposal_ids, [2, 0, 1])
    assert engine.awaited == {}


def test_rembo_takes_somebody_elses_point_down_by_least_squares() -> None:
    engine = rembo()
    design = engine.design.copy()
    (proposal,) = engine.propose(1, NOTHING)
    engine.observe([Observation(np.full(40, 0.5), 1.0, engine.everything)])
    engine.observe([Observation(proposal.x, 1.0, engine.everything)])
    engine.observe([Observation(proposal.x, 2.0, engine.everything, proposal.proposal_id)])
    assert np.allclose(engine.low.X[0], 0.5)
    assert not np.allclose(engine.low.X[1], design[0])  # clipped: there is no way back
    assert np.array_equal(engine.low.X[2], design[0])


def test_rembo_knows_waiting_points_by_their_proposal_ids() -> None:
    engine = rembo(initial_points=2)
    design = engine.design.copy()
    first, second = engine.propose(2, NOTHING)
    seen = []
    engine.search = lambda n, waiting: seen.append(waiting) or np.full((n, 4), 0.5)  # type: ignore[method-assign, func-returns-value]
    engine.propose(1, Pending(np.array([second.x, first.x]), np.array([second.proposal_id, first.proposal_id])))
    assert np.array_equal(seen[0], design[[1, 0]])


@pytest.mark.parametrize("method", ["hesbo", "rembo", "alebo", "baxus", "la-mcts-turbo", "vae-bo"])
def test_a_design_is_dropped_once_as_many_points_are_known(method: str) -> None:
    opt = Optimizer([(0.0, 1.0)] * 6, method=method, seed=0)
    opt.ask(2)  # two of the design
    for x in np.random.default_rng(1).random((30, 6)):
        opt.add(x, quadratic_of_six(x))
    assert len(opt.state()["engine"]["design"]) > 0
    opt = Optimizer.restore(through_plain_data(opt.state()))
    drive(opt, quadratic_of_six, 1)
    assert len(opt.state()["engine"]["design"]) == 0


def quadratic_of_six(x: Any) -> float:
    return float(((x - 0.3) ** 2).sum())


def test_asking_for_many_crosses_the_end_of_the_design() -> None:
    engine = HeSBO(np.arange(41), np.random.default_rng(0), FixedOptions(d=4, initial_points=5))
    assert [p.iteration for p in engine.propose(8, NOTHING)] == [0] * 5 + [1] * 3


@pytest.mark.parametrize("method", ["hesbo", "rembo", "alebo"])
@pytest.mark.parametrize("d", [0, 41, 2.5, True])
def test_a_wrong_d_is_refused(method: str, d: Any) -> None:
    with pytest.raises(InputError, match=r"d=.*whole number, from 1 to (40|10000)"):
        registry.make(method, np.arange(41), np.random.default_rng(0), d=d)


@pytest.mark.parametrize("method", ["hesbo", "rembo", "alebo", "baxus"])
def test_one_variable_is_enough(method: str) -> None:
    opt = Optimizer([(0.0, 1.0)], method=method, seed=0)
    drive(opt, lambda x: float((x[0] - 0.3) ** 2), 15)
    nearest = 0.3
    if method == "rembo":  # one Gaussian number a, and z in [-1, 1]: x comes within |a| / 2 of the middle, no further
        reach = abs(REMBO(np.arange(2), np.random.default_rng(0), FixedOptions()).matrix[0, 0]) / 2.0
        nearest = max(0.3, 0.5 - min(reach, 0.5))
    assert float(opt.best.value or 0.0) < (nearest - 0.3) ** 2 + 1e-3


@pytest.mark.parametrize("method", EMBEDDINGS)
def test_a_hundred_evaluations_of_many_variables(method: str) -> None:
    opt = Optimizer([(0.0, 1.0)] * 200, method=method, seed=0)
    drive(opt, quadratic, 100)
    values = [float(t.value or 0.0) for t in opt.trials]
    # clipping sends most of the box to corners of the cube, so rembo need only beat its own design
    assert min(values) < (0.05 if method != "rembo" else min(values[:10]))
    assert len(opt.variables()) == 200


@pytest.mark.parametrize("method", EMBEDDINGS)
def test_a_hundred_evaluations_of_mixed_variables(method: str) -> None:
    opt = Optimizer(MIXED, method=method, seed=0)
    for _ in range(100):
        (trial,) = opt.ask()
        opt.tell(trial, mixed_objective(trial.params))
    values = [float(t.value or 0.0) for t in opt.trials]
    assert min(values) <= min(values[:10])
