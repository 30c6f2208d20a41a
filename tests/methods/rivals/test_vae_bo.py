"""VAE-BO: the autoencoder, when it is trained, and its state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mctsvs import Optimizer
from mctsvs.methods import registry
from mctsvs.methods.base import Observation, Pending
from mctsvs.methods.rivals import vae_bo
from mctsvs.methods.rivals.vae_bo import VAEBO
from mctsvs.testing import drive, engine_of
from mctsvs.utils.validation import Array, InputError

pytestmark = pytest.mark.skipif(bool(registry.missing(registry.METHODS["vae-bo"])), reason="torch is not installed")


def line(n: int, D: int, rng: np.random.Generator) -> Array:
    """Points near a curve in D coordinates."""
    t = rng.random((n, 1))
    return np.clip(0.5 + 0.4 * np.sin(2.0 * t + np.linspace(0.0, 3.0, D)) + 0.01 * rng.standard_normal((n, D)), 0, 1)


def test_training_learns_a_curve() -> None:
    rng = np.random.default_rng(0)
    X = line(60, 20, rng)
    start = vae_bo.initial(20, 2, 32, rng)
    before = [w.copy() for w in start]
    weights = vae_bo.train(start, X, rng)
    assert all(np.array_equal(a, b) for a, b in zip(start, before, strict=True))
    rebuilt = vae_bo.decode(weights, vae_bo.encode(weights, X))
    assert ((rebuilt >= 0.0) & (rebuilt <= 1.0)).all()
    assert np.mean((rebuilt - X) ** 2) < 0.1 * X.var(axis=0).mean()


def test_codes_of_random_points_differ() -> None:
    """Where the divergence outweighs the misfit, all codes are one and there is nothing to optimise over."""
    rng = np.random.default_rng(1)
    X = rng.random((20, 100))
    weights = vae_bo.train(vae_bo.initial(100, 10, 64, rng), X, rng)
    codes = vae_bo.encode(weights, X)
    assert codes.std(axis=0).max() > 0.5
    assert vae_bo.decode(weights, codes).std(axis=0).mean() > 0.1


def test_trained_again_every_thirty_evaluations() -> None:
    engine = registry.make("vae-bo", np.arange(9), np.random.default_rng(0), steps=5)
    assert isinstance(engine, VAEBO)
    trained = []
    for _ in range(85):
        (p,) = engine.propose(1, Pending.of([], 8))
        trained.append(engine.trainings)
        engine.observe([Observation(p.x, float(p.x[0]), p.variables, p.proposal_id)])
    assert np.flatnonzero(np.diff(trained)).tolist() == [19, 49, 79]
    assert len(engine.codes) == len(engine.history)


def test_better_than_its_initial_design() -> None:
    opt = Optimizer([(0, 1)] * 20, method="vae-bo", seed=0)
    X = drive(opt, lambda x: float(((x[:4] - 0.4) ** 2).sum()), 80)
    values = ((X[:, :4] - 0.4) ** 2).sum(axis=1)
    assert values[20:].min() < 0.6 * values[:20].min()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"d": 0}, "d=0 cannot be used: it must be a whole number, from 1 to 10000"),
        ({"d": 4}, "d=4 cannot be used: it must be a whole number, from 1 to 3"),
        ({"interval": 0}, "interval=0 cannot be used"),
        ({"learning_rate": 0.0}, "learning_rate=0.0 cannot be used: it must be a number, above 0"),
    ],
)
def test_bad_options(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Optimizer([(0, 1)] * 3, method="vae-bo", **options)


def test_a_code_that_failed_is_not_asked_for_again() -> None:
    """Whatever code the encoder gives its point: else one failing point would follow the other."""
    opt = Optimizer([(0.0, 1.0)] * 6, method="vae-bo", seed=0, options={"initial_points": 8, "steps": 20})
    for _ in range(10):
        (trial,) = opt.ask()
        opt.tell(trial, float(trial.x.sum()))
    engine = engine_of(opt, VAEBO)
    (trial,) = opt.ask()
    (code,) = engine.awaited.values()
    opt.tell(trial, None)
    assert any(np.array_equal(code, failed) for failed in engine.codes.failures)
    assert engine.awaited == {}
    later: list[Array] = []
    for _ in range(8):
        (trial,) = opt.ask()
        later.append(*engine.awaited.values())
        opt.tell(trial, None)
    assert min(float(np.abs(a - b).max()) for i, a in enumerate([code, *later]) for b in later[i:]) > 1e-3
