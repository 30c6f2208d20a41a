"""History and information set."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mctsvs.methods.history import EXTERNAL, History, InformationSet
from mctsvs.methods.mcts_vs.tree import variant
from mctsvs.testing import through_plain_data
from mctsvs.utils.validation import Array, Indices, InputError

VALUES = st.floats(-1e3, 1e3)


def eq2(pairs: list[tuple[Indices, list[float]]], n_variables: int) -> Array:
    """Eq. 2 as printed: sums over the whole information set."""
    total, count = np.zeros(n_variables), np.zeros(n_variables)
    for subset, values in pairs:
        g = np.isin(np.arange(n_variables), subset).astype(float)
        total += sum(values) * g
        count += len(values) * g
    return total / count


@given(st.lists(st.tuples(st.sets(st.integers(0, 6), min_size=1), st.lists(VALUES, min_size=1, max_size=4))))
def test_incremental_score_is_eq2(batches: list[tuple[set[int], list[float]]]) -> None:
    pairs = [(np.arange(7), [1.0]), *((np.array(sorted(s)), values) for s, values in batches)]
    information = InformationSet(7)
    for subset, values in pairs:
        for y in values:
            information.add(subset, y)
    assert np.allclose(information.score, eq2(pairs, 7))
    everything = [y for _, values in pairs for y in values]
    assert information.deviation == pytest.approx(np.std(everything), abs=1e-6)


def test_authors_program_scores_the_best_of_each_distinct_subset() -> None:
    information = InformationSet(3, variant("authors-program"))
    for subset, y in (([0, 1], 2.0), ([0, 1], 5.0), ([0, 1], 1.0), ([1, 2], 4.0)):
        information.add(np.array(subset), y)
    assert information.score.tolist() == [5.0 / 3.0, (5.0 + 4.0) / 4.0, 4.0]


def test_a_variable_never_moved_is_neither_good_nor_bad() -> None:
    information = InformationSet(3)
    information.add(np.array([0]), 1.0)
    information.add(np.array([1]), 3.0)
    assert information.score.tolist() == [1.0, 3.0, 2.0]
    assert InformationSet(2).score.tolist() == [0.0, 0.0]


def test_unknown_variant() -> None:
    with pytest.raises(InputError, match=r"'authors'.*text, authors-program"):
        variant("authors")


def test_information_goes_on_from_its_state() -> None:
    one, two = (InformationSet(3, variant("authors-program")) for _ in range(2))
    one.add(np.array([0, 1]), 2.0)
    two.restore(through_plain_data(one.state()))
    for information in (one, two):
        information.add(np.array([1, 0]), 5.0)
    assert one.state()["best"] == two.state()["best"]
    assert np.array_equal(one.score, two.score)
    assert one.deviation == two.deviation


@given(st.lists(VALUES, min_size=1, max_size=60), st.integers(1, 70))
def test_best_rows(values: list[float], k: int) -> None:
    history = History(2)
    for i, y in enumerate(values):
        history.add(np.array([i, 0.0]), y)
    expected = sorted(range(len(values)), key=lambda i: (-values[i], i))[:k]
    assert history.best(k).tolist() == expected
    assert history.X[:, 0].tolist() == list(range(len(values)))


def test_failures_are_kept_apart() -> None:
    history = History(2)
    history.add(np.array([0.1, 0.2]), 1.0)
    history.add(np.array([0.3, 0.4]), float("nan"))
    assert len(history) == 1
    assert [x.tolist() for x in history.failures] == [[0.3, 0.4]]
    again = History(2)
    again.restore(through_plain_data(history.state()))
    assert again.X.tolist() == history.X.tolist()
    assert len(again.failures) == 1


def test_proposal_ids_stand_beside_the_points_they_belong_to() -> None:
    history = History(1)
    for i in range(40):  # the arrays grow twice
        history.add(np.array([i / 40]), np.nan if i % 7 == 3 else float(i), proposal_id=EXTERNAL if i % 5 == 0 else i)
    told = [i for i in range(40) if i % 7 != 3]
    assert history.proposal_ids.tolist() == [EXTERNAL if i % 5 == 0 else i for i in told]
    assert history.y.tolist() == told
    state = history.state()
    history.add(np.array([0.5]), 1.0, 99)
    again = History(1)
    again.restore(state)  # a state taken stays what it is
    assert again.proposal_ids.tolist() == history.proposal_ids.tolist()[:-1]
    again.add(np.array([0.5]), 1.0, 99)
    assert again.proposal_ids.tolist() == history.proposal_ids.tolist()
