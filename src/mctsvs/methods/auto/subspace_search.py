"""Bayesian optimisation of the few variables known to matter.

Two models take turns, of all points and of the best. Points come from log EI in three ways: over all of the variables,
over a random part of them, and inside a trust region around the incumbent. When nothing more is to be expected, a fresh
epoch forgets models and data, and looks for another optimum.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import numpy as np

from mctsvs.gp.acquisition import AcquisitionFunction, log_expected_improvement, penalised, put_inside
from mctsvs.gp.categorical_kernel import TiedLengthscales
from mctsvs.gp.kernels import Kernel
from mctsvs.gp.likelihood import Likelihood
from mctsvs.gp.model import KERNELS, Predictor, fit, nearest, spread_by_rank
from mctsvs.gp.optimize_acqf import climb, pool, quasi_random
from mctsvs.gp.optimize_acqf_mixed import Lattice, maximise
from mctsvs.gp.posterior import Posterior
from mctsvs.gp.priors import PRIORS, Prior
from mctsvs.gp.quasi_newton import Pairs
from mctsvs.gp.standardize import Standardization
from mctsvs.gp.trust_region import TrustRegion
from mctsvs.methods.auto import constants as const
from mctsvs.methods.auto.portfolio import Candidate, in_turn
from mctsvs.space.region_slice import RegionSlice
from mctsvs.utils.state import Saved
from mctsvs.utils.validation import Array, Indices


@dataclass(frozen=True, eq=False)
class View:
    """What is known, in the d coordinates of the found variables."""

    X: Array  # (n, d) points, since the epoch began
    y: Array  # (n,) values
    incumbent: Array  # (d,)
    level: float  # its value
    _: KW_ONLY
    waiting: Array  # (p, d) points that wait for their value
    failed: Array  # (f, d) points that failed
    cut: RegionSlice | None = None  # what known constraints leave of the coordinates
    lattice: Lattice | None = None  # the values that coordinates can take, where some cannot take any

    @property
    def avoid(self) -> Array:
        return np.concatenate([self.waiting, self.failed])

    @property
    def variable(self) -> Indices | None:
        """(d,) number of each coordinate's variable, where that is not its own."""
        return None if self.lattice is None else self.lattice.variable

    @property
    def size(self) -> int:
        """How many variables there are."""
        return len(self.incumbent) if self.variable is None else int(self.variable.max()) + 1


