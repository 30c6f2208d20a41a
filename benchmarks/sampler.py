"""The sampler of `saasbo` beside BoTorch's on the same model and data: do they draw from the same density, how fast?

    python benchmarks/sampler.py agree     25 points of 6 variables: quantiles of 2,000 draws of each, from two chains
    python benchmarks/sampler.py time      one fit of 50 points in 500 variables with the defaults, processor seconds

Needs the extra `botorch`.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_name] = "1"
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import argparse
import time
import warnings
from importlib import import_module
from typing import Any

import numpy as np

from mctsvs.methods.solvers import nuts
from mctsvs.methods.solvers.saas import SAASPosterior
from mctsvs.utils.validation import Array

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


def data(n: int, d: int, noise: float) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.random((n, d))
    y = np.sin(6.0 * X[:, 1]) + X[:, 4] + noise * rng.standard_normal(n)
    return X, (y - y.mean()) / y.std()


def ours(X: Array, y: Array, seed: int, **steps: int) -> Array:
    """Draws of log lengthscales, log outputscale, log noise, mean."""
    density, rng = SAASPosterior(X, y), np.random.default_rng(seed)
    draws = nuts.sample(density, rng.uniform(-2.0, 2.0, X.shape[1] + 4), rng, **steps)
    return np.column_stack([density.parameters(draws), draws[:, -1]])


def theirs(X: Array, y: Array, seed: int, *, warmup: int, steps: int, thinning: int, tree_depth: int) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecations inside the libraries
        torch: Any = import_module("torch")
        jax: Any = import_module("jax")
        fit: Any = import_module("botorch.fit")
        models: Any = import_module("botorch.models.fully_bayesian")
        torch.set_num_threads(1)
        with jax.enable_x64(True):
            model = models.SaasFullyBayesianSingleTaskGP(torch.tensor(X), torch.tensor(y)[:, None])
            fit.fit_fully_bayesian_model_nuts(
                model,
                max_tree_depth=tree_depth,
                warmup_steps=warmup,
                num_samples=steps,
                thinning=thinning,
                disable_progbar=True,
                seed=seed,
            )
    kernel, count = model.covar_module, model.num_mcmc_samples
    parts = [kernel.base_kernel.lengthscale, kernel.outputscale, model.likelihood.noise]
    logs = [np.log(part.detach().numpy()).reshape(count, -1) for part in parts]
    return np.column_stack([*logs, model.mean_module.constant.detach().numpy().reshape(count, 1)])


def agree() -> None:
    X, y = data(25, 6, noise=0.1)
    chains = {"warmup": 512, "steps": 4000, "thinning": 4, "tree_depth": 8}
    names = [*(f"log l{i}" for i in range(6)), "log scale", "log noise", "mean"]
    print("quantile  whose   " + " ".join(f"{name:>10}" for name in names))
    drawn = {f.__name__: np.concatenate([f(X, y, seed, **chains) for seed in (1, 2)]) for f in (ours, theirs)}
    for quantile in QUANTILES:
        for whose, draws in drawn.items():
            cells = " ".join(f"{value:10.3f}" for value in np.quantile(draws, quantile, axis=0))
            print(f"{quantile:8.2f}  {whose:7} {cells}")


def compare_times() -> None:
    X, y = data(50, 500, noise=0.1)
    defaults = {"warmup": 256, "steps": 128, "thinning": 16, "tree_depth": 6}
    ours(X[:5, :5], y[:5], 0, warmup=1, steps=1, thinning=1, tree_depth=1)
    theirs(X[:5, :5], y[:5], 0, warmup=1, steps=1, thinning=1, tree_depth=1)  # imports are nobody's time
    seconds = {}
    for f in (ours, theirs):
        started = time.process_time()
        f(X, y, 1, **defaults)
        seconds[f.__name__] = time.process_time() - started
    print(f"ours {seconds['ours']:.1f} s, BoTorch {seconds['theirs']:.1f} s: {seconds['theirs'] / seconds['ours']:.1f}")


if __name__ == "__main__":
    parts = {"agree": agree, "time": compare_times}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", default="time", choices=parts)
    parts[parser.parse_args().part]()
