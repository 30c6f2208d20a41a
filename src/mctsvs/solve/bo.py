"""Bayesian optimisation of the selected variables with a Gaussian process (lines 15 and 16)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mctsvs.common import Array, Indices
from mctsvs.gp import acquisition as acq
from mctsvs.gp.categories import Blocks, blocks_of, decide
from mctsvs.gp.model import KERNELS, LARGEST_FIT, Model, ModelSettings, Refit
from mctsvs.gp.posterior import Posterior
from mctsvs.gp.priors import PRIORS
from mctsvs.gp.propose import propose_greedily
from mctsvs.gp.search import SurfaceLike, crossovers, maximise, quasi_random
from mctsvs.options import Options, option
from mctsvs.solve.subspace import Subspace
from mctsvs.state import Saved

ACQUISITIONS = ("log-ei", "ei", "ucb", "pi", "thompson")
SEARCHES = ("gradient", "candidates")
FEWEST_BEST = 80  # points of a model of the best ones
CROSSED = 8  # best points that crossovers are made of


@dataclass(frozen=True)
class ModelOptions(Options):
    """kernel, prior       see `mctsvs.gp.model` and `mctsvs.gp.priors`
    fit_points          parameters are fitted to at most so many points (spread evenly over the ranks of their
                        values) in at most `fit_iterations` steps; predictions use all points. A subset's model
                        serves for a handful of points, so a perfect fit is not worth its price. They are fitted
                        again whenever there are `fit_growth` times as many points; `thorough` starts every fit
                        from the prior's mode and ends it when nothing is gained, `restart` where the mode is
                        better than the last parameters.
    most_points         of the model: of more, the half as many nearest to the best one, and those that follow
    constant_mean       values vary about an unknown constant, not about their mean
    winsorise           very bad values are pulled in
    """

    kernel: str = option("matern52", among=KERNELS)
    prior: str = option("subspace", among=PRIORS)
    fit_points: int = 160
    fit_iterations: int = 7
    fit_growth: float = option(1.1, least=1.0)
    thorough: bool = False
    restart: bool = False
    most_points: int = option(LARGEST_FIT, least=2)
    constant_mean: bool = False
    winsorise: bool = True

    def model(self) -> ModelSettings:
        return ModelSettings(
            kernel=self.kernel,
            prior=self.prior,
            refit=Refit(self.fit_growth, after=50),
            winsorise=self.winsorise,
            fit_points=self.fit_points,
            iterations=self.fit_iterations,
            constant_mean=self.constant_mean,
            thorough=self.thorough,
            restart=self.restart,
            most_points=self.most_points,
        )


@dataclass(frozen=True)
class BOOptions(ModelOptions):
    """acquisition         log-ei (default), ei, ucb (the beta_t of Theorem 4.2), pi, thompson
    acquisition_search  gradient (default): climb from the best of a pool, one point at a time, every chosen point
                        entering the model as a bad one before the next is sought (constant liar);
                        candidates: the paper's, the n best of `candidates` quasi-random points
    starts, pool, climb points of a pool from the best of which so many climbs start, of so many steps
    crossovers          points beside the pool, each made of two good ones
    """

    acquisition: str = option("log-ei", among=ACQUISITIONS)
    acquisition_search: str = option("gradient", among=SEARCHES)
    candidates: int = 1024
    starts: int = 1
    pool: int = option(256, least=2)
    climb: int = option(20, least=0)
    crossovers: int = option(0, least=0)


class BayesianOptimisation(Saved):
    """A Gaussian process on the selected variables, and points that maximise an acquisition function.

    best_share  once there are twice as many points as coordinates, only this share of them, the best, enters
                the model: bad points set a scale on which differences between good ones look like nothing
    distinct    categories are decided so that a point is new among the coordinates given (as it always is when
                these are all): for callers that leave the others alone

    Points that failed or still wait for their value take part as lies too: the model is pushed away from them,
    but its parameters are never fitted to them.
    """

    options_type: ClassVar[type[BOOptions]] = BOOptions
    batch = None
    saved = ("coordinates", "model", "known")
    coordinates: Indices | None
    model: Model
    known: int  # points, when a model of the best of them was fitted last

    def __init__(self, options: BOOptions, *, best_share: float = 1.0, distinct: bool = False) -> None:
        self.options, self.best_share, self.distinct = options, best_share, distinct
        self.coordinates, self.model, self.known = None, Model(options.model()), 0

    def propose(self, n: int, subspace: Subspace, rng: np.random.Generator) -> Array:
        if len(subspace.history) < 2:
            return rng.random((n, subspace.dimension))
        o, posterior = self.options, self._posterior(subspace)
        lie, best = float(posterior.y.min()), float(posterior.y.max())
        posterior = posterior.with_lies(subspace.avoid, lie)
        thompson = o.acquisition == "thompson"
        if o.acquisition_search == "candidates" and not thompson:
            points = quasi_random(o.candidates, subspace.dimension, rng)
            value = self._surface(posterior, best, subspace, rng)(points)
            return points[np.argsort(-value, kind="stable")[:n]]
        best_points, blocks = subspace.X[subspace.history.best(CROSSED)], self._categories(subspace)

        def find(posterior: Posterior, chosen: list[Array]) -> Array:
            surface = self._surface(posterior, best, subspace, rng)
            beside = crossovers(o.crossovers, best_points, rng) if o.crossovers else None
            point = maximise(
                surface, best_points[:3], rng, size=o.pool, starts=o.starts, iterations=o.climb, beside=beside
            )
            if blocks:
                known = np.concatenate([subspace.X, subspace.avoid, *(x[None] for x in chosen)])
                point = decide(surface, point, blocks, known, rng)
            return point

        return propose_greedily(n, posterior, None if thompson else lie, find)

    def _categories(self, subspace: Subspace) -> Blocks:
        """Those to decide: where other variables are filled in afterwards, a point that looks known is not."""
        if subspace.owner is None or not (self.distinct or subspace.complete):
            return []
        return blocks_of(subspace.owner, subspace.coordinates)

    def _posterior(self, subspace: Subspace) -> Posterior:
        """The model of this subset, of all points or of the best; another subset starts another one."""
        if self.coordinates is None or not np.array_equal(self.coordinates, subspace.coordinates):
            self.coordinates, self.model = subspace.coordinates, Model(self.options.model())
        X, y = subspace.X, subspace.y
        if self.best_share == 1.0 or len(y) < 2 * subspace.dimension:
            return self.model.update(X, y)
        count = min(max(FEWEST_BEST, int(self.best_share * len(y))), self.options.most_points)
        if count < len(y):  # other points than before may be the best
            due = len(y) >= self.options.fit_growth * self.known
            self.model.forget(fit=due)
            self.known = len(y) if due else self.known
        rows = np.sort(np.argsort(-y, kind="stable")[:count])
        return self.model.update(X[rows], y[rows])

    def _surface(self, posterior: Posterior, best: float, subspace: Subspace, rng: np.random.Generator) -> SurfaceLike:
        kind = self.options.acquisition
        if kind == "thompson":
            return posterior.sample_path(rng)
        if kind == "ucb":
            t, D = len(subspace.history) + 1, subspace.history.X.shape[1]
            beta = acq.beta_schedule(t, subspace.dimension, D)
            return acq.Surface(posterior, acq.upper_confidence_bound(beta))
        make = {
            "log-ei": acq.log_expected_improvement,
            "ei": acq.expected_improvement,
            "pi": acq.probability_of_improvement,
        }[kind]
        return acq.Surface(posterior, make(best))
