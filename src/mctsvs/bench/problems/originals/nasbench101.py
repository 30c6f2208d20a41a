"""NAS-Bench-101 from its TFRecord file, without TensorFlow.

A record is its length (8 bytes), the length's checksum (4), the content and the content's checksum (4). The content is
a list in JSON: the cell's hash, epochs, adjacency matrix as digits, operations, and the metrics of one training as a
protocol buffer in base 64. Of the metrics, field 1 are the evaluations before, halfway through and after the training,
each with training time (field 2) and test accuracy (field 5), and field 2 is the number of parameters.

The table has the means over the trainings of 108 epochs, by ascending hash.
"""

from __future__ import annotations

import base64
import json
import math
import struct
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

from mctsvs.bench.problems.nasbench101 import ACCURACY_UNIT, HASH_DIGITS
from mctsvs.bench.problems.originals.files import Originals, Tables, single
from mctsvs.bench.problems.originals.plain_pickle import Refused

CELLS = 423_624
EPOCHS = 108
RUNS = 3
MOST_RECORD = 1 << 20  # bytes; a published one has fewer than two thousand
OPERATIONS = {"conv3x3-bn-relu": 0, "conv1x1-bn-relu": 1, "maxpool3x3": 2}
TIME, TEST = 2, 5  # fields of an evaluation
EVALUATION, PARAMETERS = 1, 2  # fields of the metrics


def convert(originals: Originals, cells: int = CELLS) -> Tables:
    """The table of `cells` cells, and their graphs."""
    found: dict[str, list[Any]] = {}
    (name,) = originals.paths
    with originals.stream(name) as stream:
        for record in records(stream):
            _add(found, record)
    if len(found) != cells:
        raise Refused(f"it has {len(found):,} cells of {EPOCHS} epochs, not {cells:,}")
    few = sum(len(row[3]) != RUNS for row in found.values())
    if few:
        raise Refused(f"{few:,} of its cells have no {RUNS} trainings")
    return {"nasbench101.npz": _measured(found), "nasbench101_archs.npz": _graphs(found)}


def _add(found: dict[str, list[Any]], record: bytes) -> None:
    fingerprint, epochs, matrix, operations, metrics = json.loads(record)
    if epochs != EPOCHS:
        return
    seconds, accuracy, parameters = trained(base64.b64decode(metrics))
    # few matrices and lists of operations are shared by many cells
    row = found.setdefault(fingerprint, [sys.intern(matrix), sys.intern(operations), parameters, [], []])
    row[3].append(accuracy)
    row[4].append(seconds)


def _measured(found: dict[str, list[Any]]) -> dict[str, Any]:
    order = sorted(found)
    hashes = np.array([int(fingerprint[:HASH_DIGITS], 16) for fingerprint in order], dtype=np.uint64)
    step = np.diff(hashes, prepend=np.uint64(0))
    if len(np.unique(hashes)) < len(hashes):
        raise Refused(f"two of its cells have hashes with the same first {HASH_DIGITS} digits")
    accuracy = np.array([sum(found[fingerprint][3]) / RUNS for fingerprint in order])
    if not ((accuracy >= 0) & (accuracy <= 1)).all():
        raise Refused("some of its accuracies are not between 0 and 1")
    return {
        "hash44_delta": step.astype(np.uint32) if step.max() < 2**32 else step,
        "test_acc_x29952": np.rint(accuracy * ACCURACY_UNIT).astype(np.uint16),
        "train_time_s": single([sum(found[fingerprint][4]) / RUNS for fingerprint in order]),
    }


def _graphs(found: dict[str, list[Any]]) -> dict[str, Any]:
    """Graphs by number of vertices and edges as bits, the upper triangle row by row; operations in base 3."""
    order = sorted(found)
    shapes, codes = [], []
    for fingerprint in order:
        matrix, operations = found[fingerprint][:2]
        n = math.isqrt(len(matrix))
        pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
        shapes.append((n, sum(1 << k for k, (i, j) in enumerate(pairs) if matrix[i * n + j] == "1")))
        code = 0
        for operation in operations.split(",")[1:-1]:
            code = 3 * code + OPERATIONS[operation]
        codes.append(code)
    graphs = sorted(set(shapes))
    places = {graph: k for k, graph in enumerate(graphs)}
    return {
        "graph_n": np.array([n for n, _ in graphs], dtype=np.uint8),
        "graph_adj_bits": np.array([bits for _, bits in graphs], dtype=np.uint32),
        "graph_id": np.array([places[shape] for shape in shapes], dtype=np.uint16),
        "ops_code": np.array(codes, dtype=np.uint8),
        "params": np.array([found[fingerprint][2] for fingerprint in order], dtype=np.uint32),
    }


def records(stream: BinaryIO) -> Iterator[bytes]:
    """The contents of a TFRecord file."""
    while header := stream.read(12):
        if len(header) < 12:
            raise Refused("it ends within a record")
        length, checksum = struct.unpack("<QI", header)
        if masked_crc(header[:8]) != checksum or length > MOST_RECORD:
            raise Refused("it is no TFRecord file, or damaged")
        content = stream.read(length + 4)
        if len(content) < length + 4:
            raise Refused("it ends within a record")
        yield content[:-4]


def _crc_table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


CRC = _crc_table()


def masked_crc(content: bytes) -> int:
    """CRC-32C (Castagnoli), rotated and shifted as TFRecord files have it."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc = crc >> 8 ^ CRC[crc & 0xFF ^ byte]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def fields(content: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a protocol buffer: whole numbers, doubles and bytes."""
    place = 0
    while place < len(content):
        key, place = _varint(content, place)
        kind = key & 7
        if kind == 0:
            value: Any
            value, place = _varint(content, place)
        elif kind == 1:
            (value,) = struct.unpack_from("<d", content, place)
            place += 8
        elif kind == 2:
            length, place = _varint(content, place)
            value = content[place : place + length]
            if len(value) < length:
                raise Refused("some of its metrics are cut off")
            place += length
        else:
            raise Refused("some of its metrics are of an unknown kind")
        yield key >> 3, value


def _varint(content: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place


def trained(metrics: bytes) -> tuple[float, float, int]:
    """Seconds, test accuracy and number of parameters after the training."""
    last, parameters = b"", 0
    for field, value in fields(metrics):
        if field == EVALUATION:
            last = value
        elif field == PARAMETERS:
            parameters = value
    ended = dict(fields(last))
    return ended[TIME], ended[TEST], parameters
