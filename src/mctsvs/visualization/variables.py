"""Which variables act, the tree of groups, and where the best points are."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mctsvs.optimizer.active_variables import VariableStatus
from mctsvs.utils.formatting import listed, short_value
from mctsvs.utils.validation import Array, Indices
from mctsvs.visualization.run_data import RunData

MOST_NODES = 300


@dataclass(frozen=True)
class ActiveVariables:
    """The variables that were seen to act, the largest effect first; none where all do."""

    rows: list[VariableStatus]
    at: list[str]  # their values at the point to take
    words: str  # which variables act, and how many are not known to

    @property
    def share(self) -> Array:
        """Of the range of all values, by which each changes them at least."""
        return np.array([row.share for row in self.rows])

    @property
    def change(self) -> list[str]:
        """The same in the value's units, or in those of a measured constraint."""
        return [f"{row.effect:.3g}" + (f" ({row.output})" if row.output != "value" else "") for row in self.rows]


def active(run: RunData, most: int = 20) -> ActiveVariables:
    named, params = set(run.variables.named[:most]), {} if run.point is None else run.point.params
    rows = [row for row in run.variables if row.name in named]
    at = [short_value(params[row.name]) if row.name in params else "-" for row in rows]
    return ActiveVariables(rows, at, "; ".join(filter(None, (run.variables.summary, run.variables.rest))))


@dataclass(frozen=True)
class Icicle:
    """The tree of groups, a column for each thing known of a node; parents come before their children."""

    parent: list[int]  # -1: the root
    size: Indices  # variables
    value: Array
    visits: Indices
    depth: Indices
    width: Array  # of the picture; a leaf's grows with the root of its size, so that single variables can be seen
    start: Array  # where the node begins, from the left
    names: list[str]  # of its variables, a few of them

    def __len__(self) -> int:
        return len(self.parent)


def tree(run: RunData, names: int = 8) -> Icicle | None:
    """None for methods without a tree; of a very large one, the nodes nearest to the root."""
    if run.tree is None:
        return None
    nodes, parents, depths = [run.tree], [-1], [0]
    for at in itertools.count():
        if at == len(nodes) or len(nodes) >= MOST_NODES:
            break
        for child in nodes[at].children or ():
            nodes.append(child)
            parents.append(at)
            depths.append(depths[at] + 1)
    inner = set(parents)
    sizes = np.array([len(node.variables) for node in nodes])
    width = np.array([0.0 if i in inner else float(np.sqrt(size)) for i, size in enumerate(sizes)])
    for i in reversed(range(1, len(nodes))):
        width[parents[i]] += width[i]
    width /= max(width[0], 1e-12)
    start, free = np.zeros(len(nodes)), np.zeros(len(nodes))
    for i in range(1, len(nodes)):
        start[i] = free[i] = free[parents[i]]
        free[parents[i]] += width[i]
    value, visits = np.array([float(node.value) for node in nodes]), np.array([int(node.visits) for node in nodes])
    texts = [listed([run.space.names[v] for v in node.variables], names) for node in nodes]
    return Icicle(parents, sizes, value, visits, np.array(depths), width, start, texts)


@dataclass(frozen=True)
class Parallel:
    """The best points, and a few of the others, on one axis for each active variable."""

    names: list[str]
    place: Array  # (k, names) in [0, 1] on each axis
    ends: list[tuple[str, str]]  # what the ends of each axis are
    value: Array  # (k,) of the objective; the best first
    trial: Indices  # (k,) numbers
    best: int  # the first so many are the best points


def parallel(run: RunData, points: int = 20, others: int = 40, variables: int = 8) -> Parallel:
    names = run.variables.active[:variables]
    rows = np.flatnonzero(run.feasible)
    rows = rows[np.argsort(-run.sign * run.values[rows], kind="stable")]
    rest = rows[points:]
    rest = rest[np.unique(np.linspace(0, len(rest) - 1, min(others, len(rest))).round().astype(np.intp))]
    kept = np.concatenate([rows[:points], rest])
    x = run.space.decode(run.units[kept]) if len(kept) else np.empty((0, len(run.space)))
    place, ends = np.empty((len(kept), len(names))), []
    for column, name in enumerate(names):
        v = run.position[name]
        variable = run.space.variables[v]
        low, high = run.space.bounds[v]
        value = x[:, v]
        if variable.labels is not None:
            ends.append((str(variable.labels[0]), str(variable.labels[-1])))
        else:
            ends.append((f"{low:.4g}", f"{high:.4g}"))
            if getattr(variable, "log", False):
                low, high, value = np.log(low), np.log(high), np.log(value)
        place[:, column] = (value - low) / (high - low) if high > low else 0.5
    return Parallel(names, place, ends, run.values[kept], run.numbers[kept], min(points, len(rows)))


def settings(run: RunData) -> list[tuple[str, Any]]:
    """What the run is: method, options, seed, budget, problem."""
    about = run.about
    rows: list[tuple[str, Any]] = [("method", about["method"])] if "method" in about else []
    rows += [(f"option {name}", value) for name, value in dict(about.get("options") or {}).items()]
    rows += [(name, about[name]) for name in ("seed", "budget") if name in about]
    rows += [("file", Path(about["path"]).name)] if "path" in about else []
    rows += [("direction", run.direction), ("variables", len(run.space)), ("evaluations", len(run.told))]
    return rows
