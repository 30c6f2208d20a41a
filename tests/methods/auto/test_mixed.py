"""The default method on whole numbers, categories and variables that do not exist everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from mctsvs import Categorical, Float, Integer, Optimizer
from mctsvs.methods.auto import Auto, screening
from mctsvs.methods.auto.evidence import TestKind as Kind
from mctsvs.methods.auto.phases import OptimiseFullSpace
from mctsvs.testing import engine_of, through_plain_data


def engine(opt: Optimizer) -> Auto:
    return engine_of(opt, Auto)


def run(opt: Optimizer, f: Any, budget: int) -> Optimizer:
    for _ in range(budget):
        (trial,) = opt.ask()
        opt.tell(trial, f(trial.params))
    return opt


def test_variables_behind_conditions_are_found() -> None:
    space: dict[str, Any] = {f"x{i}": Float(0.0, 1.0) for i in range(20)}
    space |= {"gate": Categorical(["shut", "ajar", "open"])}
    space |= {f"c{i}": Integer(0, 9, when={"gate": "open"}) for i in range(20)}

    def f(params: dict[str, Any]) -> float:
        return float((params["x3"] - 0.2) ** 2 + ((params["c7"] - 6) ** 2 / 50.0 if "c7" in params else 0.3))

    opt = run(Optimizer(space, seed=1), f, 70)
    assert {"x3", "gate", "c7"} <= {opt.space.names[v] for v in engine(opt).subspace}
    assert opt.best.params["c7"] == 6
    assert opt.best.value is not None
    assert opt.best.value < 1e-3
    again = Optimizer.restore(through_plain_data(opt.state()))
    assert np.array_equal(again.ask()[0].unit, opt.ask()[0].unit)


def test_whole_numbers_that_all_matter_are_modelled_alike() -> None:
    space: list[Any] = [Integer(0, 1)] * 10 + [Integer(0, 7)] * 10 + [Float(0.0, 1.0)] * 10
    opt = Optimizer(space, seed=2)
    target = opt.space.decode(np.random.default_rng(3).random(30))
    scale = np.array([1.0] * 10 + [7.0] * 10 + [1.0] * 10)
    for _ in range(60):
        (trial,) = opt.ask()
        opt.tell(trial, float((((trial.x - target) / scale) ** 2).sum()))
    assert engine(opt).noisy is False
    assert isinstance(engine(opt).phase, OptimiseFullSpace)
    assert (opt.best.x[:10] == target[:10]).all()
    assert opt.best.value is not None
    assert opt.best.value < 0.1


def test_a_test_changes_whole_numbers_for_sure() -> None:
    opt = run(Optimizer([Integer(0, 2)] * 30 + [Float(0.0, 1.0)], seed=0), lambda params: float(params["x3"]), 5)
    for _ in range(20):
        group = np.sort(np.random.default_rng(0).permutation(31)[:9])
        question = screening.change(engine(opt), group, Kind.TEST)
        assert question.base is not None
        moved = engine(opt).changed_variables(opt.space.snap(question.x), question.base)
        assert np.array_equal(moved, group)
