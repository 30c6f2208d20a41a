"""The part of the unit cube that may be asked for: grids, conditions and known constraints leave out the rest."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from mctsvs.space import constraints as known
from mctsvs.space.feasible import FeasibleSet
from mctsvs.space.linear_constraints import MARGIN, ROUNDING, HalfSpaces, Ruler, deepest
from mctsvs.space.space import Space
from mctsvs.utils.validation import Array, Indices, InputError

Mask = npt.NDArray[np.bool_]

HALVINGS = 30  # of the way from a point inside to one outside
SEARCHED = 4000  # points tried before it is said that none is known that passes all tests
SCANNED = 1 << 22  # points of a discrete space that are looked at to find one
COUNTED = 1 << 14  # of them looked at to count those inside
TESTED = 1 << 17  # of them with tests, where the space is too large to come to its end
MISSES = 3  # steps in a row that lead no nearer to a point
LONGEST = 60  # steps of a walk from one feasible point of a discrete space to the next


class Region:
    """The part of the unit cube that a space and its known constraints leave.

    constraints     one or a list of: a text such as "x1 + 2*x2 <= 100", a function of the point that says whether it
                    is allowed, `scipy.optimize.LinearConstraint` or `NonlinearConstraint` over the vector

    The optimizer puts every proposal through `repair`, whatever the method; methods that know their region choose
    inside it. Notation as in `mctsvs.space`: u (D,) or (n, D) in the unit cube, V variables.
    """

    def __init__(self, space: Space, constraints: Any = ()) -> None:
        self.space, self.constraints = space, known.as_list(constraints)
        self.rows, self.tests = known.made(self.constraints, space)
        self.first: Array | None = None  # a point known to be inside, where a search found none
        self._table = np.array([row.coefficients for row in self.rows]).reshape(len(self.rows), len(space))
        self._limits = np.array([row.limit for row in self.rows])
        self.half_spaces = HalfSpaces.of(self.rows, space)
        self.ruler = Ruler(space, self.half_spaces.variables)
        self.columns = space.offsets[self.half_spaces.variables]
        self.depth = deepest(self.half_spaces, self.rows, space) if self.rows else np.empty(0)

    @cached_property
    def plain(self) -> bool:
        """Whether it is the whole cube, with continuous variables alone."""
        return not self.constraints and bool(np.isinf(self.space.sizes).all())

    @property
    def constrained(self) -> bool:
        return bool(self.constraints)

    @cached_property
    def discrete(self) -> FeasibleSet | None:
        """What the constraints leave of the discrete variables, where there are both."""
        found = FeasibleSet(self, self._table, self._limits)
        return found if self.constrained and len(found.variables) else None

    @cached_property
    def size(self) -> float:
        """How many points there are: counted where constraints leave few of them, else at most so many."""
        if self.discrete is None or not self.discrete.finite or self.space.size > SCANNED:
            return self.space.size
        scan = Scan(self, COUNTED)
        inside = sum(1 for _ in scan)
        return inside if scan.complete else self.space.size

    @cached_property
    def levels(self) -> Array:
        """(D,) how many values each coordinate takes; infinite for a continuous one, and for those of a category."""
        space = self.space
        single = np.bincount(space.owner)[space.owner] == 1
        return np.where(single, space.sizes[space.owner], np.inf)

    def active(self, U: Array) -> Mask:
        """(n, V) which variables exist at each of the points (n, D)."""
        return self.space.active(U)

    def feasible(self, U: Array) -> Mask:
        """(n,) which of the points (n, D) satisfy the known constraints."""
        inside = np.ones(len(U), dtype=np.bool_)
        if self.rows:  # as a user would compute it
            inside = (self._values(U) @ self._table.T <= self._limits).all(axis=1)
        if self.tests:
            for i in np.flatnonzero(inside):
                inside[i] = self.passes(U[i])
        return inside

    def passes(self, u: Array) -> bool:
        """Whether the point (D,) passes the tests; the rows are not looked at."""
        return all(test.holds(self.space, u) for test in self.tests)

    def contains(self, u: Array) -> bool:
        return not self.constraints or bool(self.feasible(u[None])[0])

    def check(self, u: Array) -> None:
        """An error that names the constraint which the point (D,) violates, if there is one."""
        for i in np.flatnonzero(self.half_spaces.excess(self._exactly(u[None]))[0] > ROUNDING) if self.rows else ():
            raise InputError(f"the point cannot be used: {self.rows[i].complaint(self.space.decode(u))}")
        for test in self.tests:
            if not test.holds(self.space, u):
                raise InputError(f"the point cannot be used: {test.complaint(self.space, u)}")

    def _values(self, U: Array) -> Array:
        """(n, V) in natural units; a variable that does not exist counts as 0."""
        return np.where(self.active(U), self.space.decode(U), 0.0)

    def _exactly(self, U: Array) -> Array:
        """t (n, k) of the values that a point has, on its grid."""
        low, high = self.space.bounds[self.half_spaces.variables].T
        return np.asarray((self._values(U)[:, self.half_spaces.variables] - low) / (high - low))

    def _written(self, u: Array, t: Array) -> Array:
        """The canonical point that has these t (k,) in place of its own."""
        point = np.array(u)
        before = self.ruler.read(u[None, self.columns])
        changed = before[0] != t
        point[self.columns[changed]] = self.ruler.write(t[None])[0, changed]
        return self.space.snap(point)

    @cached_property
    def anchor(self) -> Array:
        """(D,) a point inside."""
        middle = self.space.snap(np.full(self.space.n_coordinates, 0.5))
        if self.rows:
            middle = self._written(middle, self.depth)
        if self.contains(middle):
            return middle
        found = self._searched(middle)
        if found is None and self.discrete is not None and self.discrete.finite:
            scan = Scan(self, SCANNED)
            found = next(scan, None)
            if scan.complete and found is None:
                raise InputError("no point of the space satisfies the constraints: change one of them, or the bounds")
        if found is None and self.first is None:
            names = ", ".join(test.name for test in self.tests) or "the constraints"
            raise InputError(
                f"no point that satisfies {names} was found among {SEARCHED}: give one as the first point (x0, or "
                f"enqueue), or wider limits"
            )
        return found if found is not None else np.array(self.first)

    def _searched(self, start: Array) -> Array | None:
        """A point that passes all tests, by random points and by steps from the one that misses least."""
        rng, space = np.random.default_rng(0), self.space

        def beyond(u: Array) -> float:
            total = sum(test.excess(space, u) for test in self.tests)
            return total + float(np.maximum(self.half_spaces.excess(self._exactly(u[None])), 0.0).sum())

        best, least, reach = start, beyond(start), 0.3
        for i in range(SEARCHED):
            step = rng.standard_normal(len(start)) * (rng.random(len(start)) < rng.choice([0.1, 0.5, 1.0]))
            u = rng.random(len(start)) if i < SEARCHED // 4 else np.clip(best + reach * step, 0.0, 1.0)
            if self.discrete is not None and i % 2 and i < SEARCHED // 4:
                u = space.encode(self.discrete.patterned(rng))
            elif self.rows:
                t = self.half_spaces.moved_inside(self.ruler.read(u[None, self.columns]))
                u[self.columns] = self.ruler.write(t)[0]
            u = space.snap(u)
            now = beyond(u)
            reach = min(max(reach * (1.3 if now < least else 0.98), 1e-4), 0.5)
            if now <= least:
                best, least = u, now
            if self.contains(u):
                return u
        return None

    def repair(self, u: Array, towards: Array | None = None, moved: Indices | None = None) -> Array:
        """The canonical point nearest to u that can be found in the region.

        towards     a point known to be in it; else one of the region's own is taken where one is needed
        moved       variables that may be changed, if that is enough
        """
        u = self.space.snap(u)
        if self.contains(u):
            return u
        if self.rows:
            t = self.ruler.read(u[None, self.columns])
            variables = self.half_spaces.variables
            for free in (None if moved is None else np.isin(variables, moved), np.ones(len(variables), np.bool_)):
                nearest = None if free is None else self._near(u, t, free)
                if nearest is not None and self.contains(nearest):
                    return nearest
                u = u if nearest is None else nearest
        return self._approached(self._between(self.anchor if towards is None else towards, u), u)

    def _approached(self, inside: Array, u: Array) -> Array:
        """A point inside nearer to u than `inside`, where steps of discrete variables lead to one."""
        if self.discrete is None:
            return inside
        rng, distance, missed = self._draws(u), float(((inside - u) ** 2).sum()), 0
        for _ in range(LONGEST):
            beside = np.array(list(self.discrete.beside(self.space.decode(inside), rng)))
            points = self.space.encode(beside.reshape(-1, len(self.space)))
            points[:, self._continuous] = inside[self._continuous]
            points = self.space.snap(points)
            distances = ((points - u) ** 2).sum(axis=1)
            if distances.min(initial=np.inf) < distance:
                inside, distance, missed = points[int(distances.argmin())], float(distances.min()), 0
            elif (missed := missed + 1) == MISSES:
                break
        return inside

    @cached_property
    def _continuous(self) -> Mask:
        """(D,) coordinates of continuous variables."""
        return np.isinf(self.space.sizes)[self.space.owner]

    def strolled(
        self, inside: Array, rng: np.random.Generator, moved: Indices | None = None, steps: int = LONGEST
    ) -> Array:
        """The end of a random walk of the discrete variables `moved`, from a point inside."""
        if self.discrete is None:
            return inside
        steps = min(steps, 2 * len(self.discrete.variables))
        x = self.discrete.walked(self.space.decode(inside), rng, steps, moved)
        return self.space.snap(np.where(self._continuous, inside, self.space.encode(x)))

    def _near(self, u: Array, t: Array, free: Mask) -> Array:
        """The point nearest to u, moved inside all half-spaces; then its grid values held, if that helps."""
        whole = np.isfinite(self.space.sizes[self.half_spaces.variables])
        point = self._written(u, self.half_spaces.moved_inside(t, free)[0])
        if not (whole & free).any() or self.contains(point):
            return point
        t = self._exactly(point[None])
        held = self._written(point, self.half_spaces.moved_inside(t, free & ~whole)[0])
        return held if self.contains(held) else self._rounded(held, free & whole)

    def _rounded(self, u: Array, free: Mask) -> Array:
        """Grid values changed one by one, each to where the half-spaces are violated less, while they are."""
        variables, half = self.half_spaces.variables, self.half_spaces
        for _ in range(2 * len(variables)):
            t = self._exactly(u[None])
            excess = half.excess(t)[0]
            worst = int(excess.argmax())
            if excess[worst] <= ROUNDING and self.contains(u):
                break
            gain = np.abs(half.A[worst]) * free
            choices = [v for v in np.argsort(-gain, kind="stable") if gain[v] > 0]
            better = [self._stepped(u, int(v), -np.sign(half.A[worst, v])) for v in choices[:8]]
            scores = [float(np.maximum(half.excess(self._exactly(p[None])), 0.0).sum()) for p in better]
            if not scores or min(scores) >= float(np.maximum(excess, 0.0).sum()):
                break
            u = better[int(np.argmin(scores))]
        return u

    def _stepped(self, u: Array, at: int, direction: float) -> Array:
        """With the next value of a grid variable, up or down."""
        variable = int(self.half_spaces.variables[at])
        point = np.array(u)
        point[self.columns[at]] = np.clip(point[self.columns[at]] + direction / self.space.sizes[variable], 0.0, 1.0)
        return self.space.snap(point)

    def _between(self, inside: Array, outside: Array) -> Array:
        """The last point inside, on the way from one to the other."""
        low, high, last = 0.0, 1.0, np.array(inside)
        for _ in range(HALVINGS):
            middle = (low + high) / 2.0
            point = self.space.snap(inside + middle * (outside - inside))
            if self.contains(point):
                low, last = middle, point
            else:
                high = middle
        safe = self.space.snap(inside + max(0.0, low - MARGIN) * (outside - inside))
        return safe if self.contains(safe) else last

    def make_room(self, u: Array, base: Array, order: Indices) -> Array:
        """A point inside with u's values of all variables but as few as possible of `order`, the first of them first.

        `base` is a point inside. Where that cannot be done, the point that `repair` gives.
        """
        u = self.space.snap(u)
        count = 1
        while self.rows and count < 2 * len(order) and not self.contains(u):
            t = self.ruler.read(u[None, self.columns])
            near = self._near(u, t, np.isin(self.half_spaces.variables, order[:count]))
            u = near if self.contains(near) else u
            count *= 2
        return self.repair(u, base)

    def spread(self, u: Array, base: Array | None = None, moved: Indices | None = None) -> Array:
        """A point anywhere in the region that belongs to u: u itself if it is inside, else the end of a random walk.

        `base` is a point inside from which u differs in the variables `moved` alone, and then so does the point
        returned. The draws follow from u; the ends are spread evenly where there are half-spaces alone.
        """
        u = self.space.snap(u)
        if self.contains(u):
            return u
        rng, start = self._draws(u), self.anchor if base is None else base
        if self.tests:
            start = self.strolled(start, rng, moved)
        if not self.rows:
            return self._wandered(u, start, rng)
        t = self.ruler.read(start[None, self.columns])[0]
        kept = np.ones(len(t), np.bool_) if moved is None else np.isin(self.half_spaces.variables, moved)
        t[kept] = self.half_spaces.cut(kept, t).walk(t[kept], rng)
        point = self.repair(self._written(u, t), towards=start, moved=moved)
        return self.strolled(start, rng, moved) if np.array_equal(point, start) and not self.tests else point

    def room(self, U: Array, moved: Indices) -> Array:
        """(n,) how far each of the points (n, D) is from the half-spaces that the variables `moved` take part in."""
        about = (self.half_spaces.A[:, np.isin(self.half_spaces.variables, moved)] != 0.0).any(axis=1)
        excess = self.half_spaces.excess(self.ruler.read(U[:, self.columns])) if self.rows else np.empty((len(U), 0))
        return np.asarray(-excess[:, about].max(axis=1, initial=-1.0))

    def _draws(self, u: Array) -> np.random.Generator:
        digest = hashlib.blake2b(u.tobytes(), digest_size=8).digest()
        return np.random.default_rng(int.from_bytes(digest, "little"))

    def _wandered(self, u: Array, start: Array, rng: np.random.Generator) -> Array:
        """The same where only tests tell: towards u and other points, ever less far until the point is inside."""
        for target in (u, u):
            reach = 1.0
            while reach > 1e-3:
                point = self.space.snap(start + rng.random() * reach * (target - start))
                if self.contains(point):
                    start = point
                    break
                reach /= 2.0
        return start


class Scan:
    """All points inside, one after the other in the order of the space; of a space without continuous variables.

    It ends after so many points that were looked at, or tested; `complete` says whether these were all.
    """

    def __init__(self, region: Region, most: int) -> None:
        self.complete, self._most = False, most
        self._points = self._all(region)

    def __iter__(self) -> Scan:
        return self

    def __next__(self) -> Array:
        return next(self._points)

    def _all(self, region: Region) -> Iterator[Array]:
        feasible = FeasibleSet(region, region._table, region._limits)
        looked, tested = 0, 0
        for block, count in feasible.blocks():
            looked, tested = looked + count, tested + len(block) * len(region.tests)
            if looked > self._most or (tested > TESTED and region.space.size > self._most):
                return
            for x in feasible.satisfying(block):
                yield region.space.encode(x)
        self.complete = True
