"""The numbers behind the pictures, without a plotting library."""

from __future__ import annotations

import math
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mctsvs
from mctsvs import Categorical, Float, InputError, Integer, Optimizer, Study
from mctsvs.visualization import curves, variables
from mctsvs.visualization.run_data import RunData, runs_of
from mctsvs.visualization.surrogate_slices import SurrogateSlices


def bowl(x: Any) -> float:
    return float((x[3] - 0.2) ** 2 + 2.0 * (x[7] - 0.6) ** 2)


@cache
def result() -> mctsvs.Result:
    return mctsvs.minimize(bowl, [(0.0, 1.0)] * 16, budget=80, seed=1, method="random", explain=0.2)


@cache
def mixed() -> Optimizer:
    space = {
        "rate": Float(1e-4, 1.0, log=True),
        "layers": Integer(1, 5),
        "kernel": Categorical(["rbf", "linear", "poly"]),
        **{f"p{i}": (0.0, 1.0) for i in range(6)},
    }
    opt = Optimizer(space, direction="maximize", seed=0)
    for i in range(45):
        (trial,) = opt.ask()
        p = trial.params
        value = -((np.log10(p["rate"]) + 2) ** 2) - (p["layers"] - 3) ** 2 - (p["kernel"] != "rbf")
        opt.tell(trial, None if i in (5, 9) else value, "too hot" if i in (5, 9) else "")
    return opt


def test_one_reader_for_everything_that_holds_a_run(tmp_path: Path) -> None:
    with Study(tmp_path / "named.db", [(0.0, 1.0)] * 16, seed=1, method="random", options={"explain": 0.2}) as study:
        study.optimize(bowl, 80)
        runs = runs_of([result(), study, mixed(), mixed()])
        assert [run.label for run in runs] == ["random", "named", "auto", "auto (2)"]
        assert [run.direction for run in runs] == ["minimize", "minimize", "maximize", "maximize"]
        assert np.array_equal(runs[0].values, runs[1].values)
        assert runs[0].variables == runs[1].variables == study.variables()
        assert runs[0].about["budget"] == runs[1].about["budget"] == 80
        assert runs[0].best == result().number
    assert [run.label for run in runs_of({"a": result(), "b": result()})] == ["a", "b"]
    assert runs_of(RunData.of(result()))[0].label == "random"


@pytest.mark.parametrize("wrong", [3, [], Optimizer([(0.0, 1.0)] * 2).space])
def test_what_holds_no_run_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match="nothing to see"):
        runs_of(wrong)


@pytest.mark.parametrize("source", [result, mixed])
def test_convergence_is_the_best_so_far(source: Any) -> None:
    run = RunData.of(source())
    curve = curves.convergence(run)
    for i, best in enumerate(curve.best):
        seen = curve.value[: i + 1]
        assert best == (np.nanmin if run.sign < 0 else np.nanmax)(seen)
    assert curve.best[curve.improved[-1]] == curve.best[-1] == run.values[run.best or 0]
    assert np.all(np.diff(curve.best[curve.improved]) * run.sign > 0)


def test_convergence_counts_only_points_that_keep_the_constraints() -> None:
    opt = Optimizer([(0.0, 1.0)] * 2, method="random")
    for value, constraint in ((1.0, -1.0), (0.5, 1.0), (0.7, 0.0), (None, None)):
        (trial,) = opt.ask()
        opt.tell(trial, value, constraints=None if constraint is None else {"c": constraint})
    run = RunData.of(opt)
    assert curves.convergence(run).best.tolist() == [1.0, 1.0, 0.7, 0.7]
    shown = curves.constraints(run)
    assert shown is not None
    assert (shown.names, shown.broken.tolist()) == (["c"], [1])
    assert shown.feasible[:3].tolist() == [True, False, True]
    assert curves.constraints(RunData.of(result())) is None


