"""A study from a stranger is data: whatever it holds, it is read as it is or refused in a sentence."""

from __future__ import annotations

import json
import shutil
import sqlite3
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mctsvs import InputError, Study, StudyError
from mctsvs.study import codec, schema
from mctsvs.study.journal import Journal
from mctsvs.study.replay import salvage
from mctsvs.study.saved_command import SavedCommand
from mctsvs.study.schema import Event
from mctsvs.utils.formatting import printable

BOX = [(0.0, 1.0)] * 5


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "s.db"
    with Study(path, BOX, method="mcts-vs-rs", seed=0) as study:
        study.optimize(lambda x: float(x[0]), 30)
        study.ask(2)
    return path


def changed(whole: Path, path: Path, *statements: str) -> Path:
    shutil.copy(whole, path)
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()
    return path


def refused(path: Path, words: str = "damaged") -> None:
    for readonly in (True, False):
        with pytest.raises(StudyError) as caught:
            Study(path, readonly=readonly)
        sentence = str(caught.value)
        assert words in sentence
        assert sentence.isprintable()


ENDLESS = (
    "CREATE VIEW journal AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
    "SELECT i AS seq, 'ask' AS kind, i AS number, 0 AS call, 0 AS iteration, -1 AS proposal_id, 1.0 AS value, "
    "'' AS text, x'' AS variables, x'' AS point, x'' AS checksum FROM n"
)


@pytest.mark.parametrize(
    "statements",
    [
        ("ALTER TABLE journal RENAME TO old", ENDLESS),
        ("DROP TABLE journal", ENDLESS),
        ("CREATE TRIGGER t AFTER INSERT ON journal BEGIN DELETE FROM meta; END",),
        ("CREATE VIEW extra AS SELECT 1",),
        ("CREATE INDEX i ON journal (number)",),
        ("CREATE TABLE extra (id)",),
        ("DROP TABLE head", "CREATE TABLE head (id, seq, checksum)"),
        ("PRAGMA user_version = 0",),
        ("PRAGMA user_version = 1",),
        ("PRAGMA application_id = 7",),
    ],
)
def test_tables_other_than_a_studys_are_refused_before_they_are_read(
    statements: tuple[str, ...], whole: Path, tmp_path: Path
) -> None:
    refused(changed(whole, tmp_path / "s.db", *statements))


def test_what_somebody_has_added_does_not_keep_the_rest_from_being_saved(whole: Path, tmp_path: Path) -> None:
    trigger = "CREATE TRIGGER t AFTER INSERT ON journal BEGIN DELETE FROM meta; END"
    path = changed(whole, tmp_path / "s.db", "CREATE INDEX i ON journal (number)", trigger)
    assert salvage(path, tmp_path / "saved.db") == 30
    with Study(tmp_path / "saved.db") as study:
        assert study.evaluated == 30


def identity_of(path: Path) -> dict[str, Any]:
    with Study(path, readonly=True) as study:
        return dict(study._ledger.contents.identity)


def test_another_identity_with_a_checksum_that_fits_is_refused(whole: Path, tmp_path: Path) -> None:
    identity = identity_of(whole)
    changes: list[dict[str, Any]] = [
        {"seed": 1},
        {"direction": "maximize"},
        {"method": "random"},
        {"options": {"k": 3}},
    ]
    for i, change in enumerate(changes):
        data = codec.pack({**identity, **change})
        path = tmp_path / f"{i}.db"
        shutil.copy(whole, path)
        connection = sqlite3.connect(path)
        row = (data, schema.checksum(b"identity", data))
        connection.execute("UPDATE meta SET data = ?, checksum = ? WHERE name = 'identity'", row)
        connection.commit()
        connection.close()
        refused(path)


