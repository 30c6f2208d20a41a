"""Bayesian optimisation with several models at once: what the SAAS solvers have in common.

A subclass says how to find the parameters of the members; the rest is here: when to fit again, the posterior of each
member given all points, lies for points that wait or failed, and the search for the largest expected improvement.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mctsvs.common import Array, InputError, State
from mctsvs.gp.acquisition import log_expected_improvement
from mctsvs.gp.ensemble import Ensemble, ImprovementSurface, MomentSurface
from mctsvs.gp.kernels import Joint
from mctsvs.gp.model import LARGEST_FIT, NEAREST, spread_by_rank
from mctsvs.gp.posterior import Posterior
from mctsvs.gp.search import SurfaceLike, maximise
from mctsvs.gp.values import standardise
from mctsvs.solve.subspace import Subspace

KERNELS = {"matern52": Joint("matern52"), "se": Joint("se")}
AVERAGES = ("prediction", "improvement")


@dataclass(frozen=True)
class Members:
    """Parameters of E models of d coordinates: what is kept between proposals."""

    thetas: Array  # (E, d + 2): log lengthscales, log outputscale, log noise
    shifts: Array  # (E,) constant means
    weights: Array  # (E,) sum to one


def check_at_least(least: float, **options: float) -> None:
    """Every option is a number no smaller than `least`."""
    for name, value in options.items():
        if not value >= least:
            raise InputError(f"{name}={value} is too small: it must be at least {least:g}")


class EnsembleSolver(ABC):
    """Proposes the points with the largest log expected improvement under an ensemble.

    average        prediction: of the members' mixture, by its first two moments;
                   improvement: the members' expected improvements are averaged
    refit_growth   the parameters are found anew when the number of points has grown by this factor
    fit_points     parameters are found from at most so many points (spread evenly over the ranks of their values);
                   predictions use all points, or the thousand nearest to the best of more than two thousand
    """

    options: ClassVar[tuple[str, ...]] = ()
    batch = None

    def __init__(
        self, *, kernel: str, average: str, refit_growth: float, fit_points: int, starts: int, winsorise: bool
    ) -> None:
        for name, value, known in (("kernel", kernel, tuple(KERNELS)), ("average", average, AVERAGES)):
            if value not in known:
                raise InputError(f"unknown {name} {value!r}: use one of {', '.join(known)}")
        check_at_least(1, refit_growth=refit_growth, fit_points=fit_points, starts=starts)
        self.kernel, self.average, self.refit_growth = KERNELS[kernel], average, refit_growth
        self.fit_points, self.starts, self.winsorise = fit_points, starts, winsorise
        self.coordinates: tuple[int, ...] | None = None
        self.members: Members | None = None
        self.fitted = 0  # number of points at the last fit

    @abstractmethod
    def _fit(self, X: Array, values: Array, last: Members | None, rng: np.random.Generator) -> Members:
        """The members for this data; `last` are those of the same coordinates with fewer points."""

    def propose(self, n: int, subspace: Subspace, rng: np.random.Generator) -> Array:
        if len(subspace.history) < 2:
            return rng.random((n, subspace.dimension))
        ensemble, best, lie = self._ensemble(subspace, rng)
        ensemble = ensemble.with_lies(subspace.avoid, lie)
        incumbents = subspace.X[subspace.history.best(3)]
        chosen: list[Array] = []
        for _ in range(n):
            chosen.append(maximise(self._surface(ensemble, best), incumbents, rng, starts=self.starts))
            if len(chosen) < n:
                ensemble = ensemble.with_lies(chosen[-1][None], lie)
        return np.array(chosen)

    def _ensemble(self, subspace: Subspace, rng: np.random.Generator) -> tuple[Ensemble, float, float]:
        """The posteriors, the best value and the worst one."""
        X, values = subspace.X, standardise(subspace.y, winsorise=self.winsorise)
        key = tuple(subspace.coordinates.tolist())
        if key != self.coordinates:
            self.coordinates, self.members, self.fitted = key, None, 0
        if self.members is None or len(X) >= max(self.fitted + 1, self.refit_growth * self.fitted - 1e-9):
            rows = spread_by_rank(values, self.fit_points)
            self.members = self._fit(X[rows], values[rows], self.members, rng)
            self.fitted = len(X)
        members = self.members
        best, lie = float(values.max()), float(values.min())
        if len(X) > LARGEST_FIT:
            rho = members.weights @ np.exp(-2.0 * members.thetas[:, : X.shape[1]])
            distance = (X - X[np.argmax(values)]) ** 2 @ rho
            rows = np.sort(np.argsort(distance, kind="stable")[:NEAREST])
            X, values = X[rows], values[rows]
        pairs = zip(members.thetas, members.shifts, strict=True)
        posteriors = tuple(Posterior.of(self.kernel, theta, X, values - shift) for theta, shift in pairs)
        return Ensemble(posteriors, members.weights, members.shifts), best, lie

    def _surface(self, ensemble: Ensemble, best: float) -> SurfaceLike:
        if self.average == "improvement":
            return ImprovementSurface(ensemble, best)
        return MomentSurface(ensemble, log_expected_improvement(best))

    def state(self) -> State:
        members = self.members
        return {
            "coordinates": None if self.coordinates is None else np.array(self.coordinates, dtype=np.intp),
            "fitted": self.fitted,
            "thetas": None if members is None else members.thetas.copy(),
            "shifts": None if members is None else members.shifts.copy(),
            "weights": None if members is None else members.weights.copy(),
        }

    def restore(self, state: State, subspace: Subspace | None) -> None:
        """Posteriors are computed from parameters and data at every proposal, so the parameters are everything."""
        key, self.fitted, self.members = state["coordinates"], state["fitted"], None
        self.coordinates = None if key is None else tuple(np.asarray(key).tolist())
        if state["thetas"] is not None:
            self.members = Members(*(np.array(state[name]) for name in ("thetas", "shifts", "weights")))
