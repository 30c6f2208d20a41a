"""The pages that benchmarks made: every cell of every table is what its file of runs gives."""

from __future__ import annotations

import importlib
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from mctsvs.cli import main

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(ROOT / "benchmarks")
    tables: Any = importlib.import_module("tables")
    drawings: Any = importlib.import_module("drawings")

PRINTED = "seconds and counts, printed by the command above the table"
TRIED = "of prototypes, which were not kept"
WORDS = "it has no numbers"
BY_HAND: dict[str, dict[str, str]] = {  # page -> first column of a table without a file of runs -> why it has none
    "ablation": {"part": WORDS},
    "benchmarks": {"problems": WORDS, "method": PRINTED},
    "notes": {
        "date": TRIED,
        "method": WORDS,
        "points at once": "runs of four commands, on one problem",
    },
    "paper": {"claim of the paper": WORDS, "what": "estimates, from recorded seconds"},
    "reliability": {"accident": WORDS, "what": PRINTED, "package": PRINTED},
    "speed": {"part": PRINTED, "run": PRINTED},
    "statements": {"family": PRINTED, "functions": PRINTED, "function": PRINTED},
}
HEADER = re.compile(r"^\| *([^|]*?) *\|.*\n\|[ -]*-", re.MULTILINE)
MOST_WORDS = 600  # of a page, without its tables and commands


def text_of(page: str) -> str:
    return (RESULTS / f"{page}.md").read_text(encoding="utf-8")


@pytest.mark.docs
@pytest.mark.parametrize("page", BY_HAND)
def test_every_table_is_its_runs(page: str) -> None:
    assert tables.differing(RESULTS / f"{page}.md") == []


@pytest.mark.docs
@pytest.mark.parametrize("page", BY_HAND)
def test_tables_without_runs_are_known(page: str) -> None:
    rest = tables.BLOCK.sub("", text_of(page))
    assert "<!-- table" not in rest, "a mark that is not closed"
    assert set(HEADER.findall(rest)) == set(BY_HAND[page])


@pytest.mark.docs
@pytest.mark.parametrize("page", BY_HAND)
def test_a_page_is_short_and_names_its_commands(page: str) -> None:
    text = text_of(page)
    assert re.search(r"mctsvs bench|python benchmarks/", text)
    prose = re.sub(r"```.*?```|^[|<].*?$", "", text, flags=re.DOTALL | re.MULTILINE)
    assert len(prose.split()) <= MOST_WORDS


@pytest.mark.docs
def test_every_page_is_checked() -> None:
    assert {page.stem for page in RESULTS.glob("*.md")} == set(BY_HAND)


@pytest.mark.docs
def test_every_file_of_runs_is_shown() -> None:
    shown = {
        words[1]
        for page in BY_HAND
        for mark, _ in tables.BLOCK.findall(text_of(page))
        if len(words := mark.split()) > 1
    }
    assert shown == {path.name for path in (RESULTS / "tables").iterdir()}


@pytest.mark.docs
def test_every_figure_of_a_page_is_drawn() -> None:
    shown = {name for page in BY_HAND for name in re.findall(r"build/figures/([\w-]+)\.png", text_of(page))}
    assert shown - {"isotropic"} == set(drawings.DRAWINGS)


@pytest.mark.docs
def test_the_table_of_the_readme_is_its_runs() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert tables.PEERS.findall(readme) == [f"{tables.headline(RESULTS / 'tables')}\n"]


@pytest.mark.needs("matplotlib")
def test_figures_are_drawn_from_files_of_runs(tmp_path: Path) -> None:
    for name in ("synthetic", "parts", "seconds"):
        assert all(path.stat().st_size for path in drawings.DRAWINGS[name](tmp_path / name))


