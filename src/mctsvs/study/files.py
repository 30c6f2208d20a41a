"""The files of a study on the disk: written whole, locked by one writer, and watched while a run uses them."""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import secrets
import socket
import struct
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from mctsvs.study.errors import unwritable
from mctsvs.utils.formatting import printable
from mctsvs.utils.validation import StudyError

fcntl: Any = None
with contextlib.suppress(ImportError):  # Windows
    fcntl = importlib.import_module("fcntl")

ORPHANS = 5.0  # seconds that children of a dead process have to let go of its lock
HELPERS = ("-wal", "-shm", "-journal")  # endings of the files that SQLite keeps beside a database


def left_over(path: Path) -> list[str]:
    """SQLite's files beside this one, as far as they are there."""
    real = os.path.realpath(path)
    return [real + ending for ending in HELPERS if os.path.lexists(real + ending)]


def write_new(path: Path, data: bytes) -> None:
    """Write a new file; it is there under its name only once it is complete, and never replaces another one."""
    for helper in (
        [] if os.path.lexists(path) else left_over(path)
    ):  # SQLite would take what is in it for the end of the new file
        raise StudyError(
            f"{helper!r} is left over from another file called {path.name!r}: delete or move it before you begin a "
            f"new study there"
        )
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    try:
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            _rename(fresh, path)
        finally:
            with contextlib.suppress(OSError):  # what is left behind does no harm
                fresh.unlink()
    except FileExistsError:
        raise StudyError(f"{str(path)!r} exists already: give the name of a new file") from None
    except OSError as error:
        raise unwritable(path, error) from None


def _rename(fresh: Path, path: Path) -> None:
    try:
        os.link(fresh, path)  # unlike a renaming, fails where there is something
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if os.path.lexists(path):
            raise FileExistsError from None
        fresh.rename(path)


def save_beside(path: Path, data: bytes) -> Path:
    """Write the data under a free name like this one, beside it or else among the temporary files."""
    folders = [path.parent]
    with contextlib.suppress(OSError):  # there is none with room
        folders.append(Path(tempfile.gettempdir()))
    for folder in folders:
        for number in range(1, 1000):
            free = folder / f"{path.stem}-saved-{number}{path.suffix}"
            if os.path.lexists(free) or left_over(free):
                continue
            try:
                write_new(free, data)
            except StudyError:
                break
            return free
    raise StudyError(f"nothing could be written in {' or '.join(repr(str(folder)) for folder in folders)}")


class FileWatch:
    """Notices when somebody else changes a file, or SQLite's log beside it: their identity, size and time of change."""

    def __init__(self, path: Path) -> None:
        self.path, self.log = os.path.realpath(path), os.path.realpath(path) + "-wal"
        self.seen = self.now()

    def now(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return _traits(self.path), _traits(self.log)

    def note(self) -> None:
        """What it is now is right."""
        self.seen = self.now()

    def note_file(self) -> None:
        """The same, but what has happened to the log is still to be looked into."""
        self.seen = self.now()[0], self.seen[1]

    @property
    def changed(self) -> bool:
        return self.now() != self.seen

    @property
    def gone(self) -> str:
        """Why the file itself is no longer there, in words."""
        file = _traits(self.path)
        if not file:
            return "it was deleted or renamed"
        return "another file has taken its place" if file[:2] != self.seen[0][:2] else ""

    @property
    def log_gone(self) -> bool:
        """Whether the log alone is no longer there; who has it open still has what was in it."""
        (file, log), (old_file, old_log) = self.now(), self.seen
        return file == old_file and bool(old_log) and log[:2] != old_log[:2]

    def remove_log(self) -> None:
        """SQLite would take it for the end of a file that somebody has written over ours."""
        if _traits(self.log) == self.seen[1]:
            for ending in ("-wal", "-shm"):
                with contextlib.suppress(OSError):
                    os.unlink(self.path + ending)


def _traits(path: str) -> tuple[int, ...]:
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


_descriptors: set[int] = set()  # those whose locks a child made by fork must not keep alive
_written: set[str] = set()  # the studies that this process writes to
_guard = threading.RLock()  # of that set; the lock of a study that is forgotten may be released at any moment


class WriterLock:
    """One writer at a time: held from `__init__` to `release`, or to the end of the process, however that ends.

    It is a lock on a file beside the study, see `_lock`: the system releases it when the process dies.
    """

    def __init__(self, path: Path) -> None:
        self.name, self.study = str(path), os.path.realpath(path)
        self.file = f"{self.study}.lock"
        with _guard:
            if self.study in _written:
                raise StudyError(
                    f"the study {self.name!r} is already open in this process, {os.getpid()}: use it there, or close it"
                )
            try:
                self.descriptor = self._acquire()
            except OSError as error:
                raise unwritable(Path(self.file), error) from None
            _written.add(self.study)
            self.held = True
        try:
            os.ftruncate(self.descriptor, 0)
            os.write(self.descriptor, " on ".join(filter(None, (str(os.getpid()), socket.gethostname()))).encode())
        except OSError as error:
            self.release()
            raise unwritable(Path(self.file), error) from None

    def _acquire(self) -> int:
        last = time.monotonic() + ORPHANS
        while True:
            descriptor = os.open(self.file, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                _lock(descriptor)
            except OSError as error:
                owner = "unknown"
                with contextlib.suppress(OSError):
                    owner = printable(os.read(descriptor, 300).decode(errors="replace")) or owner
                os.close(descriptor)
                if error.errno not in (errno.EACCES, errno.EAGAIN):
                    raise
                if _died(owner) and time.monotonic() < last:
                    time.sleep(0.01)
                    continue
                raise StudyError(
                    f"the study {self.name!r} is being written to by process {owner}: wait for it, stop it, or open "
                    f"the study with readonly=True"
                ) from None
            # the owner before us may have removed the file between our open and our lock
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), os.stat(self.file)):
                    _descriptors.add(descriptor)
                    return descriptor
            os.close(descriptor)

    def release(self) -> None:
        with _guard:
            held, self.held = self.held, False
            if not held or self.study not in _written:  # a child made by fork holds no lock
                return
            _written.remove(self.study)
            with contextlib.suppress(OSError):  # what is left behind does no harm
                if os.path.samestat(os.fstat(self.descriptor), os.stat(self.file)):
                    os.unlink(self.file)
            _close(self.descriptor)


