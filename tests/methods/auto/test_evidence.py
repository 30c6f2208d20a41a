"""Posterior probability that a variable matters, from tests of groups."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mctsvs.methods.auto.evidence import Evidence


def search(n_variables: int, active: set[int], seed: int, most: int = 500) -> Evidence:
    """Test until settled, with a noise-free oracle."""
    evidence, rng = Evidence(n_variables), np.random.default_rng(seed)
    none = np.empty(0, dtype=np.intp)
    for _ in range(most):
        if evidence.undecided < 0.05:
            break
        group = evidence.next_group(none, rng)
        if len(group) == 0:
            break
        evidence.add(group, 1.0, hit=bool(active & set(group.tolist())))
        evidence.learn_prior()
    return evidence


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(20, 400))
def test_nothing_else_is_found_and_nothing_active_is_rejected(seed: int, n_active: int, n_variables: int) -> None:
    """One in hundreds of searches ends with a variable left open: less than 0.05 of one is expected to be."""
    active = set(np.random.default_rng(seed).permutation(n_variables)[:n_active].tolist())
    evidence = search(n_variables, active, seed)
    found = set(evidence.found.tolist())
    assert found <= active
    left = sorted(active - found)
    assert not evidence.rejected[left].any()
    assert evidence.undecided < 0.05


def test_finds_exactly_the_active_variables() -> None:
    for seed in range(30):
        active = set(np.random.default_rng(seed).permutation(300)[: 1 + seed % 12].tolist())
        assert set(search(300, active, seed).found.tolist()) == active


def test_number_of_tests_is_near_the_information_bound() -> None:
    """6 of 500 take log2 C(500, 6) = 44 bits; the mean over 20 draws was 50.6 tests when this was written."""
    tests = []
    for seed in range(20):
        active = set(np.random.default_rng(seed).permutation(500)[:6].tolist())
        tests.append(search(500, active, seed).tests)
    assert np.mean(tests) < 60


def test_hundred_thousand_variables() -> None:
    active = {3, 500, 7_777, 20_000, 65_000, 99_999}
    evidence = search(100_000, active, 0)
    assert set(evidence.found.tolist()) == active
    assert evidence.tests < 140


def test_marginals_of_a_tree_of_tests_are_exact() -> None:
    """Two overlapping hits and a miss, against the sum over all subsets (no loops, and below the cap)."""
    evidence = Evidence(7, prior=0.1)
    groups = [(np.array([0, 1, 2]), True), (np.array([2, 3, 4]), True), (np.array([4]), False)]
    for group, hit in groups:
        evidence.add(group, 1.0, hit=hit)
    weight, total = np.zeros(7), 0.0
    for bits in itertools.product([0, 1], repeat=7):
        x = np.array(bits)
        if all(x[group].any() == hit for group, hit in groups):
            w = float(np.prod(np.where(x == 1, 0.1, 0.9)))
            weight += w * x
            total += w
    assert evidence.probability == pytest.approx(weight / total, abs=1e-6)


def test_a_group_alone_never_proves_a_variable() -> None:
    evidence = Evidence(3, prior=0.3)
    evidence.add(np.array([0, 1]), 1.0, hit=True)
    evidence.add(np.array([1]), 0.0, hit=False)
    evidence.add(np.array([0, 2]), 1.0, hit=True)
    evidence.add(np.array([2]), 0.0, hit=False)
    assert evidence.found.tolist() == [0], "the only variable left of a hit is a proof"
    other = Evidence(3, prior=0.3)
    for _ in range(5):
        other.add(np.array([0, 1]), 1.0, hit=True)
    assert other.found.tolist() == []


def test_an_unchanged_point_is_no_evidence() -> None:
    evidence = Evidence(5)
    before = evidence.probability.copy()
    evidence.add(np.empty(0, dtype=np.intp), 0.0, hit=False)
    assert evidence.tests == 0
    assert np.array_equal(evidence.probability, before)


def test_groups_under_way_are_left_alone() -> None:
    evidence, rng = Evidence(50), np.random.default_rng(0)
    first = evidence.next_group(np.empty(0, dtype=np.intp), rng)
    second = evidence.next_group(first, rng)
    assert len(np.intersect1d(first, second)) == 0
    assert len(evidence.next_group(np.arange(50), rng)) == 0


def test_restored_evidence_goes_on_alike() -> None:
    evidence = search(80, {1, 2, 70}, 3, most=15)
    again = Evidence(80)
    again.restore(evidence.state())
    none = np.empty(0, dtype=np.intp)
    for seed in range(5):
        group = evidence.next_group(none, np.random.default_rng(seed))
        assert np.array_equal(group, again.next_group(none, np.random.default_rng(seed)))
        for one in (evidence, again):
            one.add(group, 1.0, hit=seed % 2 == 0)
            one.learn_prior()
    assert np.array_equal(evidence.probability, again.probability)
