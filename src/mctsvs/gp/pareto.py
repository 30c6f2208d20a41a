"""Points of which none is better in every objective: the front, its hypervolume, its knee, and where it is measured
from.

Notation: Y (n, M) values of n points in M objectives, larger is better; `reference` (M,) a point worse than the front.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from mctsvs.utils.validation import Array, Indices

BEYOND = 0.2  # ranges of the front between its worst values and the reference point, where nobody gave one


def non_dominated(Y: Array) -> npt.NDArray[np.bool_]:
    """(n,) whether no other point is at least as good in all objectives; of equal points, the first one.

    A point with a NaN is never one of them.
    """
    kept = np.zeros(len(Y), dtype=np.bool_)
    rest: Indices = np.flatnonzero(~np.isnan(Y).any(axis=1))
    rest = rest[np.lexsort(-Y[rest].T[::-1])]  # whatever dominates a point comes before it
    while len(rest):
        first, rest = rest[0], rest[1:]
        kept[first] = True
        rest = rest[(Y[rest] > Y[first]).any(axis=1)]
    return kept


def hypervolume(Y: Array, reference: Array) -> float:
    """The volume that the points dominate, down to the reference point: exact, for any number of objectives."""
    gains = np.asarray(Y, dtype=np.float64).reshape(-1, len(reference)) - reference
    gains = gains[(gains > 0.0).all(axis=1)]
    if not len(gains):
        return 0.0
    scale = gains.max(axis=0)  # of values that are huge, no sum of boxes overflows
    return _volume(gains[non_dominated(gains)] / scale) * float(math.prod(scale.tolist()))


def _volume(gains: Array) -> float:
    """Of boxes (n, M) from the origin to points that do not dominate each other."""
    n, M = gains.shape
    if n == 0:
        return 0.0
    if n == 1:
        return float(gains.prod())
    if M == 1:
        return float(gains.max())
    gains = gains[np.argsort(-gains[:, 0], kind="stable")]
    if M == 2:  # strips: by the first objective downwards the second one rises
        return float(gains[:, 0] @ np.diff(gains[:, 1], prepend=0.0))
    if M == 3:
        return _slices(gains)
    total = 0.0
    for i, corner in enumerate(gains):  # what each box adds to those behind it
        shared = np.minimum(gains[i + 1 :], corner)
        total += float(corner.prod()) - _volume(shared[non_dominated(shared)])
    return total


def _slices(gains: Array) -> float:
    """Of three objectives: areas between one value of the last objective and the next one below it."""
    gains = gains[np.argsort(-gains[:, 2], kind="stable")]
    heights = gains[:, 2] - np.append(gains[1:, 2], 0.0)
    total = 0.0
    for i in np.flatnonzero(heights > 0.0):
        flat = gains[: i + 1, :2]
        total += float(heights[i]) * _volume(flat[non_dominated(flat)])
    return total


def reference_point(Y: Array) -> Array:
    """(M,) a little worse than the front of Y in each objective, by a share of the front's range there.

    Where the front has no range, by a share of the range of all points; where these have none, by that share of 1.
    """
    front = Y[non_dominated(Y)]
    width = np.ptp(front, axis=0)
    known = Y[~np.isnan(Y).any(axis=1)]
    width = np.where(width > 0.0, width, np.ptp(known, axis=0))
    reference: Array = front.min(axis=0) - BEYOND * np.where(width > 0.0, width, 1.0)
    return reference


def knee(front: Array) -> int:
    """Row of the point of a front (n, M) from which every way along it costs most.

    With the front scaled to [0, 1], that is the point farthest beyond the plane through its best points in each
    objective.
    """
    low, width = front.min(axis=0), np.ptp(front, axis=0)
    scaled = (front - low) / np.where(width > 0.0, width, 1.0)
    return int(np.argmax(scaled @ _plane(scaled)))


def _plane(scaled: Array) -> Array:
    """(M,) normal of the plane through the best points in each objective; all ones where these span none."""
    ends = scaled[np.argmax(scaled, axis=0)]
    even = np.ones(scaled.shape[1])
    if np.linalg.matrix_rank(ends, tol=1e-6) < len(even):
        return even
    normal: Array = np.linalg.solve(ends, even)
    return normal if (normal > 0.0).all() else even
