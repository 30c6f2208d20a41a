"""Acquisition functions of several objectives, with their derivatives: expected hypervolume improvement.

Notation: Y is the value of a new point, M objectives with independent normal posteriors, larger is better; mean and sd
are (m, M). `front` (k, M) holds values that do not dominate each other, `reference` (M,) is where hypervolume is
measured from. All values are logarithms: far from the data the improvements themselves vanish, with their gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import log_ndtr

from mctsvs.gp.acquisition import LOG_ROOT_2PI, Partials, log_h
from mctsvs.gp.posterior import Posterior
from mctsvs.utils.validation import Array

LARGEST_RATIO = 60.0  # logarithm of a derivative's largest factor
NODES = 8  # of Gauss and Legendre on a ray
FORESEEN = 0.5  # ranges of the front by which the distance dominated on a ray may grow


class Improvement(Protocol):
    """What mean and sd of all objectives promise: to be maximised."""

    def __call__(self, mean: Array, sd: Array) -> Array:
        """(m,)"""
        ...

    def with_slopes(self, mean: Array, sd: Array) -> Partials:
        """The same with its derivatives in mean and sd, (m, M) each."""
        ...


class LogEHVIOfTwo:
    """Of two objectives in closed form, at a cost proportional to the front.

    The front, sorted, cuts the plane into strips. With EI(a) = E(Y - a)^+ and strips from a_i to a_(i-1), above which
    b_i is dominated already,

        EHVI = sum_i [EI_1(a_i) - EI_1(a_(i-1))] EI_2(b_i),    EI_1(a_(-1)) = 0.
    """

    def __init__(self, front: Array, reference: Array) -> None:
        front = front[(front > reference).all(axis=1)]
        front = front[np.argsort(-front[:, 0], kind="stable")]
        self.a = np.append(front[:, 0], reference[0])
        self.b = np.append(reference[1], front[:, 1])

    def __call__(self, mean: Array, sd: Array) -> Array:
        return self._terms(mean, sd)[0]

    def _terms(self, mean: Array, sd: Array) -> tuple[Array, Array, Array, Array, Array]:
        first, u_first = _log_ei(self.a, mean[:, :1], sd[:, :1])
        second, u_second = _log_ei(self.b, mean[:, 1:], sd[:, 1:])
        strips = first.copy()
        strips[:, 1:] = _log_difference(first[:, 1:], first[:, :-1])
        return _log_sum(strips + second), strips, second, u_first, u_second

    def with_slopes(self, mean: Array, sd: Array) -> Partials:
        value, strips, second, u_first, u_second = self._terms(mean, sd)
        others, own = second - value[:, None], strips - value[:, None]

        def along_first(log_slope: Array) -> Array:
            """sum_i (q_i - q_(i-1)) EI_2(b_i) / EHVI, for the derivative q of EI_1."""
            weights = np.exp(np.minimum(log_slope + others, LARGEST_RATIO))
            weights[:, :-1] -= np.exp(np.minimum(log_slope[:, :-1] + others[:, 1:], LARGEST_RATIO))
            return np.asarray(weights.sum(axis=1))

        def along_second(log_slope: Array) -> Array:
            return np.asarray(np.exp(np.minimum(log_slope + own, LARGEST_RATIO)).sum(axis=1))

        d_mean = np.column_stack([along_first(log_ndtr(u_first)), along_second(log_ndtr(u_second))])
        d_sd = np.column_stack([along_first(_log_density(u_first)), along_second(_log_density(u_second))])
        return value, d_mean, d_sd


class LogEHVIByRays:
    """Of any number of objectives, by rays from the reference point in random directions (L, M).

    Hypervolume is the mean over directions w of t^M, up to a constant, t the distance dominated along w. With b the
    distance that the front dominates,

        EHVI ~ mean_w int_b^(b + FORESEEN) M t^(M-1) prod_k P(Y_k > reference_k + t w_k) dt.
    """

    def __init__(self, front: Array, reference: Array, directions: Array) -> None:
        M = len(reference)
        best = np.maximum(front.max(axis=0), reference + 1e-3)
        w = directions * (best - reference)
        gaps = np.maximum(front - reference, 0.0)
        dominated = (gaps[None] / w[:, None]).min(axis=2).max(axis=1)  # (L,)
        nodes, weights = np.polynomial.legendre.leggauss(NODES)
        t = dominated[:, None] + FORESEEN * 0.5 * (nodes + 1.0)  # (L, NODES)
        self.log_weights = np.log(M * t ** (M - 1) * FORESEEN * 0.5 * weights).ravel()
        self.levels = (reference + t[:, :, None] * w[:, None]).reshape(-1, M)

    def __call__(self, mean: Array, sd: Array) -> Array:
        return _log_sum(self.log_weights + log_ndtr(self._scores(mean, sd)).sum(axis=2))

    def _scores(self, mean: Array, sd: Array) -> Array:
        """(m, L NODES, M)"""
        scores: Array = (mean[:, None] - self.levels) / sd[:, None]
        return scores

    def with_slopes(self, mean: Array, sd: Array) -> Partials:
        u = self._scores(mean, sd)
        log_p = log_ndtr(u)
        terms = self.log_weights + log_p.sum(axis=2)
        value = _log_sum(terms)
        share = np.exp(terms - value[:, None])
        ratio = np.exp(np.minimum(_log_density(u) - log_p, LARGEST_RATIO))
        d_mean = np.einsum("ij,ijk->ik", share, ratio) / sd
        d_sd = -np.einsum("ij,ijk->ik", share, ratio * u) / sd
        return value, d_mean, d_sd


@dataclass(frozen=True)
class LogEIOfOne:
    """Expected improvement of one objective alone, beyond its best value: it widens the front."""

    objective: int
    best: float

    def __call__(self, mean: Array, sd: Array) -> Array:
        return _log_ei(np.array([self.best]), mean[:, [self.objective]], sd[:, [self.objective]])[0][:, 0]

    def with_slopes(self, mean: Array, sd: Array) -> Partials:
        value, u = (
            part[:, 0] for part in _log_ei(np.array([self.best]), *(p[:, [self.objective]] for p in (mean, sd)))
        )
        d_mean, d_sd = np.zeros_like(mean), np.zeros_like(sd)
        d_mean[:, self.objective] = np.exp(np.minimum(log_ndtr(u) - value, LARGEST_RATIO))
        d_sd[:, self.objective] = np.exp(np.minimum(_log_density(u) - value, LARGEST_RATIO))
        return value, d_mean, d_sd


@dataclass(frozen=True)
class ScaledPosterior:
    """A posterior of standardised values, in the units of the search: y = offset + scale * value."""

    posterior: Posterior
    offset: float
    scale: float


class JointAcquisition:
    """An improvement as a function of points (m, d): with a posterior for each objective."""

    def __init__(self, posteriors: Sequence[ScaledPosterior], improvement: Improvement) -> None:
        self.posteriors, self.improvement = posteriors, improvement

    def predict(self, Z: Array) -> tuple[Array, Array]:
        """Mean and standard deviation, (m, M) each, in the units of the search."""
        return predict(self.posteriors, Z)

    def __call__(self, Z: Array) -> Array:
        return self.improvement(*self.predict(Z))

    def value_and_gradient(self, Z: Array) -> tuple[Array, Array]:
        parts = [p.posterior.predict_with_pull_back(Z) for p in self.posteriors]
        known = list(zip(self.posteriors, parts, strict=True))
        mean = np.column_stack([p.offset + p.scale * part[0] for p, part in known])
        sd = np.column_stack([p.scale * part[1] for p, part in known])
        value, d_mean, d_sd = self.improvement.with_slopes(mean, sd)
        gradient = np.zeros_like(Z)
        for k, (p, (_, _, pull_back)) in enumerate(known):
            gradient += pull_back(p.scale * d_mean[:, k], p.scale * d_sd[:, k])
        return value, gradient


def predict(posteriors: Sequence[ScaledPosterior], Z: Array) -> tuple[Array, Array]:
    """Mean and standard deviation at points (m, d), (m, M) each."""
    found = [(p, *p.posterior.predict(Z)) for p in posteriors]
    mean = np.column_stack([p.offset + p.scale * mean for p, mean, _ in found])
    return mean, np.column_stack([p.scale * sd for p, _, sd in found])


def _log_ei(level: Array, mean: Array, sd: Array) -> tuple[Array, Array]:
    """log E(Y - level)^+ for levels (k,), and the scores (m, k)."""
    u = (mean - level) / sd
    value: Array = log_h(u.ravel()).reshape(u.shape) + np.log(sd)
    return value, u


def _log_density(u: Array) -> Array:
    return np.asarray(-0.5 * u * u - LOG_ROOT_2PI)


def _log_difference(a: Array, b: Array) -> Array:
    """log(exp a - exp b) for a >= b; a little more than nothing where they are equal."""
    return np.asarray(a + np.log(-np.expm1(np.minimum(b - a, -1e-13))))


def _log_sum(terms: Array) -> Array:
    """(m,) logarithm of the sum over the last axis."""
    top = terms.max(axis=1, keepdims=True)
    return np.asarray(top[:, 0] + np.log(np.exp(terms - top).sum(axis=1)))
