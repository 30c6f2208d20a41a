"""Evaluations that prove which variables act: what `explain=` spends, and what `Study.explain` asks for.

What the search has evaluated proves most of it already (`active_variables.py`). The rest is asked in this order:

    repeat      the best point again, where no point was evaluated twice: are values exact at all?
    drawn       where the method's own tests have found none: one variable of the best point is changed, to the farther
                end of its range: six drawn at random, or three where few evaluations are kept, while all of these act
    ranked      the same for those that the tests have found, or else for those that a model ranks first, until three in
                a row change little
    halved      two points differ in value, but in no variable known to act: a point half way between them
    joint       all variables not known to act are changed at once, at the best point and at others far from it

What to ask next follows from the trials alone, so that a restored run asks the same. The evaluations of a joint change
are counted: a variable that never changed anything is called unchanged, not inactive. Under noise the best point and
each changed point are evaluated several times, and differences are tested.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from mctsvs.methods.history import rounding
from mctsvs.optimizer.active_variables import (
    ALL,
    Evidence,
    Points,
    VariableStatus,
    VariableStatuses,
    rows_of,
    summary_of,
)
from mctsvs.optimizer.trial import Trial
from mctsvs.space import Space
from mctsvs.utils.formatting import listed
from mctsvs.utils.validation import Array, Indices

if TYPE_CHECKING:
    from mctsvs.optimizer.unit_cube import UnitCubeOptimizer

SOURCE = "explain"  # of the trials
SHARE, MOST = 0.06, 40  # of a budget, and evaluations at most, that explain where nothing else is said
LITTLE, MISSES = 0.01, 3  # of the range of values, and changes in a row that were less: then the ranking has ended
DRAWN, FEWEST_DRAWN = 6, 3  # variables drawn at random; of six one may not act where it is said that all do
BASES = 3  # evaluated points far from the best one, at which all others are changed jointly
NOISY_BASE, NOISY_CHANGE = 5, 2  # evaluations of the best point and of each changed one, under noise
MOST_RANKED, ELSEWHERE = 500, 8  # variables that a model ranks, and points beside the best one where it is asked
NEAR_BEST = 0.01  # of the range of values, added to the distance from the best before its logarithm is taken
DIGITS = 6  # of a score: variables that are alike keep their order
GRID = np.linspace(0.0, 1.0, 5)


class Role(IntEnum):
    """What a trial was for; kept as its `iteration`."""

    REPEAT = 1
    RANKED = 2
    DRAWN = 3
    HALVED = 4
    JOINT = 5


PURPOSES = {
    Role.REPEAT: "measuring again",
    Role.RANKED: "changing one variable",
    Role.DRAWN: "changing one variable drawn at random",
    Role.HALVED: "looking for the variable that acts",
    Role.JOINT: "changing all other variables",
}


@dataclass(frozen=True, eq=False)
class Question:
    """A point to evaluate, and the variables in which it differs from the one it is compared with."""

    role: Role
    unit: Array
    variables: Indices


class Explanation:
    """The questions of one run, and what their answers say."""

    def __init__(self, core: UnitCubeOptimizer) -> None:
        self.core = core
        self._evidence: tuple[tuple[int, bool | None], Evidence] | None = None
        self._ranking: tuple[tuple[int, ...], Indices] | None = None

    @property
    def asked(self) -> list[Trial]:
        return [t for t in self.core.trials.all if t.source == SOURCE]

    @property
    def evidence(self) -> Evidence:
        """Of all trials told so far."""
        core = self.core
        key = len(core.trials.all) - len(core.trials.pending), core.noisy
        if self._evidence is None or self._evidence[0] != key:
            told = self._told()
            noise = np.array([core.noise if t.noise is None else t.noise for t in told], dtype=np.float64)
            numbers = np.array([t.number for t in told], dtype=np.intp)
            points = Points.of(core.space, *self._data(told), noise if core.noisy else None, numbers)
            self._evidence = key, Evidence(points, exact=core.noisy is False)
        return self._evidence[1]

    def next(self) -> Question | None:
        """The next question; None if there is none, or none before those asked are answered."""
        core = self.core
        if core.trials.best is None or not core.trials.best.has_value:
            return None
        if core.noisy is None:
            return self._repeat()
        if core.noisy:
            return self._under_noise()
        return self._drawn() or self._ranked() or self._jointly()

    def _repeat(self) -> Question | None:
        """The best point again; three times where values tie, which noise in steps may do by chance."""
        values = [t.value for t in self.core.trials.all if t.has_value and t.source != SOURCE]
        needed = 1 if len(set(values)) == len(values) else 3
        best, waiting = self.core.trials.best, self.core.trials.pending.values()
        if best is None or len(self._of(Role.REPEAT)) >= needed:
            return None
        if any(t.source == SOURCE or np.array_equal(t.unit, best.unit) for t in waiting):
            return None
        return Question(Role.REPEAT, best.unit.copy(), self.core.everything)

    def _ranked(self) -> Question | None:
        """One variable of the best point changed: those found by tests, or the first of the ranking."""
        found = self.core.engine.found()
        if found is not None:
            return self._change_one(Role.RANKED, found)
        return None if self._ended else self._change_one(Role.RANKED, self.ranking)

    def _change_one(self, role: Role, candidates: Indices) -> Question | None:
        best = self.core.trials.best
        assert best is not None
        asked = {int(t.variables[0]) for t in self._of(Role.RANKED, Role.DRAWN)}
        for v in candidates:
            if not self.evidence.active[v] and int(v) not in asked:
                question = self._changed(role, best.unit, np.array([v]))
                if question is not None:
                    return question
        return None

    @property
    def _ended(self) -> bool:
        """Whether the last variables of the ranking changed little, or variables drawn at random change as much."""
        share = self.evidence.share.max(axis=1)
        told = [share[t.variables[0]] for t in self._of(Role.RANKED) if t.value is not None]
        drawn = [share[t.variables[0]] for t in self._of(Role.DRAWN) if t.value is not None]
        alike = self.dense and (not drawn or float(np.median(drawn)) > LITTLE)
        return (len(told) >= MISSES and max(told[-MISSES:]) <= LITTLE) or alike

    @property
    def draws(self) -> int:
        """How many variables are drawn at random: six, or three where fewer evaluations are kept."""
        kept = self.core.kept
        return DRAWN if kept >= 4 * DRAWN else FEWEST_DRAWN if kept > FEWEST_DRAWN else 0

    @property
    def _draws(self) -> list[bool]:
        """Whether the variables drawn at random act, as far as answered."""
        return [bool(self.evidence.active[t.variables[0]]) for t in self._of(Role.DRAWN) if t.value is not None]

    @property
    def _drawn_out(self) -> bool:
        """Whether further draws would say nothing new."""
        return len(self._of(Role.DRAWN)) >= self.draws or self._draws.count(False) > self.draws // DRAWN

    @property
    def dense(self) -> bool:
        """Whether five of six variables drawn at random act, or three of three.

        Then, with 95 % confidence, at least four in ten of all variables act.
        """
        drawn = self._draws
        enough = len(drawn) >= FEWEST_DRAWN and sum(drawn) >= self.draws - self.draws // DRAWN > 0
        return enough or bool(self.evidence.active.all())

    def _drawn(self) -> Question | None:
        """A variable drawn at random, where tests have not told which act, until one does not act."""
        if self.core.engine.found() is not None or self._drawn_out or self.dense:
            return None
        order = np.random.default_rng(self.core.known.seed).permutation(len(self.core.space))
        return self._change_one(Role.DRAWN, order)

    def _jointly(self) -> Question | None:
        """A point between two that differ in no variable known to act; or all such variables changed at once."""
        if self.dense or any(t.value is None for t in self.asked):
            return None
        return self._halved() or self._joint()

    def _halved(self) -> Question | None:
        pair = self.evidence.unresolved(LITTLE)
        if pair is None:
            return None
        units = [self._unit(row) for row in pair]
        moved = np.flatnonzero(self.evidence.changed(*pair))
        half = self._likely_half(moved)
        for base, other in (units, units[::-1]):
            point = base.copy()
            coordinates = self._coordinates(half)
            point[coordinates] = other[coordinates]
            if self.core.region.contains(point) and point not in self.core.known:
                return Question(Role.HALVED, point, half)
        return None

    def _likely_half(self, variables: Indices) -> Indices:
        """Part of the variables that contains what acts about as likely as not: the first of the ranking weigh more.

        One half of all weight is as 1, 1/2, 1/3, ..., the other half even: a bad ranking costs one question more.
        """
        V = len(self.ranking)
        place = np.empty(V)
        place[self.ranking] = 1.0 + np.arange(V)
        order = variables[np.argsort(place[variables], kind="stable")]
        weight = np.cumsum(1.0 / (place[order] * (1.0 / place).sum()) + 1.0 / V)
        return np.asarray(order[: max(1, int(np.searchsorted(weight, 0.5 * weight[-1], side="right")))])

    def _joint(self) -> Question | None:
        rest = np.flatnonzero(~self.evidence.active)
        done = len(self._of(Role.JOINT))
        bases = self._bases()
        if done >= len(bases) or not len(rest):
            return None
        return self._changed(Role.JOINT, bases[done], rest, anywhere=done == 1)

    def _bases(self) -> list[Array]:
        """The best point twice, then evaluated points that differ from it, and each other, in the active variables."""
        evidence, best = self.evidence, self.core.trials.best
        assert best is not None
        X = np.array([self.core.trials.all[number].unit for number in evidence.points.numbers])
        own = X[:, self._coordinates(np.flatnonzero(evidence.active))]
        distance = np.abs(own - best.unit[self._coordinates(np.flatnonzero(evidence.active))]).sum(axis=1)
        bases = [best.unit, best.unit]
        while len(bases) < 2 + BASES and distance.max(initial=0.0) > 0.0:
            row = int(np.argmax(distance))
            bases.append(X[row])
            distance = np.minimum(distance, np.abs(own - own[row]).sum(axis=1))
        return bases

    def _changed(self, role: Role, base: Array, variables: Indices, *, anywhere: bool = False) -> Question | None:
        """The base with other values of variables that exist there: the farther end of the range, or anywhere."""
        core = self.core
        there = core.space.active(base)
        variables = variables[there[variables]]
        point = base.copy()
        rng = np.random.default_rng([core.known.seed, len(core.trials.all)])
        for v in variables:
            own = core.space.offsets[v], core.space.offsets[v + 1]
            if own[1] - own[0] > 1:
                choices = np.setdiff1d(np.arange(own[1] - own[0]), int(np.argmax(base[slice(*own)])))
                point[slice(*own)] = 0.0
                point[own[0] + int(rng.choice(choices))] = 1.0
            else:
                point[own[0]] = rng.random() if anywhere else float(base[own[0]] < 0.5)
        point = core.region.spread(point, base, variables) if core.region.constrained else core.space.snap(point)
        if point in core.known:
            return None
        return Question(role, point, variables)

    def _under_noise(self) -> Question | None:
        """The point recommended until its mean is known, then one variable of it after another, some times each."""
        core, repeats = self.core, self._of(Role.REPEAT)
        base = repeats[-1].unit if repeats else core.recommended().unit
        if sum(np.array_equal(t.unit, base) for t in repeats) < NOISY_BASE:
            return Question(Role.REPEAT, base.copy(), core.everything)
        singles = self._of(Role.RANKED)
        if singles and sum(np.array_equal(t.unit, singles[-1].unit) for t in singles) < NOISY_CHANGE:
            return Question(Role.RANKED, singles[-1].unit.copy(), singles[-1].variables)
        asked = {int(t.variables[0]) for t in singles}
        for v in self.ranking:
            question = None if int(v) in asked else self._changed(Role.RANKED, base, np.array([v]))
            if question is not None:
                return question
        return None

    @property
    def ranking(self) -> Indices:
        """(V,) all variables, the first to be asked about first: as ranked when the first question was asked."""
        begun = min((t.number for t in self.asked if t.iteration != Role.REPEAT), default=len(self.core.trials.all))
        return self._rank([t for t in self._told() if t.number < begun and t.source != SOURCE])

    def _rank(self, told: list[Trial]) -> Indices:
        """(V,) all variables, those first whose change at the best point changes the model's mean most."""
        trials, key = self.core.trials, tuple(t.number for t in told)
        if self._ranking is None or self._ranking[0] != key:
            order = np.arange(len(self.core.space))
            if told:
                best = max(told, key=lambda t: (t.has_value, t.feasible, trials.score(t)))
                order = rank(self.core.space, *self._data(told), best.unit, -trials.sign)
            self._ranking = key, order
        return self._ranking[1]

    def _told(self) -> list[Trial]:
        return [t for t in self.core.trials.all if t.value is not None and not t.failed]

    def _data(self, told: list[Trial]) -> tuple[Array, Array]:
        """(n, D) points, and (n, m) values with measured constraints."""
        names = self.core.trials.names
        own = self.core.trials.outputs
        outputs = [[*own(t), *((t.constraints or {}).get(name, np.nan) for name in names)] for t in told]
        units = np.array([t.unit for t in told]).reshape(len(told), self.core.space.n_coordinates)
        width = len(self.core.trials.output_names) + len(names)
        return units, np.array(outputs, dtype=np.float64).reshape(len(told), width)

    def _of(self, *roles: Role) -> list[Trial]:
        return [t for t in self.asked if t.iteration in roles]

    def _unit(self, row: int) -> Array:
        return self.core.trials.all[int(self.evidence.points.numbers[row])].unit

    def _coordinates(self, variables: Indices) -> Indices:
        return np.flatnonzero(np.isin(self.core.space.owner, variables))

    def statuses(self, *, ranked: bool = False) -> VariableStatuses:
        """A row for each variable, the largest effect first; `ranked` fits a model to rank them."""
        place = {int(v): i for i, v in enumerate(self._rank(self._told()), 1)} if ranked else None
        rows = rows_of(self.core.space, (*self.core.trials.output_names, *self.core.trials.names), self.evidence, place)
        return VariableStatuses(rows, self._dense(rows) or summary_of(rows, self.core.noisy))

    def _dense(self, rows: list[VariableStatus]) -> str:
        """What is said where nearly all variables act; empty elsewhere."""
        active = [row for row in rows if row.status == "active"]
        if not self.dense or len(active) == len(rows):
            return ""
        strong = [row.name for row in active if row.share > LITTLE]
        few = 0 < len(strong) <= len(active) / 2
        most = f"; by more than {LITTLE:.0%} of its range: {listed(strong)}" if few else ""
        return f"{ALL}, as far as tested: {sum(self._draws)} of {len(self._draws)} drawn at random changed it{most}"


