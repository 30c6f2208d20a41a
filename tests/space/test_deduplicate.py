"""No point twice, until there is none left."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mctsvs
from mctsvs import Boolean, Categorical, Float, Integer, Study
from mctsvs.methods.registry import METHODS
from mctsvs.optimizer import Optimizer
from mctsvs.space import Region, Space
from mctsvs.space.deduplicate import KnownPoints, SpaceExhausted

SLOW = {"saasbo", "mcts-vs-saasbo", "optuna-gp", "vae-bo", "alebo"}
LATTICE = {"a": Integer(0, 4), "b": Float(0.0, 1.0, step=0.5), "c": Categorical(["x", "y", "z", "w"])}  # 60 points


def value(params: dict[str, object]) -> float:
    a, b = params["a"], params["b"]
    assert isinstance(a, int)
    assert isinstance(b, float)
    return (a - 3) ** 2 + (b - 0.5) ** 2 + (params["c"] != "z")


@pytest.mark.parametrize("method", [name for name in METHODS if name not in SLOW])
def test_a_lattice_is_searched_to_its_end(method: str) -> None:
    opt = Optimizer(LATTICE, method=method, seed=0)
    seen = set()
    for _ in range(60):
        (trial,) = opt.ask()
        seen.add(tuple(trial.params.values()))
        opt.tell(trial, value(trial.params))
    assert len(seen) == 60
    with pytest.raises(SpaceExhausted, match="all 60 points of the space"):
        opt.ask()


def test_minimize_ends_where_the_space_does() -> None:
    result = mctsvs.minimize(value, LATTICE, budget=100, seed=0)
    assert result.nfev == 60
    assert result.success
    assert result.message == "60 of 100 evaluations, every point of the space has been evaluated"


def test_a_batch_gets_what_is_left() -> None:
    opt = Optimizer(LATTICE, method="random", seed=0)
    assert len(opt.ask(50)) == 50
    assert len(opt.ask(50)) == 10
    with pytest.raises(SpaceExhausted):
        opt.ask()


def test_a_known_point_moves_as_little_as_possible() -> None:
    space = Space.of([Integer(0, 9)] * 3)
    known = KnownPoints(Region(space), seed=1)
    unit = space.encode(np.array([4.0, 4.0, 4.0]))
    known.add(unit)
    moved = space.decode(known.fresh(unit, np.array([1]), 7))
    assert moved.tolist() in ([4.0, 3.0, 4.0], [4.0, 5.0, 4.0])


def test_a_known_point_of_continuous_variables_moves_a_little_in_those_that_may_be_moved() -> None:
    region = Region(Space.of([(0.0, 1.0)] * 6))
    known, unit = KnownPoints(region, seed=0), np.full(6, 0.5)
    known.add(unit)
    for number in range(20):
        moved = known.fresh(unit, np.array([1, 4]), number)
        assert np.isin(np.flatnonzero(moved != unit), [1, 4]).all()
        assert 0.0 < np.abs(moved - unit).max() < 0.1


def test_a_known_point_moves_in_variables_that_exist_there() -> None:
    """Those asked for, where they do; else any."""
    space = {"on": Boolean(), "a": Float(0, 1), "b": Float(0, 1, when={"on": True})}
    region = Region(Space.of(space))
    known = KnownPoints(region, seed=0)
    off = region.space.encode_params({"on": False, "a": 0.5})
    on = region.space.encode_params({"on": True, "a": 0.5, "b": 0.5})
    known.add(off)
    known.add(on)
    for number in range(20):
        moved = region.space.params(known.fresh(on, np.array([2]), number))
        assert (moved["on"], moved["a"]) == (True, 0.5)
        assert moved["b"] != 0.5
        assert region.space.params(known.fresh(off, np.array([2]), number)) != {"on": False, "a": 0.5}


def test_a_restored_run_still_knows_its_points() -> None:
    opt = Optimizer(LATTICE, method="auto", seed=3)
    for _ in range(30):
        (trial,) = opt.ask()
        opt.tell(trial, value(trial.params))
    again = Optimizer.restore(opt.state())
    rest = [tuple(trial.params.values()) for trial in again.ask(30)]
    assert len({*rest, *(tuple(trial.params.values()) for trial in opt.trials)}) == 60


def test_a_run_restored_near_the_end_takes_the_same_points() -> None:
    space = [Integer(0, 19)] * 2  # so many that the last ones are found by counting
    whole, again = (Optimizer(space, method="random", seed=0) for _ in range(2))
    for i in range(390):
        whole.add([i // 20, i % 20], 0.0)
        again.add([i // 20, i % 20], 0.0)
    for _ in range(10):
        whole.tell(whole.ask()[0], 0.0)
        again.tell(again.ask()[0], 0.0)
        again = Optimizer.restore(again.state())
    assert [t.params for t in again.trials] == [t.params for t in whole.trials]


@pytest.mark.parametrize("method", [name for name in METHODS if name not in SLOW])
def test_where_values_are_noisy_points_are_evaluated_again_and_the_budget_is_used(method: str) -> None:
    rng = np.random.default_rng(0)
    result = mctsvs.minimize(
        lambda p: 0.5 * (p["a"] - 3) ** 2 + rng.standard_normal(),
        {"a": Integer(0, 5)},
        60,
        noise=1.0,
        replicates=0,
        method=method,
    )
    assert result.message == "60 evaluations"
    assert Counter(trial.params["a"] for trial in result.trials) == dict.fromkeys(range(6), 10)
    assert {trial.source for trial in result.trials[6:]} == {"repeated"}
    assert abs(result.x["a"] - 3) <= 1
    assert result.recommendation is not None
    assert result.recommendation.sd < 0.5


def test_the_better_of_points_evaluated_equally_often_comes_first_and_failures_never() -> None:
    opt = Optimizer({"a": Integer(0, 3)}, method="random", noise=0.5)
    for trial in opt.ask(4):
        opt.tell(trial, None if trial.params["a"] == 2 else float(trial.params["a"]))
    first = opt.ask(2)
    assert [trial.params["a"] for trial in first] == [0, 1]
    opt.tell(first[0], 9.0)
    assert [trial.params["a"] for trial in opt.ask(4)] == [3, 1, 3, 0]  # 0 has the mean 4.5 by now


def test_noise_told_with_values_is_enough_and_constraints_limit_what_is_repeated() -> None:
    opt = Optimizer({"a": Integer(0, 5)}, method="bo", constraints="a <= 2")
    for _ in range(3):
        opt.tell(opt.ask()[0], 1.0, noise=0.1)
    again = Optimizer.restore(opt.state())
    asked = []
    for _ in range(6):
        trials = [one.ask()[0] for one in (opt, again)]
        assert trials[0].params == trials[1].params
        asked.append(trials[0].params["a"])
        opt.tell(trials[0], 1.0)
        again.tell(trials[1], 1.0)
    assert Counter(asked) == dict.fromkeys(range(3), 2)


def test_where_everything_fails_nothing_is_repeated() -> None:
    opt = Optimizer({"a": Integer(0, 1)}, method="random", noise=1.0)
    for trial in opt.ask(2):
        opt.tell(trial, None)
    with pytest.raises(SpaceExhausted):
        opt.ask()


def test_a_study_keeps_repeated_points_and_goes_on(tmp_path: Path) -> None:
    def f(p: dict[str, Any]) -> float:
        return float(p["a"] % 3)

    space = {"a": Integer(0, 4)}
    with Study(tmp_path / "whole.db", space, noise=1.0, seed=0) as whole:
        whole.optimize(f, 23)
    for budget in (8, 23):
        with Study(tmp_path / "parts.db", space, noise=1.0, seed=0) as parts:
            parts.optimize(f, budget)
            found = [(trial.params, trial.value, trial.source) for trial in parts.trials]
    assert found == [(trial.params, trial.value, trial.source) for trial in whole.trials]
    assert len(found) == 23
