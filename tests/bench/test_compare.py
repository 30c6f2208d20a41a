"""`mctsvs bench compare` when something is in the way: another command, Ctrl-C, a taken name, nothing feasible."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from mctsvs.bench import commands, comparison
from mctsvs.bench.algorithms import ConfiguredMethod
from mctsvs.bench.run_store import Runs
from mctsvs.cli import main
from mctsvs.methods import registry

SMALL = [
    "bench",
    "compare",
    "Hartmann6_20",
    "--methods",
    "random,mcts-vs-rs",
    "--seeds",
    "1",
    "--budget",
    "8",
    "--workers",
    "1",
]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes started here are ended, however the test ends."""
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.communicate()


def command(*arguments: str, path: Path | None = None) -> subprocess.Popen[str]:
    """The command as its own process; `path` is looked at first for modules."""
    places = [str(path)] if path else []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*places, *filter(None, sys.path)])}
    return subprocess.Popen(
        [sys.executable, "-m", "mctsvs", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def first_line(process: subprocess.Popen[str]) -> str:
    """Of its errors, within a minute."""
    assert process.stderr is not None
    readable, _, _ = select.select([process.stderr], [], [], 60)
    return process.stderr.readline() if readable else "nothing"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_two_commands_in_one_folder_write_one_after_the_other(
    tmp_path: Path, start: list[subprocess.Popen[str]]
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    os.mkfifo(out / "summary.md")  # whoever writes it waits until it is read
    start.append(command(*SMALL, "-o", str(out)))
    assert first_line(start[0]).startswith("1/2 ")
    start.append(command(*SMALL, "-o", str(out)))
    assert first_line(start[1]) == f"mctsvs: waiting for another comparison in {str(out / 'runs')!r}\n"
    for process, counts in zip(start, ("2 runs done now, 0 before", "0 runs done now, 2 before"), strict=True):
        assert (out / "summary.md").read_text().startswith("# Hartmann6_20")
        printed, _ = process.communicate()
        assert process.returncode == 0
        assert counts in printed
    assert len((out / "results.csv").read_text().splitlines()) == 1 + 2 * 8
    assert not list(out.rglob("*.partial"))


def test_stopped_by_hand_it_says_that_nothing_is_lost(tmp_path: Path, start: list[subprocess.Popen[str]]) -> None:
    many = [
        "bench",
        "compare",
        "Hartmann6_20",
        "--methods",
        "random",
        "--seeds",
        "1-1000",
        "--budget",
        "50",
        "--workers",
        "1",
    ]
    start.append(command(*many, "-o", str(tmp_path)))
    assert first_line(start[0]).startswith("1/1000 ")
    start[0].send_signal(signal.SIGINT)
    _, errors = start[0].communicate()
    assert start[0].returncode == 130
    assert errors.splitlines()[-1] == "mctsvs: stopped; finished runs are kept, and the same command goes on"


def test_a_missing_pyarrow_is_noticed_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "pyarrow.py").write_text("raise ImportError\n")
    process = command(*SMALL, "--format", "parquet", "-o", str(tmp_path / "out"), path=tmp_path)
    _, errors = process.communicate()
    assert process.returncode == 2
    assert errors == "mctsvs: a Parquet table needs pyarrow, not installed here: pip install 'mctsvs[pandas]'\n"
    assert not list((tmp_path / "out" / "runs").glob("*.gz"))


@pytest.mark.parametrize("taken", ["results.csv", "runs/.lock", "runs/workers.log"])
def test_a_name_that_is_taken_is_one_sentence(taken: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / taken).mkdir(parents=True)
    assert main([*SMALL, "-o", str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"mctsvs: cannot write {str(tmp_path / taken)!r}: ")
    assert not list(tmp_path.rglob("*.gz"))


def test_the_summary_says_where_it_comes_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*SMALL, "--paper", "--reference", "mcts-vs-rs", "-o", str(tmp_path)]
    assert main(arguments) == 0
    runs = sorted((tmp_path / "runs").glob("*.gz"))
    for day, path in enumerate(runs):
        noon = time.mktime((2022, 11, 27 + day, 12, 0, 0, 0, 0, -1))
        os.utime(path, (noon, noon))
    assert main(arguments) == 0
    text = (tmp_path / "summary.md").read_text()
    assert "`mctsvs bench compare Hartmann6_20 --methods random,mcts-vs-rs --seeds 1 --budget 8 --paper" in text
    assert "last run of 2022-11-28" in text
    assert "several versions" not in text
    assert "Wilcoxon" in text
    row = next(line for line in text.splitlines() if line.startswith("| mcts-vs-rs[paper]"))
    assert row.split("|")[5].strip() == ""  # the reference has no mark


@pytest.mark.needs("matplotlib")
def test_one_damaged_run_costs_one_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "-o", str(tmp_path)]) == 0
    path = sorted((tmp_path / "runs").glob("*.gz"))[0]
    path.write_bytes(path.read_bytes()[:20] + b"???" + path.read_bytes()[23:])
    capsys.readouterr()
    assert main([*SMALL, "--quiet", "-o", str(tmp_path)]) == 0
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert line == f"mctsvs: {str(path)!r} is damaged: it is now {path.name}.damaged, and the run is done again"
    assert "1 runs done now, 1 before" in captured.out


