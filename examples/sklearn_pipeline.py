"""Forty hyper-parameters of a scikit-learn pipeline: weights of 30 features, and ten of scaling and classifier.

pip install 'mctsvs[sklearn]'
python examples/sklearn_pipeline.py            # QUICK=1: a few evaluations only
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import PCA
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, QuantileTransformer, StandardScaler
from sklearn.svm import SVC

import mctsvs
from mctsvs import Boolean, Categorical, Float, Integer

BUDGET = 12 if os.environ.get("QUICK") else 150
X, y = load_breast_cancer(return_X_y=True)
SCALERS = {"standard": StandardScaler, "range": MinMaxScaler, "quantile": lambda: QuantileTransformer(n_quantiles=100)}

SPACE: dict[str, Any] = {
    **{f"weight_{i}": Float(0.0, 1.0) for i in range(X.shape[1])},
    "scaler": Categorical(list(SCALERS)),
    "components": Integer(2, 30),
    "whiten": Boolean(),
    "kernel": Categorical(["rbf", "poly", "sigmoid"]),
    "C": Float(1e-3, 1e3, log=True),
    "gamma": Float(1e-5, 10.0, log=True),
    "degree": Integer(2, 4, when={"kernel": "poly"}),
    "coef0": Float(0.0, 1.0, when={"kernel": ["poly", "sigmoid"]}),
    "shrinking": Boolean(),
    "minority_weight": Float(0.5, 2.0),
}


def error(p: dict[str, Any]) -> float:
    """Share of wrong answers in five-fold cross-validation."""
    weights = np.array([p[f"weight_{i}"] for i in range(X.shape[1])])
    pipeline = make_pipeline(
        SCALERS[p["scaler"]](),
        FunctionTransformer(lambda Z: Z * weights),
        PCA(min(p["components"], X.shape[1]), whiten=bool(p["whiten"]), random_state=0),
        SVC(
            kernel=p["kernel"],
            C=p["C"],
            gamma=p["gamma"],
            degree=p.get("degree", 3),
            coef0=p.get("coef0", 0.0),
            shrinking=bool(p["shrinking"]),
            class_weight={0: p["minority_weight"], 1: 1.0},
            max_iter=20_000,
        ),
    )
    return 1.0 - float(cross_val_score(pipeline, X, y, cv=5).mean())


def main() -> None:
    result = mctsvs.minimize(error, SPACE, budget=BUDGET, seed=0, progress=True)
    print(result)
    print(f"{len(SPACE)} hyper-parameters, error {100 * result.fun:.2f} %, C={result.x['C']:.3g}, {result.x['kernel']}")


if __name__ == "__main__":
    main()
