"""Pages of the paper's experiments are made of their numbers alone, those in docs/results/paper."""

from __future__ import annotations

from pathlib import Path

import pytest

from mctsvs.bench.paper import reproduce
from mctsvs.bench.paper.experiments import ENTRIES, PaperEntry
from mctsvs.bench.paper.page import Page
from mctsvs.bench.results import OURS, Numbers
from mctsvs.utils.validation import InputError

NUMBERS = Path(__file__).parents[2] / "docs" / "results" / "paper"


@pytest.mark.docs
@pytest.mark.parametrize("entry", ENTRIES.values(), ids=lambda entry: entry.name)
def test_the_numbers_of_an_experiment_make_its_page(entry: PaperEntry) -> None:
    page = Page.read(entry, NUMBERS)
    text = page.text()
    assert text.count("|") > 30, "a page has a table"
    assert text.splitlines()[2].startswith(f"![{entry.about.title}]({entry.name}"), "the figure comes first"
    assert f"`{page.main.command}`" in text
    assert page.main.command.startswith(f"mctsvs bench reproduce {entry.name}")


@pytest.mark.docs
def test_every_file_of_numbers_belongs_to_an_experiment() -> None:
    stems = {path.stem.removesuffix("-seeds").removesuffix("-paper") for path in NUMBERS.glob("*.csv")}
    assert stems == set(ENTRIES)


def test_numbers_come_back_as_they_were_written(tmp_path: Path) -> None:
    for path in NUMBERS.glob("*.csv"):
        if path.read_text().startswith("source,"):
            Numbers.read(path).write(tmp_path / path.name)
            assert (tmp_path / path.name).read_text() == path.read_text(), path.name


def test_a_changed_number_changes_the_page(tmp_path: Path) -> None:
    rows = Numbers.read(NUMBERS / "k.csv").rows
    last = [row for row in rows if row[0] == OURS and row[3] == "evaluations" and row[4] == "600.0"]
    last[0][5] = "1.234"
    Numbers(rows).write(tmp_path / "k.csv")
    assert "1.234 ±" in Page.read(ENTRIES["k"], tmp_path).text()


def test_the_papers_settings_stand_beside_the_librarys(tmp_path: Path) -> None:
    for ending, command in (("", "mctsvs bench reproduce k"), ("-paper", "mctsvs bench reproduce k --paper")):
        numbers = Numbers.read(NUMBERS / "k.csv")
        rows = [[row[0], command, *row[2:]] if row[0] == "made" else row for row in numbers.rows]
        Numbers(rows).write(tmp_path / f"k{ending}.csv")
    text = Page.read(ENTRIES["k"], tmp_path).text()
    assert "paper's settings, at 600" in text
    assert "Against the authors' runs, with the paper's settings: " in text
    assert text.count("![") == 2


def test_pages_without_numbers_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no numbers of 'k': run mctsvs bench reproduce k first"):
        reproduce.page_of(ENTRIES["k"], tmp_path, reproduce.ReproductionResult())
    (tmp_path / "k.csv").write_text("a,b\n")
    with pytest.raises(InputError, match="holds no numbers of a page"):
        Page.read(ENTRIES["k"], tmp_path)
