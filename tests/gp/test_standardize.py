"""Standardised objective values: affine invariance, overflow, outliers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mctsvs.gp.standardize import GRID, standardise
from mctsvs.utils.validation import Array

STEADY = settings(deadline=None, max_examples=150, derandomize=True)
samples = st.lists(st.floats(-1e3, 1e3, allow_subnormal=False), min_size=1, max_size=40).map(np.array)
anything = st.lists(st.floats(width=64), min_size=1, max_size=30).map(np.array)


@STEADY
@given(y=samples, power=st.integers(-300, 300), winsorise=st.booleans())
def test_powers_of_two_change_nothing_at_all(y: Array, power: int, winsorise: bool) -> None:
    assume(np.abs(y[y != 0.0]).min(initial=1.0) > 1e-30)  # the scaled numbers stay normal, so scaling is exact
    scaled = np.ldexp(y, power)
    assert np.array_equal(standardise(scaled, winsorise=winsorise), standardise(y, winsorise=winsorise))


@STEADY
@given(y=samples, a=st.floats(1e-3, 1e3), b=st.floats(-1e3, 1e3), winsorise=st.booleans())
def test_affine_maps_change_at_most_the_last_grid_step(y: Array, a: float, b: float, winsorise: bool) -> None:
    changed = a * y + b
    # rounding of the offset is visible in units of the spread; where it could reach the grid, nothing is promised
    spread = min(
        float(y.std()) / max(1.0, float(np.abs(y).max())), float(changed.std()) / float(np.abs(changed).max() + 1e-300)
    )
    assume(spread > 1e-2)
    one, two = standardise(y, winsorise=False), standardise(changed, winsorise=False)
    assert np.abs(one - two).max() <= GRID
    if winsorise:
        # the fence follows the quartiles; when they (nearly) coincide it may exist for one of the two only
        first, third = np.quantile(y, [0.25, 0.75])
        assume(third - first > 1e-3 * float(y.std()))
        kept = standardise(y)
        assume(float(kept.std()) > 0.5)
        assert np.abs(kept - standardise(changed)).max() <= 1e3 * GRID


def test_affine_maps_usually_change_nothing_at_all() -> None:
    """The grid is 4,000 times coarser than 64-bit rounding: of 100 x 50 values hardly any may move by a step.

    Chance of a value near a rounding boundary is about 1e-3 each, so the whole set of 50 is the same in about 19
    cases of 20; 60 of 100 are demanded (fixed seed).
    """
    rng = np.random.default_rng(0)
    equal = 0
    for _ in range(100):
        y = rng.standard_normal(50)
        equal += np.array_equal(standardise(rng.uniform(0.1, 10.0) * y + rng.uniform(-5.0, 5.0)), standardise(y))
    assert equal >= 60


@STEADY
@given(y=anything, winsorise=st.booleans())
def test_never_anything_but_finite_numbers(y: Array, winsorise: bool) -> None:
    with np.errstate(all="raise", under="ignore"):
        values = standardise(y, winsorise=winsorise)
    assert values.shape == y.shape
    assert np.isfinite(values).all()
    assert abs(values.mean()) < 1e-9
    assert values.std() == pytest.approx(1.0, abs=1e-9) or not values.any()


@pytest.mark.parametrize(
    "y",
    [
        [1e300, -1e300, 0.0],
        [1.7e308, -1.7e308, 1e300, 5.0] * 3,
        [np.inf, 1.0, 2.0],
        [-np.inf, 1.0, 2.0],
        [np.nan, 1.0, 2.0, np.inf, -np.inf],
        [1e-310, 2e-310, 3e-310],
    ],
)
def test_extreme_values_keep_their_order(y: list[float]) -> None:
    values = standardise(np.array(y))
    assert np.isfinite(values).all()
    assert values.any()
    order = np.argsort(np.nan_to_num(np.array(y), nan=-np.inf), kind="stable")
    assert (np.diff(values[order]) >= 0.0).all()


@pytest.mark.parametrize(
    "y", [[3.0], [0.0], [np.nan], [np.inf, np.nan], [7.0] * 20, [1e300] * 5, [0.1 + 0.2, 0.3], [np.inf, 4.0, 4.0]]
)
def test_nothing_to_learn_gives_zeros(y: list[float]) -> None:
    assert np.array_equal(standardise(np.array(y)), np.zeros(len(y)))


def test_infinities_and_nan_count_as_the_extreme_finite_values() -> None:
    given_ = standardise(np.array([np.inf, -np.inf, np.nan, 1.0, 2.0, 4.0]))
    assert np.array_equal(given_, standardise(np.array([4.0, 1.0, 1.0, 1.0, 2.0, 4.0])))


def test_zero_mean_unit_variance_on_the_grid() -> None:
    values = standardise(np.random.default_rng(1).gamma(2.0, size=200))
    assert values.mean() == pytest.approx(0.0, abs=10 * GRID)
    assert values.std() == pytest.approx(1.0, abs=10 * GRID)
    assert np.array_equal(values / GRID, np.round(values / GRID))


def test_the_argument_is_left_alone() -> None:
    y = np.array([np.nan, 1.0, -1e4, *range(10)])
    before = y.copy()
    standardise(y)
    assert np.array_equal(y, before, equal_nan=True)


def test_winsorising_leaves_clean_data_alone() -> None:
    y = np.random.default_rng(2).uniform(-1.0, 1.0, 100)
    assert np.array_equal(standardise(y), standardise(y, winsorise=False))
    assert np.array_equal(np.argsort(standardise(y)), np.argsort(y))


@pytest.mark.parametrize("outlier", [-1e4, -np.inf, -1e12, -1e300])
def test_winsorising_pulls_low_outliers_to_the_fence(outlier: float) -> None:
    y = np.random.default_rng(3).uniform(0.0, 1.0, 60)
    y[:3] = [outlier, outlier, -1e4]
    values = standardise(y)
    first, third = np.quantile(y, [0.25, 0.75])
    fence = first - 1.5 * (third - first)
    expected = np.maximum(y, fence)
    np.testing.assert_allclose(values, (expected - expected.mean()) / expected.std(), atol=1e-9)
    assert values[0] == values[1] == values[2] == values.min()
    assert np.array_equal(np.argsort(values[3:]), np.argsort(y[3:]))
    assert float(values[3:].std()) > 0.3
    assert float(standardise(y, winsorise=False)[3:].std()) > 0.3  # a tail as heavy as this is cut in any case


def test_winsorising_never_touches_the_upper_tail() -> None:
    y = np.append(np.random.default_rng(4).uniform(0.0, 1.0, 50), 1e4)
    assert np.array_equal(standardise(y), standardise(y, winsorise=False))
    assert standardise(y)[-1] > 5.0


def test_winsorising_needs_eight_values() -> None:
    y = np.array([-1e4, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    assert np.array_equal(standardise(y), standardise(y, winsorise=False))
    y = np.append(y, 0.7)
    assert not np.array_equal(standardise(y), standardise(y, winsorise=False))
