"""NAS-Bench-1Shot1, search space 1, from the table of NAS-Bench-101.

A configuration has four operations and the parents of vertices 1 to 4 and of the output: one way for the first two
vertices, then 3, 6 and 10 pairs of earlier vertices. The sixth vertex of NAS-Bench-101 is not used.
"""

from __future__ import annotations

import itertools

import numpy as np

from mctsvs.bench.problems.nasbench101 import OUTPUT, VERTICES, Cell, Cells, prune
from mctsvs.bench.problems.originals.files import Originals, Tables

CODES = (1, 0, 2)  # of the choices convolution 1x1, convolution 3x3 and pooling in NAS-Bench-101
CHOOSING = (3, 4, OUTPUT)  # vertices with a choice of two parents


def cell(parents: tuple[tuple[int, int], ...]) -> Cell:
    """The cell whose vertices `CHOOSING` have these parents."""
    into, out = [0] * VERTICES, [0] * VERTICES
    for v, chosen in ((1, (0,)), (2, (0, 1)), *zip(CHOOSING, parents, strict=True)):
        for u in chosen:
            into[v] |= 1 << u
            out[u] |= 1 << v
    return prune(into, out)


def convert(originals: Originals) -> Tables:
    """All configurations, the last choice running fastest."""
    table = Cells()
    pairs = [list(itertools.combinations(range(earlier), 2)) for earlier in (3, 4, 5)]
    cells = [cell(parents) for parents in itertools.product(*pairs)]
    choices = list(itertools.product(range(len(CODES)), repeat=4))
    rows = [table.row(shape, [*(CODES[k] for k in chosen), 0]) for chosen in choices for shape in cells]
    values, seconds = table.columns
    assert seconds is not None
    blocks = (3, 3, 3, 3, 1, 1, 3, 6, 10)
    return {
        "nasbench1shot1_ss1.npz": {
            "config": np.stack(np.unravel_index(np.arange(len(rows)), blocks), axis=1).astype(np.uint8),
            "test_acc": values[rows].astype(np.float32),
            "train_time_s": seconds[rows].astype(np.float32),
        }
    }
