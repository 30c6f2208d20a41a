"""Standard output and error as the library writes to them: whatever becomes of the reader, the program goes on."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO


class Output:
    """A stream that replaces what it cannot encode, and drops what nobody can read any longer."""

    def __init__(self, stream: TextIO | None) -> None:
        self.stream = open(os.devnull, "w", encoding="utf-8") if stream is None else stream  # noqa: SIM115
        self.error: OSError | ValueError | None = None  # why it cannot be written

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        if self.error is None:
            try:
                self._write(text)
            except (OSError, ValueError) as error:  # a broken pipe, a full disk, a closed file
                self._drop(error)
        return len(text)

    def _write(self, text: str) -> None:
        try:
            self.stream.write(text)
        except UnicodeEncodeError as error:
            self.stream.write(text.encode(error.encoding, "replace").decode(error.encoding))

    def flush(self) -> None:
        if self.error is None:
            try:
                self.stream.flush()
            except (OSError, ValueError) as error:
                self._drop(error)

    def _drop(self, error: OSError | ValueError) -> None:
        self.error = error
        with contextlib.suppress(OSError, ValueError):  # what waits in the buffer goes nowhere
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.stream.fileno())


@contextlib.contextmanager
def lasting_output() -> Iterator[Output]:
    """Within it, everything that is printed goes through `Output`; yields standard output."""
    for descriptor in range(3):  # a closed one would become that of the next file, and get what is printed
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    out, err = Output(sys.stdout), Output(sys.stderr)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            yield out
        finally:
            out.flush()
            err.flush()


def complaint(output: Output) -> str:
    """What went wrong with it, if that matters: a reader such as `head` has seen enough."""
    error = output.error
    if error is None or (isinstance(error, OSError) and error.errno == errno.EPIPE):
        return ""
    return f"standard output cannot be written: {getattr(error, 'strerror', None) or error}"