def rank(space: Space, X: Array, outputs: Array, best: Array, sign: float) -> Indices:
    """(V,) variables by how much a model's mean changes along each, in any output.

    That is a mean over lines through the best point and the first points: some variables act elsewhere only. Two models
    are asked, of the values and of their logarithms above the best: differences among good values count as well.
    """
    from mctsvs.gp.model import expectation  # linear algebra that not every run needs

    candidates = np.arange(len(space))
    if len(space) > MOST_RANKED:
        order = np.argsort(-correlations(X, outputs[:, 0], space.offsets), kind="stable")
        candidates = order[:MOST_RANKED]
    score = np.full(len(space), -1.0)
    for column in outputs.T:
        known = np.isfinite(column)
        values = column[known]
        if len(values) and np.ptp(values) > rounding(values[:, None])[0]:
            above = (sign * values - (sign * values).min()) / np.ptp(values)
            shares = []
            for scaled in (values, np.log(above + NEAR_BEST)):
                predict = expectation(X[known], scaled)
                lines = [_changes(space, candidates, base, predict) for base in (best, *X[:ELSEWHERE])]
                shares.append(np.mean(lines, axis=0) / max(np.sum(lines), 1e-300))
            score[candidates] = np.maximum(score[candidates], sum(shares))
    return np.argsort(-score.round(DIGITS), kind="stable")


def _changes(space: Space, variables: Indices, base: Array, predict: Callable[[Array], tuple[Array, Array]]) -> Array:
    """By how much the model's mean changes along each of the variables, all else as at the base."""
    lines = []
    for v in variables:
        own = slice(space.offsets[v], space.offsets[v + 1])
        values = GRID[:, None] if own.stop - own.start == 1 else np.eye(own.stop - own.start)
        lines.append(np.repeat(base[None], len(values), axis=0))
        lines[-1][:, own] = values
    begins = np.cumsum([0, *(len(line) for line in lines[:-1])])
    mean, _ = predict(np.concatenate(lines))
    return np.asarray(np.maximum.reduceat(mean, begins) - np.minimum.reduceat(mean, begins))


def correlations(X: Array, y: Array, offsets: Indices) -> Array:
    """(V,) the largest correlation of a variable's coordinates with the values."""
    known = np.isfinite(y)
    centred = X[known] - X[known].mean(axis=0)
    spread = np.sqrt(np.einsum("ij,ij->j", centred, centred))
    correlation = np.abs((y[known] - y[known].mean()) @ centred) / np.maximum(spread, 1e-12)
    return np.asarray(np.maximum.reduceat(correlation, offsets[:-1]))
