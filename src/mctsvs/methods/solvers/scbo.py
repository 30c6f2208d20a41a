"""SCBO: constrained Bayesian optimisation in a trust region (Eriksson and Poloczek, AISTATS 2021).

TuRBO's region around the best feasible point, or, while there is none, around the one of least violation. A point is
chosen among many candidates by one function drawn from the posterior of the objective and one from that of each
constraint: the best of those where all constraints hold in the draw, or the one that violates them least. Before they
are modelled, values become normal scores (a Gaussian copula), and constraints are compressed, signs kept (bilog).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtri

from mctsvs.gp.model import Model, ModelSettings, Refit, nearest
from mctsvs.gp.multi_output import finite
from mctsvs.gp.optimize_acqf import quasi_random
from mctsvs.gp.trust_region import SHORTEST, TrustRegion
from mctsvs.methods.solvers import Subspace
from mctsvs.methods.solvers.turbo import LOCAL_POINTS, perturbed
from mctsvs.utils.options import Options
from mctsvs.utils.state import Saved
from mctsvs.utils.validation import Array, Indices

SETTINGS = ModelSettings(
    prior="subspace", refit=Refit(), winsorise=False, fit_points=160, iterations=10, constant_mean=True
)
GROWTH = 1.1  # of the points, before parameters are fitted again
FEATURES = 256  # of a drawn function


@dataclass(frozen=True)
class SCBOOptions(Options):
    """batch           points drawn at once from one set of models
    start_points    of a region that starts anew
    candidates      points among which each draw chooses
    """

    batch: int = 10
    start_points: int = 10
    candidates: int = 1000


class SCBO(Saved):
    """See the module's description; without constraints it is TuRBO with one region and normal scores."""

    options_type: ClassVar[type[SCBOOptions]] = SCBOOptions
    saved = ("coordinates", "region", "models", "design", "first", "seen", "best", "fitted")
    coordinates: Indices | None
    region: TrustRegion
    models: list[Model]  # of the objective, then of each constraint
    design: list[Array]  # points of a new start, still to be handed out
    first: int  # row of the history that the region began with
    seen: int  # rows it has learnt from
    best: int  # row of its centre, -1 for none
    fitted: int  # its points at the last fit

    def __init__(self, options: SCBOOptions) -> None:
        self.options, self.coordinates = options, None
        self._begin(0)

    @property
    def batch(self) -> int:
        return self.options.batch

    def _begin(self, first: int) -> None:
        self.region, self.models, self.design = TrustRegion(), [], []
        self.first, self.seen, self.best, self.fitted = first, first, -1, 0

    def propose(self, n: int, subspace: Subspace, rng: np.random.Generator) -> Array:
        n_told, d = len(subspace.history), subspace.dimension
        if self.coordinates is None or not np.array_equal(self.coordinates, subspace.coordinates):
            self.coordinates = subspace.coordinates
            self._begin(0)
        self._learn(subspace)
        if self.region.length < SHORTEST:
            self._begin(n_told)
            self.design = list(quasi_random(self.options.start_points, d, rng))
        points = [self.design.pop() for _ in range(min(n, len(self.design)))]
        if len(points) < n:
            ready = n_told - self.first >= 2
            rest = self.draw(n - len(points), subspace, rng) if ready else quasi_random(n - len(points), d, rng)
            points += list(rest)
        return np.array(points)

    def _learn(self, subspace: Subspace) -> None:
        """Grow or shrink: a success is a better centre, by Deb's order."""
        rows = np.arange(self.first, len(subspace.history))
        new = len(subspace.history) - self.seen
        if not new:
            return
        centre, before = int(rows[_order(subspace, rows)[0]]), self.best
        if before >= 0:
            d = subspace.dimension
            self.region.resize(
                success=centre != before,
                patience=max(4, d),
                needed=max(3, -(-d // 10)),
                evaluations=new,
            )
        self.best, self.seen = centre, len(subspace.history)

    def draw(self, n: int, subspace: Subspace, rng: np.random.Generator) -> Array:
        """n points by Thompson sampling of objective and constraints."""
        centre = subspace.X[self.best]
        rows = np.arange(self.first, len(subspace.history))
        due = len(rows) >= GROWTH * self.fitted
        if due:
            self.fitted = len(rows)
        most = max(LOCAL_POINTS, 2 * subspace.dimension)
        if len(rows) > most:
            rows = rows[nearest(subspace.X[rows], centre, most)]
        low, high = self.region.box(centre, free=subspace.categorical)
        size = self.options.candidates
        points = perturbed(centre, low, high, size, rng)
        y, C = subspace.history.objective[rows], subspace.history.constraints
        columns = [copula(y), *(bilog(finite(C[rows])).T if len(C) else ())]
        failed = subspace.failures
        if len(failed) > most:
            failed = failed[nearest(failed, centre, most)]
        bad = [failed, *(failed[:0] for _ in columns[1:])]  # a failure is a bad value, whatever its constraints are
        draws = [
            self._sampled(k, subspace.X[rows], column, bad[k], points, n, due, rng) for k, column in enumerate(columns)
        ]
        violation = sum((np.maximum(draw, 0.0) for draw in draws[1:]), start=np.zeros((n, size)))
        chosen = []
        for value, total in zip(draws[0], violation, strict=True):
            allowed = total <= 0.0
            best = int(np.argmax(np.where(allowed, value, -np.inf)) if allowed.any() else np.argmin(total))
            chosen.append(best)
            violation[:, best], draws[0][:, best] = np.inf, -np.inf  # a candidate is taken once
        return points[chosen]

    def _sampled(
        self, k: int, X: Array, values: Array, bad: Array, points: Array, n: int, due: bool, rng: np.random.Generator
    ) -> Array:
        """(n, candidates) of n functions drawn from the k-th model, in the units of its values; lowest at `bad`."""
        while len(self.models) <= k:
            self.models.append(Model(SETTINGS))
        model, known = self.models[k], ~np.isnan(values)
        if known.sum() < 2:
            return np.zeros((n, len(points)))
        model.forget(fit=due)
        if not due:
            model.fitted = int(known.sum())
        posterior = model.update(X[known], values[known])
        if len(bad):
            posterior = posterior.with_fantasies(bad, float(posterior.y.min()))
        spread, middle = float(values[known].std()), float(values[known].mean())
        return middle + spread * posterior.sample_paths(n, rng, FEATURES)(points)


def _order(subspace: Subspace, rows: Indices) -> Indices:
    """The rows by Deb's rules, best first, as positions; the earlier of two equal ones first."""
    y, C = subspace.history.objective[rows], subspace.history.constraints
    positive = np.where(np.isnan(C[rows]), 1.0, np.maximum(bilog(C[rows]), 0.0)) if len(C) else np.zeros((len(rows), 0))
    total = positive.sum(axis=1)
    cost = np.where(np.isnan(y), np.inf, -y)
    return np.lexsort([np.where(total > 0.0, 0.0, cost), total])


def bilog(C: Array) -> Array:
    """Compressed, with the sign kept: 0 stays the limit."""
    compressed: Array = np.sign(C) * np.log1p(np.abs(C))
    return compressed


def copula(y: Array) -> Array:
    """Normal scores of the values' ranks; NaN stays NaN."""
    scores = np.full(len(y), np.nan)
    known = ~np.isnan(y)
    ranks = np.argsort(np.argsort(y[known], kind="stable"), kind="stable")
    scores[known] = ndtri((ranks + 0.5) / max(1, int(known.sum())))
    return scores
