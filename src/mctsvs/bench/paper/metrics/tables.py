"""The paper's tables: seconds, recall, and the tests of significance.

The regret: that of all selectors together, and for each its regret beside the terms of the bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mctsvs.bench import figures, stats
from mctsvs.bench.algorithms import ConfiguredMethod
from mctsvs.bench.comparison import markdown_table
from mctsvs.bench.paper.author_logs import AuthorRuns
from mctsvs.bench.paper.metrics.base import Dots, Metric
from mctsvs.bench.results import OURS, PRINTED, THEIRS, Numbers, Row, short
from mctsvs.bench.run_store import Runs
from mctsvs.bench.stats import Summary, number
from mctsvs.bench.styles import written

if TYPE_CHECKING:
    from mctsvs.bench.paper.entry import PaperEntry
    from mctsvs.bench.paper.page import Found, Page


CODES: Mapping[str, int] = {stats.BETTER: 1, stats.LEVEL: 0, stats.WORSE: -1}
SIGNS = {code: sign for sign, code in CODES.items()}
"""How marks are written among numbers."""


@dataclass(frozen=True)
class Seconds(Dots):
    """Processor seconds of asking and telling, and their ratio to the reference's."""

    reference: ConfiguredMethod
    axis = "seconds"
    scale = figures.DotScale(logarithmic=True)

    def title(self, budget: int) -> str:
        return f"processor seconds of {budget} evaluations"

    def of(self, runs: Runs) -> Summary:
        return stats.summary(runs.cpu)

    def of_theirs(self, their: AuthorRuns, evaluations: int) -> Summary:
        return their.seconds(evaluations)

    def table(self, page: Page) -> str:
        """Ours and the paper's; a case that was not run is left out."""
        label, problems = self.reference.label, page.entry.problems
        header = ["method", *(cell for p in problems for cell in (p, f"of {label}", "paper", "of Vanilla BO"))]
        rows = []
        for words, numbers in _settings(page).items():
            for case in page.entry.cases():
                cells = [self._cells(numbers, problem, case.label) for problem in problems]
                if any(own for own, *_ in cells):
                    rows.append([case.label + words, *(cell for own in cells for cell in own)])
        lead = (
            f"Seconds of {page.main.budget} evaluations (ask and tell; processor time), mean ± standard error (runs), "
            f"and as a share of those of `{label}`; the paper's were taken on another machine and are for 100 "
            f"evaluations, their standard errors from the authors' runs of our seeds ({self._theirs(page.main)}).\n\n"
        )
        return lead + markdown_table(header, rows)

    def _theirs(self, numbers: Numbers) -> int:
        """Most runs of theirs behind a number."""
        return max(
            (s.n for (source, *_), own in numbers.cells.items() if source == THEIRS for s in own.values()), default=0
        )

    def _cells(self, numbers: Numbers, problem: str, label: str) -> list[str]:
        ours, printed, theirs = (numbers.at(s, problem, label, self.axis) for s in (OURS, PRINTED, THEIRS))
        base, vanilla = (numbers.at(s, problem, self.reference.label, self.axis) for s in (OURS, PRINTED))
        cells = ["", "", "", ""]
        if ours is not None:
            cells[0] = f"{ours} ({ours.n})"
            cells[1] = f"{ours.mean / base.mean:.3f}" if base is not None else ""
        if printed is not None:
            cells[2] = number(printed.mean) + (f" ± {number(theirs.error)}" if theirs else "")
            cells[3] = f"{printed.mean / vanilla.mean:.2f}" if vanilla else ""
        return cells


class Recall(Dots):
    """The share of the valid variables among those selected."""

    axis = "recall"

    def title(self, budget: int) -> str:
        return "recall"

    def of(self, runs: Runs) -> Summary:
        return stats.summary(runs.recall)

    def of_theirs(self, their: AuthorRuns, evaluations: int) -> None:
        """Their file does not say which variables were selected."""

    def table(self, page: Page) -> str:
        header = ["method", *(cell for problem in page.entry.problems for cell in (problem, "paper"))]
        rows = []
        for words, numbers in _settings(page).items():
            for case in page.entry.cases():
                row = [case.label + words]
                for problem in page.entry.problems:
                    ours = numbers.at(OURS, problem, case.label, self.axis)
                    printed = self.printed(page.entry, problem, case)
                    row += ["" if ours is None else str(ours), "" if printed is None else number(printed)]
                if any(row[1::2]):
                    rows.append(row)
        return markdown_table(header, rows)


