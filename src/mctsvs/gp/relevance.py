"""Which coordinates matter, read off the lengthscales of one model of all coordinates.

The variable score of Eq. 2 steers the tree but explains little: a variable is scored by the points that were found
while it moved, and those are good late in a run whatever moved. A model of all coordinates under the dimension-scaled
prior tells better; `python benchmarks/relevance.py` prints the ranks both give to the variables that matter.
"""

from __future__ import annotations

import numpy as np

from mctsvs.common import Array
from mctsvs.gp.kernels import Joint
from mctsvs.gp.likelihood import Likelihood
from mctsvs.gp.model import fit, spread_by_rank
from mctsvs.gp.priors import dimension_scaled
from mctsvs.gp.values import standardise

MOST_POINTS = 400
MOST_COORDINATES = 2000


def relevance(X: Array, y: Array) -> Array:
    """(D,) scores in [0, 1]: squared inverse lengthscales relative to the largest.

    Of more than 2,000 coordinates only those most correlated with the values enter the model; the rest score 0.
    """
    scores = np.zeros(X.shape[1])
    values = standardise(y)
    if len(y) < 3 or not values.any():
        return scores
    rows = spread_by_rank(values, MOST_POINTS)
    X, values = X[rows], values[rows]
    columns = np.arange(X.shape[1])
    if len(columns) > MOST_COORDINATES:
        centred = X - X.mean(axis=0)
        deviation = np.sqrt(np.einsum("ij,ij->j", centred, centred))
        correlation = np.abs(values @ centred) / np.maximum(deviation, 1e-12)
        columns = np.sort(np.argsort(-correlation, kind="stable")[:MOST_COORDINATES])
    kernel = Joint("matern52")
    prior = dimension_scaled(kernel, len(columns))
    theta = fit(Likelihood(kernel, X[:, columns], values, prior), prior, prior.start, [], iterations=100)
    log_lengthscale = theta[: len(columns)]
    scores[columns] = np.exp(2.0 * (log_lengthscale.min() - log_lengthscale))
    return scores
