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
from typing import ClassVar

import numpy as np

from mctsvs.common import Array, Indices, InputError, State
from mctsvs.engines import Observation
from mctsvs.engines.base import latin_hypercube
from mctsvs.engines.embedding import EmbeddingEngine, whole_number
from mctsvs.engines.sketch import Sketch
from mctsvs.gp.acquisition import Surface, log_expected_improvement
from mctsvs.gp.model import Model
from mctsvs.gp.posterior import Posterior
from mctsvs.gp.search import SurfaceLike, maximise
from mctsvs.history import History

ACQUISITIONS = ("log-ei", "thompson")
FIRST_LENGTH, SHORTEST, LONGEST = 0.8, 2.0**-7, 1.6
SUCCESSES = 3  # in a row, before the region doubles
GAIN = 1e-5  # times the spread of the values: the least that counts as success


def splits_and_start(D: int, new_bins: int) -> tuple[int, int]:
    """k and d_0 of the module's docstring."""
    k = round(math.log(D, new_bins + 1))
    reached = (1 + np.arange(new_bins)) * (new_bins + 1) ** k
    return k, min(D, 1 + int(np.argmin(np.abs(reached - D))))


class BAxUS(EmbeddingEngine):
    """Trust-region search in nested sparse embeddings of growing dimension.

    budget            evaluations the schedule of splits is made for; going on beyond them is fine
    target_dimension  d_0; default: the paper's rule
    new_bins          b, bins added for each one that is split
    initial_points    Latin hypercube before the model takes over
    acquisition       "log-ei" or "thompson" (the paper's), both climbed inside the trust region
    """

    options: ClassVar[tuple[str, ...]] = ("budget", "target_dimension", "new_bins", "initial_points", "acquisition")

    def __init__(
        self,
        offsets: Indices,
        rng: np.random.Generator,
        *,
        budget: int = 600,
        target_dimension: int | None = None,
        new_bins: int = 3,
        initial_points: int = 10,
        acquisition: str = "log-ei",
    ) -> None:
        D = int(offsets[-1])
        self.budget, self.new_bins = whole_number("budget", budget, 1), whole_number("new_bins", new_bins, 1)
        if acquisition not in ACQUISITIONS:
            raise InputError(f"unknown acquisition {acquisition!r}: use one of {', '.join(ACQUISITIONS)}")
        self.acquisition = acquisition
        self.splits, self.start = splits_and_start(D, self.new_bins)
        if target_dimension is not None:
            self.start = whole_number("target_dimension", target_dimension, 1, D)
            self.splits = max(0, round(math.log(D / self.start, self.new_bins + 1)))
        super().__init__(offsets, rng, self.start, initial_points)
        self.sketch = Sketch.balanced(D, self.start, rng)
        self.design = latin_hypercube(self.initial_points, self.start, rng)
        self.first = 0  # observations before this one belong to a search that ended
        self._new_region()

    def _new_region(self) -> None:
        self.length, self.successes, self.failures = FIRST_LENGTH, 0, 0
        self.model = self._model()

    def _model(self) -> Model:
        # most bins do nothing: the wide prior lets the few that matter stand out, also while d is small
        return Model(prior="dimension-scaled", refit_growth=1.05)

    def up(self, U: Array) -> Array:
        return self.sketch.up(U)

    def down(self, x: Array) -> Array:
        return self.sketch.down(x)

    @property
    def patience(self) -> int:
        """Failures in a row before the region halves."""
        b, d = self.new_bins, self.sketch.d
        if d >= self.dimension:
            return d
        share: int = round(b * self.budget * d / (self.start * ((b + 1) ** (self.splits + 1) - 1)))
        halvings = math.floor(math.log(SHORTEST / FIRST_LENGTH, 0.5))
        return min(d, max(1, share // halvings))

    def search(self, n: int, waiting: Array) -> Array:
        X, y = self.low.X[self.first :], self.low.y[self.first :]
        d = self.sketch.d
        if len(y) < 2:
            return self.rng.random((n, d))
        posterior = self.model.update(X, y)
        lie, best = float(posterior.y.min()), float(posterior.y.max())
        low, high = self._box(posterior, X[int(np.argmax(y))])
        ranked = X[np.argsort(-y, kind="stable")[:3]]
        posterior = _with_lies(posterior, self.avoided(waiting), lie)
        incumbents = np.clip((ranked - low) / (high - low), 0.0, 1.0)
        chosen: list[Array] = []
        for _ in range(n):
            surface: SurfaceLike
            if self.acquisition == "thompson":
                surface = posterior.sample_path(self.rng)
            else:
                surface = Surface(posterior, log_expected_improvement(best))
            inside = maximise(_Rescaled(surface, low, high - low), incumbents, self.rng)
            chosen.append(low + (high - low) * inside)
            if len(chosen) < n:
                posterior = _with_lies(posterior, chosen[-1][None], lie)
        return np.array(chosen)

    def _box(self, posterior: Posterior, centre: Array) -> tuple[Array, Array]:
        """The trust region: volume L^d, its sides in the proportion of the lengthscales."""
        logs = posterior.theta[: len(centre)]
        sides = self.length * np.exp(np.clip(logs - logs.mean(), -3.0, 3.0))
        low, high = np.maximum(centre - sides / 2.0, 0.0), np.minimum(centre + sides / 2.0, 1.0)
        return low, np.maximum(high, low + 1e-9)

    def absorb(self, batch: Sequence[Observation]) -> None:
        for observation in batch:
            known = self.low.y[self.first :]
            judged = observation.proposed and len(known) >= self.initial_points and np.isfinite(observation.y)
            better = judged and observation.y > known.max() + GAIN * known.std()
            super().absorb([observation])
            if judged:
                self._learn(better)

    def _learn(self, better: bool) -> None:
        """Grow, shrink, or split after one more evaluation; design points are not judged."""
        self.successes, self.failures = (self.successes + 1, 0) if better else (0, self.failures + 1)
        if self.successes >= SUCCESSES:
            self.length, self.successes = min(2.0 * self.length, LONGEST), 0
        elif self.failures >= self.patience:
            self.length, self.failures = self.length / 2.0, 0
        if self.length < SHORTEST:
            self._split()

    def _split(self) -> None:
        if self.sketch.d < self.dimension:
            self.sketch = self.sketch.split(self.new_bins + 1, self.rng)
            self._carry_over()
        else:  # nothing left to split: a fresh search of all dimensions
            self.first = len(self.low)
            self.design = latin_hypercube(self.initial_points, self.sketch.d, self.rng)
        self._new_region()

    def _carry_over(self) -> None:
        """All observations in the new bins; points of the design not handed out yet are in the old ones."""
        low = History(self.sketch.d)
        for x, y in zip(self.history.X, self.history.y, strict=True):
            low.add(self.sketch.down(x), float(y))
        low.failures = [self.sketch.down(x) for x in self.history.failures]
        self.low = low
        self.design = np.empty((0, self.sketch.d))

    def state(self) -> State:
        return {
            **super().state(),
            "sketch": self.sketch.state(),
            "region": [self.length, self.successes, self.failures, self.first],
            "model": self.model.state(),
        }

    def restore(self, state: State) -> None:
        super().restore(state)
        self.sketch = Sketch.restore(state["sketch"])
        self.length, self.successes, self.failures, self.first = state["region"]
        self.model = self._model()
        self.model.restore(state["model"], self.low.X[self.first :], self.low.y[self.first :])


class _Rescaled:
    """A surface on the box as a surface on the unit cube."""

    def __init__(self, surface: SurfaceLike, low: Array, sides: Array) -> None:
        self.surface, self.low, self.sides = surface, low, sides

    def __call__(self, Z: Array) -> Array:
        return self.surface(self.low + self.sides * Z)

    def value_and_gradient(self, Z: Array) -> tuple[Array, Array]:
        value, gradient = self.surface.value_and_gradient(self.low + self.sides * Z)
        return value, gradient * self.sides


def _with_lies(posterior: Posterior, points: Array, lie: float) -> Posterior:
    return posterior.extended(points, np.append(posterior.y, np.full(len(points), lie)))
