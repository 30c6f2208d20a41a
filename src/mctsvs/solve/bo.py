"""Bayesian optimisation of the selected variables with a Gaussian process (lines 15 and 16)."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from mctsvs.common import Array, InputError, State, check_choice, check_fields
from mctsvs.gp import acquisition as acq
from mctsvs.gp.categories import Blocks, blocks_of, decide
from mctsvs.gp.model import KERNELS, Model
from mctsvs.gp.posterior import Posterior
from mctsvs.gp.priors import PRIORS
from mctsvs.gp.search import SurfaceLike, maximise, quasi_random
from mctsvs.solve.subspace import Subspace

ACQUISITIONS = ("log-ei", "ei", "ucb", "pi", "thompson")
SEARCHES = ("gradient", "candidates")
FEWEST_BEST = 80  # points of a model of the best ones


@dataclass(frozen=True)
class Settings:
    """Options of the solver; the defaults are the measured best (docs/design.md)."""

    kernel: str = "matern52"
    prior: str = "subspace"
    acquisition: str = "log-ei"
    acquisition_search: str = "gradient"
    candidates: int = 1024
    starts: int = 1
    pool: int = 256
    climb: int = 20
    fit_points: int = 160
    fit_iterations: int = 7
    fit_growth: float = 1.1
    thorough: bool = False
    constant_mean: bool = False
    winsorise: bool = True
    best_share: float = 1.0
    distinct: bool = False

    def __post_init__(self) -> None:
        check_choice("kernel", self.kernel, KERNELS)
        check_choice("prior", self.prior, PRIORS)
        check_choice("acquisition", self.acquisition, ACQUISITIONS)
        check_choice("acquisition_search", self.acquisition_search, SEARCHES)
        check_fields(self, least={"climb": 0, "pool": 2})
        if not 0 < self.best_share <= 1:
            raise InputError(f"best_share={self.best_share!r} cannot be used: it must be above 0 and at most 1")


class BayesianOptimisation:
    """A Gaussian process on the selected variables, and points that maximise an acquisition function.

    acquisition         log-ei (default), ei, ucb (the beta_t of Theorem 4.2), pi, thompson
    acquisition_search  gradient (default): climb from the best of a pool, one point at a time, every chosen point
                        entering the model as a bad one before the next is sought (constant liar);
                        candidates: the paper's, the n best of `candidates` quasi-random points
    kernel, prior       see `mctsvs.gp.model` and `mctsvs.gp.priors`
    fit_points          parameters are fitted to at most so many points (spread evenly over the ranks of their
                        values) in at most `fit_iterations` steps; predictions use all points. A subset's model
                        serves for a handful of points, so a perfect fit is not worth its price. They are fitted
                        again whenever there are `fit_growth` times as many points; `thorough` starts every fit
                        from the prior's mode and ends it when nothing is gained.
    constant_mean       values vary about an unknown constant, not about their mean
    best_share          once there are twice as many points as coordinates, only this share of them, the best, enters
                        the model: bad points set a scale on which differences between good ones look like nothing

    distinct            categories are decided so that a point is new among the coordinates given (as it always is when
                        these are all): for callers that leave the others alone

    Points that failed or still wait for their value take part as lies too: the model is pushed away from them,
    but its parameters are never fitted to them.
    """

    options: ClassVar[tuple[str, ...]] = tuple(f.name for f in fields(Settings))
    batch = None

    def __init__(self, **options: Any) -> None:
        self.settings = Settings(**options)
        self.model: Model | None = None
        self.coordinates: tuple[int, ...] | None = None
        self.known = 0  # points, when a model of the best of them was fitted last

    def propose(self, n: int, subspace: Subspace, rng: np.random.Generator) -> Array:
        if len(subspace.history) < 2:
            return rng.random((n, subspace.dimension))
        model, (X, y) = self._model(subspace), self._data(subspace)
        if len(y) < len(subspace.y):  # other points than before may be the best
            model.posterior = None
            if len(subspace.y) >= self.settings.fit_growth * self.known:
                model.fitted, self.known = 0, len(subspace.y)
        posterior = model.update(X, y)
        lie = float(posterior.y.min())
        best = float(posterior.y.max())
        incumbents = subspace.X[subspace.history.best(3)]
        posterior = _with_lies(posterior, subspace.avoid, lie)
        if self.settings.acquisition_search == "candidates" and self.settings.acquisition != "thompson":
            points = quasi_random(self.settings.candidates, subspace.dimension, rng)
            value = self._surface(posterior, best, subspace, rng)(points)
            return points[np.argsort(-value, kind="stable")[:n]]
        chosen: list[Array] = []
        s, blocks = self.settings, self._categories(subspace)
        for _ in range(n):
            surface = self._surface(posterior, best, subspace, rng)
            point = maximise(surface, incumbents, rng, size=s.pool, starts=s.starts, iterations=s.climb)
            if blocks:
                point = decide(
                    surface,
                    point,
                    blocks,
                    np.concatenate([subspace.X, subspace.avoid, *(x[None] for x in chosen)]),
                    rng,
                )
            chosen.append(point)
            if len(chosen) < n and self.settings.acquisition != "thompson":
                posterior = _with_lies(posterior, chosen[-1][None], lie)
        return np.array(chosen)

    def _categories(self, subspace: Subspace) -> Blocks:
        """Those to decide: where other variables are filled in afterwards, a point that looks known is not."""
        if subspace.owner is None or not (self.settings.distinct or subspace.complete):
            return []
        return blocks_of(subspace.owner, subspace.coordinates)

    def _data(self, subspace: Subspace) -> tuple[Array, Array]:
        """What the model is made of."""
        X, y = subspace.X, subspace.y
        if self.settings.best_share == 1.0 or len(y) < 2 * subspace.dimension:
            return X, y
        rows = np.sort(np.argsort(-y, kind="stable")[: max(FEWEST_BEST, int(self.settings.best_share * len(y)))])
        return X[rows], y[rows]

    def _model(self, subspace: Subspace) -> Model:
        """The model of this subset; another subset starts another one."""
        key = tuple(subspace.coordinates.tolist())
        if self.model is None or key != self.coordinates:
            s = self.settings
            self.model = Model(
                kernel=s.kernel,
                prior=s.prior,
                winsorise=s.winsorise,
                fit_points=s.fit_points,
                iterations=s.fit_iterations,
                refit_growth=s.fit_growth,
                thorough=s.thorough,
                constant_mean=s.constant_mean,
            )
            self.coordinates = key
        return self.model

    def _surface(self, posterior: Posterior, best: float, subspace: Subspace, rng: np.random.Generator) -> SurfaceLike:
        kind = self.settings.acquisition
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

    def state(self) -> State:
        return {
            "coordinates": None if self.coordinates is None else np.array(self.coordinates, dtype=np.intp),
            "model": None if self.model is None else self.model.state(),
            "known": self.known,
        }

    def restore(self, state: State, subspace: Subspace | None) -> None:
        self.model = self.coordinates = None
        self.known = state["known"]
        if state["model"] is None or subspace is None:
            return
        if np.array_equal(state["coordinates"], subspace.coordinates):
            self._model(subspace).restore(state["model"], *self._data(subspace))


def _with_lies(posterior: Posterior, points: Array, lie: float) -> Posterior:
    return posterior.extended(points, np.append(posterior.y, np.full(len(points), lie)))
