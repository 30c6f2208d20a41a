"""Bayesian optimisation of all variables with a model that treats them alike: distance, one bowl, one spectrum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mctsvs.gp.posterior import Posterior
from mctsvs.methods.solvers.bo import BayesianOptimisation, Best, BOOptions
from mctsvs.methods.solvers.subspace import Subspace
from mctsvs.utils.options import option
from mctsvs.utils.state import Saved
from mctsvs.utils.validation import Array

SAME_POINT = 1e-6  # a point this near to a known one in every coordinate is that one again
STEP = 0.02  # deviation of the step away from the best point that is taken in its place
STALLED = 12  # evaluations without a gain after which it is asked whether the model knows anything


@dataclass(frozen=True)
class IsoOptions(BOOptions):
    """best_share   once there are as many points as coordinates, every other one comes from a model of this share of
    the points, the best; 1: never. The other options are those of `bo`, which the method sets otherwise
    """

    best_share: float = option(0.5, above=0.0, most=1.0)


class IsotropicSearch(Saved):
    """Two models take turns, once there are points enough: one of all points and one of the best alone.

    Bad points set a scale on which differences between good ones look like nothing; but a model of good points cannot
    know that bad ones are bad. After many points without a gain, `blind` says whether the model of all points predicts
    a value from the others no better than their mean would: then its steps lead nowhere.
    """

    options_type: ClassVar[type[IsoOptions]] = IsoOptions
    batch = None
    saved = ("of_all", "of_best", "turn", "blind")
    of_all: BayesianOptimisation
    of_best: BayesianOptimisation
    turn: int
    blind: bool = False

    def __init__(self, options: IsoOptions) -> None:
        self.options, self.turn = options, 0
        self.of_all = BayesianOptimisation(options)
        self.best = Best(options.best_share, fewest=30, enough=1.0)
        self.of_best = BayesianOptimisation(options, best=self.best)

    def propose(self, n: int, subspace: Subspace, rng: np.random.Generator) -> Array:
        self.turn += 1
        told = len(subspace.history)
        part = self.best.count(told, subspace.dimension) < told
        model = self.of_best if part and self.turn % 2 == 0 else self.of_all
        points = model.propose(n, subspace, rng)
        if told == 0:
            return points
        if model is self.of_all:
            self.blind = told - 1 - int(np.argmax(subspace.y)) >= STALLED and predicts_nothing(model.model.posterior)
        best, free = subspace.X[subspace.history.best(1)[0]], ~subspace.categorical
        for x in points:
            if _known(x, subspace.X) or _known(x, subspace.avoid):
                x[free] = np.clip(best + STEP * rng.standard_normal(len(best)), 0.0, 1.0)[free]
        return points


def predicts_nothing(posterior: Posterior | None) -> bool:
    """Whether values left out are predicted no better than by their mean."""
    return posterior is not None and bool(((posterior.y - posterior.left_out) ** 2).mean() >= posterior.y.var())


def _known(x: Array, points: Array) -> bool:
    """Whether x (d,) is one of the points (n, d)."""
    near = points[np.abs(points[:, 0] - x[0]) < SAME_POINT]  # one coordinate tells nearly all of them apart
    return bool((np.abs(near - x) < SAME_POINT).all(axis=1).any())
