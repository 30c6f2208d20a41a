"""Grids of runs: the same table however often they are killed, and failures that stop nobody."""

from __future__ import annotations

import csv
import errno
import gzip
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import mctsvs
from mctsvs.bench import grid, problems, results
from mctsvs.bench.algorithms import ConfiguredMethod, parse
from mctsvs.bench.run_store import Job, RunStore, collect, ranges
from mctsvs.loop import process_pool
from mctsvs.utils.validation import InputError

METHODS = "mcts-vs-rs,mcts-vs-bo[k=5],random"


def positions(text: str) -> list[int]:
    """What `ranges` wrote."""
    found: list[int] = []
    for part in text.split():
        first, _, last = part.partition("-")
        found.extend(range(int(first), int(last or first) + 1))
    return found


def small(budget: int = 20, seeds: int = 2) -> list[Job]:
    return grid.jobs(["Hartmann6_20", "Levy5_20"], [parse("mcts-vs-rs"), parse("random")], range(seeds), budget)


def without_seconds(path: Path) -> list[list[str]]:
    """The table without its two columns of seconds."""
    with path.open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0][-2:] == ["optimizer_seconds", "wall_seconds"]
    return [row[:-2] for row in rows]


@pytest.mark.parametrize("given", [[], [3], [0, 1, 2, 7], [1, 3, 4, 5, 9, 10]])
def test_ranges(given: list[int]) -> None:
    assert positions(ranges(given)) == given


def test_ranges_as_text() -> None:
    assert ranges([0, 1, 2, 7]) == "0-2 7"


def test_a_grid_in_one_tidy_table(tmp_path: Path) -> None:
    store, jobs = RunStore(tmp_path / "runs"), small()
    seen = []
    progress = grid.run_jobs(jobs, store, 2, lambda state, event, job: seen.append((event, job.key)))
    assert (progress.done, progress.skipped, progress.failures) == (len(jobs), 0, [])
    assert sorted(key for event, key in seen if event == "done") == sorted(job.key for job in jobs)
    assert results.write_table(jobs, store, tmp_path / "a.csv") == 20 * len(jobs)
    with (tmp_path / "a.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(results.TABLE_COLUMNS)
    own = [row for row in rows if (row["problem"], row["method"], row["seed"]) == ("Levy5_20", "mcts-vs-rs", "1")]
    assert [int(row["evaluation"]) for row in own] == list(range(1, 21))
    values = [float(row["value"]) for row in own]
    assert [float(row["best"]) for row in own] == np.maximum.accumulate(values).tolist()
    assert all(len(positions(row["variables"])) == int(row["selected"]) for row in own)
    assert {row["iteration"] for row in own} >= {"0", "1"}
    seconds = [float(row["wall_seconds"]) for row in own]
    assert seconds == sorted(seconds)
    assert progress.best["Hartmann6_20"][0] == max(
        float(row["best"]) for row in rows if row["problem"] == "Hartmann6_20"
    )


def test_nothing_is_done_twice(tmp_path: Path) -> None:
    store, jobs = RunStore(tmp_path / "runs"), small()
    grid.run_jobs(jobs[:3], store, 1)
    before = {path: path.stat().st_mtime_ns for path in store.folder.glob("*.gz")}
    progress = grid.run_jobs(jobs, store, 2)
    assert (progress.skipped, progress.done) == (3, len(jobs) - 3)
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in before.items())
    assert grid.run_jobs(jobs, store, 2).done == 0


def test_a_failing_run_is_reported_and_the_others_are_done(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "runs")
    wrong = Job("Hartmann6_20", ConfiguredMethod("mcts-vs-rs", {"k": 0}), 0, 20)
    unknown = Job("Hartmann7_20", ConfiguredMethod("random"), 0, 20)
    jobs = [wrong, unknown, *small()]
    progress = grid.run_jobs(jobs, store, 2)
    assert progress.done == len(jobs) - 2
    errors = {failure.job.key: failure.error for failure in progress.failures}
    assert "k=0" in errors[wrong.key]
    assert "unknown problem" in errors[unknown.key]
    assert wrong not in store
    again = grid.run_jobs(jobs, store, 2)  # tried again, the others are not
    assert (again.skipped, again.done, len(again.failures)) == (len(jobs) - 2, 0, 2)


def test_a_worker_that_dies_costs_its_own_run_only(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "runs")
    jobs = grid.jobs(["Hartmann6_30"], [parse("mcts-vs-bo")], range(3), 60)
    killed: list[int] = []

    def kill_the_first(progress: grid.Progress, event: str, job: Job) -> None:
        if event == "progress" and not killed:
            for process in multiprocessing.active_children():
                killed.append(process.pid or 0)
                os.kill(killed[-1], signal.SIGKILL)

    progress = grid.run_jobs(jobs, store, 1, kill_the_first)
    if not killed:  # a machine so fast that no run lasts long enough to be reported on
        assert progress.done == 3
        return
    assert len(progress.failures) == 1
    assert "ended with status -9" in progress.failures[0].error
    assert progress.done == 2


