"""A family of problems, `Sphere10_300` for example, and a single problem that is a plain function."""

from __future__ import annotations

from mctsvs.bench.problems.synthetic import any_size
from mctsvs.utils.validation import Array


def sphere(x: Array) -> float:
    return -float(x @ x)


# hides N variables among D, shuffles, shifts
SPHERE = any_size("Sphere10_300", sphere, (-5.0, 5.0), 0.0, "the squared length of N variables")


def saddle(p: dict[str, float]) -> float:
    """A saddle whose lowest values are at two edges"""
    return p["a"] ** 2 - p["b"] ** 2


space = {"a": (-1.0, 1.0), "b": (-2.0, 2.0)}  # of the functions in this file
