"""Theorem 4.2's terms against hand-computed values."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mctsvs.bench.paper import regret_bound
from mctsvs.bench.problems import Problem, make
from mctsvs.bench.record import RunSettings
from mctsvs.gp.acquisition import beta_schedule
from mctsvs.utils.validation import InputError


def plane(slopes: list[float]) -> Problem:
    """f(x) = slopes . x on the cube [0, 2]^D."""
    weights = np.array(slopes)
    return Problem(
        name="plane",
        description="a plane",
        bounds=np.tile([0.0, 2.0], (len(slopes), 1)),
        function=lambda x: float(weights @ x),
        optimum=float(2.0 * np.maximum(weights, 0).sum()),
        active=np.flatnonzero(weights),
    )


def test_slopes_of_a_plane_are_known() -> None:
    np.testing.assert_allclose(regret_bound.steepest(plane([3.0, 0.0, -0.5]), points=20), [6.0, 0.0, 1.0], rtol=1e-6)


def test_slopes_of_hartmann_are_reached_on_its_active_variables_only() -> None:
    problem = make("Hartmann6_30", shuffle=True, seed=3)
    found = regret_bound.steepest(problem)
    assert problem.active is not None
    assert np.all(found[problem.active] > 1.0)
    assert np.count_nonzero(found) == 6
    low, high = problem.bounds.T
    rng = np.random.default_rng(0)
    for _ in range(300):  # no slope anywhere is clearly steeper
        z, i = rng.random(30), int(rng.choice(problem.active))
        up = z.copy()
        up[i] = min(z[i] + 1e-5, 1.0)
        rise = problem.function(low + (high - low) * up) - problem.function(low + (high - low) * z)
        assert abs(rise) <= 1.02 * found[i] * (up[i] - z[i]) + 1e-12


def test_the_terms_of_the_bound_by_hand() -> None:
    slopes, spread, D = np.array([4.0, 2.0, 0.0, 0.0]), 2.0, 4
    bound = regret_bound.RegretBound(slopes, spread, D)
    L = bound.b * math.sqrt(math.log(4 * D / 0.1))
    assert pytest.approx(slopes.max() / spread) == L  # alpha_max = 1
    beta = bound.beta(2)
    pi_1 = math.pi**2 / 6
    inside = 2 * 1 * bound.b * math.sqrt(math.log(4 * D / 0.1))
    assert beta == pytest.approx(2 * math.log(4 * pi_1 / 0.1) + 2 * 2 * math.log(inside))
    first = bound.add(np.array([0, 2]), beta, sd=0.5)
    c1, gain = 8 / math.log(1 + 1 / 0.01), 0.5 * math.log(1 + 0.25 / 0.01)
    assert first["gp_term"] == pytest.approx(spread * math.sqrt(c1 * 1 * beta * gain))
    assert first["unselected_term"] == pytest.approx(2 * 2.0)  # variable 1 was not selected; slope 2 in f's own units
    assert first["bound"] == pytest.approx(first["gp_term"] + first["unselected_term"] + 2 * spread)
    second = bound.add(np.array([0, 1]), beta / 2, sd=0.5)  # the largest beta stays
    assert second["unselected_term"] == first["unselected_term"]
    assert second["gp_term"] == pytest.approx(spread * math.sqrt(c1 * 2 * beta * 2 * gain))


def test_selecting_everything_leaves_no_second_term() -> None:
    bound = regret_bound.RegretBound(np.array([1.0, 2.0, 3.0]), 1.0, 3)
    assert bound.add(np.arange(3), bound.beta(3), 1.0)["unselected_term"] == 0.0


def test_beta_grows_with_iterations_and_selected_variables() -> None:
    values = [[beta_schedule(t, d, 100) for d in (1, 5, 50, 100)] for t in (1, 10, 100)]
    assert np.all(np.diff(values, axis=0) > 0)
    assert np.all(np.diff(values, axis=1) > 0)


@pytest.mark.parametrize("method", list(regret_bound.SELECTORS))
def test_gp_ucb_with_every_selector(method: str) -> None:
    problem = make("Hartmann6_20")
    record = regret_bound.run(problem, RunSettings(problem.name, method, 1, 30))
    again = regret_bound.run(problem, RunSettings(problem.name, method, 1, 30))
    assert record.series.values == again.series.values
    assert len(record.series.values) == len(record.trace) == 30
    extra = record.extra
    assert {len(series) for series in extra.values()} == {18}
    assert problem.optimum is not None
    behind = [problem.optimum - value for value in record.series.values[regret_bound.DESIGN :]]
    np.testing.assert_allclose(extra["regret"], np.cumsum(behind))
    assert np.all(np.array(extra["bound"]) > extra["regret"])
    assert np.all(np.diff(extra["unselected_term"]) >= 0)
    if method == "ucb-all":
        assert set(extra["selected"]) == {20.0}
        assert extra["unselected_term"][-1] == 0.0
    if method == "ucb-dropout":
        assert set(extra["selected"]) == {6.0}


def test_all_selectors_begin_with_the_same_points() -> None:
    problem = make("Hartmann6_30")
    runs = [
        regret_bound.run(problem, RunSettings(problem.name, method, 3, regret_bound.DESIGN + 1))
        for method in regret_bound.SELECTORS
    ]
    first = runs[0].series.values[: regret_bound.DESIGN]
    assert all(run.series.values[: regret_bound.DESIGN] == first for run in runs)
    assert all(len(run.series.values) == regret_bound.DESIGN + 1 for run in runs)


def test_regret_needs_an_optimum_and_iterations() -> None:
    problem = make("Hartmann6_20")
    with pytest.raises(InputError, match="budget of 12"):
        regret_bound.run(problem, RunSettings(problem.name, "ucb-all", 1, 12))
