"""Options that make a method what somebody else ran: by name of the settings, then by method.

    paper       what the MCTS-VS paper's experiments used for every method; what it sets by problem (C_p, d, sigma) is
                left to the caller, and `mctsvs.bench` knows it
    published   what the authors of the method itself published, where our default differs

An option given by the user comes before both. docs/methods.md says what each difference changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mctsvs.utils.validation import check_choice

DEFAULT = "library"
Options = Mapping[str, Any]

_MODEL: Options = {"surrogate": "scikit-learn", "acquisition_search": "candidates", "acquisition": "ei"}
_DESIGN: Options = {"initial_points": 10}
_LASSO: Options = {"alpha": 0.1, "raw": True}
_REGION: Options = {"published": True, "batch": 10, "candidates": 5000, "climb": 0, "start_points": 20}
_ALL: Options = {**_REGION, "burst": 10, "initial_points": 20}
_SUBSET: Options = {**_REGION, "burst": 50}
_PARTITION: Options = {**_REGION, "batch": 1, "samples": 50, "initial_points": 20}  # LA-MCTS takes point by point
_EVOLUTION: Options = {"start": "random"}
_SAMPLED: Options = {"warmup": 512, "mcmc_samples": 256, "thinning": 16, "tree_depth": 6, "winsorise": False}

PUBLISHED: Mapping[str, Options] = {
    "turbo": _ALL,
    "turbo-m": _ALL,
    "la-mcts-turbo": _PARTITION,
    "cma-es": _EVOLUTION,
    "lasso-bo": _LASSO,
    "lasso-turbo": _LASSO,
    "baxus": {"acquisition": "thompson"},
    "saasbo": _SAMPLED,
    "mcts-vs-saasbo": _SAMPLED,
}
PAPER: Mapping[str, Options] = {
    "mcts-vs-bo": _MODEL,
    "mcts-vs-rs": {},
    "mcts-vs-turbo": _SUBSET,
    "mcts-vs-saasbo": _SAMPLED,
    "dropout-bo": {**_MODEL, **_DESIGN},
    "dropout-rs": _DESIGN,
    "dropout-turbo": {**_SUBSET, **_DESIGN},
    "lasso-bo": {**_MODEL, **_DESIGN, **_LASSO},
    "lasso-turbo": {**_SUBSET, **_DESIGN, **_LASSO},
    "bo": {**_MODEL, **_DESIGN},
    "turbo": _ALL,
    "la-mcts-turbo": _PARTITION,
    "cma-es": _EVOLUTION,
    "saasbo": {**_SAMPLED, **_DESIGN},
    "hesbo": {},
    "alebo": {},
    "vae-bo": {},
}
SETTINGS: Mapping[str, Mapping[str, Options]] = {DEFAULT: {}, "paper": PAPER, "published": PUBLISHED}


def options(settings: str, method: str) -> Options:
    """What the settings of that name change of a method; nothing for one they do not know."""
    return SETTINGS[check_choice("settings", settings, SETTINGS)].get(method, {})
