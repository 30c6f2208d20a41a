"""Looking closer where no model of the whole cube predicts anything."""

from __future__ import annotations

import numpy as np
import pytest

from mctsvs import Float, Integer, Optimizer
from mctsvs.methods.auto import Auto
from mctsvs.methods.auto.constants import CLOSE, CLOSE_PATIENCE, CLOSEST
from mctsvs.methods.auto.evidence import TestKind as Kind
from mctsvs.methods.auto.full_space_search import Closer
from mctsvs.methods.history import History
from mctsvs.optimizer.trial import Trial
from mctsvs.testing import engine_of
from mctsvs.utils.validation import Array

SCALES = 2.0 ** np.arange(1, 30)
ROTATION = np.linalg.qr(np.random.default_rng(0).standard_normal((20, 20)))[0]
PLACE = np.random.default_rng(1).random(20)


def rough(x: Array) -> float:
    """Katsuura's function: teeth on teeth, of no shape at large."""
    z = ROTATION @ (10.0 * x[:20] - 5.0) + PLACE
    teeth = np.abs(np.outer(z, SCALES) - np.round(np.outer(z, SCALES))) @ (1.0 / SCALES)
    return float(np.log1p(np.arange(1, 21) * teeth).sum())


def run(opt: Optimizer, n: int) -> Optimizer:
    for _ in range(n):
        (trial,) = opt.ask()
        opt.tell(trial, rough(trial.x))
    return opt


def optimizer(seed: int, *, closer: bool = True) -> Optimizer:
    return Optimizer([(0.0, 1.0)] * 20, method="auto", seed=seed, options={"closer": closer})


def value(trial: Trial) -> float:
    assert trial.value is not None
    return trial.value


def inside(opt: Optimizer) -> Auto:
    return engine_of(opt, Auto)


def close(opt: Optimizer) -> int:
    return sum(trial.purpose == Kind.CLOSE.value for trial in opt.trials)


def test_rough_values_are_sought_nearby() -> None:
    near, anywhere = ([run(optimizer(s, closer=on), 90) for s in range(2)] for on in (True, False))
    assert all(close(opt) > 20 for opt in near)
    assert not any(close(opt) for opt in anywhere)
    assert max(value(opt.best) for opt in near) < min(value(opt.best) for opt in anywhere)


@pytest.mark.parametrize("seed", range(8))
def test_rough_is_not_noisy(seed: int) -> None:
    """A millionth of the range changes the value by up to a hundredth of its own; a thousandth of that tells."""
    assert inside(run(optimizer(seed), 14)).noisy is False


def test_noise_of_that_size_is_seen() -> None:
    """Of 20 runs; each may miss it with a probability of about 0.01, so that three do in one of a thousand tests."""
    seen = 0
    for seed in range(20):
        rng, opt = np.random.default_rng(seed), optimizer(seed)
        for _ in range(14):
            (trial,) = opt.ask()
            opt.tell(trial, float(((trial.x - 0.3) ** 2).sum() + 0.005 * rng.standard_normal()))
        seen += inside(opt).noisy is True
    assert seen >= 18


def test_a_run_goes_on_from_its_state() -> None:
    opt = run(optimizer(1), 80)
    assert close(opt) > 0
    again = Optimizer.restore(opt.state())
    assert run(opt, 20).trials[-1].x.tobytes() == run(again, 20).trials[-1].x.tobytes()


def test_a_smooth_function_is_never_looked_at_so() -> None:
    opt = Optimizer([(0.0, 1.0)] * 20, method="auto", seed=1)
    for _ in range(80):
        (trial,) = opt.ask()
        opt.tell(trial, float(((trial.x - 0.3) ** 2).sum()))
    assert close(opt) == 0
    assert not inside(opt).all_model.closer.on


def test_whole_numbers_stay_where_they_are() -> None:
    space = {**{f"x{i}": Float(0.0, 1.0) for i in range(20)}, "k": Integer(0, 9)}
    runs = [run(Optimizer(space, method="auto", seed=seed), 90) for seed in range(4)]
    assert sum(close(opt) for opt in runs) > 20
    for opt in runs:
        for trial in opt.trials:
            if trial.purpose == Kind.CLOSE.value:
                best = min(opt.trials[: trial.number], key=value)
                assert trial.x[20] == best.x[20]
                assert np.abs(trial.x[:20] - best.x[:20]).max() <= CLOSE / 2 + 1e-12


def test_the_box_halves_grows_and_begins_again() -> None:
    closer = Closer()
    for _ in range(CLOSE_PATIENCE):
        closer.learn(success=False)
    assert closer.region.length == CLOSE / 2
    for _ in range(6):
        closer.learn(success=True)
    assert closer.region.length == CLOSE, "never larger"
    closer.region.length = CLOSEST
    for _ in range(CLOSE_PATIENCE):
        closer.learn(success=False)
    assert closer.region.length == CLOSE


@pytest.mark.parametrize("points", [1, 2, 9])
def test_a_step_stays_in_the_box_however_few_points_are_in_it(points: int) -> None:
    rng, history, closer = np.random.default_rng(points), History(5), Closer()
    free = np.array([True, True, False, True, True])
    centre = np.array([0.0, 0.5, 0.3, 1.0, 0.9])
    for k in range(points):
        history.add(np.clip(centre + 0.02 * k * rng.standard_normal(5) * free, 0.0, 1.0), -float(k))
    x = closer.propose(history, centre[None], free, rng)
    assert x[2] == centre[2]
    assert np.abs(x - centre).max() <= CLOSE / 2 + 1e-12
    assert x.min() >= 0.0
    assert x.max() <= 1.0


def test_failures_shrink_the_box_and_are_avoided() -> None:
    opt = run(optimizer(1), 70)
    sides, failed = [], []
    for _ in range(25):
        (trial,) = opt.ask()
        bad = trial.purpose == Kind.CLOSE.value
        opt.tell(trial, None if bad else rough(trial.x))
        failed += [trial.x] if bad else []
        sides.append(inside(opt).all_model.closer.region.length)
    assert len(failed) > 10
    assert sides[-1] < sides[0]
    apart = [np.abs(one - other).max() for i, one in enumerate(failed) for other in failed[:i]]
    assert min(apart) > 0.01 * sides[-1]


@pytest.mark.parametrize(("D", "batch"), [(20, 24), (5, 16)])
def test_noise_is_seen_in_batches_too(D: int, batch: int) -> None:
    """A batch goes on to other phases before the second point beside the best tells."""
    rng, opt = np.random.default_rng(D), Optimizer([(0.0, 1.0)] * D, method="auto", seed=1)
    for _ in range(3):
        for trial in opt.ask(batch):
            opt.tell(trial, float(((trial.x - 0.3) ** 2).sum() + 0.005 * rng.standard_normal()))
    assert inside(opt).noisy is True


def test_a_gain_elsewhere_ends_it() -> None:
    engine = inside(run(optimizer(1), 70))
    assert engine.all_model.closer.on
    engine.all_model.trust()
    assert not engine.all_model.closer.on
    assert not engine.all_model.alike.blind
