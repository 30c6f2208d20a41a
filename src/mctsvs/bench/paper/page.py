"""The page of an experiment: its numbers, the authors' beside them, and how they compare."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mctsvs.bench import comparison, stats
from mctsvs.bench.algorithms import ConfiguredMethod
from mctsvs.bench.paper.experiments import PaperEntry
from mctsvs.bench.paper.metrics import Metric
from mctsvs.bench.paper.published_values import AuthorLogs, AuthorRuns
from mctsvs.bench.problems import data
from mctsvs.bench.results import MADE, NOTE, OURS, PROBLEM, THEIRS, Numbers, Row, short
from mctsvs.bench.run_store import Runs
from mctsvs.bench.styles import written
from mctsvs.utils.validation import InputError

MARGIN = 2.0  # standard errors of a difference below which two means are called level
SLOW = "Slow methods got less: "


@dataclass(frozen=True)
class Provenance:
    """How numbers were made."""

    command: str
    quick: bool = False
    notes: Sequence[str] = ()
    left_out: Sequence[str] = ()  # methods too slow for --quick

    def lines(self, entry: PaperEntry) -> list[str]:
        """What a page has to say of them."""
        lines = []
        if slower := _slower(entry):
            lines.append(f"{SLOW}{'; '.join(slower)}.")
        if self.quick:
            lines.append("**Quick**: so few seeds and evaluations show that everything runs, and nothing else.")
        if self.left_out:
            lines.append(f"Left out, too slow for this: {', '.join(self.left_out)}.")
        return lines + [f"Note: {note}" for note in self.notes if note]


def _slower(entry: PaperEntry) -> list[str]:
    """What methods that are too slow for all of it got."""
    effort = entry.effort
    less: dict[str, list[str]] = {}
    for method, count in effort.fewer.items():
        if count < len(effort.seeds):
            less.setdefault(method, []).append(f"{count} seed{'s' * (count > 1)}")
    for method, count in effort.budgets.items():
        if count < effort.budget:
            less.setdefault(method, []).append(f"{count} evaluations")
    return [f"{method}: {' and '.join(parts)}" for method, parts in less.items() if method in entry.methods]


@dataclass(frozen=True)
class Found:
    """The runs of an entry, and the authors'."""

    entry: PaperEntry
    runs: Mapping[tuple[str, ConfiguredMethod], Runs]
    authors: AuthorLogs

    @property
    def budget(self) -> int:
        return self.entry.effort.budget

    def on(self, problem: str) -> dict[ConfiguredMethod, Runs]:
        """The cases that were run on a problem."""
        return {c: self.runs[problem, c] for c in self.entry.cases(problem) if (problem, c) in self.runs}

    def their(self, problem: str, case: ConfiguredMethod) -> AuthorRuns | None:
        """The authors' runs, where they are of the same thing."""
        if problem in self.entry.published.unlike:
            return None
        return self.authors.find(self.entry.published.logs, problem, case)

    def numbers(self, making: Provenance) -> Numbers:
        """Everything a page is made of."""
        return Numbers([*self._made(making), *self.entry.measure.rows(self)])

    def _made(self, making: Provenance) -> Iterator[Row]:
        seeds = self.entry.effort.seeds
        yield MADE, making.command, time.strftime("%Y-%m-%d"), "", self.budget, "", "", len(seeds), seed_list(seeds)
        for note in making.lines(self.entry):
            yield NOTE, note
        for problem in self.entry.problems:
            if own := self.on(problem):
                first = next(iter(own.values()))
                best = np.nan if first.optimum is None else first.optimum
                yield PROBLEM, problem, "maximize" if first.maximise else "minimize", "", "", short(best)


@dataclass(frozen=True)
class Verdict:
    """How our order of methods and our values compare with the authors' runs, over the cells both have."""

    cells: int
    better: int  # of ours, by more than MARGIN standard errors
    worse: int
    taus: tuple[float, ...]  # Kendall's, one for each problem

    @property
    def level(self) -> int:
        return self.cells - self.better - self.worse

    @property
    def tau(self) -> str:
        return f"{np.mean(self.taus):.2f}" if self.taus else ""

    def __str__(self) -> str:
        text = f"{self.better} better, {self.level} level, {self.worse} worse of {self.cells}"
        return text + (f"; order of the methods: tau {self.tau}" if self.taus else "")


