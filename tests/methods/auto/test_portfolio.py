"""Which arm has the next turn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mctsvs.methods.auto import constants as const
from mctsvs.methods.auto.portfolio import Portfolio

GAINS = np.array([8.0, 4.0, 2.0, 1.0])  # of a run


def turns(portfolio: Portfolio, arms: list[str], count: int) -> list[str]:
    return [portfolio.next(arms) for _ in range(count)]


def test_without_gains_arms_take_turns() -> None:
    portfolio = Portfolio()
    for _ in range(30):
        portfolio.learn(portfolio.next(["a", "b", "c"]), 0.0, GAINS)
    assert sorted(turns(portfolio, ["a", "b", "c"], 3)) == ["a", "b", "c"]


def test_turns_are_in_proportion_to_credit() -> None:
    portfolio = Portfolio()
    for _ in range(10):
        portfolio.learn("a", 3.0, GAINS)  # no smaller than half of the gains
        portfolio.learn("b", 1.5, GAINS)  # than a quarter
    assert portfolio.credit("a") == pytest.approx((10 * 0.5 + const.HOPE) / 11)
    assert portfolio.credit("b") == pytest.approx((10 * 0.25 + const.HOPE) / 11)
    assert turns(portfolio, ["a", "b"], 300).count("a") == pytest.approx(200, abs=2)


def test_an_arm_without_turns_has_one_again() -> None:
    portfolio = Portfolio()
    portfolio.learn("b", 0.0, GAINS)
    for _ in range(const.WINDOW):
        portfolio.learn("a", 0.0, GAINS)
    assert portfolio.credit("b") == const.HOPE > portfolio.credit("a")


def test_steady_small_gains_do_not_silence_an_arm() -> None:
    portfolio = Portfolio()
    for _ in range(const.WINDOW):
        portfolio.learn("a", 8.0, GAINS)
    chosen = turns(portfolio, ["a", "b"], 100)
    assert chosen.count("b") == pytest.approx(100 * const.SHARE / (1 + const.SHARE), abs=2)


def test_failures_and_values_without_one_before_gain_nothing() -> None:
    portfolio = Portfolio()
    for gain in (-1.0, np.nan, np.inf, -np.inf):
        portfolio.learn("a", gain, GAINS)
    assert portfolio.worths == [0.0] * 4


def test_two_batches_are_remembered() -> None:
    portfolio = Portfolio(most=50)
    for _ in range(200):
        portfolio.learn("a", 1.0, GAINS)
    assert len(portfolio.arms) == len(portfolio.worths) == 100


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(-1000, 1000)), max_size=60), st.integers(-30, 30))
def test_units_do_not_matter(points: list[tuple[str, int]], exponent: int) -> None:
    one, other, scale = Portfolio(), Portfolio(), 2.0**exponent
    gains = np.array([abs(gain) for _, gain in points if gain != 0], dtype=float)
    for arm, gain in points:
        one.learn(arm, gain, gains)
        other.learn(arm, scale * gain, scale * gains)
    assert turns(one, ["a", "b", "c"], 20) == turns(other, ["a", "b", "c"], 20)
