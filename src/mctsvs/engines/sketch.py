"""Count-sketch embeddings: every coordinate of the unit cube follows one low-dimensional coordinate, up to its sign.

Notation: D coordinates x of the unit cube, d low-dimensional coordinates u, both kept in [0, 1]; in the papers'
[-1, 1] they are 2x - 1 and 2u - 1. Coordinate i belongs to bin h(i) and has sign s(i):

    2 x_i - 1 = s(i) (2 u_h(i) - 1)

so the box [-1, 1]^d maps into [-1, 1]^D and nothing is ever clipped. The way down is the mean over a bin, exact for
embedded points; for points that were rounded (integers, categories) it is the low-dimensional point nearest to what
was really evaluated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mctsvs.common import Array, Indices


@dataclass(frozen=True)
class Sketch:
    """Bins h (D,), signs s (D,) and the number d of bins."""

    bins: Indices
    signs: Array
    d: int

    @staticmethod
    def hashed(D: int, d: int, rng: np.random.Generator) -> Sketch:
        """Each coordinate into a bin of its own choice (Nayebi et al., 2019); some bins may stay empty."""
        return Sketch(rng.integers(0, d, D), rng.choice([-1.0, 1.0], D), d)

    @staticmethod
    def balanced(D: int, d: int, rng: np.random.Generator) -> Sketch:
        """Bins whose sizes differ by one at most (Papenmeier et al., 2022): never worse, and no bin is empty."""
        return Sketch(rng.permutation(np.arange(D) % d), rng.choice([-1.0, 1.0], D), d)

    def up(self, U: Array) -> Array:
        """(m, D) points of the unit cube for (m, d) low-dimensional ones."""
        return 0.5 + self.signs * (U[:, self.bins] - 0.5)

    def down(self, x: Array) -> Array:
        """(d,) low-dimensional point of one point of the unit cube; an empty bin is at its middle."""
        total = np.bincount(self.bins, weights=self.signs * (x - 0.5), minlength=self.d)
        count = np.bincount(self.bins, minlength=self.d)
        return np.asarray(0.5 + total / np.maximum(count, 1))

    def split(self, parts: int, rng: np.random.Generator) -> Sketch:
        """Every bin cut at random into `parts` of equal size, or into single coordinates where it has fewer.

        The first part keeps the bin's number. Signs stay, so every embedded point is an embedded point still.
        """
        bins, d = self.bins.copy(), self.d
        for old in range(self.d):
            members = rng.permutation(np.flatnonzero(self.bins == old))
            pieces = min(parts, len(members))
            for piece in range(1, pieces):
                bins[members[piece::pieces]] = d
                d += 1
        return Sketch(bins, self.signs, d)
