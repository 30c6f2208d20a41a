"""A Gaussian process that is kept up to date: it refits now and then, and extends its factor in between.

Under noise the best of several values is likely a lucky one: `expected_values` is what a model expects in its place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from mctsvs.gp.isotropic_kernels import Cosines, Isotropic, Linear, SharedLengthscale
from mctsvs.gp.kernels import Joint, Kernel, Sum, joint_additive
from mctsvs.gp.likelihood import FAILED, Likelihood
from mctsvs.gp.posterior import Posterior
from mctsvs.gp.priors import PRIORS, Prior, open_to_noise
from mctsvs.gp.quasi_newton import Pairs, minimise
from mctsvs.gp.standardize import Standardization
from mctsvs.utils.state import Saved
from mctsvs.utils.validation import Array, Indices

STATIONARY: dict[str, Kernel] = {
    "matern52": Joint("matern52"),
    "se": Joint("se"),
    "joint-additive": joint_additive("se"),
}
COSINES = 5
KERNELS: dict[str, Kernel] = {
    **STATIONARY,
    "se+linear": Sum(Joint("se"), Linear()),
    "se+iso": Sum(Joint("se"), Isotropic()),
    "se+iso+cosines": Sum(Joint("se"), Isotropic(), Cosines(COSINES)),
    "shared": SharedLengthscale("se"),
    "shared+iso": Sum(SharedLengthscale("se"), Isotropic()),
    "shared+cosines": Sum(SharedLengthscale("se"), Cosines(COSINES)),
    "shared+iso+cosines": Sum(SharedLengthscale("se"), Isotropic(), Cosines(COSINES)),
}
LARGEST_FIT = 2000  # points of a model; of more, only the NEAREST to the best one enter
NEAREST = 1000
MANY = 200
MOST_COLUMNS = 2000  # of a model of all coordinates
FEWEST_EXPECTED, MOST_EXPECTED = (
    5,
    500,
)  # points of a model for expected values; of fewer, the values are all that is known
LOUDEST = 1e100  # noise, in deviations of the values: squares of more overflow


@dataclass(frozen=True)
class Refit:
    """When parameters are fitted again: the points have grown by a factor, or by so many."""

    growth: float = 1.1
    after: float = math.inf
    late: float = 1.0  # the factor from MANY points on, if larger: by then a fit costs most and changes least

    def factor(self, fitted: int) -> float:
        """By which `fitted` points must have grown."""
        return max(self.growth, self.late) if fitted >= MANY else self.growth

    def due(self, n: int, fitted: int) -> bool:
        """For n points now and `fitted` at the last fit, 0 for none."""
        grown = min(self.factor(fitted) * fitted - 1e-9, fitted + self.after)  # in floats 1.1 * 100 is above 110
        return fitted == 0 or n >= max(fitted + 1, grown)


@dataclass(frozen=True)
class ModelSettings:
    """What makes one model unlike another."""

    kernel: str = "matern52"
    prior: str = "subspace"
    refit: Refit = Refit(after=50)
    winsorise: bool = True
    fit_points: int = LARGEST_FIT  # parameters are fitted to at most so many points
    iterations: int = 30
    constant_mean: bool = False
    thorough: bool = False  # every fit starts from the prior's mode and goes on until nothing is gained
    restart: bool = False  # a fit starts from the prior's mode where that is better than the last parameters


@dataclass
class Model(Saved):
    """Exact Gaussian process on the unit cube.

    >>> model = Model()
    >>> posterior = model.update(X, y)          # fits, extends or refits as needed
    >>> mean, sd = posterior.predict(Z)         # of standardised values

    The posterior is not saved: `blocks`, the sizes of the steps in which its factor grew, make the same one again.
    """

    saved: ClassVar[tuple[str, ...]] = ("settings", "theta", "pairs", "fitted", "blocks")

    settings: ModelSettings = ModelSettings()
    theta: Array | None = None
    pairs: Pairs = field(default_factory=list)
    fitted: int = 0  # number of points at the last fit
    blocks: tuple[int, ...] = ()
    posterior: Posterior | None = None

    def update(self, X: Array, y: Array, noise: Array | None = None) -> Posterior:
        """Posterior given all data so far; X must start with the points of the last call.

        `noise` (n,) are the values' standard deviations, NaN where unknown, (0,) or None if none is known.
        """
        n, s = len(X), self.settings
        standard = Standardization.of(y, winsorise=s.winsorise)
        values, known = standard.values, known_variance(noise, standard.scale)
        if n > LARGEST_FIT:
            kernel = KERNELS[s.kernel]
            shared = isinstance(kernel.terms[0] if isinstance(kernel, Sum) else kernel, SharedLengthscale)
            scale = 1.0 if shared or self.theta is None else np.exp(-self.theta[: X.shape[1]])
            rows = nearest(X, X[np.argmax(values)], NEAREST, scale=scale)
            X, values, known = X[rows], values[rows], None if known is None else known[rows]
            self.forget(fit=False)
        if self.due(n):
            self._fit(X, values, known)
            self.forget()
            self.fitted = n
        if known is None:
            self.posterior = self._posterior(X, values)
        else:  # in units of values that are standardised anew each time: nothing of the last factor can be kept
            assert self.theta is not None
            kernel, constant = KERNELS[s.kernel], s.constant_mean
            self.posterior = Posterior.of(kernel, self.theta, X, values, constant_mean=constant, known=known)
        self.blocks = self.posterior.blocks
        return self.posterior

    def due(self, n: int) -> bool:
        """Whether parameters are to be fitted again, now that there are n points."""
        return self.theta is None or self.settings.refit.due(n, self.fitted)

    def forget(self, *, fit: bool = True) -> None:
        """The next update may bring other points; with `fit`, parameters are fitted to them, from those known."""
        self.posterior, self.blocks = None, ()
        if fit:
            self.fitted = 0

    def _posterior(self, X: Array, values: Array) -> Posterior:
        assert self.theta is not None
        blocks = self.blocks or (len(X),)
        known = sum(blocks)
        if self.posterior is None:
            self.posterior = Posterior.replay(
                KERNELS[self.settings.kernel],
                self.theta,
                X[:known],
                values[:known],
                blocks,
                constant_mean=self.settings.constant_mean,
            )
        return self.posterior.extended(X[known:], values)

    def _fit(self, X: Array, values: Array, known: Array | None = None) -> None:
        s = self.settings
        kernel = KERNELS[s.kernel]
        prior = PRIORS[s.prior](kernel, X.shape[1])
        rows = spread_by_rank(values, s.fit_points)
        start = prior.start if self.theta is None or s.thorough else self.theta
        if known is not None:
            known = known[rows]
            prior, start = without_noise(prior, start) if (known > 0.0).all() else (prior, start)
        likelihood = Likelihood(kernel, X[rows], values[rows], prior, constant_mean=s.constant_mean, known=known)
        if s.restart:
            start = min(prior.start, start, key=lambda theta: likelihood(theta)[0])
        if s.thorough or s.restart:
            self.pairs = []
        self.theta = fit(likelihood, prior, start, self.pairs, iterations=s.iterations, careful=s.thorough)


def known_variance(noise: Array | None, scale: float) -> Array | None:
    """(n,) of standardised values, 0 where the noise is not known; None where nothing is."""
    if noise is None or not np.any(noise > 0.0):
        return None
    return np.square(np.minimum(np.nan_to_num(noise), LOUDEST * scale) / scale)


def without_noise(prior: Prior, start: Array) -> tuple[Prior, Array]:
    """For values whose noise is known: hardly any is left to learn."""
    high, start = prior.high.copy(), start.copy()
    high[-1] = start[-1] = prior.low[-1]
    return replace(prior, high=high), start


def fit(
    likelihood: Likelihood, prior: Prior, start: Array, pairs: Pairs, *, iterations: int = 30, careful: bool = False
) -> Array:
    """Most probable parameters, starting from `start`; `start` again if nothing better can be computed.

    `careful`: with hundreds of lengthscales the first steps gain little, and a long one leaves the basin.
    """
    tolerance, first, longest = (1e-3, 0.1, 0.5) if careful else (0.02, 0.3, 2.0)
    theta, value = minimise(
        likelihood,
        start,
        prior.low,
        prior.high,
        pairs,
        iterations=iterations,
        tolerance=tolerance,
        first_step=first,
        longest_step=longest,
    )
    return theta if value < FAILED else np.clip(start, prior.low, prior.high)


def spread_by_rank(values: Array, most: int) -> Indices:
    """Rows of at most so many points, spread evenly over the ranks of their values: good and bad ones both count."""
    n = len(values)
    if n <= most:
        return np.arange(n)
    ranks = np.linspace(0, n - 1, most).round().astype(np.intp)
    return np.sort(np.argsort(values, kind="stable")[ranks])


def nearest(X: Array, centre: Array, most: int, *, scale: Array | float = 1.0, keep: Indices | None = None) -> Indices:
    """Rows of so many points, those nearest to the centre in scaled coordinates, the rows to `keep` among them."""
    difference = (X - centre) * scale
    distance = np.einsum("ij,ij->i", difference, difference)
    if keep is not None:
        distance[keep] = -1.0
    return np.sort(np.argsort(distance, kind="stable")[:most])


def most_correlated(X: Array, values: Array) -> Indices:
    """Columns of a model: all, or those most correlated with the values."""
    D = X.shape[1]
    if D <= MOST_COLUMNS:
        return np.arange(D)
    centred = X - X.mean(axis=0)
    deviation = np.sqrt(np.einsum("ij,ij->j", centred, centred))
    correlation = np.abs((values - values.mean()) @ centred) / np.maximum(deviation, 1e-12)
    return np.sort(np.argsort(-correlation, kind="stable")[:MOST_COLUMNS])


Predictor = Callable[[Array], tuple[Array, Array]]  # points (m, D) -> mean and standard deviation, (m,) each


def expected_values(X: Array, y: Array, Z: Array, noise: Array | None = None) -> tuple[Array, Array]:
    """Mean and standard deviation, (m,) each, of the objective at Z (m, D), from values y (n,) at X (n, D).

    `noise` (n,) are standard deviations of the values, NaN where unknown, (0,) or None if none is known.
    """
    return expectation(X, y, noise)(Z)


def expectation(
    X: Array,
    y: Array,
    noise: Array | None = None,
    *,
    winsorise: bool = True,
    kernel: str = "se",
    prior: str | None = None,
) -> Predictor:
    """The same as a function of Z: the model is fitted once. `winsorise`: bad values are pulled in.

    Without a `prior` the model is open to noise of any size.
    """
    if len(y) < FEWEST_EXPECTED or not np.ptp(y) > 0.0:
        return lambda Z: nearest_values(X, y, Z)
    rows = best_and_spread(y, MOST_EXPECTED)
    X, y, noise = X[rows], y[rows], None if noise is None or not len(noise) else noise[rows]
    standard = Standardization.of(y, winsorise=winsorise)
    columns, known = most_correlated(X, standard.values), known_variance(noise, standard.scale)
    covariance, inputs = KERNELS[kernel], np.ascontiguousarray(X[:, columns])
    chosen, start = open_to_noise(covariance, len(columns))
    if prior is not None:
        chosen = PRIORS[prior](covariance, len(columns))
        start = chosen.start
    if known is not None and (known > 0.0).all():
        chosen, start = without_noise(chosen, start)
    likelihood = Likelihood(covariance, inputs, standard.values, chosen, constant_mean=True, known=known)
    theta = fit(likelihood, chosen, start, [], iterations=60, careful=True)
    posterior = Posterior.of(covariance, theta, inputs, standard.values, constant_mean=True, known=known)

    def predict(Z: Array) -> tuple[Array, Array]:
        mean, sd = posterior.predict(Z[:, columns])
        return standard.mean + standard.scale * mean, standard.scale * sd

    return predict


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