@dataclass
class Surrogate:
    """A model of few coordinates: a joint kernel, and for a few one of each coordinate with short lengthscales.

    The first carries the interplay of the variables, the second the sharp shape that many objectives have along each of
    them. Unlike `gp.model.Model` it may see other points each time, and is now and then fitted from several starts.
    """

    theta: Array | None = None
    pairs: Pairs = field(default_factory=list)
    fitted: int = -1  # points at the last fit
    searched: int = -1  # points at the last fit from several starts

    def posterior(self, X: Array, y: Array, view: View) -> tuple[Posterior, Standardization]:
        """Of the data (n, d), (n,), or of the part that a model can take; standardised with the incumbent's level."""
        n, d, incumbent, level = len(X), view.size, view.incumbent, view.level
        if n > const.MOST_POINTS:
            good = np.argsort(-y, kind="stable")[: const.MOST_POINTS // 2]
            rows = nearest(X, incumbent, const.MOST_POINTS, keep=good)
            X, y = X[rows], y[rows]
        standard = Standardization.of(np.append(y, level), winsorise=False)
        values = standard.values[:-1]
        kernel = KERNELS["joint-additive" if d <= const.MOST_ADDITIVE else "se"]
        prior = PRIORS["found"](kernel, d)
        if view.variable is not None:
            kernel = TiedLengthscales(kernel, view.variable)
        theta = self._fit(kernel, prior, X, values, n)
        return Posterior.of(kernel, theta, X, values, constant_mean=True), standard

    def _fit(self, kernel: Kernel, prior: Prior, X: Array, values: Array, n: int) -> Array:
        """The parameters, fitted again where that is due for n points."""
        d, theta = kernel.k if isinstance(kernel, TiedLengthscales) else X.shape[1], self.theta
        search = theta is None or n - self.searched >= max(10, n // 5)
        if theta is not None and not search and n - self.fitted < max(1, n // 50):
            return theta
        rows = spread_by_rank(values, max(40, int(np.sqrt(const.FIT_WORK / d))))
        likelihood = Likelihood(kernel, X[rows], values[rows], prior, constant_mean=True)
        if theta is None or search:
            starts = [prior.start, *([] if theta is None else [theta])]
            if len(prior.start) > d + 2:  # to explain everything by a sharp additive term has a basin of its own
                starts.insert(1, prior.start.copy())
                starts[1][d + 1 : 2 * d + 1], starts[1][2 * d + 1] = np.log(0.06), -1.0
            tries = [fit(likelihood, prior, start, [], iterations=const.TRIES) for start in starts]
            theta = min(tries, key=lambda theta: likelihood(theta)[0])
            self.pairs, self.searched = [], n
        iterations = const.LONG_FIT if search else const.SHORT_FIT
        self.theta, self.fitted = fit(likelihood, prior, theta, self.pairs, iterations=iterations), n
        return self.theta


class SubspaceModel(Saved):
    """The next point in the found variables' coordinates."""

    saved = ("variables", "of_all", "of_best", "region", "turn", "epoch", "restart", "hopeless")
    variables: Indices  # those found
    of_all: Surrogate
    of_best: Surrogate
    region: TrustRegion
    turn: int = 0  # points proposed by the models
    epoch: int = 0  # first row of the history that they see
    restart: list[Array]  # first points of a new epoch
    hopeless: int = 0  # points in a row that promised nothing

    def __init__(self) -> None:
        self.variables = np.empty(0, dtype=np.intp)
        self.region, self.restart = TrustRegion(), []
        self.forget()

    def forget(self) -> None:
        """Other coordinates or another epoch: fit from scratch."""
        self.of_all, self.of_best = Surrogate(), Surrogate()

    def take(self, variables: Indices) -> None:
        """The variables found by now."""
        if not np.array_equal(variables, self.variables):
            self.variables, self.restart = variables, []
            self.forget()

    def exhausted(self, y: Array, d: int, left: float) -> bool:
        """Whether a fresh epoch is due after the values y, and `left` evaluations leave room for it."""
        over = self.hopeless >= 2 or stalled(y, const.FEW * d + const.PATIENCE)
        return over and min(len(y), left) >= const.FEW * d + const.EPOCH

    def begin_epoch(self, row: int, d: int, rng: np.random.Generator) -> None:
        """Forget the models and what they have seen; the history goes on with this row."""
        self.epoch, self.hopeless = row, 0
        self.forget()
        self.restart = list(quasi_random(d + 4, d, rng))

    def learn(self, d: int, *, success: bool) -> None:
        """From a point inside the trust region, which begins again when it is too small."""
        self.region.resize(success=success, patience=max(4, min(d, 10)))
        if self.region.length < const.LEAST_BOX:
            self.region.length = TrustRegion().length

    def propose(self, view: View, rng: np.random.Generator) -> Candidate:
        if self.restart:
            return Candidate(self.restart.pop())
        n, d = len(view.X), view.size
        if n < 2:  # the first points of an epoch are still awaited
            return Candidate(rng.random(len(view.incumbent)))
        self.turn += 1

        def ask(model: Surrogate) -> Candidate:
            X, y = view.X, view.y
            if model is self.of_best:
                rows = np.sort(np.argsort(-y, kind="stable")[: max(const.FEW * d, int(const.BEST_SHARE * n))])
                X, y = X[rows], y[rows]
            posterior, standard = model.posterior(X, y, view)
            return self._search(_with_fantasies(posterior, view), float(standard.values[-1]), view, rng)

        best = self.turn % 2 == 0 and n >= 2 * const.FEW * d
        candidate = in_turn(self.of_best if best else None, self.of_all, ask, view.X)
        self.hopeless = self.hopeless + 1 if candidate.promise < const.HOPELESS else 0
        return candidate

    def predictor(self, view: View) -> Predictor:
        """What the model of all points expects; asking it changes no point that will be proposed."""
        model = replace(self.of_all, pairs=list(self.of_all.pairs))
        posterior, standard = model.posterior(view.X, view.y, view)

        def predict(Z: Array) -> tuple[Array, Array]:
            mean, sd = posterior.predict(Z)
            return standard.mean + standard.scale * mean, standard.scale * sd

        return predict

    def _search(self, posterior: Posterior, best: float, view: View, rng: np.random.Generator) -> Candidate:
        """The point of largest log EI above `best` in one of the three ways."""
        d, incumbent = len(view.incumbent), view.incumbent
        low, high = np.zeros(d), np.ones(d)
        way = rng.random()
        local = 1 / 3 <= way < 2 / 3
        if way < 1 / 3 and view.size > 2:
            k = view.size
            kept = rng.permutation(k)[int(rng.integers(1, max(2, k // 2) + 1)) :]
            if view.variable is not None:  # a category with all of its codes
                kept = np.flatnonzero(np.isin(view.variable, kept))
            low[kept] = high[kept] = incumbent[kept]
        elif local:
            low, high = self.region.box(incumbent)
        each = max(1, min(8, 80 // d))  # of one coordinate alone, everywhere on its axis
        single = np.repeat(incumbent[None], each * d, axis=0)
        single[np.arange(each * d), np.repeat(np.arange(d), each)] = rng.random(each * d)
        candidates = np.clip(np.concatenate([pool(const.POOL, incumbent[None], rng), single]), low, high)
        acqf = penalised(AcquisitionFunction(posterior, log_expected_improvement(best)), view.cut)
        candidates = put_inside(candidates, acqf)
        if view.lattice is not None:
            candidates, known = np.concatenate([incumbent[None], candidates]), np.concatenate([view.X, view.avoid])
            limits: dict[str, Any] = {"starts": const.CLIMBS, "iterations": const.CLIMB, "box": (low, high)}
            return Candidate(*maximise(acqf, view.lattice, candidates, known, rng, **limits), local)
        chosen, promise = candidates[0], -np.inf
        for start in candidates[np.argsort(-acqf(candidates), kind="stable")[: const.CLIMBS]]:
            point, value = climb(acqf, start, low, high, iterations=const.CLIMB)
            if value > promise:
                chosen, promise = point, value
        return Candidate(chosen, promise, local)


def _with_fantasies(posterior: Posterior, view: View) -> Posterior:
    """What the model expects where a value is awaited: enough not to ask again.

    A failure among failures is a bad place, one among successes an accident; taking that for bad as well would wall off
    a good point.
    """
    if len(view.avoid) == 0:
        return posterior
    expected, _ = posterior.predict(view.avoid)
    bad = np.append(np.zeros(len(view.waiting)), failure_share(view.failed, view.X))
    fantasies = (1.0 - bad) * expected + bad * float(posterior.y.min())
    return posterior.extended(view.avoid, np.append(posterior.y, fantasies))


def failure_share(failed: Array, X: Array, neighbours: int = 5) -> Array:
    """(f,) the share of failures among the evaluations nearest to each failed point; X (n, d) those that succeeded."""
    if len(failed) == 0:
        return np.zeros(0)
    others = np.concatenate([X, failed])
    distance = ((failed[:, None] - others) ** 2).sum(axis=-1)
    distance[np.arange(len(failed)), len(X) + np.arange(len(failed))] = np.inf  # itself
    closest = np.argsort(distance, axis=1, kind="stable")[:, : min(neighbours, len(others) - 1)]
    share: Array = (closest >= len(X)).mean(axis=1)
    return share


def stalled(y: Array, patience: int) -> bool:
    """Whether the last `patience` values brought next to nothing, measured against the deviation of the good ones.

    A model can hope for long where nothing is, as beside a second-best optimum.
    """
    if len(y) <= patience:
        return False
    best = np.sort(y)[-max(2, len(y) // 3) :]
    return bool(y.max() - y[:-patience].max() <= const.LEAST_GAIN * best.std())
