"""The same seed and budget, the same points: `minimize`, `Study.optimize`, `mctsvs run`, and `mctsvs run --study`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import mctsvs
from mctsvs.bench import problems
from mctsvs.cli import main
from mctsvs.methods.registry import METHODS, options_of

SLOW = {"saasbo", "mcts-vs-saasbo", "optuna-gp", "vae-bo", "alebo"}  # the same engine and the same four ways
BUDGET = 24


@pytest.mark.parametrize("method", [name for name in METHODS if name not in SLOW])
def test_four_ways_take_the_same_points(method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    problem = problems.make("Hartmann6_20")
    options: dict[str, Any] = (
        {"d": 6} if "d" in options_of(METHODS[method]) else {}
    )  # else the command line says what the paper says
    whole = mctsvs.maximize(problem, problem.space, budget=BUDGET, seed=3, method=method, **options)
    values = [trial.value for trial in whole.trials]
    with mctsvs.Study(
        tmp_path / "own.db", problem.space, direction="maximize", seed=3, method=method, **options
    ) as study:
        study.optimize(problem, BUDGET)
        assert [trial.value for trial in study.trials] == values
    command = ["bench", "run", "Hartmann6_20", "--method", method, "--budget", str(BUDGET), "--seed", "3"]
    command += [f"--set={name}={value}" for name, value in options.items()]
    assert main([*command, "--json", str(tmp_path / "run.json")]) == 0
    assert json.loads((tmp_path / "run.json").read_text())["values"] == values
    assert main([*command, "--study", str(tmp_path / "run.db")]) == 0
    with mctsvs.Study(tmp_path / "run.db", readonly=True) as kept:
        assert [trial.value for trial in kept.trials] == values
    capsys.readouterr()
