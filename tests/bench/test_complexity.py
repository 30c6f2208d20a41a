"""The fitted exponents against known laws, and what the page says of them."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from mctsvs.bench.paper import complexity
from mctsvs.bench.paper.complexity import Measurement

POINTS, VARIABLES = (50, 100, 200, 400), (2, 10, 50, 200)


def law(t: float, d: float) -> float:
    return 1e-9 * t**3 + 3e-9 * t**2 * d


def obeying(fit: Callable[[float, float], float]) -> list[Measurement]:
    """What would be measured if the analysis were exact."""
    cells = [(t, d) for t in POINTS for d in VARIABLES]
    found = [Measurement("fit", t, d, fit(t, d)) for t, d in cells]
    found += [Measurement("gradient", t, d, 1e-8 * (t**2 + t * d)) for t, d in cells]
    return found + [Measurement("maximise", t, d, 1e-6 * (t**2 + t * d + d**2), 5 + d / 10) for t, d in cells]


def test_constants_and_exponents_of_a_known_law() -> None:
    measured = obeying(law)
    constants, model = complexity.fitted(measured, "fit")
    np.testing.assert_allclose(constants, [1e-9, 3e-9, 0.0], rtol=1e-6, atol=1e-12)
    assert model(300, 7) == pytest.approx(law(300, 7))
    assert complexity.misfit(measured, "maximise") < 1e-6
    found = {(s.what, s.variable, s.at): s for s in complexity.slopes(measured)}
    assert len(found) == 12
    for slope in found.values():
        assert slope.measured == pytest.approx(slope.analysis, abs=1e-6)
    assert found["fit", "t", "d = 2"].measured == pytest.approx(3.0, abs=0.05)
    assert found["maximise", "d", "t = 50"].measured > 1.0


def test_the_largest_term_is_named_with_its_share() -> None:
    found = {(s.what, s.variable, s.at): s for s in complexity.slopes(obeying(law))}
    slope = found["fit", "t", "d = 2"]
    assert slope.largest == (3, 0)
    assert slope.share == pytest.approx(400 / (400 + 3 * 2), rel=1e-6)
    slope = found["fit", "d", "t = 50"]
    assert slope.largest == (2, 1)
    assert slope.share == pytest.approx(600 / 650, rel=1e-6)


def test_the_page_says_what_was_measured() -> None:
    cubic = complexity.text(obeying(lambda t, d: 1e-9 * t**3))
    rows = [line.split("|")[1:-1] for line in cubic.splitlines() if line.startswith("| likelihood")]
    assert [cells[-1].strip() for cells in rows] == ["t³, 100 %"] * 4
    dominated = sum(float(share) >= 90 for share in re.findall(r", ([0-9]+) % \|", cubic))
    assert f"90 % or more in {dominated} of 12 rows" in cubic
    assert "5 to 25 steps" in cubic


def test_lines_of_the_figure_are_power_laws_named_by_their_exponent() -> None:
    plots = complexity.plots(obeying(lambda t, d: 1e-9 * t**3))
    assert [plot.xlabel for plot in plots] == ["points $t$"] * 3 + ["variables $d$"] * 3
    assert [curve.label for curve in plots[0].curves] == [f"$d$ = {d}: $t^{{3.00}}$" for d in (2, 50, 200)]
    for curve in plots[0].curves:
        assert curve.law is not None
        np.testing.assert_array_equal(curve.x, POINTS)
        np.testing.assert_array_equal(curve.law[0], [200, 400])
        np.testing.assert_allclose(curve.law[1], curve.mean[2:])


def test_costs_are_measured() -> None:
    measured = complexity.measure((20, 60), (2, 8))
    assert [m.what for m in measured] == ["fit", "gradient", "maximise"] * 4
    assert all(0 < m.seconds < 1 for m in measured)
    seconds = {(m.what, m.t, m.d): m.seconds for m in measured}
    assert all(seconds["maximise", t, d] > seconds["gradient", t, d] for t in (20, 60) for d in (2, 8))
    assert all(m.steps >= 1 for m in measured if m.what == "maximise")


def test_it_is_measured_on_one_thread_whatever_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "4")
    assert complexity.one_thread()["OPENBLAS_NUM_THREADS"] == "1"
