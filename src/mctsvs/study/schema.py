"""The formats of a study file: its tables, and what a checksum covers.

1   the chain of checksums begins with a constant
2   it begins with the study's description; the numbers of proposals, plans and strikes are kept
3   what is told beside values is kept; a file without any stays one of format 2
"""

from __future__ import annotations

import functools
import hashlib
import sqlite3
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from mctsvs.study.errors import damaged
from mctsvs.utils.validation import StudyError

APPLICATION = 0x6D637673  # "mcvs", in the file's header
VERSION = 3
PLAIN = 2  # the format of a file without details
KINDS = ("ask", "tell", "result", "enqueue", "import", "plan", "strike", "details")
_FIRST = "seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, number INTEGER NOT NULL, call INTEGER NOT NULL"
_LAST = "value REAL, text TEXT NOT NULL, variables BLOB NOT NULL, point BLOB NOT NULL"
JOURNAL = {
    1: f"""CREATE TABLE journal (
    {_FIRST},
    iteration INTEGER NOT NULL, {_LAST},
    checksum BLOB NOT NULL
)""",
    PLAIN: f"CREATE TABLE journal ({_FIRST}, iteration INTEGER NOT NULL, proposal_id INTEGER NOT NULL, {_LAST}, "
    "checksum BLOB NOT NULL)",
}
JOURNAL[VERSION] = JOURNAL[PLAIN]
OTHERS = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, data BLOB NOT NULL, checksum BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE head (id INTEGER PRIMARY KEY CHECK (id = 0), seq INTEGER NOT NULL, checksum BLOB NOT NULL)",
    "CREATE TABLE memory (id INTEGER PRIMARY KEY CHECK (id = 0), seq INTEGER NOT NULL, data BLOB NOT NULL, "
    "checksum BLOB)",
)


class Event(NamedTuple):
    """Something that happened.

    ask      trial `number` was asked for, in one call with those of the same `call`; text: its source; proposal id: the
             number that the method gave its proposal, -1 for a point of the user's; value: when, in seconds since 1970
    tell     its value, None for a failure, came, with a message in text; from then on the method knows it. Where the
             variables of a point are in other events: times and purpose of the trial, as JSON
    result   the same, but the method is to be told later, when those before it are there
    enqueue  the user wants `point` tried
    import   a trial that was evaluated elsewhere
    plan     there are to be `number` evaluations
    strike   trial `number` has cost a worker
    details  what is told of trial `number` beside its value, as JSON in text; right before that
    """

    kind: str
    number: int = -1
    call: int = -1
    iteration: int = 0
    proposal_id: int = -1
    value: float | None = None
    text: str = ""
    variables: bytes = b""
    point: bytes = b""

    def checksum(self, seq: int, before: bytes, version: int = VERSION) -> bytes:
        value = b"" if self.value is None else struct.pack("<d", self.value)
        kind, text = self.kind.encode(), self.text.encode()
        lengths = len(kind), len(value), len(text), len(self.variables)
        if version == 1:
            numbers = struct.pack("<8q", seq, self.number, self.call, self.iteration, *lengths)
        else:
            numbers = struct.pack("<9q", seq, self.number, self.call, self.iteration, self.proposal_id, *lengths)
        parts = b"".join((before, numbers, kind, value, text, self.variables, self.point))
        return hashlib.blake2b(parts, digest_size=8).digest()


COLUMNS = {
    1: "seq, kind, number, call, iteration, -1, value, text, variables, point, checksum",
    PLAIN: "seq, kind, number, call, iteration, proposal_id, value, text, variables, point, checksum",
}
COLUMNS[VERSION] = COLUMNS[PLAIN]
INSERT = f"INSERT INTO journal VALUES ({', '.join('?' * 11)})"
ROWS = [[str, int, int, int, int, value, str, bytes, bytes] for value in (float, type(None))]


def checksum(*parts: bytes) -> bytes:
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        digest.update(struct.pack("<q", len(part)) + part)
    return digest.digest()


def origin(identity: bytes, version: int = VERSION) -> bytes:
    """What stands for the checksum before the first event."""
    return checksum(b"head") if version == 1 else checksum(b"head", identity)


def memory_checksum(seq: int, last: bytes, data: bytes, version: int = VERSION) -> bytes:
    """Of the memory after event `seq`, whose checksum is `last`."""
    number = struct.pack("<q", seq)
    return checksum(number, data) if version == 1 else checksum(number, last, data)


def create_tables(connection: sqlite3.Connection, version: int = PLAIN) -> None:
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {version}")
    for statement in (OTHERS[0], JOURNAL[version], *OTHERS[1:]):
        connection.execute(statement)


def needed(events: Iterable[Event]) -> int:
    """The oldest format that can hold these events."""
    return VERSION if any(event.kind == "details" for event in events) else PLAIN


def check_tables(connection: sqlite3.Connection, path: Path, *, alone: bool = True) -> int:
    """The version of a file whose tables are a study's; nothing else is in it, or, if not `alone`, may be.

    Before anything is read: a view in place of a table would be computed, a trigger would run.
    """
    one = connection.execute
    application, version = (one(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
    found = set(one("SELECT type, name, tbl_name, sql FROM sqlite_master LIMIT 100"))
    if application != APPLICATION and not any(name == "journal" for _, name, _, _ in found):
        raise StudyError(f"{str(path)!r} is not a study: it is an SQLite file of another program")
    if application != APPLICATION or version < 1:
        raise damaged(path, "its header is wrong")
    if version > VERSION:
        raise StudyError(
            f"the study {str(path)!r} has format {version}, this version of mctsvs reads up to {VERSION}: "
            f"install a newer mctsvs"
        )
    expected = _tables(version)
    if not expected <= found or (alone and expected != found):
        raise damaged(path, "its tables are not, or not only, those of a study")
    return int(version)


@functools.cache
def _tables(version: int) -> frozenset[tuple[str, str, str, str]]:
    connection = sqlite3.connect(":memory:")
    create_tables(connection, version)
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
    connection.close()
    return frozenset(rows)
