"""What the command line says when something is mistyped, goes wrong, or comes from a stranger's file."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from mctsvs import Categorical, Study
from mctsvs.cli import main, summary
from mctsvs.cli.commands import parser
from mctsvs.optimizer.active_variables import VariableStatus, VariableStatuses

NASTY = "\x1b[2Jgone\r\x9b31m"
OBJECTIVE = """
calls = 0

def tired(p):
    global calls
    calls += 1
    if calls > 6:
        raise ValueError("tired\\x1b[31m of it")
    return p["a"]

def never(p):
    raise ValueError("no")

def whole(p):
    return (p["n"] - 2) ** 2
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "own.py").write_text(OBJECTIVE)
    (tmp_path / "space.toml").write_text("a = [0.0, 1.0]\nb = [0.0, 1.0]\n")
    (tmp_path / "whole.toml").write_text('n = { type = "integer", low = 1, high = 5 }\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rum", "Levy10_20"], "did you mean run?"),
        (["RUN", "Levy10_20"], "did you mean run?"),
        (["bench", "run", "Levy10_20", "--metod", "bo"], "unknown option --metod: did you mean --method?"),
        (["bench", "run", "Levy10_20", "--budgt=3"], "unknown option --budgt: did you mean --budget?"),
        (["resume", "run.db", "--worker5", "3"], "did you mean --workers?"),
        (["run", "own.py:f", "--direction", "maximise"], "did you mean maximize?"),
        (["bench", "run", "Levy10_20", "bo"], "'bo' is one argument too many"),
        (["show", NASTY, NASTY], "\\x1b[2Jgone\\r\\x9b31m"),
    ],
)
def test_a_slip_gets_what_was_meant(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    sentence = capsys.readouterr().err
    assert said in sentence
    assert sentence.count("\n") == 1
    assert sentence.strip().isprintable()


@pytest.mark.parametrize(
    ("method", "meant"), [("MCTS-VS", "mcts-vs"), ("tpe", "optuna-tpe"), ("Bo", "bo"), ("mcts-vs-boo", "mcts-vs-bo")]
)
def test_a_method_in_other_letters_or_without_its_family(
    method: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "run", "Levy10_20", "--method", method]) == 2
    assert f"unknown method '{method}': did you mean '{meant}'?" in capsys.readouterr().err


def test_too_many_failures_end_a_run_without_a_study(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = ["--space", "space.toml", "--budget", "100", "--max-failures", "5", "--json", "run.json", "--quiet"]
    assert main(["run", "own.py:tired", *common]) == 2, "as in a study: something was found, and something is wrong"
    printed = capsys.readouterr()
    assert "evaluations     11, 5 of them failed" in printed.out
    expected = "mctsvs: the last 5 evaluations all failed, trial 10 with: ValueError: tired\\x1b[31m of it\n"
    assert printed.err == expected
    assert len(json.loads(Path("run.json").read_text())["trace"]) == 11
    assert main(["run", "own.py:never", *common]) == 1
    assert "all 5 evaluations failed, the last with: ValueError: no" in capsys.readouterr().err
    assert main(["run", "own.py:never", "--space", "space.toml", "--max-failures", "0"]) == 2


def test_a_run_ends_where_its_space_does(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "own.py:whole", "--space", "whole.toml", "--budget", "20", "--quiet"]) == 0
    printed = capsys.readouterr()
    assert re.search(r"best value      0, trial 3\nevaluations     5\n", printed.out)
    assert printed.err == "mctsvs: 5 of 20 evaluations, every point of the space has been evaluated\n"


@pytest.mark.parametrize("method", ["auto", "random"])
def test_the_papers_settings_are_refused_where_it_has_none(method: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "run", "Levy10_20", "--method", method, "--paper", "--budget", "5"]) == 2
    assert f"--paper changes nothing for '{method}'" in capsys.readouterr().err
    assert main(["bench", "run", "Levy10_20", "--method", "mcts-vs-bo", "--paper", "--budget", "5"]) == 0


def test_named_is_what_acts() -> None:
    active = VariableStatus("a", "active", 0.31, 0.12, (12, 19))
    others = [VariableStatus(f"x{i}", "unchanged", changes=5, together=112) for i in range(113)]
    rows = VariableStatuses([active, *others, VariableStatus("b", "untested")], "a acts")
    words = "a acts; 113 changed nothing at 5 points, changed together; 1 was not tested"
    assert summary.variables(None, rows, {}) == [("variables", words)]
    everything = VariableStatuses([active], "all variables act")
    assert summary.variables(None, everything, {}) == [("variables", "all variables act")]
    assert summary.variables(None, VariableStatuses(), {}) == []


