"""The model that tells variables apart, where others model all alike: turns where it is needed, while it is good."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mctsvs import Float, Integer, Optimizer
from mctsvs.methods.auto import Auto
from mctsvs.methods.auto import constants as const
from mctsvs.methods.auto.evidence import TestKind as Kind
from mctsvs.methods.auto.full_space_search import FullSpaceModel
from mctsvs.methods.auto.portfolio import Challenger
from mctsvs.methods.history import History
from mctsvs.testing import engine_of
from mctsvs.utils.validation import Array

D = 30
PLACE = np.random.default_rng(3).random(D)
WEIGHTS = 10.0 ** -np.linspace(0.0, 6.0, D)


def bowl(x: Array) -> float:
    """All variables alike."""
    return float(((x - PLACE) ** 2).sum())


def valley(x: Array) -> float:
    """All variables matter, some a million times more than others."""
    return float((WEIGHTS * (x - PLACE) ** 2).sum())


def run(function: Callable[[Array], float], n: int, seed: int, *, batch: int = 1, **options: Any) -> Optimizer:
    opt = Optimizer([(0.0, 1.0)] * D, method="auto", seed=seed, **options)
    while len(opt.trials) < n:
        for trial in opt.ask(batch):
            opt.tell(trial, function(trial.x))
    return opt


def challenges(opt: Optimizer) -> list[int]:
    return [number for number, trial in enumerate(opt.trials) if trial.purpose == Kind.CHALLENGE.value]


def test_good_points_bring_the_next_turn_soon_and_bad_ones_late() -> None:
    challenger, values = Challenger(), np.arange(100.0)
    assert [n for n in range(60, 64) if challenger.due(n, every=4)] == [60]
    challenger.learn(7, 98.5, values, 61)
    assert challenger.next == 64
    assert challenger.due(64, every=4)
    challenger.learn(8, 10.0, values, 65)
    assert challenger.next == 72
    assert challenger.due(72, every=4)
    challenger.learn(9, np.nan, values, 73)  # a point that failed is no good one
    assert challenger.next == 88
    assert challenger.due(88, every=4)
    challenger.learn(10, 100.0, values, 89)
    assert challenger.next == 92


def test_where_nothing_is_gained_it_has_every_other_turn() -> None:
    challenger, turns = Challenger(), []
    for n in range(60, 100):
        if challenger.due(n, every=4, stalled=n >= 80):
            turns.append(n)
            challenger.learn(n, -1.0, np.zeros(n), n + 1)
    assert turns == [60, 68, *range(80, 100, 2)]
    assert challenger.wait == const.LONGEST_WAIT


def test_another_rhythm_begins_at_once() -> None:
    challenger = Challenger()
    assert challenger.due(12, every=2)
    challenger.learn(12, -1.0, np.zeros(20), 13)
    assert challenger.due(50, every=4)
    assert challenger.wait == 4


def test_on_a_bowl_it_has_no_turn_before_the_bottom_is_reached() -> None:
    assert not any(challenges(run(bowl, 80, seed=seed)) for seed in range(3))


def test_where_some_variables_matter_more_its_points_are_good() -> None:
    opt = run(valley, 110, seed=4)
    assert len(challenges(opt)) >= 5
    assert not engine_of(opt, Auto).challenger.bad


def test_turns_begin_when_they_should() -> None:
    few = run(valley, 110, seed=2)
    assert challenges(few)[0] >= const.CHALLENGE
    opt = Optimizer([(0.0, 1.0)] * (const.NOT_MANY + 1), method="auto", seed=2)
    for _ in range(const.FIRST_PROBE):
        (trial,) = opt.ask()
        opt.tell(trial, float(((trial.x[:5] - 0.2) ** 2).sum()))
    assert challenges(opt)[0] == const.FIRST_CHALLENGE


@pytest.mark.parametrize("options", [{"challenger": False}, {"alike": False}])
def test_it_can_be_left_out(options: dict[str, bool]) -> None:
    assert not challenges(run(valley, 60, seed=1, **options))


@pytest.mark.parametrize("batch", [1, 4])
def test_a_run_goes_on_from_its_state(batch: int) -> None:
    opt = run(valley, 64, seed=4, batch=batch)
    assert challenges(opt)
    (waiting,) = opt.ask()
    again = Optimizer.restore(opt.state())
    for one in (opt, again):
        one.tell(one.pending[0], valley(waiting.x))
    assert engine_of(again, Auto).challenger == engine_of(opt, Auto).challenger
    for _ in range(10):
        (first,), (second,) = opt.ask(), again.ask()
        assert np.array_equal(first.unit, second.unit)
        opt.tell(first, valley(first.x))
        again.tell(second, valley(second.x))


def test_failures_do_not_disturb_it() -> None:
    """A challenger whose points all fail has its next turn ever later, but where nothing is gained for long."""
    opt = Optimizer([(0.0, 1.0)] * D, method="auto", seed=4)
    for _ in range(120):
        (trial,) = opt.ask()
        opt.tell(trial, np.nan if trial.purpose == Kind.CHALLENGE.value else valley(trial.x))
    assert 1 <= len(challenges(opt)) <= 10


def test_it_has_a_turn_only_where_it_is_needed() -> None:
    challenger = Challenger()
    assert not any(challenger.due(n, every=4, needed=False, stalled=True) for n in range(50, 90))
    assert challenger.due(90, every=4, needed=True)  # at once: it has waited long enough


def test_bad_points_are_kept_from_the_other_model() -> None:
    opt = run(bowl, 110, seed=0)
    engine = engine_of(opt, Auto)
    assert engine.challenger.bad
    rows = np.isin(engine.history.proposal_ids, engine.challenger.bad)
    seen = engine.history.without(engine.challenger.bad)
    assert np.array_equal(seen.X, engine.history.X[~rows])
    assert (engine.history.y[rows] < np.median(engine.history.y[: len(rows)])).all()
    posterior = engine.all_model.alike.of_all.model.posterior
    assert posterior is not None
    told = {point.tobytes() for point in posterior.X}
    assert not told & {point.tobytes() for point in engine.history.X[rows]}
    assert told >= {point.tobytes() for point in engine.history.X[~rows][:60]}


@pytest.mark.parametrize("whole", [True, False])
def test_on_a_lattice_nothing_is_hidden(whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the other model would ask for points that are known."""
    first = Integer(0, 9) if whole else Float(0.0, 1.0)
    opt = Optimizer([first, *(Float(0.0, 1.0) for _ in range(11))], method="auto", seed=0)
    for trial in opt.ask(10):
        opt.tell(trial, float(trial.number))
    engine, seen = engine_of(opt, Auto), list[int]()
    engine.challenger.bad = engine.history.proposal_ids[5:8].tolist()
    original = FullSpaceModel.propose_alike

    def watch(model: FullSpaceModel, history: History, *rest: Any) -> Array:
        seen.append(len(history))
        return original(model, history, *rest)

    monkeypatch.setattr(FullSpaceModel, "propose_alike", watch)
    engine.step_in_all(np.empty((0, engine.dimension)), alike=True)
    assert seen == [10 if whole else 7]
