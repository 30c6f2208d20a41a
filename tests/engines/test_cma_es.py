"""CMA-ES: generations from values told in any order, restarts, and its state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mctsvs import Optimizer
from mctsvs.common import InputError
from mctsvs import methods
from mctsvs.engine import Observation
from mctsvs.engines.cma_es import CMAES, FULL_LIMIT
from mctsvs.testing import through_plain_data

pytestmark = pytest.mark.skipif(bool(methods.missing(methods.METHODS["cma-es"])), reason="cma is not installed")


def engine(d: int, seed: int = 0, **options: Any) -> CMAES:
    made = methods.make("cma-es", np.arange(d + 1), np.random.default_rng(seed), **options)
    assert isinstance(made, CMAES)
    return made


def sphere(x: np.ndarray) -> float:
    return -float(((x - 0.7) ** 2).sum())


def ask(es: CMAES, n: int = 1) -> list[np.ndarray]:
    return [p.x for p in es.propose(n, np.empty((0, es.dimension)))]


def tell(es: CMAES, x: np.ndarray, y: float) -> None:
    es.absorb([Observation(x, y, es.everything)])


def test_converges_on_a_sphere() -> None:
    es = engine(10)
    for _ in range(1500):
        (x,) = ask(es)
        tell(es, x, sphere(x))
    assert es.history.y.max() > -1e-5  # plain pycma with these settings reaches 4e-7


def test_asking_for_a_generation_at_once_gives_the_points_of_asking_one_by_one() -> None:
    one, many = engine(6), engine(6)
    for _ in range(4):
        batch = ask(many, 20)
        singles = []
        for _ in range(20):
            singles += ask(one)
            tell(one, singles[-1], sphere(singles[-1]))
        assert np.array_equal(batch, singles)
        for x in batch[::-1]:
            tell(many, x, sphere(x))
        # values in another order are the same generation, up to the rounding of sums
        many = one_like(one)


def one_like(es: CMAES) -> CMAES:
    copy = engine(es.dimension, population=es.population)
    copy.restore(through_plain_data(es.state()))
    return copy


def test_points_never_told_are_replaced_and_late_ones_counted() -> None:
    es = engine(5, population=8)
    slow = ask(es, 3)
    for _ in range(8):
        (x,) = ask(es)
        tell(es, x, sphere(x))
    assert es.strategy.generation == 1
    for x in slow:
        tell(es, x, sphere(x))
    assert len(es.members) == 3
    for _ in range(5):
        (x,) = ask(es)
        tell(es, x, sphere(x))
    assert es.strategy.generation == 2
    assert es.past[1].members[:3] == [0, 1, 2]


def test_values_go_to_the_nearest_point_waiting() -> None:
    es = engine(4, population=6)
    points = ask(es, 6)
    for i in (4, 1, 5, 0):
        tell(es, np.round(points[i], 3), sphere(points[i]))  # as integers would move it
    assert es.members == [4, 1, 5, 0]


def test_failures_count_as_the_worst_and_a_generation_of_failures_as_nothing() -> None:
    es = engine(4, population=6)
    for x in ask(es, 6):
        tell(es, x, np.nan)
    assert es.strategy.generation == 0
    points = ask(es, 6)
    for x in points[:3]:
        tell(es, x, sphere(x))
    for x in points[3:]:
        tell(es, x, np.nan)
    assert es.strategy.generation == 1
    assert len(es.history) == 3
    assert len(es.history.failures) == 9


def test_a_flat_function_restarts_with_twice_the_population_and_restores() -> None:
    es = engine(3, population=6)
    left = ask(es, 2)
    for _ in range(12):
        (x,) = ask(es)
        tell(es, x, 1.0)
    assert es.strategy.run == 1
    assert es.strategy.population == 12
    tell(es, left[0], 0.5)  # of the run that has ended: recorded, not used
    assert es.members == []
    assert len(es.history) == 13
    again = one_like(es)
    assert again.strategy.waiting == es.strategy.waiting
    for _ in range(30):
        (a,), (b,) = ask(es), ask(again)
        assert np.array_equal(a, b)
        tell(es, a, sphere(a))
        tell(again, b, sphere(b))


def test_many_coordinates_use_a_diagonal() -> None:
    assert not engine(FULL_LIMIT).diagonal
    assert engine(100_000).diagonal
    es = engine(20_000)
    assert not engine(FULL_LIMIT + 1, covariance="full").diagonal
    for _ in range(21):
        (x,) = ask(es)
        tell(es, x, float(x[0]))
    assert es.strategy.generation == 1
    again = engine(20_000)
    again.restore(through_plain_data(es.state()))
    assert np.array_equal(ask(es), ask(again))


def test_one_variable() -> None:
    opt = Optimizer([(0, 1)], method="cma-es", seed=0)
    for _ in range(200):
        (trial,) = opt.ask()
        opt.tell(trial, float((trial.x[0] - 0.3) ** 2))
    assert opt.best.x[0] == pytest.approx(0.3, abs=1e-2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"population": 3}, "population=3 is too small: it must be at least 4"),
        ({"sigma": 0.0}, "sigma=0.0 is no step size"),
        ({"sigma": 1.5}, "sigma=1.5 is no step size"),
        ({"covariance": "block"}, "unknown covariance 'block': use one of auto, full, diagonal"),
    ],
)
def test_bad_options(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        engine(3, **options)
