"""ALEBO: a linear embedding modelled as one (Letham, Calandra, Rai and Bakshy, NeurIPS 2020).

Notation: B (d, D) projects the cube [-1, 1]^D down; its columns are drawn uniformly from the unit sphere. The
embedding is x = B^+ y, kept inside the cube by the linear constraints |B^+ y| <= 1 instead of clipping. With the
QR decomposition B' = Q R every such point is x = Q w, and here v = w times the longest row of Q: the same subspace
and the same polytope in coordinates that have length one to the nearest face. The Mahalanobis kernel is as general
in v as in y, since a linear change of coordinates only changes its matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from mctsvs.common import Array, Indices
from mctsvs.engines.embedding import EmbeddingEngine, EmbeddingOptions
from mctsvs.engines.polytope import Polytope
from mctsvs.gp import mahalanobis
from mctsvs.gp.acquisition import log_expected_improvement
from mctsvs.gp.ensemble import Ensemble, MomentSurface
from mctsvs.gp.likelihood import Likelihood
from mctsvs.gp.model import Refit, spread_by_rank
from mctsvs.gp.posterior import Posterior
from mctsvs.gp.propose import propose_greedily
from mctsvs.gp.values import standardise
from mctsvs.options import option

WALKERS = 256  # hit-and-run chains that supply starting points
LARGEST_TABLE = 4_000_000  # entries of (walkers, D); fewer walkers in very many dimensions
FIT_POINTS = 300
MODEL_POINTS = 1500  # the best of a longer history; the cost grows with their cube, times the samples
REFIT = Refit(1.1)


@dataclass(frozen=True)
class ALEBOOptions(EmbeddingOptions):
    """samples         draws of the kernel's matrix, whose predictions are averaged by their moments
    starts          points the acquisition function (log EI) is climbed from
    """

    samples: int = option(10, least=1)
    starts: int = option(3, least=1)


@dataclass(frozen=True)
class LinearEmbedding:
    """The subspace spanned by the columns of Q (D, d), in coordinates of length one to the nearest face."""

    Q: Array

    @staticmethod
    def drawn(D: int, d: int, rng: np.random.Generator) -> LinearEmbedding:
        columns = rng.standard_normal((D, d))
        columns /= np.linalg.norm(columns, axis=1)[:, None]
        return LinearEmbedding(np.linalg.qr(columns)[0])

    @cached_property
    def unit(self) -> float:
        """The longest row of Q."""
        return float(np.sqrt(np.einsum("ij,ij->i", self.Q, self.Q).max()))

    @cached_property
    def polytope(self) -> Polytope:
        return Polytope(self.Q / self.unit)


class ALEBO(EmbeddingEngine):
    """Bayesian optimisation in a polytope with sampled Mahalanobis kernels."""

    options_type: ClassVar[type[ALEBOOptions]] = ALEBOOptions
    saved = ("embedding", "walkers", "most_probable", "thetas", "fitted")
    options: ALEBOOptions
    embedding: LinearEmbedding
    walkers: Array  # uniform points of the polytope
    most_probable: Array | None  # parameters of the last fit
    thetas: Array  # samples around them
    fitted: int

    def __init__(self, offsets: Indices, rng: np.random.Generator, options: ALEBOOptions) -> None:
        D = int(offsets[-1])
        d = options.size(D)
        super().__init__(offsets, rng, options, d)
        self.embedding = LinearEmbedding.drawn(D, d, rng)
        chains = max(8, min(WALKERS, LARGEST_TABLE // D))
        self.walkers = self.polytope.walk(np.zeros((chains, d)), 20 + 5 * d, rng)
        self.begin(self.polytope.walk(np.zeros((options.initial_points, d)), 20 + 5 * d, rng))
        self.most_probable, self.thetas, self.fitted = None, np.empty((0, 0)), 0

    @property
    def polytope(self) -> Polytope:
        return self.embedding.polytope

    def up(self, U: Array) -> Array:
        return 0.5 + 0.5 * (U @ self.polytope.G.T)

    def down(self, x: Array) -> Array:
        return np.asarray(self.embedding.unit * (self.embedding.Q.T @ (2.0 * x - 1.0)))

    def search(self, n: int, waiting: Array) -> Array:
        self.walkers = self.polytope.walk(self.walkers, 5, self.rng)
        if len(self.low) < 2:
            return self.polytope.walk(np.zeros((n, self.low.X.shape[1])), 50, self.rng)
        rows = np.sort(self.low.best(MODEL_POINTS))
        X, values = self.low.X[rows], standardise(self.low.y[rows])
        if REFIT.due(len(self.low), self.fitted):
            self._fit(X, values)
        kernel, count = mahalanobis.Mahalanobis(), len(self.thetas)
        members = tuple(Posterior.of(kernel, theta, X, values) for theta in self.thetas)
        ensemble = Ensemble(members, np.full(count, 1.0 / count), np.zeros(count))
        lie, acquisition = float(values.min()), log_expected_improvement(float(values.max()))
        incumbents = self.polytope.inside(self.low.X[self.low.best(3)])

        def find(ensemble: Ensemble, chosen: list[Array]) -> Array:
            return self._maximise(MomentSurface(ensemble, acquisition), incumbents)

        return propose_greedily(n, ensemble.with_lies(self.avoided(waiting), lie), lie, find)

    def _maximise(self, surface: MomentSurface, incumbents: Array) -> Array:
        around = self.polytope.around(incumbents, len(self.walkers), self.rng)
        candidates = np.concatenate([self.walkers, around])
        values = surface(candidates)
        order = np.argsort(-values, kind="stable")[: self.options.starts]
        best, best_value = candidates[order[0]], float(values[order[0]])
        for start in candidates[order]:
            point, value = self.polytope.climb(surface, start)
            if value > best_value:
                best, best_value = point, value
        return np.asarray(best)

    def _fit(self, X: Array, values: Array) -> None:
        """Most probable parameters from the last ones, a sphere and a random matrix; then samples around them."""
        d = X.shape[1]
        prior = mahalanobis.prior(d)
        rows = spread_by_rank(values, FIT_POINTS)
        likelihood = Likelihood(mahalanobis.Mahalanobis(), X[rows], values[rows], prior)
        sphere, drawn = prior.start.copy(), prior.start.copy()
        p = len(sphere) - 2
        sphere[:p] = np.eye(d)[np.triu_indices(d)]
        drawn[:p] = 0.7 * self.rng.standard_normal(p)
        starts = [sphere, drawn] if self.most_probable is None else [self.most_probable, sphere, drawn]
        self.most_probable = mahalanobis.most_probable(likelihood, prior, starts, iterations=40)
        self.thetas = mahalanobis.laplace(likelihood, prior, self.most_probable, self.options.samples, self.rng)
        self.fitted = len(self.low)
