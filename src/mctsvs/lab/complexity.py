"""The measured cost of fitting and of maximising the acquisition, beside the analysis of Appendix B.2.

    fitting a Gaussian process        O(t^3 + t^2 d_t)               one evaluation of the likelihood and its gradient
    maximising the acquisition        O(m (t^2 + t d_t + d_t^2))     one gradient, of which each of m rounds needs one

with t points and d_t selected variables. d_t^2 is the quasi-Newton update; ours keeps few curvature pairs, so that it
costs O(d_t) and is no part of what is timed. The exponents are slopes of log seconds against log t and log d_t.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mctsvs.common import Array
from mctsvs.gp.acquisition import Surface, beta_schedule, upper_confidence_bound
from mctsvs.gp.kernels import Joint
from mctsvs.gp.likelihood import Likelihood
from mctsvs.gp.posterior import Posterior

POINTS = (50, 100, 200, 400, 800, 1600)
VARIABLES = (2, 5, 10, 20, 50, 100, 200, 500)
QUICK_POINTS = (50, 100, 200, 400)
QUICK_VARIABLES = (2, 10, 50, 200)
TERMS: dict[str, tuple[tuple[int, int], ...]] = {  # exponents of t and d_t of each term of the analysis
    "fit": ((3, 0), (2, 1)),
    "maximise": ((2, 0), (1, 1), (0, 2)),
}
ANALYSIS = {"fit": "t³ + t² d", "maximise": "m (t² + t d + d²)"}
WHAT = {"fit": "likelihood and gradient, once", "maximise": "gradient of UCB, once"}


@dataclass(frozen=True)
class Measurement:
    """Seconds of one call: the least of several, the one least disturbed by other work."""

    what: str
    t: int
    d: int
    seconds: float


def least(call: Callable[[], float], patience: float = 0.12) -> float:
    """The smallest of the results of repeated calls, five at least, for about so many seconds."""
    call()
    started = time.perf_counter()
    found: list[float] = []
    while len(found) < 5 or time.perf_counter() - started < patience:
        found.append(call())
    return min(found)


def measure(points: Sequence[int] = POINTS, variables: Sequence[int] = VARIABLES) -> list[Measurement]:
    """Both costs for every number of points and of variables."""
    found: list[Measurement] = []
    for t in points:
        for d in variables:
            rng = np.random.default_rng([t, d])
            X = rng.random((t, d))
            y = np.sin(3.0 * X[:, 0]) + 0.1 * rng.standard_normal(t)
            y = (y - y.mean()) / y.std()
            theta = np.append(np.full(d, np.log(0.4 * np.sqrt(d))), [0.0, np.log(1e-2)])
            likelihood = Likelihood(Joint("se"), X, y)
            found.append(Measurement("fit", t, d, least(_seconds(likelihood, theta))))
            posterior = Posterior.of(Joint("se"), theta, X, y)
            surface = Surface(posterior, upper_confidence_bound(beta_schedule(t, d, max(variables))))
            found.append(Measurement("maximise", t, d, least(_seconds_of_a_round(surface, rng.random((10, d))))))
    return found


def _seconds(likelihood: Likelihood, theta: Array) -> Callable[[], float]:
    def call() -> float:
        started = time.perf_counter()
        likelihood(theta)
        return time.perf_counter() - started

    return call


def _seconds_of_a_round(surface: Surface, points: Array) -> Callable[[], float]:
    def call() -> float:
        started = time.perf_counter()
        for z in points:
            surface.value_and_gradient(z[None])
        return (time.perf_counter() - started) / len(points)

    return call


def exponent(x: Sequence[float], seconds: Sequence[float]) -> float:
    """Slope of log seconds against log x."""
    return float(np.polyfit(np.log(x), np.log(seconds), 1)[0])


def fitted(measured: Sequence[Measurement], what: str) -> tuple[Array, Callable[[float, float], float]]:
    """The analysis' constants, one for each term and one for what a call costs anyway, by relative least squares."""
    from scipy.optimize import nnls

    own = [m for m in measured if m.what == what]
    powers = (*TERMS[what], (0, 0))
    seconds = np.array([m.seconds for m in own])
    columns = np.array([[float(m.t) ** p * float(m.d) ** q for p, q in powers] for m in own])
    constants, _ = nnls(columns / seconds[:, None], np.ones(len(own)))

    def model(t: float, d: float) -> float:
        return float(sum(c * t**p * d**q for c, (p, q) in zip(constants, powers, strict=True)))

    return np.asarray(constants), model


@dataclass(frozen=True)
class Slope:
    """An exponent as measured and as the fitted analysis has it over the same range."""

    what: str
    variable: str  # t or d
    at: str  # what was held fixed
    over: str
    measured: float
    analysis: float


def slopes(measured: Sequence[Measurement]) -> list[Slope]:
    """In t at the fewest and the most variables, in d at the fewest and the most points; over the upper half."""
    found = []
    for what in TERMS:
        own = {(m.t, m.d): m.seconds for m in measured if m.what == what}
        points, variables = sorted({t for t, _ in own}), sorted({d for _, d in own})
        _, model = fitted(measured, what)
        upper_t, upper_d = points[len(points) // 2 :], variables[len(variables) // 2 :]
        for d in (variables[0], variables[-1]):
            seen = exponent(upper_t, [own[t, d] for t in upper_t])
            said = exponent(upper_t, [model(t, d) for t in upper_t])
            found.append(Slope(what, "t", f"d = {d}", f"t = {upper_t[0]} to {upper_t[-1]}", seen, said))
        for t in (points[0], points[-1]):
            seen = exponent(upper_d, [own[t, d] for d in upper_d])
            said = exponent(upper_d, [model(t, d) for d in upper_d])
            found.append(Slope(what, "d", f"t = {t}", f"d = {upper_d[0]} to {upper_d[-1]}", seen, said))
    return found


def misfit(measured: Sequence[Measurement], what: str) -> float:
    """Median of |fitted / measured - 1|."""
    _, model = fitted(measured, what)
    return float(np.median([abs(model(m.t, m.d) / m.seconds - 1.0) for m in measured if m.what == what]))
