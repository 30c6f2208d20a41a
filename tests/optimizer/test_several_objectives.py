"""Several objectives: what is told, the front in place of a best trial, and sentences for what cannot be."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import numpy as np
import pytest

from mctsvs import Categorical, Float, InputError, Integer, Optimizer, Trial
from mctsvs.methods.base import Engine, Pending, Proposal
from mctsvs.utils.options import Options
from mctsvs.utils.validation import Array

BOX = [(-1.0, 2.0)] * 6
TWO = ["minimize", "maximize"]
NAMED = {"cost": "minimize", "lift": "maximize"}


def run(opt: Optimizer, count: int = 12) -> list[Trial]:
    """Values on a circle, of which some are dominated."""
    for _ in range(count):
        (trial,) = opt.ask()
        opt.tell(trial, [trial.x[0] ** 2 + trial.x[2] ** 2, 1.0 - (trial.x[0] - 1.0) ** 2])
    return opt.trials


def random(**more: Any) -> Optimizer:
    return Optimizer(BOX, method="random", **{"directions": TWO, **more})


def test_front_is_that_of_the_directions() -> None:
    opt = random()
    for value in ([3.0, 1.0], [1.0, 0.0], [2.0, -1.0], [5.0, 4.0], None, [1.0, 0.0]):
        opt.tell(opt.ask()[0], value)
    front = opt.front
    assert [t.number for t in front] == [1, 0, 3]  # by the first objective, the best first; of equal trials the first
    assert front.values.tolist() == [[1.0, 0.0], [3.0, 1.0], [5.0, 4.0]]
    assert np.allclose(front.points, [t.x for t in front.trials])
    assert np.allclose(opt.reference, [5.0 + 0.2 * 4.0, -0.2 * 4.0])
    assert opt.hypervolume == pytest.approx(0.8 * 4.8 + 2.0 * 1.8 + 2.0 * 0.8)
    assert opt.knee is front.knee
    assert opt.trials[4].failed
    assert not opt.trials[4].has_value


def test_reference_given_is_the_one_used() -> None:
    opt = random(reference=[4.0, -2.0])
    opt.tell(opt.ask()[0], [5.0, 9.0])
    assert opt.hypervolume == 0.0
    opt.tell(opt.ask()[0], [1.0, 1.0])
    assert opt.hypervolume == 9.0
    assert opt.reference.tolist() == [4.0, -2.0]


def test_names_and_a_table() -> None:
    space = {"width": Float(0.0, 1.0), "count": Integer(1, 5), "kind": Categorical(("a", "b"))}
    opt = Optimizer(space, objectives=NAMED, method="random")
    opt.tell(opt.ask()[0], {"lift": 2.0, "cost": 1.0})
    opt.tell(opt.ask()[0], [0.5, 1.0])
    assert [set(row) for row in opt.front.table()] == [{"number", "cost", "lift", "width", "count", "kind"}] * 2
    assert opt.front.table()[0]["cost"] == 0.5
    assert opt.front.points == [opt.trials[1].params, opt.trials[0].params]
    assert str(opt.front).splitlines()[0].split() == ["trial", "cost", "lift"]
    assert repr(opt.front) == "Front(2 points: minimize cost, maximize lift)"


def test_only_feasible_trials_are_on_the_front() -> None:
    opt = random()
    opt.tell(opt.ask()[0], [1.0, 1.0], constraints={"stress": 1.0})
    assert len(opt.front) == 0
    assert opt.hypervolume == 0.0
    with pytest.raises(InputError, match="no knee yet"):
        _ = opt.knee
    opt.tell(opt.ask()[0], [2.0, 0.0], constraints={"stress": -1.0})
    opt.tell(opt.ask()[0], None, constraints={"stress": -1.0})
    opt.tell(opt.ask()[0], [0.0, 9.0])  # without the constraint
    assert [t.number for t in opt.front] == [1]


def test_variables_that_change_any_objective_act() -> None:
    opt = random()
    for x, value in (
        *[[[0.0] * 6, [1.0, 1.0]]] * 2,
        [[0.5, *[0.0] * 5], [2.0, 1.0]],
        [[0.0, 0.5, *[0.0] * 4], [1.0, 3.0]],
    ):
        opt.add(x, value)
    rows = opt.variables()
    assert sorted(rows.active) == ["x0", "x1"]


@pytest.mark.parametrize("method", ["random", "auto"])
def test_state_goes_on_bit_for_bit(method: str) -> None:
    opt = Optimizer(BOX, directions=TWO, reference=[9.0, -9.0], method=method, seed=3)
    run(opt, 20)
    (waiting,) = opt.ask()
    state = json.loads(json.dumps(opt.state(), default=lambda array: array.tolist()))
    for again in (
        Optimizer.restore(state),
        Optimizer.restore(opt.state()),
        copy.deepcopy(opt),
        pickle.loads(pickle.dumps(opt)),
    ):
        other = copy.deepcopy(opt)
        assert again.front.values.tolist() == other.front.values.tolist()
        for each in (again, other):
            each.tell(waiting.number, [1.0, 1.0])
        assert [t.x.tolist() for t in run(again, 4)] == [t.x.tolist() for t in run(other, 4)]


def test_one_direction_in_a_list_is_a_direction() -> None:
    one, other = Optimizer(BOX, directions=["maximize"], method="bo"), Optimizer(BOX, direction="maximize", method="bo")
    for opt in (one, other):
        for _ in range(12):
            (trial,) = opt.ask()
            opt.tell(trial, float(trial.x.sum()))
    assert one.best.x.tolist() == other.best.x.tolist()
    assert one.direction == "maximize"
    assert one.state().keys() == other.state().keys()


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ([1.0, 2.0, 3.0], "has 3 values, and there are 2 objectives"),
        ([1.0], "has 1 value, and there are 2 objectives"),
        ([1.0, float("nan")], "no finite value of f2"),
        ([float("inf"), 1.0], "no finite value of f1"),
        (["a", 1.0], "the value 'a' of f1 is not a number"),
        ("ab", "give 2 values"),
        (3.0, "3.0 is one value, and there are 2 objectives"),
        ({"a": 1.0, "b": 2.0}, "the objectives have no names"),
        (np.ones((2, 2)), "give 2 values"),
    ],
)
def test_values_that_do_not_fit(value: Any, sentence: str) -> None:
    opt = random()
    (trial,) = opt.ask()
    with pytest.raises(InputError, match=sentence):
        opt.tell(trial, value)
    opt.tell(trial, np.array([1.0, 2.0]))  # it still waits


def test_names_that_do_not_fit() -> None:
    opt = random(directions=None, objectives=NAMED)
    (trial,) = opt.ask()
    with pytest.raises(InputError, match="it must have the objectives cost and lift"):
        opt.tell(trial, {"cost": 1.0})
    with pytest.raises(InputError, match="no finite value of lift"):
        opt.tell(trial, {"cost": 1.0, "lift": float("nan")})


@pytest.mark.parametrize("value", [None, float("nan"), [None, float("nan")], [float("inf")] * 2])
def test_nothing_known_is_a_failure(value: Any) -> None:
    opt = random()
    (trial,) = opt.ask()
    opt.tell(trial, value, "the mesh did not converge")
    assert trial.failed


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"directions": "minimize"}, "give a list of at most 8"),
        ({"directions": ["min", "max"]}, "unknown direction 'min'"),
        ({"directions": []}, "give a list"),
        ({"directions": ["minimize"] * 9}, "at most 8"),
        ({"objectives": ["cost"]}, "give a dict of name -> direction"),
        ({"objectives": {"cost": "minimize"}}, "one objective only"),
        ({"directions": TWO, "objectives": NAMED}, "either directions= or objectives="),
        ({"reference": [1.0]}, "reference= is for several objectives"),
        ({"directions": TWO, "reference": [1.0]}, "has 1 value, and there are 2 objectives"),
        ({"directions": TWO, "reference": [None, None]}, "give a number for each objective"),
        ({"directions": TWO, "direction": "maximize"}, "either direction= or directions="),
        (
            {"directions": TWO, "method": "turbo"},
            "takes one objective only: several objectives need 'auto' and 'random'",
        ),
        ({"directions": TWO, "noise": 0.1}, "noise=0.1 cannot be used with several objectives"),
        ({"directions": TWO, "explain": 0.1}, "explain=0.1 cannot be used"),
        ({"directions": TWO, "replicates": 3}, "replicates=3 cannot be used"),
    ],
)
def test_arguments_that_cannot_be_used(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Optimizer(BOX, **given)


def test_there_is_no_best_trial() -> None:
    opt = random()
    run(opt)
    for ask in (lambda: opt.best, opt.recommend):
        with pytest.raises(InputError, match=r"front .* knee"):
            ask()
    assert not opt.has_best
    for name in ("front", "hypervolume", "reference", "knee"):
        with pytest.raises(InputError, match="there is one objective, and the best trial is best"):
            getattr(Optimizer(BOX), name)


class Corners(Engine):
    """Proposes corners of the cube."""

    options_type = Options
    several_objectives = True
    aimed: Array | None = None

    def aim(self, reference: Array) -> None:
        self.aimed = reference

    def propose(self, n: int, pending: Pending) -> list[Proposal]:
        return [self.proposal(self.rng.integers(0, 2, self.dimension).astype(float), self.everything) for _ in range(n)]


def test_a_method_of_ones_own_says_whether_it_takes_them(tmp_path: Any) -> None:
    spec = f"{__file__}:Corners"
    opt = Optimizer(BOX, directions=TWO, reference=[1.0, 2.0], method=spec)
    run(opt)
    engine: Any = opt._core.engine
    assert engine.aimed.tolist() == [-1.0, 2.0]
    assert engine.history.objectives.shape == (12, 2)
    assert engine.history.objectives[0, 0] == -(opt.trials[0].values or (0.0,))[0]
