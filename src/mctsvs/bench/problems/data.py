"""Where measured data is found: one folder for each data set, with files whose checksums are known.

A data set's folder is looked for in the directory given to `set_directory` (the command line's `--data DIR`), then in
`$MCTSVS_DATA`, then in the user's data directory. Nothing is shipped and nothing is downloaded unasked. What an
installed package ships, or another data set holds, is converted when it is first needed and kept in the user's
directory. All else that is missing is named, with the command that gets it.

What is converted has its checksum in a file SHA256SUMS beside it, which counts in place of the one known here.
"""

from __future__ import annotations

import functools
import hashlib
import io
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from mctsvs.bench.problems.data_sets import DATASETS as DATASETS
from mctsvs.bench.problems.data_sets import DataSet as DataSet
from mctsvs.utils.validation import InputError

ENVIRONMENT = "MCTSVS_DATA"
OWN_CHECKSUMS = "SHA256SUMS"
CHOSEN = "MCTSVS_DATA_CHOSEN"  # what `set_directory` was given: in the environment, for worker processes to inherit


@dataclass(frozen=True)
class DataFile:
    """Where a file lies, if anywhere, and whether it is what it should be."""

    file: str
    path: Path | None
    state: Literal["ok", "own", "unchecked", "damaged", "missing"]
    """`own`: as the user's SHA256SUMS says; `unchecked`: no checksum is known."""
    checksum: str | None
    """What it should be."""


class Arrays(dict[str, npt.NDArray[Any]]):
    """The arrays of one file; one that is not there is bad input."""

    def __init__(self, path: Path, loaded: Mapping[str, npt.NDArray[Any]]) -> None:
        super().__init__(loaded)
        self.path = path

    def __missing__(self, name: str) -> npt.NDArray[Any]:
        raise InputError(f"the file {str(self.path)!r} has no array {name!r}, but {listed(list(self))}")


def set_directory(path: str | os.PathLike[str] | None) -> None:
    """Look in `path` before anywhere else, in this process and in those it starts; None: no longer."""
    if path is None:
        os.environ.pop(CHOSEN, None)
        return
    if not Path(path).is_dir():
        raise InputError(
            f"there is no data directory {str(path)!r}: give a folder that holds folders such as nasbench201"
        )
    os.environ[CHOSEN] = str(Path(path).resolve())


def directories() -> list[Path]:
    """Where data is looked for, first to last."""
    named = [os.environ.get(name, "") for name in (CHOSEN, ENVIRONMENT)]
    return [*(Path(name) for name in named if name), user_directory()]


def user_directory() -> Path:
    """The user's own data directory, by the platform's custom."""
    if sys.platform == "win32":
        parent = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        parent = Path.home() / "Library" / "Application Support"
    else:
        parent = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(parent) / "mctsvs"


def declared(dataset: str) -> DataSet:
    """The declaration of a data set."""
    if dataset not in DATASETS:
        raise InputError(f"unknown data set {dataset!r}: use one of {', '.join(DATASETS)}")
    return DATASETS[dataset]


def folder(dataset: str) -> Path:
    """The first folder of that data set which holds any of its files; made now if all it takes is installed."""
    from mctsvs.bench.problems.originals import get

    known = declared(dataset)
    place = lies(known)
    if place is None and get.at_hand(known):
        place = get.make(known).folder
    if place is None:
        looked = listed([repr(str(place)) for place in directories()], "or")
        raise InputError(f"the data set {dataset!r} is not in {looked}: {get.how(known)}")
    return place


def lies(known: DataSet) -> Path | None:
    """The first folder of the data set which holds any of its files."""
    for place in directories():
        if any((place / known.name / file).is_file() for file in known.files):
            return place / known.name
    return None


def listed(words: list[str], joint: str = "and") -> str:
    """a, b and c."""
    return f" {joint} ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def content(dataset: str, file: str) -> bytes:
    """The bytes of a file, whose checksum holds where it is known."""
    return _read(dataset, file, folder(dataset) / file)


def arrays(dataset: str, file: str) -> dict[str, npt.NDArray[Any]]:
    """The arrays of an .npz file by name, not to be written to; read once in each process."""
    path = folder(dataset) / file
    return Arrays(path, _arrays(dataset, file, path))


def forget() -> None:
    """Read every file again when it is next asked for."""
    _arrays.cache_clear()


def found(dataset: str) -> list[DataFile]:
    """The state of each file of a data set."""
    known = declared(dataset)
    place = lies(known)
    if place is None:
        return [DataFile(file, None, "missing", checksum) for file, checksum in known.files.items()]
    return [
        _state(dataset, file, place / file) for file in _files(known) if file in known.files or (place / file).is_file()
    ]


def _state(dataset: str, file: str, path: Path) -> DataFile:
    expected, own = _expected(dataset, file, path)
    if not path.is_file():
        return DataFile(file, None, "missing", expected)
    try:
        _read(dataset, file, path)
    except InputError:
        return DataFile(file, path, "damaged", expected)
    return DataFile(file, path, "own" if own else "ok" if expected else "unchecked", expected)


def _expected(dataset: str, file: str, path: Path) -> tuple[str | None, bool]:
    """The checksum that a file must have, and whether it is the user's own."""
    try:
        lines = (path.parent / OWN_CHECKSUMS).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        lines = []
    for line in lines:
        checksum, _, name = line.partition(" ")
        if name.strip().removeprefix("*") == file:
            return checksum.lower(), True
    return _files(declared(dataset))[file], False


def _files(known: DataSet) -> dict[str, str | None]:
    return {**known.files, **known.more}


def _read(dataset: str, file: str, path: Path) -> bytes:
    known = declared(dataset)
    if file not in _files(known):
        raise InputError(f"the data set {dataset!r} has no file {file!r}: use one of {', '.join(_files(known))}")
    try:
        read = path.read_bytes()
    except FileNotFoundError:
        raise InputError(
            f"the file {str(path)!r} is missing beside the others of {dataset!r}: {_again(known)}"
        ) from None
    except OSError as error:
        raise InputError(f"cannot read {str(path)!r}: {error.strerror}") from None
    expected, _ = _expected(dataset, file, path)
    given = hashlib.sha256(read).hexdigest()
    if expected is not None and given != expected:
        raise InputError(
            f"the file {str(path)!r} is damaged or another version: its SHA-256 begins {given[:12]}, "
            f"not {expected[:12]}; {_again(known)}"
        )
    return read


def _again(known: DataSet) -> str:
    from mctsvs.bench.problems.originals import get

    return get.how(known, again=True)


@functools.cache
def _arrays(dataset: str, file: str, path: Path) -> dict[str, npt.NDArray[Any]]:
    try:
        with np.load(io.BytesIO(_read(dataset, file, path)), allow_pickle=False) as archive:
            loaded = dict(archive)
    except InputError:
        raise
    except Exception:  # a damaged archive can fail in any way
        raise InputError(f"the file {str(path)!r} is damaged: it is no .npz archive of plain arrays") from None
    for array in loaded.values():
        array.flags.writeable = False
    return loaded
