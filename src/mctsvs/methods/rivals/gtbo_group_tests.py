"""Which variables are active, told from tests of groups: a belief kept by particles.

Notation: V variables, each active with probability q beforehand; P particles, each a guess at the set of active ones;
T tests so far. A test moves a group of variables of one fixed point, and the value changes by z. In units of the
signal's deviation,

    z ~ N(0, noise^2) if no variable of the group is active,        z ~ N(0, 1) if one is,

so a test is worth the logarithm of the ratio of these densities, and the posterior of a guess is its prior times the
ratios of the tests whose group it hits. Particles are reweighted by each test and, when few carry the weight,
resampled and moved by Gibbs steps and exchanges (sequential Monte Carlo, as in Cuturi et al., 2020).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from mctsvs.utils.state import Saved
from mctsvs.utils.validation import Array, Indices

GRID = 2.0**-30  # changes are rounded to it, so that a f + b in place of f changes no decision
LEAST_NOISE, MOST_NOISE = 2.0**-13, 0.9  # in units of the signal's deviation; where values repeat exactly there is none
CERTAIN = 30.0  # largest worth of one test: a guess it speaks against must stay within reach of a move
SURPRISE = 0.1  # predicted density of an outcome, as a share of the likelier one's, below which particles are moved too
SILENT = 2.0 / 3.0  # of the first tests, the share expected to show noise alone
NORMAL_MEDIAN = 0.6745  # of the absolute value of a standard normal variable
EXCHANGES = 24  # after a resampling
MOST_SWEPT = 500  # variables that Gibbs steps visit after a resampling
LARGEST_TABLE = 4_000_000  # particles times variables; fewer particles of very many variables
FINER = 1e-9  # gains of information smaller than this are rounding


@dataclass
class Particles:
    """The guesses of one moment, and what is needed to move them."""

    active: npt.NDArray[np.bool_]  # (V, P)
    log_weight: Array  # (P,)
    hits: npt.NDArray[np.int16]  # (T, P) active variables in the group of each test

    @property
    def weight(self) -> Array:
        weight = np.exp(self.log_weight - self.log_weight.max())
        normal: Array = weight / weight.sum()
        return normal

    def resample(self, rng: np.random.Generator) -> None:
        """Systematic: as many copies of each as its weight is worth."""
        P = len(self.log_weight)
        ends = np.cumsum(self.weight)
        rows = np.minimum(np.searchsorted(ends, (np.arange(P) + rng.random()) / P), P - 1)
        self.active, self.hits = self.active[:, rows], self.hits[:, rows]
        self.log_weight = np.zeros(P)

    def sweep(self, member: npt.NDArray[np.bool_], worth: Array, log_odds: float, rng: np.random.Generator) -> None:
        """A Gibbs step of each variable; `member` (T, V) says which tests have it in their group."""
        for v in rng.permutation(len(self.active))[:MOST_SWEPT]:
            tests = np.flatnonzero(member[:, v])
            others = self.hits[tests] - self.active[v]
            odds = log_odds + worth[tests] @ (others == 0)
            now = rng.random(len(odds)) * (1.0 + np.exp(-odds)) < 1.0
            self.hits[tests] = others + now
            self.active[v] = now

    def exchange(self, member: npt.NDArray[np.bool_], worth: Array, group: Indices, rng: np.random.Generator) -> None:
        """A Metropolis step: two variables of a group that acted trade places, other ones in each particle."""
        P = len(self.log_weight)
        one, two = group[rng.integers(0, len(group), (2, P))]
        columns = np.arange(P)
        moved = self.active[one, columns].astype(np.int16) - self.active[two, columns]  # 1: from `one` to `two`
        hits = self.hits + moved * (member[:, two].astype(np.int16) - member[:, one])
        gain = worth @ ((hits > 0).astype(np.int8) - (self.hits > 0))
        taken = (moved != 0) & (np.log(rng.random(P)) < gain)
        self.hits[:, taken] = hits[:, taken]
        one, two, columns = one[taken], two[taken], columns[taken]
        now = self.active[one, columns]
        self.active[one, columns], self.active[two, columns] = ~now, now


@dataclass
class Belief(Saved):
    """The probability that each variable is active, and the group that is worth testing next.

    Particles are not saved: the draws of each test belong to its number, so the tests make the same particles again.
    """

    saved: ClassVar[tuple[str, ...]] = ("n_variables", "prior", "count", "seed", "noise", "groups", "worth")

    n_variables: int
    prior: float  # q
    count: int  # P
    seed: int
    noise: float = LEAST_NOISE
    groups: list[Indices] = field(default_factory=list)
    worth: list[float] = field(default_factory=list)  # of each test, in favour of an active variable
    particles: Particles | None = None

    def expect(self, noise: float) -> None:
        """The noise in units of the signal's deviation, before the first test."""
        self.noise = float(np.clip(np.round(noise / GRID) * GRID, LEAST_NOISE, MOST_NOISE))

    def add(self, group: Indices, change: float) -> None:
        """The outcome of one test, in units of the signal's deviation."""
        z = np.round(np.clip(change, -1e3, 1e3) / GRID) * GRID
        worth = np.log(self.noise) + 0.5 * z * z * (self.noise**-2 - 1.0)
        self.groups.append(group)
        self.worth.append(float(min(worth, CERTAIN)))

    @property
    def probability(self) -> Array:
        """(V,) that a variable is active."""
        particles = self._current()
        return np.asarray(particles.active @ particles.weight)

    def _current(self) -> Particles:
        """The particles after all tests; those of tests not taken in yet, one after the other."""
        if self.particles is None:
            P = max(1, min(self.count, LARGEST_TABLE // self.n_variables))
            active = np.random.default_rng([self.seed, 0]).random((self.n_variables, P)) < self.prior
            self.particles = Particles(active, np.zeros(P), np.empty((0, P), dtype=np.int16))
        while len(self.particles.hits) < len(self.groups):
            self._take_in(self.particles, len(self.particles.hits))
        return self.particles

    def _take_in(self, particles: Particles, test: int) -> None:
        hit, worth = particles.active[self.groups[test]].sum(axis=0, dtype=np.int16), self.worth[test]
        particles.hits = np.concatenate([particles.hits, hit[None]])
        before = particles.weight
        predicted = float(before @ np.exp(worth * (hit > 0) - max(worth, 0.0)))
        particles.log_weight = particles.log_weight + worth * (hit > 0)
        size = 1.0 / float(np.sum(particles.weight**2))
        if size >= 0.5 * len(before) and predicted >= SURPRISE:
            return
        rng = np.random.default_rng([self.seed, test + 1])
        member = np.zeros((test + 1, self.n_variables), dtype=bool)
        for row, group in zip(member, self.groups, strict=False):
            row[group] = True
        worths = np.array(self.worth[: test + 1])
        particles.resample(rng)
        particles.sweep(member, worths, float(np.log(self.prior / (1.0 - self.prior))), rng)
        news = (worths > 0.0) & member[:, self.groups[test]].any(axis=1)  # acted, and concerned by this test
        acted = [self.groups[t] for t in np.flatnonzero(news) if len(self.groups[t]) > 1]
        for _ in range(EXCHANGES if acted else 0):
            particles.exchange(member, worths, acted[rng.integers(len(acted))], rng)

    def next_group(self, busy: Indices, rng: np.random.Generator) -> Indices:
        """The group of largest mutual information with its outcome, greedily, without the variables in `busy`.

        Variables are added while that gains information, then taken out while that does.
        """
        particles = self._current()
        candidates = rng.permutation(np.setdiff1d(np.arange(self.n_variables), busy))
        active, weight = particles.active[candidates], particles.weight
        chosen = np.zeros(len(candidates), dtype=bool)
        hits, best = np.zeros(len(weight), dtype=np.int16), 0.0
        for step in (1, -1):
            while True:
                if step > 0:
                    miss = weight * (hits == 0)
                    rates = 1.0 - miss.sum() + active @ miss
                else:
                    rates = (hits - active > 0) @ weight
                gains = np.where(chosen == (step < 0), information(rates, self.noise), -1.0)
                if len(gains) == 0 or gains.max() <= best + FINER:
                    break
                i = int(np.argmax(gains))
                best, chosen[i] = float(gains[i]), step > 0
                hits = hits + np.int16(step) * active[i]
        return np.sort(candidates[chosen])


@dataclass(frozen=True)
class Scale:
    """How large changes are: their centre (what the noise has added to the fixed point's value) and two deviations."""

    centre: float
    signal: float
    noise: float

    @staticmethod
    def of(changes: Array) -> Scale:
        """From first tests of which at least two thirds move no active variable.

        The smallest two thirds alone would make the noise too small, being chosen for their size, and then every
        larger piece of noise is taken for signal. The median deviation errs to the other side.
        """
        centre = float(np.median(np.append(changes, 0.0)))  # the fixed point itself does not differ from itself
        distance = np.sort(np.abs(changes - centre))
        signal = float(np.sqrt(np.mean(distance[int(SILENT * len(distance)) :] ** 2)))
        return Scale(centre, signal or 1.0, float(np.median(distance)) / NORMAL_MEDIAN)

    def standard(self, change: float) -> float:
        return float(change - self.centre) / self.signal


def information(rates: Array, noise: float) -> Array:
    """Mutual information of a test's outcome and of whether its group hits, by the probability that it does."""
    return np.interp(rates, *_information_table(noise))


@lru_cache(maxsize=8)
def _information_table(noise: float) -> tuple[Array, Array]:
    """Rates, and the integral over |z| of  r s log(s / m) + (1 - r) n log(n / m)  with m = r s + (1 - r) n."""
    rates = np.linspace(0.0, 1.0, 257)
    z = np.geomspace(1e-3 * noise, 9.0, 600)
    width = np.gradient(z)
    signal = np.exp(-0.5 * z**2)
    silence = np.exp(-0.5 * (z / noise) ** 2) / noise
    r = rates[:, None]
    mixture = np.maximum(r * signal + (1.0 - r) * silence, 1e-300)
    tiny = 1e-300
    table = r * signal * np.log(np.maximum(signal, tiny) / mixture)
    table += (1.0 - r) * silence * np.log(np.maximum(silence, tiny) / mixture)
    return rates, np.sqrt(2.0 / np.pi) * (table @ width)
