"""Evaluations that prove which variables act, and what they cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mctsvs
from mctsvs import InputError, Optimizer, Study
from mctsvs.optimizer.active_variables import ALL
from mctsvs.optimizer.explanation import LITTLE, MISSES, SOURCE, Explanation, Role, rank


def sparse(x: Any) -> float:
    return float(3 * (x[5] - 0.3) ** 2 + 2 * abs(x[17] - 0.8) + x[29] * x[31])


def alike(x: Any) -> float:
    return float(((x - 0.3) ** 2).sum())


def optimised(f: Any, D: int, budget: int = 120, batch: int = 1, seed: int = 0, **more: Any) -> Optimizer:
    opt = Optimizer([(0, 1)] * D, budget=budget, seed=seed, **more)
    while len(opt.trials) < budget:
        for trial in opt.ask(batch):
            opt.tell(trial, f(trial.x))
    return opt


@pytest.mark.parametrize("batch", [1, 10])
def test_what_is_named_acts_and_can_be_checked(batch: Any) -> None:
    opt = optimised(sparse, 60, budget=200, batch=batch)
    rows = opt.variables()
    assert {"x5", "x17"} <= set(rows.active) <= {"x5", "x17", "x29", "x31"}
    for row in rows:
        if row.status == "active":
            one, other = (opt.trials[number] for number in row.evidence)
            assert np.flatnonzero(one.x != other.x).tolist() == [int(row.name[1:])]
            assert abs((one.value or 0.0) - (other.value or 0.0)) == row.effect > 0
    assert sum(t.source == SOURCE for t in opt.trials) <= 12


@pytest.mark.parametrize("seed", range(5))
def test_where_all_variables_act_that_is_said_and_none_is_named(seed: Any) -> None:
    rows = optimised(alike, 40, budget=200, seed=seed).variables()
    assert rows.summary.startswith("all variables act, as far as tested")
    assert rows.named == []


@pytest.mark.parametrize("seed", range(3))
def test_the_example_of_minimize_names_no_variable(seed: int) -> None:
    result = mctsvs.minimize(alike, [(0, 1)] * 50, budget=100, seed=seed)
    assert result.variables.named == []
    assert "all variables act, as far as tested" in repr(result)


def test_nothing_inert_is_named_where_the_function_has_plateaus() -> None:
    def f(x: Any) -> float:
        return float(max(x[3] - 0.2, 0) * 4 + max(x[17] + x[40] - 1, 0) + (x[54] - 0.5) ** 2 * (x[55] > 0.5))

    for seed in range(2):
        rows = optimised(f, 60, budget=150, seed=seed).variables()
        assert rows.active
        assert set(rows.active) <= {"x3", "x17", "x40", "x54", "x55"}


def test_the_sentence_is_that_of_the_result() -> None:
    result = mctsvs.minimize(lambda x: float((x[2] - 0.5) ** 2), [(0, 1)] * 30, budget=100, seed=0)
    assert result.variables.summary == "x2 acts"
    assert "x2 acts" in repr(result)
    assert result.fun == min(t.value for t in result.trials if t.value is not None) == float((result.x[2] - 0.5) ** 2)


def test_no_evaluation_explains_where_the_user_says_so() -> None:
    opt = optimised(sparse, 60, explain=0)
    assert all(t.source == "proposed" for t in opt.trials)
    assert optimised(sparse, 60, explain=0).best.value == optimised(sparse, 60, explain=0.0).best.value
    with pytest.raises(InputError, match="explain=2 cannot be used"):
        Optimizer([(0, 1)] * 3, explain=2)


@pytest.mark.parametrize("method", ["random", "turbo"])
def test_any_method_explains_when_asked(method: Any) -> None:
    rows = optimised(sparse, 60, budget=100, method=method, explain=0.4).variables()
    assert len(rows.active) >= 2
    assert set(rows.active) <= {"x5", "x17", "x29", "x31"}
    untested = optimised(sparse, 60, budget=60, method=method).variables()
    assert untested.active == []
    assert "no point was evaluated twice" in untested.summary


def test_a_study_explains_afterwards_and_goes_on_bit_for_bit(tmp_path: Any) -> None:
    def begun(name: str) -> Study:
        study = Study(tmp_path / name, [(0, 1)] * 60, method="random", seed=1)
        study.optimize(sparse, budget=40)
        return study

    with begun("whole.db") as study:
        rows = study.explain(sparse, evaluations=30)
        whole = [t.x.tolist() for t in study.trials]
        assert len(rows.active) >= 2
        assert len(study.trials) <= 70
    begun("parts.db").close()
    for _ in range(100):  # a process for each evaluation
        with Study(tmp_path / "parts.db") as study:
            if len(study.trials) == len(whole):
                break
            study.explain(sparse, evaluations=70 - len(study.trials), callback=lambda study, trial: True)
    with Study(tmp_path / "parts.db") as study:
        assert [t.x.tolist() for t in study.trials] == whole
        assert study.variables() == rows


def test_a_restored_optimizer_asks_the_same() -> None:
    opt = optimised(sparse, 60, budget=200)
    half = Optimizer([(0, 1)] * 60, budget=200, seed=0)
    for number in range(200):
        half = Optimizer.restore(half.state()) if number >= 186 else half
        (trial,) = half.ask()
        assert np.array_equal(trial.x, opt.trials[number].x)
        half.tell(trial, sparse(trial.x))


def test_known_constraints_hold_at_every_point_that_explains() -> None:
    opt = optimised(sparse, 40, constraints=["x5 + x17 + x29 <= 1.5"], explain=0.2)
    assert all(t.x[5] + t.x[17] + t.x[29] <= 1.5 for t in opt.trials)
    assert set(opt.variables().active) <= {"x5", "x17", "x29", "x31"}


def test_under_noise_a_study_can_be_asked_too(tmp_path: Any) -> None:
    rng = np.random.default_rng(0)

    def noisy(x: Any) -> Any:
        return 10 * sparse(x) + 0.05 * rng.standard_normal()

    with Study(tmp_path / "noisy.db", [(0, 1)] * 20, seed=0, noise=0.05) as study:
        f = lambda x: noisy(np.concatenate([x, np.full(20, 0.5)]))  # noqa: E731
        study.optimize(f, budget=60)
        rows = study.explain(f, evaluations=30)
        assert rows.active
        assert set(rows.active) <= {"x5", "x17"}


def test_one_variable_after_another_is_changed_until_three_in_a_row_change_little() -> None:
    opt = optimised(sparse, 60, budget=100, method="random", explain=0.4)
    asked = [t for t in opt.trials if t.iteration == Role.RANKED and t.source == SOURCE]
    shares = {int(row.name[1:]): row.share for row in opt.variables()}
    little = [shares[int(t.variables[0])] <= LITTLE for t in asked]
    assert little[-MISSES:] == [True] * MISSES
    assert all(not all(little[i : i + MISSES]) for i in range(len(little) - MISSES))
    assert {5, 17} <= {int(t.variables[0]) for t in asked[:4]}, "the first of the ranking"
    assert all(t.unit[int(t.variables[0])] in (0.0, 1.0) for t in asked), "to an end of its range"
    for trial in asked:
        before = min(opt.trials[: trial.number], key=lambda t: float(t.value or 0.0))
        assert np.abs(trial.x - before.x)[trial.variables] >= 0.5, "the farther one"


def test_the_ranking_of_very_many_variables_begins_with_those_that_act() -> None:
    """With more than a model can rank, the correlation of each with the values decides which it is asked about."""
    space, rng = mctsvs.Space.of([(0, 1)] * 700), np.random.default_rng(0)
    X = rng.random((60, 700))
    y = 3 * X[:, 650] - 2 * X[:, 20]
    order = rank(space, X, y[:, None], X[0], 1.0)
    assert sorted(order.tolist()) == list(range(700))
    assert {650, 20} <= set(order[:5].tolist())


@pytest.mark.parametrize("seed", range(6))
def test_all_are_said_to_act_only_where_five_of_six_drawn_at_random_do(seed: int) -> None:
    """Half of them act here, and which is drawn first depends on the seed."""
    opt = optimised(
        lambda x: float(((x[::2] - 0.3) ** 2).sum()), 24, budget=150, seed=seed, method="random", explain=0.4
    )
    rows = opt.variables()
    drawn = [int(t.variables[0]) % 2 == 0 for t in opt.trials if t.source == SOURCE and t.iteration == Role.DRAWN]
    assert rows.summary.startswith(ALL) == (len(drawn) >= 3 and sum(drawn) >= 5)
    assert set(rows.active) <= {f"x{i}" for i in range(0, 24, 2)}


def test_a_category_that_acts_is_found() -> None:
    space = {f"k{i}": mctsvs.Categorical(["a", "b", "c", "d"]) for i in range(8)}
    tried = set()
    for seed in range(3):
        opt = Optimizer(space, budget=60, seed=seed, method="random", explain=0.5)
        for _ in range(60):
            (trial,) = opt.ask()
            opt.tell(trial, float(trial.params["k3"] in "ab") + 2.0 * (trial.params["k6"] == "c"))
            if trial.source == SOURCE and trial.iteration in (Role.RANKED, Role.DRAWN):
                assert trial.purpose.startswith("changing one variable")
                best = next(t for t in opt.trials if t.number == opt.best.number)
                assert sum(trial.params[name] != best.params[name] for name in space) <= 1
                tried.add(trial.params[f"k{int(trial.variables[0])}"])
        assert opt.variables().active == ["k6", "k3"]
    assert tried == set("abcd"), "any other category"


def test_half_of_the_variables_in_doubt_is_never_none_nor_all_of_them() -> None:
    """And where little is known the first of the ranking count for more: less than half of them is asked about."""
    opt = optimised(sparse, 60, budget=60, method="random", explain=0)
    explanation = Explanation(opt._core)
    for many in (2, 3, 7, 60):
        doubted = np.sort(explanation.ranking[:many])
        half = explanation._likely_half(doubted)
        assert 0 < len(half) < many
        assert set(half) == set(explanation.ranking[: len(half)])
    assert len(half) < 30


def test_a_model_ranks_those_first_that_change_its_mean_most() -> None:
    space = mctsvs.Space.of([(0, 1)] * 6 + [mctsvs.Categorical(["a", "b", "c"])] * 2)
    rng = np.random.default_rng(0)
    X = np.array([space.snap(u) for u in rng.random((80, space.n_coordinates))])
    y = 3 * X[:, 4] + 2 * X[:, 9 + 1] - (X[:, 1] - 0.5) ** 2  # x4, the second choice of x7, and hardly x1
    assert rank(space, X, y[:, None], X[int(np.argmin(y))], -1.0)[:2].tolist() == [4, 7]
    assert rank(space, X, np.column_stack([np.ones(80), y]), X[0], -1.0)[:2].tolist() == [4, 7], "a constraint alone"


def test_what_a_trial_was_for_is_a_number_that_stays() -> None:
    """It is kept in studies, which later versions read."""
    assert {role.name: role.value for role in Role} == {"REPEAT": 1, "RANKED": 2, "DRAWN": 3, "HALVED": 4, "JOINT": 5}


def test_places_in_a_ranking_are_counted_from_one() -> None:
    opt = Optimizer([(0, 1)] * 20, method="random", seed=0)
    for _ in range(40):
        (trial,) = opt.ask()
        opt.tell(trial, float(3 * trial.x[5] - 2 * trial.x[17]))
    places = {row.name: row.rank for row in opt.variables(ranked=True)}
    assert sorted(place or 0 for place in places.values()) == list(range(1, 21))
    assert {places["x5"], places["x17"]} == {1, 2}
    assert all(row.rank is None for row in opt.variables())
