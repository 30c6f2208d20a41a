"""Maximising an acquisition function over the unit cube.

Several points come from one model by turns: each is the best one, and enters as a bad one before the next is sought.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from mctsvs.gp.quasi_newton import Pairs, minimise
from mctsvs.utils.validation import Array

if TYPE_CHECKING:
    from mctsvs.gp.acquisition import AcquisitionLike


SOBOL_LIMIT = 21_201  # scipy's direction numbers end there
RADII = np.array([0.2, 0.05, 0.01])
RACE = 15  # steps after which only the climb that is ahead goes on
SHARES = np.array([1.0, 0.5, 0.2, 0.0])
TAKEN = np.array([0.5, 0.2, 0.1])  # share of coordinates that a crossover takes from the other point


def quasi_random(size: int, d: int, rng: np.random.Generator) -> Array:
    """(size, d) randomly shifted Sobol points; uniform ones beyond the dimension Sobol numbers exist for."""
    if d > SOBOL_LIMIT:
        return rng.random((size, d))
    width = 1 << max(int(d) - 1, 0).bit_length()  # few distinct tables: the first d columns are as good
    table = _sobol_table(1 << max(int(size) - 1, 0).bit_length(), min(width, SOBOL_LIMIT))
    points: Array = table[:size, :d] + rng.random(d)
    points -= points >= 1.0  # a random shift, modulo one, makes every call another set
    return points


@lru_cache(maxsize=12)  # a tree of variables asks for many widths; made anew, a table costs two model fits
def _sobol_table(size: int, d: int) -> Array:
    """Sobol points; scrambling them anew for each call would cost more than the model's prediction."""
    from scipy.stats import qmc  # costs half a second to import, so only where it is needed

    points: Array = qmc.Sobol(d, scramble=True, rng=np.random.default_rng(0)).random(size)
    return points


def pool(size: int, incumbents: Array, rng: np.random.Generator, extra: Array | None = None) -> Array:
    """(size, d) starting points: half global, half around the incumbents; and (k, d) extra ones.

    The local half moves a random share of an incumbent's coordinates (all, half, a fifth, or one) by normal steps
    of three radii: in many dimensions moving all of them at once only ever leads away from a good point.
    """
    d = incumbents.shape[1]
    local = size // 2
    base = incumbents[rng.integers(0, len(incumbents), local)]
    moved = rng.random((local, d)) < rng.choice(SHARES, local)[:, None]
    moved[np.arange(local), rng.integers(0, d, local)] = True
    steps = rng.standard_normal((local, d)) * rng.choice(RADII, local)[:, None]
    around = np.where(moved, np.clip(base + steps, 0.0, 1.0), base)
    return np.concatenate([quasi_random(size - local, d, rng), around, *(() if extra is None else (extra,))])


def crossovers(size: int, best: Array, rng: np.random.Generator) -> Array:
    """(size, d) points made of two good ones, a of the three best and b of all: `best` (k, d), the best first.

    Half lie on the line through both, beyond a too; half are a with some of its coordinates taken from b.
    """
    a, b = best[rng.integers(0, min(3, len(best)), size)], best[rng.integers(0, len(best), size)]
    on_line = np.clip(a + rng.uniform(-0.5, 1.0, (size, 1)) * (b - a), 0.0, 1.0)
    taken = rng.random(a.shape) < rng.choice(TAKEN, size)[:, None]
    return np.where(np.arange(size)[:, None] % 2 == 0, on_line, np.where(taken, b, a))


def along_axes(size: int, best: Array, rng: np.random.Generator) -> Array:
    """About so many points (m, d): the best one (d,) with one coordinate anywhere, as often for each of them."""
    d = len(best)
    each = max(1, size // d)
    points = np.repeat(best[None], each * d, axis=0)
    points[np.arange(each * d), np.repeat(np.arange(d), each)] = rng.random(each * d)
    return points


def climb(
    acqf: AcquisitionLike,
    start: Array,
    low: Array | float = 0.0,
    high: Array | float = 1.0,
    *,
    iterations: int = 20,
    pairs: Pairs | None = None,
) -> tuple[Array, float]:
    """Quasi-Newton ascent from one point inside a box, the unit cube by default; equal bounds fix a coordinate.

    `pairs` is what an earlier ascent has learnt about the curvature; it is extended.
    """

    def descend(z: Array) -> tuple[float, Array]:
        value, gradient = acqf.value_and_gradient(z[None])
        return -float(value[0]), -gradient[0]

    low, high = np.broadcast_to(low, start.shape), np.broadcast_to(high, start.shape)
    point, value = minimise(
        descend,
        start,
        low,
        high,
        [] if pairs is None else pairs,
        iterations=iterations,
        tolerance=1e-3,
        memory=6,
        first_step=0.05,
        longest_step=0.3,
    )
    return point, -value


def maximise(
    acqf: AcquisitionLike,
    incumbents: Array,
    rng: np.random.Generator,
    *,
    size: int = 256,
    starts: int = 1,
    iterations: int = 20,
    extra: Array | None = None,
) -> Array:
    """(d,) the best point found: climb from the best few of a pool, each start on its own; the one ahead goes on.

    `extra` (k, d) are further points of the pool.
    """
    from mctsvs.gp.acquisition import put_inside  # scipy, which methods without a model do not need

    candidates = put_inside(pool(size, incumbents, rng, extra), acqf)
    values = acqf(candidates)
    order = np.argsort(-values, kind="stable")[:starts]
    return climb_from(acqf, candidates[order], float(values[order[0]]), iterations=iterations)


def climb_from(
    acqf: AcquisitionLike,
    starts: Array,
    value: float,
    low: Array | float = 0.0,
    high: Array | float = 1.0,
    *,
    iterations: int = 20,
) -> Array:
    """(d,) the best point: a climb from each start (k, d), the one ahead goes on; `value` is that of the first."""
    best: Array = starts[0]
    best_value, learnt = value, Pairs()
    race = iterations if len(starts) == 1 else min(RACE, iterations)
    for start in starts:
        pairs = Pairs()
        point, value = climb(acqf, start, low, high, iterations=race, pairs=pairs)
        if value > best_value:
            best, best_value, learnt = point, value, pairs
    if race < iterations:
        point, value = climb(acqf, best, low, high, iterations=iterations - race, pairs=learnt)
        if value > best_value:
            best = point
    return best


class SupportsFantasies(Protocol):
    """A posterior, or an ensemble of them."""

    def with_fantasies(self: M, X: Array, value: float) -> M: ...


M = TypeVar("M", bound=SupportsFantasies)


def propose_greedily(n: int, model: M, fantasy: float | None, best: Callable[[M, list[Array]], Array]) -> Array:
    """(n, d) points: `best` gives one for the model and the points chosen so far (constant liar).

    `fantasy` is the value they are given; None for sample paths, which differ by themselves.
    """
    chosen: list[Array] = []
    for i in range(n):
        if i and fantasy is not None:
            model = model.with_fantasies(chosen[-1][None], fantasy)
        chosen.append(best(model, chosen))
    return np.array(chosen)
