"""The file itself: damage, formats, full disks, and texts that are not to be trusted."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from mctsvs import InputError, Study, StudyError
from mctsvs.study import codec, journal
from mctsvs.study.journal import Journal
from mctsvs.study.replay import salvage
from mctsvs.utils.formatting import printable

BOX = [(0.0, 1.0)] * 30


def picture(study: Study) -> list[tuple[Any, ...]]:
    return [
        (t.number, t.unit.tobytes(), t.variables.tolist(), repr(t.value), t.iteration, t.source, t.message)
        for t in study.trials
    ]


def objective(x: Any) -> float:
    return float(1.0 / (x[0] > 0.1) + x[1])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of 50 evaluations, some of which failed, enqueued points and one that waits."""
    path = tmp_path_factory.mktemp("whole") / "s.db"
    with Study(path, BOX, method="mcts-vs-rs", seed=0) as study:
        study.enqueue(np.full((2, 30), 0.25))
        study.optimize(objective, 50)
        study.ask()
    return path


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | arrays.arrays(
        st.sampled_from([np.dtype(d) for d in codec.DTYPES]), arrays.array_shapes(min_dims=0, max_dims=3, min_side=0)
    ),
    lambda inner: st.lists(inner) | st.dictionaries(st.text().filter(lambda key: key != "array"), inner),
    max_leaves=12,
)


def equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(equal(a[key], b[key]) for key in a)
    return type(a) is type(b) and repr(a) == repr(b)


@settings(max_examples=50)
@given(plain)
def test_plain_data_survives(value: Any) -> None:
    assert equal(codec.unpack(codec.pack(value)), value)


def test_what_is_no_plain_data_is_refused() -> None:
    for value in (print, object(), {1: 2}, np.array(["a"]), np.array([object()]), {"array": 1}, 1j):
        with pytest.raises(TypeError):
            codec.pack(value)


@given(st.binary(max_size=60))
def test_any_bytes_are_data_or_an_error(data: bytes) -> None:
    with contextlib.suppress(ValueError, KeyError, TypeError, OverflowError):
        codec.unpack(data)


