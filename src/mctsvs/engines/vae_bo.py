"""VAE-BO: Bayesian optimisation in the code space of a variational autoencoder.

The baseline of learned embeddings in the MCTS-VS paper (Song et al., NeurIPS 2022, Section 5 and its appendix, with
the autoencoder of Kingma and Welling, ICLR 2014): encode the points evaluated, optimise over codes with a Gaussian
process, decode the new code into the point to evaluate; train the autoencoder again every 30 evaluations.

The codes follow a standard normal distribution, so their distribution function, coordinate by coordinate, maps them
into the unit cube of d coordinates in which the Gaussian process works.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mctsvs.common import Array, Indices
from mctsvs.engine import Observation, Pending, Proposal, latin_hypercube
from mctsvs.engines import vae
from mctsvs.engines.design import DesignEngine
from mctsvs.engines.embedding import EmbeddingOptions
from mctsvs.history import History
from mctsvs.options import option
from mctsvs.solve.bo import BayesianOptimisation, BOOptions
from mctsvs.solve.subspace import Subspace

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


class VAEBO(DesignEngine):
    """Bayesian optimisation of codes."""

    options_type: ClassVar[type[AutoencoderOptions]] = AutoencoderOptions
    options: AutoencoderOptions
    saved = ("weights", "trained", "trainings", "codes", "sent", "solver")
    weights: vae.Weights | None
    trained: int  # evaluations at the last training
    trainings: int
    codes: History  # the history as the Gaussian process sees it
    sent: dict[int, Array]  # codes by ticket, of proposals not yet told that the present weights decoded
    solver: BayesianOptimisation

    def __init__(self, offsets: Indices, rng: np.random.Generator, options: AutoencoderOptions) -> None:
        super().__init__(offsets, rng, options)
        self.d = options.size(self.dimension)
        self.weights, self.trained, self.trainings, self.sent = None, 0, 0, {}
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
        self.sent.update(enumerate(codes, start=self.proposed))
        return vae.decode(self.weights, _to_normal(codes))

    def _train(self) -> None:
        """Go on from the last weights with all points; every code changes, so the Gaussian process starts anew."""
        o, X = self.options, self.history.X
        weights = self.weights or vae.initial(self.dimension, self.d, o.hidden, self.rng)
        self.weights = vae.train(weights, X, self.rng, steps=o.steps, learning_rate=o.learning_rate)
        self.trained, self.trainings, self.sent = len(X), self.trainings + 1, {}
        self.codes, self.solver = History(self.d), BayesianOptimisation(BOOptions())
        for code, y, ticket in zip(self._encode(X), self.history.y, self.history.tickets, strict=True):
            self.codes.add(code, float(y), int(ticket))
        for x in self.history.failures:
            self.codes.add(self._encode(x[None])[0], np.nan)

    def _encode(self, X: Array) -> Array:
        from scipy.special import ndtr

        assert self.weights is not None
        codes: Array = ndtr(vae.encode(self.weights, X))
        return codes

    def absorb(self, batch: Sequence[Observation]) -> None:
        super().absorb(batch)
        for o in batch:
            code = self.sent.pop(o.ticket, None)
            if code is not None and not np.isfinite(o.y):
                self.codes.add(code, o.y)  # its point may have another code, and this one would be asked for for ever
            if self.weights is not None:
                self.codes.add(self._encode(o.x[None])[0], o.y, o.ticket)


def _to_normal(codes: Array) -> Array:
    from scipy.special import ndtri

    normal: Array = ndtri(np.clip(codes, EDGE, 1.0 - EDGE))
    return normal
