"""The SAAS prior: a half-Cauchy density over inverse squared lengthscales (Eriksson and Jankowiak, UAI 2021).

    rho_i ~ HalfCauchy(tau),  rho_i = 1 / l_i^2,      tau ~ HalfCauchy(0.1)

Most mass is near rho = 0, where a variable does not matter at all, and the heavy tail lets the few that do escape.

Which density is maximised matters. Here it is the one over t = log l (equivalently over log rho), which is the one
over rho times the Jacobian rho: its mode is rho = tau, and moving a variable away from there costs a nat for each
factor e in rho, whichever way. The density over rho itself has its mode at rho = 0 and is flat below tau, so three
hundred idle variables may each move a little for nothing and together explain anything.

tau is not maximised but averaged over: a model is fitted for each of several values (`mctsvs.solve.saas`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mctsvs.common import Array
from mctsvs.gp.kernels import Kernel
from mctsvs.gp.priors import Prior

TAU_SCALE = 0.1
"""Scale of the half-Cauchy density of tau."""


@dataclass(frozen=True)
class HalfCauchy(Prior):
    """Half-Cauchy on the first `d` parameters' rho = exp(-2 theta), Gaussians on the rest.

    `mean` of a lengthscale is only where a fit starts.
    """

    tau: float
    d: int

    def penalty(self, theta: Array) -> tuple[float, Array]:
        log_rho = -2.0 * theta[: self.d]
        q = np.exp(2.0 * log_rho) / self.tau**2  # (rho / tau)^2
        z = (theta[self.d :] - self.mean[self.d :]) / self.sd[self.d :]
        gradient = np.concatenate([2.0 - 4.0 * q / (1.0 + q), z / self.sd[self.d :]])
        return float((np.log1p(q) - log_rho).sum()) + 0.5 * float(z @ z), gradient


def half_cauchy(kernel: Kernel, d: int, tau: float) -> HalfCauchy:
    """The prior for one value of tau, with the weak priors of `mctsvs.gp.priors.subspace` on scale and noise.

    A fit starts with all variables equal and the squared distance of random points (d rho / 6) about one: at
    rho = tau the points of a hundred variables would all be strangers to each other and no gradient would be left.
    """
    start = -0.5 * np.log(6.0 / d)
    lengthscale = [start, 1.0, np.log(5e-2), np.log(1e4)]
    table = np.array(
        [*[lengthscale] * d, [0.0, 1.0, np.log(1e-2), np.log(1e2)], [np.log(1e-3), 2.0, np.log(1e-6), 0.0]]
    )
    assert kernel.size(d) == d + 1
    mean, sd, low, high = np.ascontiguousarray(table.T)
    return HalfCauchy(mean, sd, low, high, tau, d)


def log_tau_density(tau: float) -> float:
    """Log density of log tau, up to a constant: what a grid even in log tau is weighted by."""
    return float(np.log(tau) - np.log1p((tau / TAU_SCALE) ** 2))
