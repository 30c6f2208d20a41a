"""Selectors: which variables to move next. A new one is a class here or in a file beside it, and a line in `SELECTORS`.

LASSO-VS: the variables with the largest coefficients of a sparse linear model (the paper's Appendix E).

    beta = argmin 1/(2n) |y - b - X beta|^2 + alpha |beta|_1         (Tibshirani, J. R. Stat. Soc. B, 1996)

X (n, D) holds all points so far in the unit cube, so that all coordinates share one scale; y their standardised values.
A variable that owns several coordinates counts with the sum of their absolute coefficients.

The paper does not say how alpha is chosen: by default it is cross-validated, as is usual.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from mctsvs.gp.standardize import standardise
from mctsvs.methods.history import History
from mctsvs.methods.mcts_vs.selector import MCTS
from mctsvs.methods.mcts_vs.tree import Node
from mctsvs.utils.options import Options, option
from mctsvs.utils.state import Saved
from mctsvs.utils.validation import Array, Indices, State, check_choice


class Selector(Protocol):
    """Chooses subsets of variables and learns from the values that came of moving them."""

    options_type: ClassVar[type[Any]]  # of `Options`

    iteration: int
    """Number of the current iteration; several subsets may belong to one."""

    def __init__(self, n_variables: int, options: Any) -> None: ...

    def initial(self, points: int | None, rng: np.random.Generator) -> list[tuple[Indices, int]]:
        """Subsets to credit the initial design to, with the number of points of each; None: as many as is usual."""
        ...

    def next(self, history: History, owner: Indices, rng: np.random.Generator) -> Indices:
        """The variables to move next, never empty, from all points so far; `owner` maps coordinates to variables."""
        ...

    def observe(self, variables: Indices, y: float) -> None:
        """A point found by moving `variables` has value y."""
        ...

    @property
    def tree(self) -> Node | None:
        """The tree of variable groups, for selectors that have one."""
        ...

    def state(self) -> State: ...

    def restore(self, state: State) -> None: ...


DESIGN = 12  # points of the initial design, as many as MCTS-VS has: 2 N_v N_s


@dataclass(frozen=True)
class SizeOptions(Options):
    """d   variables moved at a time; the paper gives its rivals the number that matters, which a user does not know"""

    d: int = option(20, least=1)


class Memoryless(Saved):
    """Counts its choices and learns nothing from single values; a subclass adds `next`."""

    options_type: ClassVar[type[Options]] = Options
    saved = ("iteration",)
    iteration: int

    def __init__(self, n_variables: int, options: Options) -> None:
        self.n_variables, self.options = n_variables, options
        self.iteration = 0

    def initial(self, points: int | None, rng: np.random.Generator) -> list[tuple[Indices, int]]:
        return [(np.arange(self.n_variables), DESIGN if points is None else points)]

    def observe(self, variables: Indices, y: float) -> None:
        """What there is to learn is in the history."""

    @property
    def tree(self) -> None:
        return None


class All(Memoryless):
    """Moves all variables: turns a solver into the plain method of its name."""

    def next(self, history: History, owner: Indices, rng: np.random.Generator) -> Indices:
        self.iteration += 1
        return np.arange(self.n_variables)


class Dropout(Memoryless):
    """Moves `d` variables drawn uniformly without replacement."""

    options_type: ClassVar[type[SizeOptions]] = SizeOptions
    options: SizeOptions

    def next(self, history: History, owner: Indices, rng: np.random.Generator) -> Indices:
        self.iteration += 1
        return np.sort(rng.choice(self.n_variables, min(self.options.d, self.n_variables), replace=False))


FEWEST = 5
"""Points below which no linear model is fitted: the choice is random."""
FOLDS = 5
PENALTIES = np.logspace(0.0, -2.5, 24)
"""Candidates for alpha, relative to the smallest one that makes every coefficient zero."""


@dataclass(frozen=True)
class LassoOptions(SizeOptions):
    """alpha   weight of the penalty, for values of unit variance; default: chosen by five-fold cross-validation.
    A large one leaves few coefficients, and the rest of the d variables are drawn at random.
    raw     as in the MCTS-VS authors' program: coordinates and values as they are, at most a hundred steps of the fit,
            and of equal coefficients the last ones, not random ones; `width` is that of the box in natural units
    """

    alpha: float | None = option(None, above=0)
    raw: bool = False
    width: float = option(1.0, above=0)


class Lasso(Memoryless):
    """Moves the `d` variables with the largest absolute coefficients."""

    options_type: ClassVar[type[LassoOptions]] = LassoOptions
    options: LassoOptions

    def next(self, history: History, owner: Indices, rng: np.random.Generator) -> Indices:
        self.iteration += 1
        strength, o = np.zeros(self.n_variables), self.options
        if o.raw:
            np.add.at(strength, owner, np.abs(coefficients_as_they_are(history, o)))
            return np.sort(np.argsort(strength, kind="stable")[-o.d :])
        y = standardise(history.y)
        if len(y) >= FEWEST and y.any():
            np.add.at(strength, owner, np.abs(coefficients(history.X, y, o.alpha, rng)))
        # a random order under a stable sort: ties, and the many zeros above all, are broken at random
        order = rng.permutation(self.n_variables)
        return np.sort(order[np.argsort(-strength[order], kind="stable")[: o.d]])


def coefficients_as_they_are(history: History, options: LassoOptions) -> Array:
    """(D,) of points and values in natural units; zeros before there are two points."""
    from sklearn.linear_model import Lasso as Linear

    if len(history) < 2:
        return np.zeros(history.X.shape[1])
    return _fitted(Linear(alpha=options.alpha or 1.0, max_iter=100), history.X * options.width, history.y)


def coefficients(X: Array, y: Array, alpha: float | None, rng: np.random.Generator) -> Array:
    """(D,) coefficients of the sparse linear model; `alpha=None` chooses the penalty by cross-validation."""
    from sklearn.linear_model import Lasso as Linear
    from sklearn.linear_model import LassoCV
    from sklearn.model_selection import KFold

    least = float(np.abs((X - X.mean(axis=0)).T @ (y - y.mean())).max()) / len(y)
    if least <= 1e-12:  # nothing varies together with the values
        return np.zeros(X.shape[1])
    if alpha is not None:
        return _fitted(Linear(alpha=alpha, tol=1e-3), X, y)
    # points come in the order of the search, so folds of neighbours would be predicted from another region
    folds = KFold(FOLDS, shuffle=True, random_state=int(rng.integers(2**31)))
    return _fitted(LassoCV(alphas=least * PENALTIES, cv=folds, tol=1e-3), X, y)


def _fitted(model: Any, X: Array, y: Array) -> Array:
    """(D,) the model's coefficients; the order of the largest is settled long before a fit has converged."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    return np.asarray(model.coef_, dtype=np.float64)


SELECTORS: Mapping[str, type[Selector]] = {
    "mcts": MCTS,
    "dropout": Dropout,
    "lasso": Lasso,
    "all": All,
}


def find(name: str) -> type[Selector]:
    """The selector's class."""
    return SELECTORS[check_choice("selector", name, SELECTORS)]


def make(name: str, n_variables: int, **options: Any) -> Selector:
    """The selector of that name for `n_variables` variables."""
    selector = find(name)
    return selector(n_variables, selector.options_type(**options))
