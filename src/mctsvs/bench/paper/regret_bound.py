"""Theorem 4.2 made checkable: GP-UCB on selected variables, its cumulative regret, and the two terms of the bound.

    R_T <= sqrt(C_1 T beta*_T gamma_T) + 2 alpha_max + 2 sum_t sum_(i not in M_t) alpha*_i L r

The setting is Section 4's: in iteration t a selector chooses M_t, a Gaussian process with a fixed kernel is conditioned
on the selected variables of all points so far, and the next point maximises mean + sqrt(beta_t) sd. How the theorem's
quantities are read, for a function whose optimum and slopes are known:

- Everything lives in the unit cube, so r = 1, and f, less its mean, is divided by its standard deviation over the cube,
  so that the kernel has variance 1; all results are given back in f's own units.
- alpha*_i L is the largest slope of f along variable i, found numerically. a = 1, and b is such that the steepest
  variable has alpha = 1; then alpha*_i is the slope of variable i in units of the steepest.
- gamma_T, the largest possible information gain, is replaced by the gain of the points that were sampled, 1/2 sum
  log(1 + sd^2 / noise): the step before the last of the proof, a smaller and so a stricter bound.
- C_1 = 8 / log(1 + 1 / noise), pi_t = pi^2 t^2 / 6, delta = 0.1.
- The regret is that of the points as evaluated, with the best-k fill-in, not of the worst fill-in the proof allows for.

t counts the iterations after the initial design of twelve points, which is the same for all.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mctsvs.bench.problems import Problem
from mctsvs.bench.record import Point, Progress, RunRecord, RunSettings, follow
from mctsvs.gp.acquisition import AcquisitionFunction, beta_schedule, upper_confidence_bound
from mctsvs.gp.kernels import Joint
from mctsvs.gp.optimize_acqf import maximise, quasi_random
from mctsvs.gp.posterior import Posterior
from mctsvs.methods import composite, selectors
from mctsvs.methods.base import latin_hypercube
from mctsvs.methods.history import History
from mctsvs.methods.selectors import Selector
from mctsvs.utils.validation import Array, Indices, InputError

SELECTORS = {"ucb-all": "all", "ucb-dropout": "dropout", "ucb-mcts-vs": "mcts"}
NOISE = 0.01  # eta^2, in variances of f
LENGTHSCALE = 0.4  # times the square root of the number of selected variables: distances grow like that
DELTA = 0.1
DESIGN = 12


def steepest(problem: Problem, points: int = 1500, seed: int = 0) -> Array:
    """(D,) the largest slope of |f| along each variable of the unit cube, zero for those that do not matter.

    Central differences at quasi-random points, then a local search from the best place of each variable: a lower
    estimate, since no finite search can prove a largest slope.
    """
    rng = np.random.default_rng(seed)
    low, high = problem.bounds.T
    active = np.arange(problem.dimension) if problem.active is None else problem.active
    half = 1e-4

    def slope(z: Array, i: int) -> float:
        up, down = z.copy(), z.copy()
        up[i], down[i] = min(z[i] + half, 1.0), max(z[i] - half, 0.0)
        rise = problem.function(low + (high - low) * up) - problem.function(low + (high - low) * down)
        return abs(float(rise)) / float(up[i] - down[i])

    sample = np.full((points, problem.dimension), 0.5)
    sample[:, active] = quasi_random(points, len(active), rng)
    found = np.zeros(problem.dimension)
    for i in active:
        values = [slope(z, i) for z in sample]
        best, value = sample[int(np.argmax(values))].copy(), float(np.max(values))
        for step in np.geomspace(0.2, 0.005, 150):
            tried = best.copy()
            tried[active] = np.clip(tried[active] + step * rng.standard_normal(len(active)), 0.0, 1.0)
            if (there := slope(tried, i)) > value:
                best, value = tried, there
        found[i] = value
    return found


def scale(problem: Problem, points: int = 2048) -> tuple[float, float]:
    """Mean and standard deviation of f over its box."""
    low, high = problem.bounds.T
    sample = quasi_random(points, problem.dimension, np.random.default_rng(0))
    values = np.array([problem.function(low + (high - low) * z) for z in sample])
    return float(values.mean()), float(values.std())


class RegretBound:
    """The terms of Eq. 4 as they grow; all in units of f's standard deviation until `rows` gives them back."""

    def __init__(self, slopes: Array, spread: float, dimension: int) -> None:
        self.slopes, self.spread, self.dimension = slopes / spread, spread, dimension
        # L = b sqrt(log(4 D a / delta)) with a = 1 and alpha_max = 1
        self.b = float(self.slopes.max()) / np.sqrt(np.log(4.0 * dimension / DELTA))
        self.largest_beta = self.gain = self.unselected = 0.0
        self.t = 0

    def beta(self, selected: int) -> float:
        """beta_t of the coming iteration."""
        return beta_schedule(self.t + 1, selected, self.dimension, delta=DELTA, a=1.0, b=self.b, r=1.0)

    def add(self, selected: Indices, beta: float, sd: float) -> dict[str, float]:
        """One iteration; the terms so far, in f's own units."""
        self.t += 1
        self.largest_beta = max(self.largest_beta, beta)
        self.gain += 0.5 * float(np.log1p(sd * sd / NOISE))
        self.unselected += 2.0 * float(self.slopes.sum() - self.slopes[selected].sum())
        c1 = 8.0 / np.log1p(1.0 / NOISE)
        terms = {
            "gp_term": float(np.sqrt(c1 * self.t * self.largest_beta * self.gain)),
            "unselected_term": max(self.unselected, 0.0),
            "bound": 2.0,  # 2 alpha_max
        }
        terms["bound"] += terms["gp_term"] + terms["unselected_term"]
        return {name: self.spread * value for name, value in terms.items()}


