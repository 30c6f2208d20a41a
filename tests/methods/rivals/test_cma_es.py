"""CMA-ES: generations from values told in any order, restarts, and its state."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mctsvs import Optimizer, Study
from mctsvs.methods import registry
from mctsvs.methods.base import Observation, Pending, Proposal
from mctsvs.methods.rivals.cma_es import CMAES, FULL_LIMIT, EvolutionOptions
from mctsvs.testing import through_plain_data
from mctsvs.utils.validation import InputError

pytestmark = pytest.mark.skipif(bool(registry.missing(registry.METHODS["cma-es"])), reason="cma is not installed")


def engine(d: int, seed: int = 0, **options: Any) -> CMAES:
    made = registry.make("cma-es", np.arange(d + 1), np.random.default_rng(seed), **options)
    assert isinstance(made, CMAES)
    return made


def sphere(x: np.ndarray) -> float:
    return -float(((x - 0.7) ** 2).sum())


def ask(es: CMAES, n: int = 1) -> list[Proposal]:
    return es.propose(n, Pending.of([], es.dimension))


def tell(es: CMAES, proposal: Proposal, y: float | None = None) -> None:
    """The value given, or the sphere's."""
    x = proposal.x
    es.observe([Observation(x, sphere(x) if y is None else y, proposal.variables, proposal.proposal_id)])


def one_like(es: CMAES) -> CMAES:
    copy = CMAES(es.offsets, np.random.default_rng(0), es.options)
    copy.restore(through_plain_data(es.state()))
    return copy


def test_converges_on_a_sphere() -> None:
    es = engine(10)
    for _ in range(1500):
        tell(es, ask(es)[0])
    assert es.history.y.max() > -1e-5  # plain pycma with these settings reaches 4e-7


def test_asking_for_a_generation_at_once_gives_the_points_of_asking_one_by_one() -> None:
    one, many = engine(6), engine(6)
    for _ in range(4):
        batch = ask(many, 20)
        singles = []
        for _ in range(20):
            singles += ask(one)
            tell(one, singles[-1])
        assert np.array_equal([p.x for p in batch], [p.x for p in singles])
        for proposal in batch[::-1]:
            tell(many, proposal)
        # values in another order are the same generation, up to the rounding of sums
        many = one_like(one)


def test_points_never_told_are_replaced_and_late_ones_counted() -> None:
    es = engine(5, population=8)
    slow = ask(es, 3)
    for _ in range(8):
        tell(es, ask(es)[0])
    assert es.strategy.generation == 1
    for proposal in slow:
        tell(es, proposal)
    assert len(es.members) == 3
    for _ in range(5):
        tell(es, ask(es)[0])
    assert es.strategy.generation == 2
    assert es.past[1].members[:3] == [0, 1, 2]


def test_values_go_to_the_draw_whose_proposal_id_they_have() -> None:
    es = engine(4, population=6)
    proposals = ask(es, 6)
    stranger = Observation(proposals[0].x, 1.0, es.everything)
    es.observe([stranger])  # the same point, evaluated by somebody else
    for i in (4, 1, 5, 0):
        moved = replace(proposals[i], x=np.round(proposals[i].x))  # as integers would move it
        tell(es, moved)
    assert es.members == [4, 1, 5, 0]


def test_failures_count_as_the_worst_and_a_generation_of_failures_as_nothing() -> None:
    es = engine(4, population=6)
    for proposal in ask(es, 6):
        tell(es, proposal, np.nan)
    assert es.strategy.generation == 0
    proposals = ask(es, 6)
    for proposal in proposals[:3]:
        tell(es, proposal)
    for proposal in proposals[3:]:
        tell(es, proposal, np.nan)
    assert es.strategy.generation == 1
    assert len(es.history) == 3
    assert len(es.history.failures) == 9


def test_a_flat_function_restarts_with_twice_the_population_and_restores() -> None:
    es = engine(3, population=6)
    left = ask(es, 2)
    for _ in range(12):
        tell(es, ask(es)[0], 1.0)
    assert es.strategy.run == 1
    assert es.strategy.population == 12
    tell(es, left[0], 0.5)  # of the run that has ended: recorded, not used
    assert es.members == []
    assert len(es.history) == 13
    again = one_like(es)
    for _ in range(30):
        (a,), (b,) = ask(es), ask(again)
        assert np.array_equal(a.x, b.x)
        tell(es, a)
        tell(again, b)


@pytest.mark.parametrize("batch", [40, 50])
def test_batches_of_several_generations_restored_after_every_tell(batch: int) -> None:
    """Two or more generations fill without a point drawn in between."""
    whole, parts = engine(5), engine(5)
    for _ in range(2):
        proposals, same = ask(whole, batch), ask(parts, batch)
        assert np.array_equal([p.x for p in proposals], [p.x for p in same])
        for proposal in proposals[::-1]:
            tell(whole, proposal)
            tell(parts, proposal)
            parts = one_like(parts)
    assert whole.strategy.generation == parts.strategy.generation == 2 * batch // 20
    assert whole.history.y[batch:].mean() > whole.history.y[:batch].mean()


@pytest.mark.parametrize("workers", [40, 50])
def test_forty_workers_and_a_study_opened_again(workers: int, tmp_path: Path) -> None:
    path = tmp_path / "run.db"

    def f(x: np.ndarray) -> float:
        return float((x**2).sum())

    for evaluations in (3 * workers, 5 * workers):
        with Study(path, [(-5, 10)] * 5, method="cma-es", seed=0) as study:
            while len(study.trials) < evaluations:
                for trial in study.ask(workers):
                    study.tell(trial, f(trial.x))
    with Study(path, [(-5, 10)] * 5, method="cma-es", seed=0) as study:
        assert len(study.trials) == 5 * workers
        assert float(study.best.value or 0.0) < min(float(t.value or 0.0) for t in study.trials[:workers])


def test_many_coordinates_use_a_diagonal() -> None:
    assert not EvolutionOptions().diagonal(FULL_LIMIT)
    assert EvolutionOptions().diagonal(FULL_LIMIT + 1)
    assert not EvolutionOptions(covariance="full").diagonal(FULL_LIMIT + 1)
    es = engine(20_000)
    for _ in range(21):
        (proposal,) = ask(es)
        tell(es, proposal, float(proposal.x[0]))
    assert es.strategy.generation == 1
    again = one_like(es)
    assert np.array_equal(ask(es)[0].x, ask(again)[0].x)


def test_one_variable() -> None:
    opt = Optimizer([(0, 1)], method="cma-es", seed=0)
    for _ in range(200):
        (trial,) = opt.ask()
        opt.tell(trial, float((trial.x[0] - 0.3) ** 2))
    assert opt.best.x[0] == pytest.approx(0.3, abs=1e-2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"population": 3}, "population=3 cannot be used: it must be a whole number, from 4 to 10000"),
        ({"sigma": 0.0}, "sigma=0.0 cannot be used: it must be a number, above 0, at most 1"),
        ({"sigma": 1.5}, "sigma=1.5 cannot be used"),
        ({"covariance": "block"}, "unknown covariance 'block': use one of auto, full, diagonal"),
    ],
)
def test_bad_options(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        engine(3, **options)
