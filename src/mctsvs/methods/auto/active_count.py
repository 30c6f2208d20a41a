"""How many variables matter, told from the first few tests of groups never tested before.

With m of V variables active, a fresh random group of size s misses all of them with probability (1 - m/V)^s. From
hits and misses follows a posterior over m, and from it whether finding the variables one by one is affordable
(about m (log2(V/m) + 3/2) tests) or a model of all variables is the better bet.
"""

from __future__ import annotations

import numpy as np

from mctsvs.methods.auto import constants as const
from mctsvs.utils.state import Saved
from mctsvs.utils.validation import Array, Indices


def cost(active: Array, n_variables: int) -> Array:
    """Tests needed to find so many variables."""
    return np.asarray(const.COST * active * (np.log2(np.maximum(n_variables / active, 1.0)) + 1.5))


class ActiveCount(Saved):
    """Posterior of the number m of active variables; log-uniform before the first probe."""

    saved = ("outcomes", "limit")
    outcomes: list[tuple[int, bool]]  # size of each group, and whether it hit
    limit: int  # variables that tests can find

    def __init__(self, n_variables: int) -> None:
        self.n_variables, self.outcomes = n_variables, []
        self.m: Indices = np.unique(np.round(np.geomspace(1, n_variables, 200)).astype(np.intp))
        self.afford(const.AFFORDABLE, least=const.REACHABLE)

    def afford(self, tests: float, least: int = 0) -> None:
        """So many tests may be spent; at least so many variables are within reach."""
        every = np.arange(1.0, self.n_variables + 1)
        within = every[cost(every, self.n_variables) <= tests].max(initial=least)
        self.limit = int(min(max(self.n_variables / 4, 6), within))

    def add(self, size: int, *, hit: bool) -> None:
        self.outcomes.append((size, hit))

    @property
    def weights(self) -> Array:
        """Posterior probability of each m."""
        width = np.gradient(self.m.astype(np.float64)) if len(self.m) > 1 else np.ones(1)
        log_weight: Array = np.log(width) - np.log(self.m)
        for size, hit in self.outcomes:
            log_miss = size * np.log1p(-np.minimum(self.m / self.n_variables, 1.0 - 1e-9))
            log_weight = log_weight + (np.log(1e-12 - np.expm1(log_miss)) if hit else log_miss)
        weights: Array = np.exp(log_weight - log_weight.max())
        weights /= weights.sum()
        return weights

    @property
    def typical(self) -> float:
        """Geometric mean of m."""
        return float(np.exp(self.weights @ np.log(self.m)))

    @property
    def probability_dense(self) -> float:
        """That more variables matter than tests can find."""
        return float(self.weights[self.m > self.limit].sum())

    @property
    def decided(self) -> bool:
        n, sure = len(self.outcomes), not const.SURE_SPARSE <= self.probability_dense <= const.SURE_DENSE
        return n >= const.MOST_PROBES or (n >= const.LEAST_PROBES and sure)

    @property
    def next_size(self) -> int:
        """A group as likely to hit as to miss."""
        density = min(max(self.typical, 4.0) / self.n_variables, 0.5)
        size = np.ceil(np.log(0.5) / np.log1p(-density))
        return int(np.clip(size, 1, max(1, self.n_variables // 8)))