@given(st.integers(1, 200), st.data())
def test_positions_survive(n: int, data: st.DataObject) -> None:
    some = data.draw(st.lists(st.integers(0, n - 1), unique=True, min_size=1))
    for positions in (np.array(some, dtype=np.intp), np.array(sorted(some), dtype=np.intp), np.arange(n)):
        packed = codec.pack_positions(positions, n)
        assert np.array_equal(codec.unpack_positions(packed, n), positions)
        assert len(packed) <= 1 + max(4 * len(positions), n // 8 + 1)


@pytest.mark.parametrize("kind", ["one byte", "many bytes", "cut off", "a page of zeros"])
def test_damage_is_a_sentence_or_does_not_matter(kind: str, whole: Path, tmp_path: Path) -> None:
    with Study(whole, readonly=True) as study:
        expected = picture(study)
    data = whole.read_bytes()
    rng = np.random.default_rng(len(kind))
    refused: list[str] = []
    for i in range(20):
        spoiled = bytearray(data)
        at = int(rng.integers(len(data)))
        if kind == "one byte":
            spoiled[at] ^= int(rng.integers(1, 256))
        elif kind == "many bytes":
            for place in rng.integers(len(data), size=20):
                spoiled[place] = int(rng.integers(256))
        elif kind == "cut off":
            del spoiled[at:]
        else:
            start = at - at % 4096
            spoiled[start : start + 4096] = bytes(4096)
        path = tmp_path / f"{i}.db"
        path.write_bytes(bytes(spoiled))
        for readonly in (True, False):
            try:
                with Study(path, readonly=readonly) as study:
                    assert picture(study) == expected
                    if not readonly:
                        study.ask()
            except StudyError as error:
                refused.append(str(error))
    assert refused
    assert all("\n" not in sentence and ".db'" in sentence for sentence in refused)


def test_every_event_is_covered_by_its_checksum(whole: Path, tmp_path: Path) -> None:
    """Changes that SQLite itself cannot notice."""
    for i, change in enumerate(
        (
            "UPDATE journal SET value = value + 1e-12 WHERE kind = 'tell' AND number = 7",
            "UPDATE journal SET text = 'fine' WHERE kind = 'tell' AND value IS NULL",
            "UPDATE journal SET iteration = 9 WHERE number = 3",
            "UPDATE journal SET proposal_id = 9 WHERE kind = 'ask' AND number = 7",
            "UPDATE journal SET details = '{}' WHERE kind = 'tell' AND number = 7",
            "UPDATE journal SET times = x'7b7d' WHERE kind = 'tell' AND number = 7",
            "UPDATE journal SET point = zeroblob(240) WHERE kind = 'ask' AND number = 5",
            "UPDATE journal SET variables = x'62' WHERE kind = 'ask' AND number = 20",
            "UPDATE journal SET kind = 'result' WHERE kind = 'tell' AND number = 9",
            "DELETE FROM journal WHERE seq = 30",
            "DELETE FROM journal WHERE seq = (SELECT max(seq) FROM journal)",
            "UPDATE journal SET seq = 1000 WHERE seq = 12",
            "DELETE FROM head",
            "DELETE FROM meta",
            "UPDATE meta SET data = zeroblob(50)",
            "UPDATE method_state SET data = zeroblob(500)",
            "UPDATE method_state SET seq = seq - 1",
            "DROP TABLE method_state",
            "ALTER TABLE journal RENAME COLUMN value TO worth",
        )
    ):
        path = tmp_path / f"{i}.db"
        shutil.copy(whole, path)
        connection = sqlite3.connect(path)
        connection.execute(change)
        connection.commit()
        connection.close()
        for readonly in (True, False):
            with pytest.raises(StudyError, match="damaged"):
                Study(path, readonly=readonly)


def test_what_is_intact_can_be_saved(whole: Path, tmp_path: Path) -> None:
    with Study(whole, readonly=True) as study:
        expected = picture(study)
    path, saved = tmp_path / "damaged.db", tmp_path / "saved.db"
    shutil.copy(whole, path)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE journal SET value = 0 WHERE kind = 'tell' AND number = 20")
    connection.commit()
    connection.close()
    assert salvage(path, saved) == 20
    with Study(saved) as study:
        assert picture(study)[:20] == expected[:20]
        study.optimize(objective, 50)
        assert picture(study)[:50] == expected[:50], "the run takes another course"
    with pytest.raises(StudyError, match="exists already"):
        salvage(path, saved)


def test_other_files_are_refused(tmp_path: Path) -> None:
    text = tmp_path / "text.db"
    text.write_text("number,value\n" * 100)
    empty = tmp_path / "empty.db"
    empty.touch()
    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE trials (id)")
    connection.close()
    for path, words in ((text, "not a study"), (empty, "not a study"), (other, "of another program")):
        before = path.read_bytes()
        for readonly in (True, False):
            with pytest.raises(StudyError, match=words):
                Study(path, BOX if not readonly else None, readonly=readonly)
        assert path.read_bytes() == before


def test_a_file_that_is_not_there_is_missed_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"cannot open the study '.*none.db': there is no such file"):
        salvage(tmp_path / "none.db", tmp_path / "new.db")
    with pytest.raises(StudyError, match=r"cannot open the study '.*s.db': the folder '.*nowhere' does not exist"):
        salvage(tmp_path / "nowhere" / "s.db", tmp_path / "new.db")
    with pytest.raises(StudyError, match="it is a folder"):
        salvage(tmp_path, tmp_path / "new.db")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("version", [0, journal.FORMAT + 1])
