"""The best point that the models of objective and measured constraints allow, near the best one known.

While no point is feasible, the sum of the expected violations is made small. Then the mean of the objective is made
large where every constraint's mean keeps a distance from 0, in its standard deviations, which grows when a point turns
out infeasible and shrinks when it does not. Both inside a trust region around the incumbent: the best feasible point,
or the one that violates least.

Surrogates of each constraint apart, and the adapted distance, are those of COBRA (Regis, Engineering Optimization,
2014); its interpolants are Gaussian processes here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr

from mctsvs.gp.model import nearest
from mctsvs.gp.multi_output import OutputModels, Outputs, bend, column_medians, finite
from mctsvs.gp.quasi_newton import minimise
from mctsvs.gp.trust_region import TrustRegion
from mctsvs.methods.constraint_ranking import scales, violations
from mctsvs.methods.solvers import Subspace
from mctsvs.utils.options import Options, option
from mctsvs.utils.state import Saved
from mctsvs.utils.validation import Array, Indices

ROOT_2PI = float(np.sqrt(2.0 * np.pi))
IDLE = 0.25  # of a constraint's range: one never nearer to 0 than that is left alone
GAIN = 1e-3  # of the violation, or of the values' median distance from their median: less is no success
SAME = 1e-5  # a point this near to a known one is that one again


@dataclass(frozen=True)
class ConstrainedOptions(Options):
    """most        points of the models, the nearest to the incumbent
    fits        models whose parameters are fitted before a proposal, at most
    patience    failures in a row that halve the trust region
    """

    most: int = 250
    fits: int = 3
    patience: int = 4
    length: float = option(0.4, above=0.0)


class ConstrainedSearch(Saved):
    """See the module's description."""

    options_type: ClassVar[type[ConstrainedOptions]] = ConstrainedOptions
    batch = None
    saved = ("coordinates", "models", "region", "margin", "best", "seen", "base", "size")
    coordinates: Indices | None
    models: OutputModels
    region: TrustRegion
    margin: float  # distance kept from 0, in standard deviations
    best: int  # row of the incumbent
    seen: int  # rows known when it was chosen
    base: Indices  # rows the models began with
    size: int  # rows there were then

    def __init__(self, options: ConstrainedOptions) -> None:
        self.options, self.coordinates = options, None
        self._begin()

    def _begin(self) -> None:
        self.models, self.region = OutputModels(), TrustRegion(self.options.length)
        self.margin, self.best, self.seen, self.feasible = 0.3, -1, 0, False
        self.base, self.size = np.empty(0, dtype=np.intp), 0

    def propose(self, n: int, subspace: Subspace, rng: np.random.Generator) -> Array:
        if self.coordinates is None or not np.array_equal(self.coordinates, subspace.coordinates):
            self.coordinates = subspace.coordinates
            self._begin()
        self._learn(subspace)
        outputs, modelled = self._outputs(subspace)
        chosen: list[Array] = []
        for _ in range(n):
            point = self._solve(outputs, modelled, subspace.X[self.best], rng)
            known = np.concatenate([subspace.X, subspace.avoid, *(x[None] for x in chosen)])
            chosen.append(self._new(point, known, rng))
        return np.array(chosen)

    def _learn(self, subspace: Subspace) -> None:
        """The incumbent, and whether the new points were successes."""
        y, C = subspace.history.objective, subspace.history.constraints
        feasible = (C <= 0.0).all(axis=1) & ~np.isnan(y)
        best = int(np.argmax(np.where(feasible, y, -np.inf))) if feasible.any() else int(np.argmin(violations(C)))
        if self.best >= 0 and len(y) > self.seen:
            before, known = self.best, y[~np.isnan(y)]
            gain = GAIN * float(np.median(np.abs(known - np.median(known)))) if len(known) else 0.0
            if feasible[: self.seen].any():
                success = bool(y[best] > y[before] + gain)
                for row in range(self.seen, len(y)):
                    self.margin = float(np.clip(self.margin * (0.8 if feasible[row] else 1.4), 0.003, 20.0))
            else:
                total = np.maximum(C[[before, best]], 0.0) / scales(C)
                success = bool(feasible.any()) or bool(np.nansum(total[1]) < (1.0 - GAIN) * np.nansum(total[0]))
            self.region.resize(success=success, patience=self.options.patience, needed=2)
            if self.region.length < 2.0**-8:
                self.region.length = self.options.length
        self.best, self.seen, self.feasible = best, len(y), bool(feasible.any())

    def _rows(self, X: Array) -> Indices:
        """Points of the models: the nearest to the incumbent as of some time ago, and all since."""
        n, most = len(X), self.options.most
        rows = np.append(self.base, np.arange(self.size, n))
        if len(rows) > 1.2 * most:
            self.base, self.size = nearest(X, X[self.best], most), n
            self.models.forget()
            rows = self.base
        return rows

    def _outputs(self, subspace: Subspace) -> tuple[Outputs, Indices]:
        """Models of the objective and of the constraints that may come to matter."""
        rows = self._rows(subspace.X)
        y, C = subspace.history.objective[rows], finite(subspace.history.constraints[rows])
        Y = np.column_stack([-y, C])
        known = ~np.isnan(Y)
        if known[:, 0].any():
            Y[:, 0] -= np.median(Y[known[:, 0], 0])
        Y = bend(Y, column_medians(np.abs(Y)))
        top, bottom = np.where(known, Y, -np.inf).max(axis=0), np.where(known, Y, np.inf).min(axis=0)
        matters = known.any(axis=0) & (top >= -IDLE * (top - bottom))
        matters[0] = known[:, 0].any()
        which = np.flatnonzero(matters)
        return self.models.update(subspace.X[rows], Y, which=which, quota=self.options.fits), which

    def _solve(self, outputs: Outputs, which: Indices, centre: Array, rng: np.random.Generator) -> Array:
        low, high = self.region.box(centre)
        limits = np.flatnonzero(which > 0)
        start = centre + 0.1 * (high - low) * rng.standard_normal(len(centre)) * (rng.random(len(centre)) < 0.2)
        start = np.clip(start, low, high)
        if not len(which):  # no value, and no constraint that may come to matter
            return start
        if self.feasible and len(which) > len(limits):
            first = _slsqp(outputs, limits, self.margin * outputs.deviations(start)[limits], start, low, high)
            distance = self.margin * outputs.deviations(first)[limits]
            return _slsqp(outputs, limits, distance, first, low, high)
        deviations = outputs.deviations(start)[limits]

        def violation(z: Array) -> tuple[float, Array]:
            mean, slope = outputs.means(z)
            u = mean[limits] / deviations
            p = ndtr(u)
            return float((deviations * (np.exp(-0.5 * u * u) / ROOT_2PI + u * p)).sum()), p @ slope[limits]

        point, _ = minimise(
            violation, start, low, high, [], iterations=40, tolerance=1e-4, first_step=0.05, longest_step=0.3
        )
        return point

    def _new(self, point: Array, known: Array, rng: np.random.Generator) -> Array:
        """The point, or one beside it if it is known."""
        if np.abs(known - point).max(axis=1).min() > SAME:
            return point
        d = len(point)
        moved = rng.random(d) < min(1.0, 5.0 / d)
        moved[rng.integers(d)] = True
        return np.where(moved, np.clip(point + 0.1 * self.region.length * rng.standard_normal(d), 0.0, 1.0), point)


def _slsqp(outputs: Outputs, limits: Indices, distance: Array, start: Array, low: Array, high: Array) -> Array:
    """Least mean of the first output where the means of `limits` are at most minus the distance."""
    from scipy.optimize import Bounds, minimize  # a second of import time, where it is needed

    kept: dict[bytes, tuple[Array, Array]] = {}

    def at(z: Array) -> tuple[Array, Array]:
        key = z.tobytes()
        if key not in kept:
            kept.clear()
            kept[key] = outputs.means(z)
        return kept[key]

    def objective(z: Array) -> tuple[float, Array]:
        mean, slope = at(z)
        return float(mean[0]), slope[0]

    constraint: Any = {
        "type": "ineq",
        "fun": lambda z: -(at(z)[0][limits] + distance),
        "jac": lambda z: -at(z)[1][limits],
    }
    found = minimize(
        objective,
        start,
        jac=True,
        method="SLSQP",
        bounds=Bounds(low, high),
        constraints=[constraint],
        options={"maxiter": 25, "ftol": 1e-6},
    )
    point: Array = np.clip(found.x, low, high)
    return point if np.isfinite(point).all() else start
