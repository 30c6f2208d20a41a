"""Models of several functions of the same points, as the objective and its constraints are: one of each.

Each has a plane, a lengthscale for each variable and hardly any noise: few variables matter to most constraints, and
many are nearly linear. Fitting all of them whenever a point comes would cost too much, so a few take turns, those first
whose parameters have grown oldest; and the means and slopes of all of them come out of two matrix products.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from mctsvs.common import Array, Indices
from mctsvs.gp.model import KERNELS, Model, ModelSettings
from mctsvs.gp.posterior import Posterior
from mctsvs.gp.priors import PRIORS
from mctsvs.state import Saved

SETTINGS = ModelSettings(
    kernel="se+linear", prior="exact", fit_points=120, iterations=12, winsorise=False, constant_mean=True
)
GROWTH = 1.25  # of the points, before parameters are fitted again
UNSURPRISED, FADING = 0.02, 0.85  # deviations: models that foresee new values so well are not fitted again
BEND = 3.0  # typical values away from 0 from which on a value counts with its logarithm


def bend(values: Array, scale: float) -> Array:
    """Values with their tails pulled in, both ways (bilog): straight near 0, logarithmic beyond `BEND` scales."""
    bent: Array = np.sign(values) * BEND * np.log1p(np.abs(values) / (BEND * scale))
    return bent


@dataclass
class Output(Model):
    """The model of one function; its parameters are fitted when the caller says so."""

    saved: ClassVar[tuple[str, ...]] = ("surprise",)

    settings: ModelSettings = SETTINGS
    surprise: float = 1.0  # how far a recent value was from what was expected, in the values' deviations
    turn: bool = False

    def due(self, n: int) -> bool:
        return self.turn

    def stale(self, n: int) -> float:
        """How much older than allowed the parameters are, with n points: due from 1 on."""
        if self.fitted and self.surprise < UNSURPRISED:
            return 0.0
        return n / (GROWTH * self.fitted + 1.0)

    def learn(self, X: Array, values: Array) -> Posterior:
        """As `update`; the last value's surprise is one minus what the others expect, which the factor tells."""
        posterior = self.update(X, values)
        jump = abs(float(posterior.weights[-1])) * float(posterior.factor[-1, -1]) ** 2
        self.surprise = max(FADING * self.surprise, jump)
        return posterior


@dataclass(frozen=True)
class Outputs:
    """Posteriors of k functions given the same points (n, d), in units of their own."""

    X: Array
    posteriors: list[Posterior]
    rows: list[Indices]  # of X that each of them knows
    levels: Array  # (k,) what 0 is, in those units

    @cached_property
    def _parts(self) -> tuple[Array, ...]:
        n, d = self.X.shape
        theta = np.array([posterior.theta for posterior in self.posteriors])  # lengthscales, scale, plane, noise
        weights = np.zeros((n, len(theta)))
        for k, (posterior, rows) in enumerate(zip(self.posteriors, self.rows, strict=True)):
            weights[rows, k] = posterior.weights
        inverse = np.exp(-2.0 * theta[:, :d])
        scaled = np.exp(theta[:, d]) * weights
        slopes = (12.0 / d) * np.exp(theta[:, d + 1])[:, None] * (weights.T @ (self.X - 0.5))
        offsets = np.array([posterior.offset for posterior in self.posteriors])
        return inverse, scaled, slopes, offsets - self.levels, (self.X * self.X) @ inverse.T

    def means(self, z: Array) -> tuple[Array, Array]:
        """(k,) means at the point z (d,), less what 0 is, and (k, d) their gradients."""
        inverse, weights, slopes, offsets, norms = self._parts
        squared = norms - 2.0 * (self.X @ (z * inverse).T) + (z * z) @ inverse.T
        G = weights * np.exp(-0.5 * squared)
        means: Array = offsets + G.sum(axis=0) + slopes @ (z - 0.5)
        gradients: Array = slopes + inverse * (G.T @ self.X - G.sum(axis=0)[:, None] * z)
        return means, gradients

    def deviations(self, z: Array) -> Array:
        """(k,) standard deviations at one point."""
        return np.array([posterior.predict(z[None])[1][0] for posterior in self.posteriors])


class OutputModels(Saved):
    """Models of k functions that are kept up to date, a few fits at a time."""

    saved = ("models",)
    models: list[Output]

    def __init__(self) -> None:
        self.models = []

    def update(self, X: Array, Y: Array, levels: Array, *, which: Indices, quota: int) -> Outputs:
        """Of the functions `which`, given points (n, d), all functions' values (n, k; NaN unknown) and what 0 is for
        each, with at most so many fits."""
        while len(self.models) < Y.shape[1]:
            self.models.append(Output(theta=PRIORS[SETTINGS.prior](KERNELS[SETTINGS.kernel], X.shape[1]).start))
        known = [np.flatnonzero(~np.isnan(Y[:, k])) for k in which]
        stale = np.array([self.models[k].stale(len(rows)) for k, rows in zip(which, known, strict=True)])
        chosen = {int(i) for i in np.argsort(-stale, kind="stable")[:quota] if stale[i] >= 1.0}
        posteriors, scaled = [], np.empty(len(which))
        for i, (k, rows) in enumerate(zip(which, known, strict=True)):
            values, model = Y[rows, k], self.models[k]
            model.turn = i in chosen
            posteriors.append(model.learn(X[rows], values))
            spread = float(values.std()) or abs(float(values[0])) or 1.0
            scaled[i] = (levels[k] - float(values.mean())) / spread
        return Outputs(X, posteriors, known, scaled)

    def forget(self) -> None:
        """The next update may bring other points."""
        for model in self.models:
            model.forget(fit=False)
