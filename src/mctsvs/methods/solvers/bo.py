"""Bayesian optimisation of the selected variables with a Gaussian process (lines 15 and 16).

`BayesianOptimisation` has one model; `IsotropicSearch` has two that take turns, both with a kernel that treats all
variables alike: distance, one bowl, one spectrum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mctsvs.gp import acquisition as acq
from mctsvs.gp import optimize_acqf_mixed as on_lattice
from mctsvs.gp.acquisition import AcquisitionLike, FeasibilityWeighted, constraint_models, penalised, put_inside
from mctsvs.gp.model import KERNELS, Model, ModelSettings, Refit
from mctsvs.gp.multi_output import OutputModels, Outputs
from mctsvs.gp.optimize_acqf import along_axes, crossovers, maximise, pool, propose_greedily, quasi_random
from mctsvs.gp.posterior import Posterior
from mctsvs.gp.priors import PRIORS
from mctsvs.methods.solvers import Subspace, paper_gp, thinned
from mctsvs.utils.options import Options, option
from mctsvs.utils.state import Saved
from mctsvs.utils.validation import Array, Indices

ACQUISITIONS = ("log-ei", "ei", "ucb", "pi", "thompson")
SEARCHES = ("gradient", "candidates")
SURROGATES = ("own", "scikit-learn")
FANTASIES = ("worst", "expected")
CROSSED = 8  # best points that crossovers are made of
SAME_POINT = 1e-6  # a point this near to a known one in every coordinate is that one again
STEP = 0.02  # deviation of the step away from the best point that is taken in its place


@dataclass(frozen=True)
class Best:
    """Once there are `enough` points for each coordinate, only a share of them, the best, enters a model.

    Bad points set a scale on which differences between good ones look like nothing.
    """

    share: float
    fewest: int = 80
    enough: float = 2.0

    def count(self, n: int, d: int) -> int:
        """Of n points in d coordinates."""
        return n if n < self.enough * d else min(n, max(self.fewest, int(self.share * n)))


@dataclass(frozen=True)
class ModelOptions(Options):
    """kernel, prior       see `mctsvs.gp.model` and `mctsvs.gp.priors`
    fit_points          parameters are fitted to at most so many points (spread evenly over the ranks of their
                        values) in at most `fit_iterations` steps; predictions use all points. A subset's model
                        serves for a handful of points, so a perfect fit is not worth its price. They are fitted
                        again whenever there are `fit_growth` times as many points, or from 200 points on
                        `late_growth` times, if that is more; `thorough` starts every fit from the prior's mode
                        and ends it when nothing is gained, `restart` where the mode is better than the last
                        parameters.
    most_points         of the model: of more, half of so many are the best and half are spread over the others' ranks
    constant_mean       values vary about an unknown constant, not about their mean
    winsorise           very bad values are pulled in
    """

    kernel: str = option("matern52", among=KERNELS)
    prior: str = option("subspace", among=PRIORS)
    fit_points: int = 160
    fit_iterations: int = 7
    fit_growth: float = option(1.1, least=1.0)
    late_growth: float = option(1.0, least=1.0)
    thorough: bool = False
    restart: bool = False
    most_points: int | None = option(None, least=2)
    constant_mean: bool = False
    winsorise: bool = True

    def model(self) -> ModelSettings:
        return ModelSettings(
            kernel=self.kernel,
            prior=self.prior,
            refit=Refit(self.fit_growth, after=50, late=self.late_growth),
            winsorise=self.winsorise,
            fit_points=self.fit_points,
            iterations=self.fit_iterations,
            constant_mean=self.constant_mean,
            thorough=self.thorough,
            restart=self.restart,
        )


@dataclass(frozen=True)
class BOOptions(ModelOptions):
    """acquisition         log-ei (default), ei, ucb (the beta_t of Theorem 4.2), pi, thompson
    acquisition_search  gradient (default): climb from the best of a pool, one point at a time, every chosen point
                        entering the model as a bad one before the next is sought (constant liar);
                        candidates: the paper's, the n best of `candidates` quasi-random points
    starts, pool, climb points of a pool from the best of which so many climbs start, of so many steps
    along_axes          about so many points beside the pool, the best one with one coordinate anywhere
    fantasies           a point that failed or waits for its value enters the model with the worst value (default); or
                        with the expected one, where it failed so much nearer to the worst as its neighbours failed
    crossovers          points beside the pool, each made of two good ones
    surrogate           own (default), as the options above say; scikit-learn: the MCTS-VS paper's, with expected
                        improvement and its best candidates, whatever the options above say (see `paper_gp`)
    width               of the box in natural units, which that model works in
    """

    acquisition: str = option("log-ei", among=ACQUISITIONS)
    acquisition_search: str = option("gradient", among=SEARCHES)
    candidates: int = 1024
    starts: int = 1
    pool: int = option(256, least=2)
    climb: int = option(20, least=0)
    crossovers: int = option(0, least=0)
    along_axes: int = option(0, least=0)
    fantasies: str = option("worst", among=FANTASIES)
    surrogate: str = option("own", among=SURROGATES)
    width: float = option(1.0, above=0)


class BayesianOptimisation(Saved):
    """A Gaussian process on the selected variables, and points that maximise an acquisition function.

    best        a model of the best points alone, once there are enough
    distinct    whole numbers and categories are chosen so that a point is new among the coordinates given (as it
                always is when these are all): for callers that leave the others alone

    Points that failed or still wait for their value take part as fantasies too: the model is pushed away from them,
    but its parameters are never fitted to them.
    """

    options_type: ClassVar[type[BOOptions]] = BOOptions
    batch = None
    saved = ("coordinates", "model", "known", "constraints")
    coordinates: Indices | None
    model: Model
    constraints: OutputModels  # measured ones
    known: int  # points, when a model of a part of them was fitted last

    def __init__(self, options: BOOptions, *, best: Best | None = None, distinct: bool = False) -> None:
        self.options, self.best, self.distinct = options, best, distinct
        self.coordinates, self.model, self.known = None, Model(options.model()), 0
        self.constraints = OutputModels()

    def propose(self, n: int, subspace: Subspace, rng: np.random.Generator) -> Array:
        if len(subspace.history) < 2:
            return rng.random((n, subspace.dimension))
        o = self.options
        if o.surrogate == "scikit-learn":
            return paper_gp.propose(n, subspace.X, subspace.y, o.candidates, rng, width=o.width)
        posterior = self._posterior(subspace)
        worst, best = float(posterior.y.min()), float(posterior.y.max())
        needed = (
            constraint_models(self.constraints, subspace.X, subspace.history.constraints)
            if subspace.constrained
            else None
        )
        if needed is not None:
            feasible = subspace.feasible[self._rows(subspace.values[1], subspace.dimension)]
            best = float(posterior.y[feasible].max()) if feasible.any() else np.inf
        posterior = self._with_fantasies(posterior, subspace, worst)
        thompson = o.acquisition == "thompson"
        if o.acquisition_search == "candidates" and not thompson:
            acqf = self._surface(posterior, best, subspace, needed, rng)
            points = put_inside(quasi_random(o.candidates, subspace.dimension, rng), acqf)
            value = acqf(points)
            return points[np.argsort(-value, kind="stable")[:n]]
        good = subspace.X[subspace.history.best(CROSSED)]

        def find(posterior: Posterior, chosen: list[Array]) -> Array:
            acqf = self._surface(posterior, best, subspace, needed, rng)
            further = [crossovers(o.crossovers, good, rng)] if o.crossovers else []
            further += [along_axes(o.along_axes, good[0], rng)] if o.along_axes else []
            extra = np.concatenate(further) if further else None
            limits: dict[str, Any] = {"starts": o.starts, "iterations": o.climb}
            if subspace.lattice is None:
                return maximise(acqf, good[:3], rng, size=o.pool, extra=extra, **limits)
            candidates = put_inside(pool(o.pool, good[:3], rng, extra), acqf)
            known = np.concatenate([subspace.X, subspace.avoid, *(x[None] for x in chosen)])
            known = known if self.distinct or subspace.complete else known[:0]  # others are filled in: it is not known
            return on_lattice.maximise(acqf, subspace.lattice, candidates, known, rng, **limits)[0]

        return propose_greedily(n, posterior, None if thompson else worst, find)

    def _posterior(self, subspace: Subspace) -> Posterior:
        """The model of this subset, of all points or of a part; another subset starts another one."""
        if self.coordinates is None or not np.array_equal(self.coordinates, subspace.coordinates):
            self.coordinates, self.model = subspace.coordinates, Model(self.options.model())
            self.constraints = OutputModels()
        X, y, noise = subspace.values
        rows = self._rows(y, subspace.dimension)
        if len(rows) < sum(self.model.blocks):  # values in place of merits, of fewer points
            self.model.forget()
        if len(rows) == len(y):
            return self.model.update(X, y, noise)
        # other points than before may be in it
        due = len(y) >= self.model.settings.refit.factor(self.known) * self.known
        self.model.forget(fit=due)
        self.known = len(y) if due else self.known
        return self.model.update(X[rows], y[rows], noise[rows] if len(noise) else None)

    def _with_fantasies(self, posterior: Posterior, subspace: Subspace, worst: float) -> Posterior:
        if self.options.fantasies == "worst" or not len(subspace.avoid):
            return posterior.with_fantasies(subspace.avoid, worst)
        expected, _ = posterior.predict(subspace.avoid)
        bad = thinned(np.append(failure_share(subspace.failures, subspace.X), np.zeros(len(subspace.waiting))))
        values = (1.0 - bad) * expected + bad * worst
        return posterior.extended(subspace.avoid, np.append(posterior.y, values))

    def _rows(self, y: Array, d: int) -> Indices:
        """Of the points in the model, in their order."""
        n, most = len(y), self.options.most_points or len(y)
        count = n if self.best is None else self.best.count(n, d)
        if count == n <= most:
            return np.arange(n)
        order = np.argsort(-y, kind="stable")[:count]
        if count > most:
            others = np.linspace(most // 2, count - 1, most - most // 2).astype(np.intp)
            order = np.append(order[: most // 2], order[others])
        return np.sort(order)

    def _surface(
        self, posterior: Posterior, best: float, subspace: Subspace, needed: Outputs | None, rng: np.random.Generator
    ) -> AcquisitionLike:
        """The acquisition function where points may lie, and where measured constraints probably hold."""
        if needed is None:
            acqf = self._acquisition(posterior, best, subspace, rng)
        else:
            hopeful = self._acquisition(posterior, best, subspace, rng) if best < np.inf else None
            acqf = FeasibilityWeighted(hopeful, needed)
        return penalised(acqf, subspace.cut)

    def _acquisition(
        self, posterior: Posterior, best: float, subspace: Subspace, rng: np.random.Generator
    ) -> AcquisitionLike:
        kind = self.options.acquisition
        if kind == "thompson":
            return posterior.sample_path(rng)
        if kind == "ucb":
            t, D = len(subspace.history) + 1, subspace.history.X.shape[1]
            beta = acq.beta_schedule(t, subspace.dimension, D)
            return acq.AcquisitionFunction(posterior, acq.upper_confidence_bound(beta))
        make = {
            "log-ei": acq.log_expected_improvement,
            "ei": acq.expected_improvement,
            "pi": acq.probability_of_improvement,
        }[kind]
        return acq.AcquisitionFunction(posterior, make(best))


def failure_share(failed: Array, X: Array, neighbours: int = 5) -> Array:
    """(f,) the share of failures among the evaluations nearest to each failed point; X (n, d) those that succeeded.

    A failure among failures is a bad place, one among successes an accident: it must not wall off a good point.
    """
    if len(failed) == 0:
        return np.zeros(0)
    others = np.concatenate([X, failed])
    distance = ((failed[:, None] - others) ** 2).sum(axis=-1)
    distance[np.arange(len(failed)), len(X) + np.arange(len(failed))] = np.inf  # itself
    closest = np.argsort(distance, axis=1, kind="stable")[:, : min(neighbours, len(others) - 1)]
    share: Array = (closest >= len(X)).mean(axis=1)
    return share


@dataclass(frozen=True)
class IsoOptions(BOOptions):
    """best_share   once there are as many points as coordinates, every other one comes from a model of this share of
    the points, the best; 1: never. The other options are those of `bo`, which the method sets otherwise
    """

    best_share: float = option(0.5, above=0.0, most=1.0)


class IsotropicSearch(Saved):
    """Two models take turns, once there are points enough: one of all points and one of the best alone.

    Bad points set a scale on which differences between good ones look like nothing; but a model of good points cannot
    know that bad ones are bad.
    """

    options_type: ClassVar[type[IsoOptions]] = IsoOptions
    batch = None
    saved = ("of_all", "of_best", "turn")
    of_all: BayesianOptimisation
    of_best: BayesianOptimisation
    turn: int

    def __init__(self, options: IsoOptions) -> None:
        self.options, self.turn = options, 0
        self.of_all = BayesianOptimisation(options)
        self.best = Best(options.best_share, fewest=30, enough=1.0)
        self.of_best = BayesianOptimisation(options, best=self.best)

    def propose(self, n: int, subspace: Subspace, rng: np.random.Generator) -> Array:
        self.turn += 1
        n_told = len(subspace.history)
        part = self.best.count(n_told, subspace.dimension) < n_told
        model = self.of_best if part and self.turn % 2 == 0 else self.of_all
        points = model.propose(n, subspace, rng)
        if n_told == 0:
            return points
        best, free = subspace.X[subspace.history.best(1)[0]], ~subspace.categorical
        for x in points:
            if _known(x, subspace.X) or _known(x, subspace.avoid):
                x[free] = np.clip(best + STEP * rng.standard_normal(len(best)), 0.0, 1.0)[free]
        return points


def _known(x: Array, points: Array) -> bool:
    """Whether x (d,) is one of the points (n, d)."""
    near = points[np.abs(points[:, 0] - x[0]) < SAME_POINT]  # one coordinate tells nearly all of them apart
    return bool((np.abs(near - x) < SAME_POINT).all(axis=1).any())
