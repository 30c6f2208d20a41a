"""Which model proposes the next step: every one of them is an arm, and one rule deals the turns (`Portfolio`).

One model treats variables alike and knows the shape of a bowl; one has a lengthscale for each of them, and finds the
few that matter; one is a quadratic around the best point. Which of them can have a turn: `arms` and `found_arms`.

Under noise no gain is sure, and no test tells whether few variables matter or many. There `ModelSelection` compares the
first two: both are fitted without a part of the points and predict it. They take turns at first; later only one of them
goes on, or both where nothing is clear and there are not many variables. They are compared early: once a search has
gathered its points around an optimum, either predicts what lies between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from mctsvs.gp.kernels import Kernel
from mctsvs.gp.likelihood import Likelihood
from mctsvs.gp.model import KERNELS, fit
from mctsvs.gp.posterior import Posterior
from mctsvs.gp.priors import PRIORS
from mctsvs.gp.standardize import standardise
from mctsvs.methods.auto import constants as const
from mctsvs.methods.auto.evidence import TestKind
from mctsvs.utils.state import Saved
from mctsvs.utils.validation import Array

if TYPE_CHECKING:
    from mctsvs.methods.auto.engine import Auto

ARMS = (TestKind.STEP, TestKind.ALL, TestKind.ALIKE, TestKind.APART, TestKind.CLOSE)


def arms(search: Auto) -> list[TestKind]:
    """Of steps in all variables: alike unless values go in steps, told apart unless they all matter, and close by."""
    n, D, known = len(search.history), len(search.owner), not in_steps(search)
    alike = search.options.alike and known and const.WIDEST_MODEL >= D
    apart = search.options.apart and not all_matter(search)
    everywhere = [kind for kind, wanted in ((TestKind.ALIKE, alike), (TestKind.APART, apart or not alike)) if wanted]
    if search.history.constrained:
        everywhere = [TestKind.ALL]
    close = known and search.free.any() and can_be_local(search, n, D)
    return [*everywhere, TestKind.CLOSE] if close else everywhere


def found_arms(search: Auto, since: int) -> list[TestKind]:
    """Of steps in the found variables, which began after so many points. The first are those of their own model."""
    found, n = search.coordinates_of(search.subspace), len(search.history) - since - const.DESIGN
    many = search.options.alike and len(search.subspace) > const.SEVERAL
    alike = many and not (search.history.constrained or confined(search))
    close = len(found) > 0 and search.free[found].all() and can_be_local(search, n, len(found))
    wanted = ((TestKind.STEP, True), (TestKind.ALIKE, alike), (TestKind.CLOSE, close))
    return [kind for kind, yes in wanted if yes]


def can_be_local(search: Auto, n: int, d: int) -> bool:
    """Whether n points can tell a slope in d coordinates, and every point near the best one is allowed."""
    exact = search.options.close and not search.noisy
    most = np.inf if search.history.constrained else const.MOST_ENOUGH  # each constraint has a slope of its own
    enough = max(min(const.FIRST_PROBE, 2 * d), min(const.ENOUGH * d, most))
    return exact and not confined(search) and n > enough


def confined(search: Auto) -> bool:
    """Whether known constraints leave some points out."""
    return search.region is not None and search.region.constrained


def in_steps(search: Auto) -> bool:
    """Whether values repeat so often that a variable which matters may well change nothing.

    After tests, which repeat the value where nothing that matters was changed, this also says that many of them did.
    """
    y = search.history.distinct
    return len(y) - len(np.unique(y)) >= const.PLATEAUS * max(len(y), const.DESIGN)


def all_matter(search: Auto) -> bool:
    """Whether exact values say so: every change changed them, or nothing was tested and variables are not many."""
    known = search.tested > 0 or (len(search.owner) <= const.NOT_MANY and not search.fails_mostly)
    return not search.noisy and known and not search.evidence.rejected.any()


@dataclass
class Portfolio:
    """Whose turn it is: every arm has turns in proportion to its credit.

    The worth of a point is the share of all gains of the run that were no larger than its own, 0 without a gain. The
    credit of an arm is the mean worth of its points among the last `WINDOW`, and of one more that is worth `HOPE`. So
    an arm that had no turn for long has one again, and where nobody gains all have as many. Only ranks count. No arm
    has less than `SHARE` of the largest credit: steady small gains must not silence an arm that makes rare large ones.
    """

    arms: list[str] = field(default_factory=list)  # that proposed the last points
    worths: list[float] = field(default_factory=list)  # of these points
    claims: dict[str, float] = field(default_factory=dict)  # to the next turn
    most: int = 0  # points that were under way at a time

    def learn(self, arm: str, gain: float, gains: Array) -> None:
        """From a point's gain and all gains of the run (n,); at least two batches are remembered."""
        worth = float((gains <= gain).mean()) if 0.0 < gain < np.inf and len(gains) else 0.0
        kept = max(const.WINDOW, 2 * self.most)
        self.arms, self.worths = [*self.arms, arm][-kept:], [*self.worths, worth][-kept:]

    def next(self, arms: Sequence[str]) -> str:
        """Every arm's claim grows by its share of the credit; the largest has the turn, and pays for it."""
        credit = {arm: self.credit(arm) for arm in arms}
        least = const.SHARE * max(credit.values())
        credit = {arm: max(value, least) for arm, value in credit.items()}
        self.claims = {arm: self.claims.get(arm, 0.0) + credit[arm] / sum(credit.values()) for arm in arms}
        chosen = max(arms, key=self.claims.__getitem__)
        self.claims[chosen] -= 1.0
        return chosen

    def credit(self, arm: str) -> float:
        own = [worth for name, worth in zip(self.arms, self.worths, strict=True) if name == arm]
        return (sum(own) + const.HOPE) / (len(own) + 1)


