"""Acquisition functions of the posterior mean and standard deviation, with their derivatives.

Each maps (mean, sd), both (m,), to (value, d value/d mean, d value/d sd); chained with the posterior's pull-back
this gives the gradient in the query points. All are to be maximised.

Two more wrap them: measured constraints add the log probability that they hold (`FeasibilityWeighted`), and known
constraints a penalty outside of the region (`RegionPenalised`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from mctsvs.gp.multi_output import OutputBlock, OutputModels, Outputs, bend, column_medians, finite
from mctsvs.gp.posterior import Posterior
from mctsvs.space.region_slice import RegionSlice
from mctsvs.utils.validation import Array

Partials = tuple[Array, Array, Array]
Acquisition = Callable[[Array, Array], Partials]
LOG_ROOT_2PI = 0.5 * float(np.log(2.0 * np.pi))
FITS = 3  # models of constraints whose parameters are fitted before a proposal, at most
DOUBT = 0.01  # deviations that a model may be wrong by beyond what it says: without, its borders are cliffs
WEIGHT = 1e4  # of the square of a distance to a half-space, in widths of the variables' ranges
WORST = 1e6  # what failing a test costs
ENOUGH = 8  # points that pass the tests: those with lower values need not be tried
MOST_TRIED = 64


def expected_improvement(best: float) -> Acquisition:
    """EI = sd (phi(u) + u Phi(u)) with u = (mean - best) / sd."""

    def evaluate(mean: Array, sd: Array) -> Partials:
        u = (mean - best) / sd
        density, cumulative = np.exp(-0.5 * u * u - LOG_ROOT_2PI), ndtr(u)
        return sd * (density + u * cumulative), cumulative, density

    return evaluate


def log_expected_improvement(best: float) -> Acquisition:
    """log EI, without the vanishing values and gradients of EI far from the data."""

    def evaluate(mean: Array, sd: Array) -> Partials:
        u = (mean - best) / sd
        value = log_h(u)
        # d log h / du = Phi(u) / h(u)
        ratio = np.exp(np.minimum(log_ndtr(u) - value, 300.0))
        return value + np.log(sd), ratio / sd, (1.0 - ratio * u) / sd

    return evaluate


def log_h(u: Array) -> Array:
    """log(phi(u) + u Phi(u)), accurate for every u."""
    near = u > -1.0
    count = int(np.count_nonzero(near))
    if count == len(u):  # a climb has one point or two, for which taking parts would cost more than the rest
        return _log_h_near(u)
    if count == 0:
        return _log_h_far(u)
    out = np.empty_like(u)
    out[near], out[~near] = _log_h_near(u[near]), _log_h_far(u[~near])
    return out


def _log_h_near(t: Array) -> Array:
    return np.asarray(np.log(np.exp(-0.5 * t * t - LOG_ROOT_2PI) + t * ndtr(t)))


def _log_h_far(t: Array) -> Array:
    """h = phi(u) (1 - |u| R(|u|)) with Mills' ratio R; the bracket tends to 1/u^2."""
    mills = np.sqrt(np.pi / 2.0) * erfcx(-t / np.sqrt(2.0))
    bracket = np.where(t < -1e3, 1.0 / (t * t), np.maximum(1.0 + t * mills, 1e-300))
    return np.asarray(-0.5 * t * t - LOG_ROOT_2PI + np.log(bracket))


def upper_confidence_bound(beta: float) -> Acquisition:
    """mean + sqrt(beta) sd."""
    width = float(np.sqrt(beta))

    def evaluate(mean: Array, sd: Array) -> Partials:
        return mean + width * sd, np.ones_like(mean), np.full_like(sd, width)

    return evaluate


def beta_schedule(
    t: int, d: int, D: int, *, delta: float = 0.1, a: float = 1.0, b: float = 1.0, r: float = 1.0
) -> float:
    """beta_t of Theorem 4.2: 2 log(4 pi_t / delta) + 2 d log(d t^2 b r sqrt(log(4 D a / delta))).

    t is the iteration, d the number of selected variables, D of all; pi_t = pi^2 t^2 / 6 sums to one inversely.
    """
    pi_t = np.pi**2 * t**2 / 6.0
    inside = d * t**2 * b * r * np.sqrt(np.log(4.0 * D * a / delta))
    return float(2.0 * np.log(4.0 * pi_t / delta) + 2.0 * d * np.log(inside))


def probability_of_improvement(best: float) -> Acquisition:
    """log PI = log Phi((mean - best) / sd); the logarithm keeps its gradient alive."""

    def evaluate(mean: Array, sd: Array) -> Partials:
        u = (mean - best) / sd
        value = log_ndtr(u)
        ratio = np.exp(-0.5 * u * u - LOG_ROOT_2PI - value)  # phi / Phi
        return value, ratio / sd, -ratio * u / sd

    return evaluate


