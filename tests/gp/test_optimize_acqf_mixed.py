"""Searching on grids and categories."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mctsvs.gp.optimize_acqf_mixed import Ascent, Lattice, maximise
from mctsvs.space import Categorical, Float, Integer, Space
from mctsvs.utils.validation import Array

SPACE = Space.of(
    [Float(0.0, 1.0), Integer(0, 1), Integer(1, 16, log=True), Integer(0, 6), Categorical(["a", "b", "c"])]
)
LATTICE = Lattice.of(SPACE)
DISCRETE = Lattice.of(Space.of([Integer(0, 3), Integer(0, 1), Categorical(["a", "b", "c"])]))


class Bowl:
    """Highest at a point (d,), with an interplay of all coordinates."""

    def __init__(self, top: Array) -> None:
        self.top = top
        self.matrix = np.eye(len(top)) + 0.3

    def __call__(self, Z: Array) -> Array:
        return -np.asarray(np.einsum("ij,jk,ik->i", Z - self.top, self.matrix, Z - self.top))

    def value_and_gradient(self, Z: Array) -> tuple[Array, Array]:
        return self(Z), -2.0 * (Z - self.top) @ self.matrix


def every(lattice: Lattice) -> Array:
    """All points of a lattice without continuous coordinates."""
    axes = [np.unique(row)[:, None] for row in lattice.positions] + [np.eye(len(block)) for block in lattice.blocks]
    return np.array([np.concatenate(parts) for parts in itertools.product(*axes)])


def test_rounding_is_the_space_s_own() -> None:
    points = np.random.default_rng(0).random((200, SPACE.n_coordinates))
    rounded = LATTICE.round(points)
    assert np.array_equal(SPACE.snap(rounded), rounded)
    even = [0, 1, 3, 4, 5, 6]  # on a logarithmic scale the nearest middle need not be the same value
    assert np.array_equal(rounded[:, even], SPACE.snap(points)[:, even])


def test_part_of_a_lattice() -> None:
    part, points = LATTICE.among(np.array([4, 5, 6, 2])), np.random.default_rng(1).random((20, 7))
    assert np.array_equal(part.round(points[:, [4, 5, 6, 2]]), LATTICE.round(points)[:, [4, 5, 6, 2]])
    assert part.discrete.tolist() == [3, 0, 1, 2]


def test_moves_change_one_variable_to_a_neighbour_or_another_choice() -> None:
    x = LATTICE.round(np.full((1, 7), 0.5))[0]
    near = LATTICE.moves(x).each(x)
    assert np.array_equal(SPACE.snap(near), near)
    natural, moved = SPACE.decode(x), SPACE.decode(near)
    assert ((moved != natural).sum(axis=1) == 1).all()
    assert len(near) == 1 + 2 + 2 + 2
    assert np.abs(moved - natural)[:, 1:4].max() == 1.0


def test_a_change_is_a_change_of_every_variable() -> None:
    rng = np.random.default_rng(2)
    for _ in range(100):
        old = LATTICE.round(rng.random((1, 7)))[0]
        new = LATTICE.changed(np.where(rng.random(7) < 0.5, old, rng.random(7)), old, rng)
        assert np.array_equal(SPACE.snap(new), new)
        assert (SPACE.decode(new) != SPACE.decode(old))[1:].all()


@pytest.mark.parametrize("seed", range(5))
def test_finds_the_best_of_all_lattice_points(seed: int) -> None:
    rng = np.random.default_rng(seed)
    surface, points = Bowl(rng.random(5)), every(DISCRETE)
    order = np.argsort(-surface(points))
    candidates = rng.random((8, 5))
    x, value = maximise(surface, DISCRETE, candidates, points[:0], rng)
    assert np.array_equal(x, points[order[0]])
    assert value == surface(x[None])[0]
    second, _ = maximise(surface, DISCRETE, candidates, points[order[:1]], rng)
    assert surface(second[None])[0] >= surface(points)[order[4]]
    assert not np.array_equal(second, x)


def test_the_one_unknown_point_is_found() -> None:
    points = every(DISCRETE)
    x, _ = maximise(Bowl(np.full(5, 0.5)), DISCRETE, points[:1], points[:-1], np.random.default_rng(0))
    assert np.array_equal(x, points[-1])


def test_continuous_coordinates_follow_the_others() -> None:
    surface = Bowl(np.array([0.3, 0.6, 0.2, 0.9, 0.2, 0.7, 0.1]))
    x, _ = maximise(
        surface, LATTICE, np.random.default_rng(3).random((20, 7)), np.empty((0, 7)), np.random.default_rng(4)
    )
    assert np.array_equal(SPACE.snap(x), x)
    assert abs(surface.value_and_gradient(x[None])[1][0, 0]) < 0.05
    near = LATTICE.moves(x).each(x)
    assert surface(near).max() <= surface(x[None])[0] + 0.02


def test_a_box_keeps_what_it_fixes_and_leaves_neighbours() -> None:
    rng, start = np.random.default_rng(5), LATTICE.round(np.full((1, 7), 0.5))
    low, high = np.maximum(start[0] - 0.01, 0.0), np.minimum(start[0] + 0.01, 1.0)
    low[0] = high[0] = start[0, 0]
    x, _ = maximise(Bowl(np.ones(7)), LATTICE, start, np.empty((0, 7)), rng, box=(low, high))
    assert x[0] == start[0, 0]
    steps = SPACE.decode(x) - SPACE.decode(start[0])
    assert steps[1:4].tolist() == [0.0 if start[0, 1] > 0.5 else 1.0, 1.0, 1.0]


def test_many_moves_are_screened_by_the_gradient() -> None:
    lattice = Lattice.of(Space.of([Integer(0, 4)] * 80))
    surface, x = Bowl(np.full(80, 0.9)), np.full(80, 0.1)
    ascent = Ascent(surface, lattice, *lattice.box)
    ascent.exchange(x, float(surface(x[None])[0]))
    found, _ = ascent.best(x[None], np.random.default_rng(0))
    assert np.array_equal(found, np.full(80, 0.9))


def test_variables_that_do_not_exist_stay_where_they_belong() -> None:
    kind = Categorical(["a", "b"])
    space = Space.of({"kind": kind, "n": Integer(0, 4, when={"kind": "b"}), "x": Float(0, 1, when={"n": [3, 4]})})
    lattice, rng, absent = Lattice.of(space), np.random.default_rng(0), np.array([1.0, 0.0, 0.5, 0.5])
    rounded = lattice.round(rng.random((50, 4)))
    assert np.array_equal(space.snap(rounded), rounded)
    part = lattice.among(np.array([2, 3]), absent)
    assert np.array_equal(part.round(rng.random((50, 2))), np.tile(absent[2:], (50, 1)))
    surface = Bowl(np.array([0.0, 1.0, 1.0, 0.9]))
    x, value = maximise(surface, lattice, np.array([[1.0, 0.0, 0.5, 0.5]]), np.empty((0, 4)), rng)
    assert np.array_equal(space.snap(x), x)
    assert space.params(x)["kind"] == "b"
    assert space.params(x)["n"] == 4
    assert value == surface(x[None])[0]
