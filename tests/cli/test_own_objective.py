"""`mctsvs run` on a user's own function or program, as a user does it."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

SPACE = """
a = [0, 1]
b = { type = "integer", low = 1, high = 9 }
kind = { choices = ["good", "bad; touch pwned", "$(touch pwned)", "`touch pwned`"] }
"""
FUNCTION = """
def f(p):
    if p["b"] == 9:
        raise RuntimeError("nine")
    return p["a"] + p["b"] + (p["kind"] != "good")

def never(p):
    raise RuntimeError("never")

def vector(x):
    return float((x ** 2).sum())
"""
PROGRAM = """
import sys
a, b, kind = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
print("step", 1)
if b == 9:
    sys.exit("nine")
print("value", a + b + (kind != "good"))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "space.toml").write_text(SPACE)
    (tmp_path / "mine.py").write_text(FUNCTION)
    (tmp_path / "simulate.py").write_text(PROGRAM)
    (tmp_path / "group.toml").write_text("[x]\ncount = 50\nlow = -1\nhigh = 1\n")
    return tmp_path


def mctsvs_run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mctsvs", "run", "--quiet", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder)


def test_a_function_and_the_same_as_a_program(folder: Path) -> None:
    shared = ["--space", "space.toml", "--budget", "25", "--seed", "1"]
    function = mctsvs_run(folder, "mine.py:f", *shared, "--json", "function.json")
    assert function.returncode == 0, function.stderr
    assert "mine.py:f, 3 variables, minimize" in function.stdout
    template = f"{sys.executable} simulate.py {{a}} {{b}} {{kind}}"
    program = mctsvs_run(folder, "--command", template, *shared, "--json", "program.json", "--timeout", "60")
    assert program.returncode == 0, program.stderr
    one, other = (json.loads((folder / f"{name}.json").read_text()) for name in ("function", "program"))
    assert one["trace"] == other["trace"]
    assert one["best_params"] == other["best_params"]
    assert {**one["best_params"], "value": one["best"]} == {
        "a": one["best"] - one["best_params"]["b"] - (one["best_params"]["kind"] != "good"),
        "b": one["best_params"]["b"],
        "kind": one["best_params"]["kind"],
        "value": one["best"],
    }
    assert len(one["failures"]) == len(other["failures"]) > 0
    assert {failure["message"] for failure in one["failures"]} == {"RuntimeError: nine"}
    assert {failure["message"] for failure in other["failures"]} == {"exit status 1: nine"}
    assert f"25, {len(one['failures'])} of them failed" in function.stdout
    assert "best point      a=" in function.stdout
    assert not (folder / "pwned").exists()


def test_measured_constraints_of_a_function_and_of_a_program(folder: Path) -> None:
    (folder / "limits.py").write_text(
        "import sys\n"
        "def f(p):\n    return p['a'] + p['b'], {'g': 4.0 - p['b'], 'h': 0.5 - p['a']}\n"
        "if __name__ == '__main__':\n"
        "    value, limits = f({'a': float(sys.argv[1]), 'b': int(sys.argv[2])})\n"
        "    print('value', value)\n    print('g:', limits['g'], 'h:', limits['h'])\n"
    )
    shared = ["--space", "space.toml", "--budget", "25", "--json", "r.json"]
    command = [
        "--command",
        f"{sys.executable} limits.py {{a}} {{b}} {{kind}}",
        "--constraint",
        "g",
        "--constraint",
        "h",
    ]
    found = []
    for what in (["limits.py:f"], command, [*command, "--study", "s.db"]):
        result = mctsvs_run(folder, *what, *(shared[:4] if "--study" in what else shared))
        assert result.returncode == 0, result.stderr
        found.append(next(line for line in result.stdout.splitlines() if line.startswith("best value")).split()[2])
        assert re.search(r"^constraints +g=\S+  h=\S+   \(all hold: at most 0\)$", result.stdout, re.MULTILINE)
    assert found[0] == found[1] == found[2]
    assert 4.5 <= float(found[0].rstrip(",")) < 5.5
    refused = mctsvs_run(folder, "limits.py:f", "--space", "space.toml", "--constraint", "g")
    assert "--constraint goes with --command" in refused.stderr
    (folder / "never.py").write_text("def f(p):\n    return p['a'], {'g': 1.0 + p['a']}\n")
    said = []
    for kept in ([], ["--study", "never.db"]):
        never = mctsvs_run(folder, "never.py:f", "--space", "space.toml", "--budget", "5", *kept)
        assert never.returncode == 1
        lines = [line for line in never.stdout.splitlines() if line.startswith(("best value", "constraints"))]
        assert "none: no evaluation was feasible; " in lines[0]
        said.append((lines, never.stderr))
    assert said[0] == said[1]
    assert re.search(r"none of the 5 evaluations was feasible: trial \d violates g by 1\.\d+", said[0][1])


