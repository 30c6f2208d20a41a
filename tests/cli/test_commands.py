"""The command line, run as a user does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mctsvs
from mctsvs.cli import main
from mctsvs.methods.registry import METHODS


def mctsvs_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "mctsvs", *arguments], capture_output=True, text=True)


def test_run_prints_the_result_and_writes_the_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "run.json"
    arguments = ["bench", "run", "Hartmann6_30", "--budget", "40", "--seed", "7", "--json", str(file), "--shuffle"]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    for word in ("best value", "optimum 3.32237", "thinking", "recall", "variables  "):
        assert word in printed
    record = json.loads(file.read_text())
    assert (record["problem"], record["method"], record["seed"], record["budget"]) == (
        "Hartmann6_30",
        "auto",
        7,
        40,
    )
    assert record["variation"]["shuffle"] is True
    assert len(record["trace"]) == 40
    assert record["trace"] == np.maximum.accumulate(record["trace"]).tolist()
    assert record["best"] == record["trace"][-1]
    assert 0 < record["optimizer_seconds"] <= record["wall_seconds"]
    assert sum(iteration["evaluations"] for iteration in record["iterations"]) == 40
    assert record["iterations"][0] == {"variables": list(range(30)), "evaluations": 10}
    assert 0 <= record["recall"] <= 1


def test_run_repeats_with_the_same_seed(tmp_path: Path) -> None:
    traces = []
    for name in ("a", "b"):
        result = mctsvs_command(
            "bench", "run", "Levy10_20", "--budget", "25", "--seed", "3", "--json", str(tmp_path / name)
        )
        assert result.returncode == 0, result.stderr
        traces.append(json.loads((tmp_path / name).read_text())["trace"])
    assert traces[0] == traces[1]


def test_options_reach_the_method(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    settings = ["--set", "variant=authors-program", "--set", "cp=0.5", "--set", "k=7"]
    assert (
        main(
            ["bench", "run", "Hartmann6_30", "--method", "mcts-vs-rs", "--budget", "20", "--json", str(file), *settings]
        )
        == 0
    )
    assert json.loads(file.read_text())["options"] == {"variant": "authors-program", "cp": 0.5, "k": 7}


def test_dropout_gets_the_papers_d(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    assert main(["bench", "run", "Levy10_30", "--method", "dropout-rs", "--budget", "20", "--json", str(file)]) == 0
    assert json.loads(file.read_text())["options"] == {"d": 10}


def test_lists(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["methods"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in METHODS)
    assert main(["bench", "problems"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in ("Hartmann6_D", "LevyN_D", "Branin2_D", "AckleyN_D", "RosenbrockN_D"))


def test_version() -> None:
    assert mctsvs_command("--version").stdout == f"mctsvs {mctsvs.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["bench", "run", "Hartman6_300"], "Hartmann6_300"),
        (["bench", "run", "Levy10_5"], "Levy10_5"),
        (["bench", "run", "Hartmann6_30", "--method", "mcts"], "unknown method 'mcts'"),
        (["bench", "run", "Hartmann6_30", "--budget", "0"], "budget=0 cannot be used"),
        (["bench", "run", "Hartmann6_30", "--budget", "many"], "'many' is not a whole number"),
        (["bench", "run", "Hartmann6_30", "--seed", "-3"], "seed=-3 cannot be used"),
        (["bench", "run", "Hartmann6_30", "--noise", "-1"], "-1"),
        (["bench", "run", "Hartmann6_30", "--set", "cp"], "NAME=VALUE"),
        (["bench", "run", "Hartmann6_30", "--set", "cpp=1"], "no option 'cpp'"),
        (["bench", "run", "Hartmann6_30", "--budget", "3", "--json", "no/such/folder/x.json"], "no/such/folder/x.json"),
        (["fly"], "fly"),
        (["run"], "file.py:function"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_bad_input_is_one_sentence_and_exit_code_2(arguments: list[str], words: str) -> None:
    result = mctsvs_command(*arguments)
    assert result.returncode == 2
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_import_is_light() -> None:
    code = (
        "import sys, mctsvs; mctsvs.Optimizer; mctsvs.minimize;"
        "heavy = {'torch', 'sklearn', 'matplotlib', 'optuna', 'pandas', 'scipy.stats', 'rich'} & set(sys.modules);"
        "sys.exit(f'loaded: {heavy}' if heavy else 0)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_a_run_of_ones_own_loads_no_benchmark(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("space = [(0.0, 1.0)] * 3\n\n\ndef f(x):\n    return float(x.sum())\n")
    code = (
        "import sys, mctsvs; from mctsvs.cli import main; "
        "assert main(['run', 'own.py:f', '--budget', '12', '--study', 'own.db', '--quiet']) == 0; "
        "mctsvs.minimize(lambda x: float(x.sum()), [(0, 1)] * 3, budget=12); "
        "found = [m for m in sys.modules if m.startswith('mctsvs.bench')]; sys.exit(str(found) if found else 0)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 0, result.stderr


@pytest.mark.no_cover
def test_minimize_alone_loads_no_study() -> None:
    code = (
        "import sys, mctsvs; mctsvs.minimize(lambda x: float(x.sum()), [(0, 1)] * 3, budget=12); "
        "heavy = {'sqlite3', 'multiprocessing', 'mctsvs.study', 'rich'} & set(sys.modules); "
        "sys.exit(str(heavy) if heavy else 0)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
