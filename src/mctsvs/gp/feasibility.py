"""An acquisition surface that needs feasibility: its value plus the log probability of each constraint to hold.

Where no feasible point is known yet, the probabilities alone.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr

from mctsvs.gp.acquisition import LOG_ROOT_2PI
from mctsvs.gp.multi_output import Block, OutputModels, Outputs, bend, finite
from mctsvs.gp.optimize_acqf import AcquisitionLike
from mctsvs.utils.validation import Array

FITS = 3  # models of constraints whose parameters are fitted before a proposal, at most
DOUBT = 0.01  # deviations that a model may be wrong by beyond what it says: without, its borders are cliffs


def limits(models: OutputModels, X: Array, C: Array) -> Outputs | None:
    """Models of the constraints (n, m; NaN unknown) at the points (n, d); None if nothing is known of any."""
    C, known = finite(C), ~np.isnan(C)
    which = np.flatnonzero(known.any(axis=0))
    if not len(which):
        return None
    return models.update(X, bend(C, medians(np.abs(C))), which=which, quota=FITS)


def medians(Y: Array) -> Array:
    """(k,) of the columns of positive values, NaN unknown; 1 where it is 0 or nothing is known."""
    ranked = np.sort(Y, axis=0)  # NaN last
    middle = np.maximum((~np.isnan(Y)).sum(axis=0) - 1, 0) // 2
    found = np.take_along_axis(ranked, middle[None], axis=0)[0]
    return np.where(found > 0.0, found, 1.0)


class Feasible:
    """A surface, or nothing, plus log P(all constraints hold)."""

    def __init__(self, surface: AcquisitionLike | None, outputs: Outputs) -> None:
        self.surface, self.outputs = surface, outputs

    def __call__(self, Z: Array) -> Array:
        total = np.zeros(len(Z)) if self.surface is None else self.surface(Z)
        for block in self.outputs.blocks:
            k, _ = block.posterior.cross.covariance(Z)
            _, sd = block.posterior.predict(Z)
            total = total + log_ndtr(-self._scores(block, k, sd)[0]).sum(axis=1)
        return total

    def value_and_gradient(self, Z: Array) -> tuple[Array, Array]:
        total, gradient = np.zeros(len(Z)), np.zeros_like(Z)
        if self.surface is not None:
            total, gradient = self.surface.value_and_gradient(Z)
        for block in self.outputs.blocks:
            _, sd, back = block.posterior.predict_with_pull_back(Z)
            cross = block.posterior.cross
            k, kept = cross.covariance(Z)
            u, wide = self._scores(block, k, sd)
            value = log_ndtr(-u)
            slope = -np.exp(-0.5 * u * u - LOG_ROOT_2PI - value) / wide[:, None]  # in the means
            total = total + value.sum(axis=1)
            gradient = gradient + cross.pull_back(Z, kept, slope @ block.weights.T)
            gradient = gradient + back(np.zeros(len(Z)), -(slope * u).sum(axis=1) * sd / wide)
        return total, gradient

    def _scores(self, block: Block, k: Array, sd: Array) -> tuple[Array, Array]:
        """(q, g) means above 0 in standard deviations, and (q,) the latter."""
        mean = k @ block.weights + block.offsets - self.outputs.levels[block.which]
        wide = np.hypot(sd, DOUBT)
        return mean / wide[:, None], wide