@pytest.mark.parametrize("memory", [None, 3, [], "text", {}, {"format": "of the future"}])
def test_a_memory_that_is_none_is_refused_or_thought_again(memory: Any, whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    shutil.copy(whole, path)
    writer = Journal(path)
    assert len(list(writer.events())) == 63
    writer.append([], codec.pack(memory))
    writer.close()
    if not isinstance(memory, dict):
        refused(path)
        return
    with Study(path) as study, Study(whole, readonly=True) as expected:
        assert len(study.optimizer.trials) == 32
        assert [t.unit.tobytes() for t in study.ask(3)] == [t.unit.tobytes() for t in expected.optimizer.ask(3)]


def test_the_memory_of_another_study_is_refused(whole: Path, tmp_path: Path) -> None:
    other, path = tmp_path / "other.db", tmp_path / "s.db"
    with Study(other, BOX, method="mcts-vs-rs", seed=1) as study:
        study.optimize(lambda x: float(x[0]), 30)
        study.ask(2)
        study.save()
    row = sqlite3.connect(other).execute("SELECT * FROM memory").fetchone()
    shutil.copy(whole, path)
    connection = sqlite3.connect(path)
    connection.execute("INSERT OR REPLACE INTO memory VALUES (?, ?, ?, ?)", row)
    connection.commit()
    connection.close()
    refused(path)


POINT = np.full(5, 0.5).tobytes()
ASK = Event("ask", 0, 0, text="proposed", proposal_id=0, point=POINT)


@pytest.mark.parametrize(
    "events",
    [
        [Event("tell", -1, value=1.0)],
        [ASK, Event("tell", -1, value=1.0)],
        [ASK, Event("tell", 7, value=1.0)],
        [ASK, Event("tell", 0, value=1.0), Event("tell", 0, value=2.0)],
        [ASK, Event("tell", 0, value=float("inf"))],
        [ASK, Event("result", 5, value=1.0)],
        [ASK, Event("strike", 5)],
        [Event("plan", -5)],
        [Event("ask", 0, 0, text="from afar", point=POINT)],
        [Event("ask", 3, 0, text="proposed", point=POINT)],
        [ASK._replace(point=POINT[:-8])],
        [ASK._replace(point=POINT + POINT)],
        [ASK._replace(point=np.full(5, 7.0).tobytes())],
        [ASK._replace(point=np.full(5, np.nan).tobytes())],
        [ASK._replace(variables=b"i" + struct.pack("<2i", 0, 99))],
        [ASK._replace(variables=b"i" + struct.pack("<2i", 0, -1))],
        [ASK._replace(variables=b"?")],
        [Event("enqueue", point=POINT[:-8])],
        [Event("magic")],
    ],
)
def test_events_that_cannot_have_happened_are_refused_though_their_checksums_fit(
    events: list[Event], whole: Path, tmp_path: Path
) -> None:
    Journal.create(tmp_path / "s.db", {"identity": identity_of(whole)}, events)
    refused(tmp_path / "s.db")


def deep(n: int) -> bytes:
    text = b"[" * n + b"]" * n
    return struct.pack("<q", len(text)) + text


def bomb() -> bytes:
    """A kilobyte that asks for gigabytes."""
    text = json.dumps([{"array": ["<f8", [1000], 0]}] * 1000).encode()
    return struct.pack("<q", len(text)) + text + bytes(8000)


@pytest.mark.parametrize("data", [deep(50), deep(150), deep(100_000), bomb()], ids=["plain", "deep", "deeper", "bomb"])
def test_data_that_is_too_much_is_refused(data: bytes, whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    shutil.copy(whole, path)
    connection = sqlite3.connect(path)
    for name in ("command", "identity") if data != deep(50) else ("command",):
        row = (name, data, schema.checksum(name.encode(), data))
        connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", row)
    connection.commit()
    connection.close()
    if data == deep(50):
        with Study(path, readonly=True) as study:
            assert isinstance(study.notes["command"], list)
    else:
        refused(path)


def test_an_identity_of_any_other_form_is_refused(whole: Path, tmp_path: Path) -> None:
    identity = identity_of(whole)
    changes: list[Callable[[], Any]] = [
        lambda: None,
        lambda: [1],
        lambda: {**identity, "seed": True},
        lambda: {**identity, "seed": -1},
        lambda: {**identity, "seed": "0"},
        lambda: {**identity, "direction": "up"},
        lambda: {**identity, "method": ["random"]},
        lambda: {**identity, "options": [1]},
        lambda: {**identity, "space": []},
        lambda: {**identity, "more": 1},
        lambda: {name: value for name, value in identity.items() if name != "seed"},
    ]
    for i, change in enumerate(changes):
        path = tmp_path / f"{i}.db"
        Journal.create(path, {"identity": change()})
        refused(path)


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


NOTE: dict[str, Any] = {
    "problem": "Levy10_100",
    "variation": {"shuffle": False, "shift": False, "noise": 0.0, "seed": 0},
    "workers": 1,
    "dask": None,
    "ray": None,
    "asynchronous": False,
    "timeout": None,
    "max_failures": 30,
    "budget": 100,
}


@pytest.mark.parametrize(
    "note",
    [
        [1, 2],
        None,
        {},
        {**NOTE, "more": 1},
        {**NOTE, "budget": "100"},
        {**NOTE, "budget": 0},
        {**NOTE, "budget": True},
        {**NOTE, "workers": -4},
        {**NOTE, "timeout": float("inf")},
        {**NOTE, "timeout": float("nan")},
        {**NOTE, "problem": ["\x1b[2J"]},
        {**NOTE, "variation": [1]},
        {**NOTE, "variation": {**NOTE["variation"], "noise": "loud"}},
    ],
)
def test_a_note_about_the_last_run_is_checked_before_it_is_followed(note: Any) -> None:
    with pytest.raises(StudyError) as caught:
        SavedCommand.of({"command": note}, Path("s.db"))
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"workers": 40_000}, "--workers 40000, which"),
        ({"dask": "tcp://evil; rm"}, "--dask 'tcp://evil; rm', which"),
        ({"ray": "far:6379"}, "--ray far:6379, which"),
        ({"ray": ""}, "--ray, which"),
    ],
)
def test_a_file_gets_nothing_that_only_the_user_may_grant(wish: dict[str, Any], words: str) -> None:
    plain = SavedCommand.of({"command": NOTE}, Path("s.db"))
    assert plain is not None
    plain.check_modest(Path("s.db"))
    note = SavedCommand.of({"command": {**NOTE, **wish}}, Path("s.db"))
    assert note is not None
    with pytest.raises(StudyError) as caught:
        note.check_modest(Path("s.db"))
    assert words in str(caught.value)
    assert SavedCommand.of({}, Path("s.db")) is None
