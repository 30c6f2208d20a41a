"""`minimize` with several objectives: what the function returns, and what comes back."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mctsvs
from mctsvs import FrontResult, InputError
from mctsvs.gp.pareto import hypervolume
from mctsvs.loop.stopping import StopStatus

BOX = [(0.0, 1.0)] * 4
TWO = ["minimize", "maximize"]


def trade(x: Any) -> tuple[float, float]:
    return float(x[0] + x[1] ** 2), float(np.sqrt(x[0]) - x[2] ** 2)


def run(f: Any = trade, budget: int = 25, **more: Any) -> FrontResult:
    result = mctsvs.minimize(f, BOX, budget, **{"directions": TWO, "method": "random", **more})
    assert isinstance(result, FrontResult)
    return result


def test_the_front_of_a_run() -> None:
    result = run()
    values = np.array([trade(trial.x) for trial in result.trials])
    front = [i for i, (a, b) in enumerate(values) if not ((values[:, 0] < a) & (values[:, 1] > b)).any()]
    assert sorted(trial.number for trial in result.front) == front
    assert np.allclose(result.front.values, [trade(x) for x in result.front.points])
    signs = np.array([-1.0, 1.0])
    assert result.hypervolume == pytest.approx(hypervolume(signs * values, signs * result.reference))
    assert result.knee in result.front.trials
    assert result.success
    assert result.message == "25 evaluations"
    assert repr(result).startswith(f"FrontResult({len(front)} points on the front, hypervolume ")


def test_the_default_method_beats_random_search() -> None:
    reference = [2.0, -1.0]
    assert run(method="auto", reference=reference).hypervolume > run(reference=reference).hypervolume


@pytest.mark.parametrize("returned", [tuple, list, np.array])
def test_what_a_function_may_return(returned: Any) -> None:
    assert run(lambda x: returned(trade(x))).front.values.tolist() == run().front.values.tolist()


def test_names() -> None:
    def f(x: Any) -> dict[str, float]:
        cost, lift = trade(x)
        return {"lift": lift, "cost": cost}

    result = run(f, directions=None, objectives={"cost": "minimize", "lift": "maximize"})
    assert result.front.values.tolist() == run().front.values.tolist()
    assert [*result.front.table()[0]] == ["number", "cost", "lift", "x0", "x1", "x2", "x3"]
    assert result.about["direction"] == "minimize cost, maximize lift"


def test_measured_constraints() -> None:
    result = run(lambda x: (trade(x), {"edge": 0.5 - x[0]}))
    assert all(trial.x[0] >= 0.5 for trial in result.front)
    nowhere = run(lambda x: (trade(x), {"edge": 1.0}))
    assert not nowhere.success
    assert nowhere.message == "25 evaluations, none of them feasible"
    assert len(nowhere.front) == 0


@pytest.mark.parametrize("more", [{"workers": 2}, {"workers": 2, "asynchronous": True}, {"timeout": 60.0}])
def test_workers(more: dict[str, Any]) -> None:
    result = run(budget=6, **more)
    assert result.nfev == 6
    assert np.allclose(result.front.values, [trade(x) for x in result.front.points])


def test_it_has_no_best_point() -> None:
    result = run()
    for name in ("x", "fun", "best", "recommendation"):
        with pytest.raises(InputError, match=r"front .* knee"):
            getattr(result, name)
    assert {"front", "hypervolume", "knee"} < dict(result).keys()
    assert not {"x", "fun", "best"} & dict(result).keys()
    with pytest.raises(InputError, match="pictures show one objective"):
        result.report("report.html")


def test_it_can_be_pickled_and_shown() -> None:
    result = run()
    again = pickle.loads(pickle.dumps(result))
    assert again.front.values.tolist() == result.front.values.tolist()
    assert again.variables == result.variables
    assert "on the front" in result._repr_html_()


@pytest.mark.needs("pandas")
def test_tables() -> None:
    frame = run().to_dataframe()
    assert [*frame.columns[:4]] == ["number", "objective_f1", "objective_f2", "source"]
    assert frame["objective_f1"].notna().all()


def test_failures_and_missing_values() -> None:
    calls: list[int] = []

    def f(x: Any) -> Any:
        calls.append(0)
        return [trade(x), None, (1.0, math.nan), (math.nan, math.inf), trade(x)][len(calls) % 5]

    result = run(f, budget=10)
    assert sum(trial.failed for trial in result.trials) == 6
    assert "the function returned (1.0, nan)" in [trial.message for trial in result.trials]
    with pytest.raises(InputError, match="all 3 evaluations failed, the last with: the function returned None"):
        run(lambda x: None, budget=3)


@pytest.mark.parametrize(
    ("returned", "sentence"),
    [
        ((1.0, 2.0, 3.0), "has 3 values, and there are 2 objectives"),
        (1.0, "1.0 is one value, and there are 2 objectives"),
        (("a", 1.0), "the value 'a' of f1 is not a number"),
        ({"a": 1.0, "b": 1.0}, "the objectives have no names"),
    ],
)
@pytest.mark.parametrize("workers", [None, 1])
def test_what_a_function_may_not_return(returned: Any, sentence: str, workers: int | None) -> None:
    with pytest.raises(InputError, match=sentence):
        run(lambda x: returned, workers=workers)


@pytest.mark.parametrize("workers", [None, 1])
@pytest.mark.parametrize(
    ("returned", "written"),
    [
        ((1.0, 2.0), "directions=['minimize', 'minimize'])"),
        ([1.0, 2.0, 3.0], "directions=['minimize', 'minimize', 'minimize'])"),
        ({"cost": 1.0, "lift": 2.0}, "objectives={'cost': 'minimize', 'lift': 'minimize'})"),
    ],
)
def test_several_values_of_one_objective_say_what_to_write(returned: Any, written: str, workers: int | None) -> None:
    with pytest.raises(InputError) as raised:
        mctsvs.minimize(lambda x: returned, BOX, 9, method="random", workers=workers)
    assert str(raised.value).endswith(f"for several objectives write minimize(f, space, budget, {written}")


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"target": 1.0}, "target=1.0 cannot be used with several objectives"),
        ({"noise": 0.5}, "noise=0.5 cannot be used with several objectives"),
        ({"method": "bo"}, "takes one objective only"),
    ],
)
def test_arguments_that_cannot_be_used(more: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        run(**more)


def test_a_study_goes_on_as_the_run_without_one(tmp_path: Path) -> None:
    whole = run(method="auto", seed=4)
    run(method="auto", seed=4, budget=11, study=tmp_path / "a.db")
    result = run(method="auto", seed=4, study=tmp_path / "a.db")
    assert result.nfev == 14
    assert result.front.values.tolist() == whole.front.values.tolist()


def test_maximize_says_what_to_write() -> None:
    with pytest.raises(InputError, match=r"write minimize|are minimize\(f, space, budget, directions="):
        mctsvs.maximize(trade, BOX, 9, directions=TWO)  # type: ignore[arg-type]


def test_patience_counts_points_that_join_no_front() -> None:
    result = run(lambda x: (1.0, 1.0), budget=40, patience=12)
    assert (result.status, result.nfev) == (StopStatus.PATIENCE, 13)


def test_callbacks_and_progress(capsys: pytest.CaptureFixture[str]) -> None:
    seen = []
    run(budget=5, callback=[lambda opt, trial: seen.append(len(opt.front)), lambda x: None], progress=True)
    assert len(seen) == 5
    assert seen[0] == 1


def test_points_to_begin_with() -> None:
    result = run(x0=[[0.25, 0.0, 0.0, 0.5]])
    assert trade([0.25, 0.0, 0.0, 0.5]) in [tuple(row) for row in result.front.values]
