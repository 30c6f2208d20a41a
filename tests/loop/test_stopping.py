"""What ends a run before its budget, and that it is said: in one call, in a study, with workers."""

from __future__ import annotations

import math
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import mctsvs
from mctsvs import Study
from mctsvs.loop.stopping import StoppingCriteria, StoppingMonitor, StopStatus
from mctsvs.utils.validation import Array, InputError, StudyError

BOX = [(0.0, 1.0)] * 4


def f(x: Array) -> float:
    return float(((x - 0.4) ** 2).sum())


def minimize(**more: Any) -> mctsvs.Result:
    return mctsvs.minimize(f, BOX, budget=60, method="random", seed=0, **more)


def test_a_target_ends_the_run_at_once() -> None:
    result = minimize(target=0.1)
    assert result.status is StopStatus.TARGET
    assert result.message == f"{result.nfev} of 60 evaluations, the target 0.1 was reached"
    assert result.success
    values = [trial.value for trial in result.trials]
    assert [value <= 0.1 for value in values if value is not None] == [False] * (result.nfev - 1) + [True]


def test_a_target_of_a_maximum_is_reached_from_below() -> None:
    result = mctsvs.maximize(lambda x: -f(x), BOX, budget=60, method="random", seed=0, target=-0.1)
    assert result.status is StopStatus.TARGET
    assert result.fun >= -0.1


def test_a_target_needs_a_feasible_point() -> None:
    result = mctsvs.minimize(
        lambda x: (f(x), {"c": 0.5 - float(x[0])}), BOX, budget=60, method="random", seed=0, target=0.3
    )
    assert result.status is StopStatus.TARGET
    assert result.x[0] >= 0.5
    assert any(t.value is not None and t.value <= 0.3 for t in result.trials[:-1])  # infeasible ones before it


def test_patience_counts_evaluations_that_are_no_better() -> None:
    result = minimize(patience=7)
    best = min(range(result.nfev), key=lambda i: result.trials[i].value or 0.0)
    assert result.nfev == best + 1 + 7
    assert result.status is StopStatus.PATIENCE
    assert result.message.endswith("none of the last 7 was better")


def test_no_evaluation_begins_after_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]

    def slow(x: Array) -> float:
        now[0] += 2.0
        return f(x)

    monkeypatch.setattr("mctsvs.loop.stopping.time.monotonic", lambda: now[0])
    result = mctsvs.minimize(slow, BOX, budget=60, method="random", max_seconds=5)
    assert result.nfev == 3
    assert result.status is StopStatus.TIME
    assert result.message == "3 of 60 evaluations, 5 seconds were over"


def test_failures_in_a_row_end_the_run() -> None:
    result = mctsvs.minimize(
        lambda x: 1.0 if x[0] > 0.1 else math.nan, BOX, budget=5, method="random", max_failures=1, seed=1
    )
    assert result.status in (StopStatus.DONE, StopStatus.FAILING)
    watch = StoppingMonitor(StoppingCriteria(max_failures=2), "minimize")
    trial = mctsvs.Optimizer(BOX).ask()[0]
    trial.value = math.nan
    assert watch.told(trial, better=False) is None
    ending = watch.told(trial, better=False)
    assert ending is not None
    assert ending.status is StopStatus.FAILING


def mistaken(x: Array) -> float:
    return float(x.nothing)  # type: ignore[attr-defined]


@pytest.mark.parametrize("crew", [{"workers": 1}, {"study": "s.db"}, {"executor": ThreadPoolExecutor(1)}])
def test_equal_mistakes_end_a_run_that_has_never_worked(
    crew: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="all 3 evaluations failed, the last with: AttributeError: ") as caught:
        mctsvs.minimize(mistaken, BOX, budget=60, method="random", **crew)
    assert "3 evaluations in a row failed by the same mistake" in caught.value.result.message  # type: ignore[attr-defined]