@dataclass(frozen=True)
class Significance(Dots):
    """Final values and the Wilcoxon signed-rank test; marks from the reference's point of view."""

    reference: ConfiguredMethod
    axis = "significance"
    judged = True
    scale = figures.DotScale(shared=False)

    def title(self, budget: int) -> str:
        return f"best value after {budget} evaluations"

    def of(self, runs: Runs) -> Summary:
        return runs.at(runs.budget)

    def printed(self, entry: PaperEntry, problem: str, case: ConfiguredMethod) -> float | None:
        cell = entry.published.printed.get(case, {}).get(problem)
        return None if cell is None else float(cell[0])

    def rows(self, found: Found) -> Iterator[Row]:
        yield from super().rows(found)
        for problem in found.entry.problems:
            own, their_base = found.on(problem), found.their(problem, self.reference)
            base = own.get(self.reference)
            pairs = {c: base.paired(runs) for c, runs in own.items() if base is not None and c != self.reference}
            corrected = stats.corrected_marks(list(pairs.values()), maximise=base.maximise if base else True)
            for (case, pair), holm in zip(pairs.items(), corrected, strict=True):
                cell = problem, case.label
                yield OURS, *cell, "mark", found.budget, CODES[stats.mark(*pair, maximise=own[case].maximise)]
                yield OURS, *cell, "mark, Holm", found.budget, CODES[holm]
                their = found.their(problem, case)
                if their and their_base and found.budget in their.checkpoints:
                    sign = stats.mark(*their_base.paired(their, found.budget))
                    yield THEIRS, *cell, "mark", found.budget, CODES[sign], "", "", their.logs

    def table(self, page: Page) -> str:
        """The paper's table with ours and the authors' logs beside it."""
        header = ["problem", "method", "ours", "mark", "mark, Holm"]
        header += ["paper's settings", "mark", "mark, Holm"] if page.both else []
        header += ["paper", "mark", "authors' logs", "mark from them", "no worse than the paper by one standard error"]
        header += ["paper's settings - authors' logs, standard errors"] if page.both else []
        cells = [(p, c, self._cells(page, p, c)) for p in page.entry.problems for c in page.entry.cases(p)]
        rows = [[p, c.label, *own] for p, c, own in cells if any(own)]
        signs = [i for i, name in enumerate(header) if name.startswith("mark")]
        for label in dict.fromkeys(row[1] for row in rows):
            tallies = ["+/-/≈", label, *[""] * (len(header) - 2)]
            for column in signs:
                given = [row[column] for row in rows if row[1] == label and row[column]]
                tallies[column] = stats.tally(given) if given else ""
            if any(tallies[2:]):
                rows.append(tallies)
        lead = (
            f"Best value after {page.main.budget} evaluations: mean ± standard error (standard deviation). A mark "
            f"says that `{self.reference.label}` is significantly better (+) or worse (-) than the method, or neither "
            f"(≈): Wilcoxon signed-rank test, paired by seed, at {stats.CONFIDENCE}; Holm: corrected for the number of "
            "methods compared on the problem.\n\n"
        )
        return lead + markdown_table(header, rows)

    def _cells(self, page: Page, problem: str, case: ConfiguredMethod) -> list[str]:
        numbers, label = page.main, case.label
        printed = page.entry.published.printed.get(case, {}).get(problem)
        sources = [numbers, *([page.paper] if page.paper else [])]  # a case may have been run with one setting only
        theirs = next((found for own in sources if (found := own.at(THEIRS, problem, label, self.axis))), None)
        ours = numbers.at(OURS, problem, label, self.axis)
        cells = self._own(numbers, problem, label)
        cells += self._own(page.paper, problem, label) if page.both and page.paper else []
        cells += [f"{printed[0]:.3f} ({printed[1]:.3f})", printed[2]] if printed else ["", ""]
        cells += [f"{number(theirs.mean)} ({number(theirs.sd)})"] if theirs else [""]
        cells += [_sign(numbers, THEIRS, problem, label, "mark")]
        judged = ""
        if printed and ours and "--quick" not in numbers.command:
            judged = "no" if printed[0] - ours.mean > ours.error else "yes"
        cells += [judged]
        if page.both and page.paper:
            own = page.paper.at(OURS, problem, label, self.axis)
            cells += [f"{stats.apart(own, theirs):+.1f}" if own and theirs else ""]
        return cells

    def _own(self, numbers: Numbers, problem: str, label: str) -> list[str]:
        ours = numbers.at(OURS, problem, label, self.axis)
        value = "" if ours is None else f"{ours} ({number(ours.sd)}, {ours.n} runs)"
        return [value, *(_sign(numbers, OURS, problem, label, axis) for axis in ("mark", "mark, Holm"))]


def _settings(page: Page) -> dict[str, Numbers]:
    """The numbers of a page, by what is written behind a method's name."""
    return {"": page.main} | ({", paper's settings": page.paper} if page.both and page.paper else {})


