"""Which points of a space without any other are evaluated again, where values are noisy.

Those evaluated least often come first, so that all are about equally often; of these, feasible ones, then those of the
better mean. A point that has only ever failed is left alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mctsvs.common import Array
from mctsvs.trial import Trial


@dataclass
class Place:
    """What is known of one point."""

    unit: Array
    asked: int = 0
    failed: bool = False  # every time so far
    feasible: bool = False  # at least once
    values: int = 0
    total: float = 0.0  # of the values as something to be maximised

    def take(self, trial: Trial, score: float) -> None:
        self.asked += 1
        self.failed = trial.failed and (self.failed or self.asked == 1)
        if not math.isnan(score):
            self.feasible |= trial.feasible
            self.values, self.total = self.values + 1, self.total + score

    @property
    def order(self) -> tuple[int, bool, float]:
        """Smaller is earlier."""
        return self.asked, not self.feasible, -self.total / self.values if self.values else math.inf


def again(
    trials: Iterable[Trial], n: int, *, key: Callable[[Array], int], score: Callable[[Trial], float]
) -> list[Array]:
    """The n points to evaluate next, of the unit cube; none where all have failed."""
    places: dict[int, Place] = {}
    for trial in trials:
        place = places.setdefault(key(trial.unit), Place(trial.unit))
        place.take(trial, math.nan if trial.value is None else score(trial))
    worthwhile = [place for place in places.values() if not place.failed]
    chosen = []
    for _ in range(n if worthwhile else 0):
        place = min(worthwhile, key=lambda place: place.order)  # the earliest of equal ones
        place.asked += 1
        chosen.append(place.unit.copy())
    return chosen
