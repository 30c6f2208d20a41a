"""Fill-in strategies."""

from __future__ import annotations

import numpy as np
import pytest

from mctsvs.methods import composite
from mctsvs.methods.history import History
from mctsvs.utils.validation import InputError


@pytest.fixture
def history() -> History:
    history = History(4)
    for i in range(10):
        history.add(np.array([i, i + 100, i + 200, i + 200]), float(i))
    return history


OWNER = np.array([0, 1, 2, 2])  # the last variable owns two coordinates


def test_best_k_draws_each_variable_from_the_best_points(history: History) -> None:
    points = composite.make("best-k", 3)(500, history, OWNER, np.random.default_rng(0))
    assert {*points[:, 0]} == {7.0, 8.0, 9.0}
    assert (points[:, 2] == points[:, 3]).all()  # the coordinates of one variable stay together
    assert len({tuple(p) for p in points}) == 27  # the variables are drawn apart


def test_average_best_k(history: History) -> None:
    points = composite.make("average-best-k", 3)(2, history, OWNER, np.random.default_rng(0))
    assert points.tolist() == [[8.0, 108.0, 208.0, 208.0]] * 2


def test_random(history: History) -> None:
    points = composite.make("random")(50, history, OWNER, np.random.default_rng(0))
    assert ((points >= 0) & (points < 1)).all()


@pytest.mark.parametrize("name", ["best-k", "average-best-k", "random"])
def test_without_history(name: str) -> None:
    points = composite.make(name)(5, History(4), OWNER, np.random.default_rng(0))
    assert points.shape == (5, 4)


def test_bad_names() -> None:
    with pytest.raises(InputError, match=r"'copy'.*best-k, average-best-k, random"):
        composite.make("copy")
    with pytest.raises(InputError, match="k=0"):
        composite.make("best-k", 0)
