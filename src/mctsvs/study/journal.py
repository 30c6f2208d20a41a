"""The journal: everything that happened in a study, in order, in one SQLite file.

    meta          name, data: what the study is (space, direction, method, options, seed), and the user's attributes
    journal       one row for everything that happened, never changed: see `Event`
    head          number and checksum of the last event, so that a lost end is noticed
    method_state  the method's state after event `seq`; a convenience: it follows from the events before it

An event's checksum covers the event and the checksum of the one before; the first one's covers what the study is. Every
change is one transaction. The file is in write-ahead mode, so readers never wait, and a killed process loses nothing
that was committed. Against a loss of power, a commit waits for the disk if none has done so within the last five
seconds, which is every commit where an evaluation takes longer; the system writes the others to the disk within half a
minute.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import struct
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from mctsvs.study import codec, files
from mctsvs.study.errors import DamagedError, LostError, clear_errors, damaged, reading
from mctsvs.utils.validation import StudyError

APPLICATION = 0x6D637673  # "mcvs", in the file's header
FORMAT = 1  # of the file, in its header
TABLES = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, data BLOB NOT NULL, checksum BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE journal (seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, number INTEGER NOT NULL, "
    "call INTEGER NOT NULL, iteration INTEGER NOT NULL, proposal_id INTEGER NOT NULL, value REAL, text TEXT NOT NULL, "
    "details TEXT NOT NULL, times BLOB NOT NULL, variables BLOB NOT NULL, point BLOB NOT NULL, "
    "checksum BLOB NOT NULL)",
    "CREATE TABLE head (id INTEGER PRIMARY KEY CHECK (id = 0), seq INTEGER NOT NULL, checksum BLOB NOT NULL)",
    "CREATE TABLE method_state (id INTEGER PRIMARY KEY CHECK (id = 0), seq INTEGER NOT NULL, data BLOB NOT NULL, "
    "checksum BLOB NOT NULL)",
)
SYNC_SECONDS = 5.0


class Event(NamedTuple):
    """Something that happened.

    ask      trial `number` was asked for, in one call with those of the same `call`; text: its source; proposal id: the
             number that the method gave its proposal, -1 for a point of the user's; value: when, in seconds since 1970
    tell     its value came, None for a failure, with a message in text; from then on the method knows it
    result   the same, but the method is to be told later, when those before it are there
    enqueue  the user wants `point` tried
    import   a trial that was evaluated elsewhere
    plan     there are to be `number` evaluations; value: how many of the last ones explain, where that was said
    strike   trial `number` has cost a worker

    details    of tell, result and import: what came beside the value, as `TrialDetails` writes it; may be empty
    times      of tell: as `TrialTimes` packs them
    variables  of ask: the positions of those that were moved, as `codec` packs them
    """

    kind: str
    number: int = -1
    call: int = -1
    iteration: int = 0
    proposal_id: int = -1
    value: float | None = None
    text: str = ""
    details: str = ""
    times: bytes = b""
    variables: bytes = b""
    point: bytes = b""

    def checksum(self, seq: int, before: bytes) -> bytes:
        """Of event number `seq`; `before` is that of the event before it."""
        numbers = struct.pack("<5q", seq, self.number, self.call, self.iteration, self.proposal_id)
        value = b"" if self.value is None else struct.pack("<d", self.value)
        texts = self.kind.encode(), self.text.encode(), self.details.encode()
        return checksum(before, numbers, value, *texts, self.times, self.variables, self.point)


COLUMNS = f"seq, {', '.join(Event._fields)}, checksum"
INSERT = f"INSERT INTO journal VALUES ({', '.join('?' * (len(Event._fields) + 2))})"


class MethodState(NamedTuple):
    """The method's state after event `seq`, and the checksum of that."""

    seq: int
    packed: bytes
    checksum: bytes


def checksum(*parts: bytes) -> bytes:
    lengths = struct.pack(f"<{len(parts)}q", *map(len, parts))
    return hashlib.blake2b(lengths + b"".join(parts), digest_size=8).digest()


