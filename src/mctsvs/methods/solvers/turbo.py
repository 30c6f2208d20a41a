"""TuRBO: Bayesian optimisation inside trust regions (Eriksson et al., NeurIPS 2019).

A region is a box around its best point whose sides follow the model's lengthscales; it doubles after a run of
successes, halves after a run of failures, and starts anew elsewhere when it has become too small. Points are drawn by
Thompson sampling: of many candidates in the box, each moving only some coordinates of the centre, the one where
a function drawn from the posterior is largest. With several regions (TuRBO-m) the draws of all of them compete,
which is the bandit that decides where to go on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from mctsvs.gp.acquisition import penalised
from mctsvs.gp.model import LARGEST_FIT, Model, ModelSettings, Refit, nearest
from mctsvs.gp.optimize_acqf import climb, quasi_random
from mctsvs.gp.posterior import Posterior, SamplePaths
from mctsvs.gp.priors import PRIORS
from mctsvs.gp.trust_region import SHORTEST, TrustRegion
from mctsvs.methods.solvers import Subspace
from mctsvs.space.region_slice import RegionSlice
from mctsvs.utils.options import Options, option
from mctsvs.utils.state import Saved
from mctsvs.utils.validation import Array, Indices

LOCAL_POINTS = 200  # most points of a region's model, or twice the coordinates if that is more
GAIN = 1e-3  # of the spread of the values: less is no success
MOVED = 20.0  # coordinates a candidate moves, on average
PUBLISHED = ModelSettings(
    prior="intervals", refit=Refit(1.0), winsorise=False, iterations=50, constant_mean=True, thorough=True
)
CANDIDATES_PER_COORDINATE = 100  # candidates for each coordinate, at most, in the published program
HALVINGS = 8  # of the way from the centre to a candidate that is not allowed

Inside = Callable[[Array], npt.NDArray[np.bool_]]
"""(m, d) points -> (m,) which of them may be proposed."""


@dataclass(frozen=True)
class RegionOptions(Options):
    """batch           points drawn at once from one model
    start_points    of a region that starts anew; the first one takes over what was evaluated before
    candidates      points among which each draw chooses
    successes       in a row, to double
    patience        evaluations without success, to halve; 0: as many as there are coordinates
    climb           steps uphill on the drawn function from the best candidate; 0 for the TuRBO paper's plain choice
    prior, fit_points, fit_iterations   of the model: see `mctsvs.gp.model`
    published       the TuRBO paper's choices where ours differ: parameters by likelihood alone within its bounds,
                    fitted anew for every batch to all points of the region as they are; draws with the noise in them;
                    at most 100 candidates for each coordinate; a gain of a thousandth of the best value is a success
    """

    batch: int = 4
    start_points: int = 12
    candidates: int = 2000
    successes: int = 3
    patience: int = option(0, least=0)
    climb: int = option(15, least=0)
    prior: str = option("subspace", among=PRIORS)
    fit_points: int = 400
    fit_iterations: int = 10
    published: bool = False

    def model(self) -> ModelSettings:
        if self.published:
            return PUBLISHED
        return ModelSettings(prior=self.prior, fit_points=self.fit_points, iterations=self.fit_iterations)


@dataclass(frozen=True)
class TuRBOOptions(RegionOptions):
    """regions         m, the number of trust regions (TuRBO-m)"""

    regions: int = 1


def perturbed(centre: Array, low: Array, high: Array, size: int, rng: np.random.Generator) -> Array:
    """(size, d) quasi-random points in the box, each of which moves a random few coordinates of the centre."""
    d = len(centre)
    moved = rng.random((size, d)) < min(1.0, MOVED / d)
    moved[np.arange(size), rng.integers(0, d, size)] = True
    return np.where(moved, low + (high - low) * quasi_random(size, d, rng), centre)


@dataclass
class Region(TrustRegion):
    """A trust region with the points that belong to it and their model."""

    best: float = -np.inf
    rows: Indices = field(default_factory=lambda: np.empty(0, dtype=np.intp))  # of the history
    design: list[Array] = field(default_factory=list)  # points of its start, still to be handed out
    model: Model = field(default_factory=Model)
    foreign: int = 0  # so many of the first rows teach the model only: the centre is one of the others

    def condition(self, subspace: Subspace, *, whole: bool = False) -> tuple[Posterior, Array, Array]:
        """The region's model, its centre, and the values the model was given.

        Of many points only the nearest to the centre enter, unless the `whole` region is to: values far away set a
        scale on which the differences near the optimum look like noise. Failures enter as bad values, to which no
        parameter is fitted.
        """
        X, y = subspace.X[self.rows], subspace.y[self.rows]
        centre = X[self.foreign + int(np.argmax(y[self.foreign :]))]
        most = LARGEST_FIT if whole else max(LOCAL_POINTS, 2 * subspace.dimension)
        if len(y) > most and self.model.theta is not None:
            near = nearest(X, centre, most, scale=np.exp(-self.model.theta[: len(centre)]))
            X, y = X[near], y[near]
            self.model.forget()
        posterior = self.model.update(X, y)
        failed = subspace.failures
        if len(failed) > most:
            failed = failed[nearest(failed, centre, most, scale=np.exp(-posterior.theta[: len(centre)]))]
        return posterior.with_fantasies(failed, float(posterior.y.min())), centre, y

    def learn(self, rows: Indices, y: Array, options: RegionOptions, d: int) -> None:
        """Take these rows of the history, grow or shrink by their values; y (n,) are all values."""
        if not len(rows):
            return
        values = y[rows]
        gain = GAIN * float(abs(self.best) if options.published else y.std())
        if np.isfinite(self.best) or not options.published:  # there a region's first points are no success
            self.resize(
                success=bool(values.max() > self.best + gain),
                patience=options.patience or max(4, d),
                needed=options.successes,
                evaluations=len(rows),
            )
        self.best = max(self.best, float(values.max()))
        self.rows = np.append(self.rows, rows)


@dataclass
class CandidatePool:
    """A region's candidates and the values of the drawn functions there, on the scale of the objective."""

    region: int
    centre: Array
    low: Array
    high: Array
    points: Array  # (candidates, d)
    paths: SamplePaths
    values: Array  # (draws, candidates)
    cut: RegionSlice | None = None  # what known constraints leave of the coordinates

    def take(self, draw: int, iterations: int, inside: Inside | None = None) -> Array:
        """The best candidate of a draw, moved uphill on the drawn function in the coordinates it moves already."""
        best = int(np.argmax(self.values[draw]))
        self.values[:, best] = -np.inf  # a candidate is taken once
        start: Array = self.points[best]
        if not iterations:
            return start
        still = start == self.centre
        low, high = np.where(still, start, self.low), np.where(still, start, self.high)
        top = climb(penalised(self.paths.path(draw), self.cut), start, low, high, iterations=iterations)[0]
        return top if inside is None or inside(top[None])[0] else start


