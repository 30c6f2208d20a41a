"""Problems whose every answer was measured beforehand: a table of architectures or settings and how they did.

A choice among b options is offered as b variables in [0, 1], one score for each option, of which the largest wins (the
first of equals), as in the paper. A point of D = b_1 + b_2 + ... variables so names one row of a table of b_1 b_2 ...
rows, ordered with the last choice running fastest.

Most are architectures of neural networks: accuracies are shares of 1, to be maximised, and the paper gives each problem
200 evaluations. HPOLib's FCNet are settings of a network of two layers, all trained on four data sets.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from mctsvs.bench.problems import data
from mctsvs.bench.problems.declare import box, build, pattern
from mctsvs.objectives.problem import Family, Problem, Variation
from mctsvs.utils.validation import Array, InputError

NAS_OPTIONS: Mapping[str, float] = {"cp": 0.1, "d": 10}
"""What the paper sets for NAS-Bench: C_p and the dimension of an embedding."""


class Columns(NamedTuple):
    """One number for each row of a table."""

    values: Array
    seconds: Array | None = None
    """What training would take."""


class Lazy:
    """What a subclass, a dataclass, has loaded stays out of its pickle: sending it to worker processes is cheap."""

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Table(Lazy):
    """The value of the row that a point names.

    >>> from mctsvs.bench.problems import make
    >>> cells = make("NASBench201").function
    >>> cells.row(np.zeros(30)), len(cells.columns.values)
    (0, 15625)

    Read when first used in a process.
    """

    blocks: tuple[int, ...]
    """Number of options of each choice."""
    load: Callable[[], Columns]
    """A function of a module, or a partial of one, which pickles by name."""

    @functools.cached_property
    def columns(self) -> Columns:
        columns = self.load()
        rows = math.prod(self.blocks)
        if len(columns.values) != rows:
            raise InputError(f"a table of {len(columns.values)} rows was read where {rows} are needed")
        return columns

    @functools.cached_property
    def _places(self) -> list[tuple[int, int, int]]:
        """Where each block starts, where it ends, and how many rows one step of its choice is."""
        ends = np.cumsum(self.blocks)
        steps = np.cumprod((1, *self.blocks[:0:-1]))[::-1]
        return list(zip((ends - self.blocks).tolist(), ends.tolist(), steps.tolist(), strict=True))

    def row(self, x: Array) -> int:
        """The row that the largest scores name."""
        return sum(int(x[start:end].argmax()) * step for start, end, step in self._places)

    def point(self, row: int) -> Array:
        """A point that names `row`: score 1 for what is chosen, 0 for the rest."""
        x = np.zeros(sum(self.blocks))
        for start, end, step in self._places:
            x[start + row // step % (end - start)] = 1.0
        return x

    def __call__(self, x: Array) -> float:
        return float(self.columns.values[self.row(x)])

    def seconds(self, x: Array) -> float | None:
        """What training the row's network would take; None: unknown."""
        seconds = self.columns.seconds
        return None if seconds is None else float(seconds[self.row(x)])


def table_problem(
    name: str,
    description: str,
    table: Table,
    variation: Variation,
    *,
    direction: Literal["maximize", "minimize"] = "maximize",
    paper_options: Mapping[str, Any] = NAS_OPTIONS,
) -> Problem:
    """The problem of finding the best row, whose value is the best of the data at hand."""

    def details() -> Mapping[str, Any]:
        values = table.columns.values
        best = int(values.argmax() if direction == "maximize" else values.argmin())
        found = {"optimum": float(values[best]), "optimizer": table.point(best)}
        return {"function": table, "direction": direction, "paper_options": dict(paper_options), **found}

    return build(name, description, box(0.0, 1.0, sum(table.blocks)), variation, details)


