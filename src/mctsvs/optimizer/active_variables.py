"""Which variables act: what pairs of evaluations prove, and nothing else.

A variable is *active* if two evaluations that differ in it alone had different values (or measured constraints). It is
*unchanged* if it was changed, alone or together with others that are not active, and no value changed; that does not
prove that it never acts. Otherwise it is *untested*.

All pairs are found at once, in time linear in the evaluations: the sum of a random number for each variable and value
is the same for two points, less one variable's number, only if they differ in that variable alone.

Values must be exact for one pair to prove anything. Whether they are is known once a point was evaluated twice. Under
noise a difference counts if chance explains it in at most one run of a hundred (`ERROR_RATE`), whatever the number of
pairs; one of the points must have been evaluated again, and its first value, for which it was chosen, is left out.

Notation: n different points, V variables, m outputs (the value, then the measured constraints).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mctsvs.methods.history import rounding
from mctsvs.space import Space
from mctsvs.utils.formatting import listed, percent, plural, printable
from mctsvs.utils.validation import Array, Indices

ERROR_RATE = 0.01  # of naming any inert variable of a run, under noise
DIGITS = 12  # of the unit cube, in which values of a variable differ
MOST_PAIRED = 600  # evaluations, the latest, that are compared where variables exist at some points only
LATEST = 60  # points of a group that are compared with all others of it
ABSENT = np.uint64(2**63)  # code of a variable that does not exist at a point

Codes = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class VariableStatus:
    """What the evaluations say about one variable.

    Attributes:
        name: Its name.
        status: "active", "unchanged" or "untested".
        effect: The largest change that was seen when it alone was changed; 0 if none was.
        share: The same as a share of the range of all values seen.
        evidence: Numbers of the trials that prove it: of an active variable the two that differ in it alone.
        output: What changed: "value", or the name of a measured constraint.
        changes: At how many points it was changed without any change.
        together: With how many other variables it was changed there, at least.
        rank: Its place in a model's ranking, 1 for the first; None where no model was fitted. It proves nothing.

    Example:
        >>> for row in result.variables:
        ...     print(row.name, row.status, row.effect, row.evidence)
    """

    name: str
    status: str
    effect: float = 0.0
    share: float = 0.0
    evidence: tuple[int, ...] = ()
    output: str = "value"
    changes: int = 0
    together: int = 0
    rank: int | None = None

    def __str__(self) -> str:
        if self.status == "active":
            first, second = self.evidence
            what = "the value" if self.output == "value" else self.output
            return printable(
                f"{self.name} changes {what} by at least {self.effect:.3g}, {percent(self.share)} of its range "
                f"(trials {first} and {second})"
            )
        if self.status == "unchanged":
            points = "1 point" if self.changes == 1 else f"{self.changes} points"
            others = f" together with {self.together} others" if self.together else ""
            return printable(f"{self.name} changed nothing at {points}{others}")
        return printable(f"{self.name} was not tested")


class VariableStatuses(list[VariableStatus]):
    """The rows, the largest effect first, and what they say in one sentence."""

    def __init__(self, rows: Sequence[VariableStatus] = (), summary: str = "") -> None:
        super().__init__(rows)
        self.summary = printable(summary)

    @property
    def active(self) -> list[str]:
        """Names of the active variables, the largest effect first."""
        return [row.name for row in self if row.status == "active"]

    @property
    def named(self) -> list[str]:
        """The same, but none where all variables act."""
        return [] if self.summary.startswith(ALL) else self.active

    @property
    def rest(self) -> str:
        """How many variables are not known to act, in words; empty where `summary` says all there is to say."""
        unchanged = [row for row in self if row.status == "unchanged"]
        untested = sum(row.status == "untested" for row in self)
        if self.summary.startswith(ALL) or untested == len(self):
            return ""
        parts = []
        if unchanged:
            few, many = min(row.changes for row in unchanged), max(row.changes for row in unchanged)
            points = plural(few, "point") if few == many else f"{few} to {many} points"
            together = ", changed together" if any(row.together for row in unchanged) else ""
            parts.append(f"{len(unchanged):,} changed nothing at {points}{together}")
        parts += [f"{untested:,} {'was' if untested == 1 else 'were'} not tested"] * bool(untested)
        return "; ".join(parts)


ALL = "all variables act"


@dataclass(frozen=True, eq=False)
class Points:
    """The different points evaluated, in the order of their first evaluation."""

    codes: Codes  # (n, V) a number for each value of a variable
    outputs: Array  # (n, m) NaN where an output is missing
    variance: Array  # (n, m) of the outputs' noise; 0 where values are exact, infinite where it is not known
    again: Mask  # (n,) whether evaluated more than once
    numbers: Indices  # (n,) of the trials
    conditional: bool
    freedom: float = np.inf  # degrees of freedom of the variances; infinite where the noise was told

    @classmethod
    def of(cls, space: Space, units: Array, outputs: Array, noise: Array | None, numbers: Indices) -> Points:
        """Of evaluations: points (n, D), outputs (n, m), noise (n,) of the values or None for exact ones, numbers."""
        codes, outputs = codes_of(space, units), finite(outputs)
        _, first, group = np.unique(hashed(codes).sum(axis=1), return_index=True, return_inverse=True)
        order = np.argsort(first)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        first, group = first[order], place[group]
        count = np.bincount(group, minlength=len(first))
        if noise is None or not len(units):
            zero = np.zeros((len(first), outputs.shape[1]))
            return cls(codes[first], outputs[first], zero, count > 1, numbers[first], space.conditional)
        fresh = np.ones(len(units), dtype=bool)
        fresh[first[count > 1]] = False  # the value for which a point was chosen is a lucky one
        means, variance, freedom = _means(outputs, group, fresh, noise * noise)
        return cls(codes[first], means, variance, count > 1, numbers[first], space.conditional, freedom)


def _means(outputs: Array, group: Indices, fresh: Mask, told: Array) -> tuple[Array, Array, float]:
    """(n, m) means of the fresh values of each point, the variances of these means, and their degrees of freedom."""
    points = int(group.max()) + 1
    count = np.bincount(group, weights=fresh, minlength=points)[:, None]
    total = np.array(
        [np.bincount(group, weights=np.where(fresh, column, 0.0), minlength=points) for column in outputs.T]
    )
    means = total.T / count
    squares = np.where(fresh[:, None], (outputs - means[group]) ** 2, 0.0)
    freedom = float(np.maximum(count - 1, 0).sum())
    pooled = squares.sum(axis=0) / freedom if freedom else np.full(outputs.shape[1], np.inf)
    variance = np.tile(pooled, (len(outputs), 1))
    variance[:, 0] = np.where(np.isnan(told), variance[:, 0], told)
    summed = np.array([np.bincount(group, weights=np.where(fresh, v, 0.0), minlength=points) for v in variance.T]).T
    return means, summed / count**2, np.inf if not np.isnan(told).any() else freedom


def finite(outputs: Array) -> Array:
    """Outputs (n, m) whose infinities are numbers beyond all others of their column, by as much as these differ."""
    found = outputs.copy()
    for c in np.flatnonzero(np.isinf(outputs).any(axis=0)):
        column = found[:, c]
        known = column[np.isfinite(column)]
        low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
        beyond = (high - low) or max(abs(high), 1.0)
        column[column == np.inf], column[column == -np.inf] = high + beyond, low - beyond
    return found


def codes_of(space: Space, units: Array) -> Codes:
    """(n, V) a whole number for each value of a variable, the same for values that differ by rounding alone."""
    if not len(units):
        return np.empty((0, len(space)), dtype=np.uint64)
    columns = space.offsets[:-1]
    single = np.diff(space.offsets) == 1
    values = units[:, columns].round(DIGITS) + 0.0
    if not single.all():
        values[:, ~single] = space.decode(units)[:, ~single]
    codes = np.ascontiguousarray(values).view(np.uint64)
    return np.where(space.active(units), codes, ABSENT) if space.conditional else codes


def hashed(codes: Codes) -> Codes:
    """A random number for each variable and value (the finaliser of SplitMix64); sums of them wrap around."""
    columns = np.arange(1, codes.shape[1] + 1, dtype=np.uint64)
    z = codes ^ (columns * np.uint64(0x9E3779B97F4A7C15))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(z ^ (z >> np.uint64(31)))


@dataclass(eq=False)
class Evidence:
    """What pairs of points say; rows of `Points` are meant by `pair`."""

    points: Points
    exact: bool  # whether different values prove a difference
    pair: dict[int, tuple[int, int]] = field(default_factory=dict)  # variable -> the two points of the largest change

    def __post_init__(self) -> None:
        V, m = self.points.codes.shape[1], self.points.outputs.shape[1]
        self.change, self.share = np.zeros((V, m)), np.zeros((V, m))
        pairs = self._alone()
        outputs, ranges = self.points.outputs, self.ranges
        for v, low, high in pairs:
            if not self._differ(low, high, len(pairs)).any():
                continue
            change = np.nan_to_num(np.abs(outputs[low] - outputs[high]))
            if v not in self.pair or (change / ranges).max() > self.share[v].max():
                self.pair[v] = (low, high)
                self.change[v], self.share[v] = change, change / ranges

    @cached_property
    def ranges(self) -> Array:
        """(m,) of the outputs; 1 where there is none."""
        outputs = self.points.outputs
        spread = np.array([np.ptp(c[np.isfinite(c)]) if np.isfinite(c).any() else 0.0 for c in outputs.T])
        return np.where(spread > 0.0, spread, 1.0)

    @cached_property
    def tolerance(self) -> Array:
        return rounding(self.points.outputs)

    def _differ(self, one: int, other: int, pairs: int) -> Mask:
        """(m,) which outputs of two points differ, which under noise is said of one of so many pairs."""
        outputs, variance = self.points.outputs, self.points.variance
        change = np.abs(outputs[one] - outputs[other])
        if self.exact:
            return np.asarray(change > self.tolerance)
        if not (self.points.again[one] or self.points.again[other]):
            return np.zeros(len(change), dtype=bool)
        least = quantile(self.points.freedom, pairs * len(change))
        return np.asarray(change > least * np.sqrt(variance[one] + variance[other]))

    def _alone(self) -> list[tuple[int, int, int]]:
        """(variable, point, point) that differ in this variable alone; of several, those of the largest change."""
        codes = self.points.codes
        if self.points.conditional:
            return self._alone_where_there()
        if len(codes) < 2:
            return []
        V = codes.shape[1]
        numbers = hashed(codes)
        rest = numbers.sum(axis=1)[:, None] - numbers  # of all other variables
        keys = hashed(rest).ravel()
        order = np.argsort(keys)
        same = keys[order][1:] == keys[order][:-1]
        begins = np.flatnonzero(same & ~np.append(False, same[:-1]))
        ends = np.flatnonzero(same & ~np.append(same[1:], False)) + 1
        pairs = []
        for begin, end in zip(begins, ends, strict=True):
            places = np.sort(order[begin : end + 1])
            rows, v = places // V, int(places[0] % V)
            if (codes[rows] != codes[rows[0]]).any(axis=0).sum() != 1:
                continue  # by chance, once in 2^64
            pairs += self._farthest(v, rows)
        return pairs

    def _farthest(self, v: int, rows: Indices) -> list[tuple[int, int, int]]:
        """The two points of the largest change in any output; under noise each with the points evaluated again."""
        if not self.exact:
            return [(v, int(a), int(b)) for i, a in enumerate(rows) for b in rows[i + 1 :]]
        outputs = self.points.outputs[rows]
        share = (np.fmax.reduce(outputs) - np.fmin.reduce(outputs)) / self.ranges
        if np.isnan(share).all():
            return []
        column = outputs[:, int(np.nanargmax(share))]
        low, high = sorted((int(rows[np.nanargmin(column)]), int(rows[np.nanargmax(column)])))
        return [(v, low, high)] if low != high else []

    def _alone_where_there(self) -> list[tuple[int, int, int]]:
        """The same where variables exist at some points only: those that come or go are the doing of another."""
        codes = self.points.codes
        rows = np.arange(max(0, len(codes) - MOST_PAIRED), len(codes))
        pairs = []
        for row in rows:
            before = rows[rows < row]
            changed = (codes[before] != codes[row]) & (codes[before] != ABSENT) & (codes[row] != ABSENT)
            alone = np.flatnonzero(changed.sum(axis=1) == 1)
            pairs += [(int(np.argmax(changed[i])), int(before[i]), int(row)) for i in alone]
        return pairs

    @cached_property
    def active(self) -> Mask:
        """(V,)"""
        mask = np.zeros(self.points.codes.shape[1], dtype=bool)
        mask[list(self.pair)] = True
        return mask

    def changed(self, one: int | Indices, other: int) -> Mask:
        """(..., V) the variables in which two points differ."""
        a, b = self.points.codes[one], self.points.codes[other]
        return np.asarray((a != b) & (a != ABSENT) & (b != ABSENT) if self.points.conditional else a != b)

    @cached_property
    def groups(self) -> list[Indices]:
        """Points that are the same in all active variables, where there are two or more, in their order."""
        codes = self.points.codes[:, self.active]
        if not len(codes):
            return []
        keys = hashed(codes).sum(axis=1)
        order = np.argsort(keys, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(keys[order])) + 1)
        return sorted((part for part in parts if len(part) > 1), key=lambda part: int(part[0]))

    @cached_property
    def unchanged(self) -> tuple[Indices, Indices, dict[int, tuple[int, int]]]:
        """(V,) points at which a variable was changed without effect, with how many others, and for each a pair."""
        V = self.points.codes.shape[1]
        changes, together = np.zeros(V, dtype=np.intp), np.full(V, V, dtype=np.intp)
        pairs: dict[int, tuple[int, int]] = {}
        if self.exact:
            for group in self.groups:
                for row in group[1:]:
                    first = int(group[0])
                    if (np.abs(self.points.outputs[row] - self.points.outputs[first]) > self.tolerance).any():
                        continue
                    moved = np.flatnonzero(self.changed(first, int(row)))
                    changes[moved] += 1
                    fewer = moved[together[moved] > len(moved) - 1]
                    together[fewer] = len(moved) - 1
                    pairs |= {int(v): (first, int(row)) for v in fewer}
        return changes, together, pairs

    def unresolved(self, least: float) -> tuple[int, int] | None:
        """Two points that differ in output, by a share of its range, though in no active variable: the closest such."""
        best, found = 0, None
        for group in self.groups:
            outputs = self.points.outputs[group]
            for i in range(max(1, len(group) - LATEST), len(group)):
                changes = (np.abs(outputs[:i] - outputs[i]) / self.ranges > least).any(axis=1)
                others = group[:i][changes]
                if not len(others):
                    continue
                sizes = self.changed(others, int(group[i])).sum(axis=1)
                closest = int(np.argmin(sizes))
                if found is None or sizes[closest] < best:
                    best, found = int(sizes[closest]), (int(others[closest]), int(group[i]))
        return found


def quantile(freedom: float, pairs: int) -> float:
    """Standard deviations that a difference must have: chance reaches them in any of so many pairs at `ERROR_RATE`."""
    from scipy.special import ndtri, stdtrit

    p = 1.0 - ERROR_RATE / (2 * max(pairs, 1))
    return float(ndtri(p) if np.isinf(freedom) else stdtrit(freedom, p))


def rows_of(
    space: Space, outputs: Sequence[str], evidence: Evidence, rank: Mapping[int, int] | None = None
) -> list[VariableStatus]:
    """A row for each variable, the largest effect first; `outputs` are the names of what was measured."""
    changes, together, pairs = evidence.unchanged
    numbers, place = evidence.points.numbers, rank or {}
    rows = []
    for v, name in enumerate(space.names):
        if v in evidence.pair:
            column = int(np.argmax(evidence.share[v]))
            first, second = sorted(int(numbers[row]) for row in evidence.pair[v])
            seen = float(evidence.change[v, column]), float(evidence.share[v, column]), (first, second)
            rows.append(VariableStatus(name, "active", *seen, outputs[column], rank=place.get(v)))
        elif changes[v]:
            proof = tuple(int(numbers[row]) for row in pairs[v])
            at = int(changes[v]), int(together[v])
            rows.append(VariableStatus(name, "unchanged", 0.0, 0.0, proof, "value", *at, rank=place.get(v)))
        else:
            rows.append(VariableStatus(name, "untested", rank=place.get(v)))
    order = {"active": 0, "untested": 1, "unchanged": 2}
    return sorted(rows, key=lambda row: (order[row.status], -row.share, row.rank or 0))


def summary_of(rows: Sequence[VariableStatus], noisy: bool | None) -> str:
    """What the rows say in one sentence."""
    active = [row.name for row in rows if row.status == "active"]
    if active:
        untested = sum(row.status == "untested" for row in rows)
        rest = f"; {untested} {'was' if untested == 1 else 'were'} not tested" if untested else ""
        return ALL if len(active) == len(rows) else f"{listed(active)} {'act' if len(active) > 1 else 'acts'}{rest}"
    if noisy is None:
        return "which variables act was not tested: no point was evaluated twice"
    tested = any(row.status == "unchanged" for row in rows)
    return "no variable was seen to act" if tested else "which variables act was not tested"
