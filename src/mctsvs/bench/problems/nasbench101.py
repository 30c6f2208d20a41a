"""NAS-Bench-101 as in the paper: a cell trained in under 30 minutes, D = 36.

Notation: a cell has seven vertices, 0 the input and 6 the output. `into[v]` and `out[v]` are sets of vertices as bits
of an integer. The first 15 variables are scores of the three operations of vertices 1 to 5, the other 21 scores of the
edges 0-1, 0-2, ..., 5-6. Edges are added from the highest score down, while it is above 1e-5, and what lies on no path
from input to output is cut away, until more than nine edges remain. The value is that of the last cell on this way
whose training takes less than 30 minutes, 0 if there is none.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mctsvs.bench.problems import data
from mctsvs.bench.problems.declare import box, single
from mctsvs.bench.problems.tables import NAS_OPTIONS, Columns, Lazy
from mctsvs.objectives.problem import Variation
from mctsvs.utils.validation import Array, InputError

VERTICES = 7
OUTPUT = VERTICES - 1
EDGES = [(i, j) for i in range(VERTICES) for j in range(i + 1, VERTICES)]
OPERATION_SCORES = 15
DIMENSION = OPERATION_SCORES + len(EDGES)
MOST_EDGES = 9
LEAST_SCORE = 1e-5
LIMIT = 1800.0
HASH_DIGITS = 11  # hexadecimal digits of a cell's hash that the table keeps
ACCURACY_UNIT = 29952  # accuracies are sums over three runs of 9,984 images


@dataclass(frozen=True)
class Cell:
    """A cell without what lies on no path from input to output."""

    kept: int
    """Its vertices, as bits."""
    out: tuple[int, ...]
    """Where the edges of each of the seven vertices lead, as bits; those of vertices not kept are to be ignored."""
    edges: int

    def fingerprint(self, operations: list[int]) -> str:
        """The official hash, the same for all cells that differ in nothing but the order of their vertices.

        `operations` of vertices 1 to 5: 0 convolution 3x3, 1 convolution 1x1, 2 pooling.
        """
        vertices = [v for v in range(VERTICES) if self.kept >> v & 1]
        after = [[k for k, w in enumerate(vertices) if self.out[v] >> w & 1] for v in vertices]
        before = [[k for k, w in enumerate(vertices) if self.out[w] >> v & 1] for v in vertices]
        labels = [-1, *operations, -2]
        known = [
            _md5(f"({len(outgoing)}, {len(incoming)}, {labels[v]})")
            for v, outgoing, incoming in zip(vertices, after, before, strict=True)
        ]
        for _ in vertices:
            known = [
                _md5(f"{_joined(known, incoming)}|{_joined(known, outgoing)}|{own}")
                for own, outgoing, incoming in zip(known, after, before, strict=True)
            ]
        return _md5(str(sorted(known)))


def _joined(known: list[str], chosen: list[int]) -> str:
    return "".join(sorted([known[k] for k in chosen]))


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def cells(scores: Array) -> Iterator[Cell]:
    """The valid cells that adding edges by their scores passes through, each one once."""
    into, out = [0] * VERTICES, [0] * VERTICES
    previous = 0
    order = np.argsort(-scores, kind="stable")
    for k, score in zip(order.tolist(), scores[order].tolist(), strict=True):
        if score <= LEAST_SCORE:
            return
        i, j = EDGES[k]
        into[j] |= 1 << i
        out[i] |= 1 << j
        cell = prune(into, out)
        if cell.edges > MOST_EDGES:
            return
        if cell.edges > previous:  # edges are only added, so an equal number of them means the same cell
            yield cell
            previous = cell.edges


def prune(into: list[int], out: list[int]) -> Cell:
    """What lies on paths from input to output; without edges if there is none."""
    reached, reaching = 1, 1 << OUTPUT
    for v in range(1, VERTICES):
        if into[v] & reached:
            reached |= 1 << v
    for v in range(OUTPUT - 1, -1, -1):
        if out[v] & reaching:
            reaching |= 1 << v
    kept = reached & reaching
    return Cell(kept, tuple(out), sum((out[v] & kept).bit_count() for v in range(VERTICES) if kept >> v & 1))


@dataclass(frozen=True, eq=False)
class Cells(Lazy):
    """The accuracy of the cell that a point leads to."""

    @functools.cached_property
    def hashes(self) -> npt.NDArray[np.uint64]:
        """The beginnings of all cells' hashes, ascending; the order of the columns."""
        return np.cumsum(self._arrays["hash44_delta"], dtype=np.uint64)

    @functools.cached_property
    def columns(self) -> Columns:
        arrays = self._arrays
        return Columns(arrays["test_acc_x29952"] / ACCURACY_UNIT, arrays["train_time_s"].astype(np.float64))

    @property
    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        return data.arrays("nasbench101", "nasbench101.npz")

    def row(self, cell: Cell, operations: list[int]) -> int:
        key = np.uint64(int(cell.fingerprint(operations)[:HASH_DIGITS], 16))
        row = int(np.searchsorted(self.hashes, key))
        if row == len(self.hashes) or self.hashes[row] != key:
            raise InputError(f"the table of NAS-Bench-101 lacks the cell {cell.fingerprint(operations)}: get it again")
        return row

    def chosen(self, x: Array) -> int | None:
        """The row of the last cell within the limit; None: there is none."""
        operations = x[:OPERATION_SCORES].reshape(-1, 3).argmax(axis=1).tolist()
        seconds = self.columns.seconds
        assert seconds is not None
        for cell in reversed(list(cells(x[OPERATION_SCORES:]))):
            row = self.row(cell, operations)
            if seconds[row] < LIMIT:
                return row
        return None

    def __call__(self, x: Array) -> float:
        row = self.chosen(x)
        return 0.0 if row is None else float(self.columns.values[row])

    def seconds(self, x: Array) -> float:
        """What training the chosen cell would take, by measurement or estimate; 0 where none is trained."""
        row, seconds = self.chosen(x), self.columns.seconds
        return 0.0 if row is None or seconds is None else float(seconds[row])


def _details(variation: Variation) -> dict[str, Any]:
    function = Cells()
    values, seconds = function.columns
    assert seconds is not None
    optimum = float(values[seconds < LIMIT].max())
    return {"function": function, "optimum": optimum, "paper_options": dict(NAS_OPTIONS)}


FAMILIES = [
    single(
        "NASBench101",
        "NAS[-_]?Bench[-_]?101",
        "Cell of up to 9 edges trained in under 30 minutes; test accuracy",
        "NAS-Bench-101: test accuracy on CIFAR-10 of a cell trained in under 30 minutes; "
        "some tables have estimated times for most cells",
        box(0.0, 1.0, DIMENSION),
        _details,
        evaluation="table",
        optimum="0.94024",
        data="nasbench101",
    )
]