class TuRBO(Saved):
    """Trust-region Bayesian optimisation.

    A point belongs to the region that proposed it, by its proposal id; points from elsewhere belong to the first.
    """

    options_type: ClassVar[type[TuRBOOptions]] = TuRBOOptions
    saved = ("coordinates", "regions", "seen", "region_of_proposal")
    coordinates: Indices | None
    regions: list[Region]
    seen: int  # rows of the history already given to a region
    region_of_proposal: dict[int, int]  # region of each proposal id proposed and not yet seen

    def __init__(self, options: TuRBOOptions) -> None:
        self.options = options
        self.coordinates, self.regions, self.seen, self.region_of_proposal = None, [], 0, {}
        self.inside: Inside | None = None  # where points may lie; None: anywhere

    @property
    def batch(self) -> int:
        return self.options.batch

    def propose(self, n: int, subspace: Subspace, rng: np.random.Generator) -> Array:
        if self.coordinates is None or not np.array_equal(self.coordinates, subspace.coordinates):
            self._begin(subspace, rng)
        self._learn(subspace, rng)
        chosen: list[tuple[int, Array]] = []  # with their region
        for i, region in enumerate(self.regions):
            while region.design and len(chosen) < n:
                chosen.append((i, region.design.pop()))
        if len(chosen) < n:
            chosen += self.draw(n - len(chosen), subspace, rng)
        self.region_of_proposal.update((subspace.next_proposal_id + k, i) for k, (i, _) in enumerate(chosen))
        return np.array([point for _, point in chosen])

    def _begin(self, subspace: Subspace, rng: np.random.Generator) -> None:
        """New coordinates: the first region starts from all that is known, the others from points of their own."""
        self._reset(subspace, [self._region() for _ in range(self.options.regions)])
        self.regions[0].rows = np.arange(self.seen)
        for i, region in enumerate(self.regions):
            if i > 0 or self.seen < 2:
                region.design = list(quasi_random(self.options.start_points, subspace.dimension, rng))
        if self.seen:
            self.regions[0].best = float(subspace.y.max())

    def begin(self, subspace: Subspace, design: Array) -> None:
        """One new region that knows nothing but what comes of these points."""
        self._reset(subspace, [self._region()])
        self.inside = None
        self.regions[0].design = list(design)

    def start(self, subspace: Subspace, rows: Indices, inside: Inside | None) -> None:
        """One new region around the best of these rows; the others, and the last model's fit, help its model."""
        region = self._region()
        if self.regions:
            region.model = self.regions[0].model
            region.model.forget()
        foreign = np.setdiff1d(np.arange(len(subspace.history)), rows)
        region.rows, region.foreign = np.concatenate([foreign, rows]), len(foreign)
        region.best = float(subspace.y[rows].max())
        self._reset(subspace, [region])
        self.inside = inside

    def _reset(self, subspace: Subspace, regions: list[Region]) -> None:
        """These regions alone, in these coordinates, from the next point on."""
        self.coordinates, self.regions = subspace.coordinates, regions
        self.seen, self.region_of_proposal = len(subspace.history), {}

    def _region(self) -> Region:
        return Region(model=Model(self.options.model()))

    def _learn(self, subspace: Subspace, rng: np.random.Generator) -> None:
        """Give each new point to the region that proposed it, and let the regions grow, shrink or start anew."""
        proposal_ids = subspace.history.proposal_ids[self.seen :]
        owner = np.array(
            [self.region_of_proposal.pop(int(proposal_id), 0) for proposal_id in proposal_ids], dtype=np.intp
        )
        for i, region in enumerate(self.regions):
            region.learn(self.seen + np.flatnonzero(owner == i), subspace.y, self.options, subspace.dimension)
            if region.length < SHORTEST:
                self.regions[i] = self._region()
                self.regions[i].design = list(self.fresh_design(subspace.dimension, rng))
        self.seen = len(subspace.history)

    def fresh_design(self, d: int, rng: np.random.Generator) -> Array:
        """Points for a region that starts anew, inside where any of many points are."""
        if self.inside is not None:
            points = quasi_random(self.options.candidates, d, rng)
            points = points[self.inside(points)][: self.options.start_points]
            if len(points):
                return points
        return quasi_random(self.options.start_points, d, rng)

    def draw(self, n: int, subspace: Subspace, rng: np.random.Generator) -> list[tuple[int, Array]]:
        """n points by Thompson sampling over the candidates of all regions, each with its region."""
        pools: list[CandidatePool] = []
        for i, region in enumerate(self.regions):
            if len(region.rows) < 2:
                continue
            posterior, centre, y = region.condition(subspace, whole=self.options.published)
            # categories are free everywhere: inside a small box no code could overtake the centre's own
            low, high = region.box(centre, posterior.theta[: len(centre)], free=subspace.categorical)
            points = self.candidates(low, high, centre, rng)
            points = points if subspace.cut is None else subspace.cut.inside(points)
            paths = posterior.sample_paths(n, rng)
            drawn = paths(points)
            if self.options.published:
                drawn += np.exp(posterior.theta[-1] / 2.0) * rng.standard_normal(drawn.shape)
            pools.append(CandidatePool(i, centre, low, high, points, paths, y.mean() + y.std() * drawn, subspace.cut))
        if not pools:
            return [(0, point) for point in quasi_random(n, subspace.dimension, rng)]
        chosen: list[tuple[int, Array]] = []
        for draw in range(n):
            pool = max(pools, key=lambda pool: float(pool.values[draw].max()))
            chosen.append((pool.region, pool.take(draw, self.options.climb, self.inside)))
        return chosen

    def candidates(self, low: Array, high: Array, centre: Array, rng: np.random.Generator) -> Array:
        """Candidates in the box, where points may lie."""
        size = self.options.candidates
        size = min(size, CANDIDATES_PER_COORDINATE * len(centre)) if self.options.published else size
        points = perturbed(centre, low, high, size, rng)
        return points if self.inside is None else self._allowed(points, centre)

    def _allowed(self, points: Array, centre: Array) -> Array:
        """The points that lie inside; where that leaves too few, others come ever nearer to the centre."""
        assert self.inside is not None
        inside = self.inside(points)
        found = [points[inside]]
        points = points[~inside]
        for _ in range(HALVINGS):
            if 4 * sum(map(len, found)) >= self.options.candidates or not len(points):
                break
            points = (points + centre) / 2.0
            inside = self.inside(points)
            found.append(points[inside])
            points = points[~inside]
        return np.concatenate(found) if any(map(len, found)) else points
