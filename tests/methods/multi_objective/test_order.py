"""Values in any order, late or never: what the default method does with several objectives is right for all of them."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from mctsvs import Optimizer
from mctsvs.utils.validation import Array


def f(x: Array) -> Any:
    values = [float((x[1] - 0.2) ** 2 + x[3] ** 2), float((x[1] - 0.9) ** 2 + (x[7] - 0.5) ** 2)]
    return None if x[5] > 0.95 else values


def optimizer(**more: Any) -> Optimizer:
    return Optimizer([(0.0, 1.0)] * 44, **{"directions": ["minimize", "minimize"], "seed": 5, **more})


def run(opt: Optimizer, count: int, wait: int = 0, seed: int = 0) -> list[list[float]]:
    """Ask for so many points, telling values in a random order, some of them `wait` points later."""
    rng, points = np.random.default_rng(seed), []
    for _ in range(count):
        points += [trial.x.tolist() for trial in opt.ask()]
        while len(opt.pending) > wait:
            trial = opt.pending[int(rng.integers(len(opt.pending)))]
            opt.tell(trial, f(trial.x))
    return points


@pytest.mark.parametrize("wait", [0, 5, 30])
def test_the_same_seed_gives_the_same_points(wait: int) -> None:
    one, other = run(optimizer(), 60, wait), run(optimizer(), 60, wait)
    assert one == other
    assert len({tuple(x) for x in one}) == 60
    assert run(optimizer(seed=6), 20, wait) != one[:20]


@pytest.mark.parametrize("wait", [0, 5, 30])
def test_a_copy_goes_on_bit_for_bit_from_anywhere(wait: int) -> None:
    opt = optimizer()
    for _ in range(12):
        run(opt, 6, wait, seed=1)
        again, before = Optimizer.restore(opt.state()), copy.deepcopy(opt)
        assert run(again, 4, wait, seed=2) == run(before, 4, wait, seed=2)


def test_values_that_never_come() -> None:
    opt = optimizer()
    for i in range(70):
        (trial,) = opt.ask()
        if i % 7:
            opt.tell(trial, f(trial.x))
    assert len(opt.pending) == 10
    assert len(opt.front) > 3


def test_the_order_of_objectives_does_not_matter_much() -> None:
    volumes = []
    for order in ([0, 1], [1, 0]):
        opt = optimizer(reference=[1.0, 1.0])
        for _ in range(80):
            (trial,) = opt.ask()
            values = f(trial.x)
            opt.tell(trial, None if values is None else [values[k] for k in order])
        volumes.append(opt.hypervolume)
    assert np.ptp(volumes) < 0.05
