"""Search of the unit cube: quasi-random points, the pool of starts, climbing."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import qmc

from mctsvs.gp.optimize_acqf import SOBOL_LIMIT, climb, maximise, pool, quasi_random
from mctsvs.utils.validation import Array


class Bowl:
    """-|z - centre|^2, to be maximised; counts its points."""

    def __init__(self, centre: Array) -> None:
        self.centre = centre
        self.outside = 0

    def __call__(self, Z: Array) -> Array:
        self.outside += int(((Z < 0.0) | (Z > 1.0)).any(axis=1).sum())
        value: Array = -((Z - self.centre) ** 2).sum(axis=1)
        return value

    def value_and_gradient(self, Z: Array) -> tuple[Array, Array]:
        return self(Z), -2.0 * (Z - self.centre)


@pytest.mark.parametrize("d", [1, 2, 3, 20, 300])
@pytest.mark.parametrize("size", [1, 2, 3, 100, 128])
def test_quasi_random_points_are_inside_the_cube(size: int, d: int) -> None:
    rng = np.random.default_rng([size, d])
    for _ in range(3):
        points = quasi_random(size, d, rng)
        assert points.shape == (size, d)
        assert (points >= 0.0).all()
        assert (points < 1.0).all()


@pytest.mark.parametrize("d", [2, 5, 20])
def test_quasi_random_points_are_more_even_than_random_ones(d: int) -> None:
    """Every one of 10 shifted sets against the best of 10 uniform ones, 256 points.

    Were ours uniform too, all 10 would come below all other 10 by chance once in C(20, 10) = 184,756 runs.
    """
    rng = np.random.default_rng(41)
    ours = [qmc.discrepancy(quasi_random(256, d, rng)) for _ in range(10)]
    uniform = [qmc.discrepancy(rng.random((256, d))) for _ in range(10)]
    assert max(ours) < min(uniform)


@pytest.mark.parametrize("size", [256, 200])
def test_every_variable_is_evenly_covered(size: int) -> None:
    """In one dimension 256 Sobol points have one point a 256th; a shift keeps the gaps below two of them."""
    points = quasi_random(size, 40, np.random.default_rng(42))
    ordered = np.sort(points, axis=0)
    gaps = np.diff(np.concatenate([ordered, ordered[:1] + 1.0]), axis=0)
    # 200 of 256 points leave a longer gap here and there; uniform ones have gaps of log(n) / n and more
    assert gaps.max() < (2.01 / 256 if size == 256 else 5.0 / 256)


@pytest.mark.parametrize("d", [SOBOL_LIMIT, 25_000])
def test_quasi_random_points_in_very_many_dimensions(d: int) -> None:
    points = quasi_random(4, d, np.random.default_rng(43))
    assert points.shape == (4, d)
    assert (points >= 0.0).all()
    assert (points < 1.0).all()
    assert np.abs(points.mean() - 0.5) < 0.02  # sd is below 0.001
    assert len(np.unique(points, axis=0)) == 4


def test_quasi_random_points_follow_the_generator() -> None:
    one, two = np.random.default_rng(44), np.random.default_rng(44)
    first = quasi_random(64, 5, one)
    assert np.array_equal(first, quasi_random(64, 5, two))
    first[...] = -1.0  # a caller's change must not reach the shared table
    again = quasi_random(64, 5, one)
    assert np.array_equal(again, quasi_random(64, 5, two))
    assert (again >= 0.0).all()
    assert one.bit_generator.state == two.bit_generator.state


def test_quasi_random_points_do_not_depend_on_what_was_asked_before() -> None:
    expected = quasi_random(30, 6, np.random.default_rng(45))
    for size in (1, 2, 4, 8, 16, 64, 128, 256, 512, 1024):  # more tables than are kept
        quasi_random(size, 6, np.random.default_rng(0))
    assert np.array_equal(quasi_random(30, 6, np.random.default_rng(45)), expected)


@pytest.mark.parametrize("d", [1, 2, 17, 100])
@pytest.mark.parametrize("size", [1, 2, 7, 256])
def test_pool_is_inside_the_cube(size: int, d: int) -> None:
    rng = np.random.default_rng([size, d])
    corners = np.stack([np.zeros(d), np.ones(d), np.full(d, 0.5)])
    points = pool(size, corners, rng)
    assert points.shape == (size, d)
    assert (points >= 0.0).all()
    assert (points <= 1.0).all()


def test_pool_follows_the_generator() -> None:
    incumbents = np.random.default_rng(1).random((3, 4))
    before = incumbents.copy()
    one, two, other = (pool(64, incumbents, np.random.default_rng(seed)) for seed in (46, 46, 47))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)
    assert np.array_equal(incumbents, before)


def test_half_of_the_pool_moves_some_coordinates_of_an_incumbent() -> None:
    d = 50
    incumbents = np.random.default_rng(48).uniform(0.3, 0.7, (3, d))
    local = pool(400, incumbents, np.random.default_rng(49))[200:]
    moved = (local[:, None, :] != incumbents).sum(axis=2)  # (200, 3) coordinates that differ
    fewest = moved.min(axis=1)
    assert (fewest >= 1).all()
    assert len(np.unique(moved.argmin(axis=1)[fewest < d])) == 3
    # four shares, a quarter each: sd of a count is 6, so each bound is 5 sigma off
    for low, high in ((1, 1), (2, 18), (19, 40), (50, 50)):
        count = int(((fewest >= low) & (fewest <= high)).sum())
        assert 20 <= count <= 80


def test_climb_finds_the_top_inside_and_on_the_border() -> None:
    start = np.full(4, 0.5)
    for centre in (np.array([0.2, 0.9, 0.5, 0.4]), np.array([-1.0, 2.0, 0.5, 0.3])):
        bowl = Bowl(centre)
        point, value = climb(bowl, start)
        np.testing.assert_allclose(point, np.clip(centre, 0.0, 1.0), atol=1e-5)
        assert value == pytest.approx(-float(((point - centre) ** 2).sum()), abs=1e-9)
        assert bowl.outside == 0


@pytest.mark.parametrize("starts", [1, 4])
def test_maximise_returns_at_least_the_best_of_the_pool(starts: int) -> None:
    centre = np.array([0.31, 0.77, 0.12])
    bowl = Bowl(centre)
    incumbents = np.random.default_rng(50).random((3, 3))
    point = maximise(bowl, incumbents, np.random.default_rng(51), starts=starts)
    candidates = pool(256, incumbents, np.random.default_rng(51))
    assert bowl(point[None])[0] >= bowl(candidates).max()
    np.testing.assert_allclose(point, centre, atol=1e-4)
    assert bowl.outside == 0


def test_maximise_keeps_the_candidate_when_climbing_leads_to_worse() -> None:
    class Misleading(Bowl):
        def value_and_gradient(self, Z: Array) -> tuple[Array, Array]:
            return -10.0 - (Z**2).sum(axis=1), -2.0 * Z  # up to the corner, which is not good

    surface = Misleading(np.array([0.4, 0.6]))
    incumbents = np.array([[0.1, 0.1]])
    point = maximise(surface, incumbents, np.random.default_rng(52))
    assert surface(point[None])[0] == surface(pool(256, incumbents, np.random.default_rng(52))).max()
