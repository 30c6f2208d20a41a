"""The paper's tables and figures as declarations: complete and consistent."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mctsvs.bench import algorithms, problems, stats
from mctsvs.bench.algorithms import ConfiguredMethod
from mctsvs.bench.paper import author_logs, page_head, reproduce
from mctsvs.bench.paper.entries import ENTRIES, FIFTY
from mctsvs.bench.paper.entry import Panel, PaperEntry
from mctsvs.bench.paper.metrics import Seconds, Significance
from mctsvs.bench.paper.page import Found, Page
from mctsvs.bench.paper.page_head import Provenance
from mctsvs.bench.paper.paper_settings import BY_PROBLEM, QUICK_OPTIONS, set_by_paper
from mctsvs.bench.paper.published_values import AUTHORS_PROGRAM, FOUR
from mctsvs.bench.paper.reproduce import ReproduceOptions
from mctsvs.bench.record import paper_options
from mctsvs.bench.results import OURS, PRINTED, THEIRS, Numbers
from mctsvs.bench.run_store import Job, Runs, RunStore, finished
from mctsvs.utils.validation import InputError

NAMES = """synthetic1 synthetic2 time recall nas nas-more rl optimiser-rs optimiser fill-in k cp samples n-bad n-split
low-high-d various-extent increasing-ratio hierarchy lasso significance regret complexity"""
IN_THE_TEXT = """fig:synthetic1 fig:synthetic2 tab:time tab:theory fig:nas fig:rl fig:ablation:exp1 fig:ablation:solver
fig:paramk fig:ablationcp fig:nbad fig:nsplit fig:ablation1 fig:appendixnas fig:additionalnas fig:additionalexp
fig:various_extent fig:increasing_ratio fig:hierarchy-vs fig:lasso tab:significance_test fig:enlargement_synthetic1
fig:enlargement_synthetic2 the:regret sec:complexity"""
LABELS = {*IN_THE_TEXT.split(), "fig:fill in", "fig:ablation:fill in and k", "fig:number of samples"}
BUILT = re.compile(r"Hartmann6|Levy")


def test_every_table_and_figure_of_the_paper_has_an_entry() -> None:
    assert set(NAMES.split()) <= set(ENTRIES)
    covered = {label for entry in ENTRIES.values() for label in entry.about.labels}
    assert covered >= LABELS


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=lambda entry: entry.name)
def test_an_entry_names_what_exists(entry: PaperEntry) -> None:
    for problem in entry.problems:
        if BUILT.match(problem):  # others need data or a simulator, and are tested where those are
            made = problems.make(problem)
            assert made.name == problem
    for case in entry.cases():
        assert algorithms.parse(case.label) == case
    slow = {"saasbo", "mcts-vs-saasbo", "alebo"}
    assert entry.methods >= {*entry.effort.fewer, *entry.effort.budgets} - slow
    assert set(entry.published.printed) <= set(entry.cases())
    if isinstance(entry.measure, Seconds | Significance):
        assert entry.measure.reference in entry.cases()
    assert entry.about.says
    assert entry.about.says.endswith(".")


def test_options_set_by_problem_exist() -> None:
    for method, kinds in BY_PROBLEM.items():
        for options in kinds.values():
            assert set(options) <= set(algorithms.find(method).options)
    for method, options in QUICK_OPTIONS.items():
        assert set(options) <= set(algorithms.find(method).options)


def test_the_printed_numbers() -> None:
    """Against the paper's text, some of each table."""
    seconds = ENTRIES["time"].published.printed
    assert seconds[ConfiguredMethod("mcts-vs-bo")] == dict(zip(FOUR, (2.683, 3.753, 3.711, 4.590), strict=True))
    assert seconds[ConfiguredMethod("alebo")] == {"Hartmann6_300": 470.714, "Hartmann6_500": 512.641}
    assert ENTRIES["recall"].published.printed[ConfiguredMethod("mcts-vs-bo")]["Hartmann6_300"] == 0.352
    assert ENTRIES["significance"].published.printed[ConfiguredMethod("turbo")]["Levy10_100"] == (-0.662, 1.049, "-")
    printed = ENTRIES["significance"].published.printed.items()
    marks = {case.label: [cell[2] for cell in cells.values()] for case, cells in printed}
    tallies = {case: stats.tally(found) for case, found in marks.items() if any(found)}
    assert tallies.pop(AUTHORS_PROGRAM.label) == tallies["mcts-vs-bo"]  # which that program gave
    assert tallies == {"mcts-vs-bo": "1/1/2", "la-mcts-turbo": "4/0/0", "turbo": "2/1/1"}  # the paper's last line


