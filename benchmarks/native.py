"""Other libraries on spaces of every kind of variable, each told in its own terms what is whole, a choice or absent.

`search(name, problem, seed, budget)` gives one for our loop (`mctsvs.bench.record`): Optuna's TPE (multivariate,
and with groups where there are conditions) and GP sampler, CMA-ES with margin (package cmaes), Nevergrad's NGOpt.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mctsvs.bench import problems
from mctsvs.bench.record import Point
from mctsvs.space import Categorical, Float, Integer, Space
from mctsvs.utils.validation import Array, InputError

NEEDS = {"tpe": "optuna", "gp-sampler": "optuna", "cmaes with margin": "cmaes", "ngopt": "nevergrad"}
SIGMA = 0.25  # first deviation of CMA-ES, of the width of every range


@dataclass(eq=False)
class NativePoint(Point):
    """A point to evaluate, in natural units with the number of each choice, and what the library calls it."""

    handle: Any = None


class Native:
    """A library in our loop, one point at a time; it gets costs to minimise."""

    def __init__(self, problem: problems.Problem) -> None:
        self.space, self.asked = Space.of(problem.space), 0
        self.sign = 1.0 if problem.direction == "minimize" else -1.0
        warnings.simplefilter("ignore")  # from here on: experimental samplers and inner solvers warn at every run

    def next(self) -> tuple[Array, Any]:
        """A point (V,), and the library's own name for it."""
        raise NotImplementedError

    def learn(self, handle: Any, cost: float) -> None:
        raise NotImplementedError

    def ask(self) -> list[NativePoint]:
        (x, handle), self.asked = self.next(), self.asked + 1
        return [NativePoint(self.asked - 1, x, handle=handle)]

    def tell(self, point: NativePoint, value: float | None) -> None:
        assert value is not None
        point.value = value
        self.learn(point.handle, self.sign * value)


class Optuna(Native):
    """One of its samplers."""

    def __init__(self, problem: problems.Problem, sampler: Callable[[Any], Any]) -> None:
        import optuna

        super().__init__(problem)
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.study = optuna.create_study(sampler=sampler(optuna.samplers))
        self.distributions = {name: _optuna(v) for name, v in zip(self.space.names, self.space.variables, strict=True)}

    def next(self) -> tuple[Array, Any]:
        if not self.space.conditional:
            trial = self.study.ask(self.distributions)
            return np.array([float(trial.params[name]) for name in self.space.names]), trial
        trial, x = self.study.ask(), np.array(self.space.standard)
        for v in self._parents_first():
            if self.space.active(self.space.encode(x))[v]:
                x[v] = float(_suggest(trial, self.space.names[v], self.distributions[self.space.names[v]]))
        return x, trial

    def _parents_first(self) -> list[int]:
        """All variables, those without conditions first: conditions are one deep here."""
        return sorted(range(len(self.space)), key=lambda v: bool(self.space.variables[v].when))

    def learn(self, handle: Any, cost: float) -> None:
        self.study.tell(handle, cost)


def _suggest(trial: Any, name: str, distribution: Any) -> Any:
    kind = type(distribution).__name__
    if kind == "CategoricalDistribution":
        return trial.suggest_categorical(name, distribution.choices)
    suggest = trial.suggest_int if kind == "IntDistribution" else trial.suggest_float
    return suggest(name, distribution.low, distribution.high, log=distribution.log, step=distribution.step)


def _optuna(variable: Any) -> Any:
    """Choices by their numbers."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(variable, Categorical):
        return CategoricalDistribution(tuple(range(len(variable.choices))))
    kind = IntDistribution if isinstance(variable, Integer) else FloatDistribution
    return kind(variable.low, variable.high, log=variable.log, step=variable.step)


class Margin(Native):
    """CMA-ES with margin, from the centre of the unit cube in which every variable has its values spread evenly."""

    def __init__(self, problem: problems.Problem, seed: int) -> None:
        import cmaes

        super().__init__(problem)
        if any(isinstance(v, Categorical) or getattr(v, "log", False) for v in self.space.variables):
            raise InputError(f"{problem.name} has choices or logarithms, which CMA-ES with margin does not know")
        (self.low, high), n = self.space.bounds.T, len(self.space)
        self.width = high - self.low
        steps = np.where(np.isinf(self.space.sizes), 0.0, 1.0 / np.maximum(self.space.sizes - 1.0, 1.0))
        cube = np.tile([0.0, 1.0], (n, 1))
        self.strategy = cmaes.CMAwM(mean=np.full(n, 0.5), sigma=SIGMA, bounds=cube, steps=steps, seed=seed)
        self.told: list[tuple[Array, float]] = []

    def next(self) -> tuple[Array, Any]:
        u, handle = self.strategy.ask()
        x = self.low + self.width * np.clip(u, 0.0, 1.0)
        return np.where(np.isinf(self.space.sizes), x, np.rint(x)), handle

    def learn(self, handle: Any, cost: float) -> None:
        self.told.append((handle, cost))
        if len(self.told) == self.strategy.population_size:
            self.strategy.tell(self.told)
            self.told = []


class NGOpt(Native):
    """Nevergrad's choice among its algorithms by kinds of variables, dimension and budget."""

    def __init__(self, problem: problems.Problem, seed: int, budget: int) -> None:
        import nevergrad

        super().__init__(problem)
        space = nevergrad.p.Tuple(*(_nevergrad(nevergrad.p, v) for v in self.space.variables))
        space.random_state.seed(seed)
        self.optimizer = nevergrad.optimizers.NGOpt(space, budget=budget)

    def next(self) -> tuple[Array, Any]:
        candidate = self.optimizer.ask()
        return np.array(candidate.value, dtype=np.float64), candidate

    def learn(self, handle: Any, cost: float) -> None:
        self.optimizer.tell(handle, cost)


def _nevergrad(p: Any, variable: Any) -> Any:
    if isinstance(variable, Categorical):
        return p.Choice(list(range(len(variable.choices))))
    kind = p.Log if variable.log else p.Scalar
    scalar = kind(lower=float(variable.low), upper=float(variable.high))
    return scalar if isinstance(variable, Float) else scalar.set_integer_casting()


def search(name: str, problem: problems.Problem, seed: int, budget: int) -> Native:
    """The library of that name, a key of `NEEDS`."""
    if name == "tpe":
        group = Space.of(problem.space).conditional
        return Optuna(problem, lambda samplers: samplers.TPESampler(seed=seed, multivariate=True, group=group))
    if name == "gp-sampler":
        return Optuna(problem, lambda samplers: samplers.GPSampler(seed=seed))
    return Margin(problem, seed) if name == "cmaes with margin" else NGOpt(problem, seed, budget)
