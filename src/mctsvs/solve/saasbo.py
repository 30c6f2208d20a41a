"""SAASBO: the SAAS prior with its parameters sampled by NUTS (Eriksson and Jankowiak, UAI 2021).

Model and priors are those of BoTorch's `SaasFullyBayesianSingleTaskGP` (`mctsvs.gp.sparse_posterior`), sampled here by
`mctsvs.gp.nuts` with the likelihood's analytic gradient, which needs no compiling for every number of points. Each draw
becomes a member of an ensemble, whose expected improvements are averaged as in the paper and climbed by the same search
as every other method's here: the paper of MCTS-VS compares SAASBO so, too. It is slow all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mctsvs.common import Array, InputError
from mctsvs.gp import nuts
from mctsvs.gp.kernels import Joint
from mctsvs.gp.sparse_posterior import SparsePosterior
from mctsvs.options import option
from mctsvs.solve.ensemble import AVERAGES, EnsembleOptions, EnsembleSolver, Members


@dataclass(frozen=True)
class SparseSampledOptions(EnsembleOptions):
    """warmup          steps of the sampler that are thrown away
    mcmc_samples    steps that follow, of which every `thinning`-th becomes a member
    tree_depth      of NUTS: a step costs up to 2 ** tree_depth gradients

    The defaults are those of BoTorch's tutorial; parameters are sampled anew whenever a value has come.
    """

    average: str = option("improvement", among=AVERAGES)
    refit_growth: float = option(1.0, least=1.0)
    fit_points: int = 1000
    warmup: int = 256
    mcmc_samples: int = 128
    thinning: int = 16
    tree_depth: int = 6

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.thinning > self.mcmc_samples:
            raise InputError(
                f"thinning={self.thinning} cannot be used: "
                f"it must be at most mcmc_samples={self.mcmc_samples}, or no draw would be left"
            )


class SparseSampled(EnsembleSolver):
    """An ensemble of draws from the posterior of the parameters."""

    options_type: ClassVar[type[SparseSampledOptions]] = SparseSampledOptions
    options: SparseSampledOptions

    def __init__(self, options: SparseSampledOptions) -> None:
        super().__init__(options, Joint("matern52"))

    def _fit(self, X: Array, values: Array, last: Members | None, rng: np.random.Generator) -> Members:
        o, density = self.options, SparsePosterior(X, values)
        draws = nuts.sample(
            density,
            rng.uniform(-2.0, 2.0, X.shape[1] + 4),
            rng,
            warmup=o.warmup,
            steps=o.mcmc_samples,
            thinning=o.thinning,
            tree_depth=o.tree_depth,
        )
        return Members(density.parameters(draws), draws[:, -1], np.full(len(draws), 1.0 / len(draws)))
