"""A point that satisfies all known constraints, or a sentence that there is none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mctsvs.common import Array, InputError, listed
from mctsvs.space.constraints import Row
from mctsvs.space.linear import HalfSpaces
from mctsvs.space.space import Space


def deepest(half_spaces: HalfSpaces, rows: Sequence[Row], space: Space) -> Array:
    """t (k,) of the point farthest from all half-spaces and bounds; whole numbers are whole.

    A linear programme, in whole numbers where there are any; an error if it has no solution.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp  # half a second to import

    A, b, k = half_spaces.A, half_spaces.b, len(half_spaces.variables)
    low, high = space.bounds[half_spaces.variables].T
    sizes = space.sizes[half_spaces.variables]
    # A variable on a grid is counted in its steps; one whose values are listed is taken for continuous.
    steps = np.array([_step(space, int(v)) for v in half_spaces.variables])
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


def _step(space: Space, v: int) -> float:
    """Between two values of a variable, if all are as far apart; else 0."""
    if not 1 < space.sizes[v] < 1e6:
        return 0.0
    steps = np.diff(space.values(v))
    return float(steps[0]) if np.ptp(steps) <= 1e-9 * steps[0] else 0.0


def _empty(half_spaces: HalfSpaces, rows: Sequence[Row]) -> str:
    smallest = np.minimum(half_spaces.A, 0.0).sum(axis=1)  # of each row, over all t
    for row, least, limit in zip(rows, smallest, half_spaces.b, strict=True):
        if least > limit:
            return f"no point of the space satisfies the constraint {row.name}: change it, or the bounds"
    names = listed(list(dict.fromkeys(row.name for row in rows)), most=4)
    return f"no point of the space satisfies the constraints {names} together: change one of them, or the bounds"
