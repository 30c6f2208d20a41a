"""Tables for papers: methods down, problems across, mean and standard error, the best in bold (booktabs)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from mctsvs.bench.results_csv import OURS, Numbers
from mctsvs.bench.stats import Summary
from mctsvs.bench.styles import written

if TYPE_CHECKING:
    from mctsvs.bench.paper.experiments import PaperEntry

Cells = Mapping[str, Mapping[str, Summary]]
"""Row -> problem -> value."""


def table(entry: PaperEntry, numbers: Numbers, paper: Numbers | None = None) -> str:
    """The last values of an entry, with the paper's settings below where there are any."""
    assert entry.measure is not None
    axis = entry.measure.axis
    cells: dict[str, dict[str, Summary]] = {}
    others = () if paper is None or paper is numbers else (paper,)
    for found in (numbers, *others):
        for case in entry.cases():
            name = written(case.label) + (" (paper's settings)" if found is paper and others else "")
            values = {p: found.at(OURS, p, case.label, axis) for p in entry.problems}
            if own := {p: value for p, value in values.items() if value is not None}:
                cells[name] = own
    return tabular(cells, entry.problems, {p: numbers.maximise(p) for p in entry.problems})


def tabular(
    cells: Cells,
    problems: Sequence[str],
    maximise: Mapping[str, bool],
    leading: Collection[tuple[str, str]] | None = None,
) -> str:
    """The table; the best mean on each problem is bold, of the (name, problem) in `leading` where that is given."""
    lines = [rf"\begin{{tabular}}{{l{'c' * len(problems)}}}", r"\toprule"]
    lines += [" & ".join(["Method", *map(plain, problems)]) + r" \\", r"\midrule"]
    best = {}
    for problem in problems:
        rows = [row for name, row in cells.items() if leading is None or (name, problem) in leading]
        means = [row[problem].mean for row in rows if problem in row and row[problem].n]
        best[problem] = (max if maximise.get(problem, True) else min)(means, default=float("nan"))
    for name, row in cells.items():
        shown = [_cell(row.get(problem), best[problem]) for problem in problems]
        lines.append(" & ".join([plain(name), *shown]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _cell(value: Summary | None, best: float) -> str:
    if value is None:
        return "--"
    mean, _, error = str(value).partition(" ± ")
    mean = rf"\mathbf{{{mean}}}" if value.mean == best else mean
    return f"${mean.replace(',', '{,}')}" + (rf" \pm {error.replace(',', '{,}')}$" if error else "$")


def plain(text: str) -> str:
    """Words with nothing in them that LaTeX would take for a command; formulas stay."""
    parts = text.split("$")
    escaped = [part.replace("_", r"\_").replace("%", r"\%").replace("&", r"\&") for part in parts[::2]]
    parts[::2] = escaped
    return "$".join(parts)


def of_comparison(
    every: Mapping[str, Mapping[str, Summary]],
    maximise: Mapping[str, bool],
    leading: Collection[tuple[str, str]] | None = None,
) -> str:
    """Of a comparison: method -> problem -> value."""
    problems = list(dict.fromkeys(problem for row in every.values() for problem in row))
    first = None if leading is None else {(written(label), problem) for label, problem in leading}
    return tabular({written(label): row for label, row in every.items()}, problems, maximise, first)
