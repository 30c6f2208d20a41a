"""The No-U-Turn Sampler: draws from a density whose gradient is known (Hoffman and Gelman, JMLR 2014).

A point z and a momentum r move along a trajectory of leapfrog steps under the energy -log p(z) + r' M^-1 r / 2. The
trajectory is doubled forwards or backwards until its ends begin to turn back; the next draw is one of its points,
chosen by their weights exp(-energy) (Betancourt, arXiv 1701.02434). While it warms up, the step size is
tuned to a mean acceptance of 0.8 and M to the variances of the draws, as Stan does it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from mctsvs.utils.validation import Array

Density = Callable[[Array], tuple[float, Array]]
"""Log density, up to a constant, and its gradient."""

ACCEPTANCE = 0.8
DIVERGED = 1000.0  # energy gained along a trajectory that follows it no more
FIRST, WINDOW, LAST = 75, 25, 50  # warm-up: steps before the first estimate of the variances, in it, after the last


@dataclass(frozen=True)
class HamiltonianState:
    """A point with its momentum."""

    z: Array
    r: Array
    log_density: float
    gradient: Array


@dataclass(frozen=True)
class Trajectory:
    """Consecutive states, of which only the ends and one candidate are kept."""

    backward: HamiltonianState
    forward: HamiltonianState
    candidate: HamiltonianState
    log_weight: float  # of all states together
    momentum: Array  # sum over all states
    acceptance: float  # sum over all states
    states: int
    ended: bool  # it turned back or diverged


@dataclass
class StepSizeAdaptation:
    """Dual averaging (Hoffman and Gelman, Section 3.2)."""

    value: float
    error: float = 0.0
    averaged: float = 0.0  # logarithm
    count: int = 0

    def __post_init__(self) -> None:
        self.target = float(np.log(10.0 * self.value))  # large steps are tried first: they are cheap

    def learn(self, acceptance: float) -> None:
        self.count += 1
        share = 1.0 / (self.count + 10.0)
        self.error = (1.0 - share) * self.error + share * (ACCEPTANCE - acceptance)
        log_value = self.target - np.sqrt(self.count) / 0.05 * self.error
        forget = self.count**-0.75
        self.averaged = forget * log_value + (1.0 - forget) * self.averaged
        self.value = float(np.exp(log_value))

    def settle(self) -> None:
        """From now on the average of what was tried."""
        if self.count:
            self.value = float(np.exp(self.averaged))


@dataclass
class Sampler:
    """A chain; `variance` is the diagonal of M^-1."""

    density: Density
    rng: np.random.Generator
    tree_depth: int
    variance: Array
    step_size: StepSizeAdaptation = field(default_factory=lambda: StepSizeAdaptation(1.0))

    def begin(self, z: Array) -> HamiltonianState:
        return HamiltonianState(z, np.zeros_like(z), *self.density(z))

    def next(self, state: HamiltonianState) -> tuple[HamiltonianState, float]:
        """The next draw, and the mean acceptance along its trajectory."""
        start = self._with_momentum(state)
        energy = self._energy(start)
        whole = Trajectory(start, start, start, 0.0, start.r, 0.0, 0, False)
        for depth in range(self.tree_depth):
            forward = self.rng.random() < 0.5
            end = whole.forward if forward else whole.backward
            more = self._extend(end, depth, energy, forward)
            if more.ended:
                counts = whole.acceptance + more.acceptance, whole.states + more.states
                return whole.candidate, counts[0] / counts[1]
            # the new half is preferred: it is as likely as the old one, and farther away
            better = np.log(self.rng.random()) < more.log_weight - whole.log_weight
            whole = self._join(whole, more, forward, more.candidate if better else whole.candidate)
            if whole.ended:
                break
        return whole.candidate, whole.acceptance / whole.states

    def _extend(self, end: HamiltonianState, depth: int, energy: float, forward: bool) -> Trajectory:
        """2 ** depth states beyond `end`, or fewer if they turn back among themselves."""
        if depth == 0:
            state = self._leapfrog(end, self.step_size.value if forward else -self.step_size.value)
            gained = energy - self._energy(state)  # the log weight: NaN where the density cannot be computed
            lost = not gained > -DIVERGED
            acceptance = 0.0 if lost else min(1.0, float(np.exp(min(gained, 0.0))))
            return Trajectory(state, state, state, -np.inf if lost else gained, state.r, acceptance, 1, lost)
        first = self._extend(end, depth - 1, energy, forward)
        if first.ended:
            return first
        second = self._extend(first.forward if forward else first.backward, depth - 1, energy, forward)
        total = np.logaddexp(first.log_weight, second.log_weight)
        later = np.log(self.rng.random()) < second.log_weight - total
        return self._join(first, second, forward, second.candidate if later else first.candidate)

    def _join(self, old: Trajectory, new: Trajectory, forward: bool, candidate: HamiltonianState) -> Trajectory:
        backward, ahead = (old.backward, new.forward) if forward else (new.backward, old.forward)
        momentum = old.momentum + new.momentum
        direction = self.variance * momentum
        turned = float(direction @ backward.r) <= 0.0 or float(direction @ ahead.r) <= 0.0
        return Trajectory(
            backward,
            ahead,
            candidate,
            float(np.logaddexp(old.log_weight, new.log_weight)),
            momentum,
            old.acceptance + new.acceptance,
            old.states + new.states,
            turned or new.ended,
        )

    def _with_momentum(self, state: HamiltonianState) -> HamiltonianState:
        r = self.rng.standard_normal(len(state.z)) / np.sqrt(self.variance)
        return HamiltonianState(state.z, r, state.log_density, state.gradient)

    def _energy(self, state: HamiltonianState) -> float:
        return 0.5 * float(state.r @ (self.variance * state.r)) - state.log_density

    def _leapfrog(self, state: HamiltonianState, step: float) -> HamiltonianState:
        r = state.r + 0.5 * step * state.gradient
        z = state.z + step * self.variance * r
        log_density, gradient = self.density(z)
        return HamiltonianState(z, r + 0.5 * step * gradient, log_density, gradient)

    def find_step_size(self, state: HamiltonianState) -> None:
        """Doubled or halved until one step is accepted about as often as ACCEPTANCE."""
        value, direction = self.step_size.value, 0
        for _ in range(50):
            start = self._with_momentum(state)
            gained = self._energy(start) - self._energy(self._leapfrog(start, value))
            wanted = 1 if gained > np.log(ACCEPTANCE) else -1
            if direction and wanted != direction:
                break
            direction, value = wanted, value * 2.0**wanted
        self.step_size = StepSizeAdaptation(value)


def windows(warmup: int) -> list[int]:
    """The steps after which the variances are estimated anew, each from twice as many draws as the last."""
    first, window, last = FIRST, WINDOW, LAST
    if warmup < 20:
        return []
    if warmup < first + window + last:
        first, last = int(0.15 * warmup), int(0.1 * warmup)
        return [warmup - last]
    ends = []
    start = first
    while start < warmup - last:
        end = start + window
        if end + 2 * window > warmup - last:  # the next one would not fit
            end = warmup - last
        ends.append(end)
        start, window = end, 2 * window
    return ends


@np.errstate(over="ignore", invalid="ignore")  # steps that are far too long, which are taken back
def sample(
    density: Density, start: Array, rng: np.random.Generator, *, warmup: int, steps: int, thinning: int, tree_depth: int
) -> Array:
    """(steps // thinning, p) every `thinning`-th draw of one chain, after a warm-up whose draws are thrown away."""
    sampler = Sampler(density, rng, tree_depth, np.ones(len(start)))
    state = sampler.begin(start)
    sampler.find_step_size(state)
    ends = windows(warmup)
    begin = int(0.15 * warmup) if warmup < FIRST + WINDOW + LAST else FIRST
    seen: list[Array] = []
    for step in range(1, warmup + 1):
        state, acceptance = sampler.next(state)
        sampler.step_size.learn(acceptance)
        if ends and begin < step <= ends[-1]:
            seen.append(state.z)
        if step in ends and len(seen) > 1:
            n = len(seen)
            # pulled to a small variance: few draws say little
            sampler.variance = (n * np.var(seen, axis=0, ddof=1) + 5e-3) / (n + 5.0)
            seen = []
            sampler.step_size.settle()
            sampler.find_step_size(state)
    sampler.step_size.settle()
    draws = []
    for step in range(1, steps + 1):
        state, _ = sampler.next(state)
        if step % thinning == 0:
            draws.append(state.z)
    return np.array(draws).reshape(-1, len(start))
