"""A challenger: a model with a turn now and then, soon again while its points are good, ever later while they are not.

Its bad points are kept from the other model, which they would mislead: far away from where that one looks, they set a
scale on which what it knows looks like nothing.

Where all variables matter, the model that treats them alike nearly always proposes the better points; but there are
functions, a path past obstacles or the parts of a car, where some matter far more than others. How the values of a few
points rank among all is enough to tell, long before one of them is the best.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mctsvs.common import Array
from mctsvs.default import constants as const


@dataclass
class Challenger:
    """When the model has its next turn, in evaluations."""

    every: int = 0  # from one turn to the next, while its points are good
    wait: int = 0  # from one turn to the next, as it is now
    last: int = 0  # turn, or the evaluation before which its value was told
    bad: list[int] = field(default_factory=list)  # tickets of its points that are among the worse half

    @property
    def next(self) -> int:
        return self.last + self.wait

    def due(self, evaluated: int, every: int, *, needed: bool = True, stalled: bool = False) -> bool:
        """Whether it is its turn.

        Only where it is `needed`; where nothing is gained for long (`stalled`), on every other turn. Another rhythm
        begins at once.
        """
        if every != self.every:
            self.every = self.wait = every
            self.last = evaluated - every
        if not needed or evaluated < (min(self.next, self.last + 2) if stalled else self.next):
            return False
        self.last = evaluated
        return True

    def learn(self, ticket: int, y: float, values: Array, evaluated: int) -> None:
        """From the value of its point, the last of those evaluated; NaN is that of a point that failed."""
        better = float(np.mean(values > y)) if np.isfinite(y) else 1.0
        self.wait = self.every if better <= const.GOOD else min(2 * self.wait, const.LONGEST_WAIT)
        if better > const.BAD:
            self.bad.append(ticket)
        self.last = evaluated - 1
