"""TuRBO: Bayesian optimisation inside trust regions (Eriksson et al., NeurIPS 2019).

A region is a box around its best point whose sides follow the model's lengthscales; it doubles after a run of
successes, halves after a run of failures, and starts anew elsewhere when it has become too small. Points are drawn by
Thompson sampling: of many candidates in the box, each moving only some coordinates of the centre, the one where
a function drawn from the posterior is largest. With several regions (TuRBO-m) the draws of all of them compete,
which is the bandit that decides where to go on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from mctsvs.common import Array, Indices, State, check_choice, check_fields
from mctsvs.gp.acquisition import Surface, log_expected_improvement
from mctsvs.gp.model import Model
from mctsvs.gp.posterior import Posterior, SamplePaths
from mctsvs.gp.priors import PRIORS
from mctsvs.gp.search import climb, quasi_random
from mctsvs.solve.subspace import Subspace

FIRST_LENGTH, SHORTEST, LONGEST = 0.8, 2.0**-7, 1.6  # the paper's
LOCAL_POINTS = 200  # most points of a region's model, or twice the coordinates if that is more
MOVED = 20.0  # coordinates a candidate moves, on average
HALVINGS = 8  # of the way from the centre to a candidate that is not allowed

Inside = Callable[[Array], npt.NDArray[np.bool_]]
"""(m, d) points -> (m,) which of them may be proposed."""


@dataclass(frozen=True)
class Settings:
    """Options of the solver; lengths and the number of successes are the TuRBO paper's."""

    regions: int = 1
    batch: int = 4
    start_points: int = 12  # of a region that starts anew
    candidates: int = 2000
    successes: int = 3  # in a row, to double
    patience: int = 0  # evaluations without success, to halve; 0: as many as there are coordinates
    acquisition: str = "thompson"
    climb: int = 15  # steps uphill on the drawn function, from the best candidate
    prior: str = "subspace"
    fit_points: int = 400
    fit_iterations: int = 10

    def __post_init__(self) -> None:
        check_choice("prior", self.prior, PRIORS)
        check_choice("acquisition", self.acquisition, ("thompson", "log-ei"))
        check_fields(self, least={"patience": 0, "climb": 0})


@dataclass
class Region:
    """A trust region: its size, its run of successes and failures, and the points that belong to it."""

    length: float = FIRST_LENGTH
    successes: int = 0
    failures: int = 0
    best: float = -np.inf
    rows: list[int] = field(default_factory=list)  # of the history
    design: list[Array] = field(default_factory=list)  # points of its start, still to be handed out
    model: Model = field(default_factory=Model)
    foreign: int = 0  # so many of the first rows teach the model only: the centre is one of the others

    def condition(self, subspace: Subspace) -> tuple[Posterior, Array, Array]:
        """The region's model, its centre, and the values the model was given.

        Of many points only the nearest to the centre enter: values far away set a scale on which the differences
        near the optimum look like noise (Ackley20 at 464 evaluations: 0.3 instead of 1.6).
        """
        X, y = subspace.X[self.rows], subspace.y[self.rows]
        centre = X[self.foreign + int(np.argmax(y[self.foreign :]))]
        most = max(LOCAL_POINTS, 2 * subspace.dimension)
        if len(y) > most and self.model.theta is not None:
            difference = (X - centre) * np.exp(-self.model.theta[: len(centre)])
            distance = np.einsum("ij,ij->i", difference, difference)
            near = np.sort(np.argsort(distance, kind="stable")[:most])
            X, y = X[near], y[near]
            self.model.forget()
        return self.model.update(X, y), centre, y

    def learn(self, values: Array, spread: float, patience: int, needed: int) -> None:
        """Grow or shrink after the values of a batch; a gain below a thousandth of the spread is none."""
        if not len(values):
            return
        if values.max() > self.best + 1e-3 * spread:
            self.successes, self.failures = self.successes + 1, 0
        else:
            self.successes, self.failures = 0, self.failures + len(values)
        self.best = max(self.best, float(values.max()))
        if self.successes >= needed:
            self.length, self.successes = min(2.0 * self.length, LONGEST), 0
        elif self.failures >= patience:
            self.length, self.failures = self.length / 2.0, 0