def test_a_changed_cell_is_caught_and_mended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(RESULTS / "tables", tmp_path / "tables")
    whole = text_of("benchmarks")
    page = tmp_path / "benchmarks.md"
    page.write_text(re.sub(r"(?<=\| auto \| )\d", "9", whole, count=1), encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["tables.py", "write", str(page), "--check"])
    with pytest.raises(SystemExit, match=r"benchmarks.md: ranks .* is not what its runs give"):
        tables.main()
    monkeypatch.setattr("sys.argv", ["tables.py", "write", str(page)])
    tables.main()
    assert page.read_text(encoding="utf-8") == whole


def test_stored_runs_make_the_table_that_compare_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["bench", "compare", "Hartmann6_20", "--methods", "random,mcts-vs-rs", "--seeds", "1-3", "--budget", "20"]
    assert main([*words, "-o", str(tmp_path), "--workers", "1"]) == 0
    file = tmp_path / "tables" / "own.csv"
    words = [str(tmp_path / "runs"), "--to", str(file), "--at", "20", "--methods", "random", "mcts-vs-rs", "--wall"]
    monkeypatch.setattr("sys.argv", ["tables.py", "collect", *words])
    tables.main()
    assert file.read_text().startswith("problem,method,seed,budget,ms,20\nHartmann6_20,random,1,20,")
    made = tables.computed("compare own.csv problem=Hartmann6_20", tmp_path)
    shown = (tmp_path / "summary.md").read_text(encoding="utf-8")
    one, other = ([line.split(" | ") for line in text.splitlines() if line.startswith("| ")] for text in (made, shown))
    assert len(one) == 4
    recall = one[0].index("recall")  # which is not kept
    assert [cells[:recall] + cells[recall + 1 :] for cells in one] == [
        cells[:recall] + cells[recall + 1 :] for cells in other
    ]


def test_runs_of_one_method_done_again_leave_the_others_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["bench", "compare", "Hartmann6_20", "--methods", "random,mcts-vs-rs", "--seeds", "1-3", "--budget", "20"]
    assert main([*words, "-o", str(tmp_path), "--workers", "1"]) == 0
    assert main([*words[:4], "random", *words[5:], "-o", str(tmp_path / "again"), "--workers", "1"]) == 0
    file = tmp_path / "own.csv"

    def collect(store: Path, *words: str) -> Any:
        monkeypatch.setattr("sys.argv", ["tables.py", "collect", str(store), "--to", str(file), "--at", "20", *words])
        tables.main()
        return tables.rows.read(file)

    before = collect(tmp_path / "runs", "--methods", "random", "mcts-vs-rs")
    after = collect(tmp_path / "again" / "runs", "--methods", "random", "--add")
    assert [(run.method, run.seed, run.at) for run in after] == [(run.method, run.seed, run.at) for run in before]
    assert [run.ms for run in after[3:]] == [run.ms for run in before[3:]]
    with pytest.raises(SystemExit, match=r"has values at \[20\]: give them as --at"):
        collect(tmp_path / "again" / "runs", "--at", "10", "--add")
    assert len(collect(tmp_path / "again" / "runs")) == 3


def test_runs_without_a_feasible_value(tmp_path: Path) -> None:
    for seed, trace in enumerate([[None, 3.0, 2.0, 2.0], [None, None, None, 1.0]]):
        run = {"problem": "own", "method": "m", "seed": seed, "trace": trace, "cpu": 0.02}
        (tmp_path / f"{seed}.json").write_text(json.dumps(run))
    runs = tables.rows.finished(tmp_path, [2, 4])
    tables.rows.write(runs, tmp_path / "own.csv")
    assert (tmp_path / "own.csv").read_text().splitlines()[1:] == ["own,m,0,4,5,2.0,3.0,2.0", "own,m,1,4,5,4.0,,1.0"]
    expected = "| m | 2 | 4 | 1 of 2 feasible | 1.50 ± 0.50 | 5 |"
    assert tables.first(tables.rows.read(tmp_path / "own.csv")).splitlines()[-1] == expected
