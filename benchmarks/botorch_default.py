"""The next point by BoTorch's defaults: SingleTaskGP, log EI, 4 restarts from 512 raw samples, half near the best."""

from __future__ import annotations

import warnings

from mctsvs.common import Array


def next_point(X: Array, y: Array, device: str = "cpu") -> Array:
    """(1, D) the point to evaluate next, given (n, D) points of the unit cube and their values."""
    import torch
    from botorch.acquisition import LogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.set_num_threads(1)
    inputs = torch.from_numpy(X.copy()).to(device)
    values = torch.from_numpy(y.copy()).to(device)[:, None]
    D = X.shape[1]
    bounds = torch.stack([torch.zeros(D), torch.ones(D)]).double().to(device)
    model = SingleTaskGP(inputs, values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        acquisition = LogExpectedImprovement(model, best_f=values.max())
        options = {"sample_around_best": True}
        x, _ = optimize_acqf(acquisition, bounds=bounds, q=1, num_restarts=4, raw_samples=512, options=options)
    chosen: Array = x.detach().cpu().numpy()
    return chosen
