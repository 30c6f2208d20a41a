"""Gaussian priors and bounds on the logarithms of the model's parameters.

A model's parameter vector is the kernel's theta followed by the log noise variance. A log-normal density over
the parameter itself, LogNormal(mu, s), is in log space a Gaussian with mean mu - s^2: the density's -log(l) term
only moves the mean. So one class serves both kinds, and the difference is visible where the prior is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mctsvs.gp.isotropic_kernels import Cosines, Isotropic, Linear
from mctsvs.gp.kernels import Additive, Kernel, Sum
from mctsvs.utils.validation import Array

ORDINARY_NOISE = (-4.0 - 1.0, 1.0, float(np.log(1e-4)), 2.0)  # mean, sd, low, high


@dataclass(frozen=True)
class Prior:
    """Independent Gaussians on the log parameters, inside bounds. Equal bounds fix a parameter."""

    mean: Array
    sd: Array
    low: Array
    high: Array

    def penalty(self, theta: Array) -> tuple[float, Array]:
        """Negative log density up to a constant, and its gradient."""
        z = (theta - self.mean) / self.sd
        return 0.5 * float(z @ z), z / self.sd

    @property
    def start(self) -> Array:
        return np.clip(self.mean, self.low, self.high)


# the additive term starts with short lengthscales: it is there for the wiggles the joint term smooths over
ADDITIVE = np.array([[np.log(0.15), 1.0, np.log(0.03), 3.0], [-2.0, 1.5, -9.0, 3.0]])


FLAT = 1e6  # a deviation that says nothing
ISOTROPIC = np.array([-4.0, 2.0, -14.0, 5.0])  # the share of the values' variance that is a bowl
LINEAR = np.array([-1.0, 2.0, -14.0, 5.0])  # the share of the values' variance that is a plane
COSINES, SMOOTHNESS = np.array([-3.0, 2.0, -14.0, 5.0]), 0.15  # of all cosines; lengthscale of their spectrum


def _assemble(kernel: Kernel, d: int, joint: Array, noise: Array) -> Prior:
    """Rows (mean, sd, low, high): those of each term, then the noise."""
    terms = kernel.terms if isinstance(kernel, Sum) else (kernel,)
    rows = [row for term in terms for row in _rows(term, d, joint)]
    return Prior(*np.ascontiguousarray(np.array([*rows, noise]).T))


def _rows(term: Kernel, d: int, joint: Array) -> list[Array]:
    """Of lengthscales and outputscale, or of the weights."""
    if isinstance(term, Isotropic):
        return [ISOTROPIC]
    if isinstance(term, Linear):
        return [LINEAR]
    if isinstance(term, Cosines):  # together they expect the spectrum of a squared-exponential function
        spectrum = np.exp(-0.5 * (SMOOTHNESS * np.pi * np.arange(1, term.M + 1)) ** 2)
        logarithms = np.log(np.maximum(spectrum / spectrum.sum(), 1e-3))
        return [COSINES + np.array([shift, 0.0, 0.0, 0.0]) for shift in logarithms]
    lengthscale, outputscale = ADDITIVE if isinstance(term, Additive) else joint
    return [*[lengthscale] * (term.size(d) - 1), outputscale]


def subspace(kernel: Kernel, d: int, sd: float = 0.7) -> Prior:
    """For subspaces of a few to a hundred variables: log l ~ N(log 0.5 + 1/4 log(d/4), sd)."""
    lengthscale = [np.log(0.5) + 0.25 * np.log(d / 4.0), sd, np.log(5e-3), np.log(1.6e5)]
    outputscale = [0.0, 1.0, np.log(1e-2), np.log(1e2)]
    noise = [np.log(1e-3), 2.0, np.log(1e-6), 0.0]
    return _assemble(kernel, d, np.array([lengthscale, outputscale]), np.array(noise))


def dimension_scaled(kernel: Kernel, d: int, noise: Sequence[float] = ORDINARY_NOISE) -> Prior:
    """For all variables at once: l ~ LogNormal(sqrt 2 + 1/2 log d, sqrt 3), a density over lengthscales.

    Taken over lengthscales (mode exp(mu - 3)), not over their logarithms (mode exp(mu)): the latter gives
    lengthscales twenty times too long. Outputscale 1; noise ~ LogNormal(-4, 1), at least 1e-4.

    Going from the mode to a lengthscale of 0.1 costs two nats, which among hundreds of variables some that do nothing
    will pay by chance, and then all further points go into their wiggles: so the more variables, the larger the least
    lengthscale, from 0.025 (up to 5 variables) to 0.3 (60 and more).
    """
    least = np.log(np.clip(0.005 * d, 0.025, 0.3))
    lengthscale = [np.sqrt(2.0) + 0.5 * np.log(d) - 3.0, np.sqrt(3.0), least, 12.0]
    outputscale = [0.0, 1.0, 0.0, 0.0]
    return _assemble(kernel, d, np.array([lengthscale, outputscale]), np.array(noise))


def open_to_noise(kernel: Kernel, d: int) -> tuple[Prior, Array]:
    """The dimension-scaled prior, open to any noise and outputscale; and where a fit starts."""
    prior = dimension_scaled(kernel, d)
    mean, sd, low, high = (part.copy() for part in (prior.mean, prior.sd, prior.low, prior.high))
    sd[-2], low[-2], high[-2] = 1.0, -6.0, 2.0
    mean[-1], sd[-1] = -3.0, 2.5
    start = np.clip(mean, low, high)
    start[-1] = np.log(0.1)
    return Prior(mean, sd, low, high), start


def alike(kernel: Kernel, d: int) -> Prior:
    """The same for a model that treats all variables alike: a few parameters cannot fit what is not there.

    So hardly any noise is expected, and little of what is left near the bottom of a bowl is taken for it.
    """
    return dimension_scaled(kernel, d, noise=(-7.0, 2.0, np.log(1e-6), 2.0))


def objective(kernel: Kernel, d: int) -> Prior:
    """For one of several objectives: its scale is that of the front, not of all values, so any outputscale may be.

    A noise that is learnt where there is none hides what is left to gain near the front.
    """
    least = np.log(np.clip(0.005 * d, 0.025, 0.3))
    lengthscale = [np.sqrt(2.0) + 0.5 * np.log(d) - 3.0, np.sqrt(3.0), least, 12.0]
    outputscale, noise = [0.0, 1.0, -6.0, 9.0], [-9.0, 2.0, -16.0, 1.0]
    return _assemble(kernel, d, np.array([lengthscale, outputscale]), np.array(noise))


def found(kernel: Kernel, d: int) -> Prior:
    """For the few variables known to matter: wide in everything, hardly any noise expected."""
    lengthscale = [np.sqrt(2.0) + 0.5 * np.log(d) - 3.0, np.sqrt(3.0), np.log(0.025), 10.0]
    outputscale = [0.0, 1.0, -6.0, 3.0]
    noise = [-5.0, 2.0, np.log(1e-6), 1.0]
    return _assemble(kernel, d, np.array([lengthscale, outputscale]), np.array(noise))


def intervals(kernel: Kernel, d: int) -> Prior:
    """None inside bounds: those of the published TuRBO, with where its fits begin."""
    lengthscale = [np.log(0.5), FLAT, np.log(5e-3), np.log(2.0)]
    outputscale = [0.0, FLAT, np.log(5e-2), np.log(20.0)]
    noise = [np.log(5e-3), FLAT, np.log(5e-4), np.log(0.2)]
    return _assemble(kernel, d, np.array([lengthscale, outputscale]), np.array(noise))


def exact(kernel: Kernel, d: int) -> Prior:
    """For values without noise that a plane may explain, as constraints often are; each of them by few variables."""
    lengthscale = [np.sqrt(2.0) + 0.5 * np.log(d) - 3.0, np.sqrt(3.0), np.log(0.1), 8.0]
    outputscale = [-1.0, 1.5, -9.0, 4.0]
    noise = [-12.0, 2.0, np.log(1e-8), -2.0]
    return _assemble(kernel, d, np.array([lengthscale, outputscale]), np.array(noise))


PRIORS = {
    "exact": exact,
    "subspace": subspace,
    "dimension-scaled": dimension_scaled,
    "alike": alike,
    "found": found,
    "objective": objective,
    "intervals": intervals,
}
