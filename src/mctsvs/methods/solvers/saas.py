"""The SAAS prior: a half-Cauchy density over inverse squared lengthscales (Eriksson and Jankowiak, UAI 2021).

    rho_i ~ HalfCauchy(tau),  rho_i = 1 / l_i^2,      tau ~ HalfCauchy(0.1)

Most mass is near rho = 0, where a variable does not matter at all, and the heavy tail lets the few that do escape.

Which density is maximised matters. Here it is the one over t = log l (equivalently over log rho), which is the one
over rho times the Jacobian rho: its mode is rho = tau, and moving a variable away from there costs a nat for each
factor e in rho, whichever way. The density over rho itself has its mode at rho = 0 and is flat below tau, so three
hundred idle variables may each move a little for nothing and together explain anything.

tau is not maximised but averaged over: a model is fitted for each of several values (`mctsvs.methods.solvers.saas`).

Bayesian optimisation with several models at once: what the SAAS solvers have in common.

A subclass says how to find the parameters of the members; the rest is here: when to fit again, the posterior of each
member given all points, lies for points that wait or failed, and the search for the largest expected improvement.

Sparse axis-aligned subspaces in seconds: the SAAS prior with most probable parameters in place of sampled ones.

Eriksson and Jankowiak, High-Dimensional Bayesian Optimization with Sparse Axis-Aligned Subspaces, UAI 2021.
The prior and what is maximised: `mctsvs.methods.solvers.saas`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import logsumexp

from mctsvs.gp.acquisition import log_expected_improvement
from mctsvs.gp.constrained_acquisition import confined
from mctsvs.gp.ensemble import Ensemble, ImprovementAcquisition, MomentAcquisition, leave_one_out
from mctsvs.gp.kernels import Joint, Kernel
from mctsvs.gp.likelihood import Likelihood
from mctsvs.gp.model import LARGEST_FIT, NEAREST, Refit, nearest, spread_by_rank
from mctsvs.gp.optimize_acqf import AcquisitionLike, maximise, propose_greedily
from mctsvs.gp.posterior import Posterior
from mctsvs.gp.priors import Prior
from mctsvs.gp.quasi_newton import minimise
from mctsvs.gp.standardize import standardise
from mctsvs.methods.solvers.subspace import Subspace
from mctsvs.utils.options import Options, option
from mctsvs.utils.state import Saved
from mctsvs.utils.validation import Array, Indices

TAU_SCALE = 0.1
"""Scale of the half-Cauchy density of tau."""


@dataclass(frozen=True)
class HalfCauchy(Prior):
    """Half-Cauchy on the first `d` parameters' rho = exp(-2 theta), Gaussians on the rest.

    `mean` of a lengthscale is only where a fit starts.
    """

    tau: float
    d: int

    def penalty(self, theta: Array) -> tuple[float, Array]:
        log_rho = -2.0 * theta[: self.d]
        q = np.exp(2.0 * log_rho) / self.tau**2  # (rho / tau)^2
        z = (theta[self.d :] - self.mean[self.d :]) / self.sd[self.d :]
        gradient = np.concatenate([2.0 - 4.0 * q / (1.0 + q), z / self.sd[self.d :]])
        return float((np.log1p(q) - log_rho).sum()) + 0.5 * float(z @ z), gradient


def half_cauchy(kernel: Kernel, d: int, tau: float) -> HalfCauchy:
    """The prior for one value of tau, with the weak priors of `mctsvs.gp.priors.subspace` on scale and noise.

    A fit starts with all variables equal and the squared distance of random points (d rho / 6) about one: at
    rho = tau the points of a hundred variables would all be strangers to each other and no gradient would be left.
    """
    start = -0.5 * np.log(6.0 / d)
    lengthscale = [start, 1.0, np.log(5e-2), np.log(1e4)]
    table = np.array(
        [*[lengthscale] * d, [0.0, 1.0, np.log(1e-2), np.log(1e2)], [np.log(1e-3), 2.0, np.log(1e-6), 0.0]]
    )
    assert kernel.size(d) == d + 1
    mean, sd, low, high = np.ascontiguousarray(table.T)
    return HalfCauchy(mean, sd, low, high, tau, d)


def log_tau_density(tau: float) -> float:
    """Log density of log tau, up to a constant: what a grid even in log tau is weighted by."""
    return float(np.log(tau) - np.log1p((tau / TAU_SCALE) ** 2))


AVERAGES = ("prediction", "improvement")


@dataclass(frozen=True)
class EnsembleOptions(Options):
    """average         prediction: of the members' mixture, by its first two moments;
                    improvement: the members' expected improvements are averaged
    refit_growth    the parameters are found anew when the number of points has grown by this factor
    fit_points      parameters are found from at most so many points (spread evenly over the ranks of their values);
                    predictions use all points, or the nearest to the best of very many
    starts          points of a pool from which expected improvement is climbed
    winsorise       very bad values are pulled in
    """

    average: str = option("prediction", among=AVERAGES)
    refit_growth: float = option(1.1, least=1.0)
    fit_points: int = 400
    starts: int = 1
    winsorise: bool = True


@dataclass(frozen=True)
class Members:
    """Parameters of E models of d coordinates: what is kept between proposals."""

    thetas: Array  # (E, d + 2): log lengthscales, log outputscale, log noise
    shifts: Array  # (E,) constant means
    weights: Array  # (E,) sum to one


class EnsembleSolver(Saved, ABC):
    """Proposes the points with the largest log expected improvement under an ensemble.

    Posteriors are computed from parameters and data at every proposal, so the parameters are all there is to save.
    """

    batch = None
    saved = ("coordinates", "members", "fitted")
    coordinates: Indices | None
    members: Members | None
    fitted: int  # number of points at the last fit

    def __init__(self, options: EnsembleOptions, kernel: Joint) -> None:
        self.options, self.kernel = options, kernel
        self.coordinates, self.members, self.fitted = None, None, 0

    @abstractmethod
    def fit(self, X: Array, values: Array, last: Members | None, rng: np.random.Generator) -> Members:
        """The members for this data; `last` are those of the same coordinates with fewer points."""

    def propose(self, n: int, subspace: Subspace, rng: np.random.Generator) -> Array:
        if len(subspace.history) < 2:
            return rng.random((n, subspace.dimension))
        X, values = subspace.X, standardise(subspace.y, winsorise=self.options.winsorise)
        best, lie = float(values.max()), float(values.min())
        ensemble = self._ensemble(X, values, self._members(subspace.coordinates, X, values, rng))
        incumbents = subspace.X[subspace.history.best(3)]

        def find(ensemble: Ensemble, chosen: list[Array]) -> Array:
            return maximise(
                confined(self._surface(ensemble, best), subspace.cut), incumbents, rng, starts=self.options.starts
            )

        return propose_greedily(n, ensemble.with_lies(subspace.avoid, lie), lie, find)

    def _members(self, coordinates: Indices, X: Array, values: Array, rng: np.random.Generator) -> Members:
        if self.coordinates is None or not np.array_equal(self.coordinates, coordinates):
            self.coordinates, self.members, self.fitted = coordinates, None, 0
        if self.members is None or Refit(self.options.refit_growth).due(len(X), self.fitted):
            rows = spread_by_rank(values, self.options.fit_points)
            self.members, self.fitted = self.fit(X[rows], values[rows], self.members, rng), len(X)
        return self.members

    def _ensemble(self, X: Array, values: Array, members: Members) -> Ensemble:
        if len(X) > LARGEST_FIT:
            scale = np.sqrt(members.weights @ np.exp(-2.0 * members.thetas[:, : X.shape[1]]))
            rows = nearest(X, X[np.argmax(values)], NEAREST, scale=scale)
            X, values = X[rows], values[rows]
        pairs = zip(members.thetas, members.shifts, strict=True)
        posteriors = tuple(Posterior.of(self.kernel, theta, X, values - shift) for theta, shift in pairs)
        return Ensemble(posteriors, members.weights, members.shifts)

    def _surface(self, ensemble: Ensemble, best: float) -> AcquisitionLike:
        if self.options.average == "improvement":
            return ImprovementAcquisition(ensemble, best)
        return MomentAcquisition(ensemble, log_expected_improvement(best))


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

    def fit(self, X: Array, values: Array, last: Members | None, rng: np.random.Generator) -> Members:
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
