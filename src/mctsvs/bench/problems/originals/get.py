"""Getting a data set: find its originals, convert them, check the values, and keep the tables.

Originals come from files that are given, from an installed package, from another data set or from their published
address, in this order. The tables go into the user's data directory unless another one is given.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import io
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np

from mctsvs.bench.problems import data
from mctsvs.bench.problems.data_sets import DataSet, Original
from mctsvs.bench.problems.originals import packages
from mctsvs.bench.problems.originals.files import Arrays, Originals, Tables, plainly
from mctsvs.bench.problems.originals.plain_pickle import Refused
from mctsvs.utils.validation import InputError

COMMAND = "mctsvs bench data get"
CHUNK = 1 << 16  # bytes of a download at once


class Progress:
    """What is shown while a file is downloaded or read: nothing, unless a subclass shows it."""

    def download(self, name: str) -> Any:
        """An object as pooch wants it: `total`, `update`, `reset` and `close`; False: none."""
        return False

    def open(self, path: Path) -> BinaryIO:
        return plainly(path)


@dataclass(frozen=True)
class Made:
    """A data set as it was made."""

    folder: Path
    origin: str
    """What it was made from."""
    values: Literal["as known", "other than those known", "not compared"]
    size: int
    """Bytes."""


def how(known: DataSet, again: bool = False) -> str:
    """What to do for a data set that is missing or damaged: one command where one is enough."""
    if not known.converter:
        return (
            f"put {data.listed(list(known.files))} into a folder {known.name!r} there, or give another directory "
            f"with --data or ${data.ENVIRONMENT} (the original: {known.source})"
        )
    force = " --again" if again else ""
    if known.package and packages.find(known.package.module) is None:
        return "run pip install 'mctsvs[nas]'"
    if known.by_hand:
        names = known.called or data.listed([original.name for original in known.originals])
        text = f"download {names} from {known.source}, then run {COMMAND} {known.name} --from {_place(known)}{force}"
        return f"{text}, or use {known.instead}" if known.instead else text
    install = "" if at_hand(known) or importlib.util.find_spec("pooch") else "pip install 'mctsvs[data]', then "
    return f"run {install}{COMMAND} {known.name}{force}"


def _place(known: DataSet) -> str:
    """What to write after --from."""
    return known.originals[0].name if len(known.originals) == 1 else "FOLDER"


def at_hand(known: DataSet) -> bool:
    """Whether it can be made without a download."""
    if known.package:
        return packages.find(known.package.module) is not None
    return bool(known.needs) and data.lies(data.declared(known.needs)) is not None


def make(known: DataSet, given: Sequence[Path] = (), to: Path | None = None, progress: Progress | None = None) -> Made:
    """Make the data set's files in the directory `to`, from `given` files where there are any.

    Raises:
        InputError: An original cannot be had, or is not what was published. Nothing is kept then.
    """
    progress = progress or Progress()
    if not known.converter:
        raise InputError(f"the data set {known.name!r} cannot be made: {how(known)}")
    paths, origin, trusted = _originals(known, given, progress)
    if known.needs and data.lies(data.declared(known.needs)) is None:
        make(data.declared(known.needs), to=to, progress=progress)
    try:
        tables = _converted(known, paths, progress)
        values = _compared(known, tables)
        if values == "other than those known" and not trusted:
            fitting = f"; known are those of version {known.package.version}" if known.package else ""
            raise InputError(
                f"{origin} has other values than those known{fitting}: --from FILE takes them all the same"
            )
    except InputError:
        if not (given or known.package):  # a download that cannot be used is not kept either
            for path in paths.values():
                path.unlink(missing_ok=True)
        raise
    folder = (to or data.user_directory()) / known.name
    size = _keep(folder, tables)
    data.forget()
    return Made(folder, origin, values, size)


def _originals(known: DataSet, given: Sequence[Path], progress: Progress) -> tuple[dict[str, Path], str, bool]:
    """Name -> path of each original, where they come from, and whether other values than those known are accepted."""
    if given:
        return _given(known, given), data.listed([str(path) for path in given]), True
    if known.package:
        place = packages.find(known.package.module)
        if place is None:
            raise InputError(f"the data set {known.name!r} is in the package {known.package.name}: {how(known)}")
        folder = place / known.package.folder
        paths = {original.name: folder / original.name for original in known.originals}
        return paths, f"the package {known.package.name}", False
    if known.needs:
        return {}, f"the data set {known.needs}", True
    if known.by_hand:
        raise InputError(f"the data set {known.name!r} has no lasting address of its own: {how(known)}")
    paths = {original.name: download(known, original, progress) for original in known.originals}
    checked = all(original.checksum for original in known.originals)
    return paths, known.originals[0].addresses[0], checked


def _given(known: DataSet, given: Sequence[Path]) -> dict[str, Path]:
    """Each original among the files that are given, or in the folder."""
    if not known.originals:
        raise InputError(f"the data set {known.name!r} is made from {known.needs}, not from a file: leave out --from")
    for path in given:
        if not path.exists():
            raise InputError(f"there is no file {str(path)!r}")
    if len(known.originals) == 1 and len(given) == 1:
        (original,), (path,) = known.originals, given
        inside = path / original.name
        return {original.name: inside if inside.is_file() else path}
    files = {file.name: file for path in given for file in (sorted(path.iterdir()) if path.is_dir() else [path])}
    missing = [original.name for original in known.originals if original.name not in files]
    if missing:
        raise InputError(f"--from lacks {data.listed(missing)} of the data set {known.name!r}: give its folder")
    return {original.name: files[original.name] for original in known.originals}


def download(known: DataSet, original: Original, progress: Progress) -> Path:
    """The original in the cache, from the first address that answers."""
    try:
        import pooch
    except ImportError:
        raise InputError("a download needs pooch, not installed here: pip install 'mctsvs[data]'") from None
    pooch.get_logger().setLevel("ERROR")
    reasons = []
    for address in original.addresses:
        try:
            fetched = pooch.retrieve(
                address,
                known_hash=original.checksum and f"sha256:{original.checksum}",
                fname=original.name,
                path=cache() / known.name,
                downloader=pooch.HTTPDownloader(
                    progressbar=progress.download(original.name), chunk_size=CHUNK, timeout=60
                ),
            )
        except Exception as error:  # each layer of the network has errors of its own
            reasons.append(f"{address} ({_reason(error)})")
        else:
            return Path(fetched)
    raise InputError(
        f"{original.name} cannot be downloaded from {data.listed(reasons, 'or')}: "
        f"get it in another way, then run {COMMAND} {known.name} --from {_place(known)}"
    )


def cache() -> Path:
    """Where downloads are kept."""
    import pooch

    return Path(pooch.os_cache("mctsvs"))


def _reason(error: Exception) -> str:
    answer = getattr(error, "response", None)
    if answer is not None:
        return f"status {answer.status_code}"
    return "another checksum than published" if "hash" in str(error) else type(error).__name__


def _converted(known: DataSet, paths: Mapping[str, Path], progress: Progress) -> Tables:
    module, _, function = known.converter.partition(":")
    convert = getattr(importlib.import_module(f"mctsvs.bench.problems.originals.{module}"), function)
    try:
        tables: Tables = convert(Originals(paths, progress.open))
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"cannot read {error.filename or known.name!r}: {error.strerror or error}") from None
    except Exception as error:  # a damaged file can fail in any way
        reason = (
            str(error) if isinstance(error, Refused) else f"its contents are not as published ({type(error).__name__})"
        )
        where = (
            data.listed([repr(str(path)) for path in paths.values()])
            if len(paths) < 3
            else f"one of {len(paths)} files"
        )
        raise InputError(f"{where} is no original of {known.name!r}: {reason}") from None
    return tables


def digest(table: Arrays, compared: tuple[str, ...] = ()) -> str:
    """SHA-256 of the arrays whose names begin so: names, types, shapes and values."""
    found = hashlib.sha256()
    for name in sorted(table):
        if not compared or name.startswith(compared):
            array = np.ascontiguousarray(table[name])
            found.update(f"{name} {array.dtype.str} {table[name].shape}\n".encode())
            found.update(array.tobytes())
    return found.hexdigest()


def _compared(known: DataSet, tables: Tables) -> Literal["as known", "other than those known", "not compared"]:
    expected = known.contents
    alike = [
        digest(table, known.compared) == expected[file]
        for file, table in tables.items()
        if file in expected and not isinstance(table, bytes)
    ]
    if not alike:
        return "not compared"
    return "as known" if all(alike) else "other than those known"


def _keep(folder: Path, tables: Tables) -> int:
    """Write the files and their checksums, all or none; the bytes written."""
    contents = {file: table if isinstance(table, bytes) else _archive(table) for file, table in tables.items()}
    sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {file}\n" for file, content in contents.items())
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _temporary(folder) as made:
            for file, content in contents.items():
                (made / file).write_bytes(content)
            (made / data.OWN_CHECKSUMS).write_text(_others(folder, contents) + sums, encoding="utf-8")
            if not folder.exists():
                with contextlib.suppress(OSError):  # another process was first
                    os.rename(made, folder)
                    return sum(map(len, contents.values()))
            for file in (data.OWN_CHECKSUMS, *contents):
                os.replace(made / file, folder / file)
    except OSError as error:
        raise InputError(f"cannot write {str(folder)!r}: {error.strerror}; give a directory with --data") from None
    return sum(map(len, contents.values()))


@contextlib.contextmanager
def _temporary(folder: Path) -> Iterator[Path]:
    """A folder beside `folder`, gone afterwards."""
    made = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    made.chmod(0o755)
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _others(folder: Path, written: Mapping[str, object]) -> str:
    """The lines of the folder's checksums that stay."""
    try:
        lines = (folder / data.OWN_CHECKSUMS).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return ""
    kept = [line for line in lines if line.partition(" ")[2].strip().removeprefix("*") not in written]
    return "".join(f"{line}\n" for line in kept)


def _archive(table: Arrays) -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, allow_pickle=False, **table)
    return stream.getvalue()
