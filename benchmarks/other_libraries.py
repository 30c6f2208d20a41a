"""Libraries that are not among our methods, behind the two calls the peers' protocol needs: ask and tell.

Ax is not here because its default is BoTorch's model, which is; HEBO because its requirements do not build any more.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from typing import Any

import numpy as np

from mctsvs.common import Array
from mctsvs.problems import Problem


@dataclass(frozen=True)
class Point:
    """A point to evaluate, and what the library calls it."""

    x: Array
    handle: Any


class Smac:
    """SMAC3's facade for many variables: a random forest and log EI, after 20 Sobol points; larger is better."""

    def __init__(self, problem: Problem, seed: int, budget: int) -> None:
        from ConfigSpace import ConfigurationSpace, Float
        from smac import HyperparameterOptimizationFacade as Facade
        from smac import Scenario

        self.names = [f"x{i:05d}" for i in range(problem.dimension)]
        bounds = problem.bounds.tolist()
        space = ConfigurationSpace(seed=seed)
        space.add([Float(name, tuple(bound)) for name, bound in zip(self.names, bounds, strict=True)])
        folder = tempfile.mkdtemp()
        scenario = Scenario(space, n_trials=budget, seed=seed, deterministic=True, output_directory=folder)
        design = Facade.get_initial_design(scenario, n_configs=20)
        self.facade = Facade(scenario, lambda config, seed=0: 0.0, initial_design=design, logging_level=False)

    def ask(self) -> list[Point]:
        info = self.facade.ask()
        return [Point(np.array([info.config[name] for name in self.names]), info)]

    def tell(self, point: Point, value: float) -> None:
        from smac.runhistory.dataclasses import TrialValue

        self.facade.tell(point.handle, TrialValue(cost=-value))


LIBRARIES = {"smac": Smac}
