"""Tuning a classifier and the preparation of its features: 101 variables of all kinds, no download.

scikit-learn ships the Wisconsin breast cancer data: 30 measurements of 569 tumours, malignant or benign. For each
measurement there is a weight (real), how many per cent to clip at either end (whole) and a transformation (category);
eleven more variables set the principal components and the support vector machine. The value is minus the Brier score
over five folds: the mean squared error of a probability, the logistic function of the machine's decision value.

The variables have names and kinds, so `problem.space` is a dict; `evaluate` takes, as for every problem, the vector of
values in natural units with the index of a category's choice.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mctsvs.bench.problems.data import require
from mctsvs.objectives.problem import Family, Problem, Variation
from mctsvs.space import Categorical, Float, Integer, Space, Variable
from mctsvs.utils.validation import Array, Indices

NAME = "CancerSVM"
FEATURES, FOLDS, SEED = 30, 5, 0
MOST_CLIPPED = 10
TRANSFORMATIONS = ("none", "log", "root", "rank")
STEPS = 10_000  # of the machine's solver, so that no setting takes seconds


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
def _data() -> tuple[Array, Array, list[Indices]]:
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

    table, y, folds = _data()
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


def value(x: Array) -> float:
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


def cancer(match: re.Match[str], variation: Variation) -> Problem:
    noise = variation.only_noise(NAME)
    require(NAME, "sklearn", "sklearn")
    chosen = variables()
    ends = [variable.ends for variable in chosen.values()]
    return MixedProblem(
        name=NAME,
        description=f"SVM on breast cancer, {len(chosen)} real, whole and categorical variables; minus the Brier score"
        + variation.words(),
        bounds=np.array(ends, np.float64),
        function=value,
        noise=variation.noise,
        generator=noise,
        variables=chosen,
    )


FAMILIES = [
    Family(
        form=NAME,
        pattern=re.compile("Cancer[-_]?SVM", re.IGNORECASE | re.ASCII),
        example=NAME,
        description="Classifier and preparation of 30 features on shipped data: real, whole and categorical variables",
        build=cancer,
        dimension="101",
        kind="training",
        extra="sklearn",
    )
]
