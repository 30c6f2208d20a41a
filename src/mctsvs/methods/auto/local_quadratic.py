"""The local arm: a quadratic model around the best point, minimised in a trust region.

The model is Bayesian regression on gradient and Hessian, with a larger prior for the Hessian's diagonal, so that some
2 d points tell a function that is nearly separable. Its error grows with the third power of the distance, as that of a
Taylor polynomial does, at a rate that is fitted: so every point takes part for what it is worth, near or far, and the
history is all the memory there is beside the radius. With more coefficients than points this is the minimum-norm model
of Powell's methods (BOBYQA, COBYQA). After a step that failed, and beside one that waits, a draw from the posterior is
minimised in place of its mean: it goes where the model knows least and hopes most, which is what those methods have
geometry steps for, and what makes the points of a batch differ.
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


@dataclass(frozen=True, eq=False)
class Step:
    """Where to, and what the model promises there: 0 for a draw."""

    x: Array
    promise: float
    length: float


@dataclass
class LocalQuadratic:
    """The trust region; 0 is a radius not chosen yet."""

    radius: float = 0.0
    failed: bool = False  # the last step by the model's mean

    def propose(self, X: Array, y: Array, rng: np.random.Generator, *, beside: bool) -> Step:
        """A point (d,) from points (n, d) and values (n,), larger is better; `beside` another that waits."""
        best = int(np.argmax(y))
        base, others, loss = X[best], np.delete(X, best, axis=0), y[best] - np.delete(y, best)
        distance = np.linalg.norm(others - base, axis=1)
        if self.radius == 0.0:
            self.radius = max(float(np.sort(distance)[: X.shape[1] + 1].mean()), LEAST)
        rows = np.argsort(distance, kind="stable")[:MOST]
        rows = rows[distance[rows] > 1e-9 * self.radius]
        if len(rows) == 0:
            step = rng.standard_normal(len(base)) / np.sqrt(len(base))
            return Step(np.clip(base + self.radius * step, 0.0, 1.0), 0.0, self.radius)
        draw = beside or self.failed
        unit = float(loss[rows].max()) or 1.0
        losses = np.round(loss[rows] / unit / GRID) * GRID
        slope, hessian = quadratic((others[rows] - base) / self.radius, losses, rng if draw else None)
        step = minimum_in_ball(slope, hessian, -base / self.radius, (1.0 - base) / self.radius)
        promise = 0.0 if draw else -unit * float(slope @ step + 0.5 * step @ hessian @ step)
        x = np.clip(base + self.radius * step, 0.0, 1.0)
        return Step(x, promise, self.radius * float(np.linalg.norm(step)))

    def learn(self, promise: float, length: float, gain: float) -> None:
        """From what a step gained: larger where the model was right, smaller where it was wrong."""
        drawn = promise <= 0.0
        self.failed = not drawn and gain < RIGHT * promise
        if gain > max(RIGHT * promise, 0.0):
            self.radius = max(self.radius, 2.0 * length)
        elif drawn:
            self.radius *= SHRINK_DRAWN
        elif self.failed:
            self.radius = SHRINK * min(self.radius, length)
        if self.radius < LEAST:
            self.radius = RADIUS


def quadratic(S: Array, loss: Array, rng: np.random.Generator | None) -> tuple[Array, Array]:
    """Gradient and Hessian at 0 of a loss that is 0 there and (n,) at S (n, d): posterior mean, or with `rng` a draw."""
    n, d = S.shape
    squares, gram = S * S, S @ S.T
    prior = SLOPE * gram + 0.5 * gram**2 + 0.5 * DIAGONAL * squares @ squares.T
    most_likely = -np.inf
    for remainder in REMAINDERS:
        variance = remainder * gram.diagonal() ** 3 + 1e-10 * prior.diagonal()
        unit = 1.0 / np.sqrt(prior.diagonal() + variance)
        lower = cho_factor(unit[:, None] * (prior + np.diag(variance)) * unit, lower=True)
        misfit = float((unit * loss) @ cho_solve(lower, unit * loss)) / n
        likely = -0.5 * n * np.log(max(misfit, 1e-300)) - np.log(lower[0].diagonal()).sum() + np.log(unit).sum()
        if likely > most_likely:
            most_likely, error, scale, factor, size = likely, variance, unit, lower, np.sqrt(max(misfit, 1e-300))
    slope, hessian = np.zeros(d), np.zeros((d, d))
    rest = loss / size
    if rng is not None:  # a draw from the prior, corrected by what the data say of it
        slope, free = np.sqrt(SLOPE) * rng.standard_normal(d), rng.standard_normal((d, d))
        hessian = (free + free.T) / np.sqrt(2.0) + np.diag(np.sqrt(2.0 * DIAGONAL) * rng.standard_normal(d))
        rest = rest - S @ slope - 0.5 * np.einsum("ij,jk,ik->i", S, hessian, S) - np.sqrt(error) * rng.standard_normal(n)
    weight = scale * cho_solve(factor, scale * rest)
    slope = slope + SLOPE * S.T @ weight
    hessian = hessian + (S.T * weight) @ S + np.diag(DIAGONAL * squares.T @ weight)
    return size * slope, size * hessian


def minimum_in_ball(slope: Array, hessian: Array, low: Array, high: Array) -> Array:
    """About the minimum of a quadratic in the unit ball between bounds: those it hits are held, then the rest again."""
    free, step = np.ones(len(slope), dtype=np.bool_), np.zeros(len(slope))
    for _ in range(12):
        held = ~free
        left = 1.0 - float(step[held] @ step[held])
        if left <= 1e-12 or not free.any():
            break
        value, vector = np.linalg.eigh(hessian[np.ix_(free, free)])
        along = vector.T @ (slope[free] + hessian[np.ix_(free, held)] @ step[held])
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
