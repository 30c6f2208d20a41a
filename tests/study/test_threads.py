"""One study, many threads; and many writers, of whom one is let in."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mctsvs import InputError, Study, StudyError
from mctsvs.loop.evaluation import Evaluation

BOX = [(0.0, 1.0)] * 6
THREADS, TELLS = 8, 2000


def together(work: Callable[[int], Any], count: int = THREADS) -> list[Any]:
    """What `work(i)` returned or raised, in threads that begin at once."""
    barrier = threading.Barrier(count)
    found: list[Any] = [None] * count

    def one(i: int) -> None:
        barrier.wait()
        try:
            found[i] = work(i)
        except BaseException as error:
            found[i] = error

    threads = [threading.Thread(target=one, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@pytest.mark.parametrize("method", ["mcts-vs-rs", "auto"])
def test_many_threads_ask_and_tell_and_the_file_is_what_was_told(method: str, tmp_path: Path) -> None:
    tells = TELLS if method == "mcts-vs-rs" else 160
    path = tmp_path / "s.db"
    told: dict[int, float | None] = {}
    lock = threading.Lock()
    with Study(path, BOX, method=method, seed=0) as study:

        def work(i: int) -> None:
            for k in range(tells // THREADS):
                (trial,) = study.ask()
                value = None if k % 17 == 5 else float(trial.x[0] + i)
                if k % 3 == 1:
                    study._session.keep(trial, Evaluation(math.nan if value is None else value, "", 0.0))
                if k % 50 == 7:
                    study.enqueue([[0.5] * 6])
                    study.set_user_attr(f"thread {i}", k)
                    assert study.evaluated <= len(study.trials)
                    assert len(study.pending) <= THREADS
                study.tell(trial, value, f"thread {i}")
                with lock:
                    told[trial.number] = value

        assert together(work) == [None] * THREADS
        assert study.evaluated == len(told) == tells // THREADS * THREADS
    for readonly in (True, False):
        with Study(path, readonly=readonly) as study:
            stored = {t.number: None if t.failed else t.value for t in study.trials}
            assert stored == told
            assert study._session.early == {}


def test_a_trial_is_told_once_however_many_try(tmp_path: Path) -> None:
    with Study(tmp_path / "s.db", BOX, method="random") as study:
        trials = study.ask(20)
        found = together(lambda i: [_try(study, trial, float(i)) for trial in trials])
        for k, trial in enumerate(study.trials):
            assert sum(answers[k] for answers in found) == 1
            assert trial.value in range(THREADS)
    with Study(tmp_path / "s.db") as study:
        assert study.evaluated == 20


def _try(study: Study, trial: Any, value: float) -> bool:
    try:
        study.tell(trial, value)
    except InputError as error:
        return "told already" not in str(error)
    return True


def test_of_many_threads_that_open_a_study_one_gets_it(tmp_path: Path) -> None:
    for k in range(25):
        path = tmp_path / f"{k}.db"
        found = together(lambda i, path=path: Study(path, BOX, method="random"))  # type: ignore[misc]
        opened = [study for study in found if isinstance(study, Study)]
        refused = [str(error) for error in found if isinstance(error, StudyError)]
        assert (len(opened), len(refused)) == (1, THREADS - 1), found
        assert all("already" in sentence for sentence in refused)
        opened[0].close()
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(f"{k}.db" for k in range(25))


def test_a_writer_is_found_behind_a_symbolic_link(tmp_path: Path) -> None:
    path, alias = tmp_path / "s.db", tmp_path / "alias.db"
    Study(path, BOX, method="random").close()
    alias.symlink_to(path)
    with Study(alias, readonly=True), Study(path) as study:
        (refused,) = together(lambda i: Study(alias), 1)
        assert "already open" in str(refused)
        code = "import sys; from mctsvs import Study; Study(sys.argv[1])"
        said = subprocess.run([sys.executable, "-c", code, str(alias)], capture_output=True, text=True)
        assert f"process {os.getpid()} on" in said.stderr
        study.ask()


def test_without_its_lock_file_a_second_writer_is_noticed_by_the_first(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with Study(path, BOX, method="random") as study:
        study.ask()
        path.with_name("s.db.lock").unlink()
        (refused,) = together(lambda i: Study(path), 1)
        assert "already open" in str(refused)
        code = "import sys; from mctsvs import Study; Study(sys.argv[1]).ask()"
        assert subprocess.run([sys.executable, "-c", code, str(path)]).returncode == 0
        with pytest.raises(StudyError, match="another process has meanwhile written to the study"):
            study.ask()
    with Study(path) as study:
        assert len(study.pending) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_forked_while_a_thread_changes_the_study_can_still_look_at_it(tmp_path: Path) -> None:
    with Study(tmp_path / "s.db", BOX, method="random") as study:
        study.tell(study.ask()[0], 1.0)
        held, release = threading.Event(), threading.Event()

        def hold() -> None:
            with study._session.mutex:
                held.set()
                release.wait(60)

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait(60)
        process = os.fork()
        if process == 0:
            signal.alarm(20)
            os._exit(0 if (study.evaluated, len(study.space), study.best.value) == (1, 6, 1.0) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
        release.set()
        thread.join()


@pytest.mark.parametrize("crew", [{}, {"workers": 2}, {"workers": 2, "asynchronous": True}])
def test_a_thread_asks_and_tells_beside_a_run(crew: dict[str, Any], tmp_path: Path) -> None:
    """Each evaluates its own trials, those that waited when the run began too; together they keep to the budget."""
    begun = threading.Event()
    told: list[int] = []

    def beside() -> None:
        trials = study.ask(2)
        begun.set()
        while study.evaluated < 60:
            for trial in trials:
                study.tell(trial, -1.0)
                told.append(trial.number)
            trials = study.ask(2)
            time.sleep(0.01)

    with Study(tmp_path / "s.db", BOX, seed=0, method="random") as study:
        waiting = study.ask()[0].number
        thread = threading.Thread(target=beside)
        thread.start()
        begun.wait(60)
        study.optimize(lambda x: (time.sleep(0.005), float(x[0]))[1], 60, **crew)  # type: ignore[func-returns-value]
        thread.join()
        assert study.trials[waiting].value == study.trials[waiting].x[0], "this thread's own is taken up"
        ours = [t for t in study.trials if t.value is not None and t.number not in told]
        assert told
        assert len(ours) > 2
        assert all(t.value == t.x[0] for t in ours)
        assert 60 <= study.evaluated <= 60 + 8, "what was under way may come on top"
    with Study(tmp_path / "s.db") as study:
        left = len(study.pending)
        study.optimize(lambda x: 0.0, study.evaluated + left)
        assert study.pending == [], "trials of a process that has ended are taken up"


def test_the_same_cell_again_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    for budget in (5, 8):
        study = Study(path, BOX, seed=0, method="random")
        study.optimize(lambda x: float(x[0]), budget)
    assert study.evaluated == 8
    newer = Study(path)
    with pytest.raises(StudyError, match="was opened again in this thread: use the newer object"):
        study.ask()
    study.close()
    del study
    assert newer.ask()[0].number == 8


def test_a_run_keeps_its_study(tmp_path: Path) -> None:
    refused: list[str] = []

    def callback(study: Study, trial: Any) -> None:
        for again in (lambda: Study(study.path), lambda: study.optimize(lambda x: 0.0, 9)):
            with pytest.raises(StudyError) as caught:
                again()
            refused.append(str(caught.value))

    with Study(tmp_path / "s.db", BOX, method="random") as study:
        study.optimize(lambda x: 1.0, 1, callback=callback)
        assert "already open in this process" in refused[0]
        assert "is being optimised already" in refused[1]
        assert study.ask()[0].number == 1
