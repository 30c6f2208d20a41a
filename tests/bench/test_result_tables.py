"""The pages that benchmarks made: every cell of every table is what its file of runs gives."""

from __future__ import annotations

import importlib
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from mctsvs.bench.paper import page_head
from mctsvs.bench.paper.entries import ENTRIES
from mctsvs.cli import main

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(ROOT / "benchmarks")
    tables: Any = importlib.import_module("tables")
    peers: Any = importlib.import_module("peers")

OLD = "runs of 15 November 2026, of which only these numbers were kept"
SECONDS = "seconds and counts of one run, printed by its command"
BY_HAND: dict[str, dict[str, str]] = {  # page -> how the table without a file of runs begins -> why it has none
    "ablation": {
        "in place of nine points all over the cube | six of 60": "of prototypes, which were not kept",
        "turns of lengthscales where all variables matter (nine runs; eight runs) | Rosenbrock60 after 100": "likewise",
        "problem, budget (runs) | as before": "likewise",
        "problem | method": "of version 0.1, whose runs were not kept",
    },
    "choices": {
        "| minus the best value": "of versions of TuRBO that are gone",
        "pure noise, auto | runs": "counts, printed by benchmarks/relevance.py",
        "auto, 300 evaluations, 5 runs | of those that matter": "likewise",
        "problem, evaluations | seed": "lists of variables",
        "normaliser | random search, problem's seed 0; seed 1": "of versions of a problem that are gone",
    },
    "coco": {},
    "isotropic": {"in place of | difference": "of prototypes, which were not kept"},
    "peers": {"problem | method": f"other methods and version 0.1: {OLD}"},
    "real": {},
    "rivals": {
        "| runs": f"variants of LA-MCTS: {OLD}",
        "| Levy10_100": "likewise",
        "what | measured": "single runs",
    },
    "slips": {},
    "spaces": {
        "method | proposals outside": "counts and ratios of seconds, printed by benchmarks/simplex.py",
        "processor seconds | now": "ratios of seconds, printed by benchmarks/speed.py",
        "problem | runs": "pairs of ends of one run, printed by benchmarks/replicates.py",
        "| 50": "one run each of versions of the search that are gone",
        "function | 1": "one run each of versions of the search that are gone",
    },
    "speed": {"part | what": SECONDS, "run | live display on a terminal": SECONDS, "part | what ": SECONDS},
    "study": {"what | measured": SECONDS},
}
OTHERS = {"README", "complexity", "turbo-sampling", *(name for name, entry in ENTRIES.items() if entry.measure)}
"""Pages whose tables test_pages.py makes again, and the index, whose table `mctsvs bench reproduce` makes of them."""
HEADER = re.compile(r"^\| *([^|]*\|[^|]*?) *\|.*\n\|[ -]*-", re.MULTILINE)


@pytest.mark.parametrize("page", BY_HAND)
def test_every_table_is_its_runs(page: str) -> None:
    assert tables.differing(RESULTS / f"{page}.md") == []


@pytest.mark.parametrize("page", BY_HAND)
def test_tables_without_runs_are_known(page: str) -> None:
    rest = tables.BLOCK.sub("", (RESULTS / f"{page}.md").read_text(encoding="utf-8"))
    assert "<!-- table" not in rest, "a mark that is not closed"
    assert [cell.strip() for cell in HEADER.findall(rest)] == [known.strip() for known in BY_HAND[page]]


def test_every_page_with_a_table_is_checked() -> None:
    pages = {page.stem for page in RESULTS.glob("*.md") if HEADER.search(page.read_text(encoding="utf-8"))}
    assert pages == {*BY_HAND, *OTHERS}


def test_every_file_of_runs_is_shown() -> None:
    pages = {page.stem: page.read_text(encoding="utf-8") for page in RESULTS.glob("*.md")}
    marks = {name: [found[1] for found in tables.BLOCK.finditer(text)] for name, text in pages.items()}
    shown = {mark.split()[1] for found in marks.values() for mark in found}
    assert shown == {path.name for path in (RESULTS / "tables").iterdir()}


def test_the_index_is_what_its_pages_say(tmp_path: Path) -> None:
    for path in RESULTS.glob("*.md"):
        shutil.copy(path, tmp_path)
    page_head.index(tmp_path, ENTRIES)
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == (RESULTS / "README.md").read_text(encoding="utf-8")


def test_the_defaults_line_of_the_readme_is_its_runs() -> None:
    head, _, line, optimum = peers.headline(tables.rows.read(RESULTS / "tables" / "peers.csv")).splitlines()
    shown = [row.rstrip(" |") for row in (ROOT / "README.md").read_text(encoding="utf-8").splitlines()]
    assert line.startswith("| **auto** |")
    assert {row.rstrip(" |") for row in (head, line, optimum)} <= set(shown)


def test_a_changed_cell_is_caught_and_mended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(RESULTS / "tables", tmp_path / "tables")
    whole = (RESULTS / "coco.md").read_text(encoding="utf-8")
    page = tmp_path / "coco.md"
    page.write_text(re.sub(r"(?<=\| auto \| )\d", "9", whole, count=1), encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["tables.py", "write", str(page), "--check"])
    with pytest.raises(SystemExit, match=r"coco.md: ranks .* is not what its runs give"):
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
    assert [cells[:8] + cells[9:] for cells in one] == [cells[:8] + cells[9:] for cells in other]  # recall is not kept


def test_runs_of_one_method_done_again_leave_the_others_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["bench", "compare", "Hartmann6_20", "--methods", "random,mcts-vs-rs", "--seeds", "1-3", "--budget", "20"]
    assert main([*words, "-o", str(tmp_path), "--workers", "1"]) == 0
    assert main([*words[:3], "random", *words[4:], "-o", str(tmp_path / "again"), "--workers", "1"]) == 0
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
