"""Options of methods that the paper sets by problem (Appendix C), and how `--quick` makes everything smaller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# what the paper sets for a method on a kind of problem (Appendix C), beside what it sets for all
BY_PROBLEM: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "cma-es": {  # its sigma in units of the box
        "Hartmann": {"sigma": 0.8},
        "Levy": {"sigma": 0.5},
        "NAS": {"sigma": 0.1},
        "TransNAS": {"sigma": 0.1},
        "Hopper": {"sigma": 0.005},  # its step of 0.01 in a box of width 2
        "Walker2d": {"sigma": 0.005},
    },
    "hesbo": {"NAS": {"d": 10}, "TransNAS": {"d": 10}, "Hopper": {"d": 10}, "Walker2d": {"d": 20}},
    "alebo": {"NAS": {"d": 10}, "TransNAS": {"d": 10}},
    "vae-bo": {"NAS": {"d": 10}, "TransNAS": {"d": 10}},
}


def set_by_paper(method: str, problem: str) -> dict[str, Any]:
    """The paper's options of a method on a problem."""
    for stem, options in BY_PROBLEM.get(method, {}).items():
        if problem.startswith(stem):
            return dict(options)
    return {}


# with --quick: slow methods get fewer evaluations and seeds, samplers few steps, the slowest one entry only
QUICK_SEEDS = 2
QUICK_BUDGETS = {"alebo": 20, "saasbo": 14, "mcts-vs-saasbo": 14, "vae-bo": 40}
QUICK_FEWER = {"saasbo": 1, "mcts-vs-saasbo": 1, "alebo": 1}
QUICK_ONLY = {"saasbo": "hierarchy"}
QUICK_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "saasbo": {"warmup": 4, "mcmc_samples": 8, "thinning": 4, "tree_depth": 3},
    "mcts-vs-saasbo": {"warmup": 4, "mcmc_samples": 8, "thinning": 4, "tree_depth": 3},
}
