"""Small originals: NAS-Bench-Macro (JSON), DNA (LIBSVM's text), CT slices (CSV) and the rover's obstacles (Python)."""

from __future__ import annotations

import ast
import csv
import io
import itertools
import json
from typing import Any

import numpy as np

from mctsvs.bench.problems.originals.files import Arrays, Originals, Tables, decoded, single, zipped
from mctsvs.bench.problems.originals.plain_pickle import Refused

FEATURES = 180  # of DNA
SPLITS = {"dna.scale": ("X", "y", 2_000), "dna.scale.t": ("X_test", "y_test", 1_186)}
SLICES, COLUMNS = 682, 385  # of CT slices: the first two patients; their number is the first column
LARGE, SMALL = (113, 0.025), (30, 0.05)  # the rover's obstacles and half their width


def nasbench_macro(originals: Originals) -> Tables:
    """Test accuracies of three runs in percent, their mean, parameters and operations."""
    (name,) = originals.paths
    entries = json.loads(originals.text(name))
    choices = list(itertools.product(range(3), repeat=8))
    names = ["".join(map(str, chosen)) for chosen in choices]
    missing = len(set(names) - entries.keys())
    if missing:
        raise Refused(f"it lacks {missing:,} of the {len(names):,} networks")
    rows = [entries[name] for name in names]
    return {
        "nasbench_macro.npz": {
            "ops": np.array(choices, dtype=np.uint8),
            "test_acc3": single([row["test_acc"] for row in rows]),
            "mean_acc": single([row["mean_acc"] for row in rows]),
            "params": np.array([row["params"] for row in rows], dtype=np.uint32),
            "flops": np.array([row["flops"] for row in rows], dtype=np.uint32),
        }
    }


def lasso_dna(originals: Originals) -> Tables:
    """Rows of binary features, as bits, and their classes."""
    table: Arrays = {}
    for name, (features, classes, count) in SPLITS.items():
        lines = originals.text(name).splitlines()
        if len(lines) != count:
            raise Refused(f"{name} has {len(lines):,} rows, not {count:,}")
        X, y = np.zeros((count, FEATURES), dtype=np.uint8), np.zeros(count, dtype=np.uint8)
        for row, line in enumerate(lines):
            label, *pairs = line.split()
            y[row] = int(label)
            for pair in pairs:
                place, value = pair.split(":")
                if not (1 <= int(place) <= FEATURES and float(value) in (0.0, 1.0)):
                    raise Refused(f"row {row + 1} of {name} has {pair!r}, where 1:1 to {FEATURES}:1 are known")
                X[row, int(place) - 1] = float(value)
        if not ((y >= 1) & (y <= 3)).all():
            raise Refused(f"{name} has classes other than 1, 2 and 3")
        table |= {features: np.packbits(X, axis=1), classes: y}
    return {"dna.npz": {**table, "n_features": np.array(FEATURES)}}


def ct_slices(originals: Originals) -> Tables:
    """Features and position of the first slices, from the CSV file, or from an archive of it."""
    (name,) = originals.paths
    content = originals.content(name)
    while content[:2] == b"PK":  # today's archive holds the former one
        inner = {path: read for path, read in zipped(content) if path.endswith((".csv", ".zip"))}
        if not inner:
            raise Refused("it is an archive without a CSV file")
        content = inner[sorted(inner)[0]]()
    lines = csv.reader(io.StringIO(decoded(content)))
    header = next(lines, [])
    if len(header) != COLUMNS + 1 or (header[0], header[-1]) != ("patientId", "reference"):
        raise Refused(f"its first line does not name {COLUMNS + 1} columns from patientId to reference")
    rows = [[float(word) for word in line] for line in itertools.islice(lines, SLICES)]
    if len(rows) < SLICES:
        raise Refused(f"it has {len(rows)} rows, where {SLICES} are needed")
    table = single(rows)
    return {"ctslice_first_rows.npz": {"X": table[:, :COLUMNS], "y": table[:, COLUMNS]}}


def rover(originals: Originals) -> Tables:
    """The centres of the obstacles, read from the program's text, which is not run."""
    (name,) = originals.paths
    try:
        parsed = ast.parse(originals.text(name))
    except (SyntaxError, ValueError, RecursionError):
        raise Refused("it is no Python program") from None
    (large, wide), (small, narrow) = LARGE, SMALL
    return {
        "rover_obstacles.npz": {
            "large": _centres(parsed, "create_cost_large", large),
            "small": _centres(parsed, "create_cost_small", small),
            "large_halfwidth": np.array(wide),
            "small_halfwidth": np.array(narrow),
            "start": np.array([0.05, 0.05]),
            "goal": np.array([0.95, 0.95]),
        }
    }


def _centres(parsed: ast.Module, function: str, count: int) -> Any:
    """The list of pairs that the function gives to numpy first."""
    for node in parsed.body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            lists = [part for part in ast.walk(node) if isinstance(part, ast.List)]
            centres = np.array(ast.literal_eval(max(lists, key=lambda part: len(part.elts))), dtype=np.float64)
            if centres.shape != (count, 2):
                raise Refused(f"{function} in it has centres of shape {centres.shape}, not {(count, 2)}")
            return centres
    raise Refused(f"it has no function {function}")
