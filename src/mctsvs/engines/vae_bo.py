"""VAE-BO: Bayesian optimisation in the code space of a variational autoencoder.

The baseline of learned embeddings in the MCTS-VS paper (Song et al., NeurIPS 2022, Section 5 and its appendix, with
the autoencoder of Kingma and Welling, ICLR 2014): encode the points evaluated, optimise over codes with a Gaussian
process, decode the new code into the point to evaluate; train the autoencoder again every 30 evaluations.

The codes follow a standard normal distribution, so their distribution function, coordinate by coordinate, maps them
into the unit cube of d coordinates in which the Gaussian process works.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from mctsvs.common import Array, Indices, InputError, State
from mctsvs.engines import Observation, Proposal, vae
from mctsvs.engines.base import HistoryEngine, latin_hypercube
from mctsvs.history import History
from mctsvs.solve.bo import BayesianOptimisation
from mctsvs.solve.subspace import Subspace

EDGE = 1e-3  # codes are sought between these quantiles of the normal distribution: |z| < 3.1


class VAEBO(HistoryEngine):
    """Bayesian optimisation of codes.

    d               coordinates of a code (default: 10, or D if that is less)
    interval        evaluations between two trainings of the autoencoder (the paper's 30)
    learning_rate   of Adam (the paper's 0.01), for `steps` steps on all points a training
    hidden          hidden units of encoder and decoder
    initial_points  Latin hypercube before the first training
    """

    options: ClassVar[tuple[str, ...]] = ("d", "interval", "learning_rate", "steps", "hidden", "initial_points")

    def __init__(
        self,
        offsets: Indices,
        rng: np.random.Generator,
        *,
        d: int | None = None,
        interval: int = 30,
        learning_rate: float = 0.01,
        steps: int = 300,
        hidden: int = 64,
        initial_points: int = 20,
    ) -> None:
        super().__init__(offsets, rng)
        self.d = min(10, self.dimension) if d is None else int(d)
        if not 1 <= self.d <= self.dimension:
            raise InputError(f"d={d} code coordinates are not possible: give 1 to {self.dimension}")
        counts = {"interval": interval, "steps": steps, "hidden": hidden, "initial_points": initial_points}
        for name, value in counts.items():
            if value < 1:
                raise InputError(f"{name}={value} is too small: it must be at least 1")
        if not learning_rate > 0.0:
            raise InputError(f"learning_rate={learning_rate} is no step size: it must be above 0")
        self.interval, self.learning_rate, self.steps, self.hidden = interval, learning_rate, steps, hidden
        self.design: deque[Array] = deque(latin_hypercube(initial_points, self.dimension, rng))
        self.weights: vae.Weights | None = None
        self.trained = 0  # evaluations at the last training
        self.trainings = 0
        self.codes = History(self.d)  # the history as the Gaussian process sees it
        self.solver = BayesianOptimisation()

    def propose(self, n: int, pending: Array) -> list[Proposal]:
        proposals: list[Proposal] = []
        while self.design and len(proposals) < n:
            proposals.append(Proposal(self.design.popleft(), self.everything))
        missing = n - len(proposals)
        if missing == 0:
            return proposals
        if len(self.history) < 2:
            return proposals + [Proposal(x, self.everything) for x in self.rng.random((missing, self.dimension))]
        if self.weights is None or len(self.history) >= self.trained + self.interval:
            self._train()
        assert self.weights is not None
        waiting = np.concatenate([pending, *(p.x[None] for p in proposals)])
        subspace = Subspace(self.codes, np.arange(self.d), self._encode(waiting))
        codes = _to_normal(self.solver.propose(missing, subspace, self.rng))
        points = vae.decode(self.weights, codes)
        return proposals + [Proposal(x, self.everything, self.trainings) for x in points]

    def _train(self) -> None:
        """Go on from the last weights with all points; every code changes, so the Gaussian process starts anew."""
        X = self.history.X
        weights = self.weights or vae.initial(self.dimension, self.d, self.hidden, self.rng)
        self.weights = vae.train(weights, X, self.rng, steps=self.steps, learning_rate=self.learning_rate)
        self.trained, self.trainings = len(X), self.trainings + 1
        self.codes, self.solver = History(self.d), BayesianOptimisation()
        for code, y in zip(self._encode(X), self.history.y, strict=True):
            self.codes.add(code, float(y))
        for x in self.history.failures:
            self.codes.add(self._encode(x[None])[0], np.nan)

    def _encode(self, X: Array) -> Array:
        from scipy.special import ndtr

        assert self.weights is not None
        codes: Array = ndtr(vae.encode(self.weights, X))
        return codes

    def absorb(self, batch: Sequence[Observation]) -> None:
        super().absorb(batch)
        if self.weights is not None:
            for observation in batch:
                self.codes.add(self._encode(observation.x[None])[0], observation.y)

    def state(self) -> State:
        return {
            **super().state(),
            "design": [x.copy() for x in self.design],
            "weights": None if self.weights is None else [w.copy() for w in self.weights],
            "trained": self.trained,
            "trainings": self.trainings,
            "codes": self.codes.state(),
            "solver": self.solver.state(),
        }

    def restore(self, state: State) -> None:
        super().restore(state)
        self.design = deque(np.array(x) for x in state["design"])
        self.weights = None if state["weights"] is None else [np.array(w, np.float32) for w in state["weights"]]
        self.trained, self.trainings = state["trained"], state["trainings"]
        self.codes = History.restore(state["codes"])
        self.solver = BayesianOptimisation()
        nothing = np.empty((0, self.d))
        self.solver.restore(state["solver"], Subspace(self.codes, np.arange(self.d), nothing))


def _to_normal(codes: Array) -> Array:
    from scipy.special import ndtri

    normal: Array = ndtri(np.clip(codes, EDGE, 1.0 - EDGE))
    return normal
