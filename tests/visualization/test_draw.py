"""The pictures on matplotlib axes: labelled, and of what was computed."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mctsvs
from mctsvs import InputError, Optimizer

pytestmark = pytest.mark.needs("matplotlib")


@pytest.fixture(scope="module")
def result() -> mctsvs.Result:
    def f(x: Any) -> float:
        return float((x[1] - 0.2) ** 2 + (x[5] - 0.7) ** 2)

    return mctsvs.minimize(f, [(0, 1)] * 10, budget=60, seed=0, method="mcts-vs-bo", explain=0.3)


@pytest.fixture(autouse=True)
def _no_window() -> Iterator[None]:
    import matplotlib

    matplotlib.use("Agg")
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.mark.parametrize("name", ["convergence", "variables", "tree", "selection", "contour", "parallel", "timeline"])
def test_every_picture_has_its_axes_labelled(result: mctsvs.Result, name: str) -> None:
    import mctsvs.visualization

    ax = getattr(mctsvs.visualization, f"plot_{name}")(result)
    assert ax.get_title()
    assert ax.get_xlabel() or ax.get_xticklabels()
    assert ax.get_ylabel() or ax.get_yticklabels()
    ax.figure.canvas.draw()  # fonts, ticks and all


def test_the_line_is_the_best_so_far(result: mctsvs.Result) -> None:
    import mctsvs.visualization

    ax = mctsvs.visualization.plot_convergence(result)
    line = next(line for line in ax.lines if line.get_label() == "best so far")
    values = np.array([trial.value for trial in result.trials], dtype=float)
    assert np.array_equal(line.get_ydata(), np.minimum.accumulate(values))


def test_several_runs_share_one_picture_of_convergence(result: mctsvs.Result) -> None:
    import mctsvs.visualization

    ax = mctsvs.visualization.plot_convergence({"one": result, "two": result})
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["one", "two"]
    assert len({line.get_linestyle() for line in ax.lines}) == 2
    with pytest.raises(InputError, match="of one run, not of 2"):
        mctsvs.visualization.plot_variables([result, result])


def test_slices_have_axes_of_their_own(result: mctsvs.Result) -> None:
    import mctsvs.visualization

    axes = mctsvs.visualization.plot_slices(result)
    assert {ax.get_xlabel() for ax in axes if ax.axison} == {"x1", "x5"}


def test_what_cannot_be_drawn_says_why(result: mctsvs.Result) -> None:
    import mctsvs.visualization

    young: Any = Optimizer([(0.0, 1.0)] * 3)
    young.tell(young.ask()[0], 1.0)
    assert "no model yet" in mctsvs.visualization.plot_slices(young)[0].texts[0].get_text()
    stored = pickle.loads(pickle.dumps(result))
    assert "not stored" in mctsvs.visualization.plot_slices(stored)[0].texts[0].get_text()
    assert mctsvs.visualization.plot_variables(stored).patches
    with pytest.raises(InputError, match="no contour of 'x9'"):
        mctsvs.visualization.plot_contour(result, "x9")
    everywhere = mctsvs.minimize(lambda x: float(x[0]), [(0, 1)] * 3, budget=9, method="random")
    for name in ("variables", "contour", "parallel"):
        said = getattr(mctsvs.visualization, f"plot_{name}")(everywhere).texts[0].get_text()
        assert "was not tested" in said.replace("\n", " ")
    said = mctsvs.visualization.plot_selection(everywhere).texts[0].get_text()
    assert said == "the evaluations moved all variables"
    assert "no evaluation has any" in mctsvs.visualization.plot_constraints(result).texts[0].get_text()
