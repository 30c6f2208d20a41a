"""Run an entry of the paper: what is missing of its grid, then its figure, numbers and a page of tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from mctsvs.bench import comparison, figures, grid, problems, results
from mctsvs.bench.algorithms import ConfiguredMethod
from mctsvs.bench.paper import page, published_values
from mctsvs.bench.paper.experiments import ENTRIES, STANDS_IN, Panel, PaperEntry
from mctsvs.bench.paper.page import Found, Page, Provenance
from mctsvs.bench.paper.paper_settings import (
    QUICK_BUDGETS,
    QUICK_FEWER,
    QUICK_ONLY,
    QUICK_OPTIONS,
    QUICK_SEEDS,
    set_by_paper,
)
from mctsvs.bench.results import OURS, Numbers
from mctsvs.bench.run_store import Job, Runs, RunStore, finished
from mctsvs.utils.validation import InputError


@dataclass(frozen=True)
class ReproduceOptions:
    """What the command line asks for beside the entry itself."""

    seeds: tuple[int, ...] | None = None  # None: the paper's
    budget: int | None = None
    quick: bool = False
    paper: bool = False  # the paper's settings: see `mctsvs.methods.presets`
    only: tuple[str, ...] = ()  # methods to run; numbers of the others stay as they are
    without: tuple[str, ...] = ()  # methods to leave out
    fewer: tuple[tuple[str, int], ...] = ()  # methods that get only so many of the seeds
    data: bool = False  # a folder of measured data was given


@dataclass
class ReproductionResult:
    """What came of an entry."""

    notes: list[str] = field(default_factory=list)
    failures: list[grid.Failure] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    skipped: bool = False


Plan = dict[tuple[str, ConfiguredMethod], list[Job]]
"""(problem, case) -> its runs. The case is the entry's; the job's carries further options."""


def find(name: str) -> PaperEntry:
    """The entry of that name."""
    if name not in ENTRIES:
        raise InputError(f"unknown entry {name!r}: use one of {', '.join(ENTRIES)}, or all")
    return ENTRIES[name]


def too_slow(entry: PaperEntry, choice: ReproduceOptions) -> list[str]:
    """Methods of the entry that --quick leaves out."""
    return [m for m, only in QUICK_ONLY.items() if choice.quick and m in entry.methods and entry.name != only]


def shrink(entry: PaperEntry, choice: ReproduceOptions) -> PaperEntry:
    """The entry with the methods, the seeds and the budget that were asked for."""
    effort = entry.effort
    others = [method for method in entry.methods if choice.only and method not in choice.only]
    for method in (*others, *choice.without, *too_slow(entry, choice)):
        entry = without(entry, method)
    seeds = effort.seeds if choice.seeds is None else choice.seeds
    budget = effort.budget if choice.budget is None else choice.budget
    budgets = {method: min(most, budget) for method, most in effort.budgets.items()}
    fewer = {} if choice.seeds is not None else dict(effort.fewer)  # seeds that were asked for are meant
    if choice.quick:
        seeds = seeds[:QUICK_SEEDS]
        budget = min(budget, effort.quick)
        budgets = {**budgets, **{method: min(most, budget) for method, most in QUICK_BUDGETS.items()}}
        fewer = dict(QUICK_FEWER)
    fewer |= {method: count for method, count in choice.fewer if method in entry.methods}
    return replace(entry, effort=replace(effort, seeds=seeds, budget=budget, budgets=budgets, fewer=fewer))


def without(entry: PaperEntry, method: str) -> PaperEntry:
    """The entry with all cases of a method taken out."""
    panels = [replace(p, cases=tuple(c for c in p.cases if c.method != method)) for p in entry.panels]
    return replace(entry, panels=tuple(panel for panel in panels if panel.cases))


def available(entry: PaperEntry) -> tuple[PaperEntry, list[str]]:
    """The entry without what cannot be run here, and a sentence for each thing left out or replaced."""
    notes: list[str] = []
    panels: tuple[Panel, ...] = entry.panels
    for problem in entry.problems:
        if (reason := _lacking(problem)) is None:
            continue
        other = STANDS_IN.get(problem)
        if other is not None and _lacking(other) is None:
            notes.append(f"{other} stands in for {problem}: {reason}")
            panels = _renamed(panels, problem, other)
        else:
            notes.append(f"{problem} is left out: {reason}")
            panels = tuple(panel for panel in panels if panel.problem != problem)
    usable = replace(entry, panels=panels)
    for algorithm in {case.method: case.algorithm for case in entry.cases()}.values():
        if absent := algorithm.missing():
            needs = f"it needs {' and '.join(absent)} (pip install 'mctsvs[{algorithm.extra}]')"
            notes.append(f"{algorithm.name} is left out: {needs}")
            usable = without(usable, algorithm.name)
    return usable, notes


def _renamed(panels: tuple[Panel, ...], problem: str, other: str) -> tuple[Panel, ...]:
    return tuple(replace(panel, problem=other) if panel.problem == problem else panel for panel in panels)


def as_run(entry: PaperEntry, found: Page) -> PaperEntry:
    """The entry with the problems that stand in for others among its numbers."""
    run = {problem for numbers in found.settings.values() for source, problem, *_ in numbers.cells if source == OURS}
    panels = entry.panels
    for problem, other in STANDS_IN.items():
        if other in run and problem not in run:
            panels = _renamed(panels, problem, other)
    return replace(entry, panels=panels)


def _lacking(problem: str) -> str | None:
    """Why a problem cannot be made here, if it cannot."""
    try:
        problems.make(problem)
    except InputError as error:
        return str(error)
    return None


def plan(entry: PaperEntry, choice: ReproduceOptions) -> Plan:
    """The runs of an entry that has been through `shrink` and `available`."""
    planned: Plan = {}
    effort = entry.effort
    for problem in entry.problems:
        for case in entry.cases(problem):
            # what the paper sets by problem is part of its options, and set here where those are not asked for
            options = {} if choice.paper else set_by_paper(case.method, problem)
            if choice.quick:
                options |= QUICK_OPTIONS.get(case.method, {})
            chosen = case.with_options(options, choice.paper)
            budget = min(effort.budget, effort.budgets.get(case.method, effort.budget))
            seeds = effort.seeds[: effort.fewer.get(case.method, len(effort.seeds))]
            planned[problem, case] = [Job(problem, chosen, seed, budget) for seed in seeds]
    return planned


def in_order(planned: Plan) -> list[Job]:
    """All runs, a seed after the other."""
    return sorted((job for jobs in planned.values() for job in jobs), key=lambda job: job.seed)


def reproduce(
    entry: PaperEntry,
    choice: ReproduceOptions,
    store: RunStore,
    folder: Path,
    *,
    workers: int,
    listen: grid.Listener | None = None,
) -> ReproductionResult:
    """Run what is missing of the entry; write its numbers, those of each seed, its figure and its page into `folder`.

    The page, NAME.md, is of all numbers there: NAME.csv of the library's settings, NAME-paper.csv of the paper's. Where
    some methods alone were asked for, the numbers of the others stay in these files.
    """
    usable, notes = available(shrink(entry, choice))
    outcome = ReproductionResult(notes)
    runs: dict[tuple[str, ConfiguredMethod], Runs] = {}
    if entry.panels:  # others need no runs
        planned = plan(usable, choice)
        progress = grid.run_jobs(in_order(planned), store, workers, listen)
        done = {key: [job for job in jobs if job in store] for key, jobs in planned.items()}
        runs = {key: finished(jobs, store) for key, jobs in done.items() if jobs}
        outcome.failures = progress.failures
        if not runs:
            outcome.skipped = True
            left = "no run could be finished" if planned else f"no method is left to run: {_has(entry)}"
            outcome.notes += [left] if planned or not notes else []
            return outcome
    making = Provenance(
        command(entry, choice), choice.quick, [page.without_paths(note) for note in notes], too_slow(entry, choice)
    )
    theirs = published_values.read(entry.effort.seeds)  # all of them, however few are run here
    stem = entry.name + "-paper" * choice.paper
    all_file, seeds_file = folder / f"{stem}.csv", folder / f"{stem}-seeds.csv"
    own, by_seed = Found(usable, runs, theirs).numbers(making), list[results.Row](comparison.seeds(runs))
    if choice.only and all_file.is_file():
        own, by_seed = page.beside(Numbers.read(all_file), own), results.beside(seeds_file, by_seed)
    outcome.files += own.write(all_file)
    outcome.files += results.write(seeds_file, by_seed) if runs else []
    outcome.files += page_of(entry, folder, outcome, drawn=(stem,))
    return outcome


def _has(entry: PaperEntry) -> str:
    return f"the entry has {', '.join(entry.methods)}"


def page_of(entry: PaperEntry, folder: Path, outcome: ReproductionResult, drawn: tuple[str, ...] = ()) -> list[Path]:
    """The page, its LaTeX table and its figures (default: all), from the numbers in the folder."""
    made, measure = Page.read(entry, folder), entry.measure
    entry = as_run(entry, made)
    made = replace(made, entry=entry)
    if not made.settings:
        raise InputError(
            f"{str(folder)!r} holds no numbers of {entry.name!r}: run mctsvs bench reproduce {entry.name} first"
        )
    files: list[Path] = []
    for stem, own in made.settings.items():
        if not drawn or stem in drawn:
            files += _drawn(lambda own=own, stem=stem: measure.draw(entry, own, folder / stem), outcome)  # type: ignore[misc]
            if ranked := made.ranking(own):
                path = folder / f"{stem}-ranks"
                files += _drawn(lambda ranked=ranked, path=path: figures.draw_ranking(ranked, path), outcome)  # type: ignore[misc]
    if entry.problems:
        files += page.write(folder / f"{entry.name}.tex", made.latex())
    return [*files, *page.write(folder / f"{entry.name}.md", made.text())]


def _drawn(draw: Callable[[], list[Path]], outcome: ReproductionResult) -> list[Path]:
    try:
        return draw()
    except InputError as error:  # no matplotlib: the numbers are there all the same
        outcome.notes.append(f"no figure: {error}")
        return []


def command(entry: PaperEntry, choice: ReproduceOptions) -> str:
    """What was typed to get here."""
    words = ["mctsvs bench reproduce", entry.name]
    if choice.seeds is not None:
        words.append(f"--seeds {page.seed_list(choice.seeds)}")
    if choice.budget is not None:
        words.append(f"--budget {choice.budget}")
    words += ["--quick"] * choice.quick + ["--paper"] * choice.paper
    if choice.only:
        words.append(f"--only {','.join(choice.only)}")
    if choice.without:
        words.append(f"--without {','.join(choice.without)}")
    if choice.fewer:
        words.append("--fewer " + ",".join(f"{method}={count}" for method, count in choice.fewer))
    words += ["--data DATA"] * choice.data
    return " ".join(words)
