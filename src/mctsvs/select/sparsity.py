"""How many variables matter, told from the first few tests of groups never tested before.

With m of V variables active, a fresh random group of size s misses all of them with probability (1 - m/V)^s. From
hits and misses follows a posterior over m, and from it whether finding the variables one by one is affordable
(about m (log2(V/m) + 3/2) tests) or a model of all variables is the better bet.
"""

from __future__ import annotations

import numpy as np

from mctsvs.common import Array, Indices, State

AFFORDABLE = 110.0  # tests worth spending on finding the variables, where the budget is not known
SURE_SPARSE, SURE_DENSE = 0.2, 0.95  # P(m > limit) below or above which there is nothing left to ask
LEAST_PROBES, MOST_PROBES = 4, 16


def cost(active: Array, n_variables: int) -> Array:
    """Tests needed to find so many variables; fits 50 (6 of 500), 67 (10 of 300) and 100 (6 of 100,000)."""
    return np.asarray(active * (np.log2(np.maximum(n_variables / active, 1.0)) + 1.5))


class ActiveCount:
    """Posterior of the number m of active variables; log-uniform before the first probe."""

    def __init__(
        self, n_variables: int, outcomes: list[tuple[int, bool]] | None = None, affordable: float | None = None
    ) -> None:
        self.n_variables, self.affordable = n_variables, affordable
        self.m: Indices = np.unique(np.round(np.geomspace(1, n_variables, 200)).astype(np.intp))
        width = np.gradient(self.m.astype(np.float64)) if len(self.m) > 1 else np.ones(1)
        self.log_weight: Array = np.log(width) - np.log(self.m)
        self.outcomes: list[tuple[int, bool]] = []
        every = np.arange(1.0, n_variables + 1)
        tests, least = (AFFORDABLE, 15) if affordable is None else (affordable, 0)
        self.limit = int(min(max(n_variables / 4, 6), every[cost(every, n_variables) <= tests].max(initial=least)))
        for size, hit in outcomes or []:
            self.add(size, hit=hit)

    def add(self, size: int, *, hit: bool) -> None:
        self.outcomes.append((size, hit))
        log_miss = size * np.log1p(-np.minimum(self.m / self.n_variables, 1.0 - 1e-9))
        self.log_weight = self.log_weight + (np.log(1e-12 - np.expm1(log_miss)) if hit else log_miss)

    @property
    def _weights(self) -> Array:
        weights = np.exp(self.log_weight - self.log_weight.max())
        return np.asarray(weights / weights.sum())

    @property
    def typical(self) -> float:
        """Geometric mean of m."""
        return float(np.exp(self._weights @ np.log(self.m)))

    @property
    def probability_dense(self) -> float:
        """That more variables matter than tests can find."""
        return float(self._weights[self.m > self.limit].sum())

    @property
    def decided(self) -> bool:
        n, dense = len(self.outcomes), self.probability_dense
        return n >= MOST_PROBES or (n >= LEAST_PROBES and not SURE_SPARSE <= dense <= SURE_DENSE)

    @property
    def next_size(self) -> int:
        """A group as likely to hit as to miss."""
        density = min(max(self.typical, 4.0) / self.n_variables, 0.5)
        size = np.ceil(np.log(0.5) / np.log1p(-density))
        return int(np.clip(size, 1, max(1, self.n_variables // 8)))

    def state(self) -> State:
        return {"sizes": [size for size, _ in self.outcomes], "hits": [hit for _, hit in self.outcomes]}

    @classmethod
    def restore(cls, n_variables: int, state: State, affordable: float | None = None) -> ActiveCount:
        return cls(n_variables, list(zip(state["sizes"], state["hits"], strict=True)), affordable)
