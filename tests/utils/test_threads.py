"""One BLAS thread inside, and an optimizer that threads may share."""

from __future__ import annotations

import os
import sys
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from mctsvs.optimizer import Optimizer
from mctsvs.utils.threads import one_blas_thread


def blas_threads() -> set[int]:
    import scipy.linalg  # noqa: F401

    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_the_limit_is_lifted_when_the_last_one_leaves() -> None:
    before = blas_threads()
    inside, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with one_blas_thread():
            inside.set()
            leave.wait()

    thread = threading.Thread(target=stay)
    with one_blas_thread():
        thread.start()
        inside.wait()
    assert blas_threads() == {1}
    leave.set()
    thread.join()
    assert blas_threads() == before


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_forked_inside_has_all_threads() -> None:
    before = blas_threads()
    with one_blas_thread():
        child = os.fork()
        if child == 0:
            os._exit(0 if blas_threads() == before else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("method", ["auto", "mcts-vs-bo", "turbo", "hesbo"])
def test_threads_share_an_optimizer(method: str) -> None:
    """Eight threads ask and tell; every trial is handed out once and keeps the value it was told."""
    opt = Optimizer([(0.0, 1.0)] * 10, method=method, seed=0)
    told: dict[int, float] = {}
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(12):
                (trial,) = opt.ask()
                told[trial.number] = float(np.sum(trial.x))
                opt.tell(trial, told[trial.number])
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert [trial.number for trial in opt.trials] == list(range(96))
    assert {trial.number: trial.value for trial in opt.trials} == told
