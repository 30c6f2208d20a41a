"""Neural architecture search on published tables, offered as in the paper: scores in [0, 1], the largest wins.

Accuracies are shares of 1, to be maximised. The paper gives each of these problems 200 evaluations.
"""

from __future__ import annotations

import functools
import re

import numpy as np

from mctsvs.bench.problems import data, nasbench101, nasbench_asr
from mctsvs.bench.problems.tables import Columns, Table, name_pattern, table_problem
from mctsvs.objectives.problem import Family, Problem, Variation
from mctsvs.utils.validation import Array

IMAGES = {"cifar100": "CIFAR-100", "cifar10": "CIFAR-10", "imagenet16": "ImageNet16-120"}
TASKS = {  # of TransNAS-Bench-101: what is measured, and what one share of 1 is in the table
    "class_scene": ("accuracy of scene classification", 100.0),
    "class_object": ("accuracy of object classification", 100.0),
    "room_layout": ("minus the loss of room layout", 1.0),
    "jigsaw": ("accuracy of jigsaw puzzles", 100.0),
    "segmentsemantic": ("accuracy of semantic segmentation", 100.0),
    "normal": ("structural similarity of surface normals", 1.0),
    "autoencoder": ("structural similarity of autoencoding", 1.0),
}
GRAPHS = ("cora", "citeseer", "pubmed", "cs", "physics", "photo", "computers", "arxiv")
NO_NETWORK = np.iinfo(np.uint16).max  # row of the graph architectures of four skips, which have no layer


def _float(array: object, scale: float = 1.0) -> Array:
    return np.asarray(array, dtype=np.float64) / scale


def cells_201(images: str) -> Columns:
    """NAS-Bench-201: validation accuracy as NASLib returns it."""
    column = "imagenet16_120" if images == "imagenet16" else images
    table = data.arrays("nasbench201", "nasbench201.npz")
    return Columns(_float(table[f"valnaslib_{column}"], 100), _float(table[f"train_time_{column}"]))


def nasbench201(match: re.Match[str], variation: Variation) -> Problem:
    images = (match["T"] or "cifar100").lower()
    images = "imagenet16" if images.startswith("imagenet16") else images
    suffix = {"cifar100": "", "cifar10": "_cifar10", "imagenet16": "_ImageNet16"}[images]
    return table_problem(
        f"NASBench201{suffix}",
        f"NAS-Bench-201: validation accuracy on {IMAGES[images]} of a cell of 6 edges, 5 operations each",
        Table((5,) * 6, functools.partial(cells_201, images)),
        variation,
    )


def cells_trans(task: str) -> Columns:
    """TransNAS-Bench-101, micro: validation at the last epoch."""
    table = data.arrays("transnas", "transnasbench101_micro.npz")
    return Columns(_float(table[f"val_{task}"], TASKS[task][1]))


def transnas(match: re.Match[str], variation: Variation) -> Problem:
    task = (match["T"] or "class_scene").lower().replace("-", "_")
    return table_problem(
        "TransNAS" + ("" if task == "class_scene" else f"_{task}"),
        f"TransNAS-Bench-101 micro: validation {TASKS[task][0]}, a cell of 6 edges, 4 operations each",
        Table((4,) * 6, functools.partial(cells_trans, task)),
        variation,
    )


def configurations_1shot1() -> Columns:
    """NAS-Bench-1Shot1, search space 1: mean test accuracy and training time, from NAS-Bench-101."""
    table = data.arrays("nasbench1shot1", "nasbench1shot1_ss1.npz")
    return Columns(_float(table["test_acc"]), _float(table["train_time_s"]))


def nasbench1shot1(match: re.Match[str], variation: Variation) -> Problem:
    return table_problem(
        "NASBench1Shot1",
        "NAS-Bench-1Shot1, search space 1: test accuracy on CIFAR-10, derived from NAS-Bench-101; "
        "most training times are estimates",
        Table((3, 3, 3, 3, 1, 1, 3, 6, 10), configurations_1shot1),
        variation,
    )


