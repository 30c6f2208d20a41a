"""Run an entry of the paper: what is missing of its grid, then its figure, numbers and a page of tables."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mctsvs import problems
from mctsvs.common import InputError
from mctsvs import methods
from mctsvs.lab import authors, cases, figures, frame, grid, pages
from mctsvs.lab.cases import Case
from mctsvs.lab.entries import ENTRIES
from mctsvs.lab.entry import Entry
from mctsvs.lab.groups import Group, group
from mctsvs.lab.settings import QUICK_BUDGETS, QUICK_FEWER, QUICK_ONLY, QUICK_OPTIONS, QUICK_SEEDS, settings
from mctsvs.lab.store import Job, Store


@dataclass(frozen=True)
class Choice:
    """What the command line asks for beside the entry itself."""

    seeds: tuple[int, ...] | None = None  # None: the paper's
    budget: int | None = None
    quick: bool = False
    paper: bool = False  # the paper's exploration constant, candidate search and length of TuRBO's bursts
    without: tuple[str, ...] = ()  # methods to leave out
    fewer: tuple[tuple[str, int], ...] = ()  # methods that get only so many of the seeds
    data: bool = False  # a folder of measured data was given


@dataclass
class Outcome:
    """What came of an entry."""

    entry: Entry
    notes: list[str] = field(default_factory=list)
    failures: list[grid.Failure] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    skipped: bool = False


Plan = dict[tuple[str, str], list[Job]]
"""(problem, label) -> its runs. The label is the entry's; the job carries further options."""


def find(name: str) -> Entry:
    """The entry of that name."""
    if name not in ENTRIES:
        raise InputError(f"unknown entry {name!r}: use one of {', '.join(ENTRIES)}, or all")
    return ENTRIES[name]


def shrink(entry: Entry, choice: Choice) -> Entry:
    """The entry with the seeds and the budget that were asked for."""
    seeds = entry.seeds if choice.seeds is None else choice.seeds
    budget = entry.budget if choice.budget is None else choice.budget
    budgets = {method: min(most, budget) for method, most in entry.budgets.items()}
    fewer = {} if choice.seeds is not None else dict(entry.fewer)  # seeds that were asked for are meant
    for method in choice.without:
        entry = without(entry, method)
    if choice.quick:
        seeds = seeds[:QUICK_SEEDS]
        budget = min(budget, entry.quick)
        budgets = {**budgets, **{method: min(most, budget) for method, most in QUICK_BUDGETS.items()}}
        fewer = dict(QUICK_FEWER)
        for method, only in QUICK_ONLY.items():
            if entry.name != only:
                entry = without(entry, method)
    methods = {cases.parse(case).method for panel in entry.panels for case in panel.cases}
    fewer |= {method: count for method, count in choice.fewer if method in methods}
    return replace(entry, seeds=seeds, budget=budget, budgets=budgets, fewer=fewer)


def without(entry: Entry, method: str) -> Entry:
    """The entry with all cases of a method taken out."""
    panels = [replace(p, cases=tuple(c for c in p.cases if cases.parse(c).method != method)) for p in entry.panels]
    return replace(entry, panels=tuple(panel for panel in panels if panel.cases))


def available(entry: Entry) -> tuple[Entry, list[str]]:
    """The entry without what cannot be run here, and a sentence for each thing left out."""
    notes: dict[str, None] = {}
    usable: dict[str, bool] = {}
    for problem in entry.problems:
        try:
            problems.make(problem)
            usable[problem] = True
        except InputError as error:
            usable[problem] = False
            notes[f"{problem} is left out: {error}"] = None
    panels = []
    for panel in entry.panels:
        kept = []
        for label in panel.cases:
            case = cases.parse(label)
            if absent := cases.missing(case):
                extra = "sklearn" if case.method in cases.REFERENCES else methods.find(case.method).extra
                sentence = f"{case.method} is left out: it needs {' and '.join(absent)} (pip install 'mctsvs[{extra}]')"
                notes[sentence] = None
            else:
                kept.append(label)
        if usable[panel.problem] and kept:
            panels.append(replace(panel, cases=tuple(kept)))
    return replace(entry, panels=tuple(panels)), list(notes)


