"""What is known of a run at a moment: the numbers that every view draws."""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass
class Account:
    """How far a run has come.

    `steps` are the evaluations at which the best value changed, counted from 1, with the value from then on.
    """

    label: str
    direction: str
    budget: int
    evaluated: int = 0
    failed: int = 0
    steps: list[tuple[int, float]] = field(default_factory=list)
    feasible: bool = True  # whether the best point satisfies the measured constraints
    phase: str = ""  # in the method's words
    importance: dict[str, float] = field(default_factory=dict)  # most important first
    seconds: float = 0.0  # since this process took up the run
    thinking: float = 0.0  # of them, in the method
    made: int = 0  # evaluations in these seconds

    @property
    def best(self) -> float:
        """NaN while nothing has succeeded."""
        return self.steps[-1][1] if self.steps else math.nan

    @property
    def seconds_left(self) -> float | None:
        """At the pace so far; None before the first evaluation."""
        return self.seconds / self.made * (self.budget - self.evaluated) if self.made else None

    @property
    def share_thinking(self) -> float:
        return min(1.0, self.thinking / self.seconds) if self.seconds > 0.0 else 0.0

    def curve(self, columns: int) -> list[float]:
        """The best value after equal parts of the evaluations so far, NaN before the first success."""
        values, at = [], 0
        for column in range(1, columns + 1):
            upto = column * self.evaluated / columns
            while at < len(self.steps) and self.steps[at][0] <= upto:
                at += 1
            values.append(self.steps[at - 1][1] if at else math.nan)
        return values

    def line(self) -> str:
        """All that matters in one line."""
        parts = [f"{self.evaluated}/{self.budget}"]
        parts += [f"{self.failed} failed"] * bool(self.failed)
        parts += ["no value yet" if math.isnan(self.best) else f"best {self.best:.6g}"]
        parts += ["not feasible"] * (not self.feasible)
        parts += [self.phase] * bool(self.phase)
        if self.evaluated < self.budget and self.seconds_left is not None:
            parts.append(f"{clock(self.seconds_left)} left")
        return ", ".join(parts)


def clock(seconds: float | None) -> str:
    """Seconds as people read them."""
    if seconds is None:
        return "?"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
