"""What the values tell of the function's shape, and which model of all variables therefore has the next turn.

One model treats all variables alike and knows the shape of a bowl; the other has a lengthscale for each of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mctsvs.default import constants as const

if TYPE_CHECKING:
    from mctsvs.default.engine import EvidenceSearch


def turn_of_alike(search: EvidenceSearch) -> bool:
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


def challenged(search: EvidenceSearch, *, first: bool = False) -> bool:
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


def found_alike(search: EvidenceSearch) -> bool:
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


def without_gain(search: EvidenceSearch) -> int:
    """Evaluations since the best one."""
    return len(search.history.y) - 1 - int(np.argmax(search.history.y))


def in_steps(search: EvidenceSearch) -> bool:
    """Whether values repeat so often that a variable which matters may well change nothing.

    After tests, which repeat the value where nothing that matters was changed, this also says that many of them did.
    """
    y = search.history.y
    return search.options.plateaus and len(y) - len(np.unique(y)) >= const.PLATEAUS * max(len(y), const.DESIGN)


def all_matter(search: EvidenceSearch) -> bool:
    """Whether exact values say so: every change changed them, or nothing was tested and variables are not many."""
    known = search.tested > 0 or len(search.owner) <= const.NOT_MANY
    return search.noisy is False and known and not search.evidence.rejected.any()


def at_border(search: EvidenceSearch) -> bool:
    """Whether several coordinates of the best point are at an end of their range."""
    if search.incumbent is None or not search.options.border:
        return False
    x = search.incumbent[search.continuous]
    at_end = np.minimum(x, 1.0 - x) <= const.SAME_POINT
    return int(at_end.sum()) >= max(const.AT_END, const.BORDER * len(x))


def no_shape(search: EvidenceSearch) -> bool:
    """Whether exact values show no shape at all that the model knows, and its steps gain nothing."""
    known = search.options.closer and search.noisy is False and not search.history.constrained
    return known and search.all_model.closer.on and len(search.owner) <= const.WIDEST_MODEL