def runs_ending_with(*final: float) -> Runs:
    column = np.array(final)[:, None]
    nothing = np.zeros_like(column)
    return Runs(
        seeds=tuple(range(len(final))),
        best=column,
        thinking=nothing,
        elapsed=nothing,
        recall=nothing[:, 0],
        cpu=nothing[:, 0],
        maximise=False,
    )


def test_too_few_seeds_for_any_mark_are_named_and_p_values_are_printed() -> None:
    bo, random = ConfiguredMethod("bo"), ConfiguredMethod("random")

    def summary(seeds: int) -> str:
        ahead = np.arange(1.0, seeds + 1)
        return comparison.summary({("p", bo): runs_ending_with(*-ahead), ("p", random): runs_ending_with(*ahead)})

    said = "No difference can be significant: with 5 seeds in common, p is at least 0.062; 6 are needed, and 10 are"
    assert said in summary(5)
    assert "| ≈ | 0.062 | ≈ |" in summary(5)
    assert "No difference can be significant" not in summary(6)
    assert "| + | 0.031 | + |" in summary(6)


def test_as_many_seeds_are_compared_by_default_as_a_difference_needs() -> None:
    arguments = commands.parser().parse_args(["compare", "Levy10_20"])
    assert len(commands.seeds(arguments.seeds)) == 10
    assert registry.DEFAULT in arguments.methods.split(",")


def test_more_feasible_runs_are_the_better_rank() -> None:
    lucky, steady, never = ConfiguredMethod("random"), ConfiguredMethod("bo"), ConfiguredMethod("turbo")
    every = {
        ("p", lucky): runs_ending_with(0.1, np.nan),
        ("p", never): runs_ending_with(np.nan, np.nan),
        ("p", steady): runs_ending_with(0.5, 0.7),
    }
    assert comparison.places(comparison.by_problem(every)["p"]) == {"bo": 1.0, "random": 2.0, "turbo": 3.0}
    text = comparison.summary(every)
    assert (
        "Runs that found a feasible value, of which alone are the means: random 1 of 2, turbo 0 of 2, bo 2 of 2."
        in text
    )
    assert "| random | 1 of 2 | 0.100 |" in text
    assert "| bo | 2 | 0.600 ± 0.100 |" in text
    bold = [line for line in comparison.latex_table(every).splitlines() if "mathbf" in line]
    assert len(bold) == 1
    assert "0.600" in bold[0]
    everywhere = {(p, case): runs for p in ("p", "q", "r") for (_, case), runs in every.items()}
    ranked = comparison.ranked(everywhere)
    assert ranked is not None
    assert list(ranked.ranks) == ["bo", "random", "turbo"]


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_where_no_run_is_feasible_the_summary_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text("space = [(0, 1)] * 2\ndef f(x):\n    return x[0], {'g': 1.0 + x[0]}\n")
    words = ["--methods", "random,mcts-vs-rs", "--seeds", "1,2", "--budget", "3", "--workers", "1", "--quiet"]
    assert main(["bench", "compare", "own.py:f", *words, "-o", "out"]) == 0
    printed = capsys.readouterr().out
    assert "No run found a feasible value: the ranks say nothing." in printed
    assert "| random | 0 of 2 | – | – |" in printed