def architectures_graph(nodes: str) -> Columns:
    """NAS-Bench-Graph: validation accuracy; 0 for the nine architectures that have no layer."""
    table = data.arrays("nasbench_graph", "nasbench_graph.npz")
    rows = table["config_to_row"]
    measured = _float(table["valid_perf"])[:, table["datasets"].tolist().index(nodes)]
    return Columns(np.where(rows == NO_NETWORK, 0.0, measured[np.minimum(rows, len(measured) - 1)]))


def nasbench_graph(match: re.Match[str], variation: Variation) -> Problem:
    nodes = (match["T"] or "cora").lower()
    return table_problem(
        f"NASBenchGraph_{nodes}",
        f"NAS-Bench-Graph: validation accuracy on {nodes} of 4 layers in one of 9 patterns, 9 operations each",
        Table((9,) * 5, functools.partial(architectures_graph, nodes)),
        variation,
    )


def networks_macro() -> Columns:
    """NAS-Bench-Macro: test accuracy, mean of three runs."""
    return Columns(_float(data.arrays("nasbench_macro", "nasbench_macro.npz")["mean_acc"], 100))


def nasbench_macro(match: re.Match[str], variation: Variation) -> Problem:
    return table_problem(
        "NASBenchMacro",
        "NAS-Bench-Macro: test accuracy on CIFAR-10 of 8 layers, 3 kinds each",
        Table((3,) * 8, networks_macro),
        variation,
    )


FAMILIES = [
    Family(
        form="NASBench201_T",
        pattern=name_pattern("NAS", "Bench", "201", choices="cifar100|cifar10|imagenet16(?:[-_]?120)?"),
        example="NASBench201",
        description="Cell of 6 edges; validation accuracy on cifar100 (the paper's), cifar10 or ImageNet16",
        build=nasbench201,
        dimension="30",
        kind="table",
        optimum="0.7326",
        data="nasbench201",
    ),
    Family(
        form="NASBench101",
        pattern=name_pattern("NAS", "Bench", "101"),
        example="NASBench101",
        description="Cell of up to 9 edges trained in under 30 minutes (most times estimated); test accuracy",
        build=nasbench101.nasbench101,
        dimension="36",
        kind="table",
        optimum="0.94024",
        data="nasbench101",
    ),
    Family(
        form="TransNAS_T",
        pattern=name_pattern("Trans", "NAS(?:[-_]?Bench[-_]?101)?", choices="|".join(TASKS).replace("_", "[-_]")),
        example="TransNAS",
        description=f"Cell of 6 edges; validation on one of seven vision tasks: {', '.join(TASKS)}",
        build=transnas,
        dimension="24",
        kind="table",
        optimum="0.54936",
        data="transnas",
    ),
    Family(
        form="NASBenchASR",
        pattern=name_pattern("NAS", "Bench", "ASR"),
        example="NASBenchASR",
        description="Speech model of 3 layers; validation phoneme error rate, minimised",
        build=nasbench_asr.nasbench_asr,
        dimension="30",
        kind="table",
        data="nasbench_asr",
    ),
    Family(
        form="NASBench1Shot1",
        pattern=name_pattern("NAS", "Bench", "1", "Shot", "1"),
        example="NASBench1Shot1",
        description="Search space 1, derived from NAS-Bench-101; test accuracy",
        build=nasbench1shot1,
        dimension="33",
        kind="table",
        optimum="0.94201",
        data="nasbench1shot1",
    ),
    Family(
        form="NASBenchGraph_T",
        pattern=name_pattern("NAS", "Bench", "Graph", choices="|".join(GRAPHS)),
        example="NASBenchGraph_cora",
        description=f"Graph network of 4 layers; validation accuracy on {', '.join(GRAPHS)}",
        build=nasbench_graph,
        dimension="45",
        kind="table",
        optimum="0.81933",
        data="nasbench_graph",
    ),
    Family(
        form="NASBenchMacro",
        pattern=name_pattern("NAS", "Bench", "Macro"),
        example="NASBenchMacro",
        description="Network of 8 layers; test accuracy",
        build=nasbench_macro,
        dimension="24",
        kind="table",
        optimum="0.93127",
        data="nasbench_macro",
    ),
]
