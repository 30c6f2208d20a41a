"""SAASBO: the SAAS prior with its parameters sampled by NUTS (Eriksson and Jankowiak, UAI 2021).

BoTorch's `SaasFullyBayesianSingleTaskGP` draws the parameters: rho_i ~ HalfCauchy(tau), tau ~ HalfCauchy(0.1),
outputscale, noise and a constant mean. Each draw becomes a member of the project's own ensemble, whose
expected improvements are averaged as in the paper and climbed by the same search as every other method's here:
the paper of MCTS-VS compares SAASBO so, too. The sampler's cost grows with n^2 (n + D) a step; it is slow.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from mctsvs.common import Array
from mctsvs.solve.ensemble import EnsembleSolver, Members, check_at_least


class SparseSampled(EnsembleSolver):
    """An ensemble of draws from the posterior of the parameters.

    warmup          steps of the sampler that are thrown away
    mcmc_samples    steps that follow, of which every `thinning`-th becomes a member
    tree_depth      of NUTS: a step costs up to 2 ** tree_depth gradients
    refit_growth    1 (default): parameters are sampled anew whenever a value has come
    average, fit_points, starts, winsorise: see `EnsembleSolver`

    The defaults are those of BoTorch's tutorial, 8 members.
    """

    options: ClassVar[tuple[str, ...]] = (
        "warmup",
        "mcmc_samples",
        "thinning",
        "tree_depth",
        "average",
        "refit_growth",
        "fit_points",
        "starts",
        "winsorise",
    )

    def __init__(
        self,
        *,
        warmup: int = 256,
        mcmc_samples: int = 128,
        thinning: int = 16,
        tree_depth: int = 6,
        average: str = "improvement",
        refit_growth: float = 1.0,
        fit_points: int = 1000,
        starts: int = 1,
        winsorise: bool = True,
    ) -> None:
        super().__init__(
            kernel="matern52",
            average=average,
            refit_growth=refit_growth,
            fit_points=fit_points,
            starts=starts,
            winsorise=winsorise,
        )
        check_at_least(1, warmup=warmup, mcmc_samples=mcmc_samples, thinning=thinning, tree_depth=tree_depth)
        self.warmup, self.mcmc_samples, self.thinning, self.tree_depth = warmup, mcmc_samples, thinning, tree_depth

    def _fit(self, X: Array, values: Array, last: Members | None, rng: np.random.Generator) -> Members:
        seed = int(rng.integers(2**31))
        drawn = sample(X, values, seed, self.warmup, self.mcmc_samples, self.thinning, self.tree_depth)
        members = len(drawn["mean"])
        logs = [drawn["lengthscale"], drawn["outputscale"][:, None], drawn["noise"][:, None]]
        thetas = np.log(np.concatenate(logs, axis=1))
        return Members(thetas, drawn["mean"], np.full(members, 1.0 / members))


def sample(
    X: Array, values: Array, seed: int, warmup: int, steps: int, thinning: int, tree_depth: int
) -> dict[str, Array]:
    """Draws of lengthscale (E, d), outputscale, noise and mean (E,); global settings and generators are left alone."""
    import warnings
    from importlib import import_module

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecations inside the libraries, from their import on
        import torch
        from botorch.fit import fit_fully_bayesian_model_nuts
        from botorch.models.fully_bayesian import SaasFullyBayesianSingleTaskGP

        jax: Any = import_module("jax")
        threads = torch.get_num_threads()
        # the sampler takes its own seed; BoTorch is free to draw from torch's generator on the way
        with torch.random.fork_rng(devices=[]), jax.enable_x64(True):
            try:
                torch.set_num_threads(1)
                torch.manual_seed(seed)
                model: Any = SaasFullyBayesianSingleTaskGP(torch.tensor(X), torch.tensor(values)[:, None])
                fit_fully_bayesian_model_nuts(
                    model,
                    max_tree_depth=tree_depth,
                    warmup_steps=warmup,
                    num_samples=steps,
                    thinning=thinning,
                    disable_progbar=True,
                    seed=seed,
                )
            finally:
                torch.set_num_threads(threads)
    count = model.num_mcmc_samples
    kernel = model.covar_module
    parts = {
        "lengthscale": kernel.base_kernel.lengthscale,
        "outputscale": kernel.outputscale,
        "noise": model.likelihood.noise,
        "mean": model.mean_module.constant,
    }
    drawn = {name: value.detach().numpy().astype(np.float64) for name, value in parts.items()}
    return {name: value.reshape(count, -1) if name == "lengthscale" else value.ravel() for name, value in drawn.items()}
