"""Which variables matter, from points between two: every variable has its value in the one or in the other.

Such a point is a corner of the box that the two points span; a mask (V,) says which variables are at the other end.
Two corners with equal values prove that no variable in which they differ acts; with unequal values, at least one of
these does.

`BoxCorners`: all pairs of corners count. So half of a group that acts has three outcomes (the acting ones are in it, in
the rest, or in both), and the halves of two groups A and B are asked about at once: the value is that of neither, of A,
of B or of both, all known, unless a group acts in both halves. Flips start from the best corner for which the values
needed are known: tests are steps as well. GTBO (Hellsten and others, 2023) tests groups too, with noise and a
likelihood in place of equality.

`Bisection`: between two corners with unequal values lies one more, half way; its value differs from at least one of
theirs, so half of the variables are left, and in the end one whose change changes the value. Nothing is rejected on the
way: a variable that acts only together with others is found as surely as one that acts alone. Every variable takes log2
of their number tests, twice the price of corner tests: this is for what those have missed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from mctsvs.utils.validation import Array, Indices

Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Split:
    """Halves of two groups, flipped together on a corner; kept while the value has not told the halves apart."""

    corner: Mask
    one: Mask
    other: Mask
    half: Mask  # of `one`


@dataclass(frozen=True, eq=False)
class Flip:
    """A corner to evaluate."""

    mask: Mask
    group: Mask  # the variables it asks about
    level: float  # value of the corner it is compared with
    split: Split | None = None


@dataclass(eq=False)
class Box:
    """The box that two points span, and its corners evaluated so far."""

    base: Array  # (D,)
    other: Array  # (D,)
    asked: Mask  # (V,) the variables in question
    live: Mask  # (V,) those of them that may act
    masks: list[Mask]  # of the corners
    values: list[float]

    def point(self, mask: Mask, owner: Indices) -> Array:
        """(D,) the corner in the unit cube; `owner` (D,) is the variable of each coordinate."""
        return np.where(mask[owner], self.other, self.base)


@dataclass(eq=False)
class BoxCorners(Box):
    """What all pairs of corners prove; no two masks are equal among the live variables."""

    splits: list[Split] = field(default_factory=list)

    @classmethod
    def between(cls, base: Array, other: Array, asked: Mask, value: float) -> BoxCorners:
        """The box of two points, with the base's value."""
        return cls(base, other, asked, asked, [np.zeros_like(asked)], [value])

    def seen(self, mask: Mask, x: Array, owner: Indices) -> Mask:
        """The mask of the point that was evaluated in place of the one asked for.

        Whole numbers and categories are rounded: to where the other end is from now on, or back to the base, and then
        the other end moves to the far side of the range.
        """
        moved = np.abs(x - self.base) > 1e-9
        there = np.zeros_like(mask)
        there[owner[moved]] = True
        taken, stuck = (mask & there)[owner], (mask & ~there)[owner]
        self.other = np.where(taken, x, np.where(stuck, np.where(self.base < 0.5, 1.0, 0.0), self.other))
        return mask & there

    def add(self, mask: Mask, value: float, tolerance: float, split: Split | None = None) -> None:
        """A corner's value; values are equal that differ by the tolerance at most."""
        before = self.live.sum()
        self.masks.append(mask)
        self.values.append(value)
        self._infer(tolerance)
        if split is not None and self.live.sum() == before:
            self.splits.append(split)

    def reject(self, variables: Mask, tolerance: float) -> None:
        """Variables seen elsewhere to do nothing."""
        if (self.live & variables).any():
            self.live = self.live & ~variables
            self._infer(tolerance)

    def abandon(self, flip: Flip) -> None:
        """A flip that gave no value is not asked for again."""
        self.splits = [split for split in self.splits if not ((split.one | split.other) & flip.group).any()]

    def _infer(self, tolerance: float) -> None:
        """Corners with equal values differ in nothing that acts, unless that contradicts another pair: then by chance.

        Symmetric functions of whole numbers have such chances, real numbers hardly ever.
        """
        order = np.argsort(self.values, kind="stable")
        values = np.array(self.values)[order]
        keys, live, changed = [bits(self.masks[i]) for i in order], bits(self.live), True
        last = np.searchsorted(values, values + tolerance, side="right")
        while changed:
            changed = False
            for i, j in ((a, b) for a in range(len(keys)) for b in range(a + 1, last[a])):
                drop = (keys[i] ^ keys[j]) & live
                if drop and consistent(keys, values, live & ~drop, tolerance):
                    live, changed = live & ~drop, True
        self.live = mask_of(live, len(self.live))
        first = {bits(mask & self.live): i for i, mask in reversed(list(enumerate(self.masks)))}
        kept = sorted(first.values())
        self.masks, self.values = [self.masks[i] & self.live for i in kept], [self.values[i] for i in kept]

    def cells(self) -> dict[int, float]:
        """Disjoint groups of variables that are known to act, as bits, smallest first; each with its change."""
        keys = [bits(mask) for mask in self.masks]
        pairs = [
            (keys[i] ^ keys[j], abs(self.values[i] - self.values[j])) for i, j in combinations(range(len(keys)), 2)
        ]
        cells: dict[int, float] = {}
        used = 0
        for group, change in sorted(pairs, key=lambda pair: pair[0].bit_count()):
            if not group & used:
                cells[group] = change
                used |= group
        return cells

    def groups(self) -> list[tuple[Indices, float]]:
        """The same as variables."""
        return [(np.flatnonzero(mask_of(cell, len(self.live))), change) for cell, change in self.cells().items()]

    def unseen(self, cells: dict[int, float]) -> int:
        """Variables, as bits, that may act and are in no group known to act."""
        return bits(self.live) & ~sum(cells)  # they are disjoint: the sum is the union

    def with_group(self, group: Mask) -> Flip:
        """The best corner with a group flipped."""
        best = int(np.argmax(self.values))
        return Flip(self.masks[best] ^ group, group, self.values[best])

    def next(self, busy: Mask, size: int, rng: np.random.Generator) -> Flip | None:
        """The corner to evaluate next, about variables that are not busy; `size` of those never asked about."""
        cells, taken = self.cells(), bits(busy)
        order = np.argsort(-np.array(self.values), kind="stable")  # best first: flips start from good corners
        known = {bits(self.masks[i]): self.values[i] for i in order}
        unseen = self.unseen(cells) & ~taken
        if unseen:
            chosen = rng.permutation(np.flatnonzero(mask_of(unseen, len(self.live))))[:size]
            return self._flip(known, next(iter(known)), bits_at(chosen, len(self.live)))
        pending = self._pending(known, cells, taken)
        if pending is not None:
            return pending
        groups = sorted((cell for cell in cells if cell.bit_count() > 1 and not cell & taken), key=int.bit_count)[::-1]
        return self._split(known, groups, rng)

    def _flip(self, known: dict[int, float], corner: int, group: int, asked: int = 0) -> Flip:
        n = len(self.live)
        return Flip(mask_of(corner ^ group, n), mask_of(group | asked, n), known[corner])

    def _pending(self, known: dict[int, float], cells: dict[int, float], taken: int) -> Flip | None:
        """What tells apart the halves of an earlier split: a corner of the two groups, or the half of one alone."""
        live = bits(self.live)
        for split in list(self.splits):
            corner, one, other, half = (
                bits(part) & live for part in (split.corner, split.one, split.other, split.half)
            )
            if (one | other) & taken:
                continue
            if one in cells and one.bit_count() > 1 and corner in known:
                missing = [group for group in (one | other, one, other) if corner ^ group not in known]
                if missing:
                    return self._flip(known, corner, missing[0], one | other)
                if half and half != one and corner ^ half not in known:
                    self.splits.remove(split)
                    return self._flip(known, corner, half, one)
            self.splits.remove(split)
        return None

    def _split(self, known: dict[int, float], groups: list[int], rng: np.random.Generator) -> Flip | None:
        """Halves of two groups at once, where three of their four corners are known; else of one."""
        n = len(self.live)
        best: tuple[int, int, int, int] | None = None
        for one, other in combinations(groups, 2):
            for corner in known:
                count = sum(corner ^ group in known for group in (one, other, one | other))
                if count >= 2 and (best is None or count > best[0]):
                    best = (count, one, other, corner)
            if best is not None and best[0] == 3:
                break
        if best is not None:
            _, one, other, corner = best
            half = half_of(one, n, rng)
            split = Split(*(mask_of(part, n) for part in (corner, one, other, half)))
            mask = mask_of(corner ^ half ^ half_of(other, n, rng), n)
            return Flip(mask, mask_of(one | other, n), known[corner], split)
        for group in groups:
            for corner in known:
                if corner ^ group in known:
                    return self._flip(known, corner, half_of(group, n, rng), group)
        return None


