"""`minimize` and `maximize`: what they return when something ends the run."""

from __future__ import annotations

import signal
from typing import Any

import numpy as np
import pytest

import mctsvs
from mctsvs.stopping import Status

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
    assert (result.status, result.success, result.nfev) == (Status.INTERRUPTED, False, 6)
    assert result.message == "6 of 30 evaluations, stopped by Ctrl-C"
    assert result.fun == min(sphere(x) for x in calls[:6])


def test_an_exception_carries_the_result_so_far() -> None:
    def f(x: Any, calls: list[int] = []) -> float:  # noqa: B006
        calls.append(0)
        return sphere(x) if len(calls) < 5 else 1 / 0

    with pytest.raises(ZeroDivisionError) as raised:
        mctsvs.minimize(f, BOX, budget=30, method="random")
    result = raised.value.result  # type: ignore[attr-defined]
    assert (result.status, result.nfev, len(result.trials)) == (Status.RAISED, 4, 5)
    assert result.fun == min(t.value for t in result.trials if t.value is not None)


def test_failures_in_a_row_end_the_run() -> None:
    calls: list[Any] = []

    def f(x: Any) -> float | None:
        calls.append(x)
        return sphere(x) if len(calls) <= 4 else None

    result = mctsvs.minimize(f, BOX, budget=50, method="random", max_failures=5)
    assert result.status is Status.FAILING
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
    assert (result.nfev, result.status, result.success) == (10, Status.STOPPED, True)
    assert "stopped by the callback" in result.message


def test_the_same_seed_is_the_same_run_whatever_ends_it() -> None:
    whole = mctsvs.minimize(sphere, BOX, budget=12, seed=3)
    part = mctsvs.minimize(sphere, BOX, budget=12, seed=3, callback=lambda opt, trial: trial.number == 5)
    assert np.array_equal([t.x for t in whole.trials[:6]], [t.x for t in part.trials])


def test_words() -> None:
    result = mctsvs.minimize(lambda x: (x[17] - 1) ** 2 + (x[203] + 2) ** 2, [(-5, 10)] * 300, budget=80, seed=0)
    assert str(result).startswith("Result(fun=")
    assert "x17 and x203 matter: 80 evaluations)" in str(result)
    assert result == result
    assert result != mctsvs.minimize(sphere, BOX, budget=3)


@pytest.mark.parametrize(("name", "hint"), [("workers", "Study"), ("x0", "enqueue"), ("n_calls", "budget=")])
def test_arguments_of_other_libraries_get_a_hint(name: str, hint: str) -> None:
    with pytest.raises(mctsvs.InputError, match=hint):
        mctsvs.minimize(sphere, BOX, budget=3, **{name: 2})  # type: ignore[arg-type]