@dataclass(frozen=True)
class Page:
    """An entry with its numbers: with the library's settings, with the paper's, or both."""

    entry: PaperEntry
    library: Numbers | None = None
    paper: Numbers | None = None

    @classmethod
    def read(cls, entry: PaperEntry, folder: Path) -> Page:
        """From the files of numbers in a folder."""
        paths = [folder / f"{entry.name}{ending}.csv" for ending in ("", "-paper")]
        return cls(entry, *(Numbers.read(path) if path.is_file() else None for path in paths))

    @property
    def measure(self) -> Metric:
        return self.entry.measure

    @property
    def main(self) -> Numbers:
        found = self.library or self.paper
        assert found is not None
        return found

    @property
    def both(self) -> bool:
        return self.library is not None and self.paper is not None

    @property
    def settings(self) -> dict[str, Numbers]:
        """The numbers there are, by how the names of their files begin."""
        both = {self.entry.name: self.library, f"{self.entry.name}-paper": self.paper}
        return {stem: numbers for stem, numbers in both.items() if numbers is not None}

    def on(self, problem: str) -> Sequence[str]:
        """Labels of the cases that there are numbers of."""
        labels = [case.label for case in self.entry.cases(problem)]
        return [label for label in labels if self.main.series(OURS, problem, label, self.measure.axis)]

    def text(self) -> str:
        """Markdown: what it is, how it was made, its figures, how it compares, its table."""
        about, made = self.entry.about, list[str]()
        for numbers in self.settings.values():
            made += [f"{'Beside it, ' if made else f'{about.place}. '}{_made(self.entry, numbers)}", *numbers.notes]
        drawn = [f"![{about.title}{self._words(numbers)}]({stem}.png)" for stem, numbers in self.settings.items()]
        says = [f"The paper: {about.says}", *([f"Note: {about.note}"] if about.note else [])]
        lines = [f"# {about.title}", *drawn, *made, *says]
        if self.measure.judged:
            verdicts = {self._words(numbers): self.verdict(numbers) for numbers in self.settings.values()}
            lines += [f"Against the authors' runs{words}: {said}." for words, said in verdicts.items() if said]
        for stem, numbers in self.settings.items():
            if found := self.ranking(numbers):
                listed = ", ".join(f"{label} {rank:.2f}" for label, rank in found.ranks.items())
                lines.append(
                    f"Mean ranks over {found.problems} problems{self._words(numbers)}: {listed}; critical difference "
                    f"{found.difference:.2f}, Friedman's test p = {found.p_value:.2g}."
                )
                lines.append(f"![Mean ranks{self._words(numbers)}]({stem}-ranks.png)")
        return "\n\n".join([*lines, self.measure.table(self)]) + "\n"

    def _words(self, numbers: Numbers) -> str:
        return ", with the paper's settings" if self.both and numbers is self.paper else ""

    def latex(self) -> str:
        """The last values as a table for papers, with the paper's settings below where there are any."""
        cells: dict[str, dict[str, stats.Summary]] = {}
        for numbers in self.settings.values():
            for case in self.entry.cases():
                name = written(case.label) + (" (paper's settings)" if self.both and numbers is self.paper else "")
                values = {p: numbers.at(OURS, p, case.label, self.measure.axis) for p in self.entry.problems}
                if own := {p: value for p, value in values.items() if value is not None}:
                    cells[name] = own
        return comparison.tabular(cells, {p: self.main.maximise(p) for p in self.entry.problems})

    def ranking(self, numbers: Numbers) -> stats.Ranking | None:
        """Methods ranked by their last values over the problems; None where these are few, or not what is compared."""
        if not self.measure.judged:
            return None
        means: dict[str, dict[str, float]] = {}
        for problem in self.entry.problems:
            for case in self.entry.cases(problem):
                last = numbers.at(OURS, problem, case.label, self.measure.axis, numbers.budget)
                if last is not None:
                    means.setdefault(problem, {})[case.label] = last.mean
        return stats.ranking(means, {problem: numbers.maximise(problem) for problem in means})

    def verdict(self, numbers: Numbers) -> Verdict | None:
        """Over the cells that the authors ran too; None where there are none."""
        distances: list[float] = []
        taus = []
        for problem in self.entry.problems:
            pairs, maximise = [], numbers.maximise(problem)
            for label in self.on(problem):
                ours, theirs = (numbers.series(s, problem, label, self.measure.axis) for s in (OURS, THEIRS))
                n = max((n for n in theirs if n in ours), default=None)
                if n is None:
                    continue
                if n == numbers.budget:  # an order of values after different numbers of evaluations says nothing
                    pairs.append((ours[n].mean, theirs[n].mean))
                distances.append(stats.apart(ours[n], theirs[n]) * (1.0 if maximise else -1.0))
            if len(pairs) > 2:
                taus.append(stats.rank_correlation(*zip(*pairs, strict=True)))
        known = np.array([d for d in distances if not np.isnan(d)])  # NaN: a single run has no error to measure by
        better, worse = int(np.sum(known > MARGIN)), int(np.sum(known < -MARGIN))
        orders = tuple(tau for tau in taus if not np.isnan(tau))  # NaN: all values of one side are equal
        return Verdict(len(known), better, worse, orders) if len(known) else None


