"""A family of problems, `Sphere10_300` for example, and a single problem that is a plain function."""

from __future__ import annotations

from mctsvs.bench.problems import Family
from mctsvs.bench.problems.synthetic import AnySize, names
from mctsvs.utils.validation import Array


def sphere(x: Array) -> float:
    return -float(x @ x)


SPHERE = Family(
    form="SphereN_D",
    pattern=names("Sphere<N>(?:_<D>)?"),
    example="Sphere10_300",
    description="Minus the squared length of N variables on [-5, 5], at most 0",
    build=AnySize("Sphere", sphere, 1, (-5.0, 5.0), 0.0),  # hides N variables among D, shuffles, shifts
    optimum="0",
)


def saddle(p: dict[str, float]) -> float:
    """A saddle whose lowest values are at two edges"""
    return p["a"] ** 2 - p["b"] ** 2


space = {"a": (-1.0, 1.0), "b": (-2.0, 2.0)}  # of the functions in this file
