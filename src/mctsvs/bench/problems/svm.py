"""Support vector machines whose many hyper-parameters are tuned: on slices of CT scans, and on breast cancer.

`SVMSlice_subset` (Eriksson and Jankowiak, UAI 2021) has 388 hyper-parameters, few of which matter. Every x is squared;
385 of them are length scales exp(4 x - 2), one for each feature, then epsilon = 0.01 * 100^x, gamma = 0.1 * 30^x and
C = 0.01 * 500^x. The value is minus the root mean squared error of standardised slice positions. The published problem
has 10,000 rows drawn from all 97 patients. Here are the first 682 rows, of two patients, split in halves at random: a
SUBSET, whose values cannot be compared with published ones. Features are scaled to [0, 1]; those that are constant in
these rows do nothing, so that their length scales do not matter.

`CancerSVM` tunes a classifier and the preparation of its features: 101 variables of all kinds, no download.
scikit-learn ships the Wisconsin breast cancer data: 30 measurements of 569 tumours, malignant or benign. For each
measurement there is a weight (real), how many per cent to clip at either end (whole) and a transformation (category);
eleven more variables set the principal components and the support vector machine. The value is minus the Brier score
over five folds: the mean squared error of a probability, the logistic function of the machine's decision value. Its
variables have names and kinds, so `problem.space` is a dict; `evaluate` takes, as for every problem, the vector of
values in natural units with the index of a category's choice.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mctsvs.bench.problems import data
from mctsvs.bench.problems.declare import box, single
from mctsvs.objectives.problem import Problem, Variation
from mctsvs.space import Categorical, Float, Integer, Space, Variable
from mctsvs.utils.validation import Array, Indices

SCALES = 385  # features of a slice, each with a length scale
FEATURES, FOLDS, SEED = 30, 5, 0  # of the cancer data
MOST_CLIPPED = 10
TRANSFORMATIONS = ("none", "log", "root", "rank")
STEPS = 10_000  # of the machine's solver, so that no setting takes seconds


def _halves() -> tuple[Array, Array, Array, Array]:
    return _read(data.folder("svm_ctslice_small"))


@functools.cache  # by the folder, which --data may change
def _read(place: Path) -> tuple[Array, Array, Array, Array]:
    """Features and targets to fit, and to judge by."""
    arrays = data.arrays("svm_ctslice_small", "ctslice_first_rows.npz")
    X, y = arrays["X"].astype(np.float64), arrays["y"].astype(np.float64)
    low, width = X.min(axis=0), np.ptp(X, axis=0)
    X = np.divide(X - low, width, out=np.zeros_like(X), where=width > 0)
    order = np.random.default_rng(0).permutation(len(y))
    fitted, judged = order[: len(y) // 2], order[len(y) // 2 :]
    y = (y - y[fitted].mean()) / y[fitted].std()
    return X[fitted], y[fitted], X[judged], y[judged]


def slice_error(x: Array) -> float:
    """Minus the root mean squared error."""
    from sklearn.svm import SVR

    X, y, judged_X, judged_y = _halves()
    x = x * x
    scale = np.exp(4 * x[:SCALES] - 2)
    epsilon, gamma, penalty = 0.01 * 100 ** x[SCALES], 0.1 * 30 ** x[SCALES + 1], 0.01 * 500 ** x[SCALES + 2]
    model = SVR(gamma=gamma, epsilon=epsilon, C=penalty, tol=1e-3, cache_size=100)
    miss = judged_y - model.fit(X / scale, y).predict(judged_X / scale)
    return -float(np.sqrt(np.mean(miss * miss)))


def variables() -> dict[str, Variable]:
    """The 101 variables in order."""
    chosen: dict[str, Variable] = {}
    for j in range(FEATURES):
        chosen[f"weight{j}"] = Float(0.0, 1.0)
        chosen[f"clip{j}"] = Integer(0, MOST_CLIPPED)
        chosen[f"transformation{j}"] = Categorical(TRANSFORMATIONS)
    chosen["components"] = Integer(2, FEATURES)
    chosen["whiten"] = Categorical([False, True])
    chosen["length"] = Categorical(["free", "l1", "l2"])
    chosen["kernel"] = Categorical(["rbf", "poly", "sigmoid", "linear"])
    chosen["penalty"] = Float(1e-3, 1e3, log=True)
    chosen["gamma"] = Float(1e-4, 10.0, log=True)
    chosen["degree"] = Integer(2, 5)
    chosen["offset"] = Float(0.0, 2.0)
    chosen["malignant"] = Float(0.2, 5.0, log=True)
    chosen["tolerance"] = Float(1e-5, 1e-1, log=True)
    chosen["shrinking"] = Categorical([True, False])
    return chosen


@functools.cache
def _cancer_data() -> tuple[Array, Array, list[Indices]]:
    """(features, transformations, clippings, rows) standardised columns; classes; rows of each fold."""
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    table = np.empty((FEATURES, len(TRANSFORMATIONS), MOST_CLIPPED + 1, len(y)))
    for j, column in enumerate(X.T):
        rank = np.searchsorted(np.sort(column), column) / len(y)
        for t, changed in enumerate((column, np.log1p(column), np.sqrt(column), rank)):
            for clip in range(MOST_CLIPPED + 1):
                kept = np.clip(changed, *np.percentile(changed, [clip, 100 - clip]))
                table[j, t, clip] = (kept - kept.mean()) / kept.std()
    folds = np.array_split(np.random.default_rng(SEED).permutation(len(y)), FOLDS)
    return table, y.astype(np.float64), folds


def brier(params: Mapping[str, Any]) -> float:
    """Mean over the rows, each judged by the model of the other folds."""
    from scipy.special import expit
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import SVC

    table, y, folds = _cancer_data()
    columns = [
        params[f"weight{j}"] * table[j, TRANSFORMATIONS.index(params[f"transformation{j}"]), params[f"clip{j}"]]
        for j in range(FEATURES)
    ]
    X = np.stack(columns, axis=1)
    if params["length"] != "free":
        size = np.linalg.norm(X, ord=int(params["length"][1]), axis=1, keepdims=True)
        X = np.divide(X, size, out=np.zeros_like(X), where=size > 0)
    total = 0.0
    for judged in folds:
        fitted = np.ones(len(y), np.bool_)
        fitted[judged] = False
        A, B = project(X[fitted], X[judged], params["components"], params["whiten"])
        machine = SVC(
            C=params["penalty"],
            kernel=params["kernel"],
            gamma=params["gamma"],
            degree=params["degree"],
            coef0=params["offset"],
            class_weight={0: params["malignant"], 1: 1.0},
            tol=params["tolerance"],
            shrinking=params["shrinking"],
            max_iter=STEPS,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            decided = machine.fit(A, y[fitted]).decision_function(B)
        total += float(((y[judged] - expit(decided)) ** 2).sum())
    return total / len(y)


def project(A: Array, B: Array, components: int, whiten: bool) -> tuple[Array, Array]:
    """Both on the principal components of A, whitened or not."""
    mean = A.mean(axis=0)
    _, size, axes = np.linalg.svd(A - mean, full_matrices=False)
    axes = axes[:components]
    if whiten:
        spread = size[:components, None] / np.sqrt(len(A))
        axes = np.divide(axes, spread, out=np.zeros_like(axes), where=spread > 1e-9)
    return (A - mean) @ axes.T, (B - mean) @ axes.T


def cancer_score(x: Array) -> float:
    space = _space()
    return -brier(space.params(space.encode(x)))


@functools.cache
def _space() -> Space:
    return Space.of(variables())


@dataclass(frozen=True, eq=False)
class MixedProblem(Problem):
    """A problem whose variables have names and kinds of their own."""

    variables: Mapping[str, Variable] = field(default_factory=dict)

    @property
    def space(self) -> Mapping[str, Variable]:
        return self.variables


def _slice_details(variation: Variation) -> dict[str, Any]:
    _halves()  # a missing file is said now, not at the first evaluation
    return {"function": slice_error}


FAMILIES = [
    single(
        "SVMSlice_subset",
        "SVM[-_]?(?:CT[-_]?)?Slice[-_]subset",
        "Support vector regression with 388 hyper-parameters on a subset (682 rows) of CT slices",
        "SVM with 385 length scales on 682 rows of CT slices, a subset; minus the error",
        box(0.0, 1.0, SCALES + 3),
        _slice_details,
        needs=("sklearn",),
        extra="sklearn",
        data="svm_ctslice_small",
    ),
    single(
        "CancerSVM",
        "Cancer[-_]?SVM",
        "Classifier and preparation of 30 features on shipped data: real, whole and categorical variables",
        "SVM on breast cancer, 101 real, whole and categorical variables; minus the Brier score",
        np.array([variable.ends for variable in variables().values()], np.float64),
        lambda variation: {"function": cancer_score, "variables": variables()},
        needs=("sklearn",),
        kind=MixedProblem,
        extra="sklearn",
    ),
]
