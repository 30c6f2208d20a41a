"""Statistics against values computed by hand, and against the paper's own table."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mctsvs.bench import stats


def test_summary_by_hand() -> None:
    found = stats.summary([1.0, 2.0, 6.0])
    assert found.n == 3
    assert found.mean == 3.0
    assert found.sd == pytest.approx(np.sqrt((4 + 1 + 9) / 2))
    assert found.error == pytest.approx(np.sqrt(7 / 3))


@pytest.mark.parametrize(
    ("mean", "error", "text"),
    [
        (3.24, 0.023, "3.240 ± 0.023"),
        (0.9378, 0.00104, "0.9378 ± 0.0010"),
        (0.934123, 0.000391, "0.93412 ± 0.00039"),
        (3.0, 0.0, "3.000 ± 0.000"),
        (3.245, 0.012, "3.245 ± 0.012"),
        (812.345, 25.1234, "812.345 ± 25.123"),
        (173548.2, 259.343, "173,548 ± 259"),
        (27690.0, 563.541, "27,690 ± 564"),
        (-45000.4, 25.6, "-45,000 ± 26"),
        (1234.567, 3.21, "1,234.6 ± 3.2"),
        (12345.67, 1234.5, "12,346 ± 1,234"),
        (500.3, 1500.3, "500 ± 1,500"),
        (-12345.6, 0.001, "-12,345.6000 ± 0.0010"),
        (12345.0, 0.0, "12,345 ± 0.000"),
    ],
)
def test_a_mean_has_the_digits_its_error_allows(mean: float, error: float, text: str) -> None:
    assert str(stats.Summary(5, mean, 1.0, error)) == text


def test_failed_runs_are_left_out_of_a_summary() -> None:
    assert stats.summary([1.0, float("nan"), 3.0]) == stats.summary([1.0, 3.0])
    assert stats.summary([]).n == 0
    assert np.isnan(stats.summary([4.0]).error)


def all_signs_p_value(difference: list[float]) -> float:
    """The two-sided p-value by enumerating the signs of all ranks: what the test is by definition."""
    order = np.argsort(np.argsort(np.abs(difference))) + 1.0
    total = order[np.array(difference) > 0].sum()
    sums = np.array(list(itertools.product((0, 1), repeat=len(order)))) @ order
    below, above = np.mean(sums <= total), np.mean(sums >= total)
    return float(min(1.0, 2.0 * min(below, above)))


@settings(deadline=None)
@given(st.lists(st.integers(1, 50), min_size=3, max_size=9, unique=True), st.data())
def test_signed_rank_is_the_enumeration_of_signs(sizes: list[int], data: st.DataObject) -> None:
    signs = data.draw(st.lists(st.sampled_from([-1, 1]), min_size=len(sizes), max_size=len(sizes)))
    difference = [float(s * z) for s, z in zip(signs, sizes, strict=True)]
    assert stats.signed_rank(difference, [0.0] * len(difference)) == pytest.approx(all_signs_p_value(difference))


def test_marks() -> None:
    low, high = np.arange(10.0), np.arange(10.0) + np.linspace(1, 2, 10)
    assert stats.mark(high, low) == "+"
    assert stats.mark(low, high) == "-"
    assert stats.mark(low, low) == "≈"
    assert stats.mark(high, low, maximise=False) == "-"
    assert stats.mark(high[:5], low[:5]) == "≈"  # five pairs can never be significant: p is at least 2 / 32
    assert stats.tally(["+", "≈", "+", "-"]) == "2/1/1"


@pytest.mark.parametrize("pairs", [1, 5, 6, 10])
def test_the_least_p_value_is_that_of_differences_of_one_sign(pairs: int) -> None:
    assert stats.least_p(pairs) == pytest.approx(stats.signed_rank(np.arange(1.0, pairs + 1), np.zeros(pairs)))
    assert (stats.least_p(pairs) < stats.CONFIDENCE) == (pairs >= stats.FEWEST_PAIRS)


@settings(deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=6, max_size=20), st.integers(0, 10**6))
def test_marks_are_antisymmetric(values: list[float], seed: int) -> None:
    other = np.array(values) + np.random.default_rng(seed).normal(0.5, 1.0, len(values))
    opposite = {"+": "-", "-": "+", "≈": "≈"}
    assert stats.mark(values, other) == opposite[stats.mark(other, values)]


def test_ranks() -> None:
    assert stats.ranks({"a": 1.0, "b": 3.0, "c": 1.0, "d": float("nan")}) == {"a": 2.5, "b": 1.0, "c": 2.5, "d": 4.0}
    assert stats.ranks({"a": 1.0, "b": 3.0}, maximise=False) == {"a": 1.0, "b": 2.0}


def test_apart_in_standard_errors() -> None:
    one, other = stats.Summary(5, 3.0, 1.0, 0.3), stats.Summary(5, 2.0, 1.0, 0.4)
    assert stats.apart(one, other) == pytest.approx(2.0)


def test_best_at_a_time_is_a_step_function() -> None:
    seconds, best = np.array([1.0, 2.0, 4.0]), np.array([0.1, 0.5, 0.9])
    found = stats.at_seconds(seconds, best, np.array([0.5, 1.0, 3.9, 4.0, 9.0]))
    np.testing.assert_array_equal(found, [np.nan, 0.1, 0.5, 0.9, 0.9])


@pytest.mark.parametrize(
    ("value", "text"), [(3.14159, "3.142"), (0.0, "0.000"), (0.0001234, "0.000123"), (45000.0, "45,000"), (np.nan, "–")]
)
def test_numbers_as_people_read_them(value: float, text: str) -> None:
    assert stats.number(value) == text


def test_holm_raises_the_smallest_most() -> None:
    assert stats.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert stats.holm([0.9, 0.8]) == [1.0, 1.0]
    assert stats.holm([]) == []


def test_a_mark_may_not_survive_the_correction() -> None:
    rng = np.random.default_rng(0)
    one, same = np.arange(8.0), [rng.permutation(8).astype(float) for _ in range(6)]
    ahead = one, one - np.array([1, 2, 3, 4, 5, 6, -0.5, 7])
    assert stats.mark(*ahead) == "+"
    assert stats.corrected_marks([ahead]) == ["+"]
    assert stats.corrected_marks([ahead, *((one, other) for other in same)])[0] == "≈"
