"""A model of each objective, and the point that promises the most hypervolume.

Two kinds of model take turns: one treats variables alike and knows a bowl from few points, the other has a lengthscale
for each variable. The reference point lies near the front and far beyond it in turns, and every sixth turn widens the
front in one objective alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mctsvs.gp import optimize_acqf_mixed as on_lattice
from mctsvs.gp.acquisition import AcquisitionLike, FeasibilityWeighted, constraint_models, penalised, put_inside
from mctsvs.gp.expected_hypervolume import (
    Improvement,
    JointAcquisition,
    LogEHVIByRays,
    LogEHVIOfTwo,
    LogEIOfOne,
    ScaledPosterior,
    predict,
)
from mctsvs.gp.model import Model, ModelSettings, Refit
from mctsvs.gp.multi_output import OutputModels
from mctsvs.gp.optimize_acqf import RADII, SHARES, TAKEN, climb_from
from mctsvs.gp.optimize_acqf_mixed import Lattice
from mctsvs.gp.pareto import non_dominated
from mctsvs.gp.standardize import Standardization
from mctsvs.methods.history import History
from mctsvs.methods.multi_objective.units import Units, front_rows
from mctsvs.methods.solvers import thinned
from mctsvs.methods.solvers.bo import SAME_POINT, failure_share
from mctsvs.space import Region
from mctsvs.space.region_slice import RegionSlice
from mctsvs.utils.state import Saved
from mctsvs.utils.validation import Array, Indices

BEYOND = (0.2, 1.0)  # ranges of the front from its worst values to the reference point, in turns
ALONE = 6  # every so many turns one objective alone
RAYS = 48
FEW = 30  # coordinates that the models of found variables are for
MOST_APART = 1000  # coordinates of a model with a lengthscale for each
CLIMB = 40  # steps
STEP, MOVED = 0.05, 0.1  # from a point of the front, where nothing new is proposed: deviation, and share of coordinates
FEWEST_PARENTS = 4


def _settings(kernel: str, prior: str = "objective") -> ModelSettings:
    return ModelSettings(
        kernel=kernel,
        prior=prior,
        refit=Refit(1.08),
        winsorise=False,
        fit_points=200,
        iterations=15,
        constant_mean=True,
        restart=True,
    )


@dataclass(frozen=True)
class Search:
    """Kinds of models, and how their acquisition function is maximised."""

    kinds: tuple[ModelSettings, ...]
    pool: int
    starts: int


ALIKE, APART = _settings("shared+iso+cosines"), _settings("se+iso")
OF_ALL = Search((ALIKE, APART), 96, 2)
OF_MANY = Search((ALIKE, ALIKE), 96, 2)
OF_FOUND = Search((_settings("joint-additive", "found"), _settings("se")), 240, 4)


@dataclass(frozen=True, eq=False)
class Where:
    """The part of the cube that is searched: some coordinates (d,), all others as at the base (D,)."""

    coordinates: Indices
    base: Array
    waiting: Array  # (p, D) points asked for and not yet told
    lattice: Lattice | None = None
    region: Region | None = None
    aim: Array | None = None  # (M,) what points are to be better than

    @property
    def complete(self) -> bool:
        """Whether these are all coordinates."""
        return len(self.coordinates) == len(self.base)

    def failures(self, history: History) -> Array:
        """(f, d) points that failed, and differ from the base here alone."""
        if self.complete:
            return np.array(history.failures).reshape(-1, len(self.base))
        return history.failures_beside(self.base, self.coordinates)[:, self.coordinates]

    @property
    def part(self) -> Lattice | None:
        """The values that these coordinates can take, where some cannot take any."""
        part = (
            self.lattice if self.complete or self.lattice is None else self.lattice.among(self.coordinates, self.base)
        )
        return None if part is None or part.plain else part

    @property
    def cut(self) -> RegionSlice | None:
        """What known constraints leave; None: all."""
        if self.region is None or not self.region.constrained:
            return None
        return RegionSlice.of(self.region, self.base, self.coordinates)


class Surrogates(Saved):
    """Models of all objectives and constraints in the coordinates searched last."""

    saved = ("turn", "coordinates", "models", "constraints")
    turn: int
    coordinates: Indices
    models: list[list[Model]]  # by kind and objective
    constraints: OutputModels

    def __init__(self) -> None:
        self.turn, self.coordinates, self.models = 0, np.empty(0, dtype=np.intp), []
        self.constraints = OutputModels()

    def propose(self, history: History, where: Where, rng: np.random.Generator) -> Array:
        """(D,) the next point; at least two points must have values."""
        self.turn += 1
        search, kinds = self._search(where), len(OF_ALL.kinds)
        X, Y, C = _known(history, where)
        if not np.array_equal(self.coordinates, where.coordinates) or not self.models:
            self.coordinates, self.constraints = where.coordinates, OutputModels()
            self.models = [[Model(settings) for _ in Y.T] for settings in search.kinds]
        front = front_rows(Y, C)
        units = Units.of(Y, front, BEYOND[(self.turn // kinds) % len(BEYOND)], where.aim)
        posteriors = [
            _scaled(model, X, values)
            for model, values in zip(self.models[self.turn % kinds], units.values.T, strict=True)
        ]
        waiting = where.waiting[:, where.coordinates]
        expected = np.empty((0, Y.shape[1]))
        if len(waiting):
            expected, _ = predict(posteriors, waiting)
        failed = where.failures(history)
        posteriors = [_with_fantasies(p, X, waiting, failed) for p in posteriors]
        feasible = not C.size or bool((C[front] <= 0.0).all())
        best = np.concatenate([units.values[front], expected])
        surface: AcquisitionLike | None = None
        if feasible:
            surface = JointAcquisition(posteriors, self._improvement(best[non_dominated(best)], units.reference, rng))
        if history.constrained:
            inputs = history.X[:, where.coordinates]
            needed = constraint_models(self.constraints, inputs, history.constraints)
            surface = surface if needed is None else FeasibilityWeighted(surface, needed)
        if surface is None:  # nothing is known of any constraint
            surface = JointAcquisition(posteriors, self._improvement(units.values[front], units.reference, rng))
        known = np.concatenate([X, thinned(np.concatenate([failed, waiting]))])
        parents = X[_parents(units.values, front)]
        x = where.base.copy()
        x[where.coordinates] = self._maximise(penalised(surface, where.cut), search, where, parents, known, rng)
        return x

    def _search(self, where: Where) -> Search:
        if not where.complete and len(where.coordinates) <= FEW:
            return OF_FOUND
        return OF_ALL if len(where.coordinates) <= MOST_APART else OF_MANY

    def _improvement(self, front: Array, reference: Array, rng: np.random.Generator) -> Improvement:
        M = len(reference)
        if self.turn % ALONE == 0:
            k = (self.turn // ALONE) % M
            return LogEIOfOne(k, float(front[:, k].max()))
        if M == 2:
            return LogEHVIOfTwo(front, reference)
        directions = np.abs(rng.standard_normal((RAYS, M))) + 1e-3
        return LogEHVIByRays(front, reference, directions / np.linalg.norm(directions, axis=1, keepdims=True))

    def _maximise(
        self,
        surface: AcquisitionLike,
        search: Search,
        where: Where,
        parents: Array,
        known: Array,
        rng: np.random.Generator,
    ) -> Array:
        candidates = put_inside(pool_of_front(search.pool, parents, rng), surface)
        lattice, starts = where.part, search.starts
        if lattice is not None:
            return on_lattice.maximise(surface, lattice, candidates, known, rng, starts=starts, iterations=CLIMB)[0]
        values = surface(candidates)
        order = np.argsort(-np.where(np.isnan(values), -np.inf, values), kind="stable")[:starts]
        x = climb_from(surface, candidates[order], float(values[order[0]]), iterations=CLIMB)
        if np.abs(known - x).max(axis=1).min() >= SAME_POINT:
            return x
        parent, moved = parents[rng.integers(len(parents))], rng.random(len(x)) < MOVED
        moved[rng.integers(len(x))] = True
        return np.asarray(np.where(moved, np.clip(parent + STEP * rng.standard_normal(len(x)), 0.0, 1.0), parent))


def _known(history: History, where: Where) -> tuple[Array, Array, Array]:
    """Points (n, d) that have all values, each of them once if it is a part, with values and constraints."""
    rows = np.flatnonzero(np.isfinite(history.objectives).all(axis=1))
    X = history.X[rows]
    if not where.complete:
        X = X[:, where.coordinates]
        _, first = np.unique(X, axis=0, return_index=True)
        kept = np.sort(first)
        X, rows = X[kept], rows[kept]
    C = history.constraints[rows] if history.constrained else np.empty((len(rows), 0))
    return X, history.objectives[rows], C


def _scaled(model: Model, X: Array, values: Array) -> ScaledPosterior:
    standard = Standardization.of(values, winsorise=False)
    return ScaledPosterior(model.update(X, values), standard.mean, standard.scale)


def _with_fantasies(scaled: ScaledPosterior, X: Array, waiting: Array, failed: Array) -> ScaledPosterior:
    """With the points that wait at their expected values; those that failed count as bad as their neighbourhood is."""
    if not len(waiting) + len(failed):
        return scaled
    posterior = scaled.posterior
    bad = thinned(np.append(failure_share(failed, X), np.zeros(len(waiting))))
    points = thinned(np.concatenate([failed, waiting]))
    expected, _ = posterior.predict(points)
    values = (1.0 - bad) * expected + bad * float(posterior.y.min())
    return ScaledPosterior(posterior.extended(points, np.append(posterior.y, values)), scaled.offset, scaled.scale)


def _parents(values: Array, front: Indices) -> Indices:
    """Rows of the points that candidates are made of: the front, and the next best by ranks if it has few."""
    if len(front) >= FEWEST_PARENTS:
        return front
    ranks = np.argsort(np.argsort(-values, axis=0, kind="stable"), axis=0, kind="stable").sum(axis=1)
    others = np.setdiff1d(np.argsort(ranks, kind="stable")[: 2 * FEWEST_PARENTS], front)
    others = others[np.argsort(ranks[others], kind="stable")]
    return np.concatenate([front, others[:FEWEST_PARENTS]])


def pool_of_front(size: int, parents: Array, rng: np.random.Generator) -> Array:
    """Candidates (m, d): a third on lines through two parents (k, d), a third crossovers of two, a third steps around
    one of them, and an eighth more anywhere."""
    d, third = parents.shape[1], size // 3
    a, b = parents[rng.integers(0, len(parents), size)], parents[rng.integers(0, len(parents), size)]
    lines, crossed, near = slice(third), slice(third, 2 * third), slice(2 * third, size)
    points = np.empty((size, d))
    points[lines] = np.clip(a[lines] + rng.uniform(-0.5, 1.0, (third, 1)) * (b - a)[lines], 0.0, 1.0)
    taken = rng.random((third, d)) < rng.choice(TAKEN, third)[:, None]
    points[crossed] = np.where(taken, b[crossed], a[crossed])
    count = size - 2 * third
    moved = rng.random((count, d)) < rng.choice(SHARES, count)[:, None]
    moved[np.arange(count), rng.integers(0, d, count)] = True
    steps = rng.standard_normal((count, d)) * rng.choice(RADII, count)[:, None]
    points[near] = np.where(moved, np.clip(a[near] + steps, 0.0, 1.0), a[near])
    return np.concatenate([points, rng.random((max(8, size // 8), d))])
