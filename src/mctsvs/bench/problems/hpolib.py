"""HPOLib FCNet: hyper-parameters of a network of two layers, every setting of which was trained on four data sets."""

from __future__ import annotations

import functools
import re

import numpy as np

from mctsvs.bench.problems import data
from mctsvs.bench.problems.tables import Columns, Table, name_pattern, table_problem
from mctsvs.objectives.problem import Family, Problem, Variation

SETS = {
    "naval": "naval_propulsion",
    "parkinsons": "parkinsons_telemonitoring",
    "protein": "protein_structure",
    "slice": "slice_localization",
}
BLOCKS = (2, 2, 4, 3, 3, 6, 2, 6, 6)


def settings(column: str) -> Columns:
    """Validation mean squared error and training time."""
    table = data.arrays("hpolib_fcnet", "hpolib_fcnet.npz")
    measured = (table[f"{word}_{column}"].astype(np.float64) for word in ("val_mse", "train_time"))
    return Columns(*measured)


def fcnet(match: re.Match[str], variation: Variation) -> Problem:
    chosen = (match["T"] or "protein").lower()
    short = next(name for name in SETS if chosen.startswith(name))
    return table_problem(
        f"FCNet_{short}",
        f"HPOLib FCNet: validation mean squared error on {SETS[short].replace('_', ' ')}, 9 hyper-parameters",
        Table(BLOCKS, functools.partial(settings, SETS[short])),
        variation,
        direction="minimize",
        paper_options={},
    )


FAMILIES = [
    Family(
        form="FCNet_T",
        pattern=name_pattern("FC", "Net", choices="|".join([*SETS.values(), *SETS])),
        example="FCNet_protein",
        description=f"Hyper-parameters of a small network; squared error, minimised, on {', '.join(SETS)}",
        build=fcnet,
        dimension="34",
        kind="table",
        optimum="0.22138",
        data="hpolib_fcnet",
    ),
]
