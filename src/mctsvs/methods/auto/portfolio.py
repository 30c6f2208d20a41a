"""What the values tell of the function's shape, and which model of all variables therefore has the next turn.

One model treats all variables alike and knows the shape of a bowl; the other has a lengthscale for each of them.

A challenger: a model with a turn now and then, soon again while its points are good, ever later while they are not.

Its bad points are kept from the other model, which they would mislead: far away from where that one looks, they set a
scale on which what it knows looks like nothing.

Where all variables matter, the model that treats them alike nearly always proposes the better points; but there are
functions, a path past obstacles or the parts of a car, where some matter far more than others. How the values of a few
points rank among all is enough to tell, long before one of them is the best.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from mctsvs.methods.auto import constants as const
from mctsvs.utils.validation import Array

if TYPE_CHECKING:
    from mctsvs.methods.auto.engine import Auto


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
    y = search.history.y
    return search.options.plateaus and len(y) - len(np.unique(y)) >= const.PLATEAUS * max(len(y), const.DESIGN)


def all_matter(search: Auto) -> bool:
    """Whether exact values say so: every change changed them, or nothing was tested and variables are not many."""
    known = search.tested > 0 or len(search.owner) <= const.NOT_MANY
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