def test_where_values_are_noisy_show_says_what_to_expect(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng, path = np.random.default_rng(0), tmp_path / "run.db"
    with Study(path, [(0.0, 1.0)] * 3, seed=0) as study:
        study.optimize(lambda x: float(x[0] + rng.normal(0.0, 0.3)), 60)
        expected = str(study.recommend())
    assert "nine times in ten" in expected
    assert main(["show", str(path)]) == 0
    assert f"recommended     {expected}, trial " in capsys.readouterr().out


def test_the_record_has_the_active_variables(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    assert main(["bench", "run", "Levy10_60", "--budget", "150", "--quiet", "--json", str(file)]) == 0
    record = json.loads(file.read_text())
    assert {row["name"] for row in record["variables"]} <= {f"x{i}" for i in range(10)}
    assert record["summary"].endswith("act")


def test_nothing_of_a_file_moves_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.db"
    with Study(path, {NASTY: (0.0, 1.0), "kind": Categorical(["plain", NASTY])}, method="random", seed=1) as study:
        for trial in study.ask(6):
            study.tell(trial, None if trial.number == 5 else 1.0, NASTY if trial.number == 5 else "")
    assert main(["show", str(path)]) == 0
    printed = capsys.readouterr()
    assert "\\x1b[2Jgone" in printed.out
    assert all(line.isprintable() for line in (printed.out + printed.err).splitlines())


@pytest.mark.parametrize(
    ("wish", "words"),
    [({"workers": 4096}, "--workers 4096"), ({"ray": ""}, "--ray"), ({"dask": "tcp://far:1"}, "--dask tcp://far:1")],
)
def test_a_file_does_not_decide_on_machines(
    wish: dict[str, object], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.db"
    assert main(["bench", "run", "Levy10_20", "--method", "random", "--budget", "3", "--study", str(path)]) == 0
    with Study(path) as study:
        study.set_user_attr("command", {**study.user_attrs["command"], **wish, "budget": 5})
    assert main(["resume", str(path)]) == 2
    assert f"was run with {words}, which is repeated only if you ask for it" in capsys.readouterr().err
    assert main(["resume", str(path), "--workers", "1"]) == 0
    with Study(path, readonly=True) as study:
        assert study.evaluated == 5


def test_a_file_that_names_another_problem_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.db"
    assert main(["bench", "run", "Levy10_20", "--method", "random", "--budget", "3", "--study", str(path)]) == 0
    with Study(path) as study:
        study.set_user_attr("command", {**study.user_attrs["command"], "problem": "Hartmann6_7", "budget": 5})
    for command in ("resume", "show"):
        assert main([command, str(path)]) == 2
        assert "names Hartmann6_7, which has other variables" in capsys.readouterr().err


def test_resume_gives_up_as_the_run_before_did(tmp_path: Path) -> None:
    arguments = parser().parse_args(["resume", "run.db"])
    assert arguments.max_failures is None
    path = tmp_path / "run.db"
    common = ["bench", "run", "Levy10_20", "--method", "random", "--budget", "3", "--study", str(path)]
    assert main([*common, "--max-failures", "7"]) == 0
    assert main(["resume", str(path), "--budget", "4"]) == 0
    with Study(path, readonly=True) as study:
        assert study.user_attrs["command"]["max_failures"] == 7


def test_show_leaves_out_what_only_a_file_of_code_could_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(
        "from mctsvs.methods.base import Engine\n\n"
        "class Mine(Engine):\n"
        "    def propose(self, n, pending):\n"
        "        return [self.proposal(self.rng.random(self.dimension), self.everything) for _ in range(n)]\n"
    )
    with Study("run.db", [(0.0, 1.0)] * 2, method="mine.py:Mine", seed=0) as study:
        study.optimize(lambda x: float(np.sum(x)), 5)
    Path("mine.py").unlink()
    assert main(["show", "run.db"]) == 0
    assert "method          mine.py:Mine" in capsys.readouterr().out


def test_every_argument_of_every_command_is_explained() -> None:
    top = parser()
    (commands,) = (action for action in top._actions if isinstance(action.choices, dict))
    assert isinstance(commands.choices, dict)
    for name, command in commands.choices.items():
        text = command.format_help()
        assert text.startswith(f"usage: mctsvs {name}")
        assert all(action.help for action in command._actions), f"an argument of {name} without a word"
    assert "mctsvs run tune.py:train --space space.toml" in top.format_help()
