"""Trust regions: growth, shrinkage, and the box."""

from __future__ import annotations

import numpy as np

from mctsvs.gp.trust_region import FIRST_LENGTH, LONGEST, TrustRegion


def test_three_successes_double_up_to_the_longest() -> None:
    region = TrustRegion()
    for _ in range(9):
        region.resize(success=True, patience=4)
    assert (region.length, region.successes) == (LONGEST, 0)


def test_failures_in_a_row_halve() -> None:
    region = TrustRegion()
    region.resize(success=False, patience=5, evaluations=4)
    region.resize(success=True, patience=5)
    region.resize(success=False, patience=5, evaluations=4)
    assert (region.length, region.failures) == (FIRST_LENGTH, 4)
    region.resize(success=False, patience=5)
    assert (region.length, region.failures) == (FIRST_LENGTH / 2.0, 0)


def test_sides_follow_the_lengthscales_in_the_volume_of_the_cube() -> None:
    centre, region = np.full(3, 0.5), TrustRegion(length=0.1)
    low, high = region.box(centre, np.log([0.1, 0.2, 0.4]))
    np.testing.assert_allclose((high - low) / (high - low)[0], [1.0, 2.0, 4.0])
    np.testing.assert_allclose(np.prod(high - low), 0.1**3)
    low, high = region.box(np.array([0.5, 0.0, 0.99]), free=np.array([True, False, False]))
    np.testing.assert_allclose(low, [0.0, 0.0, 0.94])
    np.testing.assert_allclose(high, [1.0, 0.05, 1.0])
