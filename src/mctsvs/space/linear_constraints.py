"""Half-spaces a x <= b over some variables: how far a point is outside, and how it is moved back inside.

`deepest` finds a point that satisfies all of them, or says in a sentence that there is none. The rows are linear in
natural units. Here these are scaled to t in [0, 1], from a variable's lowest value to its highest, and rows have length
1. A plain variable's t is its coordinate of the unit cube. `Ruler` computes t for a variable on a grid or on a
logarithmic scale, as if all values between were possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mctsvs.space.constraints import Row
from mctsvs.space.space import Space
from mctsvs.space.variables import Ordinal
from mctsvs.utils.formatting import listed
from mctsvs.utils.validation import Array, Indices, InputError


def deepest(half_spaces: HalfSpaces, rows: Sequence[Row], space: Space) -> Array:
    """t (k,) of the point farthest from all half-spaces and bounds; whole numbers are whole.

    A linear programme, in whole numbers where there are any; an error if it has no solution.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp  # half a second to import

    A, b, k = half_spaces.A, half_spaces.b, len(half_spaces.variables)
    low, high = space.bounds[half_spaces.variables].T
    sizes = space.sizes[half_spaces.variables]
    # A variable on a grid is counted in its steps; one of uneven or very many values is taken for continuous.
    steps = np.array([step_of(space, int(v)) * (space.sizes[v] < 1e6) for v in half_spaces.variables])
    even = steps > 0.0
    unit = np.where(even, steps / (high - low), 1.0)
    free = np.eye(k)[~even]
    table = np.block([[A * unit, np.linalg.norm(A, axis=1)[:, None]]])
    sides = np.block([[free, np.ones((len(free), 1))], [-free, np.ones((len(free), 1))]])
    limits = np.concatenate([b, np.ones(len(free)), np.zeros(len(free))])
    found = milp(
        np.append(np.zeros(k), -1.0),
        constraints=LinearConstraint(np.concatenate([table, sides]), -np.inf, limits),
        bounds=Bounds(np.zeros(k + 1), np.append(np.where(even, sizes - 1.0, 1.0), 1.0)),
        integrality=np.append(even, False).astype(int),
        options={"mip_rel_gap": 0.5, "node_limit": 100_000},
    )
    if found.x is None:
        raise InputError(_empty(half_spaces, rows))
    return np.asarray(np.clip(np.where(even, np.rint(found.x[:k]), found.x[:k]) * unit, 0.0, 1.0))


def step_of(space: Space, v: int) -> float:
    """The distance between neighbouring values of a variable, if all are equally far apart; else 0."""
    if not 1 < space.sizes[v] < np.inf:
        return 0.0
    listed = isinstance(space.variables[v], Ordinal)
    steps = np.diff(space.values(v) if listed else space.nth(v, np.arange(2.0)))
    return float(steps[0]) if np.ptp(steps) <= 1e-9 * steps[0] else 0.0


def _empty(half_spaces: HalfSpaces, rows: Sequence[Row]) -> str:
    smallest = np.minimum(half_spaces.A, 0.0).sum(axis=1)  # of each row, over all t
    alone = [row.name for row, least, limit in zip(rows, smallest, half_spaces.b, strict=True) if least > limit]
    names = alone[:1] or list(dict.fromkeys(row.name for row in rows))
    if len(names) == 1:
        return f"no point of the space satisfies the constraint {names[0]}: change it, or the bounds"
    together = f"the constraints {listed(names, most=4)} together"
    return f"no point of the space satisfies {together}: change one of them, or the bounds"


ROUNDING = 1e-12  # of a row's length: so much more is forgiven a user's point
MARGIN = 1e-8  # points are put so far inside, so that rounding elsewhere does not put them outside
LISTED = 1024  # values of a grid that are looked up
PASSES = 60  # of moving onto the half-space violated most, before the way to a point inside is taken

SWEEPS = 5  # steps of a walk for each variable
LONGEST_WALK = 300
MIXED = 5  # every so many steps is along all variables

Mask = npt.NDArray[np.bool_]


