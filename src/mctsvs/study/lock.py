"""One writer at a time: a lock that ends with its process, however that ends.

A record lock on a file beside the study: the system releases it when the process dies, and children made by fork do
not inherit it, so that no orphaned worker can hold it. Within one process record locks do not count, hence the list
of files, by device and number, whatever their names.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import socket
import stat
import threading
from pathlib import Path

from mctsvs.utils.validation import StudyError

FileNumber = tuple[int, int]  # device and inode

_ours: dict[FileNumber, int] = {}  # studies this process writes to, and their locks -> the process that opened them
_guard = threading.RLock()  # of the list; the lock of a study that is forgotten may be released at any moment
OWN = re.compile(r"\d+ on \S+")  # what such a file holds; in another one we write nothing


class WriterLock:
    """Held from `__init__` to `release`, or to the end of the process."""

    def __init__(self, path: Path) -> None:
        self.name, self.study = str(path), os.path.realpath(path)
        self.file = f"{self.study}.lock"
        with _guard:
            self._refuse_second()
            self.descriptor = self._acquire()
            os.ftruncate(self.descriptor, 0)
            os.lseek(self.descriptor, 0, os.SEEK_SET)
            os.write(self.descriptor, f"{os.getpid()} on {socket.gethostname()}".encode())
            self.numbers = [_number(os.fstat(self.descriptor))]
            _ours[self.numbers[0]] = os.getpid()

    def claim(self) -> None:
        """Find the study itself, now that it is there, under any other name it may have."""
        with _guard:
            found = os.stat(self.study)
            if stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
                raise StudyError(
                    f"the study {self.name!r} has another name (a hard link), under which it could be written to "
                    f"unseen: make a copy of it, or delete one of the names"
                )
            self._refuse_second()
            self.numbers.append(_number(found))
            _ours[self.numbers[-1]] = os.getpid()

    def _refuse_second(self) -> None:
        """Before the file is opened: closing it again would end the lock that this process has."""
        mine = getattr(self, "numbers", [])
        for file in (self.study, self.file):
            with contextlib.suppress(OSError):
                number = _number(os.stat(file))
                if number not in mine and _ours.get(number) == os.getpid():
                    raise StudyError(
                        f"the study {self.name!r} is open in this process, {os.getpid()}, already: use it there or "
                        f"close() it"
                    )

    def _acquire(self) -> int:
        while True:
            descriptor = self._open()
            try:
                _lock(descriptor)
            except OSError as error:
                owner = _text(descriptor)
                os.close(descriptor)
                if error.errno not in (errno.EACCES, errno.EAGAIN):
                    raise StudyError(f"cannot lock the study {self.name!r}: {error.strerror or error}") from None
                raise self._taken(owner or "unknown") from None
            # the owner before us may have removed the file between our open and our lock
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), os.stat(self.file)):
                    return descriptor
            os.close(descriptor)

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
        try:
            descriptor = os.open(self.file, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
                raise self._in_the_way() from None
            raise StudyError(f"cannot write to the study {self.name!r}: {error.strerror or error}") from None
        text = _text(descriptor) if _is_plain(descriptor) else "no text"
        if text and not OWN.fullmatch(text):
            os.close(descriptor)
            raise self._in_the_way()
        return descriptor

    def _in_the_way(self) -> StudyError:
        return StudyError(
            f"cannot lock the study {self.name!r}: {self.file!r} is there already and is not a lock of mctsvs; "
            f"move it away, or give the study another name"
        )

    def _taken(self, owner: str) -> StudyError:
        return StudyError(
            f"the study {self.name!r} is being written to by process {owner}: wait for it or stop it, "
            f"or open the study with readonly=True"
        )

    def release(self) -> None:
        with _guard:
            numbers, self.numbers = self.numbers, []
            if numbers and _ours.get(numbers[0]) == os.getpid():  # a child made by fork holds no lock
                for number in numbers:
                    del _ours[number]
                with contextlib.suppress(OSError):  # what is left behind does no harm
                    if os.path.samestat(os.fstat(self.descriptor), os.stat(self.file)):
                        os.unlink(self.file)
                os.close(self.descriptor)


def _number(found: os.stat_result) -> FileNumber:
    return found.st_dev, found.st_ino


def _is_plain(descriptor: int) -> bool:
    return stat.S_ISREG(os.fstat(descriptor).st_mode)


def _text(descriptor: int) -> str:
    os.lseek(descriptor, 0, os.SEEK_SET)
    return os.read(descriptor, 300).decode(errors="replace").strip()


def _lock(descriptor: int) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
    else:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _forget() -> None:
    """In a child made by fork, where another thread may have been using the list."""
    global _guard
    _guard = threading.RLock()
    _ours.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