def table_family(
    stem: str,
    words: Sequence[str],
    summary: str,
    description: str,
    blocks: tuple[int, ...],
    load: Callable[..., Columns],
    *,
    choices: Mapping[str, tuple[str, str]] | None = None,
    spelling: str = "",
    direction: Literal["maximize", "minimize"] = "maximize",
    paper_options: Mapping[str, Any] = NAS_OPTIONS,
    **about: Any,
) -> Family:
    """The family of finding the best row of a table, or of one of several that `load` is given the choice of.

    Args:
        stem: The beginning of the names.
        words: Regular expressions of the words of the stem, joined by hyphens or nothing.
        summary: One line for the list of families.
        description: One line of a problem, with {} for what the choice says.
        blocks: The number of options of each choice of a row.
        load: A function of a module, which pickles by name.
        choices: Beginning of a choice -> what follows the stem in the name, what the description says; the first
            is that of a name without a choice.
        spelling: A regular expression of all choices; default: the keys of `choices`.
        direction: Of the problem.
        paper_options: Of the problem.
        **about: Further fields of the family.
    """
    known = choices or {"": ("", "")}
    spelt = (spelling or "|".join(known).replace("_", "[-_]")) if choices else ""

    def make(match: re.Match[str], variation: Variation) -> Problem:
        given = (match["T"] or "").lower().replace("-", "_") if choices else ""
        choice = next(key for key in known if given.startswith(key) or not given)
        ending, said = known[choice]
        table = Table(blocks, functools.partial(load, choice) if choices else load)
        return table_problem(
            stem + ending,
            description.format(said),
            table,
            variation,
            direction=direction,
            paper_options=paper_options,
        )

    about = {"form": stem + "_T" * bool(choices), "example": stem, "kind": "table", **about}
    return Family(
        pattern=name_pattern(*words, choices=spelt),
        description=summary,
        build=make,
        dimension=str(sum(blocks)),
        **about,
    )


def name_pattern(*words: str, choices: str = "") -> re.Pattern[str]:
    """Names in any case, their words joined by hyphens or nothing; `T` is the choice after an underscore or hyphen."""
    return pattern("[-_]?".join(words) + (f"(?:[-_](?P<T>{choices}))?" if choices else ""))


IMAGES = {  # of NAS-Bench-201: what follows the name, and what the images are called
    "cifar100": ("", "CIFAR-100"),
    "cifar10": ("_cifar10", "CIFAR-10"),
    "imagenet16": ("_ImageNet16", "ImageNet16-120"),
}
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
SETS = {  # of FCNet: the data sets, the usual one first
    "protein": "protein_structure",
    "naval": "naval_propulsion",
    "parkinsons": "parkinsons_telemonitoring",
    "slice": "slice_localization",
}
NO_NETWORK = np.iinfo(np.uint16).max  # row of the graph architectures of four skips, which have no layer


def _float(array: object, scale: float = 1.0) -> Array:
    return np.asarray(array, dtype=np.float64) / scale


def cells_201(images: str) -> Columns:
    """NAS-Bench-201: validation accuracy as NASLib returns it."""
    column = "imagenet16_120" if images == "imagenet16" else images
    table = data.arrays("nasbench201", "nasbench201.npz")
    return Columns(_float(table[f"valnaslib_{column}"], 100), _float(table[f"train_time_{column}"]))


def cells_201_mean(images: str) -> Columns:
    """NAS-Bench-201: validation accuracy, mean over two or three seeds."""
    column = "imagenet16_120" if images == "imagenet16" else images
    table = data.arrays("nasbench201_mean", "nasbench201_mean.npz")
    return Columns(_float(table[f"val_mean_{column}"], 100), _float(table[f"train_time_{column}"]))


def cells_trans(task: str) -> Columns:
    """TransNAS-Bench-101, micro: validation at the last epoch."""
    table = data.arrays("transnas", "transnasbench101_micro.npz")
    return Columns(_float(table[f"val_{task}"], TASKS[task][1]))


def configurations_1shot1() -> Columns:
    """NAS-Bench-1Shot1, search space 1: mean test accuracy and training time, from NAS-Bench-101."""
    table = data.arrays("nasbench1shot1", "nasbench1shot1_ss1.npz")
    return Columns(_float(table["test_acc"]), _float(table["train_time_s"]))


def architectures_graph(nodes: str) -> Columns:
    """NAS-Bench-Graph: validation accuracy; 0 for the nine architectures that have no layer."""
    table = data.arrays("nasbench_graph", "nasbench_graph.npz")
    rows = table["config_to_row"]
    measured = _float(table["valid_perf"])[:, table["datasets"].tolist().index(nodes)]
    return Columns(np.where(rows == NO_NETWORK, 0.0, measured[np.minimum(rows, len(measured) - 1)]))