def test_seeds_and_budgets_are_the_papers() -> None:
    entry = ENTRIES["significance"]
    planned = reproduce.plan(reproduce.shrink(entry, ReproduceOptions()), ReproduceOptions())
    assert len(planned) == 20
    assert [job.seed for job in planned["Levy10_100", ConfiguredMethod("turbo")]] == list(FIFTY)
    assert {job.budget for jobs in planned.values() for job in jobs} == {600}
    assert ENTRIES["time"].effort.budget == 100
    assert len(ENTRIES["time"].effort.seeds) == 30
    assert ENTRIES["rl"].effort.budget == 1200


def test_slow_methods_get_less_unless_seeds_are_asked_for() -> None:
    entry = ENTRIES["synthetic2"]
    planned = reproduce.plan(reproduce.shrink(entry, ReproduceOptions()), ReproduceOptions())
    assert [job.budget for job in planned["Hartmann6_300", ConfiguredMethod("saasbo")]] == [200]
    assert ("Levy10_100", ConfiguredMethod("saasbo")) not in planned
    asked = reproduce.plan(reproduce.shrink(entry, ReproduceOptions(seeds=(1, 2))), ReproduceOptions(seeds=(1, 2)))
    assert [job.seed for job in asked["Hartmann6_300", ConfiguredMethod("saasbo")]] == [1, 2]


def test_a_slow_method_gets_fewer_seeds_where_asked() -> None:
    entry, choice = ENTRIES["significance"], ReproduceOptions(fewer=(("turbo", 3), ("saasbo", 1)))
    small = reproduce.shrink(entry, choice)
    planned = reproduce.plan(small, choice)
    assert [job.seed for job in planned["Levy10_100", ConfiguredMethod("turbo")]] == [2021, 2022, 2023]
    assert len(planned["Levy10_100", ConfiguredMethod("mcts-vs-bo")]) == 50
    assert small.effort.fewer == {"turbo": 3}, "a method that is not there is not spoken of"
    assert reproduce.command(entry, choice) == "mctsvs bench reproduce significance --fewer turbo=3,saasbo=1"


def test_labels_stay_while_jobs_carry_the_papers_options() -> None:
    entry, choice = ENTRIES["synthetic2"], ReproduceOptions(paper=True)
    planned = reproduce.plan(entry, choice)
    assert planned["Levy10_100", ConfiguredMethod("cma-es")][0].case == ConfiguredMethod(
        "cma-es", {}, paper=True
    )  # sets sigma when it runs
    assert planned["Levy10_100", ConfiguredMethod("mcts-vs-bo")][0].case == ConfiguredMethod(
        "mcts-vs-bo", {}, paper=True
    )
    own = reproduce.plan(entry, ReproduceOptions())["Levy10_100", ConfiguredMethod("cma-es")][0].case
    assert own == ConfiguredMethod("cma-es", {"sigma": 0.5})
    assert reproduce.command(entry, choice) == "mctsvs bench reproduce synthetic2 --paper"


def test_quick_is_small() -> None:
    for entry in ENTRIES.values():
        small = reproduce.shrink(entry, ReproduceOptions(quick=True))
        planned = reproduce.plan(small, ReproduceOptions(quick=True))
        assert all(job.budget <= 60 for jobs in planned.values() for job in jobs)
        assert all(len(jobs) <= 2 for jobs in planned.values())
        assert ("Hartmann6_500", ConfiguredMethod("saasbo")) not in planned or entry.name == "hierarchy"


