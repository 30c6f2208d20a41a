"""Support vector regression on CT slices (Eriksson and Jankowiak, UAI 2021): 388 hyper-parameters, few of which matter.

Every x is squared; 385 of them are length scales exp(4 x - 2), one for each feature, then epsilon = 0.01 * 100^x,
gamma = 0.1 * 30^x and C = 0.01 * 500^x. The value is minus the root mean squared error of standardised slice positions.

The published problem has 10,000 rows drawn from all 97 patients. Here are the first 682 rows, of two patients, split in
halves at random: a SUBSET, whose values cannot be compared with published ones. Features are scaled to [0, 1]; those
that are constant in these rows do nothing, so that their length scales do not matter.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

import numpy as np

from mctsvs.bench.problems import data
from mctsvs.bench.problems.data import require
from mctsvs.objectives.problem import Family, Problem, Variation
from mctsvs.utils.validation import Array

NAME = "SVMSlice_subset"
FEATURES = 385
SEED = 0  # of the split


def _halves() -> tuple[Array, Array, Array, Array]:
    return _read(data.folder("svm_ctslice_small"))


@functools.cache  # by the folder, which --data may change
def _read(place: Path) -> tuple[Array, Array, Array, Array]:
    """Features and targets to fit, and to judge by."""
    arrays = data.arrays("svm_ctslice_small", "ctslice_first_rows.npz")
    X, y = arrays["X"].astype(np.float64), arrays["y"].astype(np.float64)
    low, width = X.min(axis=0), np.ptp(X, axis=0)
    X = np.divide(X - low, width, out=np.zeros_like(X), where=width > 0)
    order = np.random.default_rng(SEED).permutation(len(y))
    fitted, judged = order[: len(y) // 2], order[len(y) // 2 :]
    y = (y - y[fitted].mean()) / y[fitted].std()
    return X[fitted], y[fitted], X[judged], y[judged]


def value(x: Array) -> float:
    """Minus the root mean squared error."""
    from sklearn.svm import SVR

    X, y, judged_X, judged_y = _halves()
    x = x * x
    scale = np.exp(4 * x[:FEATURES] - 2)
    epsilon, gamma, penalty = 0.01 * 100 ** x[FEATURES], 0.1 * 30 ** x[FEATURES + 1], 0.01 * 500 ** x[FEATURES + 2]
    model = SVR(gamma=gamma, epsilon=epsilon, C=penalty, tol=1e-3, cache_size=100)
    miss = judged_y - model.fit(X / scale, y).predict(judged_X / scale)
    return -float(np.sqrt(np.mean(miss * miss)))


def svm(match: re.Match[str], variation: Variation) -> Problem:
    noise = variation.only_noise(NAME)
    require(NAME, "sklearn", "sklearn")
    _halves()  # a missing file is said now, not at the first evaluation
    return Problem(
        name=NAME,
        description="SVM with 385 length scales on 682 rows of CT slices, a subset; minus the error"
        + variation.words(),
        bounds=np.tile([0.0, 1.0], (FEATURES + 3, 1)),
        function=value,
        noise=variation.noise,
        generator=noise,
    )


FAMILIES = [
    Family(
        form=NAME,
        pattern=re.compile("SVM[-_]?(?:CT[-_]?)?Slice[-_]subset", re.IGNORECASE | re.ASCII),
        example=NAME,
        description="Support vector regression with 388 hyper-parameters on a subset (682 rows) of CT slices",
        build=svm,
        dimension=str(FEATURES + 3),
        kind="training",
        extra="sklearn",
        data="svm_ctslice_small",
    )
]
