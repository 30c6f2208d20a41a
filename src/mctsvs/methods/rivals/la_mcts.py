"""The tree of regions of LA-MCTS: a learned partition of the search space (Wang, Fonseca, Tian, NeurIPS 2020).

A node holds evaluated points and the part of the unit cube they stand for. It is split in two steps: k-means with two
clusters over [x, y] tells good points from bad ones, and a support vector machine with an RBF kernel learns the
boundary between them in x, which divides the whole part, not only its points. Going down, the child is taken with
the larger

    UCB = v_j + 2 C_p sqrt(2 log(n_parent) / n_j),

v_j the mean standardised value of the child's points and n_j their number.

Notation: n points, D coordinates, X (n, D) in the unit cube, z (n,) standardised values.

LA-MCTS with TuRBO inside: a tree divides the search space, TuRBO searches its best leaf.

Wang, Fonseca and Tian, "Learning Search Space Partition for Black-box Optimization using Monte Carlo Tree Search",
NeurIPS 2020. Where MCTS-VS has a tree over variables, this one has a tree over regions of the whole space. In every
round the tree is grown again from all points, a leaf is chosen by UCB, and TuRBO spends a burst of evaluations there:
its trust region starts around the leaf's best point, and it proposes only what the boundaries on the way to the leaf
let through.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from mctsvs.gp.optimize_acqf import quasi_random
from mctsvs.gp.standardize import standardise
from mctsvs.methods.base import Pending, Proposal, latin_hypercube
from mctsvs.methods.initial_design import InitialDesignEngine, InitialDesignOptions
from mctsvs.methods.solvers import Subspace
from mctsvs.methods.solvers.turbo import RegionOptions, TuRBO, TuRBOOptions
from mctsvs.utils.options import option
from mctsvs.utils.validation import Array, Indices

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


def clusters(features: Array, seed: int) -> Indices:
    """(n,) 0 or 1: the cluster of each point, by k-means."""
    from sklearn.cluster import KMeans

    labels: Indices = KMeans(2, n_init=STARTS, random_state=seed).fit(features).labels_
    return labels


def split(X: Array, z: Array, seed: int, penalty: float = 1.0) -> Boundary | None:
    """A boundary that divides these points into good and bad ones; None where none can be learned."""
    centre, spread = X.mean(axis=0), float(np.sqrt(X.var(axis=0).sum()))
    if (X[0] == X).all():
        return None
    # the one value counts as much as all coordinates together: it would drown among hundreds of them
    values = (z - z.mean()) / (float(z.std()) or 1.0)
    labels = clusters(np.column_stack([(X - centre) / spread, values]), seed)
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
    features = np.column_stack([X * width, y])
    if (features[0] == features).all():
        return None, None
    labels = clusters(features, seed)
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


FRESH = 10  # points a trust region begins with in the published program
CENTRES, PROBES = 20, 512  # the program takes all points of the leaf, and 2,000


@dataclass(frozen=True)
class PartitionOptions(RegionOptions, InitialDesignOptions):
    """leaf_size       points above which a node is split, theta
    cp              exploration constant C_p, in standard deviations of the values
    penalty         C of the support vector machines; 10 in place of 1 divides the space much more finely
    samples         evaluations TuRBO gets in a leaf before the tree is grown anew
    initial_points  Latin hypercube before the first tree
    width           of the box in natural units, in which the published partition is made
    and the options of a trust region: see `mctsvs.methods.solvers.turbo`

    With `published`, the program of its authors: a partition of values and coordinates as they are, C_p in the values'
    own units, and a trust region that knows only FRESH new points of the leaf, whose boundaries it may then cross.
    """

    leaf_size: int = option(20, least=4)
    cp: float = option(0.1, least=0)
    penalty: float = option(1.0, above=0)
    samples: int = option(50, least=1)
    initial_points: int = option(12, least=1)
    width: float = option(1.0, above=0)


class LAMCTS(InitialDesignEngine):
    """Trust regions inside the leaves of a learned partition of the space."""

    options_type: ClassVar[type[PartitionOptions]] = PartitionOptions
    options: PartitionOptions
    saved = ("queue", "left", "grown", "seed", "solver")
    queue: deque[Proposal]
    left: int  # evaluations still to be spent in the leaf
    grown: int  # points the tree was grown from
    seed: int  # of the tree's k-means
    solver: TuRBO

    def __init__(self, offsets: Indices, rng: np.random.Generator, options: PartitionOptions) -> None:
        super().__init__(offsets, rng, options)
        self.solver, self.queue = TuRBO(TuRBOOptions.take(vars(options))), deque()
        self.left, self.grown, self.seed = 0, 0, 0
        self.begin(latin_hypercube(options.initial_points, self.dimension, rng))

    def propose(self, n: int, pending: Pending) -> list[Proposal]:
        proposals: list[Proposal] = []
        while len(proposals) < n:
            if not self.queue:
                points = self._batch(pending.beside(proposals))
                self.queue.extend(self.proposal(x, self.everything) for x in points)
            proposals.append(self.queue.popleft())
        return proposals

    def _batch(self, waiting: Array) -> Array:
        design = self.from_design(1)
        if len(design):
            return design
        if len(self.history) < 2:  # nothing to learn from yet: values are late, or evaluations failed
            return self.rng.random((1, self.dimension))
        subspace = Subspace(
            self.history, np.arange(self.dimension), waiting, self.owner, next_proposal_id=self.proposed
        )
        if self.left == 0:
            self.seed, self.grown = int(self.rng.integers(2**31)), len(self.history)
            leaf = self._leaf()
            if self.options.published:
                self.solver.begin(subspace, fresh(leaf, self.history.X, self.rng))
            else:
                self.solver.start(subspace, leaf.rows, leaf.inside)
            self.left = self.options.samples
        elif self.solver.inside is None and not self.options.published:  # after a restart
            self.solver.inside = self._leaf().inside
        n = min(self.left, self.solver.batch)
        self.left -= n
        return self.solver.propose(n, subspace, self.rng)

    def _leaf(self) -> Leaf:
        """The leaf to search, from the first `grown` points and the seed alone, so that it need not be saved."""
        o, X, y = self.options, self.history.X[: self.grown], self.history.y[: self.grown]
        if o.published:
            return select(grow(X, y, o.leaf_size, self.seed, o.penalty, width=o.width), o.cp, root_growth=True)
        return select(grow(X, standardise(y), o.leaf_size, self.seed, o.penalty), o.cp)


def fresh(leaf: Leaf, X: Array, rng: np.random.Generator) -> Array:
    """(FRESH, D) new points of a leaf, from the smallest cubes around points of it that its boundaries cut.

    Cubes double from a ten-thousandth of the box; where nothing cuts any of them, points are from the whole box.
    """
    d = X.shape[1]
    found = [np.empty((0, d))]
    inside = leaf.inside(X[leaf.rows]) if leaf.path else np.zeros(0, dtype=np.bool_)
    for row in rng.choice(leaf.rows, min(CENTRES, int(inside.sum()))):
        unit = quasi_random(PROBES, d, rng)
        for length in 1e-4 * 2.0 ** np.arange(14):
            low, high = np.clip(X[row] - length / 2, 0, 1), np.clip(X[row] + length / 2, 0, 1)
            probes = low + (high - low) * unit
            kept = leaf.inside(probes)
            if not kept.all():
                found.append(probes[kept])
                break
    points = np.concatenate(found)
    return points[rng.choice(len(points), FRESH)] if len(points) else rng.random((FRESH, d))
