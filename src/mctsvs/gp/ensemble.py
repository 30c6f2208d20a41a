"""Several posteriors of the same data under other parameters, used as one.

Notation: E members with weights w (E,) that sum to one; mean m_e and standard deviation s_e of each at a point.
Either predictions are averaged, by matching the moments of the mixture,

    m = sum w_e m_e,        s^2 = sum w_e (s_e^2 + m_e^2) - m^2,

or expected improvement is, EI = sum w_e EI_e, which is what integrating the parameters out means exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dtrtri
from scipy.special import logsumexp

from mctsvs.gp.acquisition import Acquisition, log_expected_improvement
from mctsvs.gp.posterior import Posterior
from mctsvs.utils.validation import Array


@dataclass(frozen=True)
class Ensemble:
    """Weighted posteriors; member e models values less its constant mean `shifts[e]`."""

    members: tuple[Posterior, ...]
    weights: Array
    shifts: Array

    def with_fantasies(self, points: Array, value: float) -> Ensemble:
        """With further points of one made-up value in every member."""
        pairs = zip(self.members, self.shifts, strict=True)
        members = tuple(member.with_fantasies(points, value - shift) for member, shift in pairs)
        return Ensemble(members, self.weights, self.shifts)


class MomentAcquisition:
    """An acquisition function of the averaged predictions."""

    def __init__(self, ensemble: Ensemble, acquisition: Acquisition) -> None:
        self.ensemble, self.acquisition = ensemble, acquisition

    def __call__(self, Z: Array) -> Array:
        pairs = [member.predict(Z) for member in self.ensemble.members]
        mean, sd, _ = self._moments([m for m, _ in pairs], [s for _, s in pairs])
        return self.acquisition(mean, sd)[0]

    def value_and_gradient(self, Z: Array) -> tuple[Array, Array]:
        triples = [member.predict_with_pull_back(Z) for member in self.ensemble.members]
        sds = [s for _, s, _ in triples]
        mean, sd, means = self._moments([m for m, _, _ in triples], sds)
        value, d_mean, d_sd = self.acquisition(mean, sd)
        gradient = np.zeros_like(Z)
        for w, m, s, (_, _, pull_back) in zip(self.ensemble.weights, means, sds, triples, strict=True):
            gradient += pull_back(w * (d_mean + d_sd * (m - mean) / sd), w * d_sd * s / sd)
        return value, gradient

    def _moments(self, means: list[Array], sds: list[Array]) -> tuple[Array, Array, Array]:
        """Mean, standard deviation, and the members' means with their constants put back."""
        w = self.ensemble.weights[:, None]
        m = np.array(means) + self.ensemble.shifts[:, None]
        s = np.array(sds)
        mean: Array = (w * m).sum(axis=0)
        return mean, np.sqrt((w * (s * s + (m - mean) ** 2)).sum(axis=0)), m


class ImprovementAcquisition:
    """log of the members' averaged expected improvement over `best`."""

    def __init__(self, ensemble: Ensemble, best: float) -> None:
        self.ensemble = ensemble
        self.acquisitions = [log_expected_improvement(best - shift) for shift in ensemble.shifts]
        self.log_weights = np.log(np.maximum(ensemble.weights, 1e-300))[:, None]

    def __call__(self, Z: Array) -> Array:
        pairs = zip(self.ensemble.members, self.acquisitions, strict=True)
        values = np.array([acquisition(*member.predict(Z))[0] for member, acquisition in pairs])
        total: Array = logsumexp(values + self.log_weights, axis=0)
        return total

    def value_and_gradient(self, Z: Array) -> tuple[Array, Array]:
        values, gradients = [], []
        for member, acquisition in zip(self.ensemble.members, self.acquisitions, strict=True):
            mean, sd, pull_back = member.predict_with_pull_back(Z)
            value, d_mean, d_sd = acquisition(mean, sd)
            values.append(value)
            gradients.append(pull_back(d_mean, d_sd))
        weighted = np.array(values) + self.log_weights
        total: Array = logsumexp(weighted, axis=0)
        share = np.exp(weighted - total)  # of each member in the sum
        return total, np.einsum("em,emd->md", share, np.array(gradients))


def leave_one_out(posterior: Posterior) -> float:
    """Sum of log densities of each value given all the others (Rasmussen and Williams, Eq. 5.10 to 5.12)."""
    inverse, _ = dtrtri(posterior.factor, lower=0)
    precision = np.einsum("ij,ij->i", inverse, inverse)  # diagonal of (K + noise)^-1
    residual = posterior.weights / precision
    return float(0.5 * (np.log(precision) - residual**2 * precision - np.log(2.0 * np.pi)).sum())
