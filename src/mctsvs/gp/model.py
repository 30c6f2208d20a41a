"""A Gaussian process that is kept up to date: refits now and then, extends its factor in between.

The numbers below were measured (docs/design.md): refit when a tenth more points have come, at the latest after
fifty; beyond two thousand points fit the thousand nearest to the incumbent in the lengthscale metric.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mctsvs.common import Array, Indices, State
from mctsvs.gp.kernels import Joint, Kernel, joint_additive
from mctsvs.gp.likelihood import FAILED, Likelihood
from mctsvs.gp.posterior import Posterior
from mctsvs.gp.priors import PRIORS, Prior
from mctsvs.gp.quasi_newton import Pairs, minimise
from mctsvs.gp.values import standardise

KERNELS: dict[str, Kernel] = {
    "matern52": Joint("matern52"),
    "se": Joint("se"),
    "joint-additive": joint_additive("se"),
}
LARGEST_FIT = 2000
NEAREST = 1000


@dataclass
class Model:
    """Exact Gaussian process on the unit cube.

    >>> model = Model()
    >>> posterior = model.update(X, y)          # fits, extends or refits as needed
    >>> mean, sd = posterior.predict(Z)         # of standardised values
    """

    kernel: str = "matern52"
    prior: str = "subspace"
    refit_growth: float = 1.1
    refit_after: int = 50
    winsorise: bool = True
    fit_points: int = LARGEST_FIT  # parameters are fitted to at most so many points
    iterations: int = 30
    constant_mean: bool = False
    thorough: bool = False  # every fit starts from the prior's mode and goes on until nothing is gained
    theta: Array | None = None
    pairs: Pairs = field(default_factory=list)
    fitted: int = 0  # number of points at the last fit
    posterior: Posterior | None = None

    def update(self, X: Array, y: Array) -> Posterior:
        """Posterior given all data so far; X must start with the points of the last call."""
        n = len(X)
        values = standardise(y, winsorise=self.winsorise)
        if n > LARGEST_FIT:
            rows = self._nearest(X, values)
            X, values = X[rows], values[rows]
            self.posterior = None
        growth = min(self.refit_growth * self.fitted - 1e-9, self.fitted + self.refit_after)  # 1.1 * 100 > 110
        due = n >= max(self.fitted + 1, growth)
        if self.theta is None or self.fitted == 0 or due:
            self._fit(X, values)
            self.fitted, self.posterior = n, None
        assert self.theta is not None
        if self.posterior is None:
            self.posterior = Posterior.of(KERNELS[self.kernel], self.theta, X, values, constant_mean=self.constant_mean)
        else:
            self.posterior = self.posterior.extended(X[len(self.posterior.X) :], values)
        return self.posterior

    def forget(self) -> None:
        """The next update may bring other points: fit again, from the parameters known."""
        self.fitted, self.posterior = 0, None

    def _fit(self, X: Array, values: Array) -> None:
        kernel = KERNELS[self.kernel]
        prior = PRIORS[self.prior](kernel, X.shape[1])
        rows = spread_by_rank(values, self.fit_points)
        X, values = X[rows], values[rows]
        start = prior.start if self.theta is None or self.thorough else self.theta
        likelihood = Likelihood(kernel, X, values, prior, constant_mean=self.constant_mean)
        if self.thorough:
            self.pairs = []
        self.theta = fit(likelihood, prior, start, self.pairs, iterations=self.iterations, careful=self.thorough)

    def _nearest(self, X: Array, values: Array) -> Indices:
        """Rows of the points nearest to the incumbent in the lengthscale metric."""
        d = X.shape[1]
        scale = np.exp(-self.theta[:d]) if self.theta is not None else np.ones(d)
        difference = (X - X[np.argmax(values)]) * scale
        distance = np.einsum("ij,ij->i", difference, difference)
        return np.sort(np.argsort(distance, kind="stable")[:NEAREST])

    def state(self) -> State:
        blocks = [] if self.posterior is None else list(self.posterior.blocks)
        return {
            "theta": self.theta,
            "pairs": [np.stack(pair) for pair in self.pairs],
            "fitted": self.fitted,
            "blocks": blocks,
        }

    def restore(self, state: State, X: Array, y: Array) -> None:
        """Continue from `state`; X and y are the data at the time it was taken."""
        self.theta, self.fitted = state["theta"], state["fitted"]
        self.pairs = [(pair[0], pair[1]) for pair in state["pairs"]]
        blocks = state["blocks"]
        self.posterior = None
        if blocks and self.theta is not None and len(X) <= LARGEST_FIT:
            known = sum(blocks)
            values = standardise(y[:known], winsorise=self.winsorise)
            self.posterior = Posterior.replay(
                KERNELS[self.kernel], self.theta, X[:known], values, blocks, constant_mean=self.constant_mean
            )


def fit(
    likelihood: Likelihood, prior: Prior, start: Array, pairs: Pairs, *, iterations: int = 30, careful: bool = False
) -> Array:
    """Most probable parameters, starting from `start`; `start` again if nothing better can be computed.

    `careful`: with hundreds of lengthscales the first steps gain little, and a long one leaves the basin.
    """
    tolerance, first, longest = (1e-3, 0.1, 0.5) if careful else (0.02, 0.3, 2.0)
    theta, value = minimise(
        likelihood,
        start,
        prior.low,
        prior.high,
        pairs,
        iterations=iterations,
        tolerance=tolerance,
        first_step=first,
        longest_step=longest,
    )
    return theta if value < FAILED else np.clip(start, prior.low, prior.high)


def spread_by_rank(values: Array, most: int) -> Indices:
    """Rows of at most so many points, spread evenly over the ranks of their values: good and bad ones both count."""
    n = len(values)
    if n <= most:
        return np.arange(n)
    ranks = np.linspace(0, n - 1, most).round().astype(np.intp)
    return np.sort(np.argsort(values, kind="stable")[ranks])