def test_two_grids_do_not_share_a_folder(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    store = RunStore(tmp_path / "runs")
    holder = (
        "import sys, time; from pathlib import Path; from mctsvs.bench.run_store import RunStore\n"
        "with RunStore(Path(sys.argv[1])).locked(): print('claimed', flush=True); time.sleep(60)"
    )
    other = subprocess.Popen([sys.executable, "-c", holder, str(store.folder)], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "claimed\n"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("time.sleep", lambda _: None)
            patch.setattr("time.monotonic", iter(range(0, 10**6, 10)).__next__)  # fifteen seconds pass at once
            with pytest.raises(InputError, match="another comparison"), store.locked():
                pass
    finally:
        other.kill()
        other.communicate()
    with store.locked():  # its death frees the folder
        pass


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    store, jobs = RunStore(tmp_path / "runs"), small(seeds=1)[:1]
    grid.run_jobs(jobs, store, 1)
    store.path(jobs[0]).write_bytes(b"half")
    with pytest.raises(InputError, match="damaged"):
        collect(jobs, store)


def test_a_damaged_run_is_done_again_and_the_others_are_not(tmp_path: Path) -> None:
    said: list[str] = []
    store, jobs = RunStore(tmp_path / "runs", said.append), small(seeds=1)
    grid.run_jobs(jobs, store, 2)
    whole = {job: store.path(job).stat().st_mtime_ns for job in jobs}
    damaged = store.path(jobs[1])
    damaged.write_bytes(damaged.read_bytes()[:-20])
    progress = grid.run_jobs(jobs, store, 2)
    assert (progress.skipped, progress.done) == (len(jobs) - 1, 1)
    assert len(said) == 1
    assert damaged.with_name(f"{damaged.name}.damaged").is_file()
    assert len(store.load(jobs[1]).series("trace")) == 20
    assert all(store.path(job).stat().st_mtime_ns == whole[job] for job in jobs if job != jobs[1])
    assert grid.run_jobs(jobs, store, 2).done == 0


def test_runs_of_several_versions_are_named(tmp_path: Path) -> None:
    said: list[str] = []
    store, jobs = RunStore(tmp_path / "runs", said.append), small(seeds=1)[:2]
    grid.run_jobs(jobs[:1], store, 1)
    path = store.path(jobs[0])
    content = json.loads(gzip.decompress(path.read_bytes()))
    path.write_bytes(gzip.compress(json.dumps(content | {"version": "0.0.1"}).encode()))
    progress = grid.run_jobs(jobs, store, 1)
    assert progress.versions == {"0.0.1", mctsvs.__version__}
    assert said == [f"the runs were done by several versions of mctsvs: 0.0.1, {mctsvs.__version__}"]


def test_a_display_is_told_before_the_first_worker_has_started(tmp_path: Path) -> None:
    store, jobs = RunStore(tmp_path / "runs"), small(seeds=1)[:2]
    seen = []
    grid.run_jobs(jobs, store, 1, lambda state, event, job: seen.append((event, state.finished, state.total)))
    assert seen[0] == ("start", 0, 2)


def test_a_log_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "runs")
    (store.folder / grid.LOG).mkdir()
    with pytest.raises(InputError, match=r"cannot write .*workers\.log"):
        grid.run_jobs(small(), store, 1)


def test_workers_that_cannot_start_are_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(*_: object) -> None:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(process_pool, "WorkerProcess", no_room)
    store = RunStore(tmp_path / "runs")
    with pytest.raises(InputError, match="no worker process can start: Resource temporarily unavailable"):
        grid.run_jobs(small(), store, 3)
    assert {path.name for path in store.folder.iterdir()} == {".lock", grid.LOG}


def test_what_problems_print_goes_to_the_log(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    own = tmp_path / "own.py"
    own.write_text(
        "import os, random, sys\nimport numpy as np\nspace = [(0, 1)] * 2\n\n"
        "def f(x):\n    print('said', np.random.random())\n    os.system('echo shouted >&2')\n    return float(x[0])\n"
    )
    store, methods = RunStore(tmp_path / "runs"), [parse("random")]
    progress = grid.run_jobs(grid.jobs([f"{own}:f"], methods, range(2), 2), store, 2)
    assert progress.done == 2
    assert capfd.readouterr() == ("", "")
    lines = (store.folder / grid.LOG).read_text().splitlines()
    assert lines.count("shouted") == 4
    assert (
        len({line for line in lines if line.startswith("said")}) == 4
    )  # runs of different seeds draw different numbers


def test_problems_that_draw_from_the_shared_generators_repeat(tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(
        "import numpy as np\nspace = [(0, 1)] * 2\n\ndef f(x):\n    return float(x[0] + np.random.random())\n"
    )
    bests = []
    for workers in (1, 2):
        store = RunStore(tmp_path / f"runs{workers}")
        jobs = grid.jobs([f"{own}:f"], [parse("random")], range(4), 3)
        grid.run_jobs(jobs, store, workers)
        bests.append([float(store.load(job).record["best"]) for job in jobs])
    assert bests[0] == bests[1]
    assert len(set(bests[0])) == 4


def test_an_error_names_its_place_and_is_traced_in_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problems, "resolve", lambda name, **_: 1 / 0)
    store = RunStore(tmp_path / "runs")
    progress = grid.run_jobs(small(seeds=1)[:1], store, 1)
    (failure,) = progress.failures
    assert re.fullmatch(r"ZeroDivisionError: division by zero \(test_grid\.py, line \d+\)", failure.error)
    assert "Traceback" in (store.folder / grid.LOG).read_text()


def test_time_left_is_guessed_from_runs_of_the_same_kind() -> None:
    jobs = small(budget=10)
    progress = grid.Progress(len(jobs), workers=2)
    assert progress.seconds_left() is None
    progress.spent = {
        ("Hartmann6_20", ConfiguredMethod("mcts-vs-rs")): [2.0, 4.0],
        ("Levy5_20", ConfiguredMethod("random")): [6.0],
    }
    hartmann, levy = jobs[0], jobs[3]
    assert (hartmann.problem, levy.problem, levy.case.label) == ("Hartmann6_20", "Levy5_20", "random")
    progress.waiting.extend([hartmann, levy])
    assert progress.seconds_left() == (3.0 + 6.0) / 2
    progress.running[0] = (hartmann, 5)
    assert progress.seconds_left() == (3.0 + 6.0 + 1.5) / 2


def compare(folder: Path, *extra: str) -> list[str]:
    what = ["Hartmann6_30", "Levy5_30", "--methods", METHODS, "--seeds", "1-3", "--budget", "45"]
    return [sys.executable, "-m", "mctsvs", "bench", "compare", *what, "--workers", "2", "-o", str(folder), *extra]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no kill -9")
def test_killed_twice_the_table_is_that_of_an_undisturbed_grid(tmp_path: Path) -> None:
    undisturbed = subprocess.run(compare(tmp_path / "a"), capture_output=True, text=True)
    assert undisturbed.returncode == 0, undisturbed.stderr
    runs = tmp_path / "b" / "runs"
    for wanted in (3, 9):  # killed as soon as so many runs are stored
        process = subprocess.Popen(compare(tmp_path / "b"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and len(list(runs.glob("*.gz"))) < wanted:
            time.sleep(0.005)
        process.kill()
        process.wait()
        assert len(list(runs.glob("*.gz"))) < 18
    before = {path.name: path.stat().st_mtime_ns for path in runs.glob("*.gz")}
    last = subprocess.run(compare(tmp_path / "b"), capture_output=True, text=True)
    assert last.returncode == 0, last.stderr
    after = {path.name: path.stat().st_mtime_ns for path in runs.glob("*.gz")}
    assert len(after) == 18
    assert f"{18 - len(before)} runs done now, {len(before)} before" in last.stdout
    assert before.items() <= after.items()  # nothing was written again
    assert without_seconds(tmp_path / "a" / "results.csv") == without_seconds(tmp_path / "b" / "results.csv")
    assert not list(runs.glob("*.partial"))


def test_parquet_holds_the_same(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    store, jobs = RunStore(tmp_path / "runs"), small()
    grid.run_jobs(jobs, store, 2)
    for ending in ("csv", "parquet"):
        results.write_table(jobs, store, tmp_path / f"t.{ending}")
    one, other = pandas.read_csv(tmp_path / "t.csv"), pandas.read_parquet(tmp_path / "t.parquet")
    pandas.testing.assert_frame_equal(one, other, check_dtype=False)  # in the same order too
    assert {path.name for path in tmp_path.iterdir()} == {"runs", "t.csv", "t.parquet"}


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_table_that_cannot_be_written_is_one_sentence(name: str, tmp_path: Path) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    (tmp_path / name).mkdir()
    with pytest.raises(InputError, match="it is a folder"):
        results.check_table(tmp_path / name)
    with pytest.raises(InputError, match="cannot write"):
        results.write_table([], RunStore(tmp_path / "runs"), tmp_path / name)
    assert {path.name for path in tmp_path.iterdir()} == {"runs", name}


def test_shuffled_problems_follow_the_run_unless_they_have_a_seed() -> None:
    cases = [parse("random")]
    own = grid.jobs(["Hartmann6_20"], cases, [3, 4], 10, variation={"shuffle": True})
    fixed = grid.jobs(["Hartmann6_20"], cases, [3, 4], 10, variation={"shuffle": True}, problem_seed=7)
    assert [job.variation["seed"] for job in own] == [3, 4]
    assert [job.variation["seed"] for job in fixed] == [7, 7]
    assert dict(grid.jobs(["Hartmann6_20"], cases, [3], 10)[0].variation) == {}
