"""The first points of a run."""

from __future__ import annotations

import numpy as np
import pytest

from mctsvs import Boolean, Categorical, Integer, Optimizer


@pytest.mark.parametrize("dimension", [1, 2, 3, 100])
def test_every_seed_has_a_design_of_its_own(dimension: int) -> None:
    space = [(0.0, 1.0)] * dimension
    designs = [
        [trial.unit.tobytes() for trial in Optimizer(space, method="auto", seed=seed).ask(8)] for seed in range(20)
    ]
    assert len({design[0] for design in designs}) == 1  # the centre
    assert len({point for design in designs for point in design[1:]}) == 7 * 20


def test_the_first_point_is_the_centre() -> None:
    space = {"a": (0.0, 4.0), "b": (-1.0, 1.0), "c": Categorical(["x", "y", "z"])}
    (trial,) = Optimizer(space, method="auto", seed=3).ask()
    assert trial.params["a"] == 2.0
    assert trial.params["b"] == 0.0


@pytest.mark.parametrize("bowl", [True, False])
def test_first_points_are_corners_of_a_box_around_the_best_if_that_is_the_centre_at_first(bowl: bool) -> None:
    """Two points all over the cube say whether the centre is a good place to look around."""
    opt = Optimizer([(0.0, 1.0)] * 40, direction="maximize", method="auto", seed=3)
    best, level = np.full(40, 0.5), -np.inf
    for number in range(10):
        (trial,) = opt.ask()
        steps = np.abs(trial.unit - best)
        corner = ((steps >= 0.18 - 1e-12) & (steps <= 0.22 + 1e-12)).all()
        assert corner == (bowl and number > 2)
        value = -float(((trial.unit - (0.7 if bowl else 0.5)) ** 2).sum()) * (1 if bowl else -1)
        opt.tell(trial, value)
        if value > level:
            best, level = trial.unit, value
    assert not bowl or level > -40 * 0.04  # it has moved on from the centre


def test_first_points_are_spread_over_the_cube_where_coordinates_are_few() -> None:
    opt = Optimizer([(0.0, 1.0)] * 9, method="auto", seed=3)
    points = np.array([trial.unit for trial in opt.ask(10)])[1:]
    cells = np.floor(20 * points).astype(int)
    assert all(len(set(column)) == 9 for column in cells.T)  # of a Latin hypercube
    assert np.abs(points - 0.5).max() > 0.4


def test_first_points_take_all_values_of_grids() -> None:
    """A fifth of the range does not lead from one half to the other."""
    floats = {f"x{i}": (0.0, 1.0) for i in range(20)}
    opt = Optimizer({**floats, "b": Boolean(), "k": Integer(1, 2)}, direction="maximize", method="auto", seed=3)
    seen = set()
    for _ in range(10):
        (trial,) = opt.ask()
        seen.add((trial.params["b"], trial.params["k"]))
        opt.tell(trial, float(trial.params["x3"]))
    assert len(seen) == 4


def test_points_from_elsewhere_do_not_spoil_a_design_of_all() -> None:
    """Models that must tell variables apart get points all over the cube."""
    rng = np.random.default_rng(0)
    opt = Optimizer([(0.0, 1.0)] * 30, method="auto", seed=3)
    for _ in range(12):
        opt.add(rng.random(30), rng.standard_normal(), noise=1.0)
    points = np.array([trial.unit for trial in opt.ask(6)])
    assert all(np.abs(x - 0.5).max() > 0.4 for x in points[1:])


def test_first_points_keep_categories_and_stay_in_the_cube() -> None:
    space = {**{f"x{i}": (0.0, 1.0) for i in range(12)}, "c": Categorical(["a", "b", "c"])}
    opt = Optimizer(space, direction="maximize", method="auto", seed=3)
    kinds = set()
    for _ in range(10):
        (trial,) = opt.ask()
        kinds.add(trial.params["c"])
        assert ((trial.unit >= 0.0) & (trial.unit <= 1.0)).all()
        opt.tell(trial, float(sum(trial.params[f"x{i}"] for i in range(12))))
    assert kinds == {"a", "b", "c"}
