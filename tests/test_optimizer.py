"""The ask/tell facade, minimize and maximize."""

from __future__ import annotations

import copy
import pickle
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mctsvs
from mctsvs import Categorical, Float, InputError, Integer, Optimizer
from mctsvs.testing import through_plain_data


def test_minimize_finds_the_variables_that_matter() -> None:
    def f(x: Any) -> float:
        return float((x[3] - 0.2) ** 2 + (x[17] - 0.9) ** 2)

    result = mctsvs.minimize(f, [(0, 1)] * 40, budget=150, seed=1)
    assert result.fun == f(result.x) < 1e-3
    assert result.nfev == len(result.trials) == 150
    assert {row.name for row in result.variables} == {f"x{i}" for i in range(40)}
    assert set(result.variables.active) == {"x3", "x17"}


def test_maximize_with_names_gets_dicts() -> None:
    def f(p: dict[str, Any]) -> float:
        return float(-abs(p["n"] - 3) - (p["kind"] != "b") - (np.log10(p["rate"]) + 2) ** 2)

    space = {"n": Integer(0, 9), "kind": Categorical(("a", "b", "c")), "rate": Float(1e-4, 1, log=True)}
    result = mctsvs.maximize(f, space, budget=80, seed=0)
    assert isinstance(result.x, dict)
    assert (result.x["n"], result.x["kind"]) == (3, "b")
    assert result.fun > -0.1


