"""ALEBO: a linear embedding modelled as one (Letham, Calandra, Rai and Bakshy, NeurIPS 2020).

Notation: B (d, D) projects the cube [-1, 1]^D down; its columns are drawn uniformly from the unit sphere. The
embedding is x = B^+ y, kept inside the cube by the linear constraints |B^+ y| <= 1 instead of clipping. With the
QR decomposition B' = Q R every such point is x = Q w, and here v = w times the longest row of Q: the same subspace
and the same polytope {v : |G v| <= 1} in coordinates that have length one to the nearest face. The polytope is
symmetric about 0. The Mahalanobis kernel is as general in v as in y: a linear change of coordinates only changes its
matrix. Points are rows.

The kernel (Sections 4.1 and 4.3):

    k(v, v') = s exp(-1/2 (v - v')' Gamma (v - v')),     Gamma = U'U,  U (d, d) upper triangular

A function that varies along the axes of the full space varies along oblique directions of a random embedding, so
the d lengthscales of an ARD kernel cannot describe it; the d (d + 1) / 2 entries of U can. They are too many to be
pinned down by the few points of a run: instead of one estimate, several samples of U are drawn from a normal
distribution around the most probable one, its covariance the inverse Hessian (Laplace's approximation).

theta = [U row by row, log s]; a model's parameters are theta followed by the log noise variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.optimize import nnls

from mctsvs.gp.acquisition import AcquisitionLike, log_expected_improvement
from mctsvs.gp.ensemble import Ensemble, MomentAcquisition
from mctsvs.gp.kernels import Cross, Features, Gram, JointCross
from mctsvs.gp.likelihood import FAILED, Likelihood
from mctsvs.gp.model import Refit, spread_by_rank
from mctsvs.gp.optimize_acqf import propose_greedily
from mctsvs.gp.posterior import Posterior
from mctsvs.gp.priors import Prior
from mctsvs.gp.quasi_newton import minimise
from mctsvs.gp.standardize import standardise
from mctsvs.methods.rivals.hesbo_rembo import EmbeddingEngine, EmbeddingOptions
from mctsvs.utils.options import option
from mctsvs.utils.validation import Array, Indices

TOUCHING = 1e-9  # a face nearer than this is touched
RADII = np.array([0.5, 0.2, 0.05, 0.01])
STEP = 1e-4  # of the differences of gradients that make the Hessian
WALKERS = 256  # hit-and-run chains that supply starting points
LARGEST_TABLE = 4_000_000  # entries of (walkers, D); fewer walkers in very many dimensions
FIT_POINTS = 300
MODEL_POINTS = 1500  # the best of a longer history; the cost grows with their cube, times the samples
REFIT = Refit(1.1)


@dataclass(frozen=True)
class Polytope:
    """{v : |G v| <= 1}."""

    G: Array  # (D, d)

    def reach(self, V: Array, directions: Array) -> tuple[Array, Array]:
        """(m,) smallest and largest t with v + t direction inside, for feasible v."""
        here, along = V @ self.G.T, directions @ self.G.T
        # |here + t along| <= 1; the divisor's floor turns a parallel face into one far away
        size = np.maximum(np.abs(along), 1e-300)
        toward = here * np.sign(along)
        ahead = ((1.0 - toward) / size).min(axis=1)
        behind = ((1.0 + toward) / size).min(axis=1)
        return -np.maximum(behind, 0.0), np.maximum(ahead, 0.0)

    def inside(self, V: Array) -> Array:
        """The points themselves, or drawn toward 0 until they are feasible."""
        return np.asarray(V / np.maximum(1.0, np.abs(V @ self.G.T).max(axis=1))[:, None])

    def walk(self, V: Array, steps: int, rng: np.random.Generator) -> Array:
        """Hit-and-run from every row of V: after many steps, uniform samples of the polytope."""
        for _ in range(steps):
            directions = rng.standard_normal(V.shape)
            low, high = self.reach(V, directions)
            V = self.inside(V + (low + (high - low) * rng.random(len(V)))[:, None] * directions)
        return V

    def around(self, centres: Array, size: int, rng: np.random.Generator) -> Array:
        """(size, d) normal steps of several radii from the centres, cut off at the faces."""
        base = centres[rng.integers(0, len(centres), size)]
        step = rng.standard_normal(base.shape) * rng.choice(RADII, size)[:, None]
        _, high = self.reach(base, step)
        return self.inside(base + np.minimum(high, 1.0)[:, None] * step)

    def tangent(self, v: Array, direction: Array) -> Array:
        """The nearest direction that leaves the polytope nowhere: `direction` projected on the tangent cone."""
        here = self.G @ v
        touched = np.abs(here) > 1.0 - TOUCHING
        if not touched.any():
            return direction
        normals = self.G[touched] * np.sign(here[touched])[:, None]
        if (normals @ direction <= 0.0).all():
            return direction
        push, _ = nnls(normals.T, direction)  # Moreau: what is left of the normal cone's share is the tangent part
        return np.asarray(direction - normals.T @ push)

    def climb(self, acqf: AcquisitionLike, start: Array, *, iterations: int = 30) -> tuple[Array, float]:
        """Ascent inside the polytope by projected BFGS steps, each shortened where it would hit a face.

        Of the 2 D constraints only those touched enter a step; scipy's SLSQP carries all of them through each step.
        """
        d = len(start)
        v, inverse = start, np.zeros((d, d))
        values, gradients = acqf.value_and_gradient(v[None])
        value, gradient = float(values[0]), gradients[0]
        for _ in range(iterations):
            step = self.tangent(v, inverse @ gradient)
            if float(step @ gradient) <= 1e-12:  # no curvature known yet, or it misleads: along the gradient
                inverse = np.eye(d) * (0.1 / max(float(np.linalg.norm(gradient)), 1e-12))
                step = self.tangent(v, inverse @ gradient)
                if float(step @ gradient) <= 1e-12:
                    break
            length = min(1.0, float(self.reach(v[None], step[None])[1][0]))
            while length > 1e-6:
                trial = self.inside((v + length * step)[None])
                values, gradients = acqf.value_and_gradient(trial)
                if values[0] >= value + 1e-4 * length * float(step @ gradient):
                    break
                length *= 0.3
            else:
                break
            moved, change = trial[0] - v, gradient - gradients[0]
            gain = float(values[0]) - value
            v, value, gradient = trial[0], float(values[0]), gradients[0]
            inverse = _bfgs(inverse, moved, change)
            if gain < 1e-4:
                break
        return v, value


def _bfgs(inverse: Array, moved: Array, change: Array) -> Array:
    """Inverse Hessian after a step; unchanged where the curvature along it has the wrong sign."""
    curvature = float(moved @ change)
    if curvature <= 1e-10 * float(np.linalg.norm(moved) * np.linalg.norm(change)):
        return inverse
    left = np.eye(len(moved)) - np.outer(moved, change) / curvature
    return np.asarray(left @ inverse @ left.T + np.outer(moved, moved) / curvature)


def triangle(theta: Array, d: int) -> Array:
    """U from the head of theta."""
    U = np.zeros((d, d))
    U[np.triu_indices(d)] = theta[: d * (d + 1) // 2]
    return U


class Mahalanobis:
    """k(v, v') = s exp(-1/2 |U (v - v')|^2): theta = [U row by row, log s]."""

    def size(self, d: int) -> int:
        return d * (d + 1) // 2 + 1

    def gram(self, X: Array) -> Gram:
        return MahalanobisGram(X)

    def cross(self, theta: Array, X: Array) -> Cross:
        return MahalanobisCross(theta, X)

    def features(self, theta: Array, d: int, size: int, rng: np.random.Generator) -> Features:
        frequencies = rng.standard_normal((size, d)) @ triangle(theta, d)
        phases = rng.uniform(0.0, 2.0 * np.pi, size)
        return frequencies, phases, np.full(size, np.sqrt(2.0 * np.exp(theta[-1]) / size))


class MahalanobisCross(JointCross):
    """The kernel to one data set, whose transformed points are kept between queries."""

    def __init__(self, theta: Array, X: Array) -> None:
        self.U, self.radial, self.scale = triangle(theta, X.shape[1]), "se", float(np.exp(theta[-1]))
        self.Xs = self.scaled(X)
        self.norms = np.einsum("ij,ij->i", self.Xs, self.Xs)

    def scaled(self, Z: Array) -> Array:
        return np.asarray(Z @ self.U.T)

    def pull_back(self, Z: Array, cache: Array, C: Array) -> Array:
        G = C * cache
        gradient: Array = (G @ self.Xs - G.sum(axis=1)[:, None] * self.scaled(Z)) @ self.U
        return gradient


class MahalanobisGram:
    """The kernel on one data set."""

    def __init__(self, X: Array) -> None:
        self.X = X
        self.k = np.empty((0, 0))

    def fill(self, theta: Array, K: Array) -> None:
        self.k, _ = MahalanobisCross(theta, self.X).covariance(self.X)
        np.fill_diagonal(self.k, np.exp(theta[-1]))
        K[...] = self.k

    def pull_back(self, theta: Array, W: Array, total: float | None) -> tuple[Array, float]:
        X, d = self.X, self.X.shape[1]
        G = np.triu(W, 1) * self.k
        G += G.T
        # dL/dU = -U S with S = sum_ij G_ij (x_i - x_j)(x_i - x_j)'
        S = 2.0 * (X.T @ (G.sum(axis=1)[:, None] * X) - X.T @ (G @ X))
        gradient = np.empty(len(theta))
        gradient[:-1] = -(triangle(theta, d) @ S)[np.triu_indices(d)]
        gradient[-1] = np.vdot(np.triu(W) + np.triu(W, 1), self.k) if total is None else total
        return gradient, float(gradient[-1])


def mahalanobis_prior(d: int, spread: float = 1.0) -> Prior:
    """Entries of U ~ N(0, spread): smooth functions unless the data say otherwise; scale and noise as elsewhere."""
    p = d * (d + 1) // 2
    entries = np.tile([0.0, spread, -30.0, 30.0], (p, 1))
    rest = np.array([[0.0, 1.0, np.log(1e-2), np.log(1e2)], [np.log(1e-4), 2.0, np.log(1e-6), 0.0]])
    return Prior(*np.ascontiguousarray(np.concatenate([entries, rest]).T))


def most_probable(likelihood: Likelihood, prior: Prior, starts: list[Array], iterations: int) -> Array:
    """The best of the local maxima of the posterior density reached from `starts`."""
    best, best_value = starts[0], np.inf
    for start in starts:
        theta, value = minimise(likelihood, start, prior.low, prior.high, [], iterations=iterations)
        if value < min(best_value, FAILED):
            best, best_value = theta, value
    return best


def laplace(likelihood: Likelihood, prior: Prior, theta: Array, count: int, rng: np.random.Generator) -> Array:
    """(count, len(theta)) parameter vectors: U drawn around theta, outputscale and noise kept as they are.

    Where the density is flat or not concave the fit stopped early, or the data say nothing: there the precision
    is the prior's, never less.
    """
    p = len(theta) - 2
    H = np.empty((p, p))
    for i in range(p):
        ahead, behind = theta.copy(), theta.copy()
        ahead[i] += STEP
        behind[i] -= STEP
        H[i] = (likelihood(ahead)[1][:p] - likelihood(behind)[1][:p]) / (2.0 * STEP)
    eigenvalues, vectors = np.linalg.eigh(0.5 * (H + H.T))
    deviations = 1.0 / np.sqrt(np.maximum(eigenvalues, 1.0 / prior.sd[:p] ** 2))
    samples = np.tile(theta, (count, 1))
    samples[:, :p] += (rng.standard_normal((count, p)) * deviations) @ vectors.T
    return samples


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
        kernel, count = Mahalanobis(), len(self.thetas)
        members = tuple(Posterior.of(kernel, theta, X, values) for theta in self.thetas)
        ensemble = Ensemble(members, np.full(count, 1.0 / count), np.zeros(count))
        worst, acquisition = float(values.min()), log_expected_improvement(float(values.max()))
        incumbents = self.polytope.inside(self.low.X[self.low.best(3)])

        def find(ensemble: Ensemble, chosen: list[Array]) -> Array:
            return self._maximise(MomentAcquisition(ensemble, acquisition), incumbents)

        return propose_greedily(n, ensemble.with_fantasies(self.avoided(waiting), worst), worst, find)

    def _maximise(self, acqf: MomentAcquisition, incumbents: Array) -> Array:
        around = self.polytope.around(incumbents, len(self.walkers), self.rng)
        candidates = np.concatenate([self.walkers, around])
        values = acqf(candidates)
        order = np.argsort(-values, kind="stable")[: self.options.starts]
        best, best_value = candidates[order[0]], float(values[order[0]])
        for start in candidates[order]:
            point, value = self.polytope.climb(acqf, start)
            if value > best_value:
                best, best_value = point, value
        return np.asarray(best)

    def _fit(self, X: Array, values: Array) -> None:
        """Most probable parameters from the last ones, a sphere and a random matrix; then samples around them."""
        d = X.shape[1]
        prior = mahalanobis_prior(d)
        rows = spread_by_rank(values, FIT_POINTS)
        likelihood = Likelihood(Mahalanobis(), X[rows], values[rows], prior)
        sphere, drawn = prior.start.copy(), prior.start.copy()
        p = len(sphere) - 2
        sphere[:p] = np.eye(d)[np.triu_indices(d)]
        drawn[:p] = 0.7 * self.rng.standard_normal(p)
        starts = [sphere, drawn] if self.most_probable is None else [self.most_probable, sphere, drawn]
        self.most_probable = most_probable(likelihood, prior, starts, iterations=40)
        self.thetas = laplace(likelihood, prior, self.most_probable, self.options.samples, self.rng)
        self.fitted = len(self.low)
