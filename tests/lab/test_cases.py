"""Methods with options written as one word."""

from __future__ import annotations

import dataclasses
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mctsvs.cli import lab
from mctsvs.common import InputError
from mctsvs.lab import cases
from mctsvs.lab.cases import Case
from mctsvs.lab.store import Job
from mctsvs.problems import make

VALUES = st.one_of(
    st.integers(-1000, 1000),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.none(),
    st.text(string.printable, max_size=8),
    st.lists(st.floats(0, 1), max_size=3),
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["cp", "k", "variant", "samples"]), VALUES), st.booleans())
def test_a_label_is_read_back(options: dict[str, object], paper: bool) -> None:
    case = Case("mcts-vs-bo", options, paper)
    assert cases.parse(case.label) == case
    assert cases.split(f"bo,{case.label},random") == ["bo", case.label.strip(), "random"]


def test_options_are_literals_or_words() -> None:
    case = cases.parse("mcts-vs-bo[cp=0.1,k=10,fill_in=average-best-k,paper]")
    assert case == Case("mcts-vs-bo", {"cp": 0.1, "k": 10, "fill_in": "average-best-k"}, paper=True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mcts-us", "unknown method 'mcts-us'"),
        ("mcts-vs-bo[cpp=1]", "no option 'cpp'"),
        ("mcts-vs-bo[cp=1", "bracket"),
        ("mcts-vs-bo[cp]", "OPTION=VALUE"),
        ("random[d=3]", "no option 'd'"),
        ("ucb-all[d=3]", "it has none"),
        ("ucb-all[paper]", "leave out 'paper'"),
        ("sklearn-bo[samples=1,paper]", "leave out 'paper'"),
    ],
)
def test_wrong_cases_are_named(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words.replace("[", r"\[")):
        cases.parse(text)


def test_the_value_of_an_option_is_checked_before_anything_runs() -> None:
    with pytest.raises(InputError, match="k="):
        cases.parse("mcts-vs-bo[k=0]").check(make("Hartmann6_20"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sklearn-bo[samples=0]", "samples=0"),
        ("sklearn-bo[samples=1.5]", "samples=1.5"),
        ("sklearn-bo[ard=1]", "ard=1 cannot be used: it must be True or False"),
        ("ucb-dropout[d=0]", "d=0"),
        ("ucb-dropout[d=21]", "d=21 .* too large: Hartmann6_20 has 20 variables"),
        ("dropout-bo[d=100]", "d=100 .* too large: Hartmann6_20 has 20 variables"),
        ("lasso-bo[d=21]", "d=21 .* too large"),
        ("hesbo[d=21]", "d=21"),
    ],
)
def test_values_that_only_the_problem_can_refuse(text: str, words: str) -> None:
    if text.startswith(("sklearn", "lasso")):
        pytest.importorskip("sklearn")
    with pytest.raises(InputError, match=words):
        cases.parse(text).check(make("Hartmann6_20"))


@pytest.mark.parametrize(
    "text", ["sklearn-bo[samples=1,ard=True]", "ucb-all", "ucb-dropout[d=20]", "dropout-bo[d=20]", "dropout-bo"]
)
def test_values_that_fit_the_problem(text: str) -> None:
    if text.startswith("sklearn"):
        pytest.importorskip("sklearn")
    cases.parse(text).check(make("Hartmann6_20"))


def test_regret_needs_an_optimum() -> None:
    problem = dataclasses.replace(make("Hartmann6_20"), optimum=None)
    with pytest.raises(InputError, match="known optimum"):
        cases.parse("ucb-all").check(problem)


def test_the_papers_settings_leave_references_alone() -> None:
    found = lab.chosen_cases("bo,sklearn-bo[samples=1]", [], paper=True)
    assert [case.label for case in found] == ["bo[paper]", "sklearn-bo[samples=1]"]


@pytest.mark.parametrize(("text", "found"), [("2021-2023", [2021, 2022, 2023]), ("5", [5]), ("1,4-5,1", [1, 4, 5])])
def test_seeds(text: str, found: list[int]) -> None:
    assert lab.seeds(text) == found


WRONG = ["", "a", "3-", "-3", "5-2", "1;2", "5-1,7", "7,5-1", "1-1000000000", "1-99999,1-99999", "9" * 5000]


@pytest.mark.parametrize("text", WRONG, ids=lambda text: text[:20])
def test_wrong_seeds(text: str) -> None:
    with pytest.raises(InputError, match="seed"):
        lab.seeds(text)


@pytest.mark.parametrize(
    ("typed", "settings", "paper", "label"),
    [
        ("random", [], False, "random"),
        ("random", [], True, "random[paper]"),
        ("random[paper]", [], True, "random[paper]"),
        ("bo", ["bo:pool=64", "random:k=3"], True, "bo[paper,pool=64]"),
        ("bo[pool=64]", ["bo:pool=64"], False, "bo[pool=64]"),
    ],
)
def test_a_reference_is_named_as_the_methods_are(typed: str, settings: list[str], paper: bool, label: str) -> None:
    compared = lab.chosen_cases("bo,random", settings, paper)
    assert lab.chosen_reference(typed, settings, paper, compared).label == label


def test_a_reference_that_is_not_compared() -> None:
    with pytest.raises(InputError, match="not among the methods: use one of bo"):
        lab.chosen_reference("bo[pool=64]", [], False, [Case("bo")])


def test_settings_apply_to_every_case_of_a_method_and_never_override_its_own() -> None:
    found = lab.chosen_cases("mcts-vs-bo,mcts-vs-bo[k=3],bo", ["mcts-vs-bo:k=9", "bo:pool=64"], paper=False)
    assert [case.label for case in found] == ["mcts-vs-bo[k=9]", "mcts-vs-bo[k=3]", "bo[pool=64]"]


def test_everything_that_makes_a_run_is_in_its_key() -> None:
    base = Job("Hartmann6_20", Case("mcts-vs-bo", {"k": 3}), 1, 30)
    others = [
        Job("Hartmann6_21", base.case, 1, 30),
        Job(base.problem, Case("mcts-vs-bo", {"k": 4}), 1, 30),
        Job(base.problem, Case("mcts-vs-bo", {"k": 3}, paper=True), 1, 30),
        Job(base.problem, Case("mcts-vs-rs", {"k": 3}), 1, 30),
        Job(base.problem, base.case, 2, 30),
        Job(base.problem, base.case, 1, 31),
        Job(base.problem, base.case, 1, 30, {"shuffle": True}),
    ]
    assert len({job.key for job in [base, *others]}) == 1 + len(others)
    assert Job.of(base.state()) == base
    assert Job.of(base.state()).key == base.key
