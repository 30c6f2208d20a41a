"""The journal: all that happened in a study, in order, in one SQLite file.

    meta      name, data: what the study is (space, direction, method, options, seed) and notes, as `codec` packs them
    journal   one row for everything that happened, never changed: see `Event`
    head      number and checksum of the last event, so that a lost end is noticed
    memory    what the method has in mind after event `seq`; a convenience: it follows from the events before it

An event's checksum covers the event and the checksum of the one before, the first one's the study's description. Every
change is one transaction; the file is in write-ahead mode, so readers never wait and a killed process loses nothing
that was committed. Against a loss of power, a commit waits for the disk if none has done so within the last five
seconds, which is every commit where an evaluation takes longer; the system writes the others to the disk within half a
minute.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from mctsvs.study import codec, files
from mctsvs.study.errors import LostError, clear_errors, damaged
from mctsvs.study.schema import (
    COLUMNS,
    INSERT,
    JOURNAL,
    KINDS,
    PLAIN,
    ROWS,
    Event,
    check_tables,
    checksum,
    create_tables,
    memory_checksum,
    needed,
    origin,
)
from mctsvs.utils.validation import StudyError

SYNC_SECONDS = 5.0
LOOK_SECONDS = 0.01  # changes that follow each other faster do not each look whether the file is still there
LARGEST = 1 << 29  # bytes of one cell that are read


class MethodState(NamedTuple):
    """What the method had in mind after event `seq`, and the checksum of that."""

    seq: int
    packed: bytes
    checksum: bytes


class Journal:
    """A study's file. Every error is a `StudyError`."""

    def __init__(self, path: Path, *, readonly: bool = False, alone: bool = True) -> None:
        """Open a file made by `create`; one of an older format is brought up to date, unless it is only read."""
        self.path = path
        self.last = b""  # checksum of the last event read or written
        self.length = 0  # events read or written
        self._synced = 0.0
        files.check_helpers(path)
        with clear_errors(path):
            self.connection = _connect(path, readonly)
            try:
                self.version = check_tables(self.connection, path, alone=alone)
                if not readonly:
                    if self.version < PLAIN:
                        self._bring_up_to_date()
                    self.connection.execute("PRAGMA journal_mode = WAL")
                    self.connection.execute("PRAGMA synchronous = NORMAL")
                    self._presence = files.FilePresence(path)
            except BaseException:
                self.connection.close()
                raise

    @staticmethod
    def create(path: Path, meta: Mapping[str, Any], events: Iterable[Event] = ()) -> None:
        """A new file; complete once it is there under its name, so that a process killed meanwhile leaves none."""
        files.write_new(path, Journal.contents(meta, events))

    @staticmethod
    def contents(meta: Mapping[str, Any], events: Iterable[Event]) -> bytes:
        """The bytes of a file that holds these."""
        rows = {name: codec.pack(value) for name, value in meta.items()}
        connection = sqlite3.connect(":memory:", isolation_level=None)
        try:
            connection.execute("BEGIN")
            events = list(events)
            create_tables(connection, needed(events))
            described = [(name, data, checksum(name.encode(), data)) for name, data in rows.items()]
            connection.executemany("INSERT INTO meta VALUES (?, ?, ?)", described)
            written, seq, last = _rows(events, 0, origin(rows["identity"]))
            connection.executemany(INSERT, written)
            connection.execute("INSERT INTO head VALUES (0, ?, ?)", (seq, last))
            connection.execute("COMMIT")
            return connection.serialize()
        finally:
            connection.close()

    def _bring_up_to_date(self) -> None:
        """Write the same events again, in the format of today: all or nothing. The memory follows from them."""
        one = self.connection.execute
        one("BEGIN IMMEDIATE")
        try:
            events = list(self.events())
            one("DROP TABLE journal")
            one(JOURNAL[PLAIN])
            rows, seq, last = _rows(events, 0, origin(self._identity()))
            self.connection.executemany(INSERT, rows)
            one("UPDATE head SET seq = ?, checksum = ?", (seq, last))
            one("DELETE FROM memory")
            one(f"PRAGMA user_version = {PLAIN}")
            one("COMMIT")
        except BaseException:
            self.release()
            raise
        self.version = PLAIN

    def meta(self) -> dict[str, Any]:
        """All of the meta data."""
        found = {}
        with clear_errors(self.path):
            for name, data, check in self.connection.execute("SELECT name, data, checksum FROM meta"):
                if not (isinstance(name, str) and isinstance(data, bytes) and check == checksum(name.encode(), data)):
                    raise damaged(self.path, "its description is not what was written")
                try:
                    found[name] = codec.unpack(data)
                except (ValueError, TypeError, KeyError, IndexError, OverflowError) as error:
                    raise damaged(self.path, f"{type(error).__name__} in its description") from None
        return found

    def _identity(self) -> bytes:
        row = self.connection.execute("SELECT data FROM meta WHERE name = 'identity'").fetchone()
        if row is None or not isinstance(row[0], bytes):
            raise damaged(self.path, "what it is about is lost")
        return row[0]

    def set_meta(self, name: str, value: Any) -> None:
        data = codec.pack(value)
        self._check_present(time.monotonic())
        with clear_errors(self.path):
            row = (name, data, checksum(name.encode(), data))
            self.connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", row)

    def count(self, *kinds: str) -> int:
        """Events of these kinds."""
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

    def events(self) -> Iterator[Event]:
        """All events in order, each one checked; raises at the first that is not what was written."""
        with clear_errors(self.path):
            self.last, self.length = origin(self._identity(), self.version), 0
        yield from self.more_events()

    def more_events(self) -> Iterator[Event]:
        """Those after the last one read."""
        version, proposed = self.version, 0
        with clear_errors(self.path):
            query = f"SELECT {COLUMNS[version]} FROM journal WHERE seq > ? ORDER BY seq"
            for seq, *row, check in self.connection.execute(query, (self.length,)):
                if seq != self.length + 1 or [type(item) for item in row] not in ROWS:
                    raise damaged(self.path, f"event {self.length + 1} is missing or malformed")
                event = Event(*row)
                if check != event.checksum(seq, self.last, version) or event.kind not in KINDS:
                    raise damaged(self.path, f"event {seq} is not what was written")
                self.last, self.length = check, seq
                if version == 1 and event.kind == "ask" and event.text == "proposed":
                    event, proposed = event._replace(proposal_id=proposed), proposed + 1  # methods count from 0
                yield event
            head = self.connection.execute("SELECT seq, checksum FROM head").fetchall()
        if head != [(self.length, self.last)]:
            raise damaged(self.path, f"events after number {self.length} are missing")

    def memory(self) -> MethodState | None:
        """The method's memory as it is stored; None if there is none."""
        with clear_errors(self.path):
            row = self.connection.execute("SELECT seq, data, checksum FROM memory").fetchone()
        if row is None:
            return None
        if [type(item) for item in row] != [int, bytes, bytes] or row[0] < 0:
            raise damaged(self.path, "the method's memory is not what was written")
        return MethodState(*row)

    def remembered(self, memory: MethodState) -> dict[str, Any]:
        """What is in it, if it was written after the event that was read last."""
        check = memory_checksum(memory.seq, self.last, memory.packed, self.version)
        found = codec.unpack(memory.packed) if (memory.seq, memory.checksum) == (self.length, check) else None
        if not isinstance(found, dict):
            raise damaged(self.path, "the method's memory is not what was written")
        return found

    def append(self, events: Sequence[Event], memory: bytes | None = None) -> None:
        """Events, and the method's memory after them, in one transaction."""
        now = time.monotonic()
        self._check_present(now, LOOK_SECONDS)
        wait = now - self._synced > SYNC_SECONDS
        rows, seq, last = _rows(events, self.length, self.last)
        version = needed(events)
        one = self.connection.execute
        try:
            if wait:
                one("PRAGMA synchronous = FULL")
            one("BEGIN IMMEDIATE")
            self._move_head(seq, last)
            self.connection.executemany(INSERT, rows)
            if version > self.version:
                one(f"PRAGMA user_version = {version}")
            if memory is not None:
                row = (seq, memory, memory_checksum(seq, last, memory))
                one("INSERT OR REPLACE INTO memory VALUES (0, ?, ?, ?)", row)
            one("COMMIT")
            if wait:
                one("PRAGMA synchronous = NORMAL")
        except BaseException as error:
            with clear_errors(self.path):
                self.release()
                one("PRAGMA synchronous = NORMAL")
                raise error from None
        if wait:
            self._synced = now
        self.length, self.last, self.version = seq, last, max(version, self.version)

    def _move_head(self, seq: int, last: bytes) -> None:
        """Events follow what this process has read or written, nothing else."""
        change = "UPDATE head SET seq = ?, checksum = ? WHERE seq = ? AND checksum = ?"
        if self.connection.execute(change, (seq, last, self.length, self.last)).rowcount != 1:
            raise StudyError(
                f"another process has written to the study {str(self.path)!r} meanwhile, as when its .lock file is "
                f"deleted: close it here, and open it again when the other one has closed it"
            )

    def check_end(self) -> None:
        """Before it is closed: that the last changes have not gone with the file."""
        if self._presence.unseen:
            self._check_present(time.monotonic())

    def _check_present(self, now: float, interval: float = 0.0) -> None:
        what = self._presence.wrong(now, interval)
        if what:
            raise LostError(f"the study {str(self.path)!r} was taken away under the run ({what})")

    def close(self) -> None:
        with clear_errors(self.path):
            self.connection.close()


def _rows(events: Iterable[Event], seq: int, last: bytes) -> tuple[list[tuple[Any, ...]], int, bytes]:
    """Rows of events that follow number `seq`, whose checksum is `last`; number and checksum of the last one."""
    rows = []
    for event in events:
        seq += 1
        last = event.checksum(seq, last)
        rows.append((seq, *event, last))
    return rows, seq, last


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
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST)
            connection.execute("PRAGMA trusted_schema = OFF")
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
