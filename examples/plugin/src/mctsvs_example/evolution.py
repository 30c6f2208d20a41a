"""A method of its own: an engine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mctsvs.methods.base import Engine, Observation, Pending, Proposal
from mctsvs.utils.options import Options, option
from mctsvs.utils.validation import Indices


@dataclass(frozen=True)
class OnePlusOneOptions(Options):
    """d      variables moved at a time
    step   standard deviation of the first steps, in widths of the box
    """

    d: int = option(20, least=1)
    step: float = option(0.2, above=0.0)


class OnePlusOne(Engine):
    """(1 + 1) evolution strategy: a few random variables of the best point take a normal step.

    The step grows when that was better and shrinks when it was not, so that one in five is (Rechenberg's rule).
    """

    options_type: ClassVar[type[OnePlusOneOptions]] = OnePlusOneOptions
    options: OnePlusOneOptions
    saved = ("step",)  # what `Engine` does not save already
    step: float

    def __init__(self, offsets: Indices, rng: np.random.Generator, options: OnePlusOneOptions) -> None:
        super().__init__(offsets, rng, options)
        self.step = options.step

    def propose(self, n: int, pending: Pending) -> list[Proposal]:
        return [self._next() for _ in range(n)]

    def _next(self) -> Proposal:
        if not len(self.history):
            return self.proposal(self.rng.random(self.dimension), self.everything)
        variables = self.rng.choice(self.everything, min(self.options.d, len(self.everything)), replace=False)
        moved = self.coordinates_of(variables)
        x = self.history.X[self.history.best(1)[0]].copy()
        x[moved] = np.clip(x[moved] + self.step * self.rng.standard_normal(len(moved)), 0.0, 1.0)
        return self.proposal(x, variables, iteration=self.proposed)

    def observe(self, batch: Sequence[Observation]) -> None:
        for observation in batch:
            best = self.history.y.max(initial=-math.inf)
            super().observe([observation])
            if observation.external or observation.y == best or math.isnan(observation.y):
                continue  # says nothing of the step: somebody else's, or only idle variables were moved, or it failed
            self.step *= math.exp(0.2 if observation.y > best else -0.05)
            self.step = min(max(self.step, 1e-4), 0.5)
