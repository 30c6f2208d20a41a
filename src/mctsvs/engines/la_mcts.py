"""LA-MCTS with TuRBO inside: a tree divides the search space, TuRBO searches its best leaf.

Wang, Fonseca and Tian, "Learning Search Space Partition for Black-box Optimization using Monte Carlo Tree Search",
NeurIPS 2020. Where MCTS-VS has a tree over variables, this one has a tree over regions of the whole space: see
`mctsvs.engines.regions`. In every round the tree is grown anew from all points, a leaf is chosen by UCB, and TuRBO
spends a burst of evaluations there: its trust region starts around the leaf's best point, and it proposes only what
the boundaries on the way to the leaf let through.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mctsvs.common import Array, Indices
from mctsvs.engine import Pending, Proposal, latin_hypercube
from mctsvs.engines.design import DesignEngine, DesignOptions
from mctsvs.engines.regions import Leaf, grow, select
from mctsvs.gp.search import quasi_random
from mctsvs.gp.values import standardise
from mctsvs.options import option
from mctsvs.solve.subspace import Subspace
from mctsvs.solve.turbo import RegionOptions, TuRBO, TuRBOOptions

FRESH = 10  # points a trust region begins with in the published program
CENTRES, PROBES = 20, 512  # the program takes all points of the leaf, and 2,000


@dataclass(frozen=True)
class PartitionOptions(RegionOptions, DesignOptions):
    """leaf_size       points above which a node is split, theta
    cp              exploration constant C_p, in standard deviations of the values
    penalty         C of the support vector machines; 10 in place of 1 divides the space much more finely
    samples         evaluations TuRBO gets in a leaf before the tree is grown anew
    initial_points  Latin hypercube before the first tree
    width           of the box in natural units, in which the published partition is made
    and the options of a trust region: see `mctsvs.solve.turbo`

    With `published`, the program of its authors: a partition of values and coordinates as they are, C_p in the values'
    own units, and a trust region that knows only FRESH new points of the leaf, whose boundaries it may then cross.
    """

    leaf_size: int = option(20, least=4)
    cp: float = option(0.1, least=0)
    penalty: float = option(1.0, above=0)
    samples: int = option(50, least=1)
    initial_points: int = option(12, least=1)
    width: float = option(1.0, above=0)


class LAMCTS(DesignEngine):
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
        subspace = Subspace(self.history, np.arange(self.dimension), waiting, self.owner, next_ticket=self.proposed)
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
