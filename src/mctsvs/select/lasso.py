"""LASSO-VS: the variables with the largest coefficients of a sparse linear model (the paper's Appendix E).

    beta = argmin 1/(2n) |y - b - X beta|^2 + alpha |beta|_1         (Tibshirani, J. R. Stat. Soc. B, 1996)

X (n, D) holds all points so far in the unit cube, so that all coordinates share one scale; y their standardised values.
A variable that owns several coordinates counts with the sum of their absolute coefficients.

The paper does not say how alpha is chosen: by default it is cross-validated, as is usual.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mctsvs.common import Array, Indices
from mctsvs.gp.values import standardise
from mctsvs.history import History
from mctsvs.options import option
from mctsvs.select.memoryless import Memoryless, SizeOptions

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
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import Lasso as Linear

    if len(history) < 2:
        return np.zeros(history.X.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = Linear(alpha=options.alpha or 1.0, max_iter=100).fit(history.X * options.width, history.y)
    return np.asarray(model.coef_, dtype=np.float64)


def coefficients(X: Array, y: Array, alpha: float | None, rng: np.random.Generator) -> Array:
    """(D,) coefficients of the sparse linear model; `alpha=None` chooses the penalty by cross-validation."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import Lasso as Linear
    from sklearn.linear_model import LassoCV
    from sklearn.model_selection import KFold

    least = float(np.abs((X - X.mean(axis=0)).T @ (y - y.mean())).max()) / len(y)
    if least <= 1e-12:  # nothing varies together with the values
        return np.zeros(X.shape[1])
    if alpha is None:
        # points come in the order of the search, so folds of neighbours would be predicted from another region
        folds = KFold(FOLDS, shuffle=True, random_state=int(rng.integers(2**31)))
        model = LassoCV(alphas=least * PENALTIES, cv=folds, tol=1e-3)
    else:
        model = Linear(alpha=alpha, tol=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the order of the largest is settled long before
        model.fit(X, y)
    return np.asarray(model.coef_, dtype=np.float64)
