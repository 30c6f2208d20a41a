"""ALEBO: a linear embedding modelled as one (Letham, Calandra, Rai and Bakshy, NeurIPS 2020).

Notation: B (d, D) projects the cube [-1, 1]^D down; its columns are drawn uniformly from the unit sphere. The
embedding is x = B^+ y, kept inside the cube by the linear constraints |B^+ y| <= 1 instead of clipping. With the
QR decomposition B' = Q R every such point is x = Q w, and here v = w times the longest row of Q: the same subspace
and the same polytope in coordinates that have length one to the nearest face. The Mahalanobis kernel is as general
in v as in y, since a linear change of coordinates only changes its matrix.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from mctsvs.common import Array, Indices, State
from mctsvs.engines.embedding import EmbeddingEngine, whole_number
from mctsvs.engines.polytope import Polytope
from mctsvs.gp import mahalanobis
from mctsvs.gp.acquisition import log_expected_improvement
from mctsvs.gp.ensemble import Ensemble, MomentSurface
from mctsvs.gp.likelihood import Likelihood
from mctsvs.gp.model import spread_by_rank
from mctsvs.gp.posterior import Posterior
from mctsvs.gp.values import standardise

WALKERS = 256  # hit-and-run chains that supply starting points
LARGEST_TABLE = 4_000_000  # entries of (walkers, D); fewer walkers in very many dimensions
FIT_POINTS = 300
MODEL_POINTS = 1500  # the best of a longer history; the cost grows with their cube, times the samples


class ALEBO(EmbeddingEngine):
    """Bayesian optimisation in a polytope with sampled Mahalanobis kernels.

    d               dimensions of the embedding; default 10, or D where D is smaller
    initial_points  uniform points of the polytope before the model takes over
    samples         draws of the kernel's matrix, whose predictions are averaged by their moments
    starts          points the acquisition function (log EI) is climbed from
    """

    options: ClassVar[tuple[str, ...]] = ("d", "initial_points", "samples", "starts")

    def __init__(
        self,
        offsets: Indices,
        rng: np.random.Generator,
        *,
        d: int | None = None,
        initial_points: int = 10,
        samples: int = 10,
        starts: int = 3,
    ) -> None:
        D = int(offsets[-1])
        size = min(10, D) if d is None else whole_number("d", d, 1, D)
        super().__init__(offsets, rng, size, initial_points)
        self.samples, self.starts = whole_number("samples", samples, 1), whole_number("starts", starts, 1)
        columns = rng.standard_normal((D, size))
        columns /= np.linalg.norm(columns, axis=1)[:, None]
        self._embed(np.linalg.qr(columns)[0])
        chains = max(8, min(WALKERS, LARGEST_TABLE // D))
        self.walkers = self.polytope.walk(np.zeros((chains, size)), 20 + 5 * size, rng)
        self.design = self.polytope.walk(np.zeros((self.initial_points, size)), 20 + 5 * size, rng)
        self.most_probable: Array | None = None  # parameters of the last fit
        self.thetas = np.empty((0, 0))  # samples around them
        self.fitted = 0

    def _embed(self, Q: Array) -> None:
        self.Q, self.unit = Q, float(np.sqrt(np.einsum("ij,ij->i", Q, Q).max()))
        self.polytope = Polytope(Q / self.unit)

    def up(self, U: Array) -> Array:
        return 0.5 + 0.5 * (U @ self.polytope.G.T)

    def down(self, x: Array) -> Array:
        return np.asarray(self.unit * (self.Q.T @ (2.0 * x - 1.0)))

    def search(self, n: int, waiting: Array) -> Array:
        self.walkers = self.polytope.walk(self.walkers, 5, self.rng)
        if len(self.low) < 2:
            return self.polytope.walk(np.zeros((n, self.low.X.shape[1])), 50, self.rng)
        best_rows = np.sort(self.low.best(MODEL_POINTS))
        X, values = self.low.X[best_rows], standardise(self.low.y[best_rows])
        if len(self.low) >= max(self.fitted + 1, 1.1 * self.fitted - 1e-9):
            self._fit(X, values)
        kernel, count = mahalanobis.Mahalanobis(), len(self.thetas)
        members = tuple(Posterior.of(kernel, theta, X, values) for theta in self.thetas)
        ensemble = Ensemble(members, np.full(count, 1.0 / count), np.zeros(count))
        lie, best = float(values.min()), float(values.max())
        ensemble = ensemble.with_lies(self.avoided(waiting), lie)
        incumbents = self.polytope.inside(self.low.X[self.low.best(3)])
        chosen: list[Array] = []
        for _ in range(n):
            chosen.append(self._maximise(MomentSurface(ensemble, log_expected_improvement(best)), incumbents))
            if len(chosen) < n:
                ensemble = ensemble.with_lies(chosen[-1][None], lie)
        return np.array(chosen)

    def _maximise(self, surface: MomentSurface, incumbents: Array) -> Array:
        around = self.polytope.around(incumbents, len(self.walkers), self.rng)
        candidates = np.concatenate([self.walkers, around])
        values = surface(candidates)
        order = np.argsort(-values, kind="stable")[: self.starts]
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
        self.thetas = mahalanobis.laplace(likelihood, prior, self.most_probable, self.samples, self.rng)
        self.fitted = len(self.low)

    def state(self) -> State:
        model: dict[str, Any] = {
            "most_probable": None if self.most_probable is None else self.most_probable.copy(),
            "thetas": self.thetas.copy(),
            "fitted": self.fitted,
        }
        return {**super().state(), "basis": self.Q.copy(), "walkers": self.walkers.copy(), "model": model}

    def restore(self, state: State) -> None:
        super().restore(state)
        self._embed(np.ascontiguousarray(state["basis"]))
        self.walkers = np.asarray(state["walkers"])
        model = state["model"]
        self.most_probable, self.thetas, self.fitted = model["most_probable"], model["thetas"], model["fitted"]
