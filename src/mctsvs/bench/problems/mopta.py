"""MOPTA08 (Jones, 2008): the mass of a car body whose 124 gauges and shapes must keep 68 limits.

The published models are kriging models of a crash, noise and stiffness simulation: for each constraint a linear
function plus a weighted sum of exp(-sum_k theta_k |u_k - s_k|^1.9) over measured designs s, or that sum's exponential.
A constraint is scaled by its limit, so that 0.01 is one per cent too much, and feasible is at most 0. The value is the
usual penalty, minus (mass + 10 times the sum of what is too much); `MoptaProblem.constraints` gives the 68 apart.
`MOPTA08c` is the same with measured constraints: the mass, to be minimised, and a dict of the 68.

That penalty is mild: its best point breaks limits to save mass. Feasible designs of 222.2 to 222.7 are published, and
the models allow 221.4 (found from their gradients).
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mctsvs.bench.problems import data
from mctsvs.bench.problems.declare import box, build, pattern
from mctsvs.objectives.problem import Family, Problem, Variation
from mctsvs.utils.validation import Array, Indices

DIMENSION, LIMITS = 124, 68
PENALTY = 10.0
POWER = 1.9
OPTIMUM = -208.6883  # of the penalised objective, found from the models' gradients; not feasible
# fmt: off
OPTIMIZER: Array = np.array([
    3179, 0, 0, 0, 609, 0, 0, 3345, 0, 7150, 0, 0, 0, 931, 0, 0, 0, 0, 0, 0, 0, 280, 2319, 0, 0, 979, 1912, 0, 1952,
    1361, 0, 3950, 0, 6334, 6614, 0, 8745, 6648, 5390, 0, 6351, 6331, 0, 0, 0, 0, 2661, 7856, 4087, 0, 0, 0, 0, 0,
    1037, 0, 0, 0, 469, 0, 778, 1493, 10000, 3227, 0, 6664, 7789, 0, 0, 0, 2852, 0, 0, 391, 0, 4804, 2077, 1221,
    7885, 0, 4411, 5553, 0, 489, 0, 0, 0, 0, 0, 295, 3908, 0, 0, 0, 0, 0, 0, 0, 5811, 8182, 0, 4021, 8150, 0, 0,
    5346, 0, 0, 10000, 609, 575, 10000, 7521, 0, 0, 2046, 5395, 0, 5482, 6153, 0, 10000, 1029, 3439,
]) / 1e4
# fmt: on


@dataclass(frozen=True, eq=False)
class Kriging:
    """Constraints `rows`, (m,), that share measured designs, (n, p), and inputs, p of them."""

    rows: Indices
    inputs: Indices
    """(p,) positions of the variables they read; -1: a constant."""
    constants: Array
    """(p,) what stands where no variable is read."""
    designs: Array
    theta: Array
    """(p, m)."""
    weights: Array
    """(n, m)."""
    linear: Array
    """(p + 1, m): first the constant."""

    def __call__(self, X: Array) -> Array:
        """The m sums at variables in natural units, (124,)."""
        u = np.where(self.inputs >= 0, X[self.inputs], self.constants)
        near = np.abs(u - self.designs) ** POWER @ self.theta
        sums: Array = self.linear[0] + u @ self.linear[1:] + (self.weights * np.exp(-near)).sum(axis=0)
        return sums


@dataclass(frozen=True, eq=False)
class Car:
    """The mass and the 68 constraints."""

    low: Array
    width: Array
    mass_of: Array
    models: tuple[Kriging, ...]
    exponential: npt.NDArray[np.bool_]
    offset: Array
    sign: Array
    limit: Array

    def mass(self, x: Array) -> float:
        return float(self.mass_of @ (self.low + x * self.width))

    def constraints(self, x: Array) -> Array:
        """(68,), feasible where at most 0."""
        X = self.low + x * self.width
        g = np.empty(LIMITS)
        for model in self.models:
            g[model.rows] = model(X)
        g[self.exponential] = np.exp(g[self.exponential]) + self.offset[self.exponential]
        scaled: Array = (self.sign * g - self.limit) / np.abs(self.limit)
        return scaled


def _car() -> Car:
    return _read(data.folder("mopta08"))


@functools.cache  # by the folder, which --data may change
def _read(place: Path) -> Car:
    arrays = data.arrays("mopta08", "mopta08.npz")
    whole, real = arrays["meta_int"], arrays["meta_float"]
    chosen = [arrays[f"{name}2opt"].astype(np.intp) for name in ("uuuu", "eeee", "ssss", "rrrr")]
    chosen.append(np.arange(1, DIMENSION + 1))
    alike: dict[tuple[int, int], list[int]] = {}
    for g in range(LIMITS):
        alike.setdefault((int(whole[g, 0]), int(whole[g, 1])), []).append(g)
    models = []
    for (designs, inputs), rows in alike.items():
        which = chosen[inputs]  # counted from 1; negative: the constant of that number

        def columns(name: str, rows: list[int] = rows) -> Array:
            return np.ascontiguousarray(np.stack([arrays[f"{name}{g}"] for g in rows], axis=1))

        models.append(
            Kriging(
                rows=np.array(rows),
                inputs=np.where(which > 0, which - 1, -1),
                constants=arrays["aaaa"][np.abs(which) - 1],
                designs=arrays[f"S{designs}"],
                theta=columns("theta"),
                weights=columns("pcoef"),
                linear=columns("beta"),
            )
        )
    return Car(
        low=arrays["xl"],
        width=arrays["xu"] - arrays["xl"],
        mass_of=arrays["mmmm"],
        models=tuple(models),
        exponential=whole[:, 5] == 1,
        offset=real[:, 1],
        sign=arrays["ssss"],
        limit=arrays["gu"],
    )


def penalised(x: Array) -> float:
    """Minus (mass + 10 times the sum of what is too much)."""
    car = _car()
    return -(car.mass(x) + PENALTY * float(np.maximum(car.constraints(x), 0.0).sum()))


def measured(x: Array) -> tuple[float, dict[str, float]]:
    """The mass, and g1 to g68."""
    car = _car()
    return car.mass(x), {f"g{k}": float(c) for k, c in enumerate(car.constraints(x), 1)}


@dataclass(frozen=True, eq=False)
class MoptaProblem(Problem):
    """MOPTA08, with its mass and constraints apart.

    >>> problem = make("MOPTA08")
    >>> problem.mass(x), (problem.constraints(x) <= 0).all()
    """

    def mass(self, x: npt.ArrayLike) -> float:
        return _car().mass(self._point(x))

    def constraints(self, x: npt.ArrayLike) -> Array:
        """(68,), each scaled by its limit; feasible where at most 0."""
        return _car().constraints(self._point(x))


def mopta08(match: re.Match[str], variation: Variation) -> Problem:
    """MOPTA08, or MOPTA08c."""
    apart = match[0].lower().endswith("c")

    def details() -> dict[str, Any]:
        _car()  # a missing file is said now, not at the first evaluation
        if apart:
            return {"function": measured, "direction": "minimize"}
        return {"function": penalised, "optimum": OPTIMUM, "optimizer": OPTIMIZER}

    said = "the mass, under 68 measured constraints" if apart else "minus mass and 10 times what exceeds 68 limits"
    name, text = "MOPTA08" + "c" * apart, f"Car body of 124 variables: {said}"
    return build(name, text, box(0.0, 1.0, DIMENSION), variation, details, MoptaProblem)


FAMILIES = [
    Family(
        form="MOPTA08",
        pattern=pattern("MOPTA(?:08)?c?"),
        example="MOPTA08",
        description="Mass of a car body under 68 constraints, as a penalty; MOPTA08c: measured",
        build=mopta08,
        dimension="124",
        kind="function",
        optimum="-208.69",
        data="mopta08",
    )
]
