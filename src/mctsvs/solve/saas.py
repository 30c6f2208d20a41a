"""Sparse axis-aligned subspaces in seconds: the SAAS prior with most probable parameters in place of sampled ones.

Eriksson and Jankowiak, High-Dimensional Bayesian Optimization with Sparse Axis-Aligned Subspaces, UAI 2021.
The prior and what is maximised: `mctsvs.gp.sparse`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import logsumexp

from mctsvs.common import Array
from mctsvs.gp.ensemble import leave_one_out
from mctsvs.gp.kernels import Joint
from mctsvs.gp.likelihood import Likelihood
from mctsvs.gp.posterior import Posterior
from mctsvs.gp.quasi_newton import minimise
from mctsvs.gp.sparse import half_cauchy, log_tau_density
from mctsvs.options import option
from mctsvs.solve.ensemble import EnsembleOptions, EnsembleSolver, Members

KERNELS = {"matern52": Joint("matern52"), "se": Joint("se")}
WEIGHTS = ("prior", "leave-one-out")


@dataclass(frozen=True)
class SparseMapOptions(EnsembleOptions):
    """kernel          matern52 or se
    taus            global shrinkage: the smaller, the fewer variables matter
    weights         prior: of each member the density of its tau; leave-one-out: times that of the data
    fit_iterations  steps of a fit at most
    """

    kernel: str = option("matern52", among=KERNELS)
    taus: tuple[float, ...] = option((0.1, 0.01, 0.001), above=0.0)
    weights: str = option("prior", among=WEIGHTS)
    fit_iterations: int = 60


class SparseMap(EnsembleSolver):
    """A model with the SAAS prior for each of several values of tau, averaged."""

    options_type: ClassVar[type[SparseMapOptions]] = SparseMapOptions
    options: SparseMapOptions

    def __init__(self, options: SparseMapOptions) -> None:
        super().__init__(options, KERNELS[options.kernel])

    def _fit(self, X: Array, values: Array, last: Members | None, rng: np.random.Generator) -> Members:
        thetas, logs, iterations = [], [], self.options.fit_iterations
        for e, tau in enumerate(self.options.taus):
            prior = half_cauchy(self.kernel, X.shape[1], tau)
            likelihood = Likelihood(self.kernel, X, values, prior)
            found = []
            # the last fit's optimum is only one of many once there is more data: always start afresh too
            for start in [prior.start] if last is None else [prior.start, last.thetas[e]]:
                found.append(minimise(likelihood, start, prior.low, prior.high, [], iterations=iterations))
            theta = min(found, key=lambda pair: pair[1])[0]
            thetas.append(theta)
            logs.append(log_tau_density(tau))
            if self.options.weights == "leave-one-out":
                logs[-1] += leave_one_out(Posterior.of(self.kernel, theta, X, values))
        return Members(np.array(thetas), np.zeros(len(thetas)), np.exp(np.array(logs) - logsumexp(logs)))
