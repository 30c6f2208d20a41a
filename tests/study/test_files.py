"""Files that go, stay behind, belong to somebody else, or have no room."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mctsvs import InputError, Study, StudyError
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


@pytest.mark.parametrize("accident", ["deleted", "renamed", "cut off", "replaced", "log deleted", "folder renamed"])
@pytest.mark.parametrize("workers", [None, 2])
def test_a_file_that_goes_under_the_run_is_noticed_and_everything_saved(
    accident: str, workers: int | None, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "run.db"
    study = Study(path, BOX, seed=1, method="mcts-vs-rs")
    study.enqueue([[0.5] * 5])
    study.optimize(objective, 50)
    Study(folder / "new.db", BOX).close()
    accidents: dict[str, Callable[[], object]] = {
        "deleted": path.unlink,
        "renamed": lambda: path.rename(folder / "elsewhere.db"),
        "cut off": lambda: os.truncate(path, 4096),
        "replaced": lambda: (folder / "new.db").replace(path),
        "log deleted": Path(f"{path}-wal").unlink,
        "folder renamed": lambda: folder.rename(tmp_path / "other"),
    }
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
