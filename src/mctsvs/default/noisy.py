"""Under noise no test tells whether few variables matter or many: the model that predicts better does.

Two models of all variables are fitted without a part of the points and predict it. One has a lengthscale for each
variable, and finds the few that matter; the other treats them alike, and knows the shape of a bowl. Where neither is
ahead, they take turns.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from mctsvs.common import Array
from mctsvs.default import constants as const
from mctsvs.gp.kernels import Kernel
from mctsvs.gp.likelihood import Likelihood
from mctsvs.gp.model import KERNELS, fit, spread_by_rank
from mctsvs.gp.posterior import Posterior
from mctsvs.gp.priors import PRIORS
from mctsvs.gp.relevance import evidence, log_normal
from mctsvs.gp.values import standardise
from mctsvs.state import Saved


class Ahead(Enum):
    """Which model predicts better."""

    APART = "apart"  # that with a lengthscale for each variable
    ALIKE = "alike"
    NEITHER = "neither"


@dataclass
class Rivalry(Saved):
    """Who was ahead when the two were last compared."""

    ahead: str = Ahead.NEITHER.value
    compared: int = 0  # points then

    def alike(self, turn: int, X: Array, y: Array) -> bool:
        """Whether this turn is that of the model that treats the variables alike."""
        if len(y) >= const.COMPARED * self.compared and X.shape[1] <= const.WIDEST_MODEL:
            self.ahead, self.compared = compare(X, y).value, len(y)
        every = {Ahead.APART.value: 0, Ahead.NEITHER.value: 2, Ahead.ALIKE.value: 4}[self.ahead]
        return every > 0 and (turn % every > 0)


def compare(X: Array, y: Array) -> Ahead:
    """By the log density of held-out values, of which none may decide alone."""
    values = standardise(y)
    rows = spread_by_rank(values, const.MOST_COMPARED)
    X, values = X[rows], values[rows]
    fold = np.random.default_rng(0).permutation(len(rows)) % const.FOLDS
    gain = np.zeros(len(rows))
    for k in range(const.FOLDS):
        kept, held = fold != k, fold == k
        for sign, name in ((1.0, "shared+iso"), (-1.0, "se")):
            gain[held] += sign * held_out(KERNELS[name], X[kept], values[kept], X[held], values[held])
    nats, z = (float(part) for part in evidence(gain))
    odds = min(abs(nats) - const.NATS_AHEAD, 2.0 * abs(z) - const.NATS_AHEAD)
    if odds < 0.0:
        return Ahead.NEITHER
    return Ahead.ALIKE if nats > 0.0 else Ahead.APART


def held_out(kernel: Kernel, X: Array, y: Array, Z: Array, target: Array) -> Array:
    """(m,) log densities of the values of Z under a model of X."""
    prior = PRIORS["dimension-scaled"](kernel, X.shape[1])
    likelihood = Likelihood(kernel, X, y, prior, constant_mean=True)
    theta = fit(likelihood, prior, prior.start, [], iterations=const.COMPARING, careful=True)
    mean, sd = Posterior.of(kernel, theta, X, y, constant_mean=True).predict(Z)
    return log_normal(target, mean, sd**2 + float(np.exp(theta[-1])))