@pytest.mark.parametrize("kept", [[], ["--study", "s.db"]], ids=["alone", "study"])
def test_a_constraint_that_is_never_printed_is_said(folder: Path, kept: list[str]) -> None:
    (folder / "prints.py").write_text("print('stress = -1.0, mass: -2.5'); print('value', 3)")
    command = ["--command", f"{sys.executable} prints.py {{a}} {{b}} {{kind}}", "--constraint", "strss"]
    result = mctsvs_run(folder, *command, "--constraint", "mass", "--space", "space.toml", "--budget", "3", *kept)
    assert result.returncode == 1
    assert "after 'strss', a constraint: did you mean 'stress'? there was one after stress, mass and value" in (
        result.stderr
    )
    assert "'mass'" not in result.stderr


def test_a_noisy_objective_gets_a_recommended_point(folder: Path) -> None:
    (folder / "noisy.py").write_text(
        "import numpy as np\nrng = np.random.default_rng(0)\n"
        "def f(p):\n    return p['a'] + 0.3 * rng.standard_normal()\n"
    )
    run = ["noisy.py:f", "--space", "space.toml", "--budget", "12", "--noise", "0.3"]
    shown = mctsvs_run(folder, *run, "--json", "r.json")
    pattern = (
        r"^recommended +(\S+), nine times in ten between .*, trial (\d+); the best value is a lucky one\n"
        r"its point +a=\S+  b="
    )
    found = re.search(pattern, shown.stdout, re.MULTILINE)
    assert found, shown
    record = json.loads((folder / "r.json").read_text())
    assert record["recommended"]["trial"] == int(found[2])
    assert record["recommended"]["mean"] == pytest.approx(float(found[1]), rel=1e-4)
    assert record["recommended"]["mean"] > record["best"]
    assert mctsvs_run(folder, *run, "--study", "s.db").returncode == 0
    again = subprocess.run(
        [sys.executable, "-m", "mctsvs", "show", "s.db"], cwd=folder, capture_output=True, text=True, check=True
    )
    assert re.search(pattern, again.stdout, re.MULTILINE), again
    exact = mctsvs_run(folder, *run[:-1], "0")
    assert "recommended" not in exact.stdout, exact


def test_a_group_is_a_vector_and_direction_can_be_given(folder: Path) -> None:
    result = mctsvs_run(
        folder,
        *("mine.py:vector", "--space", "group.toml", "--direction", "maximize", "--budget", "15", "--json", "r.json"),
    )
    assert result.returncode == 0, result.stderr
    record = json.loads((folder / "r.json").read_text())
    assert record["trace"] == sorted(record["trace"])
    assert sum(value**2 for value in record["best_params"].values()) == pytest.approx(record["best"])


def test_a_run_of_failures_only_ends_with_their_message(folder: Path) -> None:
    result = mctsvs_run(folder, "mine.py:never", "--space", "space.toml", "--budget", "3", "--json", "r.json")
    assert result.returncode == 1
    assert result.stderr == "mctsvs: all 3 evaluations failed, the last with: RuntimeError: never\n"
    record = json.loads((folder / "r.json").read_text())
    assert record["best"] is None
    assert len(record["failures"]) == 3
    kept = mctsvs_run(folder, "mine.py:never", "--space", "space.toml", "--budget", "3", "--study", "s.db")
    assert (kept.returncode, kept.stderr.count("\n")) == (1, 1)
    assert "all 3 evaluations failed, the last with: RuntimeError: never" in kept.stderr


THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


