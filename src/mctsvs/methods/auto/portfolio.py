"""Which surrogate proposes next, from what the values tell of the function's shape.

One model of all variables treats them alike and knows the shape of a bowl; the other has a lengthscale for each of
them, and finds the few that matter.

Without noise, `Challenger`: the second has a turn now and then, soon again while its points are good, ever later while
they are not. Where all variables matter, the first nearly always proposes the better points; but there are functions, a
path past obstacles or the parts of a car, where some matter far more than others. How the values of a few points rank
among all is enough to tell, long before one of them is the best. Its bad points are kept from the first model, which
they would mislead: far away from where that one looks, they set a scale on which what it knows looks like nothing.

Under noise, `ModelSelection`: no test tells whether few variables matter or many, so the model that predicts better
does. Both are fitted without a part of the points and predict it. They take turns at first; later only one of them goes
on, or both where nothing is clear and there are not many variables. They are compared early: once a search has gathered
its points around an optimum, either predicts what lies between them.

In either search `in_turn` asks a model of all points and one of the best points alone. Bad points set a scale on which
the differences between good ones look like nothing; but a model of good points cannot know that bad ones are bad, and
now and then asks for one again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from mctsvs.gp.kernels import Kernel
from mctsvs.gp.likelihood import Likelihood
from mctsvs.gp.model import KERNELS, fit
from mctsvs.gp.posterior import Posterior
from mctsvs.gp.priors import PRIORS
from mctsvs.gp.standardize import standardise
from mctsvs.methods.auto import constants as const
from mctsvs.utils.state import Saved
from mctsvs.utils.validation import Array

if TYPE_CHECKING:
    from mctsvs.methods.auto.engine import Auto

M = TypeVar("M")


@dataclass(frozen=True, eq=False)
class Candidate:
    """A point worth evaluating."""

    x: Array
    promise: float = np.inf  # its log EI, where a model expects something of it
    local: bool = False  # inside the trust region


def in_turn(of_best: M | None, of_all: M, ask: Callable[[M], Candidate], known: Array) -> Candidate:
    """What the model of the best gives, where it has its turn, unless that is one of the points (n, d) known."""
    if of_best is not None:
        candidate = ask(of_best)
        if np.abs(known - candidate.x).max(axis=1).min() > const.SAME_POINT:
            return candidate
    return ask(of_all)


def turn_of_alike(search: Auto) -> bool:
    """Whether a step in all variables is that of the model which treats them alike.

    Where all matter always, beside the turns of the challenger; before the first of these on every other turn if the
    best point is at the border: no bowl has its bottom there. Where some variables do nothing, on every other turn.
    Never where values go in steps. Under noise nobody knows what matters, and the model that predicts better is chosen.
    """
    if not search.options.alike or in_steps(search) or search.noisy is None:
        return False
    if search.noisy:
        return search.rivalry.alike(search.turn, search.history.X, search.history.y)
    halved = at_border(search) and not (search.options.challenger and search.asked >= const.CHALLENGE)
    return (all_matter(search) and not halved) or search.turn % 2 == 1


def challenged(search: Auto, *, first: bool = False) -> bool:
    """Whether the model that tells variables apart has this turn: its points have been good, or shall show if they are.

    In the first steps where variables are many. Later where all matter (elsewhere it has its turns in any case), if the
    best point is at the border or nothing has been gained for a while; on every other turn if for long.
    """
    after, every = (const.FIRST_CHALLENGE, const.FIRST_EVERY) if first else (const.CHALLENGE, const.EVERY)
    wanted = len(search.owner) > const.NOT_MANY if first else all_matter(search)
    exact = search.noisy is False and not search.history.constrained and not in_steps(search)
    if not (search.options.challenger and search.options.alike and wanted and exact and search.asked >= after):
        return False
    if first:
        return search.challenger.due(search.asked, every)
    idle = without_gain(search)
    needed, stalled = idle >= const.QUIET or at_border(search), idle >= const.STALLED
    return search.challenger.due(search.asked, every, needed=needed, stalled=stalled)


def found_alike(search: Auto) -> bool:
    """Whether a step in the found variables is that of the model which treats them alike: always where they are many.

    On every other turn where they are not quite as many, or nothing has been gained for long. Never where some must
    give way to known constraints, nor in a fresh epoch: this model would lead back to the best point of all.
    """
    found, epoch = len(search.found_model.variables), search.found_model.epoch
    free = search.region is None or not search.region.constrained
    fresh = epoch > 0 and search.level < float(search.history.y.max())
    if not (search.options.alike and free) or search.history.constrained or fresh:
        return False
    always = found > const.MOST_ADDITIVE and without_gain(search) < const.STALLED
    return always or (found > const.SEVERAL and search.turn % 2 == 1)


def without_gain(search: Auto) -> int:
    """Evaluations since the best one."""
    return len(search.history.y) - 1 - int(np.argmax(search.history.y))


def in_steps(search: Auto) -> bool:
    """Whether values repeat so often that a variable which matters may well change nothing.

    After tests, which repeat the value where nothing that matters was changed, this also says that many of them did.
    """
    y = search.history.distinct
    return search.options.plateaus and len(y) - len(np.unique(y)) >= const.PLATEAUS * max(len(y), const.DESIGN)


def all_matter(search: Auto) -> bool:
    """Whether exact values say so: every change changed them, or nothing was tested and variables are not many."""
    known = search.tested > 0 or (len(search.owner) <= const.NOT_MANY and not search.fails_mostly)
    return search.noisy is False and known and not search.evidence.rejected.any()


def at_border(search: Auto) -> bool:
    """Whether several coordinates of the best point are at an end of their range."""
    if search.incumbent is None or not search.options.border:
        return False
    x = search.incumbent[search.continuous]
    at_end = np.minimum(x, 1.0 - x) <= const.SAME_POINT
    return int(at_end.sum()) >= max(const.AT_END, const.BORDER * len(x))


def no_shape(search: Auto) -> bool:
    """Whether exact values show no shape at all that the model knows, and its steps gain nothing."""
    known = search.options.closer and search.noisy is False and not search.history.constrained
    return known and search.all_model.closer.on and len(search.owner) <= const.WIDEST_MODEL


@dataclass
class Challenger:
    """When the model has its next turn, in evaluations."""

    every: int = 0  # from one turn to the next, while its points are good
    wait: int = 0  # from one turn to the next, as it is now
    last: int = 0  # turn, or the evaluation before which its value was told
    bad: list[int] = field(default_factory=list)  # proposal ids of its points that are among the worse half

    @property
    def next(self) -> int:
        return self.last + self.wait

    def due(self, evaluated: int, every: int, *, needed: bool = True, stalled: bool = False) -> bool:
        """Whether it is its turn.

        Only where it is `needed`; where nothing is gained for long (`stalled`), on every other turn. Another rhythm
        begins at once.
        """
        if every != self.every:
            self.every = self.wait = every
            self.last = evaluated - every
        if not needed or evaluated < (min(self.next, self.last + 2) if stalled else self.next):
            return False
        self.last = evaluated
        return True

    def learn(self, proposal_id: int, y: float, values: Array, evaluated: int) -> None:
        """From the value of its point, the last of those evaluated; NaN is that of a point that failed."""
        better = float(np.mean(values > y)) if np.isfinite(y) else 1.0
        self.wait = self.every if better <= const.GOOD else min(2 * self.wait, const.LONGEST_WAIT)
        if better > const.BAD:
            self.bad.append(proposal_id)
        self.last = evaluated - 1


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
