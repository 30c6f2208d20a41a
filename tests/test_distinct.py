"""No point twice, until there is none left."""

from __future__ import annotations

import numpy as np
import pytest

import mctsvs
from mctsvs import Categorical, Float, Integer
from mctsvs.distinct import KnownPoints, SpaceExhausted
from mctsvs.methods import METHODS
from mctsvs.optimizer import Optimizer
from mctsvs.space import Region, Space

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


def test_a_restored_run_still_knows_its_points() -> None:
    opt = Optimizer(LATTICE, method="mcts-vs", seed=3)
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
