"""Methods with options written as one word."""

from __future__ import annotations

import dataclasses
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mctsvs.bench import algorithms, commands
from mctsvs.bench.algorithms import ConfiguredMethod
from mctsvs.bench.problems import make
from mctsvs.bench.run_store import Job
from mctsvs.utils.validation import InputError

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
    case = ConfiguredMethod("mcts-vs-bo", options, paper)
    assert algorithms.parse(case.label) == case
    assert algorithms.split(f"bo,{case.label},random") == ["bo", case.label.strip(), "random"]


def test_options_are_literals_or_words() -> None:
    case = algorithms.parse("mcts-vs-bo[cp=0.1,k=10,fill_in=average-best-k,paper]")
    assert case == ConfiguredMethod("mcts-vs-bo", {"cp": 0.1, "k": 10, "fill_in": "average-best-k"}, paper=True)


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
        algorithms.parse(text)


def test_the_value_of_an_option_is_checked_before_anything_runs() -> None:
    with pytest.raises(InputError, match="k="):
        algorithms.parse("mcts-vs-bo[k=0]").check(make("Hartmann6_20"))


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
        algorithms.parse(text).check(make("Hartmann6_20"))


@pytest.mark.parametrize(
    "text", ["sklearn-bo[samples=1,ard=True]", "ucb-all", "ucb-dropout[d=20]", "dropout-bo[d=20]", "dropout-bo"]
)
def test_values_that_fit_the_problem(text: str) -> None:
    if text.startswith("sklearn"):
        pytest.importorskip("sklearn")
    algorithms.parse(text).check(make("Hartmann6_20"))


def test_regret_needs_an_optimum() -> None:
    problem = dataclasses.replace(make("Hartmann6_20"), optimum=None)
    with pytest.raises(InputError, match="known optimum"):
        algorithms.parse("ucb-all").check(problem)


def test_the_papers_settings_leave_references_alone() -> None:
    found = commands.chosen_cases("bo,sklearn-bo[samples=1]", [], paper=True)
    assert [case.label for case in found] == ["bo[paper]", "sklearn-bo[samples=1]"]


@pytest.mark.parametrize(("text", "found"), [("2021-2023", [2021, 2022, 2023]), ("5", [5]), ("1,4-5,1", [1, 4, 5])])
def test_seeds(text: str, found: list[int]) -> None:
    assert commands.seeds(text) == found


WRONG = ["", "a", "3-", "-3", "5-2", "1;2", "5-1,7", "7,5-1", "1-1000000000", "1-99999,1-99999", "9" * 5000]


@pytest.mark.parametrize("text", WRONG, ids=lambda text: text[:20])
def test_wrong_seeds(text: str) -> None:
    with pytest.raises(InputError, match="seed"):
        commands.seeds(text)


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
    compared = commands.chosen_cases("bo,random", settings, paper)
    assert commands.chosen_reference(typed, settings, paper, compared).label == label


def test_a_reference_that_is_not_compared() -> None:
    with pytest.raises(InputError, match="not among the methods: use one of bo"):
        commands.chosen_reference("bo[pool=64]", [], False, [ConfiguredMethod("bo")])


def test_settings_apply_to_every_case_of_a_method_and_never_override_its_own() -> None:
    found = commands.chosen_cases("mcts-vs-bo,mcts-vs-bo[k=3],bo", ["mcts-vs-bo:k=9", "bo:pool=64"], paper=False)
    assert [case.label for case in found] == ["mcts-vs-bo[k=9]", "mcts-vs-bo[k=3]", "bo[pool=64]"]


def test_everything_that_makes_a_run_is_in_its_key() -> None:
    base = Job("Hartmann6_20", ConfiguredMethod("mcts-vs-bo", {"k": 3}), 1, 30)
    others = [
        Job("Hartmann6_21", base.case, 1, 30),
        Job(base.problem, ConfiguredMethod("mcts-vs-bo", {"k": 4}), 1, 30),
        Job(base.problem, ConfiguredMethod("mcts-vs-bo", {"k": 3}, paper=True), 1, 30),
        Job(base.problem, ConfiguredMethod("mcts-vs-rs", {"k": 3}), 1, 30),
        Job(base.problem, base.case, 2, 30),
        Job(base.problem, base.case, 1, 31),
        Job(base.problem, base.case, 1, 30, {"shuffle": True}),
    ]
    assert len({job.key for job in [base, *others]}) == 1 + len(others)
    assert Job.of(base.state()) == base
    assert Job.of(base.state()).key == base.key
