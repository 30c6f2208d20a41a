"""A surface inside a region: what lies outside of its half-spaces costs, and what fails its tests is never chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mctsvs.space.region_slice import RegionSlice
from mctsvs.utils.validation import Array

if TYPE_CHECKING:
    from mctsvs.gp.optimize_acqf import AcquisitionLike

WEIGHT = 1e4  # of the square of a distance to a half-space, in widths of the variables' ranges
WORST = 1e6  # what failing a test costs
ENOUGH = 8  # points that pass the tests: those with lower values need not be tried
MOST_TRIED = 64


class ConstrainedAcquisition:
    """A surface less a penalty, smooth for half-spaces, so that a climb ends where it may."""

    def __init__(self, surface: AcquisitionLike, cut: RegionSlice) -> None:
        self.surface, self.cut = surface, cut

    def inside(self, candidates: Array) -> Array:
        """(n, d) the candidates, moved inside the half-spaces."""
        return self.cut.inside(candidates)

    def __call__(self, Z: Array) -> Array:
        values = self.surface(Z) - WEIGHT * (self.cut.excess(Z) ** 2).sum(axis=1)
        if self.cut.tested:
            passed = 0
            for i in np.argsort(-values, kind="stable")[:MOST_TRIED]:
                passes = self.cut.passes(Z[i])
                values[i] -= 0.0 if passes else WORST
                passed += passes
                if passed == ENOUGH:
                    break
        return np.asarray(values)

    def value_and_gradient(self, Z: Array) -> tuple[Array, Array]:
        values, gradients = self.surface.value_and_gradient(Z)
        excess = self.cut.excess(Z)
        values = values - WEIGHT * (excess**2).sum(axis=1)
        if excess.any():
            gradients = gradients - 2.0 * WEIGHT * self.cut.pull(Z, excess)
        if self.cut.tested:
            values = values - WORST * ~np.array([self.cut.passes(z) for z in Z])
        return values, gradients


def confined(surface: AcquisitionLike, cut: RegionSlice | None) -> AcquisitionLike:
    """The surface inside the cut; itself, where there is none."""
    return surface if cut is None else ConstrainedAcquisition(surface, cut)


def put_inside(candidates: Array, surface: AcquisitionLike) -> Array:
    """The candidates (n, d), inside the half-spaces of a confined surface."""
    return surface.inside(candidates) if isinstance(surface, ConstrainedAcquisition) else candidates