@dataclass
class Pool:
    """A region's candidates and the values of the drawn functions there, on the scale of the objective."""

    region: int
    centre: Array
    low: Array
    high: Array
    points: Array  # (candidates, d)
    paths: SamplePaths
    values: Array  # (draws, candidates)

    def take(self, draw: int, iterations: int, inside: Inside | None = None) -> Array:
        """The best candidate of a draw, moved uphill on the drawn function in the coordinates it moves already."""
        best = int(np.argmax(self.values[draw]))
        self.values[:, best] = -np.inf  # a candidate is taken once
        start: Array = self.points[best]
        if not iterations:
            return start
        still = start == self.centre
        low, high = np.where(still, start, self.low), np.where(still, start, self.high)
        top = climb(self.paths.path(draw), start, low, high, iterations=iterations)[0]
        return top if inside is None or inside(top[None])[0] else start


class TuRBO:
    """Trust-region Bayesian optimisation.

    regions       m, the number of trust regions (TuRBO-m)
    batch         points drawn at once from one model
    start_points  points of a fresh region; the first one takes over what was evaluated before
    candidates    points among which each draw chooses
    climb         steps uphill on the drawn function from the best candidate; 0 for the TuRBO paper's plain choice
    successes, patience, prior, fit_points, fit_iterations   see `Settings`
    """

    options: ClassVar[tuple[str, ...]] = tuple(f.name for f in fields(Settings))

    def __init__(self, **options: Any) -> None:
        self.settings = Settings(**options)
        self.regions: list[Region] = []
        self.coordinates: Indices | None = None
        self.seen = 0  # rows of the history already assigned to a region
        self.handed: list[tuple[int, Array]] = []  # (region, point) proposed and not yet seen
        self.inside: Inside | None = None  # where points may lie; None: anywhere

    @property
    def batch(self) -> int:
        return self.settings.batch

    def propose(self, n: int, subspace: Subspace, rng: np.random.Generator) -> Array:
        if self.coordinates is None or not np.array_equal(self.coordinates, subspace.coordinates):
            self._begin(subspace, rng)
        self._learn(subspace, rng)
        chosen: list[Array] = []
        for i, region in enumerate(self.regions):
            while region.design and len(chosen) < n:
                chosen.append(region.design.pop())
                self.handed.append((i, chosen[-1]))
        if len(chosen) < n:
            draw = self._improve if self.settings.acquisition == "log-ei" else self._draw
            chosen += draw(n - len(chosen), subspace, rng)
        return np.array(chosen)

    def _begin(self, subspace: Subspace, rng: np.random.Generator) -> None:
        """New coordinates: the first region starts from all that is known, the others from points of their own."""
        s = self.settings
        self.coordinates, self.seen, self.handed = subspace.coordinates, len(subspace.history), []
        self.regions = [self._region() for _ in range(s.regions)]
        self.regions[0].rows = list(range(self.seen))
        for i, region in enumerate(self.regions):
            if i > 0 or self.seen < 2:
                region.design = list(quasi_random(s.start_points, subspace.dimension, rng))
        if self.seen:
            self.regions[0].best = float(subspace.y.max())

    def start(self, subspace: Subspace, rows: Indices, inside: Inside | None) -> None:
        """One new region around the best of these rows; the others, and the last model's fit, help its model."""
        region = self._region()
        if self.regions:
            region.model = self.regions[0].model
            region.model.forget()
        foreign = np.setdiff1d(np.arange(len(subspace.history)), rows)
        region.rows, region.foreign = [*foreign.tolist(), *rows.tolist()], len(foreign)
        region.best = float(subspace.y[rows].max())
        self.coordinates, self.seen, self.handed = subspace.coordinates, len(subspace.history), []
        self.regions, self.inside = [region], inside

    def _region(self) -> Region:
        s = self.settings
        return Region(model=Model(prior=s.prior, fit_points=s.fit_points, iterations=s.fit_iterations))

    def _learn(self, subspace: Subspace, rng: np.random.Generator) -> None:
        """Give each new point to the region that proposed it, and let the regions grow, shrink or start anew."""
        y = subspace.y
        fresh: list[list[int]] = [[] for _ in self.regions]
        for row in range(self.seen, len(y)):
            fresh[self._owner(subspace.X[row])].append(row)
        self.seen = len(y)
        # values waited for in vain (failures) would be matched with later points: keep the recent ones only
        del self.handed[: -4 * max(self.batch, len(subspace.waiting) + 1)]
        spread = float(y.std()) if len(y) else 0.0
        for region, rows in zip(self.regions, fresh, strict=True):
            patience = self.settings.patience or max(4, subspace.dimension)
            region.learn(y[rows], spread, patience, self.settings.successes)
            region.rows += rows
            if region.length < SHORTEST:
                region.__dict__.update(self._region().__dict__)
                region.design = list(self._design(subspace.dimension, rng))

    def _design(self, d: int, rng: np.random.Generator) -> Array:
        """Points for a region that starts anew, inside where any of many points are."""
        if self.inside is not None:
            points = quasi_random(self.settings.candidates, d, rng)
            points = points[self.inside(points)][: self.settings.start_points]
            if len(points):
                return points
        return quasi_random(self.settings.start_points, d, rng)

    def _owner(self, x: Array) -> int:
        """The region whose proposal this was: the nearest one, since integers and categories moved it a little."""
        if not self.handed:
            return 0
        distances = [float(np.abs(point - x).sum()) for _, point in self.handed]
        return self.handed.pop(int(np.argmin(distances)))[0]

    def _draw(self, n: int, subspace: Subspace, rng: np.random.Generator) -> list[Array]:
        """n points by Thompson sampling over the candidates of all regions."""
        pools: list[Pool] = []
        for i, region in enumerate(self.regions):
            if len(region.rows) < 2:
                continue
            posterior, centre, y = region.condition(subspace)
            low, high = self._box(region, posterior, centre, subspace)
            points = self._candidates(low, high, centre, rng)
            paths = posterior.sample_paths(n, rng)
            pools.append(Pool(i, centre, low, high, points, paths, y.mean() + y.std() * paths(points)))
        if not pools:
            points = quasi_random(n, subspace.dimension, rng)
            self.handed += [(0, point) for point in points]
            return list(points)
        chosen: list[Array] = []
        for draw in range(n):
            pool = max(pools, key=lambda pool: float(pool.values[draw].max()))
            chosen.append(pool.take(draw, self.settings.climb, self.inside))
            self.handed.append((pool.region, chosen[-1]))
        return chosen

    def _improve(self, n: int, subspace: Subspace, rng: np.random.Generator) -> list[Array]:
        """n points of largest expected improvement, each taken as a bad one before the next is sought."""
        chosen: list[Array] = []
        fitted = {}
        for i, region in enumerate(self.regions):
            if len(region.rows) >= 2:
                posterior, centre, y = region.condition(subspace)
                fitted[i] = (posterior, centre, float(y.std()))
        if not fitted:
            return self._draw(n, subspace, rng)
        lies = {i: posterior for i, (posterior, _, _) in fitted.items()}
        for _ in range(n):
            found: list[tuple[float, int, Array]] = []
            for i, (posterior, centre, scale) in fitted.items():
                low, high = self._box(self.regions[i], posterior, centre, subspace)
                points = self._candidates(low, high, centre, rng)
                surface = Surface(lies[i], log_expected_improvement(float(posterior.y.max())))
                start = points[int(np.argmax(surface(points)))]
                still = start == centre
                bounds = np.where(still, start, low), np.where(still, start, high)
                point, value = climb(surface, start, *bounds, iterations=self.settings.climb)
                if self.inside is not None and not self.inside(point[None])[0]:
                    point, value = start, float(surface(start[None])[0])
                found.append((value + np.log(max(scale, 1e-300)), i, point))
            _, i, point = max(found, key=lambda item: item[0])
            chosen.append(point)
            self.handed.append((i, point))
            lies[i] = lies[i].extended(point[None], np.append(lies[i].y, float(lies[i].y.min())))
        return chosen

    @staticmethod
    def _box(region: Region, posterior: Posterior, centre: Array, subspace: Subspace) -> tuple[Array, Array]:
        """Sides in proportion to the lengthscales, the volume that of a cube with the region's length.

        Categories are free everywhere: inside a small box no code could overtake the centre's own.
        """
        log_lengthscale = posterior.theta[: len(centre)]
        sides = region.length * np.exp(np.clip(log_lengthscale - log_lengthscale.mean(), -3.0, 3.0))
        sides[subspace.categorical] = 2.0
        return np.clip(centre - sides / 2.0, 0.0, 1.0), np.clip(centre + sides / 2.0, 0.0, 1.0)

    def _candidates(self, low: Array, high: Array, centre: Array, rng: np.random.Generator) -> Array:
        """Quasi-random points in the box, each moving a random few coordinates of the centre."""
        d, size = len(centre), self.settings.candidates
        moved = rng.random((size, d)) < min(1.0, MOVED / d)
        moved[np.arange(size), rng.integers(0, d, size)] = True
        points = np.where(moved, low + (high - low) * quasi_random(size, d, rng), centre)
        return points if self.inside is None else self._allowed(points, centre)

    def _allowed(self, points: Array, centre: Array) -> Array:
        """The points that lie inside; where that leaves too few, others come ever nearer to the centre."""
        assert self.inside is not None
        inside = self.inside(points)
        found = [points[inside]]
        points = points[~inside]
        for _ in range(HALVINGS):
            if 4 * sum(map(len, found)) >= self.settings.candidates or not len(points):
                break
            points = (points + centre) / 2.0
            inside = self.inside(points)
            found.append(points[inside])
            points = points[~inside]
        return np.concatenate(found) if any(map(len, found)) else points

    def state(self) -> State:
        return {
            "coordinates": None if self.coordinates is None else np.array(self.coordinates),
            "seen": self.seen,
            "handed": [[i, x.copy()] for i, x in self.handed],
            "regions": [
                {
                    "numbers": [r.length, r.successes, r.failures, r.best],
                    "foreign": r.foreign,
                    "rows": np.array(r.rows, dtype=np.intp),
                    "design": [x.copy() for x in r.design],
                    "model": r.model.state(),
                }
                for r in self.regions
            ],
        }

    def restore(self, state: State, subspace: Subspace | None) -> None:
        self.coordinates, self.seen = state["coordinates"], state["seen"]
        self.handed = [(i, np.asarray(x)) for i, x in state["handed"]]
        self.regions = []
        for saved in state["regions"]:
            region = self._region()
            region.length, region.successes, region.failures, region.best = saved["numbers"]
            region.rows, region.foreign = [int(row) for row in saved["rows"]], saved["foreign"]
            region.design = [np.asarray(x) for x in saved["design"]]
            assert subspace is not None
            if len(region.rows) <= max(LOCAL_POINTS, 2 * subspace.dimension):
                region.model.restore(saved["model"], subspace.X[region.rows], subspace.y[region.rows])
            else:  # a local model is conditioned anew each time: its parameters are all there is to keep
                region.model.restore({**saved["model"], "blocks": []}, subspace.X[:0], subspace.y[:0])
            self.regions.append(region)
