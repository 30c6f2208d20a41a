"""Vanilla BO on scikit-learn, the paper's own kind: run beside our methods so that seconds can be compared."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mctsvs.bench.problems import Problem
from mctsvs.bench.record import Progress, RunRecord, RunSettings, follow, make_optimizer
from mctsvs.gp.acquisition import expected_improvement
from mctsvs.gp.optimize_acqf import quasi_random
from mctsvs.methods import selectors
from mctsvs.methods.composite import SubspaceEngine, SubspaceOptions
from mctsvs.methods.solvers import Subspace
from mctsvs.optimizer import Optimizer
from mctsvs.utils.options import Options
from mctsvs.utils.state import Saved
from mctsvs.utils.validation import Array


def regressor(lengthscale: Array | float, **options: Any) -> Any:
    """scikit-learn's Gaussian process with a Matern-5/2 kernel and noise."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    return GaussianProcessRegressor(ConstantKernel() * Matern(lengthscale, nu=2.5) + WhiteKernel(), **options)


@dataclass(frozen=True)
class SklearnOptions(Options):
    """ard   a lengthscale for each variable, not one for all"""

    ard: bool = False


class SklearnSolver(Saved):
    """The paper's solver on scikit-learn: its default fit, then the n best of 1,024 quasi-random points.

    Every proposal fits anew, so nothing is saved.
    """

    options_type: ClassVar[type[SklearnOptions]] = SklearnOptions
    batch = None

    def __init__(self, options: SklearnOptions) -> None:
        self.options = options

    def propose(self, n: int, subspace: Subspace, rng: np.random.Generator) -> Array:
        gp = regressor(np.ones(subspace.dimension) if self.options.ard else 1.0, normalize_y=True)
        candidates = quasi_random(1024, subspace.dimension, rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # parameters close to a bound, fits that did not converge
            mean, sd = gp.fit(subspace.X, subspace.y).predict(candidates, return_std=True)
        value, _, _ = expected_improvement(float(subspace.y.max()))(mean, np.maximum(sd, 1e-12))
        return candidates[np.argsort(-value, kind="stable")[:n]]


def with_solver(problem: Problem, selector: str, seed: int, *, ard: bool = False, samples: int = 3) -> Optimizer:
    """An optimizer that moves the variables `selector` chooses by scikit-learn's model."""
    opt = make_optimizer(problem, "bo", seed=seed)
    regressor(1.0)  # imports it: nobody's asking time
    chosen = selectors.make(selector, problem.dimension, **({"samples": samples} if selector == "mcts" else {}))
    solver, rng = SklearnSolver(SklearnOptions(ard=ard)), np.random.default_rng(seed)
    options = SubspaceOptions(samples=samples)
    opt._core.engine = SubspaceEngine(opt.space.offsets, rng, options, selector=chosen, solver=solver)
    return opt


def run(problem: Problem, setting: RunSettings, progress: Progress | None = None) -> RunRecord:
    """All variables; `samples` points for each fit, 3 by default as in `bo`, 1 in textbooks."""
    opt = with_solver(problem, "all", setting.seed, **setting.options)
    return follow(problem, opt, RunRecord(setting), progress)
