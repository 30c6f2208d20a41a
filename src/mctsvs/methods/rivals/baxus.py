"""BAxUS: a sparse embedding that grows (Papenmeier, Nardi and Poloczek, NeurIPS 2022).

Notation: D coordinates of the unit cube, d target dimensions (bins of coordinates that move together), m evaluations
to spend, b new bins for each bin that is split, L the side of the trust region in the unit cube of the bins.

The search starts in very few dimensions. Whenever the trust region has shrunk to nothing, every bin is split into
b + 1; observations stay exact, since coordinates that moved together have a value in each of the new bins. The
evaluations to spend decide how soon a region may give up, so that the last split comes early enough:

    splits k = round(log_(b+1) D),       d_0 in 1..b that brings d_0 (b+1)^k nearest to D,
    budget of dimension d:    m_d = round(b m d / (d_0 ((b+1)^(k+1) - 1))),
    failures before L halves: min(d, max(1, floor(m_d / kappa))),  kappa = floor(log_(1/2)(L_min / L_0)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mctsvs.gp.acquisition import AcquisitionFunction, AcquisitionLike, log_expected_improvement
from mctsvs.gp.model import Model, ModelSettings, Refit
from mctsvs.gp.optimize_acqf import maximise, propose_greedily
from mctsvs.gp.posterior import Posterior
from mctsvs.gp.trust_region import FIRST_LENGTH, SHORTEST, TrustRegion
from mctsvs.methods.base import Observation, latin_hypercube
from mctsvs.methods.history import History
from mctsvs.methods.initial_design import InitialDesignOptions
from mctsvs.methods.rivals.hesbo_rembo import Sketch, SketchEngine
from mctsvs.utils.options import option
from mctsvs.utils.validation import Array, Indices, check_count

UNPLANNED = 600  # evaluations the splits are made for where nobody has said how many there will be
GAIN = 1e-5  # times the spread of the values: the least that counts as success
# most bins do nothing: the wide prior lets the few that matter stand out, also while d is small
SETTINGS = ModelSettings(prior="dimension-scaled", refit=Refit(1.05, after=50))


@dataclass(frozen=True)
class BAxUSOptions(InitialDesignOptions):
    """target_dimension  d_0; default: the paper's rule
    new_bins          b, bins added for each one that is split
    initial_points    Latin hypercube before the model takes over
    acquisition       "log-ei" or "thompson" (the paper's), both climbed inside the trust region
    """

    target_dimension: int | None = option(None, least=1)
    new_bins: int = option(3, least=1)
    acquisition: str = option("log-ei", among=("log-ei", "thompson"))


@dataclass(frozen=True)
class Schedule:
    """The numbers of the module's docstring: D, b, d_0 and k."""

    D: int
    new_bins: int
    start: int
    splits: int

    @staticmethod
    def of(D: int, new_bins: int, start: int | None = None) -> Schedule:
        if start is not None:
            return Schedule(D, new_bins, start, max(0, round(math.log(D / start, new_bins + 1))))
        splits = round(math.log(D, new_bins + 1))
        reached = (1 + np.arange(new_bins)) * (new_bins + 1) ** splits
        return Schedule(D, new_bins, min(D, 1 + int(np.argmin(np.abs(reached - D)))), splits)

    def patience(self, d: int, budget: int) -> int:
        """Failures in a row before the region halves."""
        if d >= self.D:
            return d
        b = self.new_bins
        share: int = round(b * budget * d / (self.start * ((b + 1) ** (self.splits + 1) - 1)))
        halvings = math.floor(math.log(SHORTEST / FIRST_LENGTH, 0.5))
        return min(d, max(1, share // halvings))


class BAxUS(SketchEngine):
    """Trust-region search in nested sparse embeddings of growing dimension; going on beyond the plan is fine."""

    options_type: ClassVar[type[BAxUSOptions]] = BAxUSOptions
    saved = ("trust_region", "model", "first", "budget")
    options: BAxUSOptions
    trust_region: TrustRegion
    model: Model
    first: int  # observations before this one belong to a search that ended
    budget: int

    def __init__(self, offsets: Indices, rng: np.random.Generator, options: BAxUSOptions) -> None:
        D, d = int(offsets[-1]), options.target_dimension
        start = None if d is None else check_count("target_dimension", d, most=D)
        self.schedule = Schedule.of(D, options.new_bins, start)
        super().__init__(offsets, rng, options, self.schedule.start)
        self.sketch = Sketch.balanced(D, self.schedule.start, rng)
        self.begin(latin_hypercube(options.initial_points, self.sketch.d, rng))
        self.trust_region, self.model, self.first, self.budget = TrustRegion(), Model(SETTINGS), 0, UNPLANNED

    def plan(self, budget: int) -> None:
        self.budget = budget

    @property
    def patience(self) -> int:
        return self.schedule.patience(self.sketch.d, self.budget)

    def search(self, n: int, waiting: Array) -> Array:
        X, y = self.low.X[self.first :], self.low.y[self.first :]
        if len(y) < 2:
            return self.rng.random((n, self.sketch.d))
        posterior = self.model.update(X, y)
        worst, acquisition = float(posterior.y.min()), log_expected_improvement(float(posterior.y.max()))
        low, high = self.trust_region.box(X[int(np.argmax(y))], posterior.theta[: self.sketch.d])
        sides = np.maximum(high, low + 1e-9) - low
        incumbents = np.clip((X[np.argsort(-y, kind="stable")[:3]] - low) / sides, 0.0, 1.0)

        def find(posterior: Posterior, chosen: list[Array]) -> Array:
            acqf: AcquisitionLike = AcquisitionFunction(posterior, acquisition)
            if self.options.acquisition == "thompson":
                acqf = posterior.sample_path(self.rng)
            return low + sides * maximise(_Rescaled(acqf, low, sides), incumbents, self.rng)

        return propose_greedily(n, posterior.with_fantasies(self.avoided(waiting), worst), worst, find)

    def observe(self, batch: Sequence[Observation]) -> None:
        for observation in batch:
            known = self.low.y[self.first :]
            judged = len(known) >= self.options.initial_points and np.isfinite(observation.y)
            better = judged and observation.y > known.max() + GAIN * known.std()
            super().observe([observation])
            if judged and not observation.external:
                self.trust_region.resize(success=bool(better), patience=self.patience)
                if self.trust_region.length < SHORTEST:
                    self._split()

    def _split(self) -> None:
        if self.sketch.d < self.dimension:
            self.sketch = self.sketch.split(self.options.new_bins + 1, self.rng)
            self._carry_over()
        else:  # nothing left to split: a fresh search of all dimensions
            self.first = len(self.low)
            self.begin(latin_hypercube(self.options.initial_points, self.sketch.d, self.rng))
        self.trust_region, self.model = TrustRegion(), Model(SETTINGS)

    def _carry_over(self) -> None:
        """All observations in the new bins; points of the design not handed out yet are in the old ones."""
        history, self.low = self.history, History(self.sketch.d)
        for x, y, proposal_id in zip(history.X, history.y, history.proposal_ids, strict=True):
            self.low.add(self.sketch.down(x), float(y), int(proposal_id))
        self.low.failures = [self.sketch.down(x) for x in history.failures]
        self.design = np.empty((0, self.sketch.d))


class _Rescaled:
    """An acquisition function on the box as an acquisition function on the unit cube."""

    def __init__(self, acqf: AcquisitionLike, low: Array, sides: Array) -> None:
        self.acqf, self.low, self.sides = acqf, low, sides

    def __call__(self, Z: Array) -> Array:
        return self.acqf(self.low + self.sides * Z)

    def value_and_gradient(self, Z: Array) -> tuple[Array, Array]:
        value, gradient = self.acqf.value_and_gradient(self.low + self.sides * Z)
        return value, gradient * self.sides
