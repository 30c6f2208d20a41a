"""The originals that a converter reads: streams by name, with limits on what is taken from an archive."""

from __future__ import annotations

import functools
import io
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from mctsvs.bench.problems.originals.plain_pickle import Refused

Arrays = dict[str, npt.NDArray[Any]]
Tables = dict[str, Arrays | bytes]
"""The arrays of each file of a data set, or its bytes."""

MOST_BYTES = 1 << 30  # of a file or a member that is read as a whole: the largest published one has a quarter


def plainly(path: Path) -> BinaryIO:
    return path.open("rb")


class Originals:
    """Where each original lies.

    Args:
        paths: Name of the original -> its path.
        opener: Opens a path to read bytes, perhaps with a display of progress.
    """

    def __init__(self, paths: Mapping[str, Path], opener: Callable[[Path], BinaryIO] = plainly) -> None:
        self.paths = paths
        self._opener = opener

    def stream(self, name: str) -> BinaryIO:
        return self._opener(self.paths[name])

    def size(self, name: str) -> int:
        return self.paths[name].stat().st_size

    def content(self, name: str) -> bytes:
        """The bytes of a file of moderate size."""
        if self.size(name) > MOST_BYTES:
            raise Refused(f"it has {self.size(name):,} bytes")
        with self.stream(name) as stream:
            return stream.read()

    def text(self, name: str) -> str:
        return decoded(self.content(name))

    def members(self, name: str) -> Iterator[tuple[str, Callable[[], bytes]]]:
        """Path and content of each file of a folder, a zip or a tar archive."""
        path = self.paths[name]
        if path.is_dir():
            for file in sorted(path.rglob("*")):
                if file.is_file():
                    yield file.relative_to(path).as_posix(), file.read_bytes
            return
        content = self.content(name)
        if zipfile.is_zipfile(io.BytesIO(content)):
            yield from zipped(content)
        else:
            yield from _tarred(content)


def decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused("it is no text") from None


def zipped(content: bytes) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """The members of a zip archive, which can be read at any time."""
    archive = zipfile.ZipFile(io.BytesIO(content))
    for member in archive.infolist():
        if not member.is_dir():
            yield member.filename, functools.partial(_unzipped, archive, member)


def _unzipped(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    with archive.open(member) as stream:
        return _bounded(stream, member.filename)


def _tarred(content: bytes) -> Iterator[tuple[str, Callable[[], bytes]]]:
    try:
        archive = tarfile.TarFile.open(fileobj=io.BytesIO(content), mode="r:*")
        for member in archive:
            if member.isfile():
                yield member.name, functools.partial(_untarred, archive, member)
    except tarfile.TarError:
        raise Refused("it is no folder, no zip and no tar archive") from None


def _untarred(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    stream = archive.extractfile(member)
    assert stream is not None  # a file has content
    return _bounded(stream, member.name)


def _bounded(stream: Any, name: str) -> bytes:
    """All of a stream, however little its archive says it is."""
    content: bytes = stream.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise Refused(f"{name} in it has more than {MOST_BYTES:,} bytes")
    return content


def single(values: object) -> npt.NDArray[np.float32]:
    """Numbers in the tables' precision, all of them finite."""
    found = np.asarray(values, dtype=np.float64)
    if not np.isfinite(found).all():
        raise Refused("some of its numbers are not finite")
    return found.astype(np.float32)
