"""Grids of runs: the same table however often they are killed, and failures that stop nobody."""

from __future__ import annotations

import csv
import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import mctsvs
from mctsvs.bench import grid, results_table, workers
from mctsvs.bench.algorithms import ConfiguredMethod, parse
from mctsvs.bench.run_store import Job, RunStore, ranges
from mctsvs.bench.run_store import collect
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
    progress = grid.work(jobs, store, 2, lambda state, event, job: seen.append((event, job.key)))
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
    grid.work(jobs[:3], store, 1)
    before = {path: path.stat().st_mtime_ns for path in store.folder.glob("*.gz")}
    progress = grid.work(jobs, store, 2)
    assert (progress.skipped, progress.done) == (3, len(jobs) - 3)
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in before.items())
    assert grid.work(jobs, store, 2).done == 0


def test_a_failing_run_is_reported_and_the_others_are_done(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "runs")
    wrong = Job("Hartmann6_20", ConfiguredMethod("mcts-vs-rs", {"k": 0}), 0, 20)
    unknown = Job("Hartmann7_20", ConfiguredMethod("random"), 0, 20)
    jobs = [wrong, unknown, *small()]
    progress = grid.work(jobs, store, 2)
    assert progress.done == len(jobs) - 2
    errors = {failure.job.key: failure.error for failure in progress.failures}
    assert "k=0" in errors[wrong.key]
    assert "unknown problem" in errors[unknown.key]
    assert wrong not in store
    again = grid.work(jobs, store, 2)  # tried again, the others are not
    assert (again.skipped, again.done, len(again.failures)) == (len(jobs) - 2, 0, 2)


def test_a_worker_that_dies_costs_its_own_run_only(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "runs")
    jobs = grid.jobs(["Hartmann6_30"], [parse("mcts-vs-bo")], range(3), 60)
    killed: list[int] = []

    def kill_the_first(progress: grid.Progress, event: str, job: Job) -> None:
        if event == "progress" and not killed:
            for pid in children(os.getpid()):
                killed.append(pid)
                os.kill(pid, signal.SIGKILL)

    progress = grid.work(jobs, store, 1, kill_the_first)
    if not killed:  # a machine so fast that no run lasts long enough to be reported on
        assert progress.done == 3
        return
    assert len(progress.failures) == 1
    assert "signal 9" in progress.failures[0].error
    assert progress.done == 2


def children(parent: int) -> list[int]:
    listed = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(parent)], capture_output=True, text=True).stdout
    return [int(line.split()[0]) for line in listed.splitlines() if "mctsvs.bench.worker" in line]


