"""How many variables matter, and which, from tests of groups.

A test changes the values of one group of variables of a good point and leaves all others. If the value of the
objective stays the same, no variable of the group matters there; if it changes, at least one does.

How many (`ActiveCount`): with m of V variables active, a fresh random group of size s misses all of them with
probability (1 - m/V)^s. From hits and misses follows a posterior over m, and from it whether finding the variables one
by one is affordable (about m (log2(V/m) + 3/2) tests) or a model of all variables is the better bet.

Which (`Evidence`): with prior probability p0 for every variable, each test is a factor

    no change: all variables of the group are inactive          change: not all of them are inactive

and the marginals of the product are computed by belief propagation, in time proportional to the sizes of the groups.
The next test is the shortest run of the most probable undecided variables that is more likely to hit than not: binary
splitting where one active variable is left in a group, larger groups where none is expected.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from mctsvs.methods.auto import constants as const
from mctsvs.methods.auto.box_corners import Bisection, BoxCorners, Flip, Mask
from mctsvs.methods.auto.local_quadratic import Step
from mctsvs.utils.state import Saved
from mctsvs.utils.validation import Array, Indices


class TestKind(Enum):
    """What a question is for, in the words that people see and in the order in which a run comes to ask them."""

    __test__ = False  # pytest takes a class of this name for one of its own

    DESIGN = "first points"  # what is it like there?
    PROBE = "probing a group"  # does one of these variables, never changed before, matter?
    TEST = "testing a group"  # does one of these variables matter?
    AUDIT = "auditing the rejected"  # do the rejected variables matter after all?
    STEP = "step in the found variables"  # is this better, with other values of the found variables?
    REPEAT = "looking for noise"  # has the same point the same value again?
    CLOSE = "step close to the best point"  # is this better, by a quadratic model around that point?
    ALL = "step in many variables"  # is this better, with other values of all variables not rejected, or found?
    ALIKE = "step in many variables, alike"  # the same by a model that treats them alike
    APART = "step in many variables, told apart"  # the same by a model with a lengthscale for each


@dataclass(frozen=True, eq=False)
class GroupTest:
    """A point to propose and what its value will be compared with; kept until the value is told."""

    kind: TestKind
    x: Array
    variables: Indices  # that were moved to make x
    level: float  # the incumbent's value at the time
    base: Array | None = None  # the incumbent, where x is a change of it that tells whether variables matter
    flip: Flip | None = None  # where x is a corner of a box
    step: Step | None = None  # where x is one of the local arm


class Evidence(Saved):
    """Tests so far, and the probability that each of V variables matters."""

    # fmt: off
    saved = ("prior", "rejected", "hits", "tests", "audits", "reopened", "corners", "bisection", "asleep", "effect",
             "moved", "probability")
    # fmt: on
    prior: float  # p0
    rejected: Mask
    hits: list[Indices]  # groups whose change changed the value
    tests: int = 0
    audits: int = 0  # changes of all rejected variables
    reopened: int = 0  # times that an audit began a search
    corners: BoxCorners | None = None  # where tests are corners of a box
    bisection: Bisection | None = None  # of what an audit found
    asleep: Mask  # variables that do not exist at the incumbent, and were not asked about elsewhere
    effect: Array  # largest change seen when moved alone, objective's units
    moved: Array  # tests that changed the variable
    probability: Array  # under the prior of the last test

    def __init__(self, n_variables: int, prior: float | None = None) -> None:
        self.n_variables = n_variables
        self.prior = 2.0 * self.least_prior if prior is None else prior
        self.rejected, self.hits = np.zeros(n_variables, dtype=bool), []
        self.asleep = np.zeros(n_variables, dtype=bool)
        self.effect, self.moved = np.zeros(n_variables), np.zeros(n_variables)
        self.update()

    @property
    def least_prior(self) -> float:
        return 0.5 * min(0.3, const.EXPECTED / self.n_variables)

    def add(self, group: Indices, change: float, *, hit: bool) -> None:
        """The outcome of one test."""
        if len(group) == 0:  # nothing was changed: an integer or a category rounded back to its old value
            return
        self.tests += 1
        self.moved[group] += 1
        if hit:
            self.hits.append(group)
            if len(group) == 1:
                self.effect[group] = np.maximum(self.effect[group], abs(change))
        else:
            self.rejected[group] = True
            self.hits = [known[~self.rejected[known]] for known in self.hits]
            # a hit that has lost all its variables contradicts a later miss (a plateau): what was seen to act, acts
            self.hits = [known for known in self.hits if len(known)]
        self.update()

    def conclude(self, group: Mask, box: BoxCorners | Bisection) -> None:
        """What a test of the group has proved together with all others of its box, in place of what was known."""
        self.tests += 1
        self.moved[group] += 1
        self.rejected = self.rejected | (box.asked & ~box.live)
        self.hits = [hit for hit in self.hits if len(hit) == 1 and not box.asked[hit[0]]]
        for cell, effect in box.groups():
            self.hits.append(cell)
            if len(cell) == 1:
                self.effect[cell] = np.maximum(self.effect[cell], effect)
        self.update()

    def would_test(self, group: Indices) -> bool:
        """Whether a change of this group, not chosen here, is a fair test: none of it found, and no hit all but sure.

        A sure hit is no news, and equal values in spite of it are chance: changes that cancel.
        """
        probability = self.probability[group]
        return not (probability > const.FOUND).any() and float(np.log1p(-probability).sum()) > np.log(1.0 - const.FOUND)

    def expect(self, active: float) -> None:
        """Set the prior to a number of active variables."""
        self.prior = float(np.clip(active / self.n_variables, self.least_prior, 0.5))
        self.update()

    def learn_prior(self) -> None:
        """The prior that the posterior suggests (one step of expectation maximisation, with half the first guess)."""
        active = float(self.probability.sum()) + 0.5 * const.EXPECTED
        self.prior = float(np.clip(active / (1.5 * self.n_variables), self.least_prior, 0.9))

    def update(self) -> None:
        """Loopy belief propagation on log odds; the cap keeps it from getting stuck on a wrong variable."""
        base = np.full(self.n_variables, np.log(self.prior / (1.0 - self.prior)))
        groups = [group for group in self.hits if len(group) > 1]
        for group in self.hits:
            base[group] += const.CERTAIN if len(group) == 1 else 0.0
        top = np.maximum(base, const.GROUP_CAP)
        gathered = np.zeros(self.n_variables)
        messages = [np.zeros(len(group)) for group in groups]
        for _ in range(const.SWEEPS if groups else 0):
            for i, group in enumerate(groups):
                cavity = np.minimum(base[group] + gathered[group] - messages[i], top[group])
                log_inactive = -np.logaddexp(0.0, cavity)
                others_inactive = np.exp(log_inactive.sum() - log_inactive)
                # if all others are inactive, the hit is this variable's; otherwise it says nothing about it
                message = -np.log(np.maximum(1.0 - others_inactive * -np.expm1(-const.CERTAIN), 1e-14))
                gathered[group] += message - messages[i]
                messages[i] = message
        odds = np.clip(np.minimum(base + gathered, top), -50.0, 50.0)
        odds[self.rejected] = -50.0
        self.probability = 1.0 / (1.0 + np.exp(-odds))

    @property
    def found(self) -> Indices:
        return np.flatnonzero((self.probability > const.FOUND) & ~self.rejected)

    @property
    def undecided(self) -> float:
        """Expected number of active variables not found yet."""
        return float(self.probability.sum() - self.probability[self.found].sum())

    def next_group(self, busy: Indices, rng: np.random.Generator) -> Indices:
        """The variables to change next, none of them in a test under way; empty if nothing is left to test."""
        live = ~self.rejected
        live[self.found] = False
        live[busy] = False
        candidates = np.flatnonzero(live)
        if len(candidates) == 0:
            return candidates
        tie_break = 1e-9 * rng.random(len(candidates))
        candidates = candidates[np.argsort(-(self.probability[candidates] + tie_break))]
        log_miss = np.cumsum(np.log1p(-np.minimum(self.probability[candidates], 1.0 - 1e-12)))
        size = int(np.searchsorted(-log_miss, np.log(2.0))) + 1
        return candidates[:size]


def cost(active: Array, n_variables: int) -> Array:
    """Tests needed to find so many variables."""
    return np.asarray(const.COST * active * (np.log2(np.maximum(n_variables / active, 1.0)) + 1.5))


class ActiveCount(Saved):
    """Posterior of the number m of active variables; log-uniform before the first probe."""

    saved = ("outcomes", "limit")
    outcomes: list[tuple[int, bool]]  # size of each group, and whether it hit
    limit: int  # variables that tests can find

    def __init__(self, n_variables: int) -> None:
        self.n_variables, self.outcomes = n_variables, []
        self.m: Indices = np.unique(np.round(np.geomspace(1, n_variables, 200)).astype(np.intp))
        self.afford(const.AFFORDABLE, least=const.REACHABLE)

    def afford(self, tests: float, least: int = 0) -> None:
        """So many tests may be spent; at least so many variables are within reach."""
        every = np.arange(1.0, self.n_variables + 1)
        within = every[cost(every, self.n_variables) <= tests].max(initial=least)
        self.limit = int(min(max(self.n_variables / 4, 6), within))

    def add(self, size: int, *, hit: bool) -> None:
        self.outcomes.append((size, hit))

    @property
    def weights(self) -> Array:
        """Posterior probability of each m."""
        width = np.gradient(self.m.astype(np.float64)) if len(self.m) > 1 else np.ones(1)
        log_weight: Array = np.log(width) - np.log(self.m)
        for size, hit in self.outcomes:
            log_miss = size * np.log1p(-np.minimum(self.m / self.n_variables, 1.0 - 1e-9))
            log_weight = log_weight + (np.log(1e-12 - np.expm1(log_miss)) if hit else log_miss)
        weights: Array = np.exp(log_weight - log_weight.max())
        weights /= weights.sum()
        return weights

    @property
    def typical(self) -> float:
        """Geometric mean of m."""
        return float(np.exp(self.weights @ np.log(self.m)))

    @property
    def probability_dense(self) -> float:
        """That more variables matter than tests can find."""
        return float(self.weights[self.m > self.limit].sum())

    @property
    def decided(self) -> bool:
        n, sure = len(self.outcomes), not const.SURE_SPARSE <= self.probability_dense <= const.SURE_DENSE
        return n >= const.MOST_PROBES or (n >= const.LEAST_PROBES and sure)

    @property
    def next_size(self) -> int:
        """A group as likely to hit as to miss."""
        density = min(max(self.typical, 4.0) / self.n_variables, 0.5)
        size = np.ceil(np.log(0.5) / np.log1p(-density))
        return int(np.clip(size, 1, max(1, self.n_variables // 8)))
