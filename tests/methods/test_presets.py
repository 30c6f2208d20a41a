"""Settings: named sets of options, and what the published choices of rivals do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mctsvs import Optimizer
from mctsvs.bench import problems
from mctsvs.bench.record import paper_options
from mctsvs.methods import presets, registry
from mctsvs.methods.history import History
from mctsvs.methods.rivals.la_mcts import FRESH
from mctsvs.methods.selectors import Lasso, LassoOptions
from mctsvs.methods.solvers.turbo import TuRBO
from mctsvs.utils.validation import InputError


@pytest.mark.parametrize("name", ["paper", "published"])
def test_every_option_of_a_setting_exists_and_is_allowed(name: str) -> None:
    for method, options in presets.SETTINGS[name].items():
        found = registry.METHODS[method]
        assert set(options) <= set(registry.options_of(found))
        if not registry.missing(found):
            assert registry.make(method, np.arange(9), np.random.default_rng(0), settings=name) is not None


def test_a_users_option_comes_before_the_setting() -> None:
    engine: Any = registry.make("mcts-vs-turbo", np.arange(9), np.random.default_rng(0), settings="paper", burst=7)
    assert (engine.options.burst, engine.solver.options.batch, engine.solver.options.climb) == (7, 10, 0)


@pytest.mark.needs("sklearn")
@pytest.mark.parametrize("name", ["paper", "published"])
def test_a_leaf_is_searched_point_by_point(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten at once, as with TuRBO alone, would leave a leaf's fifty evaluations four steps after its fresh points."""
    draw, sizes = TuRBO.draw, []

    def counted(self: TuRBO, n: int, *others: Any) -> Any:
        sizes.append(n)
        return draw(self, n, *others)

    monkeypatch.setattr(TuRBO, "draw", counted)
    opt = Optimizer(
        [(0.0, 1.0)] * 6,
        direction="maximize",
        method="la-mcts-turbo",
        seed=1,
        options={"settings": name, "samples": 16},
    )
    for _ in range(20 + 16):
        (trial,) = opt.ask()
        opt.tell(trial, -float((np.asarray(trial.x) ** 2).sum()))
    assert sizes == [1] * (16 - FRESH)


def test_unknown_settings_are_one_sentence() -> None:
    with pytest.raises(InputError, match=r"unknown settings 'papers': use one of library, paper"):
        Optimizer([(0, 1)] * 3, method="bo", options={"settings": "papers"})


def test_paper_sets_constant_width_and_model_by_problem() -> None:
    chosen = paper_options("mcts-vs-bo", problems.make("Levy10_100"), {}, True)
    assert chosen == {"settings": "paper", "cp": 10.0, "width": 20.0}
    assert paper_options("turbo", problems.make("Levy10_100"), {}, True) == {"settings": "paper"}
    assert paper_options("auto", problems.make("Levy10_100"), {}, True) == {}


@pytest.mark.needs("sklearn", "cma")
@pytest.mark.parametrize("method", ["turbo", "la-mcts-turbo", "mcts-vs-turbo", "mcts-vs-bo", "cma-es", "lasso-bo"])
def test_runs_with_the_papers_settings_survive_being_restored(method: str) -> None:
    def f(x: Any) -> float:
        return -float(((np.asarray(x) - 0.3) ** 2).sum())

    opt = Optimizer([(0.0, 1.0)] * 6, direction="maximize", method=method, seed=1, options={"settings": "paper"})
    for k in range(45):
        if k == 33:
            opt = Optimizer.restore(opt.state())
        (trial,) = opt.ask()
        opt.tell(trial, f(trial.x))
    other = Optimizer([(0.0, 1.0)] * 6, direction="maximize", method=method, seed=1, options={"settings": "paper"})
    for _ in range(45):
        (trial,) = other.ask()
        other.tell(trial, f(trial.x))
    assert np.array_equal(opt.best.x, other.best.x)


@pytest.mark.needs("cma")
def test_evolution_starts_anywhere_as_published() -> None:
    first = [
        Optimizer([(0, 1)] * 400, method="cma-es", seed=3, options={"sigma": 1e-3, "settings": settings_}).ask()[0].x
        for settings_ in ("library", "published")
    ]
    assert np.abs(first[0] - 0.5).max() < 0.05 < np.abs(first[1] - 0.5).mean()


@pytest.mark.needs("sklearn")
def test_lasso_as_published_picks_the_last_variables_where_all_coefficients_are_zero() -> None:
    problem, rng = problems.make("Hartmann6_300"), np.random.default_rng(0)
    history = History(300)
    for x in rng.random((100, 300)):
        history.add(x, problem(x))
    chosen = Lasso(300, LassoOptions(d=6, alpha=0.1, raw=True)).next(history, np.arange(300), rng)
    assert chosen.tolist() == [294, 295, 296, 297, 298, 299]
