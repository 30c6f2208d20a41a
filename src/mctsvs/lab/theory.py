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

import itertools
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mctsvs import fill, select
from mctsvs.common import Array, Indices, InputError
from mctsvs.engine import latin_hypercube
from mctsvs.gp.acquisition import Surface, beta_schedule, upper_confidence_bound
from mctsvs.gp.kernels import Joint
from mctsvs.gp.posterior import Posterior
from mctsvs.gp.search import maximise, quasi_random
from mctsvs.history import History
from mctsvs.lab.run import Record, recall
from mctsvs.problems import Problem

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


class Bound:
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


def run(
    problem: Problem,
    method: str,
    *,
    budget: int,
    seed: int,
    options: Mapping[str, Any],
    variation: Mapping[str, Any],
    progress: Callable[..., object] | None = None,
) -> Record:
    """GP-UCB with the selector of that name; `budget` counts the initial design too."""
    if problem.optimum is None:
        raise InputError(f"the regret on {problem.name} cannot be told: its optimum is not known")
    if budget <= DESIGN:
        raise InputError(f"a budget of {budget} evaluations is too small: {DESIGN} are spent on the initial design")
    D, sign = problem.dimension, 1.0 if problem.direction == "maximize" else -1.0
    rng, noise = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    chosen = dict(options)
    if method == "ucb-dropout" and problem.active is not None:
        chosen.setdefault("d", len(problem.active))
    settings = {"samples": 1, "subset_batches": 1} if method == "ucb-mcts-vs" else chosen
    selector = select.make(SELECTORS[method], D, **settings)
    filler, history, owner = fill.make("best-k", 20), History(D), np.arange(D)
    centre, spread = scale(problem)
    bound = Bound(steepest(problem), spread, D)
    low, high = problem.bounds.T
    record = Record(problem.name, dict(variation), method, chosen, seed, budget)
    series: dict[str, list[float]] = {
        name: [] for name in ("regret", "gp_term", "unselected_term", "bound", "selected")
    }
    started, regret = time.perf_counter(), 0.0

    def evaluate(z: Array, variables: Any) -> float:
        value = problem.evaluate(low + (high - low) * z, noise)
        history.add(z, sign * (value - centre) / spread)
        selector.observe(variables, sign * (value - centre) / spread)
        record.values.append(value)
        record.trace.append(float(max(record.values) if sign > 0 else min(record.values)))
        record.thinking.append(time.perf_counter() - started)
        record.elapsed.append(record.thinking[-1])
        if progress is not None:
            progress()
        return value

    design = iter(latin_hypercube(DESIGN, D, np.random.default_rng([seed, 2])))
    for variables, n in selector.initial(DESIGN, rng):
        for z in itertools.islice(design, n):
            evaluate(z, variables)
    record.iterations.append({"variables": list(range(D)), "evaluations": len(history)})
    selections = []
    for _ in range(budget - len(history)):
        M = selector.next(history, owner, rng)
        theta = np.append(np.full(len(M), np.log(LENGTHSCALE * np.sqrt(len(M)))), [0.0, np.log(NOISE)])
        posterior = Posterior.of(Joint("se"), theta, history.X[:, M], history.y)
        beta = bound.beta(len(M))
        surface = Surface(posterior, upper_confidence_bound(beta))
        z_M = maximise(surface, history.X[history.best(3)][:, M], rng)
        _, sd = posterior.predict(z_M[None])
        (z,) = filler(1, history, owner, rng)
        z[M] = z_M
        value = evaluate(z, M)
        regret += sign * (problem.optimum - value)
        terms = {"regret": regret, **bound.add(M, beta, float(sd[0])), "selected": float(len(M))}
        for name, term in terms.items():
            series[name].append(term)
        selections.append(M)
        record.iterations.append({"variables": np.sort(M).tolist(), "evaluations": 1})
    record.best, record.extra = record.trace[-1], series
    record.optimizer_seconds = record.wall_seconds = record.thinking[-1]
    if problem.active is not None:
        record.recall = recall(selections, problem.active)
    return record
