"""The tree of regions of LA-MCTS: a learned partition of the search space (Wang, Fonseca, Tian, NeurIPS 2020).

A node holds evaluated points and the part of the unit cube they stand for. It is split in two steps: k-means with two
clusters over [x, y] tells good points from bad ones, and a support vector machine with an RBF kernel learns the
boundary between them in x, which divides the whole part, not only its points. Going down, the child is taken with
the larger

    UCB = v_j + 2 C_p sqrt(2 log(n_parent) / n_j),

v_j the mean standardised value of the child's points and n_j their number.

Notation: n points, D coordinates, X (n, D) in the unit cube, z (n,) standardised values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mctsvs.common import Array, Indices

FEWEST = 2  # points a child must keep: one point alone is no cluster
STARTS = 10  # of k-means, the best of which is taken


@dataclass(frozen=True)
class Boundary:
    """A fitted support vector machine, of points shifted by `centre`; `good` is the sign of its good side."""

    centre: Array  # (D,)
    vectors: Array  # (s, D) support vectors
    weights: Array  # (s,)
    offset: float
    gamma: float
    good: float = 1.0

    def decision(self, X: Array) -> Array:
        """(m,) the machine's decision function, by one matrix product: much faster than the library's loop."""
        X = X - self.centre
        squares = np.einsum("ij,ij->i", X, X)[:, None] + np.einsum("ij,ij->i", self.vectors, self.vectors)
        distance = np.maximum(squares - 2.0 * (X @ self.vectors.T), 0.0)
        decision: Array = np.exp(-self.gamma * distance) @ self.weights + self.offset
        return decision

    def __call__(self, X: Array) -> npt.NDArray[np.bool_]:
        """(m,) whether the points are on the good side."""
        good: npt.NDArray[np.bool_] = self.good * self.decision(X) > 0.0
        return good


@dataclass(frozen=True)
class Part:
    """A node: rows of its points, their mean value, and how it is divided."""

    rows: Indices
    value: float
    boundary: Boundary | None = None
    children: tuple[Part, Part] | None = None  # good, bad

    def walk(self) -> Iterator[Part]:
        """All nodes, parents first, good before bad."""
        yield self
        for child in self.children or ():
            yield from child.walk()


def grow(X: Array, z: Array, leaf_size: int, seed: int, penalty: float = 1.0, *, width: float | None = None) -> Part:
    """The tree over all points: every node with more than `leaf_size` points is split where it can be.

    `penalty` is the machines' C: the larger, the more nodes can be split, and the more closely a boundary follows
    its points. With a `width`, that of the box in natural units, nodes are split as in the published program: values
    and coordinates are clustered as they are, and points belong to the cluster they are in, not to a side of the
    boundary.
    """
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    def part(rows: Indices) -> Part:
        value = float(z[rows].mean()) if len(rows) else 0.0
        if len(rows) <= leaf_size:
            return Part(rows, value)
        if width is None:
            boundary = split(X[rows], z[rows], seed, penalty)
            good = None if boundary is None else boundary(X[rows])
        else:
            boundary, good = split_as_published(X[rows], z[rows], seed, penalty, width)
        if boundary is None or good is None:
            return Part(rows, value)
        return Part(rows, value, boundary, (part(rows[good]), part(rows[~good])))

    with threadpool_limits(1):  # sums in a fixed order: the same tree on any number of cores
        return part(np.arange(len(z)))


def split(X: Array, z: Array, seed: int, penalty: float = 1.0) -> Boundary | None:
    """A boundary that divides these points into good and bad ones; None where none can be learned."""
    from sklearn.cluster import KMeans

    centre, spread = X.mean(axis=0), float(np.sqrt(X.var(axis=0).sum()))
    if (X[0] == X).all():
        return None
    # the one value counts as much as all coordinates together: it would drown among hundreds of them
    values = (z - z.mean()) / (float(z.std()) or 1.0)
    features = np.column_stack([(X - centre) / spread, values])
    labels = KMeans(2, n_init=STARTS, random_state=seed).fit(features).labels_
    if min(labels.sum(), (1 - labels).sum()) < FEWEST:
        return None
    boundary = fit(X, labels, seed, penalty)
    side = boundary(X)
    if min(side.sum(), (~side).sum()) < FEWEST:
        return None
    return boundary if z[side].mean() >= z[~side].mean() else replace(boundary, good=-1.0)


def split_as_published(
    X: Array, y: Array, seed: int, penalty: float, width: float
) -> tuple[Boundary | None, npt.NDArray[np.bool_] | None]:
    """The boundary learned from two clusters of [x, y] in natural units, and which points are in the better one."""
    from sklearn.cluster import KMeans

    features = np.column_stack([X * width, y])
    if (features[0] == features).all():
        return None, None
    labels = KMeans(2, n_init=STARTS, random_state=seed).fit(features).labels_
    if labels.all() or not labels.any():
        return None, None
    good = (labels == 1) == (y[labels == 1].mean() >= y[labels == 0].mean())
    boundary = fit(X, good.astype(int), seed, penalty, gamma=width**2 / X.shape[1])
    side = boundary(X)
    return (None, None) if side.all() or not side.any() else (boundary, good)


def fit(X: Array, labels: npt.NDArray[Any], seed: int, penalty: float = 1.0, *, gamma: float | None = None) -> Boundary:
    """The boundary between points labelled 0 and 1; by default the kernel is as wide as the library's "scale"."""
    from sklearn.svm import SVC

    centre = X.mean(axis=0)
    gamma = 1.0 / (X.shape[1] * float(X.var() or 1.0)) if gamma is None else gamma
    machine = SVC(C=penalty, gamma=gamma, random_state=seed).fit(X - centre, labels)
    vectors, weights = np.ascontiguousarray(machine.support_vectors_), machine.dual_coef_[0]
    return Boundary(centre, vectors, weights, float(machine.intercept_[0]), gamma)


@dataclass(frozen=True)
class Leaf:
    """A leaf and the boundaries on the way to it."""

    rows: Indices
    path: tuple[tuple[Boundary, bool], ...]  # with the side taken

    def inside(self, X: Array) -> npt.NDArray[np.bool_]:
        """(m,) whether the points lie in the leaf's part of the cube."""
        inside = np.ones(len(X), dtype=np.bool_)
        for boundary, good in self.path:
            left = np.flatnonzero(inside)
            if not len(left):
                break
            inside[left] = boundary(X[left]) == good
        return inside


def select(root: Part, cp: float, *, root_growth: bool = False) -> Leaf:
    """The leaf reached by the larger UCB at each step; the good child wins a tie.

    `root_growth`: sqrt(n_parent) in place of its logarithm, as in the published program.
    """
    node, path = root, []
    while node.children is not None:
        assert node.boundary is not None
        growth = np.sqrt(len(node.rows)) if root_growth else np.log(len(node.rows))
        good, bad = (c.value + 2.0 * cp * np.sqrt(2.0 * growth / len(c.rows)) for c in node.children)
        path.append((node.boundary, bool(good >= bad)))
        node = node.children[0 if good >= bad else 1]
    return Leaf(node.rows, tuple(path))
