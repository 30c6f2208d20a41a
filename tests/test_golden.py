"""Golden traces: the values a method finds on a fixed problem and seed do not change unnoticed.

They change only by an explicit command, `make golden`, and the change shows in the diff.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from mctsvs.bench import problems
from mctsvs.bench.record import run
from mctsvs.methods.registry import METHODS

FILE = Path(__file__).parent / "golden" / "traces.json"
BUDGET = 30
# outside libraries change their numbers with their versions, and SAASBO takes minutes
OURS = [m for m in METHODS if m not in ("saasbo", "mcts-vs-saasbo", "optuna-tpe", "optuna-gp", "cma-es", "vae-bo")]


def trace(method: str) -> list[float]:
    problem = problems.make("Hartmann6_30", shuffle=True, seed=5)
    return run(problem, method, budget=BUDGET, seed=2021).trace


@pytest.mark.parametrize("method", OURS)
def test_trace_is_golden(method: str) -> None:
    golden = json.loads(FILE.read_text())
    assert method in golden, "run `make golden` for a new method and commit the file"
    # another processor's linear algebra rounds differently, and model-based methods carry that along
    assert np.allclose(trace(method), golden[method], rtol=1e-4, atol=0)


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python tests/test_golden.py --write")
    FILE.write_text(json.dumps({method: trace(method) for method in OURS}, indent=1) + "\n")
    print(f"wrote {FILE.name}: {', '.join(OURS)}")
