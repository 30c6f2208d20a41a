"""Which variables make the difference between two points whose values differ, whatever the interplay among them.

Between two corners with unequal values lies one more, half way; its value differs from at least one of theirs, so half
of the variables are left, and in the end one whose change changes the value. Nothing is rejected on the way: a variable
that acts only together with others is found as surely as one that acts alone. Every variable takes log2 of their number
tests, twice the price of corner tests: this is for what those have missed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mctsvs.methods.auto.corners import Flip, Mask, bits
from mctsvs.utils.validation import Array, Indices


@dataclass(eq=False)
class Bisection:
    """The corners between two points evaluated so far, and the variables found."""

    base: Array  # (D,)
    other: Array  # (D,)
    asked: Mask  # (V,) the variables in question
    live: Mask  # (V,) those that may act
    masks: list[Mask]
    values: list[float]
    ends: list[int]  # positions of the two corners between which one variable is looked for; empty: none is
    found: list[int] = field(default_factory=list)

    @classmethod
    def between(cls, base: Array, other: Array, asked: Mask, values: tuple[float, float]) -> Bisection:
        """Two points with their values, which differ."""
        return cls(base, other, asked, asked, [np.zeros_like(asked), asked], list(values), [0, 1])

    def point(self, mask: Mask, owner: Indices) -> Array:
        return np.where(mask[owner], self.other, self.base)

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
