"""Pages: links that lead somewhere, tables taken from results, docstrings as the site reads them."""

from __future__ import annotations

import importlib.util
import os
import re
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

pytestmark = pytest.mark.docs

ROOT = Path(__file__).parents[1]
MADE = ROOT / "docs" / "results" / "paper"  # pages there are made when the site is built
PAGES = [*ROOT.glob("*.md"), *(ROOT / "examples").rglob("*.md"), *(ROOT / "docs").rglob("*.md")]
PAGES = [page for page in PAGES if page.parent != MADE]
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")


def extension(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "_ext" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_links_lead_to_files() -> None:
    lost = []
    for page in PAGES:
        text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(), flags=re.DOTALL)
        lost += [f"{page.name}: {link}" for link in LINK.findall(text) if not (page.parent / link).exists()]
    assert lost == []


def test_every_page_is_in_the_site() -> None:
    listed = (ROOT / "docs" / "index.md").read_text()
    pages = {page.stem for page in (ROOT / "docs").glob("*.md")} - {"index"}
    assert pages <= set(re.findall(r"^([\w-]+)$", listed, re.MULTILINE))


@pytest.mark.needs("docutils")
def test_measured_rows_are_those_of_most_seeds(tmp_path: Path) -> None:
    measured = extension("measured")
    page = tmp_path / "page.md"
    page.write_text(
        "| problem | method | seeds |\n|---|---|---|\n| P | a | 3 |\n| P | a | 10 |\n| Q | a | 20 |\n\ntext\n"
    )
    table = measured.rows(page)
    assert measured.chosen(table, "P", ["a"]) == [{"problem": "P", "method": "a", "seeds": "10"}]
    with pytest.raises(ValueError, match="no row of b on P"):
        measured.chosen(table, "P", ["b"])


def test_docstrings_as_they_are_written_here() -> None:
    lines = ["Sentence with `code`.", "", "space   a list", "        of pairs", "seed    a number", "", ">>> f(x)"]
    extension("docstrings").rewrite(None, "", "", None, None, lines)
    assert lines == [
        "Sentence with ``code``.",
        "",
        *("``space``", "    a list of pairs", "``seed``", "    a number", ""),
        *(">>> f(x)", ""),
    ]


def test_what_is_newer_than_its_numbers_is_not_drawn_again(tmp_path: Path) -> None:
    drawn, numbers, picture = extension("drawn"), tmp_path / "a.csv", tmp_path / "a.png"
    numbers.touch()
    assert drawn.stale(picture, [numbers])
    picture.touch()
    os.utime(numbers, (1.0, 1.0))
    assert not drawn.stale(picture, [numbers])
    os.utime(picture, (0.5, 0.5))
    assert drawn.stale(picture, [numbers])


def test_names_of_experiments_in_tables_lead_to_their_pages(tmp_path: Path) -> None:
    made = tmp_path / "results" / "paper" / "n-bad.md"
    made.parent.mkdir(parents=True)
    made.touch()
    source = ["text `n-bad`\n| `n-bad` | `n` |"]
    extension("drawn").link_experiments(SimpleNamespace(srcdir=tmp_path), "results/paper", source)
    assert source == ["text `n-bad`\n| [`n-bad`](paper/n-bad.md) | `n` |"]
