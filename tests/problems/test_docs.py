"""The example of docs/problems.md is a problem like the others."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from mctsvs import InputError, problems

DOCS = Path(__file__).parents[2] / "docs" / "problems.md"


def test_the_problem_added_in_the_documentation_works(monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = [text for text in re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL) if "FAMILIES" in text]
    module = types.ModuleType("sphere")
    monkeypatch.setitem(sys.modules, "sphere", module)
    exec(code, vars(module))
    monkeypatch.setattr(problems, "FAMILIES", [*problems.FAMILIES, *module.FAMILIES])
    problem = problems.make("Sphere_50")
    assert (problem.dimension, problem.optimum, problem(np.ones(50))) == (50, 0.0, -50.0)
    assert problems.make("Sphere_50", noise=1.0)(np.ones(50)) != -50.0
    with pytest.raises(InputError, match="shuffle"):
        problems.make("Sphere_50", shuffle=True)
