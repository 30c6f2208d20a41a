"""The region: what of the unit cube may be asked for, beyond its bounds."""

from __future__ import annotations

import numpy as np

from mctsvs import Categorical, Integer, Optimizer
from mctsvs.space import Float, Region, Space
from mctsvs.testing import engine_of

MIXED = {"rate": Float(0.0, 1.0, step=0.25), "layers": Integer(1, 4), "kind": Categorical(["a", "b", "c"]), "w": (0, 1)}


def test_a_box_is_plain_and_anything_else_is_not() -> None:
    assert Region(Space.of([(0, 1)] * 3)).plain
    assert not Region(Space.of([Integer(0, 3), (0, 1)])).plain
    assert not Region(Space.of({"kind": Categorical(["a", "b"])})).plain


def test_levels_are_those_of_the_coordinates() -> None:
    assert Region(Space.of(MIXED)).levels.tolist() == [5, 4, np.inf, np.inf, np.inf, np.inf]


def test_everything_is_active_and_feasible_without_conditions_and_constraints() -> None:
    region, U = Region(Space.of(MIXED)), np.random.default_rng(0).random((7, 6))
    assert region.active(U).shape == (7, 4)
    assert region.active(U).all()
    assert region.feasible(U).tolist() == [True] * 7
    assert np.array_equal(region.repair(U[0]), region.space.snap(U[0]))


def test_the_engine_of_a_space_that_is_not_plain_knows_its_region() -> None:
    mixed, plain = engine_of(Optimizer(MIXED)), engine_of(Optimizer([(0, 1)] * 3))
    assert plain.region is None
    assert mixed.region is not None
    assert np.isfinite(mixed.region.levels).sum() == 2