class Journal:
    """A study's file. Every error is a `StudyError`."""

    def __init__(self, path: Path, *, readonly: bool = False) -> None:
        """Open a file made by `create`."""
        self.path = path
        self.last = b""  # checksum of the last event read or written
        self.length = 0  # events read or written
        self._synced = 0.0
        self._overwritten = False
        self._watch: files.FileWatch | None = None  # of a writer
        self._guard: files.SQLiteGuard | None = None
        self._open(readonly)

    def _open(self, readonly: bool) -> None:
        self._waiting = True  # whether a commit waits for the disk
        with clear_errors(self.path):
            self.connection = _connect(self.path, readonly)
            try:
                _check_header(self.connection, self.path)
                if not readonly:
                    self.connection.execute("PRAGMA journal_mode = WAL")
                    self.connection.execute("PRAGMA synchronous = FULL")
                    self.connection.execute("SELECT seq FROM head").fetchone()  # makes the files beside it
                    self._guard = files.SQLiteGuard(self.path)
                    self._watch = files.FileWatch(self.path)
            except BaseException:
                self.close()
                raise

    @staticmethod
    def create(path: Path, meta: Mapping[str, Any], events: Iterable[Event] = ()) -> None:
        """A new file; complete once it is there under its name, so that a process killed meanwhile leaves none."""
        files.write_new(path, Journal.as_bytes(meta, events))

    @staticmethod
    def as_bytes(meta: Mapping[str, Any], events: Iterable[Event]) -> bytes:
        """The bytes of a file that holds these."""
        described = [_meta_row(name, value) for name, value in meta.items()]
        connection = sqlite3.connect(":memory:", isolation_level=None)
        try:
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {FORMAT}")
            connection.execute("BEGIN")
            for statement in TABLES:
                connection.execute(statement)
            connection.executemany("INSERT INTO meta VALUES (?, ?, ?)", described)
            rows, seq, last = _rows(events, 0, checksum(codec.pack(meta["identity"])))
            connection.executemany(INSERT, rows)
            connection.execute("INSERT INTO head VALUES (0, ?, ?)", (seq, last))
            connection.execute("COMMIT")
            return connection.serialize()
        finally:
            connection.close()

    # what is in it

    def meta(self) -> dict[str, Any]:
        """What the study is, as "identity", and the user's attributes."""
        found = {}
        with reading(self.path):
            for name, data, check in self.connection.execute("SELECT name, data, checksum FROM meta"):
                if check != checksum(name.encode(), data):
                    raise damaged(self.path, "its description is not what was written")
                found[name] = codec.unpack(data)
        return found

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Within it, reads see the file as it is now, whatever a writer does."""
        with reading(self.path):
            self.connection.execute("BEGIN")
            try:
                yield
            finally:
                self._roll_back()

    def events(self) -> Iterator[Event]:
        """All events in order, each one checked; raises at the first that is not what was written."""
        with clear_errors(self.path):
            row = self.connection.execute("SELECT data FROM meta WHERE name = 'identity'").fetchone()
        if row is None:
            raise damaged(self.path, "its description is lost")
        self.last, self.length = checksum(row[0]), 0
        return self.more_events()

    def more_events(self) -> Iterator[Event]:
        """Those after the last one read."""
        with reading(self.path):
            query = f"SELECT {COLUMNS} FROM journal WHERE seq > ? ORDER BY seq"
            for seq, *row, check in self.connection.execute(query, (self.length,)):
                event = Event(*row)
                if seq != self.length + 1 or check != event.checksum(seq, self.last):
                    raise damaged(self.path, f"event {self.length + 1} is not what was written")
                self.last, self.length = check, seq
                yield event
            head = self.connection.execute("SELECT seq, checksum FROM head").fetchall()
        if head != [(self.length, self.last)]:
            raise damaged(self.path, f"events after number {self.length} are missing")

    def method_state(self) -> MethodState | None:
        """The method's state as it is stored; None if there is none."""
        with clear_errors(self.path):
            row = self.connection.execute("SELECT seq, data, checksum FROM method_state").fetchone()
        return None if row is None else MethodState(*row)

    def unpacked(self, state: MethodState) -> Any:
        """What is in it, if it was written after the event that was read last."""
        if state.checksum != _state_checksum(state.seq, self.last, state.packed):
            raise damaged(self.path, "the method's state is not what was written")
        return codec.unpack(state.packed)

    def as_stored(self) -> bytes:
        """The bytes of a file that holds all that this one does."""
        with self.snapshot():
            return self.connection.serialize()

    # what changes it

    def set_meta(self, name: str, value: Any) -> None:
        row = _meta_row(name, value)
        with self._writing():
            self.connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", row)

    def append(self, events: Sequence[Event], state: bytes | None = None) -> None:
        """Events, and the method's state after them, in one transaction."""
        now = time.monotonic()
        wait = now - self._synced > SYNC_SECONDS
        rows, seq, last = _rows(events, self.length, self.last)
        with self._writing():
            one = self.connection.execute
            if wait != self._waiting:
                one(f"PRAGMA synchronous = {'FULL' if wait else 'NORMAL'}")
                self._waiting = wait
            one("BEGIN IMMEDIATE")
            self._move_head(seq, last)
            self.connection.executemany(INSERT, rows)
            if state is not None:
                row = (seq, state, _state_checksum(seq, last, state))
                one("INSERT OR REPLACE INTO method_state VALUES (0, ?, ?, ?)", row)
            one("COMMIT")
        if wait:
            self._synced = now
        self.length, self.last = seq, last

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Around a change: of the file that was opened, and all of it or nothing."""
        self.check()
        assert self._watch is not None
        with clear_errors(self.path):
            try:
                yield
            finally:
                self._roll_back()
                self._watch.note()

    def _move_head(self, seq: int, last: bytes) -> None:
        """Events follow what this process has read or written, nothing else."""
        change = "UPDATE head SET seq = ?, checksum = ? WHERE seq = ? AND checksum = ?"
        if self.connection.execute(change, (seq, last, self.length, self.last)).rowcount != 1:
            raise StudyError(
                f"another process has meanwhile written to the study {str(self.path)!r}, which is possible when its "
                f".lock file is deleted: close it here, and open it again when the other process has closed it"
            )

    def _roll_back(self) -> None:
        if self.connection.in_transaction:
            self.connection.rollback()

    def check(self) -> None:
        """Where anybody has changed the file, it must still hold all that was read and written; raises a `LostError`.

        SQLite reads again only what it has not in memory, so the file is read by a connection of its own.
        """
        if self._watch is None or not self._watch.changed:
            return
        what = self._watch.gone
        if not what:
            try:
                if self._watch.log_gone:
                    self.close()  # which writes what was in the log to the file
                    self._watch.note_file()
                    self._open(readonly=False)
                seen = self._watch.now()
                self._compare()
                self._watch.seen = seen
                return
            except DamagedError:
                self._overwritten, what = True, "it was overwritten or cut off"
        raise LostError(f"the study {str(self.path)!r} was lost during the run ({what})")

    def _compare(self) -> None:
        """Everything in the file is as it was written, and what this process knows of is in it."""
        other = Journal(self.path, readonly=True)
        try:
            with other.snapshot():
                other.meta()
                state, events = other.method_state(), other.events()
                known = (other.length, other.last) == (self.length, self.last)
                for _ in events:
                    known |= (other.length, other.last) == (self.length, self.last)
                    if state is not None and state.seq == other.length:
                        other.unpacked(state)
        finally:
            other.close()
        if not known:
            raise damaged(self.path, "its events are others")

    def close(self) -> None:
        guard, self._guard = self._guard, None
        try:
            if guard is not None and not self._overwritten:
                guard.unlock()
            with clear_errors(self.path):
                self.connection.close()
            if self._watch is not None and self._overwritten:
                self._watch.remove_log()
        finally:
            if guard is not None:
                guard.close()


def _meta_row(name: str, value: Any) -> tuple[str, bytes, bytes]:
    data = codec.pack(value)
    return name, data, checksum(name.encode(), data)


def _state_checksum(seq: int, last: bytes, packed: bytes) -> bytes:
    """Of the method's state after event `seq`, whose checksum is `last`."""
    return checksum(struct.pack("<q", seq), last, packed)


