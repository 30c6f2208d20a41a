"""The feasible points of discrete variables: all of them one after the other, and those beside a point.

Where constraints leave few points of many, such as orders or choices of k from n, a random point is hardly ever one of
them. From a feasible point an exchange, or steps of two variables that keep a sum or a difference, lead to others.
Points are rows x (V,) or (n, V) in natural units.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from mctsvs.space.linear_constraints import step_of
from mctsvs.utils.validation import Array, Indices

if TYPE_CHECKING:
    from mctsvs.space.region import Region

BLOCK = 4096  # points that are looked at together
MOVES = 64  # looked at beside a point
QUICK = 16  # looked at in a step of a walk
FEW = 4  # of them feasible: then some variables are redrawn together
REDRAWN = 2.0**12  # combinations of the values that are redrawn
SLACK = 1e-9  # of the size of its terms: so much more is forgiven a row of which not all terms are known


class FeasibleSet:
    """What the constraints of a region leave of the discrete variables."""

    def __init__(self, region: Region, table: Array, limits: Array) -> None:
        """`table` (m, V) and `limits` (m,): the half-spaces table x <= limits, in natural units."""
        self.region, self.space, self.table, self.limits = region, region.space, table, limits
        sizes = self.space.sizes
        self.variables = np.flatnonzero(np.isfinite(sizes) & (sizes > 1.0))
        self.finite = bool(np.isfinite(sizes).all())

    def satisfying(self, X: Array) -> Iterator[Array]:
        """Those of the points (n, V) that satisfy all constraints, tested when they are asked for."""
        X = X[self._in_rows(X)]
        tests = self.region.tests
        if not tests:
            yield from X
            return
        params = self.space.params_of(X) if self.space.named else itertools.repeat(None, len(X))
        for x, named in zip(X, params, strict=True):
            if all(test.allows(x.copy() if named is None or test.low is not None else named) for test in tests):
                yield x

    def _in_rows(self, X: Array) -> Array:
        there = np.where(self.space.there(X), X, 0.0)
        return np.asarray((there @ self.table.T <= self.limits).all(axis=1))

    # --- all of them

    def blocks(self, base: Array | None = None, among: Indices | None = None) -> Iterator[tuple[Array, int]]:
        """Blocks of all points (n, V) that satisfy the rows, in the order of the space, and how many were looked at.

        Those that differ from `base` in the variables `among` alone. A variable's value is chosen after those before
        it, and only where the rows can still be satisfied.
        """
        space = self.space
        among = np.arange(len(space)) if among is None else among
        order = [int(v) for v in space.order if v in among]
        start = (space.standard if base is None else base)[None]
        least = np.minimum(self.table * space.bounds[:, 0], self.table * space.bounds[:, 1])
        fixed = np.setdiff1d(np.arange(len(space)), among)
        least[:, fixed] = (self.table * start[0])[:, fixed]
        least = np.minimum(least, 0.0) if space.conditional else least  # what does not exist counts as 0
        slack = SLACK * (np.abs(self.table) * np.abs(space.bounds).max(axis=1)).sum(axis=1)
        room = [self.limits + slack - least[:, fixed].sum(axis=1)]  # for the variables chosen so far
        room = [room[0] - least[:, order[i + 1 :]].sum(axis=1) for i in range(len(order))]
        stack = [iter([(start, np.zeros((1, len(self.limits))))])]
        while stack:
            rows, sums = next(stack[-1], (None, None))
            if rows is None or sums is None:
                stack.pop()
            elif len(stack) > len(order):
                yield rows[self._in_rows(rows)], len(rows)
            else:
                yield rows[:0], len(rows)
                depth = len(stack) - 1
                stack.append(self._grown(rows, sums, order[depth], room[depth]))

    def _grown(self, rows: Array, sums: Array, v: int, room: Array) -> Iterator[tuple[Array, Array]]:
        """The points (n, V) with all values of variable v that leave the sums of the rows, (n, m), within the room."""
        space, c = self.space, self.table[:, v]
        there = space.there(rows)[:, v]
        first, last = np.zeros(len(rows)), np.full(len(rows), space.sizes[v] - 1.0)
        step = self._steps[v]
        if step > 0.0 and c.any():
            ends = (room - sums)[:, c != 0.0] / c[c != 0.0]
            up = c[c != 0.0] > 0.0
            low, high = ends[:, ~up].max(axis=1, initial=-np.inf), ends[:, up].min(axis=1, initial=np.inf)
            origin = space.bounds[v, 0]
            first = np.maximum(first, np.ceil((low - origin) / step - 1e-6))
            last = np.minimum(last, np.floor((high - origin) / step + 1e-6))
        first, last = np.where(there, first, 0.0), np.where(there, last, 0.0)
        counts = np.maximum(last - first + 1.0, 0.0)
        ends = np.cumsum(counts)
        for at in range(0, int(ends[-1]), BLOCK):
            k = np.arange(at, min(at + BLOCK, int(ends[-1])), dtype=np.float64)
            row = np.searchsorted(ends, k, side="right")
            grown, exists = rows[row], there[row]
            place = first[row] + k - (ends - counts)[row]
            grown[exists, v] = space.nth(v, place[exists])
            total = sums[row] + np.where(exists, grown[:, v], 0.0)[:, None] * c
            kept = (total <= room).all(axis=1)
            if kept.any():
                yield grown[kept], total[kept]

    @cached_property
    def _steps(self) -> Array:
        return np.array([step_of(self.space, v) for v in range(len(self.space))])

    # --- those beside a point

    def beside(
        self, x: Array, rng: np.random.Generator, among: Indices | None = None, n: int = MOVES
    ) -> Iterator[Array]:
        """Feasible points that differ from the feasible x (V,) in a few of the variables `among`."""
        among = self.variables if among is None else np.intersect1d(among, self.variables)
        among = among[self.space.there(x)[among]]
        if not len(among):
            return
        found = 0
        for point in self.satisfying(self._distinct(self._moved(x, rng, among, n), x)):
            found += 1
            yield point
        if found < FEW and len(self.table):
            for _ in range(FEW):
                yield from self.satisfying(self._distinct(self._redrawn(x, rng, among), x))

    def walked(self, x: Array, rng: np.random.Generator, steps: int, among: Indices | None = None) -> Array:
        """The end of a random walk from one feasible point to the next."""
        for _ in range(steps):
            following = next(self.beside(x, rng, among, n=QUICK), None)
            x = x if following is None else following
        return x

    def _distinct(self, X: Array, x: Array) -> Array:
        """Those that are points of the space other than x, each once, in their order."""
        X = X[~self.space.misfits(X).any(axis=1)]
        if self.space.conditional:
            X = np.where(self.space.there(X), X, self.space.standard)
        first = {row.tobytes(): i for i, row in reversed(list(enumerate(X + 0.0)))}
        first.pop((x + 0.0).tobytes(), None)
        return X[sorted(first.values())]

    def _moved(self, x: Array, rng: np.random.Generator, among: Indices, n: int) -> Array:
        """(n, V) x with another value of one variable, two exchanged, or steps of two; not all are in the space."""
        space, rows = self.space, np.arange(n)
        _, group, counts = np.unique(x[among], return_inverse=True, return_counts=True)
        chances = np.cumsum(1.0 / counts[group])  # a value that few have is exchanged as often as another
        i = among[np.searchsorted(chances, rng.random(n) * chances[-1] * (1.0 - 1e-12))]
        j = among[rng.integers(len(among), size=n)]
        way, up = rng.integers(3, size=n), rng.choice([-1.0, 1.0], n)
        reach = up * np.exp(rng.random(n) * np.log(np.maximum(space.sizes[i] - 1.0, 1.0))).round()
        places = np.repeat(space.places(x)[None], n, axis=0)
        alone = rows[way == 0]
        places[alone, i[alone]] += reach[alone]
        listed = alone[self._kinds[i[alone]] > 0]  # categories, which have no order
        places[listed, i[listed]] %= space.sizes[i[listed]]
        X = np.where(np.isinf(space.sizes), x, space.at(places))
        swapped = rows[(way == 1) & (self._kinds[i] == self._kinds[j])]
        X[swapped, i[swapped]], X[swapped, j[swapped]] = x[j[swapped]], x[i[swapped]]
        both = rows[(way == 2) & (i != j)]
        one, other = self._steps_together(i[both], j[both], rng)
        X[both, i[both]] += reach[both] * one
        X[both, j[both]] += reach[both] * other
        return X

    def _steps_together(self, i: Indices, j: Indices, rng: np.random.Generator) -> tuple[Array, Array]:
        """Steps of pairs of variables that leave a row as it is in which both are; else a sum or a difference."""
        step = np.maximum(self._steps[i], self._steps[j])
        one, other = step, step * rng.choice([-1.0, 1.0], len(i))
        if len(self.table):
            row = rng.integers(len(self.table), size=len(i))
            a, b = self.table[row, i], self.table[row, j]
            shared = (a != 0.0) & (b != 0.0)
            whole = (a == np.rint(a)) & (b == np.rint(b))
            divisor = np.gcd(np.rint(a).astype(np.int64), np.rint(b).astype(np.int64)).astype(np.float64)
            divisor = np.where(whole, divisor, np.minimum(np.abs(a), np.abs(b)))
            divisor[~shared] = 1.0
            one, other = np.where(shared, b / divisor, one), np.where(shared, -a / divisor, other)
        return one, other

    def _redrawn(self, x: Array, rng: np.random.Generator, among: Indices) -> Array:
        """Points with other values of some variables of one or two rows, which are redrawn together."""
        chosen = rng.choice(len(self.table), min(2, len(self.table)), replace=False)
        about = among[(self.table[chosen][:, among] != 0.0).any(axis=0)]
        about = rng.permutation(about)
        sizes = np.cumprod(self.space.sizes[about])
        about = about[: max(2, int(np.searchsorted(sizes, REDRAWN, side="right")))]
        found, seen = [x[None]], 0
        for block, looked in self.blocks(x, about):
            found.append(block)
            seen += looked
            if seen > 2 * REDRAWN:
                break
        return rng.permutation(np.concatenate(found))[:MOVES]

    @cached_property
    def _kinds(self) -> Array:
        """(V,) variables of the same kind may exchange their values: numbers, or the same choices."""
        kinds: dict[object, int] = {None: 0}
        labels = [getattr(v, "choices", None) for v in self.space.variables]
        return np.array([kinds.setdefault(None if own is None else repr(own), len(kinds)) for own in labels])

    def patterned(self, rng: np.random.Generator) -> Array:
        """A point (V,) as constraints often ask for: all values different, or one value at any number of variables.

        Only variables with the same bounds are drawn together; the others are anywhere.
        """
        space = self.space
        x = space.decode(rng.random(space.n_coordinates))
        for group in self._alike:
            size = int(space.sizes[group[0]])
            if rng.random() < 0.5 and size >= len(group):
                places = rng.choice(size, len(group), replace=False, shuffle=True) if size <= BLOCK else None
            else:
                common, other = rng.integers(size, size=2)
                places = np.where(rng.permutation(len(group)) < rng.integers(len(group) + 1), common, other)
            if places is not None:
                x[group] = space.nth(int(group[0]), np.asarray(places, np.float64))
        return x

    @cached_property
    def _alike(self) -> list[Indices]:
        """Variables with the same values."""
        groups: dict[object, list[int]] = {}
        for v in self.variables.tolist():
            variable = self.space.variables[v]
            groups.setdefault((type(variable), *map(repr, vars(variable).values())), []).append(v)
        return [np.array(group) for group in groups.values()]
