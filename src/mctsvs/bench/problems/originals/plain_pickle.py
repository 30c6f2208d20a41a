"""Pickles read without running anything that they name.

Lists, dicts, tuples, strings and numbers come back, numpy's scalars among them. A pickle that asks for any other class
or function is refused.
"""

from __future__ import annotations

import collections
import gc
import io
import pickle
import struct
from collections.abc import Callable
from typing import Any, BinaryIO

FORMATS = {"f4": "f", "f8": "d", "i4": "i", "i8": "q", "u4": "I", "u8": "Q", "i1": "b", "u1": "B", "b1": "?"}


class Refused(Exception):
    """A file is not what was published: the text completes the sentence 'the file is no X: it ...'."""


class _Type:
    """Stands for a numpy type while its scalars are read."""

    def __init__(self, code: str, *_: object) -> None:
        self.code = FORMATS[code]

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.unpack = struct.Struct((">" if state[1] == ">" else "<") + self.code).unpack


def _scalar(kind: _Type, content: bytes) -> Any:
    return kind.unpack(content)[0]


def _encode(text: str, encoding: str) -> bytes:
    """How old pickles write bytes."""
    return text.encode("latin1" if encoding == "latin1" else "ascii")


STAND_INS: dict[tuple[str, str], Callable[..., Any]] = {
    ("numpy", "dtype"): _Type,
    ("numpy.core.multiarray", "scalar"): _scalar,
    ("numpy._core.multiarray", "scalar"): _scalar,
    ("_codecs", "encode"): _encode,
    ("collections", "OrderedDict"): collections.OrderedDict,
}


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Callable[..., Any]:
        try:
            return STAND_INS[module, name]
        except KeyError:
            raise Refused(f"it asks for {module}.{name}") from None

    def persistent_load(self, identity: Any) -> Any:
        raise Refused("it refers to something outside")


def read(content: bytes | BinaryIO, count: int) -> list[Any]:
    """The first `count` objects, pickled one after the other; raises `Refused`."""
    stream = io.BytesIO(content) if isinstance(content, bytes) else content
    collecting = gc.isenabled()
    gc.disable()  # a million small objects that all stay: looking for garbage among them doubles the time
    try:
        return [_Reader(stream).load() for _ in range(count)]
    except Refused:
        raise
    except Exception as error:  # a damaged pickle can fail in any way
        raise Refused(f"it is no pickle of plain data ({type(error).__name__})") from None
    finally:
        if collecting:
            gc.enable()
