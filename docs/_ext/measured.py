"""The directive `measured`: rows of a table on a results page, so that a number is written once.

    ```{measured} results/benchmarks.md
    :problem: Hartmann6_500
    :methods: auto, bo-dsp, random
    :columns: method, seeds, at 100, at 200
    ```

takes the rows of that problem and those methods, those with most seeds where there are several. A row that is not there
is an error.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive, directives


def rows(page: Path) -> list[dict[str, str]]:
    """Of all tables of a page, each row by the names of its columns."""
    found: list[dict[str, str]] = []
    header: list[str] = []
    for line in page.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            header = []
        elif not header:
            header = cells
        elif set("".join(cells)) - set("-: "):
            found.append(dict(zip(header, cells, strict=False)))
    return found


def chosen(table: list[dict[str, str]], problem: str, methods: list[str]) -> list[dict[str, str]]:
    """The row of each method with most seeds."""
    here = [row for row in table if row.get("problem") == problem]
    found = []
    for method in methods:
        of = [row for row in here if row.get("method") == method]
        if not of:
            raise ValueError(f"no row of {method} on {problem}")
        found.append(max(of, key=lambda row: int(row.get("seeds", "0"))))
    return found


class Measured(Directive):
    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {
        "problem": directives.unchanged_required,
        "methods": directives.unchanged_required,
        "columns": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        env = self.state.document.settings.env
        page = Path(env.srcdir) / self.arguments[0]
        env.note_dependency(str(page))
        listed = {name: [part.strip() for part in text.split(",")] for name, text in self.options.items()}
        columns = listed["columns"]
        try:
            found = chosen(rows(page), self.options["problem"], listed["methods"])
        except ValueError as error:
            raise self.error(str(error)) from None
        return [_table(columns, [[row.get(column, "") for column in columns] for row in found])]


def _table(columns: list[str], body: list[list[str]]) -> nodes.table:
    group = nodes.tgroup("", *(nodes.colspec("", colwidth=1) for _ in columns), cols=len(columns))
    group += nodes.thead("", _row(columns))
    group += nodes.tbody("", *(_row(cells) for cells in body))
    return nodes.table("", group)


def _row(cells: list[str]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", cell)) for cell in cells))


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("measured", Measured)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