def _sign(numbers: Numbers, source: str, problem: str, label: str, axis: str) -> str:
    found = numbers.at(source, problem, label, axis)
    return "" if found is None else SIGNS[int(found.mean)]


TERMS = {
    "regret": "regret $R_T$, measured",
    "gp_term": "Gaussian process term",
    "unselected_term": "term of the unselected",
}
LAST = ("d_t", "recall", "best")  # of whole runs
LEAD = """GP-UCB with the beta_t of Theorem 4.2 (a = 1, b such that alpha_max = 1, delta = 0.1, r = 1) on the \
variables each selector chooses. The term of the unselected variables uses their largest slopes as a search found \
them; the Gaussian process term uses the information gain of the points sampled. Both are in the function's own \
units: the bound is a statement about growth, not about size.

"""


class Regret(Metric):
    """Cumulative regret of GP-UCB and the terms of its bound."""

    with_options = False  # GP-UCB has none of them

    def rows(self, found: Found) -> Iterator[Row]:
        for (problem, case), runs in found.runs.items():
            for key in (*TERMS, "bound", "selected"):
                for t, at in series(runs, key):
                    yield OURS, problem, case.label, key, float(t), short(at.mean), short(at.error), len(runs.seeds)
            ends = stats.summary(runs.extra["selected"].mean(axis=1)), stats.summary(runs.recall), runs.at(runs.budget)
            for key, end in zip(LAST, ends, strict=True):
                yield OURS, problem, case.label, key, runs.budget, short(end.mean), short(end.error), len(runs.seeds)

    def draw(self, entry: PaperEntry, numbers: Numbers, stem: Path) -> list[Path]:
        plots = []
        for problem in entry.problems:
            labels = [c.label for c in entry.cases(problem) if numbers.series(OURS, problem, c.label, "regret")]
            plots += _plots(numbers, problem, labels) if labels else []
        return figures.draw(plots, stem)

    def table(self, page: Page) -> str:
        numbers = page.main
        cells = [(p, c.label) for p in page.entry.problems for c in page.entry.cases(p)]
        rows = [[*cell, *_cells(numbers, *cell)] for cell in cells if numbers.series(OURS, *cell, "regret")]
        last = max(max(numbers.series(OURS, *cell, "regret"), default=0.0) for cell in cells)
        header = ["problem", "selector", f"R_T, T = {last:.0f}", "Gaussian process term", "term of the unselected"]
        header += ["bound", "mean d_t", "recall", "best value"]
        return LEAD + markdown_table(header, rows)


def _plots(numbers: Numbers, problem: str, labels: list[str]) -> list[figures.Plot]:
    """The regrets together, then for each selector its regret and the bound's terms."""

    def curve(label: str, key: str, name: str) -> figures.Curve:
        return figures.Curve(name, *numbers.arrays(OURS, problem, label, key))

    regrets = []
    for label in labels:
        whole = curve(label, "regret", label)
        regrets.append(figures.Curve(label, whole.x, whole.mean / whole.x, whole.error / whole.x))
    terms = {label: [curve(label, key, name) for key, name in TERMS.items()] for label in labels}
    values = np.concatenate([c.mean[c.mean > 0] for curves in terms.values() for c in curves])
    shared = float(values.min()) / 1.3, float(values.max()) * 1.3
    drawn = [figures.Plot(f"{problem}: mean regret", "iteration $T$", "$R_T / T$", regrets, apart=True)]
    for label, curves in terms.items():
        positive = [c for c in curves if c.mean.max() > 0]
        title = f"{problem}: {written(label).removeprefix('GP-UCB, ')}"
        drawn.append(
            figures.Plot(title, "iteration $T$", "regret and terms of its bound", positive, yscale="log", yrange=shared)
        )
    return drawn


def _cells(numbers: Numbers, problem: str, label: str) -> list[str]:
    def last(key: str) -> Summary:
        return numbers.at(OURS, problem, label, key) or stats.summary([])

    return [
        str(last("regret")),
        *(f"{last(name).mean:,.0f}" for name in ("gp_term", "unselected_term", "bound")),
        f"{last('d_t').mean:.1f}",
        number(last("recall").mean),
        str(last("best")),
    ]


def series(runs: Runs, name: str) -> list[tuple[int, Summary]]:
    """One of the terms against the iteration, at up to sixty of them."""
    values = runs.extra[name]
    t = np.arange(1, values.shape[1] + 1)
    chosen = np.unique(np.linspace(0, len(t) - 1, min(len(t), 60)).round().astype(int))
    return [(int(t[i]), stats.summary(values[:, i])) for i in chosen]
