"""Finished runs on disk: what damage does, who may work in a folder, and how files are written."""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mctsvs.bench.algorithms import parse
from mctsvs.bench.problems import make
from mctsvs.bench.run_store import DamagedRunError, Job, RunStore, replacing
from mctsvs.utils.validation import InputError

JOB = Job("Hartmann6_20", parse("random"), 1, 8)


def finished(folder: Path, job: Job = JOB) -> RunStore:
    """A store that holds one run."""
    store = RunStore(folder)
    problem = make(job.problem)
    record = job.case.run(problem, budget=job.budget, seed=job.seed)
    store.save(job, record, problem.direction, problem.optimum)
    return store


def test_a_run_is_read_back_and_nothing_else_is_left(tmp_path: Path) -> None:
    store = finished(tmp_path)
    stored = store.load(JOB)
    assert len(stored.series("trace")) == 8
    assert stored.record["best"] == max(stored.series("values"))
    assert list(tmp_path.iterdir()) == [store.path(JOB)]


def test_flipped_bytes_are_damage(tmp_path: Path) -> None:
    store = finished(tmp_path)
    whole, stored = store.path(JOB).read_bytes(), store.load(JOB)
    for position in range(0, len(whole), 5):
        flipped = bytearray(whole)
        flipped[position] ^= 0xFF
        store.path(JOB).write_bytes(flipped)
        try:
            assert store.load(JOB) == stored  # a byte of the header that means nothing
        except DamagedRunError:
            continue
        assert position < 10


@pytest.mark.parametrize("length", [0, 5, 40, -1])
def test_a_cut_file_is_damage(length: int, tmp_path: Path) -> None:
    store = finished(tmp_path)
    store.path(JOB).write_bytes(store.path(JOB).read_bytes()[:length])
    with pytest.raises(DamagedRunError, match="damaged"):
        store.load(JOB)


def rewrite(path: Path, changes: Mapping[str, Any], record: Mapping[str, Any]) -> None:
    """Change what a stored run holds, and what its record holds."""
    content = json.loads(gzip.decompress(path.read_bytes()))
    content["record"] |= record
    path.write_bytes(gzip.compress(json.dumps(content | changes).encode()))


def test_a_series_may_have_the_name_of_a_field(tmp_path: Path) -> None:
    """Every record has the point recommended at its end; benchmarks also keep those of the way there."""
    store = finished(tmp_path)
    rewrite(store.path(JOB), {}, {"extra": {"recommended": [None] * 7 + [3.0]}})
    assert store.load(JOB).series("recommended")[-1] == 3.0
    assert len(store.load(JOB).series("values")) == 8
    assert store.load(JOB).series("true") == []


@pytest.mark.parametrize("content", ["[]", "{}", '"run"', "{", "[" * 100_000])
def test_what_is_no_run_is_damage(content: str, tmp_path: Path) -> None:
    store = finished(tmp_path)
    store.path(JOB).write_bytes(gzip.compress(content.encode()))
    with pytest.raises(DamagedRunError, match="damaged"):
        store.load(JOB)


@pytest.mark.parametrize(
    ("changes", "record"),
    [
        ({"record": {}}, {}),
        ({"record": []}, {}),
        ({"direction": "up"}, {}),
        ({"version": None}, {}),
        ({"optimum": "high"}, {}),
        ({}, {"trace": [1.0] * 7}),
        ({}, {"trace": None}),
        ({}, {"values": ["x"] * 8}),
        ({}, {"extra": []}),
        ({}, {"extra": {"regret": 1}}),
        ({}, {"iterations": [{}]}),
        ({}, {"iterations": [{"variables": "a", "evaluations": 8}]}),
        ({}, {"iterations": [{"variables": "1", "evaluations": ""}]}),
    ],
)
def test_a_run_of_another_shape_is_damage(changes: dict[str, Any], record: dict[str, Any], tmp_path: Path) -> None:
    store = finished(tmp_path)
    rewrite(store.path(JOB), changes, record)
    with pytest.raises(DamagedRunError, match="damaged"):
        store.load(JOB)


def test_a_later_format_is_not_damage(tmp_path: Path) -> None:
    store = finished(tmp_path)
    rewrite(store.path(JOB), {"format": 2}, {})
    with pytest.raises(InputError, match="another version"):
        store.sound(JOB)
    assert JOB in store


def test_damage_is_set_aside_in_one_line(tmp_path: Path) -> None:
    store, said = finished(tmp_path), list[str]()
    store.notify = said.append
    assert store.sound(JOB) is not None
    path = store.path(JOB)
    path.write_bytes(b"half")
    assert store.sound(JOB) is None
    assert JOB not in store
    assert path.with_name(f"{path.name}.damaged").read_bytes() == b"half"
    (line,) = said
    assert f"{path.name}' is damaged" in line
    assert store.sound(JOB) is None  # not there: nothing to say
    assert len(said) == 1


def test_a_lock_is_exclusive_from_beginning_to_end(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    store = RunStore(tmp_path)
    with (tmp_path / ".lock").open("ab") as other:
        with store.locked():
            with store.locked():  # its own lock is no obstacle
                pass
            with pytest.raises(BlockingIOError):
                fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_orphaned_workers_hold_the_folder_until_they_end(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    context, store = multiprocessing.get_context("fork"), RunStore(tmp_path)
    done = context.Event()
    with store.locked():
        worker = context.Process(target=done.wait)
        worker.start()
    with (tmp_path / ".lock").open("ab") as other:
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        done.set()
        worker.join()
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_what_killed_processes_left_is_deleted_by_the_next_one(tmp_path: Path) -> None:
    store = finished(tmp_path)
    (tmp_path / f"{store.path(JOB).name}.1.partial").write_bytes(b"half")
    with store.locked():
        assert {path.name for path in tmp_path.iterdir()} == {".lock", store.path(JOB).name}


def test_a_folder_that_cannot_be_locked_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / ".lock").mkdir()
    with pytest.raises(InputError, match=r"cannot write .*lock"), RunStore(tmp_path).locked():
        pass


@contextmanager
def as_nobody() -> Iterator[None]:
    """Without the rights of root, which may write everywhere; others stay who they are."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def test_a_folder_without_permission_is_one_sentence(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir(mode=0o500)
    store = RunStore(runs)
    with as_nobody(), pytest.raises(InputError, match=r"cannot write .*Permission"), store.locked():
        pass


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("old")
    with pytest.raises(UnicodeError), replacing(path) as partial:
        partial.write_text("n" * 100_000 + "\ud800", encoding="utf-8")
    assert path.read_text() == "old"
    with replacing(path) as partial, replacing(path.with_suffix(".parquet")) as other:
        assert str(os.getpid()) in partial.name
        assert partial != other  # each process and each table has its own
        partial.write_text("new")
        other.write_text("new")
    assert {found.name: found.read_text() for found in tmp_path.iterdir()} == {"a.csv": "new", "a.parquet": "new"}


def test_a_name_that_is_taken_by_a_folder_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.mkdir()
    with pytest.raises(InputError, match=r"cannot write .*a\.csv"), replacing(path) as partial:
        partial.write_text("new")
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(InputError, match="cannot write"), replacing(tmp_path / "no" / "a.csv") as partial:
        partial.write_text("new")
