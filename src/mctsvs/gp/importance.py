"""Which coordinates matter: by how much each of them helps to predict values that were held out.

Lengthscales alone cannot tell: a model fitted to pure noise finds short ones too. So the data are cut into folds; a
model of all coordinates is fitted without each fold and predicts it, as it is and once more with one coordinate taken
out (its lengthscale infinite). What the prediction loses, in nats of log density, is evidence for that coordinate that
chance does not give.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs

from mctsvs.gp.kernels import Joint, correlation
from mctsvs.gp.likelihood import JITTER, Likelihood
from mctsvs.gp.model import fit, most_correlated, spread_by_rank
from mctsvs.gp.priors import open_to_noise
from mctsvs.gp.standardize import standardise
from mctsvs.utils.validation import Array, Indices

MOST_POINTS = 300
MOST_TAKEN_OUT = 60  # coordinates of shortest lengthscale that are tried in each fold; the others count as useless
FOLDS = 5
ITERATIONS = 40
LARGEST_GAIN = 2.0  # nats that a single value may speak for or against a coordinate
PRIOR_NATS = 3.0  # a coordinate matters with prior odds of 1 : 20
LEAST_Z = 2.25  # standard errors above zero at which the gain counts as real, with even odds
FEWEST = 10  # points


def relevance(X: Array, y: Array) -> Array:
    """(D,) scores in [0, 1]: how sure it is, by held-out prediction, that the objective depends on each coordinate.

    Above 0.5 the evidence is for, below against or missing. The log odds are the nats of held-out log density that the
    coordinate gains, minus what prior odds of 1 : 20 ask for, and at most twice the number of standard errors by which
    that gain, and the gain of the whole model over a constant one, exceed `LEAST_Z`. So on pure noise no score is high,
    and of two coordinates that were only ever moved together neither need be.
    """
    n, D = X.shape
    values = standardise(y)
    if n < FEWEST or not values.any():
        return np.zeros(D)
    rows = spread_by_rank(values, MOST_POINTS)
    X, values = X[rows], values[rows]
    fold = np.random.default_rng(0).permutation(len(rows)) % FOLDS
    gain, whole = np.zeros((len(rows), D)), np.zeros(len(rows))
    for k in range(FOLDS):
        kept, held = fold != k, fold == k
        columns = most_correlated(X[kept], values[kept])
        model = HeldOut(X[kept][:, columns], values[kept], X[held][:, columns], values[held])
        whole[held] = model.over_constant()
        for j in model.shortest(MOST_TAKEN_OUT):
            gain[held, columns[j]] = model.lost_without(j)
    nats, z = evidence(gain)
    _, z_whole = evidence(whole[:, None])
    log_odds = np.minimum(nats - PRIOR_NATS, 2.0 * (np.minimum(z, z_whole) - LEAST_Z))
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(log_odds, -50.0, 50.0))))


def evidence(gain: Array) -> tuple[Array, Array]:
    """Sum over the points (axis 0), none of which may decide alone, and the same in standard errors."""
    clipped = np.clip(gain, -LARGEST_GAIN, LARGEST_GAIN)
    total = clipped.sum(axis=0)
    return total, total / np.sqrt(len(gain) * clipped.var(axis=0) + 1e-9)


class HeldOut:
    """A model of some points, asked for the log density of others, with and without a coordinate."""

    def __init__(self, X: Array, y: Array, Z: Array, target: Array) -> None:
        self.X, self.y, self.Z, self.target = X, y, Z, target
        kernel = Joint("matern52")
        prior, start = open_to_noise(kernel, X.shape[1])
        theta = fit(Likelihood(kernel, X, y, prior, constant_mean=True), prior, start, [], iterations=ITERATIONS)
        self.log_lengthscale = theta[:-2]
        self.scale, self.noise = np.exp(theta[-2]), np.exp(theta[-1])
        both = np.concatenate([X, Z])
        scaled = both * np.exp(-self.log_lengthscale)
        norms = np.einsum("ij,ij->i", scaled, scaled)
        n = len(X)
        self.squared: Array = np.maximum(norms[:, None] + norms[:n] - 2.0 * scaled @ scaled[:n].T, 0.0)
        self.full = self._log_density(self.squared.copy())

    def _log_density(self, squared: Array) -> Array:
        """Of the targets, from scaled squared distances to the data (overwritten)."""
        n = len(self.y)
        K = self.scale * correlation(squared, "matern52")[0]
        inner, cross = K[:n], K[n:]
        inner[np.diag_indices(n)] += self.noise + JITTER
        factor, failed = dpotrf(inner, lower=1, clean=1)
        if failed:
            return self.full
        ones, _ = dpotrs(factor, np.ones(n), lower=1)
        offset = float(ones @ self.y) / float(ones.sum())
        weights, _ = dpotrs(factor, self.y - offset, lower=1)
        explained, _ = dtrtrs(factor, cross.T, lower=1)
        variance = np.maximum(self.scale - np.einsum("ij,ij->j", explained, explained), 0.0) + self.noise
        return log_normal(self.target, offset + cross @ weights, variance)

    def over_constant(self) -> Array:
        return self.full - log_normal(self.target, float(self.y.mean()), float(self.y.var()))

    def shortest(self, most: int) -> Indices:
        return np.argsort(self.log_lengthscale, kind="stable")[:most]

    def lost_without(self, j: int) -> Array:
        own = np.concatenate([self.X[:, j], self.Z[:, j]]) * np.exp(-self.log_lengthscale[j])
        difference = own[:, None] - own[: len(self.y)]
        return self.full - self._log_density(np.maximum(self.squared - difference * difference, 0.0))


def log_normal(value: Array, mean: Array | float, variance: Array | float) -> Array:
    return np.asarray(-0.5 * ((value - mean) ** 2 / variance + np.log(variance)))
