"""Weighted LASSO (Šehić et al., AutoML 2022): one penalty for each feature, judged by cross-validation.

x in [-1, 1] gives each feature its penalty, on a logarithmic scale up to the smallest one that silences them all. The
value is minus the mean squared error of five folds, of the 85 % of the rows that are not kept for a test.

`LassoDNA` has 180 features of splice-junction DNA, the class (1, 2 or 3) as the target and penalties down to 1e-5 of
the largest. The synthetic ones are LassoBench's: rows half as many as features, correlated as 0.6^|i - j|, a few
coefficients of 1 and -1, noise a tenth of the signal, penalties down to 1e-2 of the largest. They follow its
recipe with a draw of their own, so that values are comparable in kind, not digit by digit. Only the features
with a coefficient matter for certain: they are `active`.
"""

from __future__ import annotations

import functools
import math
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mctsvs.bench.problems import data
from mctsvs.bench.problems.declare import box, single
from mctsvs.objectives.problem import Family, Variation
from mctsvs.utils.validation import Array

SEED = 42  # of the split, the folds and the synthetic rows
FOLDS = 5
KEPT = 0.15  # of the rows, for a test
TOLERANCE = 1e-6  # of the duality gap, relative to the target's squared length
SWEEPS = 10_000
SIZES = {"Simple": (60, 3), "Medium": (100, 5), "High": (300, 15), "Hard": (1000, 50)}
"""Features, and those with a coefficient."""


@dataclass(frozen=True, eq=False)
class Fold:
    """Rows to fit, with the products that coordinate descent needs, and rows to judge by."""

    X: Array
    y: Array
    gram: Array
    """X'X."""
    correlation: Array
    """X'y."""
    judged_X: Array
    judged_y: Array

    def coefficients(self, penalties: Array) -> Array:
        """(D,) the b that minimises |y - X b|^2 / 2 n + sum_j penalty_j |b_j|."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import lasso_path

        # features divided by their penalties have a plain LASSO with penalty 1
        with warnings.catch_warnings():
            # penalties near nothing: the last sweep is close enough
            warnings.simplefilter("ignore", ConvergenceWarning)
            _, b, _ = lasso_path(
                self.X / penalties,
                self.y,
                alphas=[1.0],
                precompute=self.gram / penalties / penalties[:, None],
                Xy=self.correlation / penalties,
                check_input=False,
                tol=TOLERANCE,
                max_iter=SWEEPS,
            )
        fitted: Array = b[:, 0] / penalties
        return fitted

    def error(self, penalties: Array) -> float:
        miss = self.judged_y - self.judged_X @ self.coefficients(penalties)
        return float(miss @ miss) / len(miss)


@dataclass(frozen=True, eq=False)
class Task:
    """Folds, and the logarithms of the smallest and the largest penalty."""

    folds: tuple[Fold, ...]
    smallest: float
    largest: float

    def error(self, x: Array) -> float:
        """Mean squared error over the folds."""
        penalties = np.exp(self.smallest + (x + 1) / 2 * (self.largest - self.smallest))
        return sum(fold.error(penalties) for fold in self.folds) / len(self.folds)


def make_task(X: Array, y: Array, span: float) -> Task:
    """Rows split as scikit-learn's users do, penalties from the largest useful one down by a factor of `span`."""
    rng = np.random.default_rng(SEED)
    order = rng.permutation(len(y))
    training = order[math.ceil(KEPT * len(y)) :]
    X, y = X[training], y[training]
    largest = float(np.abs(X.T @ y).max()) / len(y)
    folds = []
    for judged in np.array_split(rng.permutation(len(y)), FOLDS):
        fitted = np.setdiff1d(np.arange(len(y)), judged)
        A, t = X[fitted], y[fitted]
        folds.append(Fold(A, t, A.T @ A, A.T @ t, X[judged], y[judged]))
    return Task(tuple(folds), math.log(largest / span), math.log(largest))


def dna() -> Task:
    return _read(data.folder("lasso_dna"))


@functools.cache  # by the folder, which --data may change
def _read(place: Path) -> Task:
    arrays = data.arrays("lasso_dna", "dna.npz")
    X = np.unpackbits(arrays["X"], axis=1)[:, : int(arrays["n_features"])].astype(np.float64)
    return make_task(X, arrays["y"].astype(np.float64), 1e5)


def coefficients(size: str) -> Array:
    """The true ones: 1, -1, 1, ... at equal distances."""
    features, active = SIZES[size]
    w = np.zeros(features)
    w[:: features // active] = (-1.0) ** np.arange(active)
    return w


@functools.cache
def synthetic(size: str) -> Task:
    w = coefficients(size)
    rng = np.random.default_rng(SEED)
    X = rng.standard_normal((len(w) // 2, len(w)))
    for j in range(1, len(w)):
        X[:, j] = 0.6 * X[:, j - 1] + 0.8 * X[:, j]
    y, noise = X @ w, rng.standard_normal(len(X))
    return make_task(X, y + noise * float(np.linalg.norm(y) / np.linalg.norm(noise)) / 10, 1e2)


def dna_value(x: Array) -> float:
    return -dna().error(x)


@dataclass(frozen=True)
class SyntheticValue:
    size: str

    def __call__(self, x: Array) -> float:
        return -synthetic(self.size).error(x)


def _dna_details(variation: Variation) -> dict[str, Any]:
    dna()  # a missing file is said now, not at the first evaluation
    return {"function": dna_value}


def _synthetic(size: str) -> Family:
    features, active = SIZES[size]

    def details(variation: Variation) -> dict[str, Any]:
        return {"function": SyntheticValue(size), "active": np.flatnonzero(coefficients(size))}

    text = f"{active} of {features} features have a coefficient"
    return single(
        f"Lasso{size}",
        f"Lasso[-_]?{size}",
        f"Weighted LASSO, synthetic: {text}",
        f"Weighted LASSO: {text}; minus the error",
        box(-1.0, 1.0, features),
        details,
        needs=("sklearn",),
        extra="sklearn",
    )


FAMILIES = [
    single(
        "LassoDNA",
        "Lasso[-_]?DNA",
        "Weighted LASSO with 180 penalties on DNA; minus the cross-validated error",
        "Weighted LASSO on DNA: one penalty for each of 180 features; minus the error",
        box(-1.0, 1.0, 180),
        _dna_details,
        needs=("sklearn",),
        optimum="> -0.292",
        extra="sklearn",
        data="lasso_dna",
    ),
    *map(_synthetic, SIZES),
]
