"""Looking closer: steps near the best point, in a box that shrinks, by a model of the points in it alone.

A function may be so rough that no model of the whole cube predicts anything; a step anywhere is then a random point.
Near enough to a point most such functions are smooth again; how near, the box finds out by shrinking (TuRBO's rule).
"""

from __future__ import annotations

import numpy as np

from mctsvs.gp.trust_region import TrustRegion
from mctsvs.methods.auto import constants as const
from mctsvs.methods.history import History
from mctsvs.methods.solvers import ISOTROPIC
from mctsvs.methods.solvers.iso import IsoOptions, IsotropicSearch
from mctsvs.methods.solvers.subspace import Subspace
from mctsvs.utils.state import Saved
from mctsvs.utils.validation import Array


class Closer(Saved):
    """The box, and steps in it, from when the model of the whole cube is blind until a step of that model gains."""

    saved = ("region", "on")
    region: TrustRegion
    on: bool

    def __init__(self) -> None:
        self.region, self.on = TrustRegion(const.CLOSE), False

    def learn(self, *, success: bool) -> None:
        """From the value of a step; a box that has become too small begins again."""
        self.region.resize(success=success, patience=const.CLOSE_PATIENCE)
        if not const.CLOSEST <= self.region.length <= const.CLOSE:
            self.region.length = const.CLOSE

    def propose(self, history: History, waiting: Array, free: Array, rng: np.random.Generator) -> Array:
        """A point (D,): the best one with other values of the coordinates that are free, (D,) bool."""
        x: Array = history.X[history.best(1)[0]].copy()
        low, high = (end[free] for end in self.region.box(x))

        def zoomed(points: Array) -> Array:
            """In units of the box."""
            seen: Array = (points[:, free] - low) / (high - low)
            return seen

        def inside(seen: Array) -> Array:
            return np.asarray((np.abs(seen - 0.5) <= 0.5).all(axis=1))

        points, others = zoomed(history.X), zoomed(waiting)
        failed = zoomed(np.array(history.failures).reshape(-1, len(x)))
        local, near = History(len(low)), inside(points)
        for point, value in zip(points[near], history.y[near], strict=True):
            local.add(point, float(value))
        local.failures += list(failed[inside(failed)])
        subspace = Subspace(local, np.arange(len(low)), others[inside(others)])
        solver = IsotropicSearch(IsoOptions(**{**ISOTROPIC, "kernel": "shared"}))
        x[free] = low + solver.propose(1, subspace, rng)[0] * (high - low)
        return x
