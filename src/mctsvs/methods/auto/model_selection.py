"""Under noise no test tells whether few variables matter or many: the model that predicts better does.

Two models of all variables are fitted without a part of the points and predict it. One has a lengthscale for each
variable, and finds the few that matter; the other treats them alike, and knows the shape of a bowl. They take turns at
first. Later only one of them goes on, or both where nothing is clear and there are not many variables. They are
compared early: once a search has gathered its points around an optimum, either predicts what lies between them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mctsvs.gp.importance import evidence, log_normal
from mctsvs.gp.kernels import Kernel
from mctsvs.gp.likelihood import Likelihood
from mctsvs.gp.model import KERNELS, fit
from mctsvs.gp.posterior import Posterior
from mctsvs.gp.priors import PRIORS
from mctsvs.gp.standardize import standardise
from mctsvs.methods.auto import constants as const
from mctsvs.utils.state import Saved
from mctsvs.utils.validation import Array


@dataclass
class ModelSelection(Saved):
    """Whose turn it is."""

    compared: int = 0  # times
    alike_ahead: bool = False  # clearly, at one of these times

    def alike(self, turn: int, X: Array, y: Array) -> bool:
        """Whether this turn is that of the model that treats the variables alike."""
        n, D = X.shape
        if D > const.WIDEST_MODEL:
            return False
        if self.compared < len(const.COMPARED) and n >= const.COMPARED[self.compared]:
            self.compared += 1
            self.alike_ahead = self.alike_ahead or advantage(X, y) >= const.CLEARLY
        if self.alike_ahead:
            return turn % const.ALIKE_TURNS > 0
        return (self.compared == 0 or const.NOT_MANY >= D) and turn % 2 == 1


def advantage(X: Array, y: Array) -> float:
    """By how many standard errors the model that treats variables alike predicts held-out values better."""
    values = standardise(y)
    fold = np.random.default_rng(0).permutation(len(y)) % const.FOLDS
    gain = np.zeros(len(y))
    for k in range(const.FOLDS):
        kept, held = fold != k, fold == k
        for sign, name in ((1.0, "shared+iso"), (-1.0, "se")):
            gain[held] += sign * held_out(KERNELS[name], X[kept], values[kept], X[held], values[held])
    return float(evidence(gain)[1])


def held_out(kernel: Kernel, X: Array, y: Array, Z: Array, target: Array) -> Array:
    """(m,) log densities of the values of Z under a model of X."""
    prior = PRIORS["dimension-scaled"](kernel, X.shape[1])
    likelihood = Likelihood(kernel, X, y, prior, constant_mean=True)
    theta = fit(likelihood, prior, prior.start, [], iterations=const.COMPARING, careful=True)
    mean, sd = Posterior.of(kernel, theta, X, y, constant_mean=True).predict(Z)
    return log_normal(target, mean, sd**2 + float(np.exp(theta[-1])))
