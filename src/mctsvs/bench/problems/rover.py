"""Rover trajectory (Wang et al., AISTATS 2018): a path from one corner of a square to the other, past 113 obstacles.

The 60 variables are 30 points of the plane, scaled from [0, 1] to [-0.1, 1.1]. A cubic B-spline is fitted to them with
the smoothing that scipy chooses for m points, m - sqrt(2 m), as published; so much that the path is nearly one cubic
curve. It costs 0.05 for each unit of length, 20 more inside an obstacle or outside the unit square, and 10 for
each unit (in the sum of coordinates) that it begins away from the start or ends away from the goal. The value is 5
minus the cost. The published program also jitters the points by 1e-4; here the value is a function of x alone.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mctsvs.bench.problems import data
from mctsvs.bench.problems.declare import box, single
from mctsvs.objectives.problem import Variation
from mctsvs.utils.validation import Array

POINTS = 30
SAMPLES = 1000  # places along the path where its cost is taken
SAME_PLACE = 1e-9  # points nearer to each other are one
LOW, HIGH = -0.1, 1.1
OBSTACLE, LENGTH, MISS, OFFSET = 20.0, 0.05, 10.0, 5.0


@dataclass(frozen=True, eq=False)
class Ground:
    """Obstacles are squares around `centres`, (n, 2), closed below and open above."""

    centres: Array
    halfwidth: float
    start: Array
    goal: Array

    def blocked(self, places: Array) -> Array:
        """For each of (m, 2) places: 1.0 inside an obstacle or outside the unit square, else 0.0."""
        inside = np.zeros(len(places), np.bool_)
        x, y = places.T
        for low, high in zip(self.centres - self.halfwidth, self.centres + self.halfwidth, strict=True):
            inside |= (low[0] <= x) & (x < high[0]) & (low[1] <= y) & (y < high[1])
        outside = ~((x >= 0) & (x < 1) & (y >= 0) & (y < 1))
        blocked: Array = (inside | outside).astype(np.float64)
        return blocked


def _ground() -> Ground:
    return _read(data.folder("rover"))


@functools.cache  # by the folder, which --data may change
def _read(place: Path) -> Ground:
    arrays = data.arrays("rover", "rover_obstacles.npz")
    return Ground(arrays["large"], float(arrays["large_halfwidth"]), arrays["start"], arrays["goal"])


def path(x: Array) -> Array:
    """The places, (1000, 2), that the 60 numbers in [0, 1] lead through."""
    from scipy.interpolate import splev, splprep

    points = (LOW + (HIGH - LOW) * x).reshape(POINTS, 2)
    # splprep refuses a point that repeats the one before it, or nearly does; the curve is the same without it
    fresh = np.concatenate([[True], (np.abs(np.diff(points, axis=0)) > SAME_PLACE).any(axis=1)])
    points = points[fresh]
    if len(points) < 4:  # too few for a cubic curve: straight lines from one to the next
        place = np.linspace(0, max(len(points) - 1, 1), SAMPLES)
        return np.stack([np.interp(place, np.arange(len(points)), column) for column in points.T], axis=1)
    fitted: Any = splprep(points.T, k=3, s=len(points) - math.sqrt(2 * len(points)))
    return np.stack(splev(np.linspace(0, 1, SAMPLES), fitted[0]), axis=1)


def reward(x: Array) -> float:
    """5 minus the cost of the path."""
    ground, places = _ground(), path(x)
    cost = OBSTACLE * ground.blocked(places) + LENGTH
    lengths = np.linalg.norm(np.diff(places, axis=0), axis=1)
    along = float(lengths @ (cost[:-1] + cost[1:])) / 2
    missed = float(np.abs(places[0] - ground.start).sum() + np.abs(places[-1] - ground.goal).sum())
    return OFFSET - along - MISS * missed


def _details(variation: Variation) -> dict[str, Any]:
    _ground()  # a missing file is said now, not at the first evaluation
    return {"function": reward}


FAMILIES = [
    single(
        "Rover60",
        "Rover(?:60)?",
        "Path of 30 points past 113 obstacles; 5 minus its cost",
        "Rover trajectory: 30 points of a path past 113 obstacles, below 5",
        box(0.0, 1.0, 2 * POINTS),
        _details,
        evaluation="simulator",
        optimum="< 5",
        data="rover",
    )
]
