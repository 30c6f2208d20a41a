"""The local arm: a quadratic model around the best point, minimised in a trust region.

The model is Bayesian regression on gradient and Hessian, with a larger prior for the Hessian's diagonal, so that some
2 d points tell a function that is nearly separable. Its error grows with the third power of the distance, as that of a
Taylor polynomial does, at a rate that is fitted: every point takes part for what it is worth, near or far, and the
history is all the memory there is beside the radius. With more coefficients than points this is the minimum-norm model
of Powell's methods (BOBYQA, COBYQA). After a step that failed, and beside one that waits, a draw from the posterior is
minimised in place of its mean: it goes where the model knows least and hopes most, which is what those methods have
geometry steps for, and what makes the points of a batch differ.

A measured constraint has a model of its own, and its violation is a quadratic penalty.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from mctsvs.utils.validation import Array

SLOPE, DIAGONAL = 100.0, 100.0  # prior variances of gradient and Hessian's diagonal, in those of its other entries
REMAINDERS = (1e-6, 1e-4, 1e-2, 1.0)  # variances of the model's error at the region's edge: the most likely is taken
GRID = 2.0**-40  # of the values' range, to which they are rounded: a f + b gives the points of f
MOST = 400  # points of the model, the nearest
RADIUS, LEAST = 0.2, 1e-7  # with which it begins again, and below which
RIGHT = 0.1  # of the promised gain, from which on the region grows; below it shrinks
SHRINK, SHRINK_DRAWN = 0.7, 0.95  # factors, after a step of the mean and after a draw
LENGTHS = 4  # of the steps of a batch, each half as long as the one before
PENALTIES = (10.0, 1e2, 1e3, 1e4)  # on squared violations, one after the other
KEPT = 1e-3  # distance from a constraint's limit, of its change across the region


@dataclass(frozen=True, eq=False)
class Step:
    """Where to, from which trust region, and what the mean of the model promises there; no promise of a draw."""

    x: Array
    length: float
    radius: float
    promise: float | None = None


@dataclass
class LocalQuadratic:
    """The trust region; 0 is a radius not chosen yet."""

    radius: float = 0.0
    failed: bool = False  # the last step by the model's mean

    def __post_init__(self) -> None:
        self._known: tuple[tuple[float, ...], Regression] | None = None  # of the points of a batch, which share it

    def propose(self, X: Array, Y: Array, best: int, rng: np.random.Generator, *, beside: int) -> Step:
        """A point (d,) from points X (n, d) and losses and constraints Y (n, 1 + m); `beside` so many that wait.

        Steps beside others are shorter and shorter, and then long again: nobody knows yet which length is right.
        """
        base = X[best]
        distance = np.linalg.norm(X - base, axis=1)
        rows = np.argsort(distance, kind="stable")
        rows = rows[rows != best][: max(MOST, len(base) + 1)]
        if self.radius == 0.0:
            self.radius = max(float(distance[rows[: len(base) + 1]].mean()), LEAST)
        rows = rows[:MOST][distance[rows[:MOST]] > 1e-9 * self.radius]
        if len(rows) == 0:
            away = rng.standard_normal(len(base)) / np.sqrt(len(base))
            return Step(np.clip(base + self.radius * away, 0.0, 1.0), self.radius, self.radius)
        drawn = beside > 0 or self.failed
        change = Y[rows] - Y[best]
        units = np.abs(change).max(axis=0)
        units[units == 0.0] = 1.0
        changes = np.round(change / units / GRID) * GRID
        radius = self.radius * 0.5 ** (beside % LENGTHS)
        key = (*X.shape, best, self.radius)
        if self._known is None or self._known[0] != key:
            self._known = key, Regression((X[rows] - base) / self.radius)
        regression = self._known[1]
        models = [regression.fit(column, rng if drawn else None) for column in changes.T]
        low, high, share = -base / radius, (1.0 - base) / radius, radius / self.radius
        models = [Quadratic(share * model.slope, share**2 * model.hessian) for model in models]  # in units of it
        step = models[0].minimum(low, high)
        if len(models) > 1:
            step = penalised_minimum(models, Y[best] / units, low, high)
        x = np.clip(base + radius * step, 0.0, 1.0)
        promise = None if drawn else max(0.0, -float(units[0]) * models[0](step)) if len(models) == 1 else 0.0
        return Step(x, radius * float(np.linalg.norm(step)), radius, promise)

    def learn(self, step: Step, gain: float) -> None:
        """From what a step gained: larger where the model was right, smaller where it was wrong.

        All failures of one region count once, so that those of a batch do not shrink it to nothing.
        """
        right = gain > RIGHT * (step.promise or 0.0)
        self.failed = step.promise is not None and not right
        if right:
            self.radius = max(self.radius, 2.0 * step.length)
        elif self.radius <= step.radius:
            shrunk = SHRINK_DRAWN * step.radius if step.promise is None else SHRINK * min(step.radius, step.length)
            self.radius = min(self.radius, shrunk)
        if self.radius < LEAST:
            self.radius = RADIUS


@dataclass(frozen=True, eq=False)
class Quadratic:
    """slope . s + s . hessian . s / 2."""

    slope: Array  # (d,)
    hessian: Array  # (d, d)

    def __call__(self, s: Array) -> float:
        return float(self.slope @ s + 0.5 * s @ self.hessian @ s)

    def gradient(self, s: Array) -> Array:
        change: Array = self.slope + self.hessian @ s
        return change

    def minimum(self, low: Array, high: Array) -> Array:
        """About its minimum in the unit ball between bounds: those it hits are held, then the rest again."""
        free, step = np.ones(len(self.slope), dtype=np.bool_), np.zeros(len(self.slope))
        for _ in range(12):
            held = ~free
            left = 1.0 - float(step[held] @ step[held])
            if left <= 1e-12 or not free.any():
                break
            value, vector = np.linalg.eigh(self.hessian[np.ix_(free, free)])
            along = vector.T @ (self.slope[free] + self.hessian[np.ix_(free, held)] @ step[held])
            shift = max(0.0, -value[0]) + 1e-12 * max(1e-300, float(np.abs(value).max()))
            radius = np.sqrt(left)
            if np.linalg.norm(along / (value + shift)) > radius:
                below, shift = shift, shift + float(np.linalg.norm(along)) / radius
                for _ in range(60):
                    middle = 0.5 * (below + shift)
                    inside = np.linalg.norm(along / (value + middle)) <= radius
                    below, shift = (below, middle) if inside else (middle, shift)
            step[free] = -vector @ (along / (value + shift))
            out = free & ((step < low) | (step > high))
            step = np.clip(step, low, high)
            if not out.any():
                break
            free &= ~out
        shrunk: Array = step / max(1.0, float(np.linalg.norm(step)))
        return shrunk


class Regression:
    """Quadratics that are 0 at 0 from changes at points S (n, d), in units of the trust region."""

    def __init__(self, S: Array) -> None:
        self.S, self.squares, gram = S, S * S, S @ S.T
        self.prior = SLOPE * gram + 0.5 * gram**2 + 0.5 * DIAGONAL * self.squares @ self.squares.T
        self.factors = []
        for remainder in REMAINDERS:
            variance = remainder * gram.diagonal() ** 3 + 1e-10 * self.prior.diagonal()
            unit = 1.0 / np.sqrt(self.prior.diagonal() + variance)
            lower = cho_factor(unit[:, None] * (self.prior + np.diag(variance)) * unit, lower=True)
            self.factors.append((variance, unit, lower, np.log(lower[0].diagonal()).sum() - np.log(unit).sum()))

    def fit(self, change: Array, rng: np.random.Generator | None) -> Quadratic:
        """The posterior's mean, or with `rng` a draw from it."""
        S, (n, d) = self.S, self.S.shape
        best = -np.inf
        for variance, unit, lower, volume in self.factors:
            misfit = float((unit * change) @ cho_solve(lower, unit * change)) / n
            likely = -0.5 * n * np.log(max(misfit, 1e-300)) - volume
            if likely > best:
                best, error, scale, factor, size = likely, variance, unit, lower, np.sqrt(max(misfit, 1e-300))
        slope, hessian = np.zeros(d), np.zeros((d, d))
        rest = change / size
        if rng is not None:  # a draw from the prior, corrected by what the data say of it
            slope, free = np.sqrt(SLOPE) * rng.standard_normal(d), rng.standard_normal((d, d))
            hessian = (free + free.T) / np.sqrt(2.0) + np.diag(np.sqrt(2.0 * DIAGONAL) * rng.standard_normal(d))
            curved = 0.5 * ((S @ hessian) * S).sum(axis=1)
            rest = rest - S @ slope - curved - np.sqrt(error) * rng.standard_normal(n)
        weight = scale * cho_solve(factor, scale * rest)
        slope = slope + SLOPE * S.T @ weight
        hessian = hessian + (S.T * weight) @ S + np.diag(DIAGONAL * self.squares.T @ weight)
        return Quadratic(size * slope, size * hessian)


def penalised_minimum(models: list[Quadratic], offsets: Array, low: Array, high: Array) -> Array:
    """About the least value of the first model where all others, and their offsets (1 + m,), are at most 0.

    The penalty of the constraints that are violated is itself a quadratic, to second order: it is minimised, and again
    where that leads.
    """
    step = np.zeros(len(low))
    margins = [KEPT * float(np.linalg.norm(model.slope)) for model in models]
    for weight in np.repeat(PENALTIES, 3):
        slope, hessian = models[0].gradient(step), models[0].hessian.copy()
        for model, offset, margin in zip(models[1:], offsets[1:], margins[1:], strict=True):
            over = offset + margin + model(step)
            if over > 0.0:
                along = model.gradient(step)
                slope = slope + weight * over * along
                hessian += weight * (np.outer(along, along) + over * model.hessian)
        step = Quadratic(slope - hessian @ step, hessian).minimum(low, high)
    return step
