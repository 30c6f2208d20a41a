"""`minimize` and `maximize`: what they return when something ends the run."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mctsvs
from mctsvs.loop.stopping import StopStatus

BOX = [(0.0, 1.0)] * 3


def sphere(x: Any) -> float:
    return float(((x - 0.3) ** 2).sum())


def test_ctrl_c_gives_the_result_so_far() -> None:
    calls = []

    def f(x: Any) -> float:
        calls.append(x)
        if len(calls) == 7:
            signal.raise_signal(signal.SIGINT)
        return sphere(x)

    result = mctsvs.minimize(f, BOX, budget=30, method="random")
    assert (result.status, result.success, result.nfev) == (StopStatus.INTERRUPTED, False, 6)
    assert result.message == "6 of 30 evaluations, stopped by Ctrl-C"
    assert result.fun == min(sphere(x) for x in calls[:6])


def test_an_exception_carries_the_result_so_far() -> None:
    def f(x: Any, calls: list[int] = []) -> float:  # noqa: B006
        calls.append(0)
        return sphere(x) if len(calls) < 5 else 1 / 0

    with pytest.raises(ZeroDivisionError) as raised:
        mctsvs.minimize(f, BOX, budget=30, method="random")
    result = raised.value.result  # type: ignore[attr-defined]
    assert (result.status, result.nfev, len(result.trials)) == (StopStatus.RAISED, 4, 5)
    assert result.fun == min(t.value for t in result.trials if t.value is not None)


def test_failures_in_a_row_end_the_run() -> None:
    calls: list[Any] = []

    def f(x: Any) -> float | None:
        calls.append(x)
        return sphere(x) if len(calls) <= 4 else None

    result = mctsvs.minimize(f, BOX, budget=50, method="random", max_failures=5)
    assert result.status is StopStatus.FAILING
    assert not result.success
    assert result.nfev == 9


def test_nothing_but_failures_is_an_error_that_keeps_its_result() -> None:
    with pytest.raises(mctsvs.InputError, match="all 30 evaluations failed") as raised:
        mctsvs.minimize(lambda x: None, BOX, budget=500, method="random")
    assert raised.value.result.nfev == 30  # type: ignore[attr-defined]


@pytest.mark.parametrize("how", ["returns", "raises"])
def test_a_callback_may_stop_the_run(how: str) -> None:
    def callback(opt: mctsvs.Optimizer, trial: mctsvs.Trial) -> object:
        if trial.number == 9 and how == "raises":
            raise StopIteration
        return trial.number == 9

    result = mctsvs.minimize(sphere, BOX, budget=30, method="random", callback=callback)
    assert (result.nfev, result.status, result.success) == (10, StopStatus.STOPPED, True)
    assert "stopped by the callback" in result.message


def test_the_same_seed_is_the_same_run_whatever_ends_it() -> None:
    whole = mctsvs.minimize(sphere, BOX, budget=12, seed=3)
    part = mctsvs.minimize(sphere, BOX, budget=12, seed=3, callback=lambda opt, trial: trial.number == 5)
    assert np.array_equal([t.x for t in whole.trials[:6]], [t.x for t in part.trials])


def test_words() -> None:
    result = mctsvs.minimize(lambda x: (x[17] - 1) ** 2 + (x[203] + 2) ** 2, [(-5, 10)] * 300, budget=80, seed=0)
    assert str(result).startswith("Result(fun=")
    assert "x203 and x17 act: 80 evaluations)" in str(result)
    assert result == result
    assert result != mctsvs.minimize(sphere, BOX, budget=3)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("n_calls", "budget="),
        ("maxiter", "budget="),
        ("dimensions", "second argument"),
        ("random_state", "seed="),
        ("direction", "use minimize or maximize"),
        ("n_jobs", "workers="),
        ("wrokers", "did you mean workers="),
        ("max_second", "did you mean max_seconds="),
        ("cpp", "no option .cpp."),
    ],
)
def test_arguments_that_are_nearly_right_get_a_hint(name: str, hint: str) -> None:
    arguments: dict[str, Any] = {name: 3}
    with pytest.raises(mctsvs.InputError, match=hint):
        mctsvs.minimize(sphere, BOX, budget=3, **arguments)


def test_what_is_missing_is_said() -> None:
    with pytest.raises(mctsvs.InputError, match="no space"):
        mctsvs.minimize(sphere, budget=3)
    with pytest.raises(mctsvs.InputError, match="no budget"):
        mctsvs.minimize(sphere, BOX)
    assert mctsvs.minimize(sphere, bounds=BOX, budget=3).nfev == 3
    with pytest.raises(mctsvs.InputError, match="x0="):
        mctsvs.minimize(sphere, [0.5] * 12, bounds=BOX, budget=3)


def test_the_first_points_are_those_given(tmp_path: Path) -> None:
    n = len(BOX)
    one = mctsvs.minimize(sphere, BOX, 4, x0=np.full(n, 0.25))
    assert one.trials[0].x.tolist() == [0.25] * n
    several = mctsvs.minimize(sphere, BOX, 4, x0=[[0.5] * n, [0.125] * n])
    assert [trial.x[0] for trial in several.trials[:2]] == [0.5, 0.125]
    named = mctsvs.minimize(lambda p: p["a"], {"a": (0.0, 1.0)}, 3, x0={"a": 0.75})
    assert named.trials[0].params == {"a": 0.75}
    header = ",".join(f"x{i}" for i in range(n))
    (tmp_path / "points.csv").write_text(f"{header}\n" + ",".join(["0.5"] * n) + "\n")
    read = mctsvs.minimize(sphere, BOX, 3, x0=tmp_path / "points.csv")
    assert read.trials[0].x.tolist() == [0.5] * n
    assert read.trials[0].source == "enqueued"
    (tmp_path / "known.csv").write_text(f"{header},value\n" + ",".join(["0.5"] * n) + ",-7\n")
    known = mctsvs.minimize(sphere, BOX, 3, x0=str(tmp_path / "known.csv"))
    assert (known.fun, len(known.trials), known.message) == (-7.0, 4, "3 evaluations")
    with pytest.raises(mctsvs.InputError, match="must fit"):
        mctsvs.minimize(sphere, BOX, 3, x0=np.full(n, 99.0))


def test_a_study_keeps_the_run_and_the_same_call_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    first = mctsvs.minimize(sphere, BOX, 6, seed=3, study=path, x0=[0.5] * len(BOX))
    again = mctsvs.minimize(sphere, BOX, 12, seed=3, study=path, x0=[0.5] * len(BOX))
    assert [t.unit.tolist() for t in again.trials[:6]] == [t.unit.tolist() for t in first.trials]
    assert (first.message, again.message) == ("6 evaluations", "12 evaluations, 6 of them in earlier calls")
    assert again.fun <= first.fun
    assert [t.source for t in again.trials].count("enqueued") == 1


def test_workers_evaluate_and_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = mctsvs.minimize(sphere, BOX, 8, method="random", workers=2, target=-1.0)
    assert result.nfev == 8
    assert result.success
    assert not list(tmp_path.iterdir())
    alone = mctsvs.minimize(sphere, BOX, 8, method="random")
    assert [t.x.tolist() for t in result.trials] == [t.x.tolist() for t in alone.trials]


def test_a_study_that_fails_again_and_again_gives_what_there_is(tmp_path: Path) -> None:
    calls = []

    def fails_after_one(x: Any) -> float:
        calls.append(x)
        return 1.0 if len(calls) == 1 else float("nan")

    result = mctsvs.minimize(fails_after_one, BOX, 20, method="random", study=tmp_path / "run.db", max_failures=3)
    assert (result.status, result.nfev, result.fun) == (StopStatus.FAILING, 4, 1.0)


@pytest.mark.no_cover
def test_a_type_checker_refuses_a_misspelt_argument(tmp_path: Path) -> None:
    api = pytest.importorskip("mypy.api")
    file = tmp_path / "slip.py"
    file.write_text(
        "import mctsvs\nmctsvs.minimize(len, [(0, 1)], budget=3)\nmctsvs.minimize(len, [(0, 1)], bugdet=10)\n"
    )
    said, _, status = api.run(["--no-incremental", "--follow-imports=silent", str(file)])
    assert status == 1
    assert 'slip.py:3: error: Argument "bugdet"' in said
    assert "slip.py:2" not in said


def test_callbacks_as_other_libraries_know_them() -> None:
    seen: list[Any] = []

    def of_scipy(intermediate_result: Any) -> None:
        seen.append(intermediate_result.fun)

    def of_optuna(opt: mctsvs.Optimizer, trial: mctsvs.Trial) -> None:
        seen.append(trial.number)

    result = mctsvs.minimize(sphere, BOX, budget=3, callback=[lambda xk: seen.append(xk), of_scipy, of_optuna])
    assert len(seen) == 9
    assert np.array_equal(seen[6], result.x)
    assert seen[7] == result.fun
    assert [seen[i] for i in (2, 5, 8)] == [0, 1, 2]
    assert result["fun"] == result.fun
    assert result.nit == 3
    with pytest.raises(KeyError, match="'y'"):
        result["y"]


def test_workers_need_no_study(monkeypatch: pytest.MonkeyPatch) -> None:
    result = mctsvs.minimize(sphere, BOX, budget=6, workers=2, method="random")
    assert result.nfev == 6
    assert {t.times.worker != "" for t in result.trials} == {True}


def test_a_table_of_first_points() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [0.25, 0.5], "b": [0.5, 0.75]})
    space = {"a": mctsvs.Float(0, 1), "b": mctsvs.Float(0, 1)}
    result = mctsvs.minimize(lambda p: p["a"] + p["b"], space, budget=3, x0=frame)
    assert [t.params for t in result.trials[:2]] == [{"a": 0.25, "b": 0.5}, {"a": 0.5, "b": 0.75}]
    known = mctsvs.minimize(lambda p: p["a"] + p["b"], space, budget=3, x0=frame.assign(value=[1.0, 2.0]))
    assert [t.source for t in known.trials[:2]] == ["imported", "imported"]
    table = result.to_dataframe()
    assert table["value"].tolist() == [t.value for t in result.trials]


def test_evaluations_of_this_call_are_counted(tmp_path: Path) -> None:
    """Known points are not among them, and message, representation and `nfev` say the same."""
    known = tmp_path / "known.csv"
    known.write_text("x0,x1,value\n0.1,0.2,5\n0.3,0.3,4\n")
    seen: list[Any] = []
    more: dict[str, Any] = {"method": "random", "x0": known, "study": tmp_path / "a.db"}

    def callback(intermediate_result: Any) -> None:
        seen.append(intermediate_result.nfev)

    result = mctsvs.minimize(lambda x: float(x[0]), [(0, 1)] * 2, budget=5, callback=callback, **more)
    assert (result.nfev, result.message, len(result.trials)) == (5, "5 evaluations", 7)
    assert seen == [1, 2, 3, 4, 5]
    assert f"at trial {result.number}" in repr(result)
    seen.clear()
    again = mctsvs.minimize(lambda x: float(x[0]), [(0, 1)] * 2, budget=8, callback=callback, **more)
    assert (again.nfev, again.message) == (3, "8 evaluations, 5 of them in earlier calls")
    assert seen == [1, 2, 3]


def test_a_callback_may_answer_with_a_bool_of_numpy() -> None:
    def callback(opt: mctsvs.Optimizer, trial: mctsvs.Trial) -> object:
        return np.bool_(trial.number == 4)

    result = mctsvs.minimize(sphere, BOX, budget=30, method="random", callback=callback)
    assert result.nfev == 5


def test_a_callback_that_cannot_be_called_is_one_sentence() -> None:
    wrong: list[Any] = [lambda: None, lambda a, b, c: None, lambda a, b, *, c: None, lambda *, xk: None, "f", [3]]
    for callback in wrong:
        with pytest.raises(mctsvs.InputError, match=r"callback=.*\(optimizer, trial\)"):
            mctsvs.minimize(sphere, BOX, budget=3, callback=callback)


def test_names_of_options_are_strings() -> None:
    with pytest.raises(mctsvs.InputError, match=r"options=\{3: 4\} cannot be used: the name 3 must be a string"):
        mctsvs.minimize(sphere, BOX, budget=3, options={3: 4})  # type: ignore[dict-item]


@pytest.mark.parametrize("x0", [np.array(0.5), 3, "points", [3], [[1]], ["a", "b", "c"], [[0.5], 0.5, 0.5], [[]]])
def test_first_points_that_are_none_are_one_sentence(x0: Any) -> None:
    with pytest.raises(mctsvs.InputError):
        mctsvs.minimize(sphere, BOX, budget=3, x0=x0)
