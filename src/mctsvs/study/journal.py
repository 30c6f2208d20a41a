"""The journal: all that happened in a study, in order, in one SQLite file.

    meta      name, data: what the study is (space, direction, method, options, seed) and notes, as `codec` packs them
    journal   one entry for everything that happened, never changed: see `Entry`
    head      number and checksum of the last entry, so that a lost end is noticed
    memory    what the method has in mind after entry `seq`; a convenience: it follows from the entries before it

An entry's checksum covers the entry and the checksum of the one before. Every change is one transaction; the file is
in write-ahead mode, so readers never wait and a killed process loses nothing that was committed. Against a loss of
power, a commit waits for the disk if none has done so within the last five seconds, which is every commit where an
evaluation takes longer; the system writes the others to the disk within half a minute.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from mctsvs.study import codec
from mctsvs.study.errors import StudyError, clear_errors, damaged

APPLICATION = 0x6D637673  # "mcvs", in the file's header
VERSION = 1
SYNC_SECONDS = 5.0
KINDS = ("ask", "tell", "result", "enqueue", "import")

# version -> what makes a file of the version before into one of this version, inside one transaction
MIGRATIONS: Mapping[int, Callable[[sqlite3.Connection], None]] = {}

SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, data BLOB NOT NULL, checksum BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE journal (
    seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, number INTEGER NOT NULL, call INTEGER NOT NULL,
    iteration INTEGER NOT NULL, value REAL, text TEXT NOT NULL, variables BLOB NOT NULL, point BLOB NOT NULL,
    checksum BLOB NOT NULL
);
CREATE TABLE head (id INTEGER PRIMARY KEY CHECK (id = 0), seq INTEGER NOT NULL, checksum BLOB NOT NULL);
CREATE TABLE memory (id INTEGER PRIMARY KEY CHECK (id = 0), seq INTEGER NOT NULL, data BLOB NOT NULL, checksum BLOB);
"""


class Entry(NamedTuple):
    """Something that happened.

    ask      trial `number` was asked for, in one call with those of the same `call`; text: its source
    tell     its value, None for a failure, came, with a message in text; from then on the method knows it
    result   the same, but the method is to be told later, when those before it are there
    enqueue  the user wants `point` tried
    import   a trial that was evaluated elsewhere
    """

    kind: str
    number: int = -1
    call: int = -1
    iteration: int = 0
    value: float | None = None
    text: str = ""
    variables: bytes = b""
    point: bytes = b""

    def checksum(self, seq: int, before: bytes) -> bytes:
        value = b"" if self.value is None else struct.pack("<d", self.value)
        kind, text = self.kind.encode(), self.text.encode()
        lengths = len(kind), len(value), len(text), len(self.variables)
        numbers = struct.pack("<8q", seq, self.number, self.call, self.iteration, *lengths)
        parts = b"".join((before, numbers, kind, value, text, self.variables, self.point))
        return hashlib.blake2b(parts, digest_size=8).digest()


def checksum(*parts: bytes) -> bytes:
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        digest.update(struct.pack("<q", len(part)) + part)
    return digest.digest()