def plan(entry: Entry, choice: Choice) -> Plan:
    """The runs of an entry that has been through `shrink` and `available`."""
    planned: Plan = {}
    for problem in entry.problems:
        for label in entry.cases(problem):
            case = cases.parse(label)
            options: Mapping[str, Any] = settings(case.method, problem)
            if choice.quick:
                options = {**options, **QUICK_OPTIONS.get(case.method, {})}
            paper = choice.paper and case.method not in cases.REFERENCES
            chosen: Case = case.with_options(options, paper)
            budget = min(entry.budget, entry.budgets.get(case.method, entry.budget))
            seeds = entry.seeds[: entry.fewer.get(case.method, len(entry.seeds))]
            planned[problem, label] = [Job(problem, chosen, seed, budget) for seed in seeds]
    return planned


def in_order(planned: Plan) -> list[Job]:
    """All runs, a seed after the other."""
    return sorted((job for jobs in planned.values() for job in jobs), key=lambda job: job.seed)


def reproduce(
    entry: Entry, choice: Choice, store: Store, folder: Path, workers: int, listen: grid.Listener | None = None
) -> Outcome:
    """Run what is missing of the entry and write NAME.png, NAME.svg, NAME.csv and NAME.md into `folder`."""
    shrunk = shrink(entry, choice)
    if entry.measure == "complexity":
        return _complexity(shrunk, choice, folder)
    usable, notes = available(shrunk)
    outcome = Outcome(usable, notes)
    if not usable.panels:
        outcome.skipped = True
        outcome.notes = notes or ["no method is left to run"]
        return outcome
    planned = plan(usable, choice)
    progress = grid.work(in_order(planned), store, workers, listen)
    outcome.failures = progress.failures
    groups: dict[tuple[str, str], Group] = {}
    for key, jobs in planned.items():
        if finished := [job for job in jobs if job in store]:
            groups[key] = group(finished, store)
    if not groups:
        outcome.skipped = True
        outcome.notes.append("no run could be finished")
        return outcome
    theirs = authors.read(usable.seeds)
    shown = [frame.without_paths(note) for note in outcome.notes]
    page = pages.Page(usable, choice.quick, choice.paper, groups, theirs, shown)
    outcome.files += write_numbers(folder / f"{entry.name}.csv", page.numbers())
    outcome.files += _drawn(page, folder / entry.name, outcome)
    outcome.files += frame.write(folder / f"{entry.name}.md", page.text(command(entry, choice)))
    return outcome


def _drawn(page: pages.Page, stem: Path, outcome: Outcome) -> list[Path]:
    try:
        if page.dots:
            return figures.draw_dots(page.dot_rows(), stem, page.dot_axis())
        return figures.draw(page.panels(), stem)
    except InputError as error:  # no matplotlib: the numbers are there all the same
        outcome.notes.append(f"no figure: {error}")
        return []


def _complexity(entry: Entry, choice: Choice, folder: Path) -> Outcome:
    from mctsvs.lab import complexity, complexity_page  # linear algebra that no other command needs in this process

    outcome = Outcome(entry)
    sizes = (complexity.QUICK_POINTS, complexity.QUICK_VARIABLES) if choice.quick else ()
    measured = complexity.measure(*sizes)
    rows = [("what", "t", "d", "seconds"), *((m.what, m.t, m.d, m.seconds) for m in measured)]
    outcome.files += write_numbers(folder / f"{entry.name}.csv", rows)
    try:
        outcome.files += figures.draw(complexity_page.panels(measured), folder / entry.name)
    except InputError as error:
        outcome.notes.append(f"no figure: {error}")
    text = complexity_page.text(entry, measured, command(entry, choice), choice.quick, outcome.notes)
    outcome.files += frame.write(folder / f"{entry.name}.md", text)
    return outcome


def write_numbers(path: Path, rows: Sequence[Sequence[Any]]) -> list[Path]:
    """The numbers behind a figure."""
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error.strerror}") from None
    return [path]


def command(entry: Entry, choice: Choice) -> str:
    """What was typed to get here."""
    words = ["mctsvs reproduce", entry.name]
    if choice.seeds is not None:
        words.append(f"--seeds {frame.seed_list(choice.seeds)}")
    if choice.budget is not None:
        words.append(f"--budget {choice.budget}")
    words += ["--quick"] * choice.quick + ["--paper"] * choice.paper
    if choice.without:
        words.append(f"--without {','.join(choice.without)}")
    if choice.fewer:
        words.append("--fewer " + ",".join(f"{method}={count}" for method, count in choice.fewer))
    words += ["--data DATA"] * choice.data
    return " ".join(words)
