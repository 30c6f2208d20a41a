"""`mctsvs run --study`, resume, show, export and salvage, as a user runs them."""

from __future__ import annotations

import csv
import hashlib
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from mctsvs import Study
from mctsvs.bench.problems import data
from mctsvs.cli import main


def arguments(path: Path, *more: str) -> list[str]:
    return [
        "bench",
        "run",
        "Hartmann6_20",
        "--method",
        "mcts-vs-rs",
        "--seed",
        "5",
        "--study",
        str(path),
        "--quiet",
        *more,
    ]


def trials(path: Path) -> list[tuple[int, bytes, float | None]]:
    with Study(path, readonly=True) as study:
        return [(t.number, t.unit.tobytes(), t.value) for t in study.trials]


def test_run_resume_show_export(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole, parts = tmp_path / "whole.db", tmp_path / "parts.db"
    variation = ["--shuffle", "--noise", "0.1"]
    assert main(arguments(whole, "--budget", "40", *variation)) == 0
    assert main(arguments(parts, "--budget", "15", *variation)) == 0
    assert main(arguments(parts, "--budget", "15", *variation)) == 0, "the same command on a finished run"
    assert main(["resume", str(parts), "--budget", "30"]) == 0
    assert main(arguments(parts, "--budget", "40", *variation)) == 0
    assert trials(parts) == trials(whole)
    capsys.readouterr()
    assert main(["show", str(parts)]) == 0
    printed = capsys.readouterr().out
    for words in ("Hartmann6_20, 20 variables, maximize", "mcts-vs-rs, seed 5", "best value", "evaluations     40"):
        assert words in printed
    table = tmp_path / "trials.csv"
    assert main(["export", str(parts), str(table)]) == 0
    with table.open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["value"]) for row in rows] == [value for _, _, value in trials(whole)]
    assert main(["salvage", str(parts), str(tmp_path / "saved.db")]) == 0
    assert trials(tmp_path / "saved.db") == trials(whole)


def test_workers_give_the_run_of_their_batch(tmp_path: Path) -> None:
    for name in ("a", "b"):
        assert main(arguments(tmp_path / name, "--budget", "20", "--workers", "2", "--timeout", "60")) == 0
    assert trials(tmp_path / "a") == trials(tmp_path / "b")
    assert main(arguments(tmp_path / "c", "--budget", "20", "--workers", "2", "--asynchronous")) == 0
    assert len(trials(tmp_path / "c")) == 20


def test_a_study_of_measured_data_finds_it_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, path = tmp_path / "data" / "nasbench_macro", tmp_path / "s.db"
    folder.mkdir(parents=True)
    np.savez(folder / "nasbench_macro.npz", mean_acc=np.linspace(50, 90, 3**8))
    checksum = hashlib.sha256((folder / "nasbench_macro.npz").read_bytes()).hexdigest()
    (folder / "SHA256SUMS").write_text(f"{checksum}  nasbench_macro.npz\n")
    monkeypatch.setenv("MCTSVS_DATA", "")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("MCTSVS_DATA_CHOSEN", "")
    there = ["--data", str(tmp_path / "data")]
    assert (
        main(["bench", "run", "NASBenchMacro", "--method", "random", "--budget", "3", "--study", str(path), *there])
        == 0
    )
    assert main(["resume", str(path), "--budget", "5", *there]) == 0
    data.set_directory(None)
    data.forget()
    capsys.readouterr()
    assert main(["resume", str(path), "--budget", "6"]) == 2
    assert "the data set 'nasbench_macro' is not in" in capsys.readouterr().err
    assert main(["show", str(path)]) == 0, "what was measured can be seen without the data"
    shown = capsys.readouterr()
    assert "evaluations     5" in shown.out
    assert "the data set 'nasbench_macro' is not in" in shown.err
    assert main(["show", str(path), *there]) == 0
    assert "(optimum 0.9)" in capsys.readouterr().out
    data.forget()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_says_how_to_go_on(number: signal.Signals, tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    command = [sys.executable, "-m", "mctsvs", *arguments(path, "--budget", "100000")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not path.exists() or len(trials(path)) < 20:
        time.sleep(0.05)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "stopped after" in errors
    assert "best value" in errors
    assert f"mctsvs resume {path}" in errors
    assert "Traceback" not in errors
    done = len(trials(path))
    assert main(["resume", str(path), "--budget", str(done + 5)]) == 0
    with Study(path, readonly=True) as study:
        assert study.evaluated == done + 5


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--method", "bo"], "method is 'mcts-vs-rs', not 'bo'"),
        (["--seed", "6"], "seed is 5, not 6"),
        (["--shuffle"], "another variation"),
        (["--json", "x.json"], "mctsvs export"),
        (["--budget", "0"], "budget=0 cannot be used"),
        (["--budget", "30", "--workers", "0"], "workers=0"),
        pytest.param(
            ["--budget", "30", "--dask", "nonsense://nowhere"],
            "cannot reach the Dask scheduler",
            marks=pytest.mark.needs("distributed"),
        ),
    ],
)
def test_bad_input_is_one_sentence(
    more: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.db"
    assert main(arguments(path, "--budget", "5")) == 0
    assert main(arguments(path, *more)) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("name", ["dask", "ray"])
def test_a_strangers_file_connects_to_no_cluster(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.db"
    assert main(arguments(path, "--budget", "5")) == 0
    with Study(path) as study:
        study.set_user_attr("command", {**study.user_attrs["command"], name: "tcp://stranger:8786", "budget": 8})
    assert main(["resume", str(path)]) == 2
    said = capsys.readouterr().err
    assert f"was run with --{name} tcp://stranger:8786, which is repeated only if you ask for it" in said
    assert said.count("\n") == 1
    assert main(["resume", str(path), "--workers", "1"]) == 0
    assert len(trials(path)) == 8


def test_other_mistakes_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "text.db"
    text.write_text("no study")
    with Study(tmp_path / "python.db", [(0, 1)] * 3) as study:
        study.optimize(lambda x: float(np.sum(x)), 3)
    for command, words in (
        (["resume", str(tmp_path / "none.db")], "there is no study"),
        (["show", str(tmp_path / "none.db")], "there is no such file"),
        (["show", str(text)], "not a study"),
        (["resume", str(tmp_path / "python.db")], "cannot load its objective"),
        (["export", str(tmp_path / "python.db"), str(tmp_path / "x.txt")], ".csv or .parquet"),
        (["bench", "run", "Hartmann6_20", "--asynchronous"], "--asynchronous needs --study"),
        (["salvage", str(tmp_path / "python.db"), str(text)], "exists already"),
    ):
        assert main(command) == 2
        said = capsys.readouterr().err
        assert words in said
        assert said.count("\n") == 1
    assert main(["show", str(tmp_path / "python.db")]) == 0
