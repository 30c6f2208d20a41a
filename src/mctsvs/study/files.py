"""The files of a study on the disk: written whole, locked by one writer, and watched while a run uses them."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import socket
import tempfile
import threading
from pathlib import Path

from mctsvs.study.errors import unwritable
from mctsvs.utils.validation import StudyError

HELPERS = ("-wal", "-shm", "-journal")  # endings of the files that SQLite keeps beside a database


def left_over(path: Path) -> list[str]:
    """SQLite's files beside this one, as far as they are there."""
    real = os.path.realpath(path)
    return [real + ending for ending in HELPERS if os.path.lexists(real + ending)]


def write_new(path: Path, data: bytes) -> None:
    """Write a new file; it is there under its name only once it is complete, and never replaces another one."""
    for helper in left_over(path):  # SQLite would take what is in it for the end of the new file
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
            fresh.unlink(missing_ok=True)
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
    for folder in (path.parent, Path(tempfile.gettempdir())):
        for number in range(1, 1000):
            free = folder / f"{path.stem}-saved-{number}{path.suffix}"
            if os.path.lexists(free) or left_over(free):
                continue
            try:
                write_new(free, data)
            except StudyError:
                break
            return free
    raise StudyError(f"nothing could be written beside {str(path)!r} or in {tempfile.gettempdir()!r}")


class FilePresence:
    """Notices when a file, or SQLite's log beside it, is no longer the one that was opened."""

    def __init__(self, path: Path) -> None:
        self.path, self.log = os.path.realpath(path), os.path.realpath(path) + "-wal"
        found = os.stat(self.path)
        self.file, self.size = _identity(found), found.st_size
        self.log_file: tuple[int, int] | None = None  # made at the first change

    def wrong(self) -> str:
        """What has happened to it, in words; empty if nothing has."""
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            return "it was deleted or renamed"
        if _identity(found) != self.file:
            return "another file has taken its place"
        if found.st_size < self.size:
            return f"it was cut off after {found.st_size} bytes"
        self.size = found.st_size
        try:
            log = _identity(os.stat(self.log))
        except FileNotFoundError:
            return "" if self.log_file is None else f"{self.log!r} was deleted"
        self.log_file = self.log_file or log
        return "" if log == self.log_file else f"another file has taken the place of {self.log!r}"


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


_written: set[str] = set()  # the studies that this process writes to
_guard = threading.RLock()  # of that set; the lock of a study that is forgotten may be released at any moment


class WriterLock:
    """One writer at a time: held from `__init__` to `release`, or to the end of the process, however that ends.

    It is a record lock on a file beside the study: the system releases it when the process dies, and children made by
    fork do not inherit it, so that no orphaned worker can hold it. Within one process record locks do not count, hence
    the set of files.
    """

    def __init__(self, path: Path) -> None:
        self.name, self.study = str(path), os.path.realpath(path)
        self.file = f"{self.study}.lock"
        with _guard:
            if self.study in _written:  # opening and closing the lock's file again would end the lock
                raise StudyError(
                    f"the study {self.name!r} is already open in this process, {os.getpid()}: use it there, or close it"
                )
            self.descriptor = self._acquire()
            _written.add(self.study)
            self.held = True
        try:
            os.ftruncate(self.descriptor, 0)
            os.write(self.descriptor, f"{os.getpid()} on {socket.gethostname()}".encode())
        except OSError as error:
            self.release()
            raise unwritable(Path(self.file), error) from None

    def _acquire(self) -> int:
        while True:
            try:
                descriptor = os.open(self.file, os.O_RDWR | os.O_CREAT, 0o666)
            except OSError as error:
                raise StudyError(f"cannot write to the study {self.name!r}: {error.strerror or error}") from None
            try:
                _lock(descriptor)
            except OSError as error:
                owner = os.read(descriptor, 300).decode(errors="replace") or "unknown"
                os.close(descriptor)
                if error.errno not in (errno.EACCES, errno.EAGAIN):
                    raise StudyError(f"cannot lock the study {self.name!r}: {error.strerror or error}") from None
                raise StudyError(
                    f"the study {self.name!r} is being written to by process {owner}: wait for it, stop it, or open "
                    f"the study with readonly=True"
                ) from None
            # the owner before us may have removed the file between our open and our lock
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), os.stat(self.file)):
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
            os.close(self.descriptor)


def _lock(descriptor: int) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
    else:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _forget() -> None:
    """In a child made by fork, where another thread may have been using the set."""
    global _guard
    _guard = threading.RLock()
    _written.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