@dataclass
class ModelSelection(Saved):
    """Whose turn it is."""

    compared: int = 0  # times
    alike_ahead: bool = False  # clearly, at one of these times

    def alike(self, turn: int, X: Array, y: Array) -> bool:
        """Whether this turn is that of the model that treats the variables alike."""
        n, D = X.shape
        if D > const.WIDEST_MODEL:
            return False
        if self.compared < len(const.COMPARED) and n >= const.COMPARED[self.compared]:
            self.compared += 1
            self.alike_ahead = self.alike_ahead or advantage(X, y) >= const.CLEARLY
        if self.alike_ahead:
            return turn % const.ALIKE_TURNS > 0
        return (self.compared == 0 or const.NOT_MANY >= D) and turn % 2 == 1


def advantage(X: Array, y: Array) -> float:
    """By how many standard errors the model that treats variables alike predicts held-out values better."""
    values = standardise(y)
    fold = np.random.default_rng(0).permutation(len(y)) % const.FOLDS
    gain = np.zeros(len(y))
    for k in range(const.FOLDS):
        kept, held = fold != k, fold == k
        for sign, name in ((1.0, "shared+iso"), (-1.0, "se")):
            gain[held] += sign * held_out(KERNELS[name], X[kept], values[kept], X[held], values[held])
    clipped = np.clip(gain, -const.LARGEST_GAIN, const.LARGEST_GAIN)  # no single point may decide
    return float(clipped.sum() / np.sqrt(len(gain) * clipped.var() + 1e-9))


def held_out(kernel: Kernel, X: Array, y: Array, Z: Array, target: Array) -> Array:
    """(m,) log densities of the values of Z under a model of X."""
    prior = PRIORS["dimension-scaled"](kernel, X.shape[1])
    likelihood = Likelihood(kernel, X, y, prior, constant_mean=True)
    theta = fit(likelihood, prior, prior.start, [], iterations=const.COMPARING, careful=True)
    mean, sd = Posterior.of(kernel, theta, X, y, constant_mean=True).predict(Z)
    variance = sd**2 + float(np.exp(theta[-1]))
    return np.asarray(-0.5 * ((target - mean) ** 2 / variance + np.log(variance)))
