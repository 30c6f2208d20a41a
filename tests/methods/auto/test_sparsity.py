"""Few or many variables that matter: told from the first tests."""

from __future__ import annotations

import numpy as np
import pytest

from mctsvs.methods.auto.constants import LEAST_PROBES, MOST_PROBES
from mctsvs.methods.auto.evidence import ActiveCount, cost


def probe(n_variables: int, n_active: int, seed: int) -> ActiveCount:
    rng = np.random.default_rng(seed)
    active = np.zeros(n_variables, dtype=bool)
    active[rng.permutation(n_variables)[:n_active]] = True
    order, at, count = rng.permutation(n_variables), 0, ActiveCount(n_variables)
    while not count.decided and at < n_variables:
        group = order[at : at + count.next_size]
        at += len(group)
        count.add(len(group), hit=bool(active[group].any()))
    return count


@pytest.mark.parametrize(
    ("n_variables", "n_active", "sparse"),
    [(500, 6, True), (1000, 6, True), (300, 10, True), (100_000, 6, True), (500, 60, False), (60, 60, False)],
)
def test_decides_rightly(n_variables: int, n_active: int, sparse: bool) -> None:
    """A decision errs in about 1 of 100 runs, so more than three errors in twenty have probability below 1e-4."""
    wrong = 0
    for seed in range(20):
        count = probe(n_variables, n_active, seed)
        wrong += (count.probability_dense < 0.5) != sparse
        assert LEAST_PROBES <= len(count.outcomes) <= MOST_PROBES
    assert wrong <= 3


def test_posterior_is_bayes_rule() -> None:
    count = ActiveCount(10)
    count.add(3, hit=True)
    m = count.m / 10
    likelihood = 1 - (1 - np.minimum(m, 1 - 1e-9)) ** 3
    prior = ActiveCount(10).weights
    assert count.weights == pytest.approx(prior * likelihood / (prior * likelihood).sum(), rel=1e-6)


def test_more_hits_mean_more_variables() -> None:
    hits, misses = ActiveCount(500), ActiveCount(500)
    for _ in range(5):
        hits.add(20, hit=True)
        misses.add(20, hit=False)
    assert hits.typical > 10 * misses.typical
    assert hits.next_size < misses.next_size


def test_cost_grows_with_variables_and_activity() -> None:
    active = np.array([1.0, 6.0, 60.0])
    assert (np.diff(cost(active, 500)) > 0).all()
    assert (cost(active, 100_000) > cost(active, 500)).all()


def test_one_variable() -> None:
    count = ActiveCount(1)
    count.add(1, hit=True)
    assert count.typical == pytest.approx(1.0)
    assert count.next_size == 1


def test_restores() -> None:
    count = probe(300, 10, 4)
    count.afford(70.0)
    again = ActiveCount(300)
    again.restore(count.state())
    assert again.limit == count.limit != ActiveCount(300).limit
    assert np.array_equal(count.weights, again.weights)
