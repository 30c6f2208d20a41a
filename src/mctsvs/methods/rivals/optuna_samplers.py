"""Optuna's samplers as outside points of reference: the tree-structured Parzen estimator and its Gaussian process.

    Akiba et al., KDD 2019 (Optuna); Watanabe, arXiv:2304.11127 (multivariate TPE as Optuna has it).

The samplers see the unit cube as D float parameters. Every point is made by a sampler of its own, with a seed drawn
from our generator, in a study that holds the values told so far and the points still waiting: the generator and the
history are the whole state, so a restored run is exact. Failed evaluations are left out, as Optuna does.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from mctsvs.gp.standardize import standardise
from mctsvs.methods.base import Engine, Pending, Proposal
from mctsvs.methods.initial_design import InitialDesignOptions
from mctsvs.utils.threads import one_torch_thread
from mctsvs.utils.validation import Array, Indices, State


@contextmanager
def quiet() -> Iterator[None]:
    """Optuna reports every new study and marks samplers as experimental; both are left as they were found."""
    import optuna

    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(level)


class OptunaEngine(Engine):
    """Asks an Optuna sampler, one point at a time; a subclass says which.

    The option `initial_points` is Optuna's `n_startup_trials`: uniform random points before the sampler's model.
    """

    options_type: ClassVar[type[InitialDesignOptions]] = InitialDesignOptions
    options: InitialDesignOptions

    def __init__(self, offsets: Indices, rng: np.random.Generator, options: InitialDesignOptions) -> None:
        super().__init__(offsets, rng, options)
        self.names = [f"x{i}" for i in range(self.dimension)]
        self._study: Any = None  # kept between calls to save time: it follows from the history
        self._told = 0  # rows of the history that are in it

    def _sampler(self, seed: int) -> Any:
        raise NotImplementedError

    def _values(self) -> Array:
        return self.history.y

    def propose(self, n: int, pending: Pending) -> list[Proposal]:
        model = int(len(self.history) >= self.options.initial_points)
        proposals: list[Proposal] = []
        with quiet():
            for _ in range(n):
                proposals.append(self.proposal(self._ask(pending.beside(proposals)), self.everything, model))
        return proposals

    def _ask(self, waiting: Array) -> Array:
        from optuna.trial import TrialState

        study = self._up_to_date()
        first = len(study.get_trials(deepcopy=False))
        for x in waiting:
            study.add_trial(self._trial(x, None))
        study.sampler = self._sampler(int(self.rng.integers(2**32)))
        params = study.ask(self._distributions()).params
        # samplers look at finished and running trials only, so this takes the waiting ones out again
        for number in range(first, first + len(waiting) + 1):
            study.tell(number, state=TrialState.FAIL)
        return np.clip(np.array([params[name] for name in self.names], dtype=np.float64), 0.0, 1.0)

    def _up_to_date(self) -> Any:
        """The study with all values told, in the order they were told."""
        import optuna

        if self._study is None:
            self._study = optuna.create_study(direction="maximize", study_name="mctsvs", sampler=self._sampler(0))
            self._told = 0
        values = self._values()
        for row in range(self._told, len(self.history)):
            self._study.add_trial(self._trial(self.history.X[row], float(values[row])))
        self._told = len(self.history)
        return self._study

    def _distributions(self) -> dict[str, Any]:
        from optuna.distributions import FloatDistribution

        return dict.fromkeys(self.names, FloatDistribution(0.0, 1.0))

    def _trial(self, x: Array, value: float | None) -> Any:
        from optuna.trial import TrialState, create_trial

        return create_trial(
            state=TrialState.RUNNING if value is None else TrialState.COMPLETE,
            value=value,
            params=dict(zip(self.names, x.tolist(), strict=True)),
            distributions=self._distributions(),
        )

    def restore(self, state: State) -> None:
        """The study is made again from the history."""
        super().restore(state)
        self._study = None


class OptunaTPE(OptunaEngine):
    """Multivariate tree-structured Parzen estimator; it looks at ranks, so the scale of the values is no matter."""

    def _sampler(self, seed: int) -> Any:
        import optuna

        return optuna.samplers.TPESampler(
            seed=seed, multivariate=True, constant_liar=True, n_startup_trials=self.options.initial_points
        )


class OptunaGP(OptunaEngine):
    """Gaussian process with log expected improvement. It fits anew for each point: a few seconds in 100 variables."""

    def _sampler(self, seed: int) -> Any:
        import optuna

        return optuna.samplers.GPSampler(
            seed=seed, n_startup_trials=self.options.initial_points, warn_independent_sampling=False
        )

    def propose(self, n: int, pending: Pending) -> list[Proposal]:
        with one_torch_thread():
            return super().propose(n, pending)

    def _values(self) -> Array:
        return standardise(self.history.y, winsorise=False)

    def _up_to_date(self) -> Any:
        self._study = None  # every new value changes the standardised ones of all others
        return super()._up_to_date()
