"""A small variational autoencoder of points of the unit cube (Kingma and Welling, ICLR 2014).

Notation: x (D,) a point, z (d,) its code, h hidden units.
    encoder   x -> tanh -> mean and log variance of q(z | x)
    decoder   z -> tanh -> logistic -> mean of p(x | z), a normal distribution of standard deviation NOISE
    loss      |x - decoded|^2 / (2 NOISE^2) + KL(q(z | x) || N(0, 1)), the mean over the points

torch differentiates; every random number comes from the numpy generator that is passed in, and the weights are
numpy arrays, so that a network is plain data and torch's own generator is never touched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from mctsvs.common import Array
from mctsvs.threads import one_torch_thread

if TYPE_CHECKING:
    from torch import Tensor

Weights = list[npt.NDArray[np.float32]]
"""Matrix and offset of each of five layers: hidden, mean, log variance; hidden, output."""

NOISE = 0.1  # far below the 0.29 of uniform points: with more, the codes of a few dozen points would all be one
SPREAD = float(np.sqrt(12.0))  # makes uniform coordinates of unit variance


def initial(dimension: int, latent: int, hidden: int, rng: np.random.Generator) -> Weights:
    """Random weights of variance 1 / inputs."""
    shapes = [(dimension, hidden), (hidden, latent), (hidden, latent), (latent, hidden), (hidden, dimension)]
    weights: Weights = []
    for shape in shapes:
        weights.append((rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32))
        weights.append(np.zeros(shape[1], np.float32))
    return weights


def encode(weights: Weights, X: Array) -> Array:
    """(n, d) means of the codes of the points X (n, D)."""
    hidden = np.tanh((X.astype(np.float32) - 0.5) * SPREAD @ weights[0] + weights[1])
    return (hidden @ weights[2] + weights[3]).astype(np.float64)


def decode(weights: Weights, Z: Array) -> Array:
    """(n, D) points of the codes Z (n, d), inside the unit cube."""
    hidden = np.tanh(Z.astype(np.float32) @ weights[6] + weights[7])
    out = (hidden @ weights[8] + weights[9]).astype(np.float64)
    points: Array = 0.5 * (1.0 + np.tanh(0.5 * out))  # the logistic function, without overflow
    return points


def train(
    weights: Weights, X: Array, rng: np.random.Generator, *, steps: int = 300, learning_rate: float = 0.01
) -> Weights:
    """The weights after so many steps of Adam on all points; those given are left as they are."""
    import torch

    with one_torch_thread():
        data = torch.tensor(X, dtype=torch.float32)
        centred = (data - 0.5) * SPREAD
        layers = [torch.tensor(w, requires_grad=True) for w in weights]
        optimiser = torch.optim.Adam(layers, lr=learning_rate)
        for _ in range(steps):
            noise = torch.tensor(rng.standard_normal((len(X), weights[3].size)), dtype=torch.float32)
            loss = _loss(layers, data, centred, noise)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call, unused-ignore]
            optimiser.step()
        return [layer.detach().numpy().copy() for layer in layers]


def _loss(layers: list[Tensor], data: Tensor, centred: Tensor, noise: Tensor) -> Tensor:
    import torch

    hidden = torch.tanh(centred @ layers[0] + layers[1])
    mean, log_variance = hidden @ layers[2] + layers[3], (hidden @ layers[4] + layers[5]).clamp(-10.0, 10.0)
    z = mean + torch.exp(0.5 * log_variance) * noise
    out = torch.sigmoid(torch.tanh(z @ layers[6] + layers[7]) @ layers[8] + layers[9])
    misfit = ((data - out) ** 2).sum(dim=1) / (2.0 * NOISE**2)
    divergence = 0.5 * (mean**2 + log_variance.exp() - 1.0 - log_variance).sum(dim=1)
    return (misfit + divergence).mean()