@dataclass(eq=False)
class BoundPoint(Point):
    """A point of GP-UCB."""

    z: Array = field(kw_only=True, repr=False)  # in the unit cube
    credited: Indices = field(kw_only=True, repr=False)  # what the selector is told that its value came of
    beta: float = 0.0
    sd: float = 0.0  # of the model, at the point


class ConfidenceBoundSearch:
    """GP-UCB on the variables a selector chooses, with the terms of the bound in `series`."""

    def __init__(self, problem: Problem, selector: Selector, seed: int) -> None:
        assert problem.optimum is not None
        D = problem.dimension
        self.problem, self.selector, self.rng = problem, selector, np.random.default_rng(seed)
        self.fill, self.history, self.everything = composite.make("best-k", 20), History(D), np.arange(D)
        self.centre, spread = scale(problem)
        self.bound = RegretBound(steepest(problem), spread, D)
        self.series: dict[str, list[float]] = {}
        credited = [variables for variables, n in selector.initial(DESIGN, self.rng) for _ in range(n)]
        self.design = list(zip(latin_hypercube(DESIGN, D, np.random.default_rng([seed, 2])), credited, strict=True))

    @property
    def sign(self) -> float:
        return 1.0 if self.problem.direction == "maximize" else -1.0

    def ask(self) -> list[BoundPoint]:
        """The next point of the design, then the one that maximises mean + sqrt(beta_t) sd on M_t."""
        number = len(self.history)
        if number < len(self.design):
            z, credited = self.design[number]
            return [BoundPoint(number, self._decoded(z), self.everything, z=z, credited=credited)]
        M = self.selector.next(self.history, self.everything, self.rng)
        theta = np.append(np.full(len(M), np.log(LENGTHSCALE * np.sqrt(len(M)))), [0.0, np.log(NOISE)])
        posterior = Posterior.of(Joint("se"), theta, self.history.X[:, M], self.history.y)
        beta = self.bound.beta(len(M))
        surface = AcquisitionFunction(posterior, upper_confidence_bound(beta))
        z_M = maximise(surface, self.history.X[self.history.best(3)][:, M], self.rng)
        _, sd = posterior.predict(z_M[None])
        (z,) = self.fill(1, self.history, self.everything, self.rng)
        z[M] = z_M
        more: dict[str, Any] = {"iteration": self.bound.t + 1, "beta": beta, "sd": float(sd[0])}
        return [BoundPoint(number, self._decoded(z), M, z=z, credited=M, **more)]

    def _decoded(self, z: Array) -> Array:
        low, high = self.problem.bounds.T
        x: Array = low + (high - low) * z
        return x

    def tell(self, point: BoundPoint, value: float | None) -> None:
        assert value is not None  # a function whose optimum is known has a value everywhere
        point.value = value
        scaled = self.sign * (value - self.centre) / self.bound.spread
        self.history.add(point.z, scaled)
        self.selector.observe(point.credited, scaled)
        if point.iteration:
            assert self.problem.optimum is not None
            so_far = self.series["regret"][-1] if self.series else 0.0
            regret = so_far + self.sign * (self.problem.optimum - value)
            terms = self.bound.add(point.credited, point.beta, point.sd)
            for name, term in {"regret": regret, **terms, "selected": float(len(point.credited))}.items():
                self.series.setdefault(name, []).append(term)


def run(problem: Problem, setting: RunSettings, progress: Progress | None = None) -> RunRecord:
    """GP-UCB with the selector of that name; the budget counts the initial design too."""
    if problem.optimum is None:
        raise InputError(f"the regret on {problem.name} cannot be told: its optimum is not known")
    if setting.budget <= DESIGN:
        given = f"a budget of {setting.budget} evaluations"
        raise InputError(f"{given} is too small: {DESIGN} are spent on the initial design")
    chosen = dict(setting.options)
    if setting.method == "ucb-dropout" and problem.active is not None:
        chosen.setdefault("d", len(problem.active))
    options = {"samples": 1, "subset_batches": 1} if setting.method == "ucb-mcts-vs" else chosen
    selector = selectors.make(SELECTORS[setting.method], problem.dimension, **options)
    search = ConfidenceBoundSearch(problem, selector, setting.seed)
    record = RunRecord(replace(setting, options=chosen), extra=search.series)
    return follow(problem, search, record, progress)
