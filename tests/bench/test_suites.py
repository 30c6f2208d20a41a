"""Ranks over a suite of problems, worked out by hand."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mctsvs.utils.validation import Array

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    suites: Any = importlib.import_module("suites")

LOSS: dict[tuple[str, str], Array] = {
    ("p1", "a"): np.array([3.0, 1.0]),
    ("p1", "b"): np.array([2.0, 1.05]),
    ("p1", "c"): np.array([4.0, 4.0]),
    ("q1", "a"): np.array([1.0, 1.0]),
    ("q1", "b"): np.array([1.0, 0.5]),
    ("q1", "c"): np.array([2.0, np.nan]),
    ("q2", "a"): np.array([9.0, 9.0]),  # nobody else has run it
}


@pytest.fixture
def contest() -> suites.SuiteRanking:
    return suites.SuiteRanking.of(LOSS, ["a", "b", "c"], known=True)


def test_problems_that_some_have_not_run_are_left_out(contest: suites.SuiteRanking) -> None:
    assert contest.problems == ("p1", "q1")
    assert suites.SuiteRanking.of(LOSS, ["a"], known=True).problems == ("p1", "q1", "q2")


def test_ranks(contest: suites.SuiteRanking) -> None:
    assert contest.ranks[:, :, 0].tolist() == [[2.0, 1.0, 3.0], [1.5, 1.5, 3.0]]
    assert contest.ranks[:, :, 1].tolist() == [[1.0, 2.0, 3.0], [2.0, 1.0, 3.0]]  # a failure is last
    assert [rank.mean for rank in contest.mean_ranks(1)] == [1.75, 1.25, 3.0]


def test_firsts_and_near(contest: suites.SuiteRanking) -> None:
    assert contest.near(1, 1.0) == [1, 2, 0]
    assert contest.near(2, 1.0) == [1, 1, 0]
    assert contest.near(2, 1.1) == [1, 2, 0]


def test_tables(contest: suites.SuiteRanking) -> None:
    lines = suites.overall(contest, [1, 2]).splitlines()
    head = "| method | mean rank at 1 | mean rank at 2 | first at 1 / 2 | within 10 % of the best at 1 / 2 |"
    assert lines[0] == head
    assert lines[2] == "| a | 1.75 ± 0.25 | 1.50 ± 0.50 | 1 / 1 | 1 / 1 |"
    assert [line.split()[1] for line in lines[2:]] == ["a", "b", "c"]
    groups = suites.by_group(contest, lambda problem: problem[0], [1, 2]).splitlines()
    assert groups[0] == "| method | p (1) | q (1) |"
    assert groups[3] == "| b | 1.00 / 2.00 | 1.50 / 1.00 |"
    assert "mean rank at 2 |" in suites.section(contest, str, [50, 100])
    assert "within" not in suites.overall(suites.SuiteRanking.of(LOSS, ["a", "b"], known=False), [1])


def test_figure(contest: suites.SuiteRanking, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    written = suites.figure({"all": contest, "one": contest.among(["p1"])}, tmp_path / "ranks")
    assert [path.name for path in written] == ["ranks.png", "ranks.svg", "ranks.pdf"]
    assert "mean rank" in written[1].read_text()
