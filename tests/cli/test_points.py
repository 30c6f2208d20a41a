"""On the command line: where points may lie, where to begin, and an objective of one's own named again."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mctsvs import InputError, minimize
from mctsvs.cli import main
from mctsvs.optimizer.active_variables import VariableStatus, VariableStatuses
from mctsvs.study import Study
from mctsvs.study.journal import Journal

SPACE = """
constraints = ["a + b <= 1"]
a = [0.0, 1.0]
b = [0.0, 1.0]
n = { type = "integer", low = 1, high = 9 }
"""
CODE = """
def f(p):
    return (p["a"] - 0.9) ** 2 + (p["b"] - 0.9) ** 2 + p["n"]
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "space.toml").write_text(SPACE)
    (tmp_path / "own.py").write_text(CODE)
    return ["own.py:f", "--space", "space.toml"]


def points(path: str) -> list[dict[str, Any]]:
    with Study(path, readonly=True) as study:
        return [trial.params for trial in study.trials]


def test_constraints_of_the_file_and_of_the_command_hold(own: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--where", "n - 4*a >= 2"]
    assert main(["run", *own, *where, "--budget", "15", "--study", "run.db", "--quiet"]) == 0
    assert all(p["a"] + p["b"] <= 1 and p["n"] - 4 * p["a"] >= 2 for p in points("run.db"))
    assert main(["run", *own, *where, "--budget", "8", "--quiet", "--json", "run.json"]) == 0
    best = json.loads(Path("run.json").read_text())["best_params"]
    assert best["a"] + best["b"] <= 1
    capsys.readouterr()
    assert main(["run", *own, "--where", "a >= 2", "--budget", "5", "--quiet"]) == 2
    assert "no point of the space satisfies the constraint" in capsys.readouterr().err
    assert main(["run", *own, "--budget", "15", "--study", "run.db", "--quiet"]) == 2
    assert "constraints are" in capsys.readouterr().err


def test_a_constraint_that_cannot_be_is_said_with_its_file(
    own: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "space.toml").write_text(SPACE.replace("a + b <= 1", "a * b <= 1"))
    assert main(["run", *own, "--budget", "5"]) == 2
    printed = capsys.readouterr().err
    assert "in the space file 'space.toml'" in printed
    assert "not linear" in printed


def test_a_named_problem_is_constrained_too(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    arguments = ["bench", "run", "Hartmann6_20", "--where", "sum(x0:x5) <= 1", "--budget", "12", "--study", str(path)]
    assert main([*arguments, "--quiet"]) == 0
    with Study(path, readonly=True) as study:
        assert all(trial.x[:6].sum() <= 1 for trial in study.trials)
    assert main(["resume", str(path), "--budget", "14", "--quiet"]) == 0
    with Study(path, readonly=True) as study:
        assert len(study.trials) == 14
        assert all(trial.x[:6].sum() <= 1 for trial in study.trials)


def test_first_points_and_warm_starts_come_from_a_file(own: list[str]) -> None:
    Path("first.csv").write_text("a,b,n\n0.25,0.5,3\n0.5,0.25,4\n")
    run = ["run", *own, "--budget", "5", "--quiet"]
    assert main([*run, "--x0", "first.csv", "--study", "run.db"]) == 0
    assert points("run.db")[:2] == [{"a": 0.25, "b": 0.5, "n": 3}, {"a": 0.5, "b": 0.25, "n": 4}]
    assert main([*run[:-2], "7", "--quiet", "--x0", "first.csv", "--study", "run.db"]) == 0
    assert len(points("run.db")) == 7
    Path("known.csv").write_text("a,b,n,value\n0.25,0.5,3,-100\n")
    assert main([*run, "--x0", "known.csv", "--study", "known.db"]) == 0
    with Study("known.db", readonly=True) as study:
        assert (study.evaluated, study.best.value, study.trials[0].source) == (5, -100.0, "imported")
    assert main([*run, "--x0", "known.csv", "--json", "run.json"]) == 0
    record = json.loads(Path("run.json").read_text())
    assert (record["best"], len(record["values"])) == (-100.0, 5)


def test_a_file_that_does_not_fit_is_one_sentence(own: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for text, why in [
        ("a,b\n0.25,0.5\n", "no column 'n'"),
        ("a,b,n\n0.25,0.5,77\n", "must fit"),
        ("a,b,n\n0.25,0.5,3\n0.75,0.5,3\n", "row 2 of the file 'first.csv': "),
        ("a,b,n\n0.75,0.5,3\n", "'a + b <= 1' does not hold"),
        ("a,b,n,value\n0.25,0.5,3,1\n0.75,0.5,3,1\n", "row 2 of the file 'first.csv': "),
        ("a,b,n,valu\n0.25,0.5,3,1\n", "a column 'valu': call it 'value'"),
        ("a,b,n\n", "'first.csv' has no points"),
        ("", "'first.csv' has no points"),
    ]:
        Path("first.csv").write_text(text)
        for kept in ([], ["--study", f"{len(text)}.db"]):
            assert main(["run", *own, "--budget", "5", "--x0", "first.csv", "--quiet", *kept]) == 2
            assert why in capsys.readouterr().err


def test_an_objective_of_ones_own_is_resumed_by_naming_it_again(
    own: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *own, "--budget", "5", "--study", "run.db", "--quiet"]) == 0
    assert main(["run", *own, "--budget", "9", "--study", "whole.db", "--quiet"]) == 0
    capsys.readouterr()
    assert main(["resume", "run.db", "--budget", "9"]) == 2
    assert "cannot load its objective, which was 'own.py:f': name it again" in capsys.readouterr().err
    assert main(["resume", "run.db", *own, "--budget", "9", "--quiet"]) == 0
    assert len(points("run.db")) == 9
    assert points("run.db")[:5] == points("whole.db")[:5]
    Path("other.toml").write_text("a = [0.0, 1.0]\n")
    assert main(["resume", "run.db", "own.py:f", "--space", "other.toml", "--budget", "12"]) == 2
    assert "has other variables" in capsys.readouterr().err


def test_a_study_of_a_program_is_resumed_too(own: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    space = {"a": (0.0, 1.0), "b": (0.0, 1.0)}
    with Study("run.db", space, constraints="a + b <= 1") as study:
        study.optimize(lambda p: p["a"] + p["b"], 4)
    Path("two.toml").write_text("a = [0.0, 1.0]\nb = [0.0, 1.0]\n")
    Path("two.py").write_text("def f(p):\n    return p['a'] + p['b']\n")
    again = ["resume", "run.db", "two.py:f", "--space", "two.toml", "--quiet"]
    assert main(again) == 2
    assert "add --budget N" in capsys.readouterr().err
    assert main([*again, "--budget", "6"]) == 0
    assert len(points("run.db")) == 6
    assert (
        main(["bench", "run", "Hartmann6_20", "--budget", "2", "--method", "random", "--study", "h.db", "--quiet"]) == 0
    )
    assert main(["resume", "h.db", *own]) == 2
    assert "leave that out" in capsys.readouterr().err


def test_a_study_knows_its_variables(own: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    Path("groups.toml").write_text("a = [0.0, 1.0]\n[x]\ncount = 3\nlow = -1\nhigh = 1\n")
    Path("groups.py").write_text("def f(p):\n    return p['a'] + (p['x'] ** 2).sum()\n")
    first = ["--space", "groups.toml", "--budget", "4", "--direction", "maximize", "--quiet"]
    assert main(["run", "groups.py:f", *first, "--study", "run.db"]) == 0
    assert main(["resume", "run.db", "groups.py:f", "--budget", "6", "--quiet"]) == 0
    with Study("run.db") as study:
        assert [trial.failed for trial in study.trials] == [False] * 6
        study.set_user_attr("groups", {"y": 3})
    capsys.readouterr()
    assert main(["resume", "run.db", "groups.py:f", "--budget", "7", "--quiet"]) == 2
    assert "was not written by this version" in capsys.readouterr().err
    with Study("vector.db", [(0.0, 1.0)] * 3) as study:
        study.optimize(lambda x: float(x.sum()), 3)
    Path("vector.py").write_text("def f(x):\n    return float((x ** 2).sum())\n")
    assert main(["resume", "vector.db", "vector.py:f", "--budget", "5", "--quiet"]) == 0
    with Study("vector.db", readonly=True) as study:
        assert [trial.failed for trial in study.trials] == [False] * 5


def test_a_study_knows_its_measured_constraints(own: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    Path("two.toml").write_text("a = [0.0, 1.0]\nb = [0.0, 1.0]\n")
    program = "import sys; a, b = map(float, sys.argv[1:]); print('g =', a - 2, 'h =', b - 2, a + b)"
    Path("two.py").write_text(program)
    run = ["--command", f"{sys.executable} two.py {{a}} {{b}}", "--quiet"]
    named = ["--constraint", "g", "--constraint", "h"]
    assert main(["run", *run, "--space", "two.toml", *named, "--budget", "3", "--study", "run.db"]) == 0
    assert main(["resume", "run.db", *run, "--budget", "5"]) == 0
    assert main(["resume", "run.db", *run, "--constraint", "h", "--space", "two.toml", "--budget", "6"]) == 0
    assert main(["run", *run, "--space", "two.toml", "--budget", "8", "--study", "run.db"]) == 0
    with Study("run.db", readonly=True) as study:
        assert [(list(trial.constraints or {}), trial.feasible) for trial in study.trials] == [(["g", "h"], True)] * 8
    capsys.readouterr()
    assert main(["resume", "run.db", *run, "--constraint", "k", "--budget", "9"]) == 2
    assert "has no constraint 'k': it has g and h" in capsys.readouterr().err


def test_methods_are_compared_on_an_objective_of_ones_own(own: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "results"
    arguments = ["--methods", "random,mcts-vs-rs", "--seeds", "1", "--budget", "6", "-o", str(folder), "--quiet"]
    assert main(["bench", "compare", *own, *arguments, "--workers", "1"]) == 0
    assert "random" in "".join(path.read_text() for path in folder.glob("*.csv"))


def test_the_value_of_a_program_may_have_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("space.toml").write_text("a = [0, 1]\n")
    command = ["--command", "echo cost {a} elapsed 12.5", "--space", "space.toml", "--quiet"]
    run = ["run", *command, "--study", "run.db", "--budget"]
    assert main([*run, "3", "--value", "cost"]) == 0
    assert main([*run, "4"]) == 0  # the study knows it
    assert main(["resume", "run.db", *command[:2], "--budget", "5", "--quiet"]) == 0
    with Study("run.db", readonly=True) as study:
        assert [trial.value for trial in study.trials] == [trial.x[0] for trial in study.trials]
    capsys.readouterr()
    for arguments, words in (
        ([*run, "9", "--value", "elapsed"], "the value of the study 'run.db' is 'cost', not 'elapsed'"),
        (["run", *command, "--value", "a", "--constraint", "a"], "'a' is the value and a constraint"),
        (["run", *command, "--value", " "], "the value needs a name"),
        (["run", "tune.py:f", "--value", "a"], "--value goes with --command"),
    ):
        assert main(arguments) == 2
        assert words in capsys.readouterr().err
    assert main(["run", *command, "--value", "costs", "--budget", "2", "--max-failures", "9"]) == 1
    assert "printed no number after 'costs': cost" in capsys.readouterr().err


def test_a_study_with_a_function_among_its_constraints_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.db"
    with Study(path, [(0, 1)] * 3, seed=0, constraints=lambda x: bool(x[0] > 0.5)) as study:
        study.optimize(lambda x: float(x[0]), 15)
        known = repr(study.variables())
    for command in (["show"], ["report", "-o", str(tmp_path / "page.html")]):
        assert main([*command, str(path)]) == 0
    assert "best value      0.5" in capsys.readouterr().out
    with Study(path, readonly=True) as study:
        assert repr(study.variables()) == known
        with pytest.raises(InputError, match="give it again with constraints="):
            study.optimizer.ask()
    with pytest.raises(InputError, match="functions are not stored"):
        Study(path)


def test_what_a_hostile_file_asks_for_is_refused_at_once(
    own: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    space = {"bounds": np.array([[0.0, 1.0]] * 3)}
    options = {"population": 10**9}
    identity = {"space": space, "direction": "minimize", "method": "cma-es", "options": options, "seed": 0}
    Journal.create(tmp_path / "hostile.db", {"identity": identity})
    with pytest.raises(InputError, match="population=1000000000 cannot be used"):
        _ = Study(tmp_path / "hostile.db", readonly=True).optimizer
    deep = "(" * 5000 + "a" + ")" * 5000 + " <= 1"
    for text, where, words in (
        ("a = " + "[" * 3000 + "]" * 3000, "a <= 1", "the space file 's.toml' is nested too deeply"),
        ("[a]\ncount = 100000000000\nlow = 0\nhigh = 1", "a <= 1", "count=100000000000 cannot be used"),
        ("a = [0, 1]", deep, "it is nested too deeply"),
    ):
        Path("s.toml").write_text(text)
        assert main(["run", own[0], "--space", "s.toml", "--where", where]) == 2
        assert words in capsys.readouterr().err


def test_no_message_has_an_escape_sequence() -> None:
    result = minimize(lambda x: (1.0, {"c\x1b[31m": 1.0}), [(0, 1)] * 2, budget=5)
    assert result.message.isprintable()
    result = minimize(lambda p: 1.0, {"a\x1b[31m": ["b\x1b[0m", "c"]}, budget=2)
    assert repr(result.trials[0]).isprintable()
    assert repr(result).isprintable()
    row = VariableStatus("a\x1b[31m", "active", evidence=(0, 1), output="c\x1b[31m")
    for text in (str(row), VariableStatuses([row], "a\x1b[31m acts").summary):
        assert text.isprintable()