class AcquisitionLike(Protocol):
    """An acquisition function or a drawn sample path: values (m,) at Z (m, d), and gradients (m, d) with them."""

    def __call__(self, Z: Array) -> Array: ...

    def value_and_gradient(self, Z: Array) -> tuple[Array, Array]: ...


class AcquisitionFunction:
    """A function to be maximised over the unit cube: values of many points, or values with gradients."""

    def __init__(self, posterior: Posterior, acquisition: Acquisition) -> None:
        self.posterior, self.acquisition = posterior, acquisition

    def __call__(self, Z: Array) -> Array:
        return self.acquisition(*self.posterior.predict(Z))[0]

    def value_and_gradient(self, Z: Array) -> tuple[Array, Array]:
        mean, sd, pull_back = self.posterior.predict_with_pull_back(Z)
        value, d_mean, d_sd = self.acquisition(mean, sd)
        return value, pull_back(d_mean, d_sd)


def constraint_models(models: OutputModels, X: Array, C: Array) -> Outputs | None:
    """Models of the constraints (n, m; NaN unknown) at the points (n, d); None if nothing is known of any."""
    C, known = finite(C), ~np.isnan(C)
    which = np.flatnonzero(known.any(axis=0))
    if not len(which):
        return None
    return models.update(X, bend(C, column_medians(np.abs(C))), which=which, quota=FITS)


class FeasibilityWeighted:
    """An acquisition function, or nothing, plus log P(all constraints hold)."""

    def __init__(self, acqf: AcquisitionLike | None, outputs: Outputs) -> None:
        self.acqf, self.outputs = acqf, outputs

    def __call__(self, Z: Array) -> Array:
        total = np.zeros(len(Z)) if self.acqf is None else self.acqf(Z)
        for block in self.outputs.blocks:
            k, _ = block.posterior.cross.covariance(Z)
            _, sd = block.posterior.predict(Z)
            total = total + log_ndtr(-self._scores(block, k, sd)[0]).sum(axis=1)
        return total

    def value_and_gradient(self, Z: Array) -> tuple[Array, Array]:
        total, gradient = np.zeros(len(Z)), np.zeros_like(Z)
        if self.acqf is not None:
            total, gradient = self.acqf.value_and_gradient(Z)
        for block in self.outputs.blocks:
            _, sd, back = block.posterior.predict_with_pull_back(Z)
            cross = block.posterior.cross
            k, cache = cross.covariance(Z)
            u, wide = self._scores(block, k, sd)
            value = log_ndtr(-u)
            slope = -np.exp(-0.5 * u * u - LOG_ROOT_2PI - value) / wide[:, None]  # in the means
            total = total + value.sum(axis=1)
            gradient = gradient + cross.pull_back(Z, cache, slope @ block.weights.T)
            gradient = gradient + back(np.zeros(len(Z)), -(slope * u).sum(axis=1) * sd / wide)
        return total, gradient

    def _scores(self, block: OutputBlock, k: Array, sd: Array) -> tuple[Array, Array]:
        """(q, g) means above 0 in standard deviations, and (q,) the latter."""
        mean = k @ block.weights + block.offsets - self.outputs.levels[block.which]
        wide = np.hypot(sd, DOUBT)
        return mean / wide[:, None], wide


class RegionPenalised:
    """An acquisition function less a penalty, smooth for half-spaces, so that a climb ends where it may."""

    def __init__(self, acqf: AcquisitionLike, cut: RegionSlice) -> None:
        self.acqf, self.cut = acqf, cut

    def __call__(self, Z: Array) -> Array:
        values = self.acqf(Z) - WEIGHT * (self.cut.excess(Z) ** 2).sum(axis=1)
        if self.cut.tested:
            passed = 0
            for i in np.argsort(-values, kind="stable")[:MOST_TRIED]:
                passes = self.cut.passes(Z[i])
                values[i] -= 0.0 if passes else WORST
                passed += passes
                if passed == ENOUGH:
                    break
        return np.asarray(values)

    def value_and_gradient(self, Z: Array) -> tuple[Array, Array]:
        values, gradients = self.acqf.value_and_gradient(Z)
        excess = self.cut.excess(Z)
        values = values - WEIGHT * (excess**2).sum(axis=1)
        if excess.any():
            gradients = gradients - 2.0 * WEIGHT * self.cut.pull(Z, excess)
        if self.cut.tested:
            values = values - WORST * ~np.array([self.cut.passes(z) for z in Z])
        return values, gradients


def penalised(acqf: AcquisitionLike, cut: RegionSlice | None) -> AcquisitionLike:
    """The acquisition function with a penalty outside of the cut; where there is no cut, it alone."""
    return acqf if cut is None else RegionPenalised(acqf, cut)


def put_inside(candidates: Array, acqf: AcquisitionLike) -> Array:
    """The candidates (n, d), moved inside the half-spaces of a penalised acquisition function."""
    return acqf.cut.inside(candidates) if isinstance(acqf, RegionPenalised) else candidates
