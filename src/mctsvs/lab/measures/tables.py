"""The paper's tables: seconds, recall, and the tests of significance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mctsvs.lab import figures, stats
from mctsvs.lab.authors import Theirs
from mctsvs.lab.cases import Case
from mctsvs.lab.comparison import markdown_table
from mctsvs.lab.measures.base import Dots
from mctsvs.lab.runs import Runs
from mctsvs.lab.stats import Summary, number

if TYPE_CHECKING:
    from mctsvs.lab.page import Page


@dataclass(frozen=True)
class Seconds(Dots):
    """Processor seconds of asking and telling, and their ratio to the reference's."""

    reference: Case
    name = "seconds"
    scale = figures.DotScale(logarithmic=True)

    def axis(self, budget: int) -> str:
        return f"processor seconds of {budget} evaluations"

    def of(self, runs: Runs) -> Summary:
        return stats.summary(runs.cpu)

    def of_theirs(self, their: Theirs, evaluations: int) -> Summary:
        return their.seconds(evaluations)

    def table(self, page: Page) -> str:
        """Ours and the paper's."""
        label, problems = self.reference.label, page.entry.problems
        header = ["method", *(cell for p in problems for cell in (p, f"of {label}", "paper", "of Vanilla BO"))]
        rows = [[c.label, *(cell for p in problems for cell in self._cells(page, p, c))] for c in page.entry.cases()]
        lead = (
            f"Seconds of {page.budget} evaluations (ask and tell; processor time), mean ± standard error (runs), "
            f"and as a share of those of `{label}`; the paper's were taken on another machine and are for 100 "
            "evaluations, their standard errors from the authors' 30 runs.\n\n"
        )
        return lead + markdown_table(header, rows)

    def _cells(self, page: Page, problem: str, case: Case) -> list[str]:
        runs, base = page.runs.get((problem, case)), page.runs.get((problem, self.reference))
        printed, vanilla = self.printed(page, problem, case), self.printed(page, problem, self.reference)
        cells = ["", "", "", ""]
        if runs is not None:
            ours = self.of(runs)
            cells[0] = f"{ours} ({ours.n})"
            cells[1] = f"{ours.mean / self.of(base).mean:.3f}" if base is not None else ""
        if printed is not None:
            found = self.their(page, problem, case)
            cells[2] = number(printed) + (f" ± {number(found.error)}" if found else "")
            cells[3] = f"{printed / vanilla:.2f}" if vanilla else ""
        return cells


class Recall(Dots):
    """The share of the valid variables among those selected."""

    name = "recall"

    def axis(self, budget: int) -> str:
        return "recall"

    def of(self, runs: Runs) -> Summary:
        return stats.summary(runs.recall)

    def of_theirs(self, their: Theirs, evaluations: int) -> None:
        """Their file does not say which variables were selected."""

    def table(self, page: Page) -> str:
        header = ["method", *(cell for problem in page.entry.problems for cell in (problem, "paper"))]
        rows = []
        for case in page.entry.cases():
            row = [case.label]
            for problem in page.entry.problems:
                runs, printed = page.runs.get((problem, case)), self.printed(page, problem, case)
                row += [str(self.of(runs)) if runs is not None else "", "" if printed is None else number(printed)]
            rows.append(row)
        return markdown_table(header, rows)


@dataclass(frozen=True)
class Significance(Dots):
    """Final values and the Wilcoxon signed-rank test; marks from the reference's point of view."""

    reference: Case
    name = "significance"
    judged = True
    scale = figures.DotScale(shared=False)

    def axis(self, budget: int) -> str:
        return f"best value after {budget} evaluations"

    def of(self, runs: Runs) -> Summary:
        return runs.at(runs.budget)

    def printed(self, page: Page, problem: str, case: Case) -> float | None:
        cell = page.printed(problem, case)
        return None if cell is None else float(cell[0])

    def table(self, page: Page) -> str:
        """The paper's table with ours and the authors' logs beside it."""
        rows = [[p, c.label, *self._cells(page, p, c)] for p in page.entry.problems for c in page.entry.cases(p)]
        for label in dict.fromkeys(row[1] for row in rows):
            own = [row for row in rows if row[1] == label]
            tallies = ["+/-/≈", label, *[""] * 7]
            for column in (3, 5, 7):
                marks = [row[column] for row in own if row[column]]
                tallies[column] = stats.tally(marks) if marks else ""
            if any(tallies[2:]):
                rows.append(tallies)
        lead = (
            f"Best value after {page.budget} evaluations: mean ± standard error (standard deviation). A mark "
            f"says that `{self.reference.label}` is significantly better (+) or worse (-) than the method, or neither "
            f"(≈): Wilcoxon signed-rank test, paired by seed, at {stats.CONFIDENCE}.\n\n"
        )
        header = ["problem", "method", "ours", "mark", "paper", "mark", "authors' logs", "mark from them"]
        return lead + markdown_table([*header, "no worse than the paper by one standard error"], rows)

    def _cells(self, page: Page, problem: str, case: Case) -> list[str]:
        cells = [""] * 7
        runs, their, printed = page.runs.get((problem, case)), page.their(problem, case), page.printed(problem, case)
        other = case != self.reference
        if runs is not None:
            ours, base = self.of(runs), page.runs.get((problem, self.reference))
            cells[0] = f"{ours} ({number(ours.sd)}, {ours.n} runs)"
            if base is not None and other:
                cells[1] = stats.mark(*base.paired(runs), maximise=runs.maximise)
            if printed is not None and not page.making.quick:
                cells[6] = "no" if printed[0] - ours.mean > ours.error else "yes"
        if printed is not None:
            cells[2], cells[3] = f"{printed[0]:.3f} ({printed[1]:.3f})", printed[2]
        if their is not None and page.budget in their.checkpoints:
            found, their_base = their.at(page.budget), page.their(problem, self.reference)
            cells[4] = f"{number(found.mean)} ({number(found.sd)})"
            if their_base is not None and other:
                cells[5] = stats.mark(*their_base.paired(their, page.budget))
        return cells
