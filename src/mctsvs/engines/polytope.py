"""The polytope of low-dimensional points whose image stays inside the cube, and searching it.

Notation: G (D, d) maps a low-dimensional v to the cube [-1, 1]^D; the polytope is {v : |G v| <= 1 everywhere},
symmetric about 0. Points are rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from mctsvs.common import Array
from mctsvs.gp.search import SurfaceLike

TOUCHING = 1e-9  # a face nearer than this is touched
RADII = np.array([0.5, 0.2, 0.05, 0.01])


@dataclass(frozen=True)
class Polytope:
    """{v : |G v| <= 1}."""

    G: Array  # (D, d)

    def reach(self, V: Array, directions: Array) -> tuple[Array, Array]:
        """(m,) smallest and largest t with v + t direction inside, for feasible v."""
        here, along = V @ self.G.T, directions @ self.G.T
        # |here + t along| <= 1; the divisor's floor turns a parallel face into one far away
        size = np.maximum(np.abs(along), 1e-300)
        toward = here * np.sign(along)
        ahead = ((1.0 - toward) / size).min(axis=1)
        behind = ((1.0 + toward) / size).min(axis=1)
        return -np.maximum(behind, 0.0), np.maximum(ahead, 0.0)

    def inside(self, V: Array) -> Array:
        """The points themselves, or drawn toward 0 until they are feasible."""
        return np.asarray(V / np.maximum(1.0, np.abs(V @ self.G.T).max(axis=1))[:, None])

    def walk(self, V: Array, steps: int, rng: np.random.Generator) -> Array:
        """Hit-and-run from every row of V: after many steps, uniform samples of the polytope."""
        for _ in range(steps):
            directions = rng.standard_normal(V.shape)
            low, high = self.reach(V, directions)
            V = self.inside(V + (low + (high - low) * rng.random(len(V)))[:, None] * directions)
        return V

    def around(self, centres: Array, size: int, rng: np.random.Generator) -> Array:
        """(size, d) normal steps of several radii from the centres, cut off at the faces."""
        base = centres[rng.integers(0, len(centres), size)]
        step = rng.standard_normal(base.shape) * rng.choice(RADII, size)[:, None]
        _, high = self.reach(base, step)
        return self.inside(base + np.minimum(high, 1.0)[:, None] * step)

    def tangent(self, v: Array, direction: Array) -> Array:
        """The nearest direction that leaves the polytope nowhere: `direction` projected on the tangent cone."""
        here = self.G @ v
        touched = np.abs(here) > 1.0 - TOUCHING
        if not touched.any():
            return direction
        normals = self.G[touched] * np.sign(here[touched])[:, None]
        if (normals @ direction <= 0.0).all():
            return direction
        push, _ = nnls(normals.T, direction)  # Moreau: what is left of the normal cone's share is the tangent part
        return np.asarray(direction - normals.T @ push)

    def climb(self, surface: SurfaceLike, start: Array, *, iterations: int = 30) -> tuple[Array, float]:
        """Ascent inside the polytope by projected BFGS steps, each shortened where it would hit a face.

        Of the 2 D constraints only those touched enter a step; scipy's SLSQP carries all of them through each step.
        """
        d = len(start)
        v, inverse = start, np.zeros((d, d))
        values, gradients = surface.value_and_gradient(v[None])
        value, gradient = float(values[0]), gradients[0]
        for _ in range(iterations):
            step = self.tangent(v, inverse @ gradient)
            if float(step @ gradient) <= 1e-12:  # no curvature known yet, or it misleads: along the gradient
                inverse = np.eye(d) * (0.1 / max(float(np.linalg.norm(gradient)), 1e-12))
                step = self.tangent(v, inverse @ gradient)
                if float(step @ gradient) <= 1e-12:
                    break
            length = min(1.0, float(self.reach(v[None], step[None])[1][0]))
            while length > 1e-6:
                trial = self.inside((v + length * step)[None])
                values, gradients = surface.value_and_gradient(trial)
                if values[0] >= value + 1e-4 * length * float(step @ gradient):
                    break
                length *= 0.3
            else:
                break
            moved, change = trial[0] - v, gradient - gradients[0]
            gain = float(values[0]) - value
            v, value, gradient = trial[0], float(values[0]), gradients[0]
            inverse = _bfgs(inverse, moved, change)
            if gain < 1e-4:
                break
        return v, value


def _bfgs(inverse: Array, moved: Array, change: Array) -> Array:
    """Inverse Hessian after a step; unchanged where the curvature along it has the wrong sign."""
    curvature = float(moved @ change)
    if curvature <= 1e-10 * float(np.linalg.norm(moved) * np.linalg.norm(change)):
        return inverse
    left = np.eye(len(moved)) - np.outer(moved, change) / curvature
    return np.asarray(left @ inverse @ left.T + np.outer(moved, moved) / curvature)