def test_what_cannot_be_run_is_left_out_with_a_sentence() -> None:
    entry = replace(
        ENTRIES["fill-in"], panels=(*ENTRIES["fill-in"].panels, Panel("Hartmann9_300", (ConfiguredMethod("random"),)))
    )
    usable, notes = reproduce.available(entry)
    assert usable.problems == ("Hartmann6_300",)
    assert len(notes) == 1
    assert notes[0].startswith("Hartmann9_300 is left out: ")


def test_an_unknown_entry_is_named() -> None:
    with pytest.raises(InputError, match="unknown entry 'synthetic3'"):
        reproduce.find("synthetic3")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One entry, made quickly."""
    made = tmp_path_factory.mktemp("reproduced")
    choice = ReproduceOptions(quick=True, budget=24)
    outcome = reproduce.reproduce(ENTRIES["fill-in"], choice, RunStore(made / "runs"), made, workers=2)
    assert not outcome.failures
    assert not outcome.skipped
    assert {path.name for path in outcome.files} == {
        "fill-in-seeds.csv",
        *(f"fill-in.{kind}" for kind in ("csv", "md", "pdf", "png", "svg", "tex")),
    }
    page_head.index(made, ENTRIES)
    return made


@pytest.mark.needs("matplotlib")
def test_a_page_has_the_command_the_figure_and_the_numbers(folder: Path) -> None:
    text = (folder / "fill-in.md").read_text()
    assert "`mctsvs bench reproduce fill-in --budget 24 --quick`" in text
    assert "![Values of the variables that are not selected](fill-in.png)" in text
    assert "| mcts-vs-bo[fill_in=average-best-k] | 2 |" in text
    assert "The paper: Best-k is much better than random" in text


@pytest.mark.needs("matplotlib")
def test_the_numbers_are_those_of_the_runs(folder: Path) -> None:
    entry, choice = ENTRIES["fill-in"], ReproduceOptions(quick=True, budget=24)
    planned = reproduce.plan(reproduce.shrink(entry, choice), choice)
    label = "mcts-vs-bo[fill_in=random]"
    own = finished(planned["Hartmann6_300", algorithms.parse(label)], RunStore(folder / "runs"))
    lines = [line.split(",") for line in (folder / "fill-in.csv").read_text().splitlines()]
    (last,) = [line for line in lines if line[0] == "ours" and line[2] == label and line[4] == "24.0"]
    assert float(last[5]) == pytest.approx(own.final.mean(), rel=1e-7)
    assert float(last[6]) == pytest.approx(own.final.std(ddof=1) / 2**0.5, rel=1e-7)


@pytest.mark.needs("matplotlib")
def test_a_second_call_writes_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    choice = ReproduceOptions(quick=True, budget=24)
    again = reproduce.reproduce(ENTRIES["fill-in"], choice, RunStore(folder / "runs"), tmp_path, workers=2)
    for path in again.files:
        assert path.read_bytes() == (folder / path.name).read_bytes(), path.name


@pytest.mark.needs("matplotlib")
def test_some_methods_alone_leave_the_numbers_of_the_others(tmp_path: Path) -> None:
    entry, store = ENTRIES["optimiser"], RunStore(tmp_path / "runs")
    some, rest = ("mcts-vs-rs", "mcts-vs-turbo"), ("mcts-vs-bo",)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    for folder, only in ((parts, some), (parts, rest), (whole, ())):
        folder.mkdir(exist_ok=True)
        outcome = reproduce.reproduce(
            entry, ReproduceOptions(quick=True, budget=24, only=only), store, folder, workers=2
        )
        assert not outcome.failures
        drawn = {path.name for path in outcome.files if path.stem == "optimiser-ranks"}
        assert bool(drawn) == (only != some), "two methods are not ranked"
    one, other = (Numbers.read(folder / "optimiser.csv") for folder in (whole, parts))
    assert one.cells == other.cells
    first, second = (sorted((folder / "optimiser-seeds.csv").read_text().split()) for folder in (whole, parts))
    assert first == second
    text = (parts / "optimiser.md").read_text()
    assert "`mctsvs bench reproduce optimiser --budget 24 --quick --only mcts-vs-rs,mcts-vs-turbo`" in text
    assert "mcts-vs-bo: `mctsvs bench reproduce optimiser --budget 24 --quick --only mcts-vs-bo`" in text
    assert re.search(r"Mean ranks over 3 problems: (mcts-vs-\w+ \d\.\d\d(, |; )){3}critical difference 1\.91", text)
    assert text.count("**Quick**") == 1
    with pytest.raises(InputError, match="--budget 20 does not fit the numbers in the folder, which are of 24"):
        reproduce.reproduce(entry, ReproduceOptions(quick=True, budget=20, only=rest), store, parts, workers=2)


def test_methods_that_an_entry_does_not_have_are_none(tmp_path: Path) -> None:
    outcome = reproduce.reproduce(
        ENTRIES["k"], ReproduceOptions(only=("turbo",)), RunStore(tmp_path / "runs"), tmp_path, workers=1
    )
    assert outcome.skipped
    assert outcome.notes == ["no method is left to run: the entry has mcts-vs-bo"]


def test_what_slow_methods_got_is_said_once() -> None:
    def numbers(method: str, *notes: str) -> Numbers:
        made = ["made", f"command of {method}", "2026-11-18", "", 600, "", "", 5, "2021-2025"]
        return Numbers(
            [made, *(["note", note] for note in notes), ["ours", "p", method, "evaluations", 600, 1.0, 0.1, 5]]
        )

    before = numbers(
        "alebo[d=6]", "Slow methods got less: alebo: 3 seeds and 200 evaluations; saasbo: 1 seed.", "Other."
    )
    after = page_head.beside(before, numbers("alebo[d=6]", "Slow methods got less: alebo: 200 evaluations."))
    assert after.notes == [
        "Slow methods got less: saasbo: 1 seed; alebo: 200 evaluations.",
        "Other.",
        "alebo: `command of alebo[d=6]`, 2026-11-18, seeds 2021-2025.",
    ]
    assert page_head.beside(after, numbers("alebo[d=6]")).notes[1:] == after.notes[1:]


@pytest.mark.needs("matplotlib")
def test_the_index_keeps_what_people_wrote(folder: Path) -> None:
    path = folder / "README.md"
    assert "[fill-in](fill-in.md)" in path.read_text()
    path.write_text("Our words.\n\n" + path.read_text() + "\nMore words.\n")
    page_head.index(folder, ENTRIES)
    text = path.read_text()
    assert text.startswith("Our words.\n")
    assert text.endswith("More words.\n")
    assert text.count("[fill-in](fill-in.md)") == 1


@pytest.mark.parametrize(
    ("problem", "name", "d"),
    [
        ("Hartmann6_300", "hartmann6_300", 6),
        ("Hartmann6_5_500", "hartmann30_500", 30),
        ("Hartmann6_5_500_v", "hartmann30_500_various_extent", 30),
        ("Levy10_100", "levy10_100", 10),
        ("NASBench101", "nasbench", 10),
    ],
)
def test_the_authors_names(problem: str, name: str, d: int) -> None:
    assert author_logs.problem_name(problem) == name
    assert author_logs.valid_variables(problem) == d


def test_the_authors_runs_are_found_by_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gzip

    lines = ["group,problem,algorithm,seed,evaluations,best_y,seconds"]
    for seed in (2021, 2022, 2099):
        lines.append(f"ablation_logs,param_k,lamcts_vs_bo_5,{seed},600,{seed / 1000},10.0")
        lines.append(f"hartmann6_logs,hartmann6_300,dropout_bo_6,{seed},600,3.0,5.0")
    (tmp_path / "authors_runs").mkdir()
    with gzip.open(tmp_path / "authors_runs" / "best_so_far.csv.gz", "wt") as file:
        file.write("\n".join(lines))
    monkeypatch.setenv("MCTSVS_DATA", str(tmp_path))
    monkeypatch.delenv("MCTSVS_DATA_CHOSEN", raising=False)
    theirs = author_logs.read((2021, 2022))
    logs = ENTRIES["k"].published.logs
    found = theirs.find(logs, "Hartmann6_300", algorithms.parse("mcts-vs-bo[k=5]"))
    assert found is not None
    assert found.at(600).mean == pytest.approx(2.0215)
    assert found.at(600).n == 2
    assert found.at(550).n == 0
    assert theirs.find(logs, "Hartmann6_300", algorithms.parse("mcts-vs-bo[k=10]")) is None
    dropped = theirs.find((), "Hartmann6_300", algorithms.parse("dropout-bo"))
    assert dropped is not None
    assert dropped.logs == "hartmann6_logs"


def test_the_run_that_went_on_alone_is_not_taken_for_their_mean() -> None:
    """In one of their places four of five runs stop at 150; in another all go on to 600."""
    early, late = {150: (2.0, 1.0)}, {150: (2.1, 1.0), 600: (3.3, 4.0)}
    broken = {2021: early, 2022: late, 2023: early}
    key = "hartmann6_logs", "hartmann6_300", "mcts_vs_turbo"
    case = algorithms.parse("mcts-vs-turbo")
    alone = author_logs.AuthorLogs({key: broken}, (2021, 2022, 2023)).find((), "Hartmann6_300", case)
    assert alone is not None
    assert alone.checkpoints == [150]
    assert alone.at(150).n == 3
    whole = dict.fromkeys((2021, 2022), late)
    both = {key: broken, ("repeat_logs", "hartmann6_300", "mcts_vs_turbo"): whole}
    found = author_logs.AuthorLogs(both, (2021, 2022, 2023)).find((), "Hartmann6_300", case)
    assert found is not None
    assert (found.logs, found.checkpoints) == ("repeat_logs", [150, 600])


def runs_of(best: list[float], budget: int = 600) -> Runs:
    """Runs whose best value never changes."""
    values = np.repeat(np.array(best)[:, None], budget, axis=1)
    seconds = np.ones_like(values)
    rest = np.full(len(best), 0.5)
    seeds = tuple(range(2021, 2021 + len(best)))
    return Runs(seeds=seeds, best=values, thinking=seconds, elapsed=seconds, recall=rest, cpu=rest)


def page_of(name: str, runs: dict[tuple[str, ConfiguredMethod], Runs], theirs: author_logs.AuthorLogs) -> Page:
    return Page(ENTRIES[name], Found(ENTRIES[name], runs, theirs).numbers(Provenance("command")))


def test_a_single_run_is_not_judged_and_a_problem_on_another_scale_is_not_compared() -> None:
    def theirs(count: int) -> dict[int, dict[int, tuple[float, float]]]:
        return {2021 + i: {600: (1.0 + 0.01 * i, 1.0)} for i in range(count)}

    ours = runs_of([3.0, 3.1, 3.2])
    runs = {
        ("ablation_logs", f"{problem}_solver", f"mcts_vs_{solver}"): theirs(count)
        for problem in ("hartmann6_500", "hartmann30_500")
        for solver, count in (("bo", 3), ("turbo", 1))
    }
    cells = {
        (p, ConfiguredMethod(f"mcts-vs-{s}")): ours
        for p in ("Hartmann6_500", "Hartmann6_5_500")
        for s in ("bo", "turbo")
    }
    page = page_of("optimiser", cells, author_logs.AuthorLogs(runs, tuple(range(2021, 2026))))
    verdict = page.verdict(page.main)
    assert verdict is not None
    assert (verdict.cells, verdict.better, verdict.worse) == (1, 1, 0)
    assert "(1 run, at 600; ablation_logs)" in page.text()
    assert page.text().count("ablation_logs") == 2


def test_a_method_with_fewer_evaluations_has_no_rank() -> None:
    cells = {
        ("Hartmann6_500", ConfiguredMethod("mcts-vs-saasbo")): runs_of([3.0], 200),
        ("Hartmann6_500", ConfiguredMethod("saasbo")): runs_of([3.1], 100),
    }
    page = page_of("hierarchy", cells, author_logs.AuthorLogs({}, ()))
    text = page.measure.table(page)
    rows = {line.split(" | ")[0].strip("| "): line.split(" | ") for line in text.splitlines() if "saasbo" in line}
    header = next(line for line in text.splitlines() if "rank" in line).split(" | ")
    rank = header.index("rank")
    assert rows["mcts-vs-saasbo"][rank] == "1"
    assert rows["saasbo"][rank] == ""


def test_the_numbers_behind_a_table_hold_the_papers_and_the_authors() -> None:
    runs = {("time_logs", "hartmann6_300", "lamcts_vs_bo"): {2021: {100: (3.0, 3.5)}, 2022: {100: (3.0, 3.9)}}}
    cells = {("Hartmann6_300", ConfiguredMethod("mcts-vs-bo")): runs_of([3.0, 3.1], 100)}
    page = page_of("time", cells, author_logs.AuthorLogs(runs, (2021, 2022)))
    found = {s: page.main.at(s, "Hartmann6_300", "mcts-vs-bo", "seconds") for s in (OURS, PRINTED, THEIRS)}
    own = {source: value.mean for source, value in found.items() if value}
    assert own == {"ours": 0.5, "paper": 3.711, "authors": pytest.approx(3.7)}


def test_a_pages_command_and_seeds_are_those_of_its_runs() -> None:
    choice = ReproduceOptions(seeds=(1, 5, 9), data=True)
    entry = reproduce.shrink(ENTRIES["k"], choice)
    assert reproduce.command(entry, choice) == "mctsvs bench reproduce k --seeds 1,5,9 --data DATA"
    numbers = Found(entry, {}, author_logs.AuthorLogs({}, ())).numbers(Provenance("command"))
    assert "seeds 1,5,9," in page_head.head(entry, numbers)
    fewer = reproduce.shrink(ENTRIES["optimiser-rs"], ReproduceOptions(seeds=(1, 2), fewer=(("random", 30),)))
    assert Provenance("command").lines(fewer) == []


def test_a_page_names_no_folder_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCTSVS_DATA", str(tmp_path))
    note = f"the data set 'x' is not in {str(tmp_path)!r} or {str(Path.home())!r}: put it there"
    assert str(tmp_path) not in page_head.without_paths(note)


def test_compare_with_paper_sets_cma_es_as_reproduce_does() -> None:
    for name in ("Hartmann6_300", "Levy10_100"):
        expected = set_by_paper("cma-es", name)
        assert expected
        chosen = paper_options("cma-es", problems.make(name), {}, faithful=True)
        assert chosen == {"settings": "paper", **expected}


SHARED = Path(__file__).parents[2].parent / "shared" / "data" / "authors_runs" / "best_so_far.csv.gz"


@pytest.mark.skipif(not SHARED.is_file(), reason="the authors' runs are not here")
def test_our_statistics_give_the_papers_marks_from_the_authors_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their 200 x 4 runs through our test: all twelve marks, and the means to the printed digit."""
    monkeypatch.setenv("MCTSVS_DATA", str(SHARED.parents[1]))
    monkeypatch.delenv("MCTSVS_DATA_CHOSEN", raising=False)
    entry = ENTRIES["significance"]
    assert isinstance(entry.measure, Significance)
    theirs = author_logs.read(entry.effort.seeds)
    for problem in entry.problems:
        base = theirs.find(entry.published.logs, problem, entry.measure.reference)
        assert base is not None
        one = base.values(600)
        printed = [case for case in entry.cases(problem) if case in entry.published.printed]
        assert len(printed) == 5  # MCTS-VS-BO's stand beside the authors' program too
        for case in printed:
            found = theirs.find(entry.published.logs, problem, case)
            assert found is not None
            mean, _, mark = entry.published.printed[case][problem]
            assert found.at(600).mean == pytest.approx(mean, abs=1.1e-3)
            other = found.values(600)
            if mark:
                seeds = entry.effort.seeds
                assert stats.mark([one[s] for s in seeds], [other[s] for s in seeds]) == mark, (problem, case)


def test_a_job_on_a_named_problem_keeps_that_name() -> None:
    planned = reproduce.plan(ENTRIES["k"], ReproduceOptions())
    assert all(isinstance(job, Job) and job.problem == "Hartmann6_300" for jobs in planned.values() for job in jobs)
