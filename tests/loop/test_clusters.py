"""Dask and Ray with real worker processes, one of which is killed during the run."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mctsvs import InputError, Study, StudyError, Trial
from mctsvs.integrations.clusters import RayExecutor, connect_dask, start_ray
from mctsvs.loop import scheduler
from mctsvs.utils.validation import Array

BOX = [(0.0, 1.0)] * 12


def objective(x: Array) -> float:
    return float(((x[:3] - 0.3) ** 2).sum())


def unrepeatable(x: Array) -> float:
    return float(time.time_ns() % 10**12)


def fatal_once(folder: Path) -> Callable[[Array], float]:
    """The process that evaluates the sixth point is killed, the first time."""

    def f(x: Array) -> float:
        for i in range(6):
            try:
                os.close(os.open(folder / f"begun-{i}", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            if i == 5:
                os.kill(os.getpid(), signal.SIGKILL)
            break
        time.sleep(0.01)
        return objective(x)

    return f


def check(folder: Path, executor: Any) -> None:
    """Both modes complete their exact budget, and batches give the run that one worker's death does not change."""
    with Study(folder / "a.db", BOX, method="mcts-vs-rs", seed=3) as study:
        study.optimize(fatal_once(folder), 30, executor=executor, asynchronous=True)
        assert (folder / "begun-5").exists()
        assert (study.evaluated, len(study.trials), study.pending) == (30, 30, [])
        assert [t.value for t in study.trials] == [objective(t.x) for t in study.trials]
    other = folder / "other"
    other.mkdir()
    with (
        Study(folder / "b.db", BOX, method="mcts-vs-rs", seed=3) as study,
        Study(folder / "c.db", BOX, method="mcts-vs-rs", seed=3) as here,
    ):
        study.optimize(fatal_once(other), 20, executor=executor, workers=2)
        here.optimize(objective, 20, workers=2)
        assert (other / "begun-5").exists()
        assert [t.unit.tobytes() for t in study.trials] == [t.unit.tobytes() for t in here.trials]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")  # Dask's own
def test_dask(tmp_path: Path) -> None:
    if "CI" not in os.environ:
        pytest.importorskip("distributed")
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        client, executor = connect_dask(cluster.scheduler_address)
        try:
            check(tmp_path, executor)
            client.wait_for_workers(2)
            with Study(tmp_path / "d.db", BOX, method="mcts-vs-rs") as study:
                study.optimize(objective, 3, executor=executor)  # it knows how many workers there are
                assert len({event.call for event in study._session.journal.events() if event.kind == "ask"}) == 2
            with Study(tmp_path / "e.db", BOX, method="mcts-vs-rs") as study:
                study.enqueue([[0.5] * 12] * 4)
                study.optimize(unrepeatable, 4, executor=client.get_executor(), workers=4)
                assert len({t.value for t in study.trials}) == 4, "Dask must not take equal points for one"
        finally:
            client.close()
    with pytest.raises(InputError, match="cannot reach the Dask scheduler"):
        connect_dask("nonsense://nowhere")


def deadly(x: Array) -> float:
    if x[0] < 0.3:
        os._exit(3)
    return objective(x)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")  # Dask's own
def test_a_point_that_kills_dasks_workers_fails_and_a_cluster_without_workers_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "CI" not in os.environ:
        pytest.importorskip("distributed")
    import dask
    from distributed import LocalCluster

    monkeypatch.setattr(scheduler, "DEAD", 3.0)
    ended: list[str] = []
    while len(ended) < 30:  # Dask may give up restarting workers: the run ends, and goes on with another cluster
        with (
            dask.config.set({"distributed.scheduler.allowed-failures": 0}),
            LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
            Study(tmp_path / "s.db", BOX, method="random", seed=3) as study,
        ):
            try:
                study.optimize(deadly, 8, executor=cluster.get_client().get_executor())
                break
            except StudyError as error:
                ended.append(str(error))
    assert len(ended) < 30
    assert all("no workers for 3 s" in sentence for sentence in ended)
    with (
        Study(tmp_path / "s.db") as study,
        LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
    ):
        assert [t.failed for t in study.trials] == [t.x[0] < 0.3 for t in study.trials]
        assert all(t.message.startswith("its worker died, 3 times") for t in study.trials if t.failed)
        assert any(t.failed for t in study.trials)

        def leave(study: Study, trial: Trial) -> None:
            if study.evaluated == 12:
                cluster.scale(0)

        with pytest.raises(StudyError, match="the cluster has had no workers for 3 s: nothing is lost"):
            study.optimize(slow, 100, executor=cluster.get_client().get_executor(), callback=leave)
        assert 12 <= study.evaluated < 100


def slow(x: Array) -> float:
    time.sleep(0.05)
    return objective(x)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Ray's own, of many kinds
def test_ray(tmp_path: Path) -> None:
    if "CI" not in os.environ:
        pytest.importorskip("ray")
    import ray

    with pytest.raises(InputError, match=r"ray\.init"):
        RayExecutor()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        executor = start_ray()
        assert executor._max_workers == 2
        check(tmp_path, executor)
        assert RayExecutor(num_cpus=2)._max_workers == 1
        with (
            Study(tmp_path / "d.db", BOX) as study,
            pytest.raises(StudyError, match="must be importable there"),
        ):
            study.optimize(Unsendable(), 5, executor=executor)
    finally:
        ray.shutdown()


class Unsendable:
    def __call__(self, x: Array) -> float:
        return 0.0

    def __reduce__(self) -> str:
        raise TypeError("it stays here")