def _made(entry: PaperEntry, numbers: Numbers) -> str:
    text = f"`{numbers.command}`, {numbers.day}."
    if not entry.panels:
        return text
    seeds = f"seed{'s' * (int(numbers.made[7] or 0) != 1)} {numbers.seeds}"
    which = "paper's" if "--paper" in numbers.command.split() else "library's"
    return f"{text} {numbers.budget} evaluations, {seeds}{f', {which} settings' * entry.measure.with_options}."


def beside(before: Numbers, new: Numbers) -> Numbers:
    """Numbers of a page with those of some methods in place of what they were; a note says how these were made."""
    if new.budget != before.budget:
        raise InputError(
            f"--budget {new.budget} does not fit the numbers in the folder, which are of {before.budget} evaluations"
        )
    numbers = [row for row in new.rows if row[0] not in (MADE, NOTE, PROBLEM)]
    cells = {(row[1], row[2]) for row in numbers}
    kept = [row for row in before.rows if row[0] not in (MADE, NOTE, PROBLEM) and (row[1], row[2]) not in cells]
    problems = {row[1]: row for row in (*new.rows, *before.rows) if row[0] == PROBLEM}
    methods = sorted({label.partition("[")[0] for _, label in cells})
    begins = f"{', '.join(methods)}: "
    less = [part for part in _less(before) if part.partition(":")[0] not in methods] + _less(new)
    others = [note for note in (*before.notes, *new.notes) if not note.startswith((SLOW, begins))]
    notes = [f"{SLOW}{'; '.join(less)}."] * bool(less) + list(dict.fromkeys(others))
    notes.append(f"{begins}`{new.command}`, {new.day}, seeds {new.seeds}.")
    return Numbers([before.made, *([NOTE, note] for note in notes), *problems.values(), *kept, *numbers])


def _less(numbers: Numbers) -> list[str]:
    """What a page says of each slow method."""
    said = [note.removeprefix(SLOW).removesuffix(".") for note in numbers.notes if note.startswith(SLOW)]
    return [part for note in said for part in note.split("; ")]


def seed_list(seeds: Sequence[int]) -> str:
    """2021-2025, or all of them where they do not follow one another."""
    if len(seeds) > 1 and list(seeds) == list(range(seeds[0], seeds[0] + len(seeds))):
        return f"{seeds[0]}-{seeds[-1]}"
    return ",".join(map(str, seeds))


def without_paths(note: str) -> str:
    """For a page, which is read elsewhere: no folder of this machine."""
    for place in data.directories():
        note = note.replace(str(place), "DATA")
    return re.sub(r"'DATA'(, 'DATA')*( or 'DATA')?", "'DATA'", note)


def write(path: Path, text: str) -> list[Path]:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error.strerror}") from None
    return [path]
