"""Bayesian optimisation of the few variables known to matter.

The model is a joint kernel plus an additive one with short lengthscales: the first carries the interplay of the
variables, the second the sharp shape that many objectives have along each of them. (With ten Levy variables known,
the additive term decides between -0.4 and -3 after 100 evaluations.) Two such models take turns, one of all points
and one of the best third alone: bad points set a scale on which the differences between good ones look like nothing.
(Ten of 300 variables, 200 evaluations, five seeds: Rosenbrock -241 in place of -2495, Levy -0.45 in place of -0.90.)
Points come from log EI in three ways: over all of the variables, over a random part of them, and inside a box around
the incumbent that grows and shrinks.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mctsvs.common import Array, State
from mctsvs.gp.acquisition import Surface, log_expected_improvement
from mctsvs.gp.categories import Blocks, decide
from mctsvs.gp.kernels import Joint, Kernel, joint_additive
from mctsvs.gp.likelihood import Likelihood
from mctsvs.gp.model import fit, spread_by_rank
from mctsvs.gp.posterior import Posterior
from mctsvs.gp.priors import found as found_prior
from mctsvs.gp.quasi_newton import Pairs
from mctsvs.gp.search import climb, pool
from mctsvs.gp.values import standardise

MOST_ADDITIVE = 30  # variables; beyond, the additive term costs more than it gives
MOST_POINTS = 200  # of the model: the best half, and those nearest to the incumbent
FIT_WORK = 2e5  # points^2 x variables of one likelihood
FIRST_BOX, LARGEST_BOX, LEAST_BOX = 0.8, 1.6, 0.01  # widths of the local box
POOL = 160
BEST_SHARE = 0.3  # of the points, in the model of the best
SAME_POINT = 1e-6  # in every coordinate
PATIENCE = 40  # evaluations, and four for each coordinate, in which a search must gain something
LEAST_GAIN = 0.01  # of the spread of its best third
FEW = 4  # points for each variable that this model needs


@dataclass
class Box:
    """Width of the box around the incumbent: doubled after three successes, halved after a few failures."""

    width: float = FIRST_BOX
    successes: int = 0
    failures: int = 0

    def update(self, d: int, *, success: bool) -> None:
        self.successes, self.failures = (self.successes + 1, 0) if success else (0, self.failures + 1)
        if self.successes >= 3:
            self.width, self.successes = min(LARGEST_BOX, 2.0 * self.width), 0
        elif self.failures >= max(4, min(d, 10)):
            self.width, self.failures = 0.5 * self.width, 0
        if self.width < LEAST_BOX:
            self.width = FIRST_BOX


@dataclass
class Surrogate:
    """A model of the found variables' coordinates, fitted again as points come."""

    additive: bool = True  # with an additive term
    theta: Array | None = None
    fitted: int = -1  # points at the last fit
    searched: int = -1  # points at the last fit from scratch
    pairs: Pairs = field(default_factory=list)

    def posterior(self, X: Array, y: Array, incumbent: Array, level: float) -> tuple[Posterior, float]:
        """Model of at most MOST_POINTS points, and the incumbent's standardised value."""
        d, total = X.shape[1], len(y)
        if total > MOST_POINTS:
            distance = ((X - incumbent) ** 2).sum(axis=1)
            distance[np.argsort(-y, kind="stable")[: MOST_POINTS // 2]] = -1.0
            rows = np.sort(np.argsort(distance, kind="stable")[:MOST_POINTS])
            X, y = X[rows], y[rows]
        values = standardise(np.append(y, level), winsorise=False)
        values, best = values[:-1], float(values[-1])
        kernel: Kernel = joint_additive("se") if self._adds(d) else Joint("se")
        self._fit(kernel, X, values, total)
        assert self.theta is not None
        return Posterior.of(kernel, self.theta, X, values, constant_mean=True), best

    def _adds(self, d: int) -> bool:
        return self.additive and d <= MOST_ADDITIVE

    def _fit(self, kernel: Kernel, X: Array, values: Array, total: int) -> None:
        d = X.shape[1]
        prior = found_prior(kernel, d)
        scratch = self.theta is None or total - self.searched >= max(10, total // 5)
        if not scratch and total - self.fitted < max(1, total // 50):
            return
        rows = spread_by_rank(values, max(40, int(np.sqrt(FIT_WORK / d))))
        likelihood = Likelihood(kernel, X[rows], values[rows], prior, constant_mean=True)
        if scratch:
            starts = [prior.start]
            if self._adds(d):  # the model that explains everything by sharp shape has a basin of its own
                sharp = prior.start.copy()
                sharp[d + 1 : 2 * d + 1], sharp[2 * d + 1] = np.log(0.06), -1.0
                starts.append(sharp)
            if self.theta is not None:
                starts.append(self.theta)
            tries = [fit(likelihood, prior, start, [], iterations=12) for start in starts]
            start = min(tries, key=lambda theta: likelihood(theta)[0])
            self.pairs, self.searched = [], total
            self.theta = fit(likelihood, prior, start, self.pairs, iterations=25)
        else:
            assert self.theta is not None
            self.theta = fit(likelihood, prior, self.theta, self.pairs, iterations=6)
        self.fitted = total

    def state(self) -> State:
        return {
            "theta": self.theta,
            "fitted": self.fitted,
            "searched": self.searched,
            "pairs": [np.stack(pair) for pair in self.pairs],
        }

    @classmethod
    def restore(cls, state: State, *, additive: bool) -> Surrogate:
        pairs = [(pair[0], pair[1]) for pair in state["pairs"]]
        return cls(additive, state["theta"], state["fitted"], state["searched"], pairs)


class FoundVariables:
    """The next point in the found variables' coordinates.

    additive   the models have an additive term
    local      a third of the points lie inside a box around the incumbent
    best       every other point comes from a model of the best points alone
    """

    def __init__(self, *, additive: bool = True, local: bool = True, best: bool = True) -> None:
        self.additive, self.local, self.best = additive, local, best
        self.box, self.turn = Box(), 0
        self.forget()

    def forget(self) -> None:
        """Other coordinates or another epoch: fit from scratch."""
        self.of_all, self.of_best = Surrogate(self.additive), Surrogate(self.additive)

    def propose(
        self,
        X: Array,
        y: Array,
        incumbent: Array,
        level: float,
        waiting: Array,
        failed: Array,
        rng: np.random.Generator,
        *,
        blocks: Blocks | None = None,
    ) -> tuple[Array, float, bool]:
        """The next point, its log EI, and whether it lies in the box.

        X (n, d), y (n,) data; `incumbent` (d,) with value `level`; points (p, d) that wait for their value or failed;
        `blocks` the coordinates of each category.
        """
        self.turn += 1
        n, d = X.shape
        if self.best and self.turn % 2 == 0 and n >= 2 * FEW * d:
            rows = np.sort(np.argsort(-y, kind="stable")[: max(FEW * d, int(BEST_SHARE * n))])
            model = self.of_best.posterior(X[rows], y[rows], incumbent, level)
            found = self._search(*model, X, incumbent, waiting, failed, blocks, rng)
            if np.abs(X - found[0]).max(axis=1).min() > SAME_POINT:  # it cannot know that bad points are bad
                return found
        model = self.of_all.posterior(X, y, incumbent, level)
        return self._search(*model, X, incumbent, waiting, failed, blocks, rng)

    def _search(
        self,
        posterior: Posterior,
        best: float,
        X: Array,
        incumbent: Array,
        waiting: Array,
        failed: Array,
        blocks: Blocks | None,
        rng: np.random.Generator,
    ) -> tuple[Array, float, bool]:
        """The point of largest log EI above `best` in one of the three ways, its log EI, and whether in the box."""
        d = len(incumbent)
        avoid = np.concatenate([waiting, failed])
        if len(avoid):
            # What the model expects there: enough not to ask again. A failure among failures is a bad place, one among
            # successes an accident; taking that for bad as well would wall off a good point.
            expected, _ = posterior.predict(avoid)
            bad = np.append(np.zeros(len(waiting)), failure_share(failed, X))
            lies = (1.0 - bad) * expected + bad * float(posterior.y.min())
            posterior = posterior.extended(avoid, np.append(posterior.y, lies))
        low, high = np.zeros(d), np.ones(d)
        way = rng.random()
        local = self.local and 1 / 3 <= way < 2 / 3
        if way < 1 / 3 and d > 2:
            kept = rng.permutation(d)[int(rng.integers(1, max(2, d // 2) + 1)) :]
            low[kept] = high[kept] = incumbent[kept]
        elif local:
            half = 0.5 * self.box.width
            low, high = np.clip(incumbent - half, 0.0, 1.0), np.clip(incumbent + half, 0.0, 1.0)
        each = max(1, min(8, 80 // d))  # of one variable alone, everywhere on its axis
        single = np.repeat(incumbent[None], each * d, axis=0)
        single[np.arange(each * d), np.repeat(np.arange(d), each)] = rng.random(each * d)
        candidates = np.clip(np.concatenate([pool(POOL, incumbent[None], rng), single]), low, high)
        surface = Surface(posterior, log_expected_improvement(best))
        values = surface(candidates)
        chosen, reached = candidates[0], -np.inf
        for start in candidates[np.argsort(-values, kind="stable")[:3]]:
            point, value = climb(surface, start, low, high, iterations=20)
            if value > reached:
                chosen, reached = point, value
        if blocks:
            chosen = decide(surface, chosen, blocks, np.concatenate([X, avoid]), rng)
            reached = float(surface(chosen[None])[0])
        return chosen, reached, local

    def state(self) -> State:
        return {
            "all": self.of_all.state(),
            "best": self.of_best.state(),
            "box": [self.box.width, self.box.successes, self.box.failures],
            "turn": self.turn,
        }

    def restore(self, state: State) -> None:
        self.of_all = Surrogate.restore(state["all"], additive=self.additive)
        self.of_best = Surrogate.restore(state["best"], additive=self.additive)
        self.box, self.turn = Box(*state["box"]), state["turn"]


def failure_share(failed: Array, X: Array, neighbours: int = 5) -> Array:
    """(f,) the share of failures among the evaluations nearest to each failed point; X (n, d) those that succeeded."""
    if len(failed) == 0:
        return np.zeros(0)
    others = np.concatenate([X, failed])
    distance = ((failed[:, None] - others) ** 2).sum(axis=-1)
    distance[np.arange(len(failed)), len(X) + np.arange(len(failed))] = np.inf  # itself
    nearest = np.argsort(distance, axis=1, kind="stable")[:, : min(neighbours, len(others) - 1)]
    share: Array = (nearest >= len(X)).mean(axis=1)
    return share


def stalled(y: Array, patience: int) -> bool:
    """Whether the last `patience` values brought next to nothing, measured against the spread of the good ones.

    A model can hope for long where nothing is: in one run of ten it stayed at Hartmann's second-best optimum.
    """
    if len(y) <= patience:
        return False
    best = np.sort(y)[-max(2, len(y) // 3) :]
    return bool(y.max() - y[:-patience].max() <= LEAST_GAIN * best.std())
