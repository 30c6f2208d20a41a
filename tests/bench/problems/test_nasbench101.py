"""NAS-Bench-101: cells, their official hash, and the way from a point to a cell."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from mctsvs.bench.problems import data, make
from mctsvs.bench.problems.nasbench101 import EDGES, LIMIT, MOST_EDGES, OUTPUT, VERTICES, Cell, Cells, cells, prune
from mctsvs.utils.validation import Array, InputError

Need = Callable[[str], Path]
FILE = "nasbench101.npz"


def cell_of(edges: list[tuple[int, int]]) -> Cell:
    into, out = [0] * VERTICES, [0] * VERTICES
    for i, j in edges:
        into[j] |= 1 << i
        out[i] |= 1 << j
    return prune(into, out)


def kept(cell: Cell) -> list[int]:
    return [v for v in range(VERTICES) if cell.kept >> v & 1]


def plain_value(x: Array, table: Cells) -> float:
    """The definition word by word: after every edge the cell is cut, looked up, and kept if it is within the limit."""
    operations = [int(np.argmax(x[3 * v : 3 * v + 3])) for v in range(5)]
    values, seconds = table.columns
    assert seconds is not None
    value, edges = 0.0, []
    for k in sorted(range(21), key=lambda k: -x[15 + k]):
        if x[15 + k] <= 1e-5:
            break
        edges.append(EDGES[k])
        cell = cell_of(edges)
        if cell.edges > MOST_EDGES:
            break
        if cell.edges:
            row = table.row(cell, operations)
            value = float(values[row]) if seconds[row] < LIMIT else value
    return value


def test_cutting_keeps_what_lies_on_a_path() -> None:
    cell = cell_of([(0, 1), (1, 6), (0, 2), (3, 6), (4, 5)])
    assert (kept(cell), cell.edges) == ([0, 1, 6], 2)
    assert cell_of([(0, 1), (2, 6)]).edges == 0
    assert cell_of([(0, 6)]).edges == 1
    full = cell_of(EDGES)
    assert (kept(full), full.edges) == (list(range(VERTICES)), 21)


def test_the_hash_ignores_the_order_of_vertices_and_sees_all_else() -> None:
    chain = cell_of([(0, 1), (1, 2), (2, 6)]).fingerprint([0, 1, 2, 2, 2])
    assert cell_of([(0, 3), (3, 5), (5, 6)]).fingerprint([2, 2, 0, 2, 1]) == chain
    assert cell_of([(0, 1), (1, 2), (2, 6)]).fingerprint([1, 0, 2, 2, 2]) != chain
    assert cell_of([(0, 1), (1, 2), (2, 6), (0, 6)]).fingerprint([0, 1, 2, 2, 2]) != chain


def test_the_published_hash_of_a_cell(need: Need) -> None:
    """The row found by hash has the graph and the operations that the table lists for it."""
    need("nasbench101")
    table, listed = Cells(), data.arrays("nasbench101", "nasbench101_archs.npz")
    assert len(table.hashes) == 423_624
    assert np.all(np.diff(table.hashes.astype(np.int64)) > 0)
    for row in range(0, 423_624, 2_003):
        cell, operations = architecture(listed, row)
        assert table.row(cell, operations) == row
        assert int(cell.fingerprint(operations)[:11], 16) == table.hashes[row]


def architecture(listed: dict[str, npt.NDArray[Any]], row: int) -> tuple[Cell, list[int]]:
    """Graph and operations of a row: its n vertices become 0, ..., n - 2 and the output."""
    n, bits = (int(listed[name][listed["graph_id"][row]]) for name in ("graph_n", "graph_adj_bits"))
    places = [*range(n - 1), OUTPUT]
    pairs = [(places[i], places[j]) for i in range(n) for j in range(i + 1, n)]
    code = int(listed["ops_code"][row])
    operations = [code // 3**v % 3 for v in reversed(range(n - 2))]
    return cell_of([pair for k, pair in enumerate(pairs) if bits >> k & 1]), operations + [0] * (7 - n)


def point(cell: Cell, operations: list[int]) -> Array:
    """A point that leads to the cell."""
    edges = [float(cell.out[i] >> j & 1) for i, j in EDGES]
    return np.concatenate([np.eye(3)[operations].ravel(), edges])


def test_published_facts(need: Need) -> None:
    need("nasbench101")
    values, seconds = Cells().columns
    assert seconds is not None
    assert values.max() == pytest.approx(0.94318, abs=1e-5)
    assert values.mean() == pytest.approx(0.8968, abs=1e-4)
    assert values[seconds < LIMIT].max() == pytest.approx(0.9402, abs=1e-4)
    bits = np.unpackbits(data.arrays("nasbench101", FILE)["time_is_measured"])[: len(values)].astype(bool)
    assert bits.sum() == 30_001
    assert values[bits & (seconds < LIMIT)].max() == pytest.approx(0.9394, abs=1e-4)
    problem = make("NASBench101")
    assert "estimated" in problem.description


def test_the_optimum_is_attained(need: Need) -> None:
    need("nasbench101")
    problem, table = make("NASBench101"), Cells()
    values, seconds = table.columns
    assert seconds is not None
    best = int(np.argmax(np.where(seconds < LIMIT, values, 0)))
    listed = data.arrays("nasbench101", "nasbench101_archs.npz")
    x = point(*architecture(listed, best))
    assert problem(x) == problem.optimum
    assert problem.cost(x) == seconds[best] < LIMIT


def test_a_table_without_all_cells_is_bad_input() -> None:
    table = Cells()
    for hashes in ([], [1], [2**44]):
        table.__dict__["hashes"] = np.array(hashes, dtype=np.uint64)
        with pytest.raises(InputError, match=r"lacks the cell [0-9a-f]{32}: get it again"):
            table.row(cell_of([(0, 6)]), [0] * 5)


def test_points_that_lead_to_no_cell_within_the_limit(need: Need) -> None:
    need("nasbench101")
    problem = make("NASBench101")
    assert problem(np.zeros(36)) == problem.cost(np.zeros(36)) == 0.0
    disconnected = np.zeros(36)
    disconnected[15 + EDGES.index((0, 1))] = 1.0
    assert problem(disconnected) == 0.0
    faint = np.full(36, 1e-5)
    assert problem(faint) == 0.0
    faint[15:] = 2e-5
    assert problem(faint) > 0.0


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["uniform", "sparse", "tied"]))
def test_a_value_is_that_of_the_definition(need: Need, seed: int, kind: str) -> None:
    need("nasbench101")
    rng = np.random.default_rng(seed)
    x = rng.random(36)
    if kind == "sparse":
        x[15:] *= rng.random(21) < 0.4
    elif kind == "tied":
        x = np.round(4 * x) / 4
    function = make("NASBench101").function
    assert isinstance(function, Cells)
    assert function(x) == plain_value(x, function)


@settings(deadline=None)
@given(arrays.arrays(np.float64, 21, elements=st.floats(0, 1)))
def test_cells_grow_one_after_the_other_up_to_nine_edges(scores: Array) -> None:
    counts = [cell.edges for cell in cells(scores)]
    assert all(a < b for a, b in itertools.pairwise(counts))
    assert all(1 <= count <= MOST_EDGES for count in counts)