def test_callback_and_failures() -> None:
    seen: list[int] = []
    result = mctsvs.minimize(
        lambda x: None if x[0] > 0.5 else float(x.sum()),
        [(0, 1)] * 5,
        budget=40,
        callback=lambda opt, trial: seen.append(trial.number),
    )
    assert seen == list(range(40))
    assert "failed" in result.message
    assert result.fun < 2.0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Optimizer([(5, 2)]), "(5"),
        (lambda: Optimizer([(0, float("nan"))]), "nan"),
        (lambda: Optimizer([]), "0 variables"),
        (lambda: Optimizer({}), "0 variables"),
        (lambda: Optimizer([(0, 1)], direction="up"), "'up'"),
        (lambda: Optimizer([(0, 1)], method="magic"), "'magic'"),
        (lambda: Optimizer([(0, 1)], seed=-1), "seed=-1"),
        (lambda: Optimizer([(0, 1)], seed=0.5), "seed=0.5"),  # type: ignore[arg-type]
        (lambda: Optimizer([(0, 1)]).ask(0), "n=0"),
        (lambda: Optimizer([(0, 1)]).ask(1.5), "1.5"),  # type: ignore[arg-type]
        (lambda: Optimizer([(0, 1)]).tell(3, 1.0), "trial 3 was never asked for"),
        (lambda: Optimizer([(0, 1)]).tell("x", 1.0), "'x'"),  # type: ignore[arg-type]
        (lambda: Optimizer([(0, 1)]).tell(np.zeros(300), 1.0), "add() takes any point with its value"),  # type: ignore[arg-type]
        (lambda: Optimizer(), "there is no space: give the variables"),
        (lambda: Optimizer([(0, 1)], bounds=[(0, 1)]), "give either space or bounds"),
        (lambda: Optimizer([(0, 1)], bugdet=5), "no argument 'bugdet' here: did you mean budget=?"),  # type: ignore[arg-type]
        (lambda: Optimizer([(0, 1)], args=5), "method 'auto' has no option 'args': mctsvs methods auto lists"),  # type: ignore[arg-type]
        (lambda: Optimizer([(0, 1)], options={"epoch": True}), "method 'auto' has no option 'epoch'"),
        (lambda: Optimizer([(0, 1)], method="bo", options={"kernl": "se"}), "did you mean 'kernel'?"),
        (lambda: Optimizer([(0, 1)], budget=20.5), "budget=20.5"),  # type: ignore[arg-type]
        (lambda: Optimizer([(0, 1)]).best, "no best trial yet"),
        (lambda: mctsvs.minimize(lambda x: 0.0, [(0, 1)], budget=0), "budget=0"),
        (lambda: mctsvs.minimize(lambda x: 0.0, [(0, 1)], budget=2.5), "budget=2.5"),  # type: ignore[arg-type]
        (lambda: mctsvs.minimize(lambda x: float("nan"), [(0, 1)], budget=3), "all 3 evaluations failed"),
        (lambda: mctsvs.minimize(lambda x: 0.0, [(0, 1)], budget=3, workers=0), "workers=0 cannot be used"),
        (lambda: mctsvs.minimize(lambda x: 0.0, [(0, 1)], budget=3, timeout=0), "timeout=0 cannot be used"),
        (lambda: Optimizer([(0, 1)], noise="a"), "noise='a' cannot be used"),  # type: ignore[arg-type]
        (lambda: Optimizer([(0, 1)], noise=float("inf")), "noise=inf cannot be used"),
        (lambda: Optimizer([(0, 1)]).add([0], 1.0, constraints={"a": "b"}), "constraint 'a' has the value 'b'"),  # type: ignore[dict-item]
    ],
)
def test_bad_input_is_one_sentence(call: Any, words: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    sentence = str(caught.value)
    assert words in sentence
    assert "\n" not in sentence


@pytest.mark.parametrize(
    "value", ["3.1", b"1", True, [1.0, 2.0], [[1.0], 2.0], object(), 1j, np.bool_(True), np.array("3.5")]
)
def test_a_value_that_is_no_number_is_refused_and_nothing_is_lost(value: Any) -> None:
    opt = Optimizer([(0, 1)] * 3)
    (trial,) = opt.ask()
    with pytest.raises(InputError, match="is not a number"):
        opt.tell(trial, value)
    assert opt.pending == [trial]
    opt.tell(trial, np.float32(1.5))  # type: ignore[arg-type]
    assert opt.best.value == 1.5


def test_trials_are_told_once_and_to_their_own_optimizer() -> None:
    opt, other = Optimizer([(0, 1)] * 3, seed=1), Optimizer([(0, 1)] * 3, seed=2)
    (_, trial), (_, stranger) = opt.ask(2), other.ask(2)  # all runs of the default begin at the centre
    with pytest.raises(InputError, match="another optimizer"):
        opt.tell(stranger, 1.0)
    opt.tell(trial, 1.0)
    with pytest.raises(InputError, match=r"told already, with value 1.0"):
        opt.tell(trial, 2.0)


@pytest.mark.parametrize("budget", [None, 100])
def test_as_many_trials_as_are_asked_for(budget: int | None) -> None:
    opt = Optimizer([(0, 1)] * 3, seed=0, budget=budget)
    assert [len(opt.ask(n)) for n in (1, 5, 12)] == [1, 5, 12]


def test_infinite_values_are_failures() -> None:
    opt = Optimizer([(0, 1)] * 3)
    for value in (float("inf"), float("-inf"), None):
        (trial,) = opt.ask()
        opt.tell(trial, value)
        assert trial.failed
    with pytest.raises(InputError, match="no best trial"):
        _ = opt.best


def test_seed_none_draws_one_that_repeats_the_run() -> None:
    opt = Optimizer([(0, 1)] * 3, seed=None)
    again = Optimizer([(0, 1)] * 3, seed=opt.seed)
    assert np.array_equal(opt.ask()[0].x, again.ask()[0].x)


def test_numbers_of_numpy_and_whole_floats_are_counts() -> None:
    opt = Optimizer([(0, 1)] * 3, seed=np.int64(7), budget=2e1, method="bo", initial_points=4.0)  # type: ignore[arg-type]
    assert (opt.seed, opt.budget) == (7, 20)
    assert type(opt.seed) is type(opt.budget) is int
    assert np.array_equal(
        opt.ask()[0].x, Optimizer([(0, 1)] * 3, seed=7, method="bo", options={"initial_points": 4}).ask()[0].x
    )


def test_bounds_is_another_word_for_space() -> None:
    assert np.array_equal(Optimizer(bounds=[(2, 3)] * 4).ask()[0].x, Optimizer([(2, 3)] * 4).ask()[0].x)


def test_a_trial_is_its_number_its_point_and_its_value() -> None:
    opt = Optimizer({"rate": Float(1e-4, 1.0, log=True), "kind": Categorical(("a", "b")), "n": Integer(1, 3)})
    (trial,) = opt.ask()
    kind = trial.params["kind"]
    assert repr(trial) == f"Trial(0, rate=0.01, kind={kind!r}, n=2, not told yet)"
    opt.tell(trial, 2.5)
    assert repr(trial).endswith(", n=2, value 2.5)")
    many = Optimizer([(0, 1)] * 300)
    many.tell(many.ask()[0], None)
    assert repr(many.trials[0]) == "Trial(0, x0=0.5, x1=0.5, x2=0.5, x3=0.5, x4=0.5, x5=0.5, ..., failed)"


def test_points_waiting_to_be_asked_for_can_be_seen() -> None:
    opt = Optimizer([(0, 2)] * 2)
    opt.enqueue([[0.5, 1.0], [1.5, 0.5]])
    opt.ask()
    assert np.array(opt.enqueued).tolist() == [[1.5, 0.5]]


def allowed(x: Any) -> bool:
    return bool(x[0] <= 0.8)


def smooth(x: Any) -> float:
    return float(((x - 0.3) ** 2).sum())


COPIES = [lambda opt: pickle.loads(pickle.dumps(opt)), copy.deepcopy, copy.copy]


@pytest.mark.parametrize("again", COPIES, ids=["pickle", "deepcopy", "copy"])
@pytest.mark.parametrize("method", ["auto", "mcts-vs-bo", "turbo", "cma-es"])
def test_a_copy_goes_on_bit_for_bit(method: str, again: Callable[[Optimizer], Optimizer]) -> None:
    constraints = [allowed, "x1 + x2 <= 1.8"]
    opt = Optimizer([(0, 1)] * 6, method=method, seed=3, budget=60, noise=0.0, constraints=constraints)
    for _ in range(10):
        for trial in opt.ask(2):
            trial.attrs["note"] = trial.number
            opt.tell(trial, smooth(trial.x), constraints={"c": -float(trial.x[3])} if trial.number > 7 else None)
    (waiting,) = opt.ask()
    opt.enqueue([np.full(6, 0.25)])
    other = again(opt)
    assert other.pending[0] is not opt.pending[0]
    assert other.budget == 60
    assert repr(other.trials) == repr(opt.trials)
    for one, two in zip(opt.trials, other.trials, strict=True):
        assert (one.purpose, one.attrs, vars(one.times)) == (two.purpose, two.attrs, vars(two.times))
    opt.tell(waiting, 1.0)
    other.tell(waiting, 1.0)  # a trial of the one it was copied from
    for _ in range(12):
        (one,), (two,) = opt.ask(), other.ask()
        assert np.array_equal(one.unit, two.unit)
        opt.tell(one, smooth(one.x))
        other.tell(two, smooth(two.x))
    assert len(other.trials) == len(opt.trials) == 33


def test_a_constraint_that_cannot_be_pickled_can_be_copied() -> None:
    opt = Optimizer([(0, 1)] * 3, constraints=lambda x: bool(x[0] <= 0.8))
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(opt)
    assert np.array_equal(copy.deepcopy(opt).ask()[0].x, opt.ask()[0].x)


def test_state_of_another_format_is_refused() -> None:
    state = Optimizer([(0, 1)]).state()
    state["format"] = 99
    with pytest.raises(InputError, match="format 99"):
        Optimizer.restore(state)


def test_huge_spaces_are_quick() -> None:
    opt = Optimizer([(0.0, 1.0)] * 100_000, method="mcts-vs-rs", seed=0)
    for _ in range(20):
        (trial,) = opt.ask()
        opt.tell(trial, float(trial.x[:5].sum()))
    assert trial.x.shape == (100_000,)


def test_huge_values_do_not_overflow() -> None:
    """Sums of squares of such values would: the tree clips them, the model scales them first."""
    points = []
    for scale in (1.0, 2.0**660):
        opt = Optimizer([(0, 1)] * 12, method="mcts-vs-rs", seed=0)
        for _ in range(60):
            (trial,) = opt.ask()
            opt.tell(trial, scale * float(np.round(trial.x.sum() * 1024)))
        points.append(np.array([t.x for t in opt.trials]))
    assert np.isfinite(points[1]).all()


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("mcts-vs-bo", {"cp": "abc"}),
        ("mcts-vs-bo", {"samples": 1.5}),
        ("mcts-vs-bo", {"samples": True}),
        ("mcts-vs-bo", {"k": 2.5}),
        ("mcts-vs-bo", {"subset_batches": 1.5}),
        ("mcts-vs-bo", {"pool": 0}),
        ("mcts-vs-bo", {"winsorise": "abc"}),
        ("mcts-vs-bo", {"climb": -1}),
        ("mcts-vs-bo", {"candidates": "abc"}),
        ("mcts-vs-bo", {"initial_points": 2.5}),
        ("dropout-bo", {"d": 2.5}),
        ("turbo", {"batch": 0}),
        ("bo", {"acquisition": "lucky"}),
    ],
    ids=str,
)
def test_options_of_the_wrong_kind_are_one_sentence(method: str, options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(InputError, match=name) as caught:
        Optimizer([(0, 1)] * 3, method=method, **options)
    assert "\n" not in str(caught.value)


def test_initial_points_are_shared_among_the_subsets() -> None:
    opt = Optimizer([(0, 1)] * 8, method="mcts-vs-rs", options={"initial_points": 20})
    opt.ask(25)
    assert sum(trial.iteration == 0 for trial in opt.trials) == 20
    short = Optimizer([(0, 1)] * 8, method="mcts-vs-turbo")
    short.ask(20)
    assert sum(trial.iteration == 0 for trial in short.trials) == 12


@pytest.mark.parametrize("method", ["mcts-vs-bo", "mcts-vs-turbo", "baxus", "hesbo", "cma-es", "random"])
def test_points_from_elsewhere_are_learned_from_and_disturb_nothing(method: str) -> None:
    opt = Optimizer([(0, 1)] * 6, method=method, seed=0)
    waiting = opt.ask(3)
    opt.enqueue([np.full(6, 0.25)])
    opt.add(np.full(6, 0.5), -7.0)
    opt.add(np.full(6, 0.75), None, "it burned down")
    opt = Optimizer.restore(through_plain_data(opt.state()))
    assert [t.number for t in opt.pending] == [t.number for t in waiting]
    assert (opt.best.value, opt.best.source, opt.trials[4].message) == (-7.0, "imported", "it burned down")
    first, second = opt.ask(2)
    assert (first.source, second.source) == ("enqueued", "proposed")
    assert np.allclose(first.x, 0.25)
    for trial in opt.pending:
        opt.tell(trial, float(((trial.x - 0.3) ** 2).sum()))
    for _ in range(40):
        (trial,) = opt.ask()
        opt.tell(trial, float(((trial.x - 0.3) ** 2).sum()))
    assert len(opt.trials) == 47
    with pytest.raises(InputError, match="not a point"):
        opt.enqueue(["here"])
    with pytest.raises(InputError, match="give a vector of 6 numbers"):
        opt.add(np.zeros((2, 6)), 1.0)


@pytest.mark.needs("cma")
def test_evolution_does_not_take_a_strangers_point_for_its_own() -> None:
    opt = Optimizer([(0, 1)] * 6, method="cma-es", seed=0)
    (trial,) = opt.ask()
    opt.add(trial.x, 1.0)
    assert opt.state()["engine"]["members"] == []
    opt.tell(trial, 2.0)
    assert opt.state()["engine"]["members"] == [0]


@pytest.mark.parametrize("method", ["auto", "mcts-vs-bo", "gtbo"])
def test_trials_say_what_they_are_for_and_when_they_were(method: str) -> None:
    opt = Optimizer([(0.0, 1.0)] * 12, method=method)
    before = time.time()
    for _ in range(30):
        (trial,) = opt.ask()
        opt.tell(trial, float(trial.x[0]))
    assert all(trial.purpose for trial in opt.trials)
    assert len({trial.purpose for trial in opt.trials}) > 1
    for trial in opt.trials:
        asked, told = trial.times.asked, trial.times.told
        assert asked is not None
        assert told is not None
        assert before <= asked <= told <= time.time()
        assert trial.times.thinking > 0
        assert trial.times.seconds == told - asked
