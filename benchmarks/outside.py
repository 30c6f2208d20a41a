"""Other libraries in our loop: each is given the unit cube, costs to minimise, and one point at a time."""

from __future__ import annotations

import os
import queue
import tempfile
import threading
import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

import native
from mctsvs.bench import problems
from mctsvs.bench.record import Search, make_optimizer
from mctsvs.methods.composite import SubspaceEngine
from mctsvs.methods.solvers import Subspace
from mctsvs.utils.options import Options
from mctsvs.utils.state import Saved
from mctsvs.utils.validation import Array, InputError

NEEDS = {  # the library of each
    "smac": "smac",
    "nevergrad": "nevergrad",
    "pycma": "cma",
    "pycma from centre": "cma",
    "botorch": "botorch",
    "cobyqa": "scipy",
    "lq-cma-es": "cma",
}


class BotorchSolver(Saved):
    """BoTorch's defaults: SingleTaskGP, log EI, 4 restarts from 512 raw samples, half near the best; a point a time."""

    options_type: ClassVar[type[Options]] = Options
    batch = None

    def __init__(self, options: Options) -> None:
        self.options = options

    def propose(self, n: int, subspace: Subspace, rng: np.random.Generator) -> Array:
        import torch
        from botorch.acquisition import LogExpectedImprovement
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from botorch.optim import optimize_acqf
        from gpytorch.mlls import ExactMarginalLogLikelihood

        torch.set_num_threads(1)
        device = os.environ.get("BOTORCH_DEVICE", "cpu")
        inputs = torch.from_numpy(subspace.X.copy()).to(device)
        values = torch.from_numpy(subspace.y.copy()).to(device)[:, None]
        cube = torch.tensor([[0.0], [1.0]], dtype=torch.double, device=device).repeat(1, subspace.dimension)
        model = SingleTaskGP(inputs, values)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
            surface = LogExpectedImprovement(model, best_f=values.max())
            around = {"sample_around_best": True}
            x, _ = optimize_acqf(surface, bounds=cube, q=1, num_restarts=4, raw_samples=512, options=around)
        chosen: Array = x.detach().cpu().numpy()
        return chosen


def botorch(problem: problems.Problem, seed: int) -> Search:
    """BoTorch in the loop of `bo-dsp`: the same initial points, one model of all variables."""
    import torch

    torch.manual_seed(seed)
    opt = make_optimizer(problem, "bo-dsp", seed=seed)
    assert isinstance(opt._core.engine, SubspaceEngine)
    opt._core.engine.solver = BotorchSolver(Options())
    return opt


class Outside:
    """Another library in our loop, which is given the unit cube, costs to minimise, and one point at a time."""

    def __init__(self, problem: problems.Problem) -> None:
        if problem.space is not problem.bounds:
            raise InputError(f"{problem.name} has other than real variables: give it to our own methods")
        (self.low, high), self.dimension = problem.bounds.T, problem.dimension
        self.width, self.sign = high - self.low, 1.0 if problem.direction == "minimize" else -1.0
        self.asked = 0

    def next(self) -> tuple[Array, Any]:
        """A point of the cube, and the library's own name for it."""
        raise NotImplementedError

    def learn(self, handle: Any, cost: float) -> None:
        raise NotImplementedError

    def ask(self, n: int = 1) -> list[native.NativePoint]:
        return [self._point() for _ in range(n)]

    def _point(self) -> native.NativePoint:
        (u, handle), self.asked = self.next(), self.asked + 1
        return native.NativePoint(self.asked - 1, self.low + self.width * np.clip(u, 0.0, 1.0), handle=handle)

    def tell(self, point: native.NativePoint, value: float | None) -> None:
        assert value is not None
        point.value = value
        self.learn(point.handle, self.sign * value)


class Smac(Outside):
    """SMAC3's facade for many variables: a random forest and log EI, after 20 Sobol points."""

    def __init__(self, problem: problems.Problem, seed: int, budget: int) -> None:
        from ConfigSpace import ConfigurationSpace, Float
        from smac import HyperparameterOptimizationFacade as Facade
        from smac import Scenario

        super().__init__(problem)
        self.names = [f"x{i:05d}" for i in range(self.dimension)]
        space = ConfigurationSpace(seed=seed)
        space.add([Float(name, (0.0, 1.0)) for name in self.names])
        folder = tempfile.mkdtemp()
        scenario = Scenario(space, n_trials=budget, seed=seed, deterministic=True, output_directory=folder)
        design = Facade.get_initial_design(scenario, n_configs=20)
        self.facade = Facade(scenario, lambda config, seed=0: 0.0, initial_design=design, logging_level=False)

    def next(self) -> tuple[Array, Any]:
        info = self.facade.ask()
        return np.array([info.config[name] for name in self.names]), info

    def learn(self, handle: Any, cost: float) -> None:
        from smac.runhistory.dataclasses import TrialValue

        self.facade.tell(handle, TrialValue(cost=cost))


