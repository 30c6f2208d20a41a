"""Runs in random spaces, of random values, failures, constraints and batches: nothing raises, and each can be saved."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest

from mctsvs import Boolean, Categorical, Float, Integer, Optimizer, Ordinal
from mctsvs.space.deduplicate import SpaceExhausted
from mctsvs.utils.validation import Array

KINDS = [
    Float(-3.0, 7.0),
    Float(1e-4, 1.0, log=True),
    Integer(1, 9),
    Categorical(("a", "b", "c")),
    Boolean(),
    Ordinal((1, 5)),
]


def space(rng: np.random.Generator) -> dict[str, Any]:
    count = int(rng.integers(40, 60) if rng.random() < 0.4 else rng.integers(1, 8))
    found: dict[str, Any] = {f"v{i}": KINDS[int(rng.integers(len(KINDS)))] for i in range(count)}
    if rng.random() < 0.3:
        found |= {"parent": Boolean(), "child": Float(0.0, 1.0, when={"parent": True})}
    return found


def values(W: Array, kind: int, u: Array) -> list[float]:
    z = W @ u
    huge = 10.0 ** np.linspace(-200.0, 307.0, len(z))
    return list([z, np.sign(z), np.exp(20.0 * z), np.ones(len(z)), np.sign(z) * huge, z * huge / 100.0][kind])


@pytest.mark.parametrize("seed", range(12))
def test_nothing_raises(seed: int) -> None:
    rng = np.random.default_rng(seed)
    M, kind, constrained = int(rng.integers(2, 6)), int(rng.integers(6)), bool(rng.random() < 0.3)
    more = {"reference": rng.standard_normal(M).tolist()} if rng.random() < 0.3 else {}
    opt = Optimizer(space(rng), directions=rng.choice(["minimize", "maximize"], M).tolist(), seed=seed, **more)
    W = rng.standard_normal((M, opt.space.n_coordinates))
    with contextlib.suppress(SpaceExhausted):
        for _ in range(9):
            for trial in opt.ask(int(rng.integers(1, 9))):
                told = None if rng.random() < 0.15 else values(W, kind, trial.unit)
                constraints = {"a": float(trial.unit[0] - 0.5), "b": None if rng.random() < 0.2 else -1.0}
                if rng.random() < 0.9:
                    opt.tell(trial, told, constraints=constraints if constrained else None)  # type: ignore[arg-type]
            assert len(opt.front) == 0 or opt.hypervolume >= 0.0
        assert Optimizer.restore(opt.state()).ask()[0].x.tolist() == opt.ask()[0].x.tolist()
