"""Questions whether variables matter: changes of a good point, or corners of a box; and what the answers say.

Corners need fewer tests, but every pair of equal values is believed. So where values repeat (plateaus), or where
constraints move points, the incumbent is changed instead, and only the variables that moved are judged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mctsvs.methods.auto import constants as const
from mctsvs.methods.auto.box_corners import Bisection, BoxCorners, Flip, Mask
from mctsvs.methods.auto.evidence import GroupTest, TestKind
from mctsvs.methods.base import Observation, beside
from mctsvs.utils.validation import Array, Indices

if TYPE_CHECKING:
    from mctsvs.methods.auto.engine import Auto


def probe(search: Auto, group: Indices, waiting: Array) -> GroupTest:
    """Variables never changed before, changed."""
    evidence = search.evidence
    if evidence.corners is None and not search.count.outcomes and corners_fit(search):
        evidence.corners = box(search, waiting)
    if evidence.corners is None:
        return change(search, group, TestKind.PROBE)
    return flip(search, evidence.corners.with_group(mask_at(search, group)), TestKind.PROBE)


def next_test(search: Auto) -> GroupTest | None:
    """Of variables that are not in a test under way, if there is anything to ask about them."""
    evidence, busy = search.evidence, search.busy
    if evidence.bisection is not None:
        asked = evidence.bisection.next(search.rng) if not len(busy) else None
        if asked is not None or len(busy):
            return None if asked is None else flip(search, asked, TestKind.TEST)
    elif evidence.corners is not None:
        asked = evidence.corners.next(mask_at(search, busy), search.count.next_size, search.rng)
        if asked is not None:
            return flip(search, asked, TestKind.TEST)
        if len(busy):
            return None
    group = evidence.next_group(busy, search.rng)
    return change(search, group, TestKind.TEST) if len(group) else None


def wake(search: Auto) -> bool:
    """Whether there are variables to be asked about that did not exist at earlier incumbents.

    Those that do not exist at this one count as rejected for the time being: they cost no test and enter no model.
    """
    region, evidence = search.region, search.evidence
    if region is None or not region.space.conditional or search.incumbent is None:
        return False
    there = region.active(search.incumbent[None])[0]
    woken = evidence.asleep & there
    evidence.asleep = ~there & (evidence.moved == 0.0)
    if (evidence.asleep & ~evidence.rejected).any() or woken.any():
        evidence.rejected = (evidence.rejected | evidence.asleep) & ~woken
        evidence.update()
    return bool(woken.any())


def change(search: Auto, group: Indices, kind: TestKind) -> GroupTest:
    """The incumbent with other values of the group, half of them anywhere, half pushed."""
    assert search.incumbent is not None
    incumbent, region = search.incumbent, search.region
    x = _changed(search, incumbent, group)
    if region is None or not region.constrained:
        return GroupTest(kind, x, group, search.level, incumbent)
    x = region.spread(x, incumbent, group)
    moved = np.intersect1d(search.changed_variables(x, incumbent, const.STUCK), group)
    if 2 * len(moved) >= len(group):
        return GroupTest(kind, x, group, search.level, incumbent)
    # constraints leave the group no room at the incumbent: change the point that leaves it most
    row = int(np.argmax(region.room(search.history.X, group)))
    base = search.history.X[row].copy()
    x = region.spread(_changed(search, base, group), base, group)
    return GroupTest(kind, x, group, float(search.history.y[row]), base)


def _changed(search: Auto, base: Array, group: Indices) -> Array:
    """The point (D,) with other values of the group."""
    coordinates, rng = search.coordinates_of(group), search.rng
    x, k = base.copy(), len(coordinates)
    anywhere, pushed = rng.random(k), (x[coordinates] + const.LEAST_PUSH + const.PUSHES * rng.random(k)) % 1.0
    x[coordinates] = np.where(rng.random(k) < 0.5, anywhere, pushed)
    if search.lattice is not None:
        x[coordinates] = search.lattice.among(coordinates).changed(x[coordinates], base[coordinates], rng)
    return x


def flip(search: Auto, asked: Flip, kind: TestKind) -> GroupTest:
    """A corner of the box."""
    corners = search.evidence.bisection or search.evidence.corners
    assert corners is not None
    x = corners.point(asked.mask, search.owner)
    return GroupTest(kind, x, np.flatnonzero(asked.group), asked.level, corners.base, asked)


def corners_fit(search: Auto) -> bool:
    """Whether equal values can be believed, and points stay where they are put."""
    if not search.options.corners or (search.region is not None and search.region.constrained):
        return False
    plateaus = bool((np.diff(np.sort(search.history.distinct)) == 0.0).any())
    return not plateaus and not search.history.constraints.size


def box(search: Auto, waiting: Array) -> BoxCorners:
    """From the incumbent as far as the model of all variables would go, but not too near or too far."""
    assert search.incumbent is not None
    base, rng, n = search.incumbent.copy(), search.rng, search.dimension
    way = search.step_in_all(waiting, kind=TestKind.ALIKE).x - base
    sign = np.where(np.abs(way) < 1e-9, np.where(rng.random(n) < 0.5, -1.0, 1.0), np.sign(way))
    # sides differ: equal changes of variables that are alike would have equal values
    step = np.clip(np.abs(way), *const.SIDES) * (1.0 + const.JITTER * (rng.random(n) - 0.5))
    other = beside(base, sign * step)
    if search.lattice is not None:
        other = search.lattice.changed(other, base, rng)
    return BoxCorners.between(base, other, ~search.evidence.asleep, search.level)


def learn(search: Auto, question: GroupTest, observation: Observation) -> None:
    """From the value of a probe or a test."""
    assert question.base is not None
    changed = search.changed_variables(observation.x, question.base)
    hit = search.changes(question, observation)
    if question.flip is not None:
        search.tested += 1
        if question.kind is TestKind.PROBE:
            search.count.add(len(question.variables), hit=hit)
        _learn_corner(search, question.flip, question.base, observation)
    elif len(changed):
        search.tested += 1
        search.evidence.add(changed, observation.y - question.level, hit=hit)
        if question.kind is TestKind.PROBE:
            search.count.add(len(changed), hit=hit)
        else:
            search.evidence.learn_prior()


def _learn_corner(search: Auto, asked: Flip, base: Array, observation: Observation) -> None:
    evidence, tolerance = search.evidence, search.tolerance
    box = evidence.bisection or evidence.corners
    if box is None or not np.array_equal(box.base, base):  # an answer that comes late, of an earlier box
        return
    if isinstance(box, BoxCorners):
        mask = box.seen(asked.mask, observation.x, search.owner)
        box.reject(evidence.rejected, tolerance)
        box.add(mask, observation.y, tolerance, asked.split)
    else:
        box.add(asked.mask, observation.y, tolerance)
    evidence.conclude(asked.group, box)


def compare(search: Auto, observation: Observation) -> None:
    """A point of another worker or run with those of equal value that are near: where they differ, nothing acts.

    Near, because among few choices quite different points have equal values by chance.
    """
    history, evidence = search.history, search.evidence
    if history.constrained:  # equal merits say little about constraints
        return
    for row in np.flatnonzero(np.abs(history.y - observation.y) <= search.tolerance)[-const.TWINS :]:
        changed = search.changed_variables(history.X[row], observation.x)
        if 0 < len(changed) <= len(search.everything) // 4 and evidence.would_test(changed):
            evidence.add(changed, 0.0, hit=False)


def abandon(search: Auto, question: GroupTest) -> None:
    """A question whose evaluation failed."""
    if search.evidence.corners is not None and question.flip is not None:
        search.evidence.corners.abandon(question.flip)


def reopen(search: Auto, question: GroupTest, observation: Observation) -> bool:
    """Begin a search among the rejected variables, some of which act after all; unless there were enough of these.

    It splits between the audit's own two points, which are known to differ.
    """
    evidence = search.evidence
    constrained = search.region is not None and search.region.constrained
    if evidence.reopened >= const.REOPENINGS or constrained or search.gives_up:
        return False
    assert question.base is not None
    asked = mask_at(search, search.changed_variables(observation.x, question.base))
    evidence.reopened, evidence.audits = evidence.reopened + 1, 0
    values = (question.level, observation.y)
    evidence.bisection = Bisection.between(question.base.copy(), np.array(observation.x), asked, values)
    evidence.rejected = evidence.rejected & ~asked
    evidence.conclude(asked, evidence.bisection)
    return True


def mask_at(search: Auto, variables: Indices) -> Mask:
    """(V,)"""
    mask = np.zeros(len(search.everything), dtype=bool)
    mask[variables] = True
    return mask