def networks_macro() -> Columns:
    """NAS-Bench-Macro: test accuracy, mean of three runs."""
    return Columns(_float(data.arrays("nasbench_macro", "nasbench_macro.npz")["mean_acc"], 100))


def settings_fcnet(name: str) -> Columns:
    """FCNet: validation mean squared error and training time."""
    table = data.arrays("hpolib_fcnet", "hpolib_fcnet.npz")
    return Columns(*(_float(table[f"{column}_{SETS[name]}"]) for column in ("val_mse", "train_time")))


FAMILIES = [
    table_family(
        "NASBench201",
        ("NAS", "Bench", "201"),
        "Cell of 6 edges; validation accuracy on cifar100 (the paper's), cifar10 or ImageNet16",
        "NAS-Bench-201: validation accuracy on {} of a cell of 6 edges, 5 operations each",
        (5,) * 6,
        cells_201,
        choices=IMAGES,
        spelling="cifar100|cifar10|imagenet16(?:[-_]?120)?",
        optimum="0.7326",
        data="nasbench201",
    ),
    table_family(
        "NASBench201_mean",
        ("NAS", "Bench", "201", "mean"),
        "The same cells by the mean of two or three seeds, from a package: no download",
        "NAS-Bench-201: validation accuracy on {} of a cell of 6 edges, mean over two or three seeds",
        (5,) * 6,
        cells_201_mean,
        choices=IMAGES,
        spelling="cifar100|cifar10|imagenet16(?:[-_]?120)?",
        form="NASBench201_mean",
        optimum="0.73493",
        extra="nas",
        data="nasbench201_mean",
    ),
    table_family(
        "TransNAS",
        ("Trans", "NAS(?:[-_]?Bench[-_]?101)?"),
        f"Cell of 6 edges; validation on one of seven vision tasks: {', '.join(TASKS)}",
        "TransNAS-Bench-101 micro: validation {}, a cell of 6 edges, 4 operations each",
        (4,) * 6,
        cells_trans,
        choices={
            task: ("" if task == "class_scene" else f"_{task}", measured) for task, (measured, _) in TASKS.items()
        },
        optimum="0.54936",
        data="transnas",
    ),
    table_family(
        "NASBench1Shot1",
        ("NAS", "Bench", "1", "Shot", "1"),
        "Search space 1, derived from NAS-Bench-101; test accuracy",
        "NAS-Bench-1Shot1, search space 1: test accuracy on CIFAR-10, derived from NAS-Bench-101 with its times",
        (3, 3, 3, 3, 1, 1, 3, 6, 10),
        configurations_1shot1,
        optimum="0.94201",
        data="nasbench1shot1",
    ),
    table_family(
        "NASBenchGraph",
        ("NAS", "Bench", "Graph"),
        f"Graph network of 4 layers; validation accuracy on {', '.join(GRAPHS)}",
        "NAS-Bench-Graph: validation accuracy on {} of 4 layers in one of 9 patterns, 9 operations each",
        (9,) * 5,
        architectures_graph,
        choices={nodes: (f"_{nodes}", nodes) for nodes in GRAPHS},
        example="NASBenchGraph_cora",
        optimum="0.81933",
        data="nasbench_graph",
    ),
    table_family(
        "NASBenchMacro",
        ("NAS", "Bench", "Macro"),
        "Network of 8 layers; test accuracy",
        "NAS-Bench-Macro: test accuracy on CIFAR-10 of 8 layers, 3 kinds each",
        (3,) * 8,
        networks_macro,
        optimum="0.93127",
        data="nasbench_macro",
    ),
    table_family(
        "FCNet",
        ("FC", "Net"),
        f"Hyper-parameters of a small network; squared error, minimised, on {', '.join(sorted(SETS))}",
        "HPOLib FCNet: validation mean squared error on {}, 9 hyper-parameters",
        (2, 2, 4, 3, 3, 6, 2, 6, 6),
        settings_fcnet,
        choices={name: (f"_{name}", column.replace("_", " ")) for name, column in SETS.items()},
        spelling="|".join([*SETS.values(), *SETS]),
        direction="minimize",
        paper_options={},
        example="FCNet_protein",
        optimum="0.22138",
        data="hpolib_fcnet",
    ),
]