class Nevergrad(Outside):
    """Nevergrad's NGOpt, which chooses an algorithm by dimension and budget and begins at the centre."""

    def __init__(self, problem: problems.Problem, seed: int, budget: int, batch: int) -> None:
        import nevergrad

        super().__init__(problem)
        warnings.simplefilter("ignore")  # from here on: its inner solvers warn at every run
        cube = nevergrad.p.Array(shape=(self.dimension,), lower=0.0, upper=1.0)
        cube.random_state.seed(seed)
        self.optimizer = nevergrad.optimizers.NGOpt(cube, budget=budget, num_workers=batch)

    def next(self) -> tuple[Array, Any]:
        candidate = self.optimizer.ask()
        return candidate.value, candidate

    def learn(self, handle: Any, cost: float) -> None:
        self.optimizer.tell(handle, cost)


class Pycma(Outside):
    """pycma with its own population, from a random point or from the centre; our `cma-es` has the paper's 20."""

    SIGMA = 0.25  # of the width, which pycma's documentation recommends

    def __init__(self, problem: problems.Problem, seed: int, batch: int, *, centre: bool) -> None:
        import cma

        super().__init__(problem)
        start = np.full(self.dimension, 0.5) if centre else np.random.default_rng(seed).random(self.dimension)
        options = {"bounds": [0.0, 1.0], "seed": seed + 1, "verbose": -9}
        if batch > 1:
            options["popsize"] = max(batch, 4)
        self.strategy = cma.CMAEvolutionStrategy(start, self.SIGMA, options)
        self.waiting: list[Array] = []
        self.told: list[tuple[Array, float]] = []

    def next(self) -> tuple[Array, Any]:
        if not self.waiting:
            self.waiting = self.strategy.ask()
        x = self.waiting.pop(0)
        return x, x

    def learn(self, handle: Any, cost: float) -> None:
        self.told.append((handle, cost))
        if len(self.told) == self.strategy.popsize:
            self.strategy.tell(*zip(*self.told, strict=True))
            self.told = []


class Called(Outside):
    """A library that calls the function by itself, one point at a time: it runs in a thread that waits for values."""

    def __init__(self, problem: problems.Problem, solve: Callable[[Callable[[Array], float], Array], object]) -> None:
        super().__init__(problem)
        self.points, self.costs = queue.Queue[Any](), queue.Queue[float]()
        self.solve, self.thread = solve, threading.Thread(target=self.run, daemon=True)

    def run(self) -> None:
        """Again and again: first from the centre, then from random points."""
        rng, start = np.random.default_rng(0), np.full(self.dimension, 0.5)
        try:
            while True:
                self.solve(self.cost, start)
                start = rng.random(self.dimension)
        except Exception as error:
            self.points.put(error)

    def cost(self, u: Array) -> float:
        self.points.put(np.array(u, dtype=np.float64))
        return self.costs.get()

    def next(self) -> tuple[Array, Any]:
        if not self.thread.is_alive():
            self.thread.start()
        found = self.points.get()
        if isinstance(found, Exception):
            raise found
        return found, None

    def learn(self, handle: Any, cost: float) -> None:
        self.costs.put(cost)


def cobyqa(problem: problems.Problem, budget: int) -> Called:
    """SciPy's, with its own settings."""
    from scipy.optimize import minimize

    bounds = [(0.0, 1.0)] * problem.dimension

    def solve(f: Any, start: Array) -> object:
        return minimize(f, start, method="COBYQA", bounds=bounds, options={"maxfev": budget})

    return Called(problem, solve)


def lq_cma_es(problem: problems.Problem, seed: int) -> Called:
    """pycma's CMA-ES with a linear-quadratic surrogate."""
    import cma

    options = {"bounds": [0.0, 1.0], "seed": seed + 1, "verbose": -9}
    return Called(problem, lambda f, start: cma.fmin_lq_surr2(f, start, Pycma.SIGMA, options))


def search(method: str, problem: problems.Problem, seed: int, budget: int, batch: int = 1) -> Any:
    """One of them, to ask and tell."""
    match method:
        case "smac":
            return Smac(problem, seed, budget)
        case "nevergrad":
            return Nevergrad(problem, seed, budget, batch)
        case "botorch":
            return botorch(problem, seed)
        case "cobyqa" | "lq-cma-es" if batch > 1:
            raise InputError(f"{method} takes one point at a time, and the batch is {batch}")
        case "cobyqa":
            return cobyqa(problem, budget)
        case "lq-cma-es":
            return lq_cma_es(problem, seed)
        case _:
            return Pycma(problem, seed, batch, centre=method.endswith("centre"))
