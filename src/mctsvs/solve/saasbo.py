"""SAASBO: the SAAS prior with its parameters sampled by NUTS (Eriksson and Jankowiak, UAI 2021).

Model and priors are those of BoTorch's `SaasFullyBayesianSingleTaskGP` (`mctsvs.gp.sparse_posterior`), sampled here by
`mctsvs.gp.nuts` with the likelihood's analytic gradient: a fit to 50 points in 500 variables takes a tenth of the time
of BoTorch's, which also compiles anew for every number of points (docs/design.md). Each draw becomes a member of an
ensemble, whose expected improvements are averaged as in the paper and climbed by the same search as every other
method's here: the paper of MCTS-VS compares SAASBO so, too. It is slow all the same.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mctsvs.common import Array, InputError
from mctsvs.gp import nuts
from mctsvs.gp.sparse_posterior import SparsePosterior
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
        if thinning > mcmc_samples:
            raise InputError(f"thinning={thinning} is too large: of mcmc_samples={mcmc_samples} no draw would be left")
        self.warmup, self.mcmc_samples, self.thinning, self.tree_depth = warmup, mcmc_samples, thinning, tree_depth

    def _fit(self, X: Array, values: Array, last: Members | None, rng: np.random.Generator) -> Members:
        density = SparsePosterior(X, values)
        draws = nuts.sample(
            density,
            rng.uniform(-2.0, 2.0, X.shape[1] + 4),
            rng,
            warmup=self.warmup,
            steps=self.mcmc_samples,
            thinning=self.thinning,
            tree_depth=self.tree_depth,
        )
        return Members(density.parameters(draws), draws[:, -1], np.full(len(draws), 1.0 / len(draws)))
