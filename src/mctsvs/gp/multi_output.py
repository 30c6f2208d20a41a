"""Models of several functions of the same points, as the objective and its constraints are.

Many are nearly linear, and few variables matter to most. So all begin with one kernel, nearly a plane, whose factor
they share; one that is not foreseen by it gets parameters of its own: a lengthscale for each variable, hardly any
noise. A few are fitted before each proposal, those first whose parameters have grown oldest; and the means and slopes
of all of them come out of two matrix products.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mctsvs.gp.likelihood import Likelihood
from mctsvs.gp.model import KERNELS, fit, spread_by_rank
from mctsvs.gp.posterior import Posterior, solve_with_factor
from mctsvs.gp.priors import PRIORS, Prior
from mctsvs.utils.state import Saved
from mctsvs.utils.validation import LARGEST, Array, Indices

KERNEL = KERNELS["se+linear"]
FIT_POINTS, STEPS = 120, 12  # a fit takes at most so many points and steps
GROWTH = 1.25  # of the points, before parameters are fitted again
UNSURPRISED, FADING = 0.02, 0.85  # deviations: what foresees new values so well is not fitted again
WORTH = 0.1  # nats for each point that parameters of its own must gain a function, or it goes on sharing
KEPT = 16  # points by which a factor grows before it is computed again
BEND = 5.0  # typical values away from 0 from which on a value counts with its logarithm


def bend(values: Array, scale: Array | float) -> Array:
    """Values with their tails pulled in, both ways, like bilog: straight near 0, logarithmic beyond `BEND` scales."""
    bent: Array = BEND * np.arcsinh(values / (BEND * scale))
    return bent


def finite(C: Array) -> Array:
    """Constraints (n, m; NaN unknown) of which infinite ones count as much as the largest of the others."""
    infinite = np.abs(C) >= LARGEST
    if not infinite.any():
        return C
    largest = np.where(infinite | np.isnan(C), 0.0, np.abs(C)).max(axis=0)
    return np.where(infinite, np.sign(C) * np.where(largest > 0.0, largest, 1.0), C)


def column_medians(Y: Array) -> Array:
    """(k,) of the columns of positive values, NaN unknown; 1 where it is 0 or nothing is known."""
    ranked = np.sort(Y, axis=0)  # NaN last
    middle = np.maximum((~np.isnan(Y)).sum(axis=0) - 1, 0) // 2
    found = np.take_along_axis(ranked, middle[None], axis=0)[0]
    return np.where(found > 0.0, found, 1.0)


@dataclass
class Output:
    """What is remembered of one function."""

    theta: Array | None = None  # its own parameters; None: it shares
    fitted: int = 0  # points at the last fit
    surprise: float = 1.0  # how far a recent value was from what was expected, in the values' deviations

    def stale(self, n: int) -> float:
        """How much older than allowed the parameters are, with n points: due from 1 on."""
        if self.fitted and self.surprise < UNSURPRISED:
            return 0.0
        return n / (GROWTH * self.fitted + 1.0)


@dataclass(frozen=True)
class OutputBlock:
    """Functions that share parameters and points, of which their factor is made."""

    posterior: Posterior  # of the points; its own values mean nothing
    which: Indices  # (g,) positions of the functions
    rows: Indices  # (n,) of the points
    values: Array  # (n, g) standardised

    @cached_property
    def _solved(self) -> tuple[Array, Array]:
        """(n, g) weights (K + noise)^-1 (values - offsets), and (g,) offsets."""
        both = np.asfortranarray(np.column_stack([self.values, np.ones(len(self.values))]))
        both = solve_with_factor(self.posterior.factor, both)
        offsets = both[:, :-1].sum(axis=0) / both[:, -1].sum()
        return both[:, :-1] - np.outer(both[:, -1], offsets), offsets

    @property
    def weights(self) -> Array:
        """(n, g) (K + noise)^-1 (values - offsets)."""
        return self._solved[0]

    @property
    def offsets(self) -> Array:
        """(g,) the most probable means far from all points."""
        return self._solved[1]

    @property
    def jumps(self) -> Array:
        """(g,) how far the last values are from what the others expect; the factor tells."""
        jumps: Array = np.abs(self.weights[-1]) * float(self.posterior.factor[-1, -1]) ** 2
        return jumps


@dataclass(frozen=True)
class Outputs:
    """Posteriors of k functions given the same points (n, d), in units of their own."""

    X: Array
    blocks: list[OutputBlock]
    levels: Array  # (k,) what 0 is, in those units

    @cached_property
    def _parts(self) -> tuple[Any, ...]:
        (n, d), k = self.X.shape, len(self.levels)
        theta = np.array([block.posterior.theta for block in self.blocks])  # lengthscales, scale, plane, noise
        group, weights, offsets = np.empty(k, dtype=np.intp), np.zeros((n, k)), np.empty(k)
        for g, block in enumerate(self.blocks):
            group[block.which], offsets[block.which] = g, block.offsets
            weights[np.ix_(block.rows, block.which)] = block.weights
        inverse = np.exp(-2.0 * theta[:, :d])
        planes = (12.0 / d) * np.exp(theta[group, d + 1])[:, None] * (weights.T @ (self.X - 0.5))
        scaled = np.exp(theta[group, d]) * weights
        return inverse, scaled, planes, offsets - self.levels, (self.X * self.X) @ inverse.T, group

    def means(self, z: Array) -> tuple[Array, Array]:
        """(k,) means at the point z (d,), less what 0 is, and (k, d) their gradients."""
        inverse, weights, planes, offsets, norms, group = self._parts
        squared = norms - 2.0 * (self.X @ (z * inverse).T) + (z * z) @ inverse.T
        G = weights * np.exp(-0.5 * squared)[:, group]
        total = G.sum(axis=0)
        means: Array = offsets + total + planes @ (z - 0.5)
        gradients: Array = planes + inverse[group] * (G.T @ self.X - total[:, None] * z)
        return means, gradients

    def deviations(self, z: Array) -> Array:
        """(k,) standard deviations at one point."""
        found = np.empty(len(self.levels))
        for block in self.blocks:
            found[block.which] = block.posterior.predict(z[None])[1][0]
        return found


class OutputModels(Saved):
    """What is known of k functions, a few fits at a time."""

    saved = ("models",)
    models: list[Output]

    def __init__(self) -> None:
        self.models = []
        self._factors: dict[bytes, Posterior] = {}  # by parameters and rows: computed again where they are not there
        self._used: set[bytes] = set()

    def update(self, X: Array, Y: Array, *, which: Indices, quota: int) -> Outputs:
        """Of the functions `which`, given points (n, d) and all functions' values (n, k; NaN unknown; 0 is what
        matters), with at most so many fits."""
        while len(self.models) < Y.shape[1]:
            self.models.append(Output())
        chosen = [self.models[k] for k in which]
        values, levels = _standardised(Y[:, which])
        known = ~np.isnan(values)
        self._fit(X, values, chosen, quota)
        prior = PRIORS["exact"](KERNEL, X.shape[1])
        groups: dict[bytes, list[int]] = {}
        self._used = set()
        for i, output in enumerate(chosen):
            key = known[:, i].tobytes() + (b"" if output.theta is None else output.theta.tobytes())
            groups.setdefault(key, []).append(i)
        blocks = []
        for group in groups.values():
            rows, theta = np.flatnonzero(known[:, group[0]]), chosen[group[0]].theta
            posterior = self._factor(plane(prior) if theta is None else theta, X, rows)
            blocks.append(OutputBlock(posterior, np.array(group), rows, values[rows][:, group]))
            for i, jump in zip(group, blocks[-1].jumps, strict=True):
                chosen[i].surprise = max(FADING * chosen[i].surprise, float(jump))
        self._factors = {key: factor for key, factor in self._factors.items() if key in self._used}
        return Outputs(X, blocks, levels)

    def _fit(self, X: Array, values: Array, chosen: list[Output], quota: int) -> None:
        """Parameters of the few that are due first."""
        counts = (~np.isnan(values)).sum(axis=0)
        stale = np.array([output.stale(int(n)) for output, n in zip(chosen, counts, strict=True)])
        prior = PRIORS["exact"](KERNEL, X.shape[1])
        shared = plane(prior)
        for i in np.argsort(-stale, kind="stable")[:quota]:
            if stale[i] < 1.0:
                break
            rows, output = np.flatnonzero(~np.isnan(values[:, i])), chosen[i]
            rows = rows[spread_by_rank(values[rows, i], FIT_POINTS)]
            likelihood = Likelihood(KERNEL, X[rows], values[rows, i], prior, constant_mean=True)
            sharing = likelihood(shared)[0]
            start = output.theta if output.theta is not None else prior.start
            theta = fit(likelihood, prior, start, [], iterations=STEPS)
            output.theta = theta if likelihood(theta)[0] < sharing - WORTH * len(rows) else None
            output.fitted = int(counts[i])

    def _factor(self, theta: Array, X: Array, rows: Indices) -> Posterior:
        """Of the points in these rows: a factor that is kept while a few more come, which extend it.

        Always in the same two steps, so that one computed again is the same, rounding included.
        """
        first = len(rows) // KEPT * KEPT
        if first < KEPT:
            return Posterior.of(KERNEL, theta, X[rows], np.zeros(len(rows)))
        key = theta.tobytes() + rows[:first].tobytes()
        self._used.add(key)
        if key not in self._factors:
            self._factors[key] = Posterior.of(KERNEL, theta, X[rows[:first]], np.zeros(first))
        return self._factors[key].extended(X[rows[first:]], np.zeros(len(rows)))

    def forget(self) -> None:
        """The next update may bring other points."""
        self._factors = {}


def plane(prior: Prior) -> Array:
    """The parameters that are shared: nearly a plane, a little bent."""
    theta = prior.start
    theta[:-3] += np.log(2.0)
    theta[-3:-1] = -4.0, 0.0
    return theta


def _standardised(Y: Array) -> tuple[Array, Array]:
    """Columns of mean 0 and deviation 1, unknown values left out, and what 0 is in them; a constant is all 0."""
    known = ~np.isnan(Y)
    count = known.sum(axis=0)
    mean = np.where(known, Y, 0.0).sum(axis=0) / count
    centred = np.where(known, Y - mean, 0.0)
    spread = np.sqrt((centred * centred).sum(axis=0) / count)
    constant = spread <= 1e-12 * np.abs(mean)
    scale = np.where(constant, np.where(mean == 0.0, 1.0, np.abs(mean)), spread)
    values = np.where(known, np.where(constant, 0.0, centred / scale), np.nan)
    return values, -mean / scale