def test_the_story_tells_tests_from_steps() -> None:
    opt = Optimizer([(0.0, 1.0)] * 4, method="random")
    told = [
        ("first points", 5.0),
        ("first points", 3.0),
        ("looking for noise", 3.0),
        ("probing a group", 3.0),  # nothing changed
        ("testing a group", 7.0),  # something matters
        ("step in the found variables", 4.0),
        ("testing a group", 2.0),  # and better
        ("step in the found variables", None),
        ("step in the found variables", 1.0),
    ]
    for purpose, value in told:
        (trial,) = opt.ask()
        trial.purpose = purpose
        opt.tell(trial, value)
    story = curves.story(RunData.of(opt))
    assert story.outcome == ["better", "better", "worse", "same", "changed", "worse", "better", "failed", "better"]
    bands = [(band.name, band.first, band.last) for band in story.bands]
    assert bands == [("first points", 0, 2), ("screening the variables", 3, 6), ("optimising", 7, 8)]
    assert (story.tests, story.hits) == (3, 2)


def test_the_default_has_a_story() -> None:
    story = curves.story(RunData.of(mixed()))
    assert "" not in story.purpose
    assert story.bands[0].first == 0
    assert story.bands[-1].last == 44
    assert all(one.last + 1 == two.first for one, two in zip(story.bands, story.bands[1:], strict=False))


def test_selection_counts_every_move() -> None:
    run = RunData.of(result())
    shown = curves.selection(run, variables=16, bins=7)
    assert set(shown.names[:2]) == {"x3", "x7"}
    assert shown.edges[0] == 1
    assert shown.edges[-1] == 81
    counts = (shown.share * np.diff(shown.edges)).sum(axis=1)
    for name, count, total in zip(shown.names, counts, shown.total, strict=True):
        assert round(count) == total == sum(run.position[name] in trial.variables for trial in run.told)


def test_failures_are_grouped_by_their_message() -> None:
    shown = curves.failures(RunData.of(mixed()))
    assert shown.trial.tolist() == [5, 9]
    assert shown.messages == [("too hot", 2, 9)]


def test_time_is_known_of_every_evaluation() -> None:
    shown = curves.timeline(RunData.of(result()))
    assert shown is not None
    assert len(shown.trial) == 80
    assert np.all(shown.told >= shown.asked)
    assert shown.thinking.min() > 0


def test_active_variables_come_with_changes_that_were_seen() -> None:
    shown, trials = variables.active(RunData.of(result())), result().trials
    assert [row.name for row in shown.rows] == result().variables.active
    assert {row.name for row in shown.rows} == {"x3", "x7"}
    for row in shown.rows:
        one, other = (trials[number] for number in row.evidence)
        assert row.effect == abs(float(one.value or 0.0) - float(other.value or 0.0))
        assert np.flatnonzero(one.x != other.x).tolist() == [int(row.name[1:])]
    assert shown.words.endswith("changed nothing at 5 to 6 points, changed together")


def test_the_slices_are_those_of_the_model_that_proposes() -> None:
    """The default optimises the found variables: its own model, fitted as it is, and no point changes by looking."""
    opt, plain = (Optimizer([(0.0, 1.0)] * 40, seed=0, budget=120) for _ in range(2))
    for i in range(120):
        for each in (opt, plain):
            (trial,) = each.ask()
            each.tell(trial, bowl(trial.x))
        if i % 20 == 10:
            SurrogateSlices(RunData.of(opt)).missing or SurrogateSlices(RunData.of(opt)).slices()
    assert [t.unit.tolist() for t in opt.trials] == [t.unit.tolist() for t in plain.trials]
    engine = opt._core.engine
    found = engine.found()
    assert found is not None
    assert set(found) == {3, 7}
    point = np.repeat(opt.best.unit[None], 5, axis=0)
    point[:, 3] = np.linspace(0.0, 1.0, 5)
    mean, _ = opt._core.expected(point)
    error = np.abs(mean - (point[:, 3] - 0.2) ** 2)
    assert error[:3].max() < 1e-3, "on the side where it has looked"
    assert error.max() < 0.01, "a hundredth of the values' range"
    point[:, [0, 1, 2, *range(8, 40)]] = 0.123
    assert np.array_equal(mean, opt._core.expected(point)[0]), "a model of the found variables alone"


