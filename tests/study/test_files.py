"""Files that go, stay behind, belong to somebody else, or have no room."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mctsvs import InputError, Study, StudyError
from mctsvs.cli import main
from mctsvs.study import files
from mctsvs.study.replay import salvage
from mctsvs.utils.validation import Array

BOX = [(0.0, 1.0)] * 5


def objective(x: Array) -> float:
    return float(x[0] + x[1])


def picture(study: Study) -> list[tuple[Any, ...]]:
    return [
        (t.number, t.unit.tobytes(), t.variables.tolist(), repr(t.value), t.source, t.message) for t in study.trials
    ]


KILLED = """
import os, sys
from mctsvs import Study
def stop(study, trial):
    if study.evaluated == 30: os.kill(os.getpid(), 9)
Study(sys.argv[1], [(0.0, 1.0)] * 5, seed=1, method="mcts-vs-rs").optimize(lambda x: float(x[0]), 60, callback=stop)
"""


def test_the_log_of_a_file_that_was_deleted_is_not_replayed_into_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    subprocess.run([sys.executable, "-c", KILLED, str(path)])
    assert path.with_name("run.db-wal").exists()
    with Study(path, readonly=True) as study:
        assert study.evaluated == 30
        log = {ending: Path(f"{path}{ending}").read_bytes() for ending in ("-wal", "-shm")}
    subprocess.run([sys.executable, "-c", KILLED.replace("== 30", "== 50"), str(path)])
    log = {ending: Path(f"{path}{ending}").read_bytes() for ending in ("-wal", "-shm")}
    other = tmp_path / "other.db"
    Study(other, BOX).close()
    path.unlink()
    for begin in (lambda: Study(path, BOX, seed=2), lambda: salvage(other, path)):
        with pytest.raises(StudyError, match=r"left over from another file called .run\.db.") as caught:
            begin()
        assert "\n" not in str(caught.value)
        assert not path.exists()
        assert {ending: Path(f"{path}{ending}").read_bytes() for ending in log} == log, "nothing of it was touched"
    for ending in log:
        Path(f"{path}{ending}").unlink()
    with Study(path, BOX, seed=2) as study:
        assert study.trials == []


@pytest.mark.parametrize("ending", files.HELPERS)
@pytest.mark.parametrize("kind", ["link", "file"])
def test_what_lies_where_sqlites_files_will_be_is_left_alone(ending: str, kind: str, tmp_path: Path) -> None:
    path, victim = tmp_path / "s.db", tmp_path / "letter.txt"
    victim.write_text("dear reader")
    at = tmp_path / f"s.db{ending}"
    (at.symlink_to if kind == "link" else lambda source: shutil.copy(source, at))(victim)
    with pytest.raises(StudyError, match="left over"):
        Study(path, BOX)
    assert not path.exists()
    assert at.read_text() == victim.read_text() == "dear reader"


ACCIDENTS = (
    "deleted",
    "renamed",
    "cut off",
    "replaced",
    "overwritten",
    "log cut off",
    "log overwritten",
    "folder renamed",
)


@pytest.mark.parametrize("accident", ACCIDENTS)
@pytest.mark.parametrize("workers", [None, 2])
def test_a_file_that_goes_under_the_run_is_noticed_and_everything_saved(
    accident: str, workers: int | None, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "run.db"
    study = Study(path, BOX, seed=1, method="mcts-vs-rs")
    study.set_user_attr("machine", "node7")
    study.enqueue([[0.5] * 5])
    study.optimize(objective, 50)
    with Study(folder / "new.db", BOX, method="random") as other:
        other.optimize(objective, 80)
    foreign = (folder / "new.db").read_bytes()
    accidents: dict[str, Callable[[], object]] = {
        "deleted": path.unlink,
        "renamed": lambda: path.rename(folder / "elsewhere.db"),
        "cut off": lambda: os.truncate(path, 4096),
        "replaced": lambda: (folder / "new.db").replace(path),
        "overwritten": lambda: path.write_bytes(foreign),
        "log cut off": lambda: os.truncate(f"{path}-wal", 0),
        "log overwritten": lambda: Path(f"{path}-wal").write_bytes(foreign),
        "folder renamed": lambda: folder.rename(tmp_path / "other"),
    }
    if "log" not in accident:  # as long as SQLite's log holds everything, nothing is lost
        study._session.journal.connection.execute("PRAGMA wal_checkpoint")
    accidents[accident]()
    with pytest.raises(StudyError, match="was lost during the run") as caught:
        study.optimize(objective, 200, workers=workers)
    said = str(caught.value)
    assert "\n" not in said
    evaluated = study.evaluated
    assert 50 <= evaluated < 200
    for change in (study.ask, lambda: study.tell(0, 1.0), lambda: study.set_user_attr("a", 1)):
        with pytest.raises(StudyError, match="was lost during the run"):
            change()
    study.close()
    saved = Path(said.partition("saved in '")[2].partition("'")[0])
    try:
        with Study(saved, readonly=True) as copy:
            assert picture(copy)[:50] == picture(study)[:50]
            assert copy.user_attrs == {"machine": "node7"}
            assert copy.evaluated + len(copy.pending) >= evaluated
        with Study(saved) as copy, Study(tmp_path / "undisturbed.db", BOX, seed=1, method="mcts-vs-rs") as whole:
            whole.enqueue([[0.5] * 5])
            for s in (copy, whole):
                s.optimize(objective, 50)
            if workers is None:
                for s in (copy, whole):
                    s.optimize(objective, 90)
                assert picture(copy) == picture(whole), "the run goes on as it would have"
    finally:
        if saved.parent != folder:
            saved.unlink()


@pytest.mark.parametrize("accident", ["overwritten", "log cut off"])
def test_what_happens_to_the_file_after_the_last_trial_is_noticed_at_the_end(accident: str, tmp_path: Path) -> None:
    path, other = tmp_path / "run.db", tmp_path / "other.db"
    with Study(other, BOX, seed=9, method="random") as study:
        study.optimize(lambda x: 5.0, 60)
    study = Study(path, BOX, seed=1, method="mcts-vs-rs")
    study.optimize(objective, 20)
    study._session.journal.connection.execute("PRAGMA wal_checkpoint")
    study.optimize(objective, 21)
    path.write_bytes(other.read_bytes()) if accident == "overwritten" else os.truncate(f"{path}-wal", 0)
    with pytest.raises(StudyError, match=r"was lost during the run .* all 21 trials are saved"):
        study.close()
    with Study(tmp_path / "run-saved-1.db") as saved:
        assert picture(saved) == picture(study)
    study.close()
    if accident == "overwritten":
        assert path.read_bytes() == other.read_bytes(), "what is there now is somebody's, and left alone"
    with Study(tmp_path / "run-saved-1.db") as saved:
        saved.optimize(objective, 25)


def test_a_log_that_is_deleted_costs_nothing(tmp_path: Path) -> None:
    with Study(tmp_path / "s.db", BOX, seed=1, method="mcts-vs-rs") as study:
        study.optimize(objective, 50)
        Path(f"{study.path}-wal").unlink()
        study.optimize(objective, 80)
        study.export(tmp_path / "s.csv")
        assert Path(f"{study.path}-wal").exists()
        before = picture(study)
    with Study(tmp_path / "s.db", readonly=True) as study:
        assert picture(study) == before
        assert study.evaluated == 80


linux = pytest.mark.skipif(sys.platform != "linux", reason="needs locks of open files")
SHOW = "import sys, mctsvs; print(mctsvs.Study(sys.argv[1], readonly=True).evaluated)"
WRITE = "import sys, mctsvs; mctsvs.Study(sys.argv[1]).ask()"


@linux
@pytest.mark.parametrize("workers", [None, 2])
def test_a_copy_of_the_folder_drops_no_lock(workers: int | None, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "run.db"
    said = []

    def stranger(code: str) -> str:
        done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
        return done.stdout + done.stderr

    def callback(study: Study, trial: Any) -> None:
        if trial.number in (5, 15):
            shutil.copytree(folder, tmp_path / f"copy-{trial.number}")
            said.append(stranger(WRITE))
            said.append(stranger(SHOW))

    with Study(path, BOX, seed=1, method="mcts-vs-rs") as study:
        study.optimize(objective, 40, workers=workers, callback=callback)
        after = picture(study)
    assert ["is being written to by process" in words for words in said] == [True, False, True, False]
    assert said[1].strip().isdigit()
    assert said[3].strip().isdigit()
    assert sorted(file.name for file in folder.iterdir()) == ["run.db"]
    with Study(path, readonly=True) as study:
        assert picture(study) == after


@linux
def test_a_child_that_outlives_its_parent_holds_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    code = (
        "import os, sys, time, mctsvs\n"
        "study = mctsvs.Study(sys.argv[1], [(0, 1)] * 5); study.ask()\n"
        "if os.fork() == 0: print('child', flush=True); time.sleep(60)\n"
        "time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "child\n"
        with pytest.raises(StudyError, match=f"is being written to by process {process.pid}"):
            Study(path)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        with Study(path) as study:
            assert len(study.trials) == 1
        os.killpg(process.pid, 9)


@pytest.mark.parametrize("name", ["", "my laptop", "\x1b[2J"])
def test_any_name_of_a_machine_will_do(name: str, tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    code = (
        f"import os, socket, sys, mctsvs; socket.gethostname = lambda: {name!r}\n"
        "study = mctsvs.Study(sys.argv[1], [(0, 1)] * 5); study.ask(); print(flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(StudyError, match=f"by process {process.pid}") as caught:
            Study(path)
        assert str(caught.value).isprintable()
        assert "on :" not in str(caught.value)
        process.kill()
    with Study(path) as study:
        assert len(study.trials) == 1


def test_a_backup_is_a_study_that_goes_on(tmp_path: Path) -> None:
    path, copies = tmp_path / "run.db", [tmp_path / "5.db", tmp_path / "25.db"]

    def callback(study: Study, trial: Any) -> None:
        if trial.number in (5, 25):
            study.backup(tmp_path / f"{trial.number}.db")

    with Study(path, BOX, seed=1, method="mcts-vs-rs") as study:
        study.set_user_attr("machine", "node7")
        study.optimize(objective, 40, callback=callback)
        whole = picture(study)
        with pytest.raises(StudyError, match="exists already"):
            study.backup(copies[0])
        with pytest.raises(StudyError, match="No such file"):
            study.backup(tmp_path / "nowhere" / "copy.db")
        with pytest.raises(StudyError, match="exists already"):
            study.backup(path)
    with Study(path, readonly=True) as study:
        study.backup(tmp_path / "late.db")
    for copy, evaluated in (*zip(copies, (6, 26), strict=True), (tmp_path / "late.db", 40)):
        with Study(copy) as study:
            assert (study.evaluated, study.user_attrs) == (evaluated, {"machine": "node7"})
            study.optimize(objective, 40)
            assert picture(study) == whole


def test_no_output_replaces_a_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, table = tmp_path / "run.db", tmp_path / "run.csv"
    for own in (path, table):
        with Study(own, BOX, seed=0, method="mcts-vs-rs") as study:
            study.optimize(objective, 10)
            for write in (study.report, study.export):
                for target in (own, path, Path(f"{own}-wal"), Path(f"{own}.lock")):
                    with pytest.raises(InputError, match=r"is a study or another database|let it end in"):
                        write(target)
    result = tmp_path / "result.json"
    shutil.copy(path, result)
    for command in (
        ["report", str(path), "-o", str(path)],
        ["report", str(path), "-o", str(table)],
        ["export", str(path), str(table)],
        ["bench", "run", "Levy10_50", "--budget", "3", "--json", str(result)],
    ):
        assert main(command) == 2
        assert "is a study or another database: give another name" in capsys.readouterr().err
    for own in (path, table, result):
        with Study(own, readonly=True) as study:
            assert study.evaluated == 10


def test_a_file_called_new_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "run.db.new").write_text("mine")
    with Study(tmp_path / "run.db", BOX) as study:
        study.ask()
    assert (tmp_path / "run.db.new").read_text() == "mine"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["run.db", "run.db.new"]


def test_a_study_that_cannot_be_begun_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StudyError, match="the disk is full"):
        Study(tmp_path / "run.db", BOX)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="needs to mount a small disk")
def test_a_disk_that_is_really_full_is_called_full(tmp_path: Path) -> None:
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(tmp_path)]).returncode:
        pytest.skip("cannot mount")
    try:
        path = tmp_path / "run.db"
        with Study(path, [(0.0, 1.0)] * 100, method="mcts-vs-rs") as study:
            with pytest.raises(StudyError, match="the disk is full") as caught:
                study.optimize(objective, 2000)
            assert "\n" not in str(caught.value)
            done = study.evaluated
            assert done > 10
        with pytest.raises(StudyError, match="the disk is full"):
            Study(tmp_path / "second.db", [(0.0, 1.0)] * 5000)
        assert not list(tmp_path.glob("second*"))
        with Study(path, readonly=True) as study:
            assert study.evaluated == done
        for file in tmp_path.iterdir():
            file.unlink()
        subprocess.run([sys.executable, "-c", KILLED.replace("== 30", "== 5"), str(path)])
        done = 5
        Path(f"{path}-shm").unlink()  # of the log that stays behind, it is made again
        with (tmp_path / "fill").open("ab", buffering=0) as rest, contextlib.suppress(OSError):
            while True:
                rest.write(bytes(1024))
        for _ in range(2):
            with pytest.raises(StudyError, match="the disk is full"):
                Study(path)
            with Study(path, readonly=True) as study:
                assert study.evaluated == done
    finally:
        subprocess.run(["umount", str(tmp_path)])


@pytest.mark.parametrize(
    ("path", "words"), [(":memory:", "use mctsvs.Optimizer"), (BOX, "give its name first"), (None, "cannot be None")]
)
def test_what_is_no_file_is_one_sentence(
    path: Any, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=words):
        Study(path, BOX)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [3, None, "", ".", b"x.csv"])
def test_what_is_no_name_of_an_output_is_one_sentence(name: Any, tmp_path: Path) -> None:
    with Study(tmp_path / "run.db", BOX, method="random") as study:
        study.optimize(objective, 2)
        for write in (study.report, study.export, study.backup):
            with pytest.raises(InputError, match=r"cannot write to .*: give the name of a file"):
                write(name)
        with pytest.raises(InputError, match="cannot be called 3: its name must be a string"):
            study.set_user_attr(3, 4)  # type: ignore[arg-type]
        for points in (3, None):
            with pytest.raises(InputError, match=f"points {points} cannot be used: give a list"):
                study.enqueue(points)  # type: ignore[arg-type]