def _rows(events: Iterable[Event], seq: int, last: bytes) -> tuple[list[tuple[Any, ...]], int, bytes]:
    """Rows of events that follow number `seq`, whose checksum is `last`; number and checksum of the last one."""
    rows = []
    for event in events:
        seq += 1
        last = event.checksum(seq, last)
        rows.append((seq, *event, last))
    return rows, seq, last


def _check_header(connection: sqlite3.Connection, path: Path) -> None:
    application, version = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
    )
    if application != APPLICATION:
        raise DamagedError(f"{str(path)!r} is not a study: it is an SQLite file of another program")
    if version != FORMAT:
        raise StudyError(
            f"the study {str(path)!r} has format {version}, and this version of mctsvs reads format {FORMAT}: open it "
            f"with the version that wrote it"
        )


def _connect(path: Path, readonly: bool) -> sqlite3.Connection:
    """A connection that makes no file where there is none.

    A reader that may write, and does not, tidies up the helper files when it is the last one to close. Where it may
    not write, or SQLite cannot, the study can be read all the same.
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
    writable = os.access(path, os.W_OK) and os.access(path.absolute().parent, os.W_OK)
    try:
        connection = connect("mode=rw" if writable else "mode=ro")
    except sqlite3.OperationalError as error:
        if not path.is_file() or error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
            raise
        with suppress(OSError, sqlite3.Error):  # what is wrong with the file itself is what counts
            return _copied(path)
        raise
    connection.execute("PRAGMA query_only = ON")
    return connection


def _copied(path: Path) -> sqlite3.Connection:
    """The study in memory, where SQLite cannot make the files that it wants beside it, as on a full disk."""
    memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    try:
        if not os.path.exists(f"{path}-wal"):
            address = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"
            with closing(sqlite3.connect(address, uri=True)) as alone:
                alone.backup(memory)
        else:
            with tempfile.TemporaryDirectory() as folder:
                for ending in ("", "-wal"):
                    shutil.copyfile(f"{path}{ending}", f"{folder}/copy{ending}")
                with closing(sqlite3.connect(f"{folder}/copy")) as copy:
                    copy.backup(memory)
    except BaseException:
        memory.close()
        raise
    return memory
