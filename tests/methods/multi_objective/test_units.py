"""Units that follow the front."""

from __future__ import annotations

import numpy as np

from mctsvs.methods.multi_objective.units import Units, front_rows

NONE = np.empty((6, 0))
Y = np.array([[0.0, 10.0], [1.0, 5.0], [2.0, 0.0], [-1.0, -90.0], [0.5, 4.0], [-8.0, 9.0]])


def test_the_front_is_that_of_feasible_points() -> None:
    assert front_rows(Y, NONE).tolist() == [0, 1, 2]
    C = np.array([[1.0], [-1.0], [0.0], [-1.0], [-1.0], [np.nan]])
    assert front_rows(Y, C).tolist() == [1, 2]
    assert front_rows(Y, C + 2.0).tolist() == [1]  # the least violation


def test_the_front_spans_one_unit_and_stays_linear() -> None:
    units = Units.of(Y, front_rows(Y, NONE), 0.2)
    assert np.allclose(units.values[:3], [[-1.0, 0.0], [-0.5, -0.5], [0.0, -1.0]], atol=1e-8)
    assert np.allclose(units.reference, -1.2)
    assert np.allclose(units.values[3], -1.2 - np.log1p([0.3, 8.8]), atol=1e-8)  # beyond it, by the logarithm


def test_units_of_the_user_change_nothing() -> None:
    one = Units.of(Y, front_rows(Y, NONE), 1.0)
    other = Units.of(3.7 * Y + np.array([1e3, -7.0]), front_rows(Y, NONE), 1.0)
    assert np.array_equal(one.values, other.values)


def test_a_front_of_one_point_has_a_scale() -> None:
    points = np.array([[5.0, 5.0], [4.0, 0.0], [3.0, -5.0]])
    units = Units.of(points, np.array([0]), 0.2)
    assert np.isfinite(units.values).all()
    assert (units.values[1:] < units.reference).all()
    assert np.isfinite(Units.of(points[:1], np.array([0]), 0.2).values).all()


def test_what_the_user_wants_moves_the_reference_inwards_only() -> None:
    rows = front_rows(Y, NONE)
    assert np.allclose(Units.of(Y, rows, 0.2, np.array([1.0, -1000.0])).reference, [-0.5, -1.2])


def test_what_nothing_is_near_to_keeps_the_reference_within_reach() -> None:
    reference = Units.of(1e-200 * Y, front_rows(Y, NONE), 0.2, np.array([1e150, -1e150])).reference
    assert reference.tolist() == [10.0, -1.2]
