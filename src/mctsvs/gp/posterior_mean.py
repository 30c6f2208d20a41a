"""What the objective is expected to be at points evaluated under noise: a model of all coordinates learns the noise.

Of several values the best is likely a lucky one; the point of best expected value is the better choice.
"""

from __future__ import annotations

import numpy as np

from mctsvs.gp.importance import noisy_prior, screened
from mctsvs.gp.kernels import Joint
from mctsvs.gp.likelihood import Likelihood
from mctsvs.gp.model import fit, known_variance, without_noise
from mctsvs.gp.posterior import Posterior
from mctsvs.gp.standardize import Standardization
from mctsvs.utils.validation import Array, Indices

FEWEST = 5  # points of a model; of fewer, the values are all that is known
MOST_POINTS = 500  # of the model
ITERATIONS = 60


def expected_values(X: Array, y: Array, Z: Array, noise: Array | None = None) -> tuple[Array, Array]:
    """Mean and standard deviation, (m,) each, of the objective at Z (m, D), from values y (n,) at X (n, D).

    `noise` (n,) are standard deviations of the values, NaN where unknown, (0,) or None if none is known.
    """
    if len(y) < FEWEST or not np.ptp(y) > 0.0:
        return nearest_values(X, y, Z)
    rows = best_and_spread(y, MOST_POINTS)
    X, y, noise = X[rows], y[rows], None if noise is None or not len(noise) else noise[rows]
    standard = Standardization.of(y)
    columns, known = screened(X, standard.values), known_variance(noise, standard.scale)
    kernel, inputs = Joint("se"), np.ascontiguousarray(X[:, columns])
    prior, start = noisy_prior(kernel, len(columns))
    if known is not None and (known > 0.0).all():
        prior, start = without_noise(prior, start)
    likelihood = Likelihood(kernel, inputs, standard.values, prior, constant_mean=True, known=known)
    theta = fit(likelihood, prior, start, [], iterations=ITERATIONS, careful=True)
    posterior = Posterior.of(kernel, theta, inputs, standard.values, constant_mean=True, known=known)
    mean, sd = posterior.predict(Z[:, columns])
    return standard.mean + standard.scale * mean, standard.scale * sd


def nearest_values(X: Array, y: Array, Z: Array) -> tuple[Array, Array]:
    """The value of the point nearest to each of Z, and the deviation of all values."""
    distance = ((Z[:, None] - X) ** 2).sum(axis=-1)
    return y[np.argmin(distance, axis=1)], np.full(len(Z), float(np.std(y)))


def best_and_spread(y: Array, most: int) -> Indices:
    """Rows of at most so many values: half of them the best, half spread over the ranks of the others."""
    if len(y) <= most:
        return np.arange(len(y))
    order, half = np.argsort(-y, kind="stable"), most // 2
    others = np.linspace(half, len(y) - 1, most - half).round().astype(np.intp)
    return np.sort(np.append(order[:half], order[others]))
