"""GTBO: group tests find the active variables, then Bayesian optimisation (Hellsten, Hvarfner, Papenmeier and Nardi).

"High-dimensional Bayesian Optimization with Group Testing", 2023, and "Leveraging Axis-Aligned Subspaces for
High-Dimensional Bayesian Optimization with Group Testing", 2025.

Tests: the default point is the centre. A test moves the variables of a group to an edge each, and the change of the
value tells whether one of them is active (`group_tests`). The first 3 sqrt(V) tests, of groups that share no variable,
say how large changes are: at most sqrt(V) variables are expected to be active, so two thirds of these groups show
noise alone, and the others the signal. Then each group is the one of largest mutual information, until every
variable is almost surely active or not.

Search: one Gaussian process of all variables, under priors of short lengthscales for the active ones and of long
lengthscales for the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from mctsvs.gp.acquisition import AcquisitionFunction, AcquisitionLike, log_expected_improvement
from mctsvs.gp.likelihood import Likelihood
from mctsvs.gp.model import KERNELS, Model, ModelSettings, Refit, fit, spread_by_rank
from mctsvs.gp.optimize_acqf import climb, maximise, propose_greedily
from mctsvs.gp.optimize_acqf_mixed import Ascent, Lattice, blocks_of, other_category
from mctsvs.gp.posterior import Posterior
from mctsvs.gp.priors import Prior
from mctsvs.methods.base import Engine, Observation, Pending, Proposal
from mctsvs.methods.rivals.gtbo_group_tests import Belief, Scale
from mctsvs.utils.options import Options, option
from mctsvs.utils.validation import Array, Indices

BINS = 3  # times sqrt(V), groups of the first tests
TESTED = 0.5  # of a known budget, may go into tests
DECIDED = 0.5  # probability from which a variable counts as active when the tests end
SETTINGS = ModelSettings(refit=Refit(1.1, after=50), fit_points=300, iterations=20)
MOST_NEIGHBOURS, MOST_STEPS = 256, 10  # changes of one category looked at in a step, and steps
REFINE = 10  # steps of the other coordinates once the categories are decided
SHORT, LONG = 0.0, 3.0  # mu of the lengthscales' LogNormal(mu, 1), of active variables and of the others


@dataclass(frozen=True)
class GTBOOptions(Options):
    """active_prior    q, the probability that a variable is active before anything is known
    particles       guesses that carry the belief
    most_tests      at most so many; of a known budget at most half
    inactive_below  probability below which a variable is taken for inactive
    active_above    probability above which it is taken for active; tests end when all are one or the other
    """

    active_prior: float = option(0.05, above=0.0, most=0.5)
    particles: int = option(2000, least=100)
    most_tests: int = option(300, least=1)
    inactive_below: float = option(5e-3, above=0.0, most=0.5)
    active_above: float = option(0.9, least=0.5, most=1.0)


def two_blocks(d: int, active: Indices) -> Prior:
    """Lengthscales ~ LogNormal(0, 1) of the active coordinates, LogNormal(3, 1) of the others.

    These are densities over lengthscales: in log space the mean is mu - 1.
    """
    mean = np.full(d, LONG - 1.0)
    mean[active] = SHORT - 1.0
    rows = [(mu, 1.0, np.log(0.02), 10.0) for mu in mean]
    outputscale, noise = (0.0, 1.0, -6.0, 3.0), (-5.0, 2.0, np.log(1e-6), 1.0)
    return Prior(*np.ascontiguousarray(np.array([*rows, outputscale, noise]).T))


@dataclass
class TwoBlockModel(Model):
    """A model of all coordinates that knows which are active."""

    saved: ClassVar[tuple[str, ...]] = ("active",)
    active: Indices = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    def _fit(self, X: Array, values: Array, known: Array | None = None) -> None:
        prior = two_blocks(X.shape[1], self.active)
        rows = spread_by_rank(values, self.settings.fit_points)
        known = None if known is None else known[rows]
        likelihood = Likelihood(KERNELS[self.settings.kernel], X[rows], values[rows], prior, known=known)
        start = prior.start if self.theta is None else self.theta
        self.theta = fit(likelihood, prior, start, self.pairs, iterations=self.settings.iterations)


def decide_categories(
    acqf: AcquisitionLike, point: Array, lattice: Lattice, known: Array, rng: np.random.Generator
) -> Array:
    """A point near `point` with every category decided, of large acquisition and none of the `known` (n, d).

    Ascent over changes of one category at a time; the other coordinates follow at the end. Left to rounding, the best
    point of the cube falls back on categories already tried, and the next climb ends at the same place.
    """
    ascent = Ascent(acqf, lattice, *lattice.box)
    x = lattice.round(point[None])[0]
    value = ascent.look(x[None])[0]
    for _ in range(MOST_STEPS):
        moves = lattice.moves(x)
        if len(moves) > MOST_NEIGHBOURS:
            moves = moves.among(rng.choice(len(moves), MOST_NEIGHBOURS, replace=False))
        near = moves.each(x)
        values = ascent.look(near)
        best = int(np.argmax(values))
        if values[best] <= value:
            break
        x, value = near[best], values[best]
    x, _ = ascent.best(known, rng)
    if len(lattice.codes) == len(x) or (known == x).all(axis=1).any():
        return x
    low, high = lattice.box[0].copy(), lattice.box[1].copy()
    low[lattice.codes] = high[lattice.codes] = x[lattice.codes]
    return climb(acqf, x, low, high, iterations=REFINE)[0]


class GTBO(Engine):
    """First tests, then one model."""

    options_type: ClassVar[type[GTBOOptions]] = GTBOOptions
    options: GTBOOptions
    saved = ("budget", "default", "level", "bins", "open", "answered", "failed", "scale", "belief", "model")
    budget: int | None = None
    default: Array  # the point that groups are moved from; as evaluated, once it is
    level: float | None = None  # its value
    bins: list[Indices]  # groups of the first tests, not yet handed out
    open: dict[int, Indices]  # the group by proposal id, of tests of this default; empty for the default itself
    answered: list[int]  # rows of the history that are tests of this default, in the order of their values
    failed: int = 0  # tests
    scale: Scale | None = None  # of changes, once there were tests enough
    belief: Belief
    model: TwoBlockModel | None = None  # once the tests have ended

    def __init__(self, offsets: Indices, rng: np.random.Generator, options: GTBOOptions) -> None:
        super().__init__(offsets, rng, options)
        self.categories = Lattice.of_categories(self.owner)
        seed = int(rng.integers(2**63))
        self.belief = Belief(len(offsets) - 1, options.active_prior, options.particles, seed)
        self._begin(np.full(self.dimension, 0.5))

    def _begin(self, default: Array) -> None:
        """Tests from this point on."""
        for block in self.categories.blocks:
            default[block] = np.eye(len(block))[self.rng.integers(len(block))]
        self.default, self.open, self.answered = default, {}, []
        self.bins = np.array_split(self.rng.permutation(self.everything), self.n_bins)

    @property
    def n_bins(self) -> int:
        V = len(self.everything)
        return int(min(V, BINS * int(np.sqrt(V))))

    def plan(self, budget: int) -> None:
        self.budget = budget

    @property
    def most_tests(self) -> int:
        most = self.options.most_tests
        return most if self.budget is None else min(most, max(1, int(TESTED * self.budget)))

    def propose(self, n: int, pending: Pending) -> list[Proposal]:
        proposals: list[Proposal] = []
        while len(proposals) < n and self.model is None:
            proposals.append(self._test())
        if self.model is not None:
            points = self._search(self.model, n, pending.X)
            proposals = [self.proposal(x, self.everything, 1, "step in all variables") for x in points]
        return proposals

    def _test(self) -> Proposal:
        """The default, if its value is neither known nor under way; otherwise a group of it moved."""
        if self.level is None and all(len(group) for group in self.open.values()):
            proposal = self.proposal(self.default.copy(), self.everything, purpose="first points")
            self.open[proposal.proposal_id] = self.everything[:0]
            return proposal
        group = self.bins.pop() if self.bins else self._informative()
        proposal = self.proposal(self._moved(group), group, purpose="testing a group")
        self.open[proposal.proposal_id] = group
        return proposal

    def _informative(self) -> Indices:
        """The group to test next, if possible of variables that no test under way moves."""
        busy = np.concatenate([self.everything[:0], *self.open.values()])
        for kept_out in (busy, busy[:0]):
            group = self.belief.next_group(kept_out, self.rng)
            if len(group):
                return group
        return self.rng.integers(0, len(self.everything), 1)

    def _moved(self, group: Indices) -> Array:
        """The default with each variable of the group at an edge of its range, or in another category."""
        coordinates = self.coordinates_of(group)
        x = self.default.copy()
        x[coordinates] = self.rng.integers(0, 2, len(coordinates))
        for block in blocks_of(self.owner, coordinates):
            category = coordinates[block]
            x[category] = other_category(self.default, category, self.rng)
        return x

    def observe(self, batch: Sequence[Observation]) -> None:
        for observation in batch:
            super().observe([observation])
            group = self.open.pop(observation.proposal_id, None)
            if group is None or self.model is not None:
                continue
            succeeded = bool(np.isfinite(observation.y))
            if len(group) == 0 and succeeded:
                self.default, self.level = np.array(observation.x), observation.y
            elif len(group) == 0:  # nothing can be compared with it
                self._begin(self.rng.random(self.dimension))
            elif succeeded:
                self.answered.append(len(self.history) - 1)
            self.failed += not succeeded
            self._learn()

    def _learn(self) -> None:
        """Take in the tests whose outcome is known, and end them when they have told enough."""
        o, tests = self.options, len(self.answered)
        over = tests + self.failed >= self.most_tests
        active = self.everything[:0]
        if self.level is not None and tests and (over or tests >= self.n_bins):
            self._take_in(self.history.y[self.answered] - self.level)
            p = self.belief.probability
            over = over or bool(((p <= o.inactive_below) | (p >= o.active_above)).all())
            active = np.flatnonzero(p >= DECIDED)
        if over:
            self.model = TwoBlockModel(SETTINGS, active=np.flatnonzero(np.isin(self.owner, active)))

    def _take_in(self, changes: Array) -> None:
        """Tests that the belief has not seen; before the first, how large changes are is told from those there are."""
        known = len(self.belief.groups)
        if self.scale is None:
            self.scale = Scale.of(changes)
            self.belief.expect(self.scale.noise / self.scale.signal)
        for row, change in zip(self.answered[known:], changes[known:], strict=True):
            moved = np.abs(self.history.X[row] - self.default) > 1e-9  # not an integer that was rounded back
            self.belief.add(np.unique(self.owner[moved]), self.scale.standard(change))

    def _search(self, model: TwoBlockModel, n: int, waiting: Array) -> Array:
        """(n, D) points of largest log EI over the best expected value among those evaluated."""
        history, rng = self.history, self.rng
        if len(history) < 2:
            return rng.random((n, self.dimension))
        posterior = model.update(history.X, history.y, history.noise)
        expected, _ = posterior.predict(posterior.X)
        worst, acquisition = float(posterior.y.min()), log_expected_improvement(float(expected.max()))
        incumbents = posterior.X[np.argsort(-expected, kind="stable")[:3]]
        avoided = np.concatenate([waiting, *(x[None] for x in history.failures)])

        def find(posterior: Posterior, chosen: list[Array]) -> Array:
            acqf = AcquisitionFunction(posterior, acquisition)
            point = maximise(acqf, incumbents, rng, starts=3, iterations=40)
            if self.categories.blocks:
                known = np.concatenate([history.X, avoided, *(x[None] for x in chosen)])
                point = decide_categories(acqf, point, self.categories, known, rng)
            return point

        return propose_greedily(n, posterior.with_fantasies(avoided, worst), worst, find)

    def describe(self) -> str:
        if self.model is not None:
            active = int((self.belief.probability >= DECIDED).sum())
            return f"optimising all variables: {active} of {len(self.everything)} taken for active"
        return f"testing groups: {len(self.answered)} of at most {self.most_tests} tests"

    def found(self) -> Indices | None:
        """The variables taken for active, once tests have told something."""
        return np.flatnonzero(self.belief.probability >= DECIDED) if self.belief.groups else None
