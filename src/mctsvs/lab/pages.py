"""The page of an entry: what was run, the figure, and tables of our numbers beside the paper's and the authors'."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mctsvs.lab import cases, figures, regret_page, stats
from mctsvs.lab.authors import Authors, Theirs
from mctsvs.lab.comparison import curve, curve_by_seconds, markdown_table
from mctsvs.lab.entry import Entry, Panel
from mctsvs.lab.frame import head
from mctsvs.lab.groups import Group
from mctsvs.lab.stats import Summary, number

CHECKPOINTS = (50, 100, 200, 300, 600, 1200)
MARGIN = 2.0  # standard errors of a difference below which two means are called level


@dataclass(frozen=True)
class Verdict:
    """How our order of methods and our values compare with the authors' runs, over the cells both have."""

    cells: int
    better: int  # of ours, by more than MARGIN standard errors
    worse: int
    taus: tuple[float, ...]  # Kendall's, one for each problem

    def __str__(self) -> str:
        level = self.cells - self.better - self.worse
        text = f"{self.better} better, {level} level, {self.worse} worse of {self.cells}"
        if self.taus:
            text += f"; order of the methods: tau {np.mean(self.taus):.2f}"
        return text


@dataclass(frozen=True)
class Page:
    """One entry with its runs."""

    entry: Entry
    quick: bool
    paper: bool
    groups: Mapping[tuple[str, str], Group]
    theirs: Authors
    notes: Sequence[str]

    # the figure ------------------------------------------------------------------------------------------------------

    @property
    def dots(self) -> bool:
        """Tables are drawn as dots, figures as curves."""
        return self.entry.measure in ("seconds", "recall", "significance")

    def shown(self, panel: Panel) -> list[tuple[str, Group]]:
        return [(c, self.groups[panel.problem, c]) for c in panel.cases if (panel.problem, c) in self.groups]

    def panels(self) -> list[figures.Panel]:
        if self.entry.measure == "regret":
            return regret_page.panels(self.groups)
        drawn: list[figures.Panel] = []
        for panel in self.entry.panels:
            own = self.shown(panel)
            if not own:
                continue
            by_seconds = panel.axis == "seconds"
            optimum = own[0][1].optimum
            drawn.append(
                figures.Panel(
                    title=panel.problem,
                    xlabel="wall seconds" if by_seconds else "evaluations",
                    ylabel="best value so far" if not drawn else "",
                    curves=[(curve_by_seconds if by_seconds else curve)(case, group) for case, group in own],
                    levels={} if optimum is None else {"optimum": optimum},
                    xscale="log" if by_seconds else "linear",
                )
            )
        return drawn

    def dot_axis(self) -> tuple[str, bool, bool]:
        """What the dots' axis shows, whether it is logarithmic, and whether all problems share it."""
        names = {
            "seconds": f"processor seconds of {self.entry.budget} evaluations",
            "recall": "recall",
            "significance": f"best value after {self.entry.budget} evaluations",
        }
        return names[self.entry.measure], self.entry.measure == "seconds", self.entry.measure != "significance"

    def dot_rows(self) -> list[tuple[str, list[figures.Dot]]]:
        """For each problem its dots: ours with standard error, the paper's where it prints a number."""
        rows = []
        for problem in self.entry.problems:
            dots = []
            for case in self.entry.cases(problem):
                if (group := self.groups.get((problem, case))) is not None:
                    ours, printed = self.measured(group), self.printed(case, problem)
                    dots.append(figures.Dot(case, ours.mean, ours.error, printed))
            rows.append((problem, dots))
        return rows

    def measured(self, group: Group) -> Summary:
        """What this entry measures of a group."""
        if self.entry.measure == "seconds":
            return stats.summary(group.cpu)
        if self.entry.measure == "recall":
            return stats.summary(group.recall)
        return group.at(group.budget)

    def printed(self, case: str, problem: str) -> float | None:
        cell = self.entry.printed.get(case, {}).get(problem)
        return float(cell[0] if isinstance(cell, tuple) else cell) if cell is not None else None

    def numbers(self) -> list[Sequence[Any]]:
        """Everything drawn, and the authors' runs at the evaluations their file has."""
        rows: list[Sequence[Any]] = [("source", "problem", "method", "axis", "x", "mean", "standard_error", "runs")]
        if self.dots:
            for problem, dots in self.dot_rows():
                for dot in dots:
                    group = self.groups[problem, dot.label]
                    cell = problem, dot.label, self.entry.measure, group.budget
                    rows.append(("ours", *cell, dot.value, dot.error, len(group.seeds)))
                    if dot.printed is not None:
                        rows.append(("paper", *cell, dot.printed, "", ""))
                    if (found := self.their_measured(problem, dot.label)) is not None:
                        rows.append(("authors", *cell, _plain(found.mean), _plain(found.error), found.n))
            return rows
        if self.entry.measure == "regret":
            for (problem, case), group in self.groups.items():
                for key in (*regret_page.TERMS, "bound", "selected"):
                    line = regret_page.series(case, group, key)
                    rows += [("ours", problem, case, key, *r, len(group.seeds)) for r in _rows(line)]
            return rows
        for panel in self.entry.panels:
            for case, group in self.shown(panel):
                line = (curve_by_seconds if panel.axis == "seconds" else curve)(case, group)
                rows += [("ours", panel.problem, case, panel.axis, *r, len(group.seeds)) for r in _rows(line)]
                their = self.their(panel.problem, case) if panel.axis == "evaluations" else None
                for n in their.checkpoints if their else []:
                    if n <= self.entry.budget and their is not None:
                        found = their.at(n)
                        cells = (float(n), found.mean, found.error)
                        rows.append(("authors", panel.problem, case, panel.axis, *map(_plain, cells), found.n))
        return rows

    # the text --------------------------------------------------------------------------------------------------------

    def their(self, problem: str, case: str) -> Theirs | None:
        if problem in self.entry.unlike:
            return None
        return self.theirs.find(self.entry.logs, problem, cases.parse(case))

    def their_measured(self, problem: str, case: str) -> Summary | None:
        """What this entry measures, of the authors' runs; None where they do not go as far."""
        their, n = self.their(problem, case), self.entry.budget
        if their is None or n not in their.checkpoints or self.entry.measure == "recall":
            return None
        return their.seconds(n) if self.entry.measure == "seconds" else their.at(n)

    def text(self, command: str) -> str:
        tables: Mapping[str, Callable[[], str]] = {
            "best": self.best_tables,
            "seconds": self.seconds_table,
            "recall": self.recall_table,
            "significance": self.significance_table,
            "regret": partial(regret_page.table, self.groups),
        }
        verdict = self.verdict()
        judged = f"Against the authors' runs: {verdict}.\n\n" if verdict else ""
        return (
            head(self.entry, command, self.quick, self.paper, self.notes) + judged + tables[self.entry.measure]() + "\n"
        )

    def verdict(self) -> Verdict | None:
        """Over the cells that the authors ran too; None where there are none."""
        if self.entry.measure not in ("best", "significance"):
            return None
        cells = better = worse = 0
        taus = []
        for problem in self.entry.problems:
            pairs = []
            for case in self.entry.cases(problem):
                group, their = self.groups.get((problem, case)), self.their(problem, case)
                n = shared_checkpoint(group, their)
                if group is None or their is None or n is None:
                    continue
                ours, found = group.at(n), their.at(n)
                if n == self.entry.budget:  # an order of values after different numbers of evaluations says nothing
                    pairs.append((ours.mean, found.mean))
                distance = stats.apart(ours, found) * (1.0 if group.maximise else -1.0)
                cells += not np.isnan(distance)  # NaN: a single run has no error to measure by
                better += distance > MARGIN
                worse += distance < -MARGIN
            if len(pairs) > 2:
                tau = stats.rank_correlation(*zip(*pairs, strict=True))
                taus += [] if np.isnan(tau) else [tau]  # NaN: all values of one side are equal
        return Verdict(cells, int(better), int(worse), tuple(taus)) if cells else None

    def best_tables(self) -> str:
        parts = []
        for problem in self.entry.problems:
            own = {c: self.groups[problem, c] for c in self.entry.cases(problem) if (problem, c) in self.groups}
            if not own:
                continue
            budget = max(group.budget for group in own.values())
            points = [*[n for n in CHECKPOINTS if n < budget][-3:], budget]
            first = next(iter(own.values()))
            whole = {c: g.at(budget).mean for c, g in own.items() if g.budget == budget}
            ours_rank = stats.ranks(whole, maximise=first.maximise)
            found = {c: self.their(problem, c) for c in own}
            last = {c: shared_checkpoint(own[c], t) for c, t in found.items()}
            furthest = max((n for n in last.values() if n), default=0)
            their_mean = {c: t.at(furthest).mean for c, t in found.items() if t is not None and last[c] == furthest}
            their_rank = stats.ranks(their_mean, maximise=first.maximise)
            rows = []
            for case, group in own.items():
                their, n = found[case], last[case]
                cells = [str(group.at(m)) if m <= group.budget else "" for m in points]
                if group.budget not in points:
                    cells[-1] = f"{group.at(group.budget)} (at {group.budget})"
                seconds = number(stats.summary(group.elapsed[:, -1]).mean)
                rank = f"{ours_rank[case]:g}" if case in ours_rank else ""
                row = [case, str(len(group.seeds)), *cells, rank, seconds]
                if their_mean:
                    at = "" if their is None or n is None else _place(their, n)
                    gap = "" if their is None or n is None else f"{stats.apart(group.at(n), their.at(n)):+.1f}"
                    row += [at, f"{their_rank[case]:g}" if case in their_rank else "", gap.replace("+nan", "–")]
                rows.append(row)
            header = ["method", "runs", *(f"at {n}" for n in points), "rank", "wall seconds"]
            if their_mean:
                header += ["authors' runs", "their rank", "ours - theirs, standard errors"]
            goal = "larger" if first.maximise else "smaller"
            known = "" if first.optimum is None else f", optimum {first.optimum:.6g}"
            parts.append(
                f"### {problem}\n\nBest value so far, {goal} is better{known}.\n\n" + markdown_table(header, rows)
            )
        return "\n\n".join(parts)

    def seconds_table(self) -> str:
        """Seconds and their ratio to the reference's, ours and the paper's."""
        reference = self.entry.reference
        header = ["method"]
        for problem in self.entry.problems:
            header += [problem, f"of {reference}", "paper", "of Vanilla BO"]
        rows = []
        every = dict.fromkeys(case for problem in self.entry.problems for case in self.entry.cases(problem))
        for case in every:
            row = [case]
            for problem in self.entry.problems:
                group, base = self.groups.get((problem, case)), self.groups.get((problem, reference))
                printed, vanilla = self.printed(case, problem), self.printed(reference, problem)
                ours = stats.summary(group.cpu) if group is not None else None
                row += [f"{ours} ({ours.n})" if ours else ""]
                row += [f"{ours.mean / stats.summary(base.cpu).mean:.3f}" if ours and base is not None else ""]
                found = self.their_measured(problem, case)
                row += [f"{number(printed)}{f' ± {number(found.error)}' if found else ''}" if printed else ""]
                row += [f"{printed / vanilla:.2f}" if printed is not None and vanilla else ""]
            rows.append(row)
        lead = (
            f"Seconds of {self.entry.budget} evaluations (ask and tell; processor time), mean ± standard error (runs), "
            f"and as a share of those of `{reference}`; the paper's were taken on another machine and are for 100 "
            "evaluations, their standard errors from the authors' 30 runs.\n\n"
        )
        return lead + markdown_table(header, rows)

    def recall_table(self) -> str:
        header = ["method"]
        for problem in self.entry.problems:
            header += [problem, "paper"]
        rows = []
        for case in dict.fromkeys(c for p in self.entry.problems for c in self.entry.cases(p)):
            row = [case]
            for problem in self.entry.problems:
                group, printed = self.groups.get((problem, case)), self.printed(case, problem)
                row += [str(stats.summary(group.recall)) if group is not None else ""]
                row += [number(printed) if printed is not None else ""]
            rows.append(row)
        return markdown_table(header, rows)

    def significance_table(self) -> str:
        """The paper's table with ours and the authors' logs beside it; marks from the reference's point of view."""
        reference, rows = self.entry.reference, []
        signs: dict[str, dict[int, list[str]]] = {}
        for problem in self.entry.problems:
            base, their_base = self.groups.get((problem, reference)), self.their(problem, reference)
            for case in self.entry.cases(problem):
                group, their = self.groups.get((problem, case)), self.their(problem, case)
                printed = self.entry.printed.get(case, {}).get(problem)
                row = [problem, case, "", "", "", "", "", "", ""]
                if group is not None:
                    ours = group.at(group.budget)
                    row[2] = f"{ours} ({number(ours.sd)}, {ours.n} runs)"
                    if base is not None and case != reference:
                        row[3] = stats.mark(*base.paired(group), maximise=group.maximise)
                if printed is not None:
                    row[4], row[5] = f"{printed[0]:.3f} ({printed[1]:.3f})", printed[2]
                if their is not None and self.entry.budget in their.checkpoints:
                    found = their.at(self.entry.budget)
                    row[6] = f"{number(found.mean)} ({number(found.sd)})"
                    if their_base is not None and case != reference:
                        row[7] = _mark(their_base, their, self.entry.budget)
                if group is not None and printed is not None and not self.quick:
                    ours = group.at(group.budget)
                    row[8] = "no" if printed[0] - ours.mean > ours.error else "yes"
                for column in (3, 5, 7):
                    if row[column]:
                        signs.setdefault(case, {}).setdefault(column, []).append(row[column])
                rows.append(row)
        for case, columns in signs.items():
            row = ["+/-/≈", case, *[""] * 7]
            for column, marks in columns.items():
                row[column] = stats.tally(marks)
            rows.append(row)
        lead = (
            f"Best value after {self.entry.budget} evaluations: mean ± standard error (standard deviation). A mark "
            f"says that `{reference}` is significantly better (+) or worse (-) than the method, or neither (≈): "
            f"Wilcoxon signed-rank test, paired by seed, at {stats.CONFIDENCE}.\n\n"
        )
        header = ["problem", "method", "ours", "mark", "paper", "mark", "authors' logs", "mark from them"]
        return lead + markdown_table([*header, "no worse than the paper by one standard error"], rows)


def shared_checkpoint(group: Group | None, their: Theirs | None) -> int | None:
    """The largest number of evaluations that both have."""
    if group is None or their is None:
        return None
    shared = [n for n in their.checkpoints if n <= group.budget]
    return shared[-1] if shared else None


def _place(their: Theirs, evaluations: int) -> str:
    """Their value, of how many runs, after how many evaluations, from which of their logs."""
    found = their.at(evaluations)
    return f"{found} ({found.n} run{'s' * (found.n != 1)}, at {evaluations}; {their.group})"


def _mark(base: Theirs, other: Theirs, evaluations: int) -> str:
    one, two = base.values(evaluations), other.values(evaluations)
    shared = sorted(set(one) & set(two))
    return stats.mark([one[s] for s in shared], [two[s] for s in shared])


def _plain(value: float) -> float | str:
    return "" if np.isnan(value) else float(f"{value:.8g}")


def _rows(line: figures.Curve) -> list[tuple[float | str, ...]]:
    triples = zip(line.x, line.mean, line.error, strict=True)
    return [tuple(_plain(float(cell)) for cell in triple) for triple in triples]
