"""Sparse axis-aligned subspaces in seconds: the SAAS prior with most probable parameters in place of sampled ones.

Eriksson and Jankowiak, High-Dimensional Bayesian Optimization with Sparse Axis-Aligned Subspaces, UAI 2021.
The prior and what is maximised: `mctsvs.gp.sparse`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from scipy.special import logsumexp

from mctsvs.common import Array, InputError
from mctsvs.gp.ensemble import leave_one_out
from mctsvs.gp.likelihood import Likelihood
from mctsvs.gp.posterior import Posterior
from mctsvs.gp.quasi_newton import minimise
from mctsvs.gp.sparse import half_cauchy, log_tau_density
from mctsvs.solve.ensemble import EnsembleSolver, Members, check_at_least

WEIGHTS = ("prior", "leave-one-out")


class SparseMap(EnsembleSolver):
    """A model with the SAAS prior for each of several values of tau, averaged.

    taus            global shrinkage: the smaller, the fewer variables matter
    weights         prior: of each member the density of its tau; leave-one-out: times that of the data
    fit_iterations  steps of a fit at most
    kernel          matern52 (default) or se
    average, refit_growth, fit_points, starts, winsorise: see `EnsembleSolver`
    """

    options: ClassVar[tuple[str, ...]] = (
        "kernel",
        "taus",
        "weights",
        "average",
        "refit_growth",
        "fit_points",
        "fit_iterations",
        "starts",
        "winsorise",
    )

    def __init__(
        self,
        *,
        kernel: str = "matern52",
        taus: Sequence[float] = (0.1, 0.01, 0.001),
        weights: str = "prior",
        average: str = "prediction",
        refit_growth: float = 1.1,
        fit_points: int = 400,
        fit_iterations: int = 60,
        starts: int = 1,
        winsorise: bool = True,
    ) -> None:
        super().__init__(
            kernel=kernel,
            average=average,
            refit_growth=refit_growth,
            fit_points=fit_points,
            starts=starts,
            winsorise=winsorise,
        )
        if weights not in WEIGHTS:
            raise InputError(f"unknown weights {weights!r}: use one of {', '.join(WEIGHTS)}")
        if len(taus) == 0 or not all(tau > 0 for tau in taus):
            raise InputError(f"taus={taus!r} cannot be used: give one or more numbers greater than 0")
        check_at_least(1, fit_iterations=fit_iterations)
        self.taus, self.weights, self.fit_iterations = tuple(taus), weights, fit_iterations

    def _fit(self, X: Array, values: Array, last: Members | None, rng: np.random.Generator) -> Members:
        thetas, logs = [], []
        for e, tau in enumerate(self.taus):
            prior = half_cauchy(self.kernel, X.shape[1], tau)
            likelihood = Likelihood(self.kernel, X, values, prior)
            found = []
            # the last fit's optimum is only one of many once there is more data: always start afresh too
            for start in [prior.start] if last is None else [prior.start, last.thetas[e]]:
                found.append(minimise(likelihood, start, prior.low, prior.high, [], iterations=self.fit_iterations))
            theta = min(found, key=lambda pair: pair[1])[0]
            thetas.append(theta)
            logs.append(log_tau_density(tau))
            if self.weights == "leave-one-out":
                logs[-1] += leave_one_out(Posterior.of(self.kernel, theta, X, values))
        return Members(np.array(thetas), np.zeros(len(thetas)), np.exp(np.array(logs) - logsumexp(logs)))