def consistent(keys: list[int], values: Array, live: int, tolerance: float) -> bool:
    """Whether corners that are equal in the live variables have equal values."""
    seen: dict[int, float] = {}
    return all(
        abs(seen.setdefault(key & live, value) - value) <= tolerance for key, value in zip(keys, values, strict=True)
    )


def half_of(group: int, n: int, rng: np.random.Generator) -> int:
    variables = np.flatnonzero(mask_of(group, n))
    return bits_at(rng.permutation(variables)[: len(variables) // 2], n)


def bits_at(variables: Indices, n: int) -> int:
    mask = np.zeros(n, dtype=bool)
    mask[variables] = True
    return bits(mask)


def bits(mask: Mask) -> int:
    """The mask as one whole number: set operations on it are single steps, and it can be looked up."""
    return int.from_bytes(np.packbits(mask, bitorder="little").tobytes(), "little")


def mask_of(number: int, n: int) -> Mask:
    packed = np.frombuffer(number.to_bytes((n + 7) // 8, "little"), dtype=np.uint8)
    return np.unpackbits(packed, count=n, bitorder="little").astype(bool)


@dataclass(eq=False)
class Bisection(Box):
    """A search between two points of unequal values, and the variables found."""

    ends: list[int]  # positions of the two corners between which one variable is looked for; empty: none is
    found: list[int] = field(default_factory=list)

    @classmethod
    def between(cls, base: Array, other: Array, asked: Mask, values: tuple[float, float]) -> Bisection:
        """Two points with their values, which differ."""
        return cls(base, other, asked, asked, [np.zeros_like(asked), asked], list(values), [0, 1])

    def next(self, rng: np.random.Generator) -> Flip | None:
        """The corner to evaluate next; None when nothing is left to be found."""
        if not self.ends:
            missing = [mask for pair in self._pairs() for mask in pair if self._position(mask) is None]
            return None if not missing else Flip(missing[0], self.live, self.values[0])
        low, high = self.ends
        between = self.masks[low] ^ self.masks[high]
        variables = np.flatnonzero(between)
        half = np.zeros_like(between)
        half[rng.permutation(variables)[: len(variables) // 2]] = True
        return Flip(self.masks[low] ^ half, between, self.values[low])

    def add(self, mask: Mask, value: float, tolerance: float) -> None:
        """A corner's value; values are equal that differ by the tolerance at most."""
        self.masks.append(mask)
        self.values.append(value)
        if self.ends:
            same = abs(value - self.values[self.ends[0]]) <= tolerance
            self.ends[0 if same else 1] = len(self.masks) - 1
        self._settle(tolerance)

    def _settle(self, tolerance: float) -> None:
        """One variable left: it is found. Then two corners that differ in the others, if there are such."""
        if self.ends:
            left = np.flatnonzero(self.masks[self.ends[0]] ^ self.masks[self.ends[1]])
            if len(left) > 1:
                return
            self.found += left.tolist()
            self.ends = []
        known = [[self._position(mask) for mask in pair] for pair in self._pairs()]
        for low, high in known:
            if low is not None and high is not None and abs(self.values[low] - self.values[high]) > tolerance:
                self.ends = [low, high]
                self._settle(tolerance)
                return
        if not any(position is None for pair in known for position in pair):
            self.live = self._found

    @property
    def _found(self) -> Mask:
        mask = np.zeros_like(self.asked)
        mask[self.found] = True
        return mask

    def _pairs(self) -> list[tuple[Mask, Mask]]:
        """Corners that differ in all variables not found yet, with those found at one end or at the other."""
        return [(self._found, self.asked), (np.zeros_like(self.asked), self.asked & ~self._found)]

    def _position(self, mask: Mask) -> int | None:
        wanted = bits(mask)
        return next((i for i, known in enumerate(self.masks) if bits(known) == wanted), None)

    def groups(self) -> list[tuple[Indices, float]]:
        """Variables known to act: those found, and the group one of which is looked for; each with its change."""
        groups = [(np.array([v]), 0.0) for v in self.found]
        if self.ends:
            low, high = self.ends
            between = np.flatnonzero(self.masks[low] ^ self.masks[high])
            groups.append((between, abs(self.values[low] - self.values[high])))
        return groups