def test_another_format_is_refused(version: int, whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    shutil.copy(whole, path)
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    before = path.read_bytes()
    for readonly in (True, False):
        with pytest.raises(StudyError, match=f"has format {version}, and this version of mctsvs reads format 1"):
            Study(path, readonly=readonly)
    assert path.read_bytes() == before


def identity_of(path: Path) -> dict[str, Any]:
    with Study(path, readonly=True) as study:
        return dict(study._session.contents.identity)


def replaced(whole: Path, path: Path, statement: str, row: tuple[Any, ...]) -> None:
    shutil.copy(whole, path)
    connection = sqlite3.connect(path)
    connection.execute(statement, row)
    connection.commit()
    connection.close()


def test_the_chain_of_checksums_covers_what_the_study_is(whole: Path, tmp_path: Path) -> None:
    identity = identity_of(whole)
    changes: list[dict[str, Any]] = [
        {"seed": 1},
        {"direction": "maximize"},
        {"method": "random"},
        {"options": {"k": 3}},
    ]
    for i, change in enumerate(changes):
        data = codec.pack({**identity, **change})
        row = (data, journal.checksum(b"identity", data))
        replaced(whole, tmp_path / f"{i}.db", "UPDATE meta SET data = ?, checksum = ? WHERE name = 'identity'", row)
        for readonly in (True, False):
            with pytest.raises(StudyError, match="damaged"):
                Study(tmp_path / f"{i}.db", readonly=readonly)


def test_the_chain_of_checksums_covers_the_state_of_the_method(whole: Path, tmp_path: Path) -> None:
    with Study(tmp_path / "other.db", BOX, method="mcts-vs-rs", seed=1) as study:
        study.enqueue(np.full((2, 30), 0.25))
        study.optimize(objective, 50)
        study.ask()
        study.save()
    connection = sqlite3.connect(tmp_path / "other.db")
    row = connection.execute("SELECT * FROM method_state").fetchone()
    connection.close()
    replaced(whole, tmp_path / "s.db", "INSERT OR REPLACE INTO method_state VALUES (?, ?, ?, ?)", row)
    for readonly in (True, False):
        with pytest.raises(StudyError, match="the method's state is not what was written"):
            Study(tmp_path / "s.db", readonly=readonly)


def test_no_text_of_a_file_moves_a_terminal(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    Journal.create(path, {"identity": {**identity_of(whole), "method": "\x1b]0;owned\x07\nrandom"}})
    with pytest.raises(StudyError) as caught:
        Study(path, method="random")
    assert str(caught.value).isprintable()
    assert "\\x1b]0;owned\\x07\\nrandom" in str(caught.value)
    with pytest.raises(InputError):
        Study(path)
    assert printable("plain text, naïve and 日本語") == "plain text, naïve and 日本語"
    assert printable("a\x1b[2J\r\nb\u202e\x9b\udcff") == "a\\x1b[2J\\r\\nb\\u202e\\x9b\\udcff"


def test_a_full_disk_is_one_sentence_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with Study(path, BOX, method="mcts-vs-rs", seed=0) as study:
        study.optimize(objective, 10)
        pages = study._session.journal.connection.execute("PRAGMA page_count").fetchone()[0]
        study._session.journal.connection.execute(f"PRAGMA max_page_count = {pages + 3}")
        with pytest.raises(StudyError, match="the disk is full"):
            study.optimize(objective, 1000)
        done = study.evaluated
        assert 10 <= done < 1000
        with Study(path, readonly=True) as reader:
            assert reader.evaluated == done
        study._session.journal.connection.execute("PRAGMA max_page_count = 1000000")  # room was made
        study.optimize(objective, 150)
        assert study.evaluated == 150
        after = picture(study)
    with Study(tmp_path / "undisturbed.db", BOX, method="mcts-vs-rs", seed=0) as study:
        study.optimize(objective, 150)
        assert picture(study) == after


def test_a_file_that_became_read_only_is_one_sentence(tmp_path: Path) -> None:
    with Study(tmp_path / "s.db", BOX, method="mcts-vs-rs") as study:
        study.optimize(objective, 10)
        study._session.journal.connection.execute(
            "PRAGMA query_only = ON"
        )  # SQLite then says what it says of such a file
        with pytest.raises(StudyError, match="is read-only"):
            study.optimize(objective, 20)
        study._session.journal.connection.execute("PRAGMA query_only = OFF")
        study.optimize(objective, 20)
        assert study.evaluated == 20


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_file_can_be_read(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "s.db"
    shutil.copy(whole, path)
    path.chmod(0o444)
    folder.chmod(0o555)
    try:
        with Study(path, readonly=True) as study:
            assert study.evaluated == 50
        with pytest.raises(StudyError, match=r"[Pp]ermission denied"):
            Study(path)
    finally:
        folder.chmod(0o755)


def test_events_written_by_one_are_read_by_another_while_it_writes(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with Study(path, BOX, method="mcts-vs-rs") as study:
        for n in range(1, 6):
            study.optimize(objective, 3 * n)
            reader = Journal(path, readonly=True)
            kinds = [event.kind for event in reader.events()]
            reader.close()
            assert (kinds.count("ask"), kinds.count("tell")) == (3 * n, 3 * n)


def test_minus_zero_and_the_largest_values_are_kept(tmp_path: Path) -> None:
    values = [-0.0, 5e-324, 1.7976931348623157e308, -3.0, 2.0**53 + 1, 0.1, math.nan]
    with Study(tmp_path / "s.db", BOX, method="random") as study:
        for value in values:
            study.tell(study.ask()[0], value)
        before = [repr(t.value) for t in study.trials]
    with Study(tmp_path / "s.db") as study:
        assert [repr(t.value) for t in study.trials] == before
        assert before[1:] == [repr(float(value)) for value in values[1:]]
