"""Plain data as bytes: numbers, strings, lists and dicts as JSON, arrays behind it as they are in memory.

    8 bytes: length of the JSON | JSON, an array as {"array": [dtype, shape, position]} | bytes of the arrays

Reading builds data and nothing else: no pickle, no names of classes or functions.
"""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import numpy as np

from mctsvs.utils.validation import Array, Indices

DTYPES = {
    np.dtype(name).str: np.dtype(name)
    for name in ("<f8", "<f4", "<i8", "<i4", "<i2", "<i1", "<u8", "<u4", "<u2", "<u1", "bool")
}

DEEPEST = 100  # lists and dicts inside each other


def pack(value: Any) -> bytes:
    """The bytes of a value made of None, bools, numbers, strings, lists, dicts with string keys, and arrays."""
    blobs: list[bytes] = []
    position = 0

    def plain(item: Any) -> Any:
        nonlocal position
        if item is None or isinstance(item, bool | int | float | str):
            return item
        if isinstance(item, dict):
            if not all(isinstance(key, str) for key in item) or "array" in item:
                raise TypeError(f"keys must be strings other than 'array': {list(item)}")
            return {key: plain(part) for key, part in item.items()}
        if isinstance(item, list | tuple):
            return [plain(part) for part in item]
        if isinstance(item, np.generic):
            return item.item()
        if isinstance(item, np.ndarray):
            dtype = item.dtype.newbyteorder("<")
            if dtype.str not in DTYPES:
                raise TypeError(f"arrays must hold numbers, not {item.dtype}")
            blobs.append(item.astype(dtype, copy=False).tobytes())
            position += len(blobs[-1])
            return {"array": [dtype.str, list(item.shape), position - len(blobs[-1])]}
        raise TypeError(f"not plain data: {type(item)}")

    text = json.dumps(plain(value), separators=(",", ":")).encode()
    return b"".join([struct.pack("<q", len(text)), text, *blobs])


def unpack(data: bytes) -> Any:
    """The value whose bytes these are; ValueError if they are none, or more than they need to be."""
    if len(data) < 8:
        raise ValueError("too short")
    (length,) = struct.unpack_from("<q", data)
    start = 8 + length
    if not 0 <= length <= len(data) - 8:
        raise ValueError("the length does not fit")

    left = len(data) - start  # bytes of arrays; each belongs to one

    def full(item: Any, depth: int) -> Any:
        nonlocal left
        if depth > DEEPEST:
            raise ValueError("nested too deeply")
        if isinstance(item, list):
            return [full(part, depth + 1) for part in item]
        if not isinstance(item, dict):
            return item
        if set(item) == {"array"}:
            name, shape, position = item["array"]
            dtype, count = DTYPES[name], math.prod(shape)
            left -= dtype.itemsize * count
            if left < 0 or min(shape, default=0) < 0 or position < 0:
                raise ValueError("an array does not fit")
            return np.frombuffer(data, dtype, count, start + position).reshape(shape).copy()
        return {key: full(part, depth + 1) for key, part in item.items()}

    try:
        return full(json.loads(data[8:start]), 0)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def pack_point(point: Array) -> bytes:
    return point.astype("<f8", copy=False).tobytes()


def unpack_point(data: bytes) -> Array:
    return np.frombuffer(data, "<f8").astype(np.float64, copy=False)


def pack_positions(positions: Indices, n: int) -> bytes:
    """Positions among n: nothing where it is all of them in order, a bit each, or a list where that is shorter."""
    ascending = bool((positions[1:] > positions[:-1]).all())
    if ascending and len(positions) == n:
        return b""
    if ascending and 4 * len(positions) > n // 8:
        mask = np.zeros(n, np.bool_)
        mask[positions] = True
        return b"b" + np.packbits(mask).tobytes()
    return b"i" + positions.astype("<i4").tobytes()


def unpack_positions(data: bytes, n: int) -> Indices:
    if not data:
        return np.arange(n)
    if data[:1] == b"b":
        return np.flatnonzero(np.unpackbits(np.frombuffer(data, np.uint8, offset=1), count=n))
    if data[:1] == b"i":
        positions = np.frombuffer(data, "<i4", offset=1).astype(np.intp)
        if positions.size and not 0 <= positions.min() <= positions.max() < n:
            raise ValueError("positions beyond the last variable")
        return positions
    raise ValueError("unknown form of positions")
