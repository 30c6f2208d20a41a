"""Every method, by name, has the properties of `mctsvs.testing`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mctsvs import testing
from mctsvs.methods.registry import METHODS
from mctsvs.methods.rivals.hesbo_rembo import REMBO
from mctsvs.utils.validation import Array

# options whose code path differs from the default's; the authors' program's score is not shift-invariant by its
# definition, so it is exempt from the third property only
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("mcts-vs-bo", {"variant": "authors-program"}),
    ("mcts-vs-bo", {"acquisition_search": "candidates"}),
    ("mcts-vs-bo", {"acquisition": "thompson"}),
    ("mcts-vs-rs", {"fill_in": "average-best-k"}),
    ("mcts-vs-rs", {"fill_in": "random"}),
    ("bo", {"acquisition": "ucb"}),
    ("bo", {"kernel": "joint-additive", "acquisition": "pi"}),
    ("bo", {"kernel": "se", "prior": "dimension-scaled", "acquisition": "ei"}),
]


def name(value: object) -> str:
    return getattr(value, "__name__", str(value)).removeprefix("check_")


# methods whose model takes seconds run with fewer evaluations; SAASBO needs options that make its sampler quick, in its
# own file (tests/solve/test_saasbo.py)
EVALUATIONS = {"alebo": 18, "optuna-gp": 16, "optuna-tpe": 24, "vae-bo": 30}
ELSEWHERE = ("saasbo", "mcts-vs-saasbo")


@pytest.mark.parametrize("check", testing.CHECKS, ids=name)
@pytest.mark.parametrize("method", [m for m in METHODS if m not in ELSEWHERE])
def test_method(method: str, check: Any) -> None:
    check(method, {}, EVALUATIONS.get(method, testing.BUDGET))


CASES = [
    (method, options, check)
    for method, options in VARIANTS
    for check in testing.CHECKS
    if not ("variant" in options and check is testing.check_affine_change_of_objective)
]


@pytest.mark.parametrize(("method", "options", "check"), CASES, ids=name)
def test_options(method: str, options: dict[str, Any], check: Any) -> None:
    check(method, options, testing.BUDGET)


def test_the_suite_notices_an_engine_that_guesses_by_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    def nearest(engine: REMBO, x: Array, proposal_id: int) -> Array:
        """Takes the nearest proposal for the one that was evaluated."""
        if not engine.sent:
            return engine.down(x)
        proposals = engine.up(np.array(list(engine.sent.values())))
        return engine.sent.pop(list(engine.sent)[int(np.argmin(np.abs(proposals - x).sum(axis=1)))])

    testing.check_values_find_their_proposals("rembo", {})
    monkeypatch.setattr(REMBO, "low_of", nearest)
    with pytest.raises(AssertionError, match="taken for the method's own"):
        testing.check_values_find_their_proposals("rembo", {})
