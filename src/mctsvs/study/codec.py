"""Plain data as bytes: numbers, strings, lists and dicts as JSON, and behind it the arrays as they are in memory.

    8 bytes: length of the JSON | JSON, an array as {"array": [dtype, shape, position]} | bytes of the arrays

Reading builds data and nothing else: there is no pickle, and no name of a class or function. `numpy.savez` does the
same, but a method's state has more than a hundred small arrays, and each costs it a header.
"""

from __future__ import annotations

import functools
import json
import math
from typing import Any

import numpy as np

from mctsvs.utils.validation import Array, Indices

DTYPES = {
    np.dtype(name).str: np.dtype(name)
    for name in ("<f8", "<f4", "<i8", "<i4", "<i2", "<i1", "<u8", "<u4", "<u2", "<u1", "bool")
}


def pack(value: Any) -> bytes:
    """The bytes of a value made of None, bools, numbers, strings, lists, dicts with string keys, and arrays."""
    arrays = bytearray()

    def plain(item: Any) -> Any:
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
            position = len(arrays)
            arrays.extend(item.astype(dtype, copy=False).tobytes())
            return {"array": [dtype.str, list(item.shape), position]}
        raise TypeError(f"not plain data: {type(item)}")

    text = json.dumps(plain(value), separators=(",", ":")).encode()
    return len(text).to_bytes(8, "little") + text + arrays


def unpack(data: bytes) -> Any:
    """The value whose bytes these are."""
    start = 8 + int.from_bytes(data[:8], "little")

    def with_arrays(item: dict[str, Any]) -> Any:
        if item.keys() != {"array"}:
            return item
        name, shape, position = item["array"]
        return np.frombuffer(data, DTYPES[name], math.prod(shape), start + position).reshape(shape).copy()

    return json.loads(data[8:start], object_hook=with_arrays)


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


@functools.lru_cache(maxsize=8)  # the points of a batch share their variables
def unpack_positions(data: bytes, n: int) -> Indices:
    if not data:
        return np.arange(n)
    if data[:1] == b"b":
        return np.flatnonzero(np.unpackbits(np.frombuffer(data, np.uint8, offset=1), count=n))
    return np.frombuffer(data, "<i4", offset=1).astype(np.intp)
