"""Fronts, hypervolumes, knees and reference points."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mctsvs.gp.pareto import hypervolume, knee, non_dominated, reference_point
from mctsvs.utils.validation import Array


def by_definition(Y: Array) -> list[bool]:
    kept = []
    for i, y in enumerate(Y):
        others = [(z >= y).all() and ((z > y).any() or j < i) for j, z in enumerate(Y) if j != i]
        kept.append(not any(others) and not np.isnan(y).any())
    return kept


def by_inclusion_and_exclusion(Y: Array, reference: Array) -> float:
    gains = np.maximum(Y - reference, 0.0)
    total = 0.0
    for k in range(1, len(gains) + 1):
        for chosen in itertools.combinations(gains, k):
            total -= (-1.0) ** k * float(np.min(chosen, axis=0).prod())
    return total


@pytest.mark.parametrize("M", [1, 2, 3, 5])
def test_front_is_what_nothing_dominates(M: int) -> None:
    rng = np.random.default_rng(M)
    for spread in (4, 1000):  # with ties and equal points, and without
        Y = rng.integers(0, spread, (60, M)).astype(float)
        Y[7, 0] = np.nan
        assert non_dominated(Y).tolist() == by_definition(Y)


def test_front_of_nothing_is_empty() -> None:
    assert non_dominated(np.empty((0, 2))).tolist() == []
    assert hypervolume(np.empty((0, 3)), np.zeros(3)) == 0.0


@pytest.mark.parametrize("M", [2, 3, 4, 5])
def test_hypervolume_is_that_of_the_union_of_boxes(M: int) -> None:
    rng = np.random.default_rng(10 + M)
    for _ in range(5):
        Y, reference = rng.standard_normal((9, M)), np.full(M, -0.8)
        assert hypervolume(Y, reference) == pytest.approx(by_inclusion_and_exclusion(Y, reference), abs=1e-12)


def test_hypervolume_of_known_fronts() -> None:
    assert hypervolume(np.array([[1.0, 2.0], [2.0, 1.0]]), np.zeros(2)) == 3.0
    assert hypervolume(np.array([[1.0, 2.0], [-1.0, 9.0]]), np.zeros(2)) == 2.0  # beyond the reference
    angles = np.linspace(0.0, np.pi / 2, 4001)
    circle = -np.column_stack([np.cos(angles), np.sin(angles)])  # DTLZ2's front, minimised
    assert hypervolume(circle, np.full(2, -6.0)) == pytest.approx(36 - np.pi / 4, abs=1e-3)


def test_hypervolume_of_many_points_in_three_objectives_is_quick() -> None:
    Y = np.abs(np.random.default_rng(0).standard_normal((400, 3)))
    Y /= np.linalg.norm(Y, axis=1, keepdims=True)
    assert 0.4 < hypervolume(Y, np.zeros(3)) < np.pi / 6


def test_knee_is_farthest_beyond_the_ends() -> None:
    front = np.array([[0.0, 10.0], [1.0, 9.0], [7.0, 8.0], [10.0, 0.0]])
    assert knee(front) == 2
    assert knee(front * [1e-6, 1e6]) == 2
    assert knee(front[:1]) == 0


def test_knee_in_three_objectives() -> None:
    ends = np.eye(3)
    assert knee(np.concatenate([ends, [[0.6, 0.6, 0.6], [0.3, 0.3, 0.5]]])) == 3
    assert knee(np.array([[0.0, 0.0, 1.0], [1.0, 1.0, 0.0]])) == 1  # the best points span no plane


def test_reference_point_lies_beyond_the_front() -> None:
    Y = np.array([[0.0, 1.0], [1.0, 0.0], [-5.0, -5.0]])
    assert np.allclose(reference_point(Y), [-0.2, -0.2])
    assert np.allclose(reference_point(np.array([[1.0, 1.0], [0.0, -4.0]])), [0.8, 0.0])  # a front of one point
    assert np.allclose(reference_point(np.array([[1.0, 2.0]])), [0.8, 1.8])


def test_hypervolume_of_huge_values_is_no_error() -> None:
    Y = 1e150 * np.array([[1.0, 2.0, 3.0, 1.0], [2.0, 1.0, 1.0, 3.0]])
    assert hypervolume(Y, np.zeros(4)) == np.inf
    assert hypervolume(Y[:, :2], np.zeros(2)) == pytest.approx(3e300)
