"""NAS-Bench-ASR: speech recognition on TIMIT by a cell of three layers, D = 30; the phoneme error rate is minimised.

An architecture is 9 choices: for each layer one of six operations and, for every earlier vertex, whether it is
also added to the layer's output. Vertices are 0 (the input), 1, 2, 3 (the layers) and 4 (the output). A layer with
the operation `zero` is cut away with all that it leaves dangling, and cells that differ in nothing but the order of
layers are one architecture: the 13,824 choices are 8,242 of them.

The published files (release v1.1.0) hold two pickles each, a header and a list of rows in the order of its columns.
They are read without running anything they name (`originals.plain_pickle`).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from mctsvs.bench.problems import data
from mctsvs.bench.problems.originals.plain_pickle import Refused, read
from mctsvs.bench.problems.tables import Columns, table_family
from mctsvs.utils.validation import Array, InputError

BLOCKS = (6, 2, 6, 2, 2, 6, 2, 2, 2)
OPERATIONS = ["linear", "conv5", "conv5d2", "conv7", "conv7d2", "zero"]
LAYERS = 3
Architecture = tuple[tuple[int, ...], ...]
Edges = tuple[tuple[int, int], ...]
Canonical = tuple[tuple[int, ...], Edges]


def architectures() -> list[Architecture]:
    """All choices, the last one running fastest; layer by layer: operation, then what skips it."""
    choices = itertools.product(*(range(options) for options in BLOCKS))
    return [(c[0:2], c[2:5], c[5:9]) for c in choices]


def canonical(architecture: Sequence[Sequence[int]]) -> Canonical:
    """The same for all choices that are one architecture: operations of the layers in use, and edges."""
    operations = [layer[0] for layer in architecture]
    silent = tuple(OPERATIONS[operation] == "zero" for operation in operations)
    skips = tuple(tuple(layer[1:]) for layer in architecture)
    return min((tuple(operations[k] for k in order), edges) for order, edges in shapes(silent, skips))


@functools.cache
def shapes(silent: tuple[bool, ...], skips: Architecture) -> list[tuple[tuple[int, ...], Edges]]:
    """The layers in use in each order, and the edges with vertices numbered in that order."""
    output = LAYERS + 1
    edges = {(v, v + 1) for v in range(output)}
    for layer, skipping in enumerate(skips):
        edges |= {(earlier, layer + 2) for earlier, used in enumerate(skipping) if used}
    reached, reaching = {0}, {output}
    for v in range(1, output + 1):
        if any((u, v) in edges for u in reached) and not (v < output and silent[v - 1]):
            reached.add(v)
    for v in range(output - 1, -1, -1):
        if any((v, w) in edges for w in reaching) and not (v > 0 and silent[v - 1]):
            reaching.add(v)
    kept = reached & reaching
    edges = {(v, w) for v, w in edges if v in kept and w in kept}
    found = []
    for order in itertools.permutations(sorted(kept - {0, output})):
        place = {0: 0, output: output, **{v: i + 1 for i, v in enumerate(order)}}
        found.append((tuple(v - 1 for v in order), tuple(sorted((place[v], place[w]) for v, w in edges))))
    return found


@functools.cache
def classes() -> dict[Architecture, Canonical]:
    """The canonical form of each of the choices."""
    return {architecture: canonical(architecture) for architecture in architectures()}


def error_rates() -> Columns:
    """Validation phoneme error rate after the last epoch, mean over the seeds."""
    name = "nasbench_asr"
    folder, files = data.folder(name), data.DATASETS[name].files
    return Columns(np.mean([rates(data.content(name, file), str(folder / file)) for file in files], axis=0))


def rates(content: bytes, where: str) -> Array:
    """The error rate of each of the choices, from one published file."""
    try:
        header, rows = read(content, 2)
        measured = _measured(header, rows)
    except Refused as error:
        raise InputError(f"the file {where!r} is no table of NAS-Bench-ASR: {error}") from None
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        raise InputError(f"the file {where!r} is no table of NAS-Bench-ASR: its rows are not as published") from None
    forms = classes().values()
    missing = len(set(forms) - measured.keys())
    if missing:
        raise InputError(f"the file {where!r} lacks {missing} of the {len(set(forms))} architectures: get it again")
    return np.array([measured[form] for form in forms])


def _measured(header: dict[str, Any], rows: list[Sequence[Any]]) -> dict[Canonical, float]:
    if header["dataset_type"] != "training":
        raise Refused(f"its type is {header['dataset_type']!r}, not 'training'")
    if header["search_space"]["ops"] != OPERATIONS:
        raise Refused(f"its operations are {header['search_space']['ops']!r}, not {OPERATIONS!r}")
    rate, architecture = (header["columns"].index(name) for name in ("val_per", "arch_vec"))
    forms = classes()
    return {forms[tuple(map(tuple, row[architecture]))]: float(row[rate][-1]) for row in rows}


FAMILIES = [
    table_family(
        "NASBenchASR",
        ("NAS", "Bench", "ASR"),
        "Speech model of 3 layers; validation phoneme error rate, minimised",
        "NAS-Bench-ASR: validation phoneme error rate on TIMIT of a cell of 3 layers, mean over seeds",
        BLOCKS,
        error_rates,
        direction="minimize",
        data="nasbench_asr",
    )
]
