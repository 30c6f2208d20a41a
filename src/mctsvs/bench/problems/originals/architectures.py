"""NAS-Bench-201 from NASLib's pickles, NAS-Bench-ASR from its own, and TransNAS-Bench-101 from its PyTorch file.

All are read without PyTorch and without running what they name."""

from __future__ import annotations

import io
import itertools
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from mctsvs.bench.problems.originals.files import Originals, Tables, single, zipped
from mctsvs.bench.problems.originals.packages import OPERATIONS_201
from mctsvs.bench.problems.originals.plain_pickle import Refused, read

NASLIB = {  # what follows nb201_ in the file's name -> the images as the table and as the file call them
    "cifar10": ("cifar10", "cifar10-valid"),
    "cifar100": ("cifar100", "cifar100"),
    "ImageNet16": ("imagenet16_120", "ImageNet16-120"),
}
METRICS = {  # of TransNAS-Bench-101
    "class_scene": "valid_top1",
    "class_object": "valid_top1",
    "room_layout": "valid_neg_loss",
    "jigsaw": "valid_top1",
    "segmentsemantic": "valid_acc",
    "normal": "valid_ssim",
    "autoencoder": "valid_ssim",
}
OPERATIONS_TRANS = ("none", "skip", "conv1x1", "conv3x3")
EDGES_TRANS = ((0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3))
SKELETONS = 3_256
MAGIC = 0x1950A86A20F9469CFC6C  # the first of the pickles in an old PyTorch file


def cell_name(operations: tuple[str, ...]) -> str:
    """How NAS-Bench-201 writes the operations of edges 1-2, 1-3, 1-4, 2-3, 2-4, 3-4."""
    a, b, d, c, e, f = operations
    return f"|{a}~0|+|{b}~0|{c}~1|+|{d}~0|{e}~1|{f}~2|"


def nasbench201(originals: Originals) -> Tables:
    """Validation accuracies in percent after the last epoch, as NASLib returns them, and seconds of training."""
    names = [cell_name(operations) for operations in itertools.product(OPERATIONS_201, repeat=6)]
    table: dict[str, Any] = {}
    for file, (images, called) in NASLIB.items():
        with originals.stream(f"nb201_{file}_full_training.pickle") as stream:
            (entries,) = read(stream, 1)
        missing = len(set(names) - entries.keys())
        if missing:
            raise Refused(f"the file of {file} lacks {missing:,} of the {len(names):,} cells")
        rows = [entries[name][called] for name in names]
        table[f"valnaslib_{images}"] = single([row["eval_acc1es"][-1] for row in rows])
        table[f"train_time_{images}"] = single([row["cost_info"]["train_time"] for row in rows])
    return {"nasbench201.npz": table}


def transnas(originals: Originals) -> Tables:
    """Validation after the last epoch, for cells (micro) and for skeletons (macro)."""
    (name,) = originals.paths
    spaces = pytorch(originals.content(name))["data"]
    cells = list(itertools.product(range(len(OPERATIONS_TRANS)), repeat=len(EDGES_TRANS)))
    names = ["64-41414-{}_{}{}_{}{}{}".format(*cell) for cell in cells]
    missing = len(set(names) - spaces["micro"].keys())
    if missing or len(spaces["macro"]) != SKELETONS:
        found = f"{len(names) - missing:,} of the {len(names):,} cells and {len(spaces['macro']):,} skeletons"
        raise Refused(f"it has {found}, where {SKELETONS:,} are needed")
    skeletons = {_skeleton(name): name for name in spaces["macro"]}
    return {
        "transnasbench101_micro.npz": {
            "ops": np.array(cells, dtype=np.uint8),
            "op_names": np.array(OPERATIONS_TRANS),
            "edges": np.array(EDGES_TRANS, dtype=np.uint8),
            **_validation([spaces["micro"][name] for name in names]),
        },
        "transnasbench101_macro.npz": {
            "arch": np.array(sorted(skeletons), dtype=np.uint8),
            **_validation([spaces["macro"][skeletons[modules]] for modules in sorted(skeletons)]),
        },
    }


def _skeleton(name: str) -> tuple[int, ...]:
    """The modules of 64-1234-basic: four to six digits, then zeros."""
    modules = [int(digit) for digit in name.split("-")[1]]
    return tuple(modules + [0] * (6 - len(modules)))


def _validation(networks: list[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        f"val_{task}": single([network[task]["metrics"][metric][-1] for network in networks])
        for task, metric in METRICS.items()
    }


def nasbench_asr(originals: Originals) -> Tables:
    """The files as they were published, once their tables have been read."""
    from mctsvs.bench.problems.nasbench_asr import rates

    found: Tables = {}
    for name, path in originals.paths.items():
        content = originals.content(name)
        rates(content, str(path))
        found[name] = content
    return found


def pytorch(content: bytes) -> Any:
    """The object of a PyTorch file, old (pickles one after the other) or new (a zip archive), if it has no tensors."""
    if zipfile.is_zipfile(io.BytesIO(content)):
        for path, member in zipped(content):
            if path.endswith("/data.pkl"):
                return read(member(), 1)[0]
        raise Refused("it is a zip archive, but none of PyTorch's")
    magic, _, _, found = read(content, 4)
    if magic != MAGIC:
        raise Refused("it is no file of PyTorch")
    return found
