"""LA-MCTS with TuRBO inside: a tree divides the search space, TuRBO searches its best leaf.

Wang, Fonseca and Tian, "Learning Search Space Partition for Black-box Optimization using Monte Carlo Tree Search",
NeurIPS 2020. Where MCTS-VS has a tree over variables, this one has a tree over regions of the whole space: see
`mctsvs.engines.regions`. In every round the tree is grown anew from all points, a leaf is chosen by UCB, and TuRBO
spends a burst of evaluations there: its trust region starts around the leaf's best point, and it proposes only what
the boundaries on the way to the leaf let through.
"""

from __future__ import annotations

from collections import deque
from typing import Any, ClassVar

import numpy as np

from mctsvs.common import Array, Indices, InputError, State
from mctsvs.engines import Proposal
from mctsvs.engines.base import HistoryEngine, latin_hypercube
from mctsvs.engines.regions import Leaf, grow, select
from mctsvs.gp.values import standardise
from mctsvs.solve.subspace import Subspace
from mctsvs.solve.turbo import TuRBO

TURBO_OPTIONS = tuple(name for name in TuRBO.options if name != "regions")


class LAMCTS(HistoryEngine):
    """Trust regions inside the leaves of a learned partition of the space.

    leaf_size       points above which a node is split, theta
    cp              exploration constant C_p, in standard deviations of the values
    penalty         C of the support vector machines; 10 in place of 1 divides the space much more finely
    samples         evaluations TuRBO gets in a leaf before the tree is grown anew
    initial_points  Latin hypercube before the first tree
    batch, candidates, patience, ...    TuRBO's options: see `mctsvs.solve.turbo.TuRBO`
    """

    options: ClassVar[tuple[str, ...]] = ("leaf_size", "cp", "penalty", "samples", "initial_points", *TURBO_OPTIONS)

    def __init__(
        self,
        offsets: Indices,
        rng: np.random.Generator,
        *,
        leaf_size: int = 20,
        cp: float = 0.1,
        penalty: float = 1.0,
        samples: int = 50,
        initial_points: int = 12,
        **turbo: Any,
    ) -> None:
        for name, value, least in (("leaf_size", leaf_size, 4), ("samples", samples, 1)):
            if value < least:
                raise InputError(f"{name}={value} is too small: it must be at least {least}")
        if initial_points < 1:
            raise InputError(f"initial_points={initial_points} is too small: it must be at least 1")
        if not (np.isfinite(cp) and cp >= 0):
            raise InputError(f"cp={cp} is no exploration constant: it must be a number of at least 0")
        if not (np.isfinite(penalty) and penalty > 0):
            raise InputError(f"penalty={penalty} is no weight of a support vector machine: it must be greater than 0")
        super().__init__(offsets, rng)
        self.leaf_size, self.cp, self.penalty, self.samples = leaf_size, cp, penalty, samples
        self.solver = TuRBO(**turbo)
        self.queue: deque[Array] = deque(latin_hypercube(initial_points, self.dimension, rng))
        self.left = 0  # evaluations still to be spent in the leaf
        self.grown = 0  # points the tree was grown from
        self.seed = 0  # of the tree's k-means

    def propose(self, n: int, pending: Array) -> list[Proposal]:
        proposals: list[Proposal] = []
        while len(proposals) < n:
            if not self.queue:
                self.queue.extend(self._batch(np.concatenate([pending, *(p.x[None] for p in proposals)])))
            proposals.append(Proposal(self.queue.popleft(), self.everything))
        return proposals

    def _batch(self, waiting: Array) -> Array:
        if len(self.history) < 2:  # nothing to learn from yet: values are late, or evaluations failed
            return self.rng.random((1, self.dimension))
        subspace = self._space(waiting)
        if self.left == 0:
            self.seed, self.grown = int(self.rng.integers(2**31)), len(self.history)
            leaf = self._leaf()
            self.solver.start(subspace, leaf.rows, leaf.inside)
            self.left = self.samples
        n = min(self.left, self.solver.batch)
        self.left -= n
        return self.solver.propose(n, subspace, self.rng)

    def _space(self, waiting: Array) -> Subspace:
        return Subspace(self.history, np.arange(self.dimension), waiting, self.owner)

    def _leaf(self) -> Leaf:
        """The leaf to search, from the first `grown` points and the seed alone, so that it need not be saved."""
        X, z = self.history.X[: self.grown], standardise(self.history.y[: self.grown])
        return select(grow(X, z, self.leaf_size, self.seed, self.penalty), self.cp)

    def state(self) -> State:
        return {
            **super().state(),
            "queue": [x.copy() for x in self.queue],
            "left": self.left,
            "grown": self.grown,
            "seed": self.seed,
            "solver": self.solver.state(),
        }

    def restore(self, state: State) -> None:
        super().restore(state)
        self.queue = deque(np.asarray(x) for x in state["queue"])
        self.left, self.grown, self.seed = state["left"], state["grown"], state["seed"]
        self.solver.restore(state["solver"], self._space(np.empty((0, self.dimension))))
        self.solver.inside = self._leaf().inside if self.grown else None
