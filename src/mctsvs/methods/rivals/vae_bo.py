"""A small variational autoencoder of points of the unit cube (Kingma and Welling, ICLR 2014).

Notation: x (D,) a point, z (d,) its code, h hidden units.
    encoder   x -> tanh -> mean and log variance of q(z | x)
    decoder   z -> tanh -> logistic -> mean of p(x | z), a normal distribution of standard deviation NOISE
    loss      |x - decoded|^2 / (2 NOISE^2) + KL(q(z | x) || N(0, 1)), the mean over the points

torch differentiates; every random number comes from the numpy generator that is passed in, and the weights are
numpy arrays, so that a network is plain data and torch's own generator is never touched.

VAE-BO: Bayesian optimisation in the code space of a variational autoencoder.

The baseline of learned embeddings in the MCTS-VS paper (Song et al., NeurIPS 2022, Section 5 and its appendix, with
the autoencoder of Kingma and Welling, ICLR 2014): encode the points evaluated, optimise over codes with a Gaussian
process, decode the new code into the point to evaluate; train the autoencoder again every 30 evaluations.

The codes follow a standard normal distribution, so their distribution function, coordinate by coordinate, maps them
into the unit cube of d coordinates in which the Gaussian process works.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from mctsvs.methods.base import Observation, Pending, Proposal, latin_hypercube
from mctsvs.methods.history import History
from mctsvs.methods.initial_design import InitialDesignEngine
from mctsvs.methods.rivals.hesbo_rembo import EmbeddingOptions
from mctsvs.methods.solvers import Subspace
from mctsvs.methods.solvers.bo import BayesianOptimisation, BOOptions
from mctsvs.utils.options import option
from mctsvs.utils.threads import one_torch_thread
from mctsvs.utils.validation import Array, Indices

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


EDGE = 1e-3  # codes are sought between these quantiles of the normal distribution: |z| < 3.1


@dataclass(frozen=True)
class AutoencoderOptions(EmbeddingOptions):
    """d               coordinates of a code; default 10, or D where D is smaller
    interval        evaluations between two trainings of the autoencoder (the paper's 30)
    learning_rate   of Adam (the paper's 0.01), for `steps` steps on all points a training
    hidden          hidden units of encoder and decoder
    initial_points  Latin hypercube before the first training
    """

    interval: int = option(30, least=1)
    learning_rate: float = option(0.01, above=0)
    steps: int = option(300, least=1)
    hidden: int = option(64, least=1)
    initial_points: int = option(20, least=1)


class VAEBO(InitialDesignEngine):
    """Bayesian optimisation of codes."""

    options_type: ClassVar[type[AutoencoderOptions]] = AutoencoderOptions
    options: AutoencoderOptions
    saved = ("weights", "trained", "trainings", "codes", "awaited", "solver")
    weights: Weights | None
    trained: int  # evaluations at the last training
    trainings: int
    codes: History  # the history as the Gaussian process sees it
    awaited: dict[int, Array]  # codes by proposal id, of proposals not yet told that the present weights decoded
    solver: BayesianOptimisation

    def __init__(self, offsets: Indices, rng: np.random.Generator, options: AutoencoderOptions) -> None:
        super().__init__(offsets, rng, options)
        self.d = options.size(self.dimension)
        self.weights, self.trained, self.trainings, self.awaited = None, 0, 0, {}
        self.codes, self.solver = History(self.d), BayesianOptimisation(BOOptions())
        self.begin(latin_hypercube(options.initial_points, self.dimension, rng))

    def propose(self, n: int, pending: Pending) -> list[Proposal]:
        proposals = [self.proposal(x, self.everything) for x in self.from_design(n)]
        missing = n - len(proposals)
        if missing == 0:
            return proposals
        if len(self.history) < 2:
            points, iteration = self.rng.random((missing, self.dimension)), 0
        else:
            points = self._search(missing, pending.beside(proposals))
            iteration = self.trainings
        return proposals + [self.proposal(x, self.everything, iteration) for x in points]

    def _search(self, n: int, waiting: Array) -> Array:
        """(n, D) decoded points of the most promising codes."""
        if self.weights is None or len(self.history) >= self.trained + self.options.interval:
            self._train()
        assert self.weights is not None
        subspace = Subspace(self.codes, np.arange(self.d), self._encode(waiting))
        codes = self.solver.propose(n, subspace, self.rng)
        self.awaited.update(enumerate(codes, start=self.proposed))
        return decode(self.weights, _to_normal(codes))

    def _train(self) -> None:
        """Go on from the last weights with all points; every code changes, so the Gaussian process starts anew."""
        o, X = self.options, self.history.X
        weights = self.weights or initial(self.dimension, self.d, o.hidden, self.rng)
        self.weights = train(weights, X, self.rng, steps=o.steps, learning_rate=o.learning_rate)
        self.trained, self.trainings, self.awaited = len(X), self.trainings + 1, {}
        self.codes, self.solver = History(self.d), BayesianOptimisation(BOOptions())
        for code, y, proposal_id in zip(self._encode(X), self.history.y, self.history.proposal_ids, strict=True):
            self.codes.add(code, float(y), int(proposal_id))
        for x in self.history.failures:
            self.codes.add(self._encode(x[None])[0], np.nan)

    def _encode(self, X: Array) -> Array:
        from scipy.special import ndtr

        assert self.weights is not None
        codes: Array = ndtr(encode(self.weights, X))
        return codes

    def observe(self, batch: Sequence[Observation]) -> None:
        super().observe(batch)
        for o in batch:
            code = self.awaited.pop(o.proposal_id, None)
            if code is not None and not np.isfinite(o.y):
                self.codes.add(code, o.y)  # its point may have another code, and this one would be asked for for ever
            if self.weights is not None:
                self.codes.add(self._encode(o.x[None])[0], o.y, o.proposal_id)


def _to_normal(codes: Array) -> Array:
    from scipy.special import ndtri

    normal: Array = ndtri(np.clip(codes, EDGE, 1.0 - EDGE))
    return normal