@pytest.mark.parametrize("given", [{}, {"OMP_NUM_THREADS": "3"}])
def test_functions_and_programs_have_the_environment_of_the_user(
    given: dict[str, str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in THREADS:
        monkeypatch.delenv(name, raising=False)
        if name in given:
            monkeypatch.setenv(name, given[name])
    code = "import json, os, sys; json.dump(dict(os.environ), open('seen.json', 'w')); print(1.0)"
    (folder / "look.py").write_text(f"def f(p):\n    {code}\n    return 1.0\n")
    (folder / "one.toml").write_text("a = [0, 1]\n")
    for objective in (
        ["look.py:f"],
        ["look.py:f", "--workers", "1"],
        ["--command", f'{sys.executable} -c "{code}" {{a}}'],
    ):
        assert mctsvs_run(folder, *objective, "--space", "one.toml", "--budget", "1").returncode == 0
        seen = json.loads((folder / "seen.json").read_text())
        assert {name: seen[name] for name in THREADS if name in seen} == given
        (folder / "seen.json").unlink()


@pytest.mark.parametrize("where", [[], ["--study", "run.db"]], ids=["memory", "study"])
def test_a_generator_that_workers_would_copy_is_named(where: list[str], folder: Path) -> None:
    (folder / "own.py").write_text(
        "import numpy as np\nrng = np.random.default_rng(0)\n"
        "def noise():\n    return rng.random()\ndef f(a):\n    return a + noise()\n"
    )
    (folder / "one.toml").write_text("a = [0, 1]\n")
    done = mctsvs_run(folder, "own.py:f", "--space", "one.toml", "--budget", "2", "--workers", "1", *where)
    assert done.returncode == 0
    assert "mctsvs: worker processes have copies of 'rng'" in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="signals as on POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_gives_the_best_so_far(folder: Path, number: signal.Signals) -> None:
    (folder / "slow.py").write_text(
        "import sys, time\n"
        "calls = []\n"
        "def f(p):\n"
        "    calls.append(1)\n"
        "    if len(calls) == 4:\n"
        "        print('fourth', flush=True)\n"
        "        time.sleep(60)\n"
        "    return p['a']\n"
    )
    command = [
        *(sys.executable, "-m", "mctsvs", "run", "slow.py:f", "--space", "space.toml", "--json", "r.json", "--quiet")
    ]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "fourth\n"
        process.send_signal(number)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "evaluations     3, 1 waiting\n" in output
    assert errors == "mctsvs: 3 of 200 evaluations, stopped by Ctrl-C\n"
    record = json.loads((folder / "r.json").read_text())
    assert record["interrupted"] is True
    assert record["best"] == min(record["trace"])


def test_a_best_point_is_shown_where_no_variable_matters(folder: Path) -> None:
    (folder / "same.py").write_text("def f(x):\n    return 1.0\n")
    result = mctsvs_run(folder, "same.py:f", "--space", "group.toml", "--budget", "5", "--method", "random")
    assert result.returncode == 0, result.stderr
    assert "best point      x0=" in result.stdout


@pytest.mark.skipif(os.name != "posix", reason="signals as on POSIX")
@pytest.mark.parametrize("how", ["time-out", "Ctrl-C", "kill"])
def test_programs_end_with_the_workers_that_started_them(folder: Path, how: str) -> None:
    (folder / "hang.py").write_text(
        "import os, sys, time\nwith open('pids', 'a') as file:\n    file.write(f'{os.getpid()}\\n')\ntime.sleep(300)\n"
    )
    (folder / "pids").touch()
    command = [sys.executable, "-m", "mctsvs", "run", "--space", "space.toml", "--method", "random"]
    command += ["--command", f"{sys.executable} hang.py {{a}} {{b}} {{kind}}", "--study", "s.db", "--workers", "2"]
    command += ["--budget", "2", "--timeout", "2" if how == "time-out" else "200"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        if how != "time-out":
            until(lambda: len((folder / "pids").read_text().splitlines()) == 2)
            process.send_signal(signal.SIGINT if how == "Ctrl-C" else signal.SIGKILL)
        _, errors = process.communicate(timeout=60)
    assert "Traceback" not in errors
    assert process.returncode == {"time-out": 1, "Ctrl-C": 130, "kill": -signal.SIGKILL}[how], errors
    pids = [int(line) for line in (folder / "pids").read_text().splitlines()]
    until(lambda: not any(runs(pid) for pid in pids))


def until(true: Callable[[], bool]) -> None:
    """Wait for it, a minute at most."""
    last = time.monotonic() + 60
    while not true():
        assert time.monotonic() < last
        time.sleep(0.05)


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")  # one that has ended stays listed until somebody asks for its status
    return not (status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["mine.py:f"], "(--space FILE)"),
        (["mine.py:f", "--space", "none.toml"], "there is no space file 'none.toml'"),
        (["mine.py", "--space", "space.toml"], "names no function"),
        (["mine.py:g", "--space", "space.toml"], "has no function 'g'"),
        (["mine.py:f", "--space", "space.toml", "--timeout", "0"], "timeout=0.0 cannot be used"),
        (["mine.py:f", "--space", "space.toml", "--workers", "0"], "workers=0 cannot be used"),
        (["mine.py:f", "--space", "space.toml", "--shift"], "unknown option --shift"),
        (["mine.py:f", "--space", "space.toml", "--noise", "-1"], "noise=-1.0 cannot be used"),
        (["mine.py:f", "--command", "echo {a}", "--space", "space.toml"], "not both"),
        (["Hartmann6_30", "--space", "space.toml"], "mctsvs bench run Hartmann6_30"),
        (["--command", "echo {a} {b}", "--space", "space.toml"], "never uses 'kind'"),
        (["--command", "echo {a} {b} {kind}", "--space", "space.toml", "--timeout", "0"], "time-out of 0"),
        (["--command", "echo {a} {b} {kind}", "--space", "space.toml", "--direction", "up"], "invalid choice: 'up'"),
        (["mine.py:f", "--space", "space.toml", "--json", "."], "cannot write '.': it is a folder"),
        (["--command", "./simulate {a} {b} {kind}", "--space", "space.toml"], "cannot run './simulate'"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_bad_input_is_one_sentence_and_exit_code_2(folder: Path, arguments: list[str], words: str) -> None:
    result = mctsvs_run(folder, *arguments)
    assert result.returncode == 2
    assert words in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


CONDITIONAL = """
kind = { choices = ["a", "b"], default = "b" }
n = { values = [16, 32, 64], default = 32 }
flag = { type = "boolean" }
seed = { value = 3 }
slope = { low = 0.0, high = 1.0, when = { kind = ["b"], flag = true } }
"""
CONDITIONAL_FUNCTION = """
def f(p):
    assert p["seed"] == 3
    assert ("slope" in p) == (p["kind"] == "b" and p["flag"])
    return p["n"] / 16 + p.get("slope", 0.5)
"""
CONDITIONAL_PROGRAM = """
import sys
given = dict(word.split("=") for word in sys.argv[1:])
assert ("slope" in given) == (given["kind"] == "b" and given["flag"] == "true")
print(float(given["n"]) / 16 + float(given.get("slope", 0.5)))
"""


def test_conditions_defaults_and_every_kind(folder: Path) -> None:
    (folder / "space.toml").write_text(CONDITIONAL)
    (folder / "mine.py").write_text(CONDITIONAL_FUNCTION)
    (folder / "simulate.py").write_text(CONDITIONAL_PROGRAM)
    shared = ["--space", "space.toml", "--budget", "15", "--seed", "1"]
    program = f"{sys.executable} simulate.py kind={{kind}} n={{n}} flag={{flag}} seed={{seed}} slope={{slope}}"
    results = [
        mctsvs_run(folder, "mine.py:f", *shared, "--json", "0.json"),
        mctsvs_run(folder, *shared, "--command", program, "--json", "1.json"),
        mctsvs_run(folder, "mine.py:f", *shared, "--study", "run.db"),
    ]
    assert [result.returncode for result in results] == [0, 0, 0], [result.stderr for result in results]
    one, two = (json.loads((folder / f"{i}.json").read_text()) for i in range(2))
    assert one["values"] == two["values"]
    assert not one["failures"]
    assert one["values"][0] == 2.5  # the defaults
    words = [sys.executable, "-m", "mctsvs"]
    shown = subprocess.run([*words, "show", "run.db"], capture_output=True, text=True, cwd=folder)
    assert "seed=3" in shown.stdout, shown.stderr
    subprocess.run([*words, "export", "run.db", "table.csv"], check=True, capture_output=True, cwd=folder)
    rows = list(csv.DictReader((folder / "table.csv").read_text().splitlines()))
    assert [float(row["value"]) for row in rows] == one["values"]
    assert all((row["slope"] == "") == (row["kind"] == "a" or row["flag"] == "False") for row in rows)
