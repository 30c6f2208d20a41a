"""The pages of results: every cell of every table, and the verdicts, are what their files of numbers give."""

from __future__ import annotations

import csv
import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from mctsvs.bench.paper import complexity, reproduce
from mctsvs.bench.paper import complexity as complexity_page
from mctsvs.bench.paper.entries import ENTRIES
from mctsvs.bench.paper.entry import PaperEntry
from mctsvs.bench.paper.page import Page
from mctsvs.bench.paper.page_head import Provenance
from mctsvs.bench.results import OURS, Numbers
from mctsvs.utils.validation import InputError

RESULTS = Path(__file__).parents[2] / "docs" / "results"
MEASURED = [entry for entry in ENTRIES.values() if entry.measure is not None]


@pytest.mark.parametrize("entry", MEASURED, ids=lambda entry: entry.name)
def test_a_page_is_its_numbers(entry: PaperEntry) -> None:
    page = Page.read(entry, RESULTS)
    text = (RESULTS / f"{entry.name}.md").read_text(encoding="utf-8")
    assert text.count("|") > 30, "a page has a table"
    assert page.text() == text
    assert f"`{page.main.command}`" in text


def test_the_page_of_complexity_is_its_numbers() -> None:
    with (RESULTS / "complexity.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    measured = [complexity.Measurement(r["what"], int(r["t"]), int(r["d"]), float(r["seconds"])) for r in rows]
    made = complexity_page.text(ENTRIES["complexity"], measured, Provenance("command"))
    text = (RESULTS / "complexity.md").read_text(encoding="utf-8")
    for line in made.splitlines():
        if line.startswith(("|", "- ")):
            assert line in text.splitlines()


def test_numbers_come_back_as_they_were_written(tmp_path: Path) -> None:
    for path in RESULTS.glob("*.csv"):
        if path.read_text().startswith("source,"):
            Numbers.read(path).write(tmp_path / path.name)
            assert (tmp_path / path.name).read_text() == path.read_text(), path.name


def test_a_changed_number_changes_the_page(tmp_path: Path) -> None:
    rows = Numbers.read(RESULTS / "k.csv").rows
    last = [row for row in rows if row[0] == OURS and row[3] == "evaluations" and row[4] == "600.0"]
    last[0][5] = "1.234"
    Numbers(rows).write(tmp_path / "k.csv")
    assert "1.234 ±" in Page.read(ENTRIES["k"], tmp_path).text()


def test_the_papers_settings_stand_beside_the_librarys(tmp_path: Path) -> None:
    for ending, command in (("", "mctsvs bench reproduce k"), ("-paper", "mctsvs bench reproduce k --paper")):
        numbers = Numbers.read(RESULTS / "k.csv")
        rows = [[row[0], command, *row[2:]] if row[0] == "made" else row for row in numbers.rows]
        Numbers(rows).write(tmp_path / f"k{ending}.csv")
    text = Page.read(ENTRIES["k"], tmp_path).text()
    assert "paper's settings, at 600" in text
    assert "Against the authors' runs with the paper's settings: " in text
    assert text.count("![") == 2


def test_pages_without_numbers_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no numbers of 'k': run mctsvs bench reproduce k first"):
        reproduce.page_of(ENTRIES["k"], tmp_path, reproduce.ReproductionResult())
    (tmp_path / "k.csv").write_text("a,b\n")
    with pytest.raises(InputError, match="holds no numbers of a page"):
        Page.read(ENTRIES["k"], tmp_path)


def test_every_page_names_its_command() -> None:
    for path in RESULTS.glob("*.md"):
        text = path.read_text(encoding="utf-8")
        if "|---" in text or "| ---" in text:
            assert re.search(r"mctsvs (reproduce|compare|run)|python benchmarks/", text), path.name


def test_the_page_of_draws_is_its_numbers() -> None:
    path = RESULTS.parents[1] / "benchmarks" / "sampling.py"
    spec = importlib.util.spec_from_file_location("sampling", path)
    assert spec is not None
    assert spec.loader is not None
    sampling: Any = importlib.util.module_from_spec(spec)
    sys.modules["sampling"] = sampling  # dataclasses look their module up
    spec.loader.exec_module(sampling)
    text = (RESULTS / "turbo-sampling.md").read_text(encoding="utf-8")
    with (RESULTS / "turbo-sampling.csv").open(newline="") as file:
        assert sampling.tables(list(csv.DictReader(file))) in text
    with (RESULTS / "turbo-small.csv").open(newline="") as file:
        assert sampling.small_table(list(csv.DictReader(file))) in text
    with (RESULTS / "turbo-draws.csv").open(newline="") as file:
        for row in list(csv.reader(file))[1:]:
            assert f"| {' | '.join(row)} |" in text