class Journal:
    """A study's file. Every error is a `StudyError`."""

    def __init__(self, path: Path, *, readonly: bool = False) -> None:
        """Open a file made by `create`; one of an older version is brought up to date."""
        self.path = path
        self.last = b""  # checksum of the last entry read or written
        self.length = 0  # entries read or written
        self._synced = 0.0
        with clear_errors(path):
            self.connection = _connect(path, readonly)
            try:
                self._begin(readonly)
            except BaseException:
                self.connection.close()
                raise

    def _begin(self, readonly: bool) -> None:
        one = self.connection.execute
        application, version = (one(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
        tables = {name for (name,) in one("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if application != APPLICATION and "journal" not in tables:
            raise StudyError(f"{str(self.path)!r} is not a study: it is an SQLite file of another program")
        if application != APPLICATION or version < 1:
            raise damaged(self.path, "its header is wrong")
        if version > VERSION:
            raise StudyError(
                f"the study {str(self.path)!r} has format {version}, this version of mctsvs reads up to {VERSION}: "
                f"install a newer mctsvs"
            )
        if version < VERSION:
            if readonly:
                raise StudyError(
                    f"the study {str(self.path)!r} has format {version}, older than {VERSION}: open it once for "
                    f"writing, which brings it up to date"
                )
            migrate(self.connection, version)
        if not readonly:
            one("PRAGMA journal_mode = WAL")
            one("PRAGMA synchronous = NORMAL")

    @staticmethod
    def create(path: Path, meta: Mapping[str, Any]) -> None:
        """A new file; complete once it is there under its name, so that a process killed meanwhile leaves none."""
        rows = [_meta_row(name, value) for name, value in meta.items()]
        fresh = path.with_name(path.name + ".new")
        fresh.unlink(missing_ok=True)
        with clear_errors(path):
            connection = sqlite3.connect(fresh, isolation_level=None)
            try:
                connection.executescript(f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION};")
                connection.execute("BEGIN")
                for statement in filter(str.strip, SCHEMA.split(";")):
                    connection.execute(statement)
                connection.execute("INSERT INTO head VALUES (0, 0, ?)", (checksum(b"head"),))
                connection.executemany("INSERT INTO meta VALUES (?, ?, ?)", rows)
                connection.execute("COMMIT")
            finally:
                connection.close()
        fresh.replace(path)

    def meta(self) -> dict[str, Any]:
        """All of the meta data."""
        found = {}
        with clear_errors(self.path):
            for name, data, check in self.connection.execute("SELECT name, data, checksum FROM meta"):
                if not (isinstance(name, str) and isinstance(data, bytes) and check == checksum(name.encode(), data)):
                    raise damaged(self.path, "its description is not what was written")
                found[name] = codec.unpack(data)
        return found

    def set_meta(self, name: str, value: Any) -> None:
        with clear_errors(self.path):
            self.connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", _meta_row(name, value))

    def count(self, *kinds: str) -> int:
        """Entries of these kinds."""
        marks = ", ".join("?" * len(kinds))
        with clear_errors(self.path):
            rows = self.connection.execute(f"SELECT count(*) FROM journal WHERE kind IN ({marks})", kinds)
            return int(rows.fetchone()[0])

    def snapshot(self) -> None:
        """From here to `release`, reads see the file as it is now, whatever a writer does."""
        with clear_errors(self.path):
            self.connection.execute("BEGIN")

    def release(self) -> None:
        if self.connection.in_transaction:
            self.connection.rollback()

    def entries(self) -> Iterator[Entry]:
        """All entries in order, each one checked; raises at the first that is not what was written."""
        self.last, self.length = checksum(b"head"), 0
        with clear_errors(self.path):
            columns = "seq, kind, number, call, iteration, value, text, variables, point, checksum"
            for seq, *row, check in self.connection.execute(f"SELECT {columns} FROM journal ORDER BY seq"):
                if seq != self.length + 1 or [type(item) for item in row] not in _ROWS:
                    raise damaged(self.path, f"entry {self.length + 1} is missing or malformed")
                entry = Entry(*row)
                if check != entry.checksum(seq, self.last) or entry.kind not in KINDS:
                    raise damaged(self.path, f"entry {seq} is not what was written")
                self.last, self.length = check, seq
                yield entry
            head = self.connection.execute("SELECT seq, checksum FROM head").fetchall()
        if head != [(self.length, self.last)]:
            raise damaged(self.path, f"entries after number {self.length} are missing")

    def memory(self) -> tuple[int, Any] | None:
        """The method's memory and the number of entries it stands for; None if there is none."""
        with clear_errors(self.path):
            row = self.connection.execute("SELECT seq, data, checksum FROM memory").fetchone()
        if row is None:
            return None
        seq, data, check = row
        if not (isinstance(seq, int) and isinstance(data, bytes) and check == _memory_checksum(seq, data)):
            raise damaged(self.path, "the method's memory is not what was written")
        return seq, codec.unpack(data)

    def append(self, entries: Sequence[Entry], memory: bytes | None = None) -> None:
        """Entries, and the method's memory after them, in one transaction."""
        seq, last = self.length, self.last
        rows = []
        for e in entries:
            seq += 1
            last = e.checksum(seq, last)
            rows.append((seq, e.kind, e.number, e.call, e.iteration, e.value, e.text, e.variables, e.point, last))
        now = time.monotonic()
        wait = now - self._synced > SYNC_SECONDS
        with clear_errors(self.path):
            one = self.connection.execute
            try:
                if wait:
                    one("PRAGMA synchronous = FULL")
                one("BEGIN IMMEDIATE")
                if rows:
                    self.connection.executemany("INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
                    one("UPDATE head SET seq = ?, checksum = ?", (seq, last))
                if memory is not None:
                    row = (seq, memory, _memory_checksum(seq, memory))
                    one("INSERT OR REPLACE INTO memory VALUES (0, ?, ?, ?)", row)
                one("COMMIT")
            except BaseException:
                self.release()
                raise
            finally:
                if wait:
                    one("PRAGMA synchronous = NORMAL")
        if wait:
            self._synced = now
        self.length, self.last = seq, last

    def close(self) -> None:
        with clear_errors(self.path):
            self.connection.close()


def migrate(connection: sqlite3.Connection, version: int) -> None:
    """Bring a file of an older version up to date, all or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        for target in range(version + 1, VERSION + 1):
            MIGRATIONS[target](connection)
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise


_ROWS = [[str, int, int, int, value, str, bytes, bytes] for value in (float, type(None))]


def _meta_row(name: str, value: Any) -> tuple[str, bytes, bytes]:
    data = codec.pack(value)
    return name, data, checksum(name.encode(), data)


def _memory_checksum(seq: int, data: bytes) -> bytes:
    return checksum(struct.pack("<q", seq), data)


def _connect(path: Path, readonly: bool) -> sqlite3.Connection:
    """No file is made where there is none.

    A reader that may write, and does not, tidies up the helper files when it is the last one to close; where it may
    not, the study can be read all the same.
    """
    address = f"file:{quote(str(path.absolute()))}"

    def connect(mode: str) -> sqlite3.Connection:
        # one thread at a time uses a study, not necessarily the one that opened it
        connection = sqlite3.connect(f"{address}?{mode}", uri=True, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except BaseException:
            connection.close()
            raise
        return connection

    if not readonly:
        return connect("mode=rw")
    if path.is_file() and os.access(path, os.W_OK) and os.access(path.absolute().parent, os.W_OK):
        connection = connect("mode=rw")
        connection.execute("PRAGMA query_only = ON")
        return connection
    try:
        return connect("mode=ro")
    except sqlite3.OperationalError:
        if path.is_file() and not Path(f"{path}-wal").exists():
            return connect("mode=ro&immutable=1")
        raise