class Ruler:
    """From coordinates of the unit cube to t and back, of some variables that are no categories."""

    def __init__(self, space: Space, variables: Indices) -> None:
        scale, (low, high) = space._scale, space.bounds[variables].T
        self.logs = np.flatnonzero(np.isin(variables, scale.logs))
        self.low, self.width, self.ends = low[self.logs], (high - low)[self.logs], scale.ends[:, variables[self.logs]]
        self.grids: list[tuple[int, Array, Array]] = []  # position, middles of the bins, t
        for i, v in enumerate(variables):
            bins = space.sizes[v]
            if np.isfinite(bins) and i not in self.logs:
                many = bins > LISTED
                places = np.array([0.0, bins - 1.0]) if many else np.arange(bins)
                t = np.array([0.0, 1.0]) if many else (space.values(int(v)) - low[i]) / (high[i] - low[i])
                self.grids.append((i, (places + 0.5) / bins, t))

    def read(self, U: Array) -> Array:
        """t (n, k) of coordinates (n, k)."""
        T = np.array(U)
        if len(self.logs):
            x = np.exp(self.ends[0] + U[:, self.logs] * (self.ends[1] - self.ends[0]))
            T[:, self.logs] = np.clip((x - self.low) / self.width, 0.0, 1.0)
        for i, middles, t in self.grids:
            T[:, i] = np.interp(U[:, i], middles, t)
        return T

    def write(self, T: Array) -> Array:
        """Coordinates (n, k) of t (n, k)."""
        U = np.array(T)
        if len(self.logs):
            x = np.log(self.low + np.clip(T[:, self.logs], 0.0, 1.0) * self.width)
            U[:, self.logs] = np.clip((x - self.ends[0]) / (self.ends[1] - self.ends[0]), 0.0, 1.0)
        for i, middles, t in self.grids:
            order = np.argsort(t)  # values may be listed from the largest to the smallest
            U[:, i] = np.interp(T[:, i], t[order], middles[order])
        return U

    def slopes(self, U: Array) -> Array:
        """(n, k) how fast t grows with the coordinate; of a grid, from its first value to its last."""
        slopes = np.ones(U.shape)
        if len(self.logs):
            logs = self.ends[1] - self.ends[0]
            slopes[:, self.logs] = np.exp(self.ends[0] + U[:, self.logs] * logs) * logs / self.width
        for i, middles, t in self.grids:
            slopes[:, i] = (t[-1] - t[0]) / max(middles[-1] - middles[0], 1e-9)
        return slopes


@dataclass(frozen=True, eq=False)
class HalfSpaces:
    """The inequalities A t <= b."""

    A: Array  # (m, k)
    b: Array  # (m,)
    variables: Indices  # (k,) those that have a coefficient, in their order

    @classmethod
    def of(cls, rows: Sequence[Row], space: Space) -> HalfSpaces:
        table = np.array([row.coefficients for row in rows]).reshape(len(rows), len(space))
        variables = np.flatnonzero(np.abs(table).max(axis=0, initial=0.0) > 0)
        low, high = space.bounds[variables].T
        A = table[:, variables] * (high - low)
        b = np.array([row.limit for row in rows]) - table[:, variables] @ low
        length = np.linalg.norm(A, axis=1)
        return cls(A / length[:, None], b / length, variables)

    def excess(self, T: Array) -> Array:
        """(n, m) how far outside; negative inside."""
        return np.asarray(T @ self.A.T - self.b)

    def moved_inside(self, T: Array, free: Mask | None = None) -> Array:
        """(n, k) near T (n, k): again and again onto the half-space violated most, by moving coordinates that can.

        With one half-space this is the nearest point. `free` (k,) are those that may move. What is not inside after
        `PASSES` is returned as it is.
        """
        T, bad = np.array(T), np.arange(len(T))
        for _ in range(PASSES):
            excess = self.excess(T[bad]) + MARGIN
            outside = excess.max(axis=1, initial=-1.0) > MARGIN / 2
            bad, excess = bad[outside], excess[outside]
            if not len(bad):
                break
            worst = excess.argmax(axis=1)
            t, a = T[bad], self.A[worst]
            stuck = ((a > 0) & (t <= 0.0)) | ((a < 0) & (t >= 1.0))
            a = np.where(stuck if free is None else stuck | ~free, 0.0, a)
            square = (a**2).sum(axis=1)
            possible = square > 1e-30
            step = np.where(possible, excess[np.arange(len(bad)), worst] / np.where(possible, square, 1.0), 0.0)
            T[bad] = np.clip(t - step[:, None] * a, 0.0, 1.0)
            bad = bad[possible]
        return T

    def walk(self, t: Array, rng: np.random.Generator) -> Array:
        """Hit and run from t (k,), which is inside: along a variable, or now and then all, to anywhere on the line."""
        t, k, directions = np.array(t), len(t), np.eye(len(t))
        if k == 0:
            return t
        room = np.maximum(self.b - MARGIN - self.A @ t, 0.0)
        for step in range(min(SWEEPS * k, LONGEST_WALK)):
            direction = directions[rng.integers(k)] if step % MIXED else rng.standard_normal(k)
            gains = self.A @ direction
            rates = np.concatenate([gains, direction, -direction])
            rooms = np.concatenate([room, 1.0 - t, t])
            ahead, behind = rates > 1e-15, rates < -1e-15
            high = (rooms[ahead] / rates[ahead]).min(initial=2.0)
            low = (rooms[behind] / rates[behind]).max(initial=-2.0)
            if high > low:
                s = rng.uniform(low, high)
                t, room = np.clip(t + s * direction, 0.0, 1.0), np.maximum(room - s * gains, 0.0)
        return t

    def cut(self, kept: Mask, T: Array, *, give_way: bool = False) -> HalfSpaces:
        """The half-spaces of the variables `kept` (k,) alone: the others stay at t (k,), or leave the most room."""
        A, others = self.A[:, kept], self.A[:, ~kept]
        taken = np.minimum(others, 0.0).sum(axis=1) if give_way else others @ T[~kept]
        return HalfSpaces(A, self.b - taken, self.variables[kept])
