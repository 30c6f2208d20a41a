"""One writer at a time: a lock that ends with its process, however that ends.

A record lock on a file beside the study: the system releases it when the process dies, and children made by fork do
not inherit it, so that no orphaned worker can hold it. Within one process record locks do not count, hence the list.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from pathlib import Path

from mctsvs.study.errors import StudyError

_ours: dict[str, int] = {}  # studies this process writes to -> the process that opened them


class WriterLock:
    """Held from `__init__` to `release`, or to the end of the process."""

    def __init__(self, path: Path) -> None:
        self.name, self.key = str(path), os.path.realpath(path)
        self.file = f"{self.key}.lock"
        if _ours.get(self.key) == os.getpid():
            raise StudyError(
                f"the study {self.name!r} is open in this process, {os.getpid()}, already: use it there or close() it"
            )
        self.descriptor = self._acquire()
        os.ftruncate(self.descriptor, 0)
        os.write(self.descriptor, f"{os.getpid()} on {socket.gethostname()}".encode())
        _ours[self.key] = os.getpid()

    def _acquire(self) -> int:
        while True:
            try:
                descriptor = os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            except OSError as error:
                raise StudyError(f"cannot write to the study {self.name!r}: {error.strerror or error}") from None
            try:
                _lock(descriptor)
            except OSError as error:
                owner = os.read(descriptor, 200).decode(errors="replace").strip()
                os.close(descriptor)
                if error.errno not in (errno.EACCES, errno.EAGAIN):
                    raise StudyError(f"cannot lock the study {self.name!r}: {error.strerror or error}") from None
                raise self._taken(owner or "unknown") from None
            # the owner before us may have removed the file between our open and our lock
            try:
                if os.path.samestat(os.fstat(descriptor), os.stat(self.file)):
                    return descriptor
            except FileNotFoundError:
                pass
            os.close(descriptor)

    def _taken(self, owner: str) -> StudyError:
        return StudyError(
            f"the study {self.name!r} is being written to by process {owner}: wait for it or stop it, "
            f"or open the study with readonly=True"
        )

    def release(self) -> None:
        if _ours.get(self.key) == os.getpid():  # a child made by fork holds no lock
            del _ours[self.key]
            with contextlib.suppress(OSError):  # what is left behind does no harm
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
