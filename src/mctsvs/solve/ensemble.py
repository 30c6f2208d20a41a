"""Bayesian optimisation with several models at once: what the SAAS solvers have in common.

A subclass says how to find the parameters of the members; the rest is here: when to fit again, the posterior of each
member given all points, lies for points that wait or failed, and the search for the largest expected improvement.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from mctsvs.common import Array, Indices
from mctsvs.gp.acquisition import log_expected_improvement
from mctsvs.gp.confined import confined
from mctsvs.gp.ensemble import Ensemble, ImprovementSurface, MomentSurface
from mctsvs.gp.kernels import Joint
from mctsvs.gp.model import LARGEST_FIT, NEAREST, Refit, nearest, spread_by_rank
from mctsvs.gp.posterior import Posterior
from mctsvs.gp.propose import propose_greedily
from mctsvs.gp.search import SurfaceLike, maximise
from mctsvs.gp.values import standardise
from mctsvs.options import Options, option
from mctsvs.solve.subspace import Subspace
from mctsvs.state import Saved

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
    def _fit(self, X: Array, values: Array, last: Members | None, rng: np.random.Generator) -> Members:
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
            self.members, self.fitted = self._fit(X[rows], values[rows], self.members, rng), len(X)
        return self.members

    def _ensemble(self, X: Array, values: Array, members: Members) -> Ensemble:
        if len(X) > LARGEST_FIT:
            scale = np.sqrt(members.weights @ np.exp(-2.0 * members.thetas[:, : X.shape[1]]))
            rows = nearest(X, X[np.argmax(values)], NEAREST, scale=scale)
            X, values = X[rows], values[rows]
        pairs = zip(members.thetas, members.shifts, strict=True)
        posteriors = tuple(Posterior.of(self.kernel, theta, X, values - shift) for theta, shift in pairs)
        return Ensemble(posteriors, members.weights, members.shifts)

    def _surface(self, ensemble: Ensemble, best: float) -> SurfaceLike:
        if self.options.average == "improvement":
            return ImprovementSurface(ensemble, best)
        return MomentSurface(ensemble, log_expected_improvement(best))
