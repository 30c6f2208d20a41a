"""Deciding categories: an acquisition function is climbed inside the cube, but only one-hot codes can be evaluated.

Left to rounding, the best point of the cube falls back on categories already tried, the model learns nothing from it,
and the next climb ends at the same place: on a space of categories alone every step then repeats a known point.
"""

from __future__ import annotations

import numpy as np

from mctsvs.gp.acquisition import AcquisitionLike
from mctsvs.gp.optimize_acqf import climb
from mctsvs.utils.validation import Array, Indices

MOST_NEIGHBOURS = 256  # changes of one category looked at in a step
MOST_STEPS = 10
MOST_DRAWS = 100  # of whole points, where all neighbours are known
REFINE = 10  # steps of the other coordinates once the categories are decided

Blocks = list[Indices]
"""Coordinates of each category."""


def blocks_of(owner: Indices, coordinates: Indices) -> Blocks:
    """Positions among `coordinates` of each variable that has several; `owner` (D,) is each coordinate's variable."""
    if owner[-1] + 1 == len(owner):  # a coordinate each, the common case
        return []
    owners = owner[coordinates]
    several = np.flatnonzero(np.bincount(owners) > 1)
    return [np.flatnonzero(owners == variable) for variable in several]


def decide(surface: AcquisitionLike, point: Array, blocks: Blocks, known: Array, rng: np.random.Generator) -> Array:
    """A point near `point` with every category decided, of large acquisition and none of the `known` (n, d).

    Ascent over changes of one category at a time; the other coordinates follow at the end.
    """
    x = _rounded(point, blocks)
    tried, values = [x[None]], [surface(x[None])]
    value = values[0][0]
    for _ in range(MOST_STEPS):
        near = _neighbours(x, blocks, rng)
        tried.append(near)
        values.append(surface(near))
        best = int(np.argmax(values[-1]))
        if values[-1][best] <= value:
            break
        x, value = near[best], values[-1][best]
    points = np.concatenate(tried)
    order = np.argsort(-np.concatenate(values), kind="stable")
    seen = {row.tobytes() for row in known + 0.0}
    new: Array | None = next((points[i] for i in order if points[i].tobytes() not in seen), None)
    for _ in range(MOST_DRAWS):
        if new is not None:
            break
        drawn = _rounded(rng.random(len(point)), blocks)
        new = None if drawn.tobytes() in seen else drawn
    if new is None:  # every combination is known
        return x
    fixed = np.concatenate(blocks)
    if len(fixed) == len(new):
        return new
    low, high = np.zeros(len(new)), np.ones(len(new))
    low[fixed] = high[fixed] = new[fixed]
    return climb(surface, new, low, high, iterations=REFINE)[0]


def other_category(x: Array, block: Indices, rng: np.random.Generator) -> Array:
    """The code (k,) of a category other than the one of x (D,)."""
    code = np.zeros(len(block))
    code[(int(x[block].argmax()) + int(rng.integers(1, len(block)))) % len(block)] = 1.0
    return code


def _rounded(point: Array, blocks: Blocks) -> Array:
    x = point + 0.0
    for block in blocks:
        largest = block[x[block].argmax()]
        x[block] = 0.0
        x[largest] = 1.0
    return x


def _neighbours(x: Array, blocks: Blocks, rng: np.random.Generator) -> Array:
    """(m, d) the points that differ in one category, or a random part of them."""
    changes = [(block, i) for block in blocks for i in block if x[i] == 0.0]
    if len(changes) > MOST_NEIGHBOURS:
        changes = [changes[i] for i in rng.choice(len(changes), MOST_NEIGHBOURS, replace=False)]
    near = np.repeat(x[None], len(changes), axis=0)
    for row, (block, i) in zip(near, changes, strict=True):
        row[block] = 0.0
        row[i] = 1.0
    return near