def test_the_tree_is_whole_and_lies_side_by_side() -> None:
    found = mctsvs.minimize(bowl, [(0, 1)] * 16, budget=60, method="mcts-vs-bo")
    nodes = variables.tree(RunData.of(found))
    assert nodes is not None
    assert nodes.size[0] == 16
    assert nodes.width[0] == pytest.approx(1.0)
    assert len(nodes) > 2
    for i in range(len(nodes)):
        children = [j for j in range(len(nodes)) if nodes.parent[j] == i]
        if children:
            assert sum(nodes.size[j] for j in children) == nodes.size[i]
            assert sum(nodes.width[j] for j in children) == pytest.approx(nodes.width[i])
            assert nodes.start[children[0]] == pytest.approx(nodes.start[i])
    assert variables.tree(RunData.of(result())) is None


def test_slices_and_contours_are_near_the_truth() -> None:
    surface = SurrogateSlices(RunData.of(result()))
    assert set(surface.names) == {"x3", "x7"}
    for cut in surface.slices():
        other = 0.2 if cut.axis.name == "x7" else 0.6
        truth = [bowl({3: v, 7: other} if cut.axis.name == "x3" else {3: other, 7: v}) for v in cut.axis.values]
        middle = slice(8, -8)
        assert np.abs(cut.mean - truth)[middle].max() < 0.15
    shown = surface.contour("x3", "x7", size=9)
    assert shown.mean.shape == (9, 9)
    lowest = np.unravel_index(shown.mean.argmin(), shown.mean.shape)
    assert shown.second.values[lowest[0]] == pytest.approx(0.6, abs=0.2)
    assert shown.first.values[lowest[1]] == pytest.approx(0.2, abs=0.2)


def test_axes_of_every_kind_of_variable() -> None:
    surface = SurrogateSlices(RunData.of(mixed()))
    layers, kernel, rate = (surface.axis(name, 41) for name in ("layers", "kernel", "rate"))
    assert (layers.values, layers.kind) == ([1.0, 2.0, 3.0, 4.0, 5.0], "linear")
    assert (kernel.values, kernel.kind) == (["rbf", "linear", "poly"], "choices")
    assert rate.kind == "log"
    assert rate.values[0] == pytest.approx(1e-4)
    assert all(math.isfinite(value) for cut in surface.slices() for value in cut.mean)


def test_parallel_has_the_best_points_first() -> None:
    shown = variables.parallel(RunData.of(mixed()), points=5, others=10)
    assert shown.best == 5
    assert np.all(np.diff(shown.value[:5]) <= 0)
    assert shown.value[0] == mixed().best.value
    assert shown.place.min() >= 0
    assert shown.place.max() <= 1


def test_nothing_evaluated_yet() -> None:
    run = RunData.of(Optimizer([(0.0, 1.0)] * 3))
    assert run.best is None
    assert run.variables == []
    assert len(curves.convergence(run).best) == 0
    assert curves.story(run).bands == []
    assert curves.timeline(run) is None
    assert "no model yet" in SurrogateSlices(run).missing
    assert variables.active(run).rows == []
    assert len(variables.parallel(run).place) == 0


def loaded(modules: str, among: tuple[str, ...]) -> str:
    """Which of these libraries a fresh process loads with these modules."""
    code = f"import sys, {modules}; print([m for m in {among} if m in sys.modules])"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_computing_needs_no_plotting_library() -> None:
    ours = [f"mctsvs.visualization.{name}" for name in ("curves", "variables", "report")]
    assert loaded(", ".join([*ours, "mctsvs.study"]), ("matplotlib", "plotly", "pandas", "starlette", "scipy")) == "[]"


def test_following_a_run_needs_nothing_that_draws() -> None:
    assert loaded("mctsvs.visualization.progress", ("rich", "plotly", "matplotlib", "starlette", "scipy")) == "[]"


def test_workers_of_a_run_that_was_taken_up_again_are_not_counted_twice() -> None:
    opt = Optimizer([(0.0, 1.0)] * 3, method="random")
    for i in range(8):
        (trial,) = opt.ask()
        opt.tell(trial, 0.0)
        trial.times.worker = f"process {i % 2 + 10 * (i // 4)}"
        trial.times.asked, trial.times.told = 100.0 + i, 101.5 + i + 10 * (i // 4)
    for trial in opt.trials[4:]:
        trial.times.asked = (trial.times.asked or 0.0) + 10
    shown = curves.timeline(RunData.of(opt))
    assert shown is not None
    assert shown.workers == ["worker 1", "worker 2"]
    assert shown.worker == ["worker 1", "worker 2"] * 4
