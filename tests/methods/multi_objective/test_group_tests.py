"""Group tests: every variable is found or rejected, in any order of answers."""

from __future__ import annotations

import numpy as np
import pytest

from mctsvs.methods.multi_objective.group_tests import PROBES, GroupTests, Question
from mctsvs.utils.state import dump, load


def answered(tests: GroupTests, active: set[int], batch: int = 1, seed: int = 0) -> int:
    """Ask and answer until nothing is open, so many questions at once in a random order; how many there were."""
    rng, waiting, count = np.random.default_rng(seed), list[Question](), 0
    while not tests.ended:
        while len(waiting) < batch and (question := tests.next()) is not None:
            waiting.append(question)
        assert waiting
        question = waiting.pop(int(rng.integers(len(waiting))))
        tests.answer(question, acts=bool(active & set(question.variables.tolist())))
        count += 1
    return count


@pytest.mark.parametrize("batch", [1, 3, 50])
@pytest.mark.parametrize("n", [40, 41, 300])
@pytest.mark.parametrize("active", [{0, 7, 39}, {5}, set(), {1, 2, 3, 4}])
def test_all_are_found_and_the_others_rejected(n: int, active: set[int], batch: int) -> None:
    tests = GroupTests.begin(np.random.default_rng(1).permutation(n), 0)
    answered(tests, active, batch, seed=n)
    assert tests.ended
    assert not tests.dense
    assert sorted(tests.active) == sorted(active)
    assert sorted([*tests.active, *tests.rejected]) == list(range(n))
    assert set(tests.kept(n)) == (active or set(range(n)))  # where nothing acts, anything may


def test_few_tests_are_needed_where_few_act() -> None:
    tests = GroupTests.begin(np.random.default_rng(2).permutation(300), 0)
    assert answered(tests, set(range(0, 300, 50))) < 60


def test_where_every_probe_acts_all_variables_do() -> None:
    tests = GroupTests.begin(np.arange(100), 0)
    assert answered(tests, set(range(100))) == PROBES
    assert tests.dense
    assert len(tests.kept(100)) == 100


def test_stopping_keeps_what_may_act() -> None:
    tests = GroupTests.begin(np.arange(300), 0)
    for _ in range(PROBES + 1):
        question = tests.next()
        assert question is not None
        tests.answer(question, acts=False)
    last = tests.next()
    assert last is not None
    tests.stop()
    rejected = len(tests.rejected)
    tests.answer(last, acts=False)
    assert tests.ended
    assert tests.next() is None
    assert len(tests.kept(300)) == 300 - rejected


def test_state_is_complete() -> None:
    tests = GroupTests.begin(np.random.default_rng(3).permutation(120), 4)
    for _ in range(7):
        question = tests.next()
        assert question is not None
        tests.answer(question, acts=bool({3, 90} & set(question.variables.tolist())))
    again = load(GroupTests, dump(tests))
    assert answered(again, {3, 90}) == answered(tests, {3, 90})
    assert again.active == tests.active
    assert again.rejected == tests.rejected