def test_mistakes_after_a_success_or_of_several_kinds_do_not_end_a_run(tmp_path: Path) -> None:
    def later(x: Array) -> float:
        calls.append(x)
        return float(x[0]) if len(calls) == 1 else mistaken(x)

    calls: list[Array] = []
    with mctsvs.Study(tmp_path / "s.db", BOX, method="random") as study:
        study.optimize(later, 10)
        study.optimize(mistaken, 20)
        assert study.evaluated == 20
    several: dict[float, float] = {}
    with mctsvs.Study(tmp_path / "t.db", BOX, method="random") as study, pytest.raises(StudyError, match="all 9"):
        study.optimize(lambda x: several[x[0]], 9)


@pytest.mark.parametrize(
    ("name", "value"), [("target", "low"), ("max_seconds", 0), ("patience", 0), ("max_failures", 1.5)]
)
def test_limits_are_checked(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"{name}="):
        minimize(**{name: value})


@pytest.mark.parametrize("crew", [{}, {"workers": 1}])
def test_a_callback_that_cannot_be_called_costs_no_evaluation(crew: dict[str, Any]) -> None:
    calls: list[Any] = []
    wrong: Any = 3
    with pytest.raises(InputError, match="callback=3 cannot be used: give a function"):
        mctsvs.minimize(calls.append, BOX, budget=3, callback=wrong, **crew)
    assert not calls


def test_the_clock_changes_no_point() -> None:
    part, whole = minimize(max_seconds=1e6), minimize()
    assert [t.x.tolist() for t in part.trials] == [t.x.tolist() for t in whole.trials]


@pytest.mark.parametrize("crew", [{}, {"workers": 2}, {"workers": 2, "asynchronous": True}])
def test_a_study_ends_as_a_run_does(tmp_path: Path, crew: dict[str, Any]) -> None:
    with Study(tmp_path / "run.db", BOX, method="random", seed=0) as study:
        study.optimize(f, 60, target=0.1, **crew)
        assert study.message.endswith("the target 0.1 was reached")
        assert study.best.value is not None
        assert study.best.value <= 0.1
        first = study.evaluated
        assert first < 60
        assert not [t for t in study.pending if t.number in study._session.early]
        study.optimize(f, 60, target=0.1, **crew)
        assert study.evaluated == first
        assert "was reached before" in study.message
        study.optimize(f, first + 2, **crew)
        assert study.message == f"{first + 2} evaluations"


@pytest.mark.parametrize("crew", [{}, {"workers": 2}, {"workers": 2, "asynchronous": True}])
def test_stop_waits_for_what_is_under_way_and_begins_nothing(tmp_path: Path, crew: dict[str, Any]) -> None:
    def stop(study: Study, trial: mctsvs.Trial) -> None:
        if study.evaluated == 5:
            study.stop()

    with Study(tmp_path / "run.db", BOX, method="random", seed=0) as study:
        study.optimize(f, 40, callback=stop, **crew)
        assert 5 <= study.evaluated <= 9, "two workers have at most two points more each under way"
        assert study.message == f"{study.evaluated} of 40 evaluations, stopped by stop()"
        study.optimize(f, 12, **crew)
        assert study.evaluated == 12
        assert not study.pending


def test_another_thread_may_stop_a_study(tmp_path: Path) -> None:
    begun = threading.Event()

    def note(x: Array) -> float:
        begun.set()
        return f(x)

    with Study(tmp_path / "run.db", BOX, method="random", seed=0) as study:

        def stop() -> None:
            begun.wait()
            study.stop()

        thread = threading.Thread(target=stop)
        thread.start()
        study.optimize(note, 100_000)
        thread.join()
        assert study.evaluated < 100_000
        assert study.message.endswith("stopped by stop()")


def test_a_study_that_fails_again_and_again_is_an_error_still(tmp_path: Path) -> None:
    with Study(tmp_path / "run.db", BOX, method="random") as study, pytest.raises(StudyError, match="the last 3"):
        study.optimize(lambda x: math.nan, 40, max_failures=3)