def test_two_grids_do_not_share_a_folder(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    store = RunStore(tmp_path / "runs")
    holder = (
        "import sys, time; from pathlib import Path; from mctsvs.bench.run_store import Store\n"
        "with Store(Path(sys.argv[1])).claimed(): print('claimed', flush=True); time.sleep(60)"
    )
    other = subprocess.Popen([sys.executable, "-c", holder, str(store.folder)], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "claimed\n"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("time.sleep", lambda _: None)
            patch.setattr("time.monotonic", iter(range(0, 10**6, 10)).__next__)  # fifteen seconds pass at once
            with pytest.raises(InputError, match="another comparison"), store.claimed():
                pass
    finally:
        other.kill()
        other.communicate()
    with store.claimed():  # its death frees the folder
        pass


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    store, jobs = RunStore(tmp_path / "runs"), small(seeds=1)[:1]
    grid.work(jobs, store, 1)
    store.path(jobs[0]).write_bytes(b"half")
    with pytest.raises(InputError, match="damaged"):
        collect(jobs, store)


def test_a_damaged_run_is_done_again_and_the_others_are_not(tmp_path: Path) -> None:
    said: list[str] = []
    store, jobs = RunStore(tmp_path / "runs", said.append), small(seeds=1)
    grid.work(jobs, store, 2)
    whole = {job: store.path(job).stat().st_mtime_ns for job in jobs}
    damaged = store.path(jobs[1])
    damaged.write_bytes(damaged.read_bytes()[:-20])
    progress = grid.work(jobs, store, 2)
    assert (progress.skipped, progress.done) == (len(jobs) - 1, 1)
    assert len(said) == 1
    assert damaged.with_name(f"{damaged.name}.damaged").is_file()
    assert len(store.load(jobs[1]).series("trace")) == 20
    assert all(store.path(job).stat().st_mtime_ns == whole[job] for job in jobs if job != jobs[1])
    assert grid.work(jobs, store, 2).done == 0


def test_runs_of_several_versions_are_named(tmp_path: Path) -> None:
    said: list[str] = []
    store, jobs = RunStore(tmp_path / "runs", said.append), small(seeds=1)[:2]
    grid.work(jobs[:1], store, 1)
    path = store.path(jobs[0])
    content = json.loads(gzip.decompress(path.read_bytes()))
    path.write_bytes(gzip.compress(json.dumps(content | {"version": "0.0.1"}).encode()))
    progress = grid.work(jobs, store, 1)
    assert progress.versions == {"0.0.1", mctsvs.__version__}
    assert said == [f"the runs were done by several versions of mctsvs: 0.0.1, {mctsvs.__version__}"]


def test_a_display_is_told_before_the_first_worker_has_started(tmp_path: Path) -> None:
    store, jobs = RunStore(tmp_path / "runs"), small(seeds=1)[:2]
    seen = []
    grid.work(jobs, store, 1, lambda state, event, job: seen.append((event, state.finished, state.total)))
    assert seen[0] == ("start", 0, 2)


def test_a_log_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "runs")
    (store.folder / workers.LOG).mkdir()
    with pytest.raises(InputError, match=r"cannot write .*workers\.log"):
        grid.work(small(), store, 1)


def at_the_start_of_workers(folder: Path, monkeypatch: pytest.MonkeyPatch, lines: str) -> None:
    """Worker processes run these lines before anything else; `started` counts them."""
    folder.mkdir()
    count = (
        "import os, pathlib, sys\n"
        "folder = pathlib.Path(__file__).parent\n"
        "(folder / f'{os.getpid()}.start').touch()\n"
        "started = len(list(folder.glob('*.start')))\n"
    )
    (folder / "sitecustomize.py").write_text(count + lines)
    monkeypatch.syspath_prepend(folder)


def test_workers_that_cannot_start_are_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_the_start_of_workers(
        tmp_path / "site", monkeypatch, "print('no room', file=sys.stderr, flush=True); os._exit(3)"
    )
    said: list[str] = []
    store = RunStore(tmp_path / "runs", said.append)
    with pytest.raises(
        InputError, match="no worker process can start: it ended with status 3, and 'no room' is the last"
    ):
        grid.work(small(), store, 3)
    assert said == []


def test_a_worker_that_cannot_be_replaced_stops_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_the_start_of_workers(tmp_path / "site", monkeypatch, "started > 2 and os._exit(3)")
    said: list[str] = []
    store = RunStore(tmp_path / "runs", said.append)
    jobs = grid.jobs(["Hartmann6_30"], [parse("mcts-vs-bo")], range(16), 60)
    killed: list[int] = []

    def kill_the_first(progress: grid.Progress, event: str, job: Job) -> None:
        # both at work: one that is still starting would not be replaced
        if event == "done" and len(progress.running) == 2 and progress.waiting and not killed:
            killed.append(children(os.getpid())[0])
            os.kill(killed[0], signal.SIGKILL)

    progress = grid.work(jobs, store, 2, kill_the_first)
    assert progress.done + len(progress.failures) == 16
    assert len(progress.failures) <= 1  # the run of the one that was killed
    assert len(list((tmp_path / "site").glob("*.start"))) == 3
    (line,) = said
    assert line.startswith("a worker process could not start, the others go on: it ended with status 3")


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
    return [sys.executable, "-m", "mctsvs", "compare", *what, "--workers", "2", "-o", str(folder), *extra]


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
    grid.work(jobs, store, 2)
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