class SQLiteGuard:
    """Holds the shared locks of an open SQLite file once more, where the system has locks that stay.

    SQLite's own ones are dropped when anything in this process closes the file, such as a copy of the folder. The next
    program that closes the file then takes itself for the last one, and deletes the log under the run.
    """

    def __init__(self, path: Path) -> None:
        self.held: list[int] = []
        if not hasattr(fcntl, "F_OFD_SETLK"):
            return
        for name, start, length in (("", 0x40000002, 510), ("-shm", 128, 1)):  # as SQLite has them
            with contextlib.suppress(OSError):  # SQLite's own locks remain
                descriptor = os.open(os.path.realpath(path) + name, os.O_RDONLY)
                self.held.append(descriptor)
                _descriptors.add(descriptor)
                _set_lock(descriptor, fcntl.F_RDLCK, start, length)

    def unlock(self) -> None:
        """Before SQLite closes the file, to let it tidy up."""
        for descriptor in self.held:
            with contextlib.suppress(OSError):
                _set_lock(descriptor, fcntl.F_UNLCK)

    def close(self) -> None:
        """After SQLite has closed the file: this would drop its locks."""
        while self.held:
            _close(self.held.pop())


def _died(owner: str) -> bool:
    """Whether this was a process of this machine; a child that it made last may still have the lock for a moment."""
    process, _, host = owner.partition(" on ")
    if fcntl is None or not process.isdigit() or host != socket.gethostname():
        return False
    try:
        os.kill(int(process), 0)
    except OSError as error:
        return error.errno == errno.ESRCH
    return False


def _lock(descriptor: int) -> None:
    """Where there are such, a lock of the open file: no copy of the lock's file that is closed can release it."""
    if fcntl is None:
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
        return
    try:
        _set_lock(descriptor, fcntl.F_WRLCK)
    except OSError as error:
        if error.errno != errno.EINVAL:  # of a system that has no such locks
            raise
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _set_lock(descriptor: int, kind: int, start: int = 0, length: int = 0) -> None:
    command = getattr(fcntl, "F_OFD_SETLK", None)
    if command is None:
        raise OSError(errno.EINVAL, "no locks of open files")
    fcntl.fcntl(descriptor, command, struct.pack("hhqqi4x", kind, os.SEEK_SET, start, length, 0))


def _close(descriptor: int) -> None:
    _descriptors.discard(descriptor)
    with contextlib.suppress(OSError):  # it is closed all the same
        os.close(descriptor)


def _forget() -> None:
    """In a child made by fork: the locks are its parent's alone, and another thread may have been using the sets."""
    global _guard
    _guard = threading.RLock()
    _written.clear()
    for descriptor in list(_descriptors):
        _close(descriptor)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
