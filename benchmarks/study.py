"""What studies promise, measured: kills, damage, storing, opening, busy workers, and faults of all kinds.

    python benchmarks/study.py [kill|store|open|busy|damage|faults|disk|all] [--quick]

Each part prints rows of a Markdown table; `--quick` does a tenth. `disk`, which is also the last of `faults`,
takes half an hour. Exit status 1: a bar was missed. Needs Linux (processes are forked and killed), a C compiler for
`disk`, and Optuna for `store`.
"""

from __future__ import annotations

import os

# read once, when numpy loads its BLAS
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"

import argparse
import gc
import hashlib
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import study_disk
import study_faults
from mctsvs import Optimizer, Study, StudyError, Trial
from mctsvs.utils.validation import Array

BUDGET = 200
BOX = [(0.0, 1.0)] * 20


def row(what: str, measured: str, bar: str, met: bool) -> bool:
    print(f"| {what} | {measured} | {bar} | {'yes' if met else 'NO'} |", flush=True)
    return met


def picture(trials: list[Trial]) -> list[tuple[Any, ...]]:
    """All there is to say about trials, to be compared bit for bit."""
    return [
        (t.number, t.unit.tobytes(), t.variables.tobytes(), repr(t.value), t.iteration, t.source, t.message)
        for t in trials
    ]


def bowl(x: Array) -> float:
    if x[7] > 0.97:
        raise ValueError("too far to the right")
    return float(((x[:5] - 0.3) ** 2).sum())


def fork(work: Callable[[], None]) -> int:
    """The number of a process that does this work and nothing else."""
    process = os.fork()
    if process:
        return process
    status = 1
    try:
        work()
        status = 0
    finally:
        os._exit(status)


def kill(folder: Path, kills: int) -> bool:
    """Runs of the default method, killed at random moments and resumed each time."""
    met = [kill_runs(folder / mode, mode, kills) for mode in MODES]
    return all(met)


MODES: dict[str, dict[str, Any]] = {
    "sequential": {},
    "batches of 4 workers": {"workers": 4},
    "asynchronous, 4 workers": {"workers": 4, "asynchronous": True},
}


def kill_runs(folder: Path, mode: str, kills: int) -> bool:
    """Nothing told is lost, nothing stored is evaluated again, no process stays; batches end as if undisturbed."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    expected, seconds = undisturbed(folder, mode)
    done = runs = lost = twice = left = wrong = 0
    while done < kills:
        run = Killed(folder / str(runs), mode)
        runs += 1
        again: list[str] = []
        while True:
            before = len(run.begun())
            stored = run.stored()
            process = fork(run.work)
            time.sleep(rng.uniform(0.0, 3.0 * seconds / kills))
            if done < kills:
                os.kill(process, signal.SIGKILL)
            _, status = os.waitpid(process, 0)
            done += os.WIFSIGNALED(status)
            left += run.processes_left()
            lost += run.lost()
            again += [line for line in run.begun()[before:] if line in stored]
            if status == 0:
                break
        with Study(run.path, readonly=True) as study:
            wrong += picture(study.trials) != expected if expected else study.evaluated != BUDGET
            asked = Counter(digest(t.x) for t in study.trials)
        twice += sum(asked[point] == 1 for point in again)  # a method may ask for a known point under a new number
    found = f"{wrong} runs differ, {lost} values lost, {twice} evaluated again, {left} processes left"
    return row(f"kill -9, {mode}", f"{done} kills in {runs} runs: {found}", "0", not (wrong or lost or twice or left))


def undisturbed(folder: Path, mode: str) -> tuple[list[tuple[Any, ...]], float]:
    """The same run left alone, where it can be told what it would be, and the seconds it takes."""
    run = Killed(folder / "whole", mode)
    started = time.perf_counter()
    run.work()
    with Study(run.path, readonly=True) as study:
        trials = [] if MODES[mode].get("asynchronous") else picture(study.trials)
    return trials, time.perf_counter() - started


class Killed:
    """A run that keeps a record of its own, beside the study, of what it evaluates and what it was told."""

    def __init__(self, folder: Path, mode: str) -> None:
        self.folder, self.options = folder, MODES[mode]
        self.path, self.told = folder / "run.db", folder / "told"
        folder.mkdir()
        self.told.touch()
        (folder / "begun").touch()

    def objective(self, x: Array) -> float:
        with (self.folder / "begun").open("a") as log:
            log.write(f"{os.getpid()} {digest(x)}\n")
        return bowl(x)

    def work(self) -> None:
        with self.told.open("a", buffering=1) as log, Study(self.path, BOX, seed=1) as study:
            study.optimize(
                self.objective, BUDGET, callback=lambda _, t: log.write(f"{t.number} {t.value!r}\n"), **self.options
            )

    def begun(self) -> list[str]:
        return [line.split()[1] for line in (self.folder / "begun").read_text().splitlines() if " " in line]

    def stored(self) -> set[str]:
        if not self.path.exists():
            return set()
        with Study(self.path, readonly=True) as study:
            return {digest(t.x) for t in study.trials if t.value is not None}

    def lost(self) -> int:
        if not self.path.exists():
            return 0
        with Study(self.path, readonly=True) as study:
            stored = {f"{t.number} {t.value!r}" for t in study.trials}
        return sum(line not in stored for line in self.told.read_text().splitlines())

    def processes_left(self) -> int:
        """Of those that have evaluated; they have three seconds to end."""
        processes = {line.split()[0] for line in (self.folder / "begun").read_text().splitlines()} - {str(os.getpid())}
        last = time.monotonic() + 3.0
        while alive := {process for process in processes if _runs(process)}:
            if time.monotonic() > last:
                break
            time.sleep(0.01)
        return len(alive)


def digest(x: Array) -> str:
    return hashlib.sha256(x.tobytes()).hexdigest()


def _runs(process: str) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def store(folder: Path, trials: int) -> bool:
    """Storing trials of 500 variables: ours, and the same trials through Optuna's SQLite storage, taking turns."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    D = 500
    met = True
    names = [f"x{i}" for i in range(D)]
    distributions: dict[str, Any] = dict.fromkeys(names, optuna.distributions.FloatDistribution(0.0, 1.0))
    theirs = optuna.create_study(storage=f"sqlite:///{folder / 'optuna.db'}", sampler=Replay())
    for method in ("mcts-vs-rs", "mcts-vs-bo"):
        seconds, their_seconds, their_trials = 0.0, 0.0, 0
        with Study(folder / f"store-{method}.db", [(0.0, 1.0)] * D, method=method, seed=0) as study:
            inner = study._session._store
            spent = [0.0, 0.0]  # seconds by the clock, and of this process

            def timed(*arguments: Any, inner: Any = inner, spent: list[float] = spent, **options: Any) -> None:
                before = time.perf_counter(), time.process_time()
                inner(*arguments, **options)
                spent[0] += time.perf_counter() - before[0]
                spent[1] += time.process_time() - before[1]

            study._session._store = timed  # type: ignore[method-assign]
            for i in range(trials):
                (trial,) = study.ask()
                study.tell(trial, float(trial.x[:5].sum()))
                if i % 150 == 0:  # theirs takes so long that a few of the trials must do
                    theirs.sampler.point = dict(zip(names, trial.x.tolist(), strict=True))
                    before = time.perf_counter()
                    theirs.tell(theirs.ask(distributions), float(trial.x[:5].sum()))
                    their_seconds += time.perf_counter() - before
                    their_trials += 1
            seconds = spent[0]
            cpu = 1e3 * spent[1] / trials
        ours, other = 1e3 * seconds / trials, 1e3 * their_seconds / their_trials
        met &= row(
            f"storing, {method}, D=500, {trials} trials",
            f"{ours:.2f} ms for ask + tell ({cpu:.2f} of CPU time)",
            "1 ms",
            ours <= 1.0,
        )
        measured = f"{other:.0f} ms, {other / ours:.0f} times ours"
        met &= row("the same points through Optuna's SQLite storage", measured, "50 times", other >= 50 * ours)
    return met


class Replay:
    """An Optuna sampler that takes no time: it returns a point that is given to it."""

    point: dict[str, float]

    def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, Any]:
        return {}

    def sample_relative(self, study: Any, trial: Any, search_space: Any) -> dict[str, Any]:
        return {}

    def sample_independent(self, study: Any, trial: Any, name: str, distribution: Any) -> float:
        return self.point[name]

    def before_trial(self, study: Any, trial: Any) -> None:
        pass

    def after_trial(self, study: Any, trial: Any, state: Any, values: Any) -> None:
        pass


def opening(folder: Path, trials: int) -> bool:
    """A large study, opened in a new process."""
    D = 500
    path = folder / "large.db"
    with Study(path, [(0.0, 1.0)] * D, method="mcts-vs-rs", seed=0) as study:
        for _ in range(trials):
            (trial,) = study.ask()
            study.tell(trial, float(trial.x[:5].sum()))
    report = folder / "opened"
    del study, trial
    gc.collect()

    def work() -> None:
        import resource

        def peak() -> float:
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

        ballast = peak()
        before = time.perf_counter(), time.process_time()
        study = Study(path)
        study.ask()
        seconds, cpu = time.perf_counter() - before[0], time.process_time() - before[1]
        report.write_text(f"{seconds} {cpu} {peak() - ballast}")

    os.waitpid(fork(work), 0)
    seconds, cpu, memory = map(float, report.read_text().split())
    data = trials * D * 8 / 2**20
    share = memory / data
    measured = f"{seconds:.2f} s to the first ask ({cpu:.2f} of CPU time), {memory:.0f} MiB, {share:.1f} times the data"
    met = seconds <= 1.0 and share <= 3.0
    return row(f"opening {trials} trials of 500 variables, mcts-vs-rs", measured, "1 s, 3 times", met)


def busy(folder: Path, evaluations: int) -> bool:
    """The share of their time that eight workers spend evaluating, asynchronously."""
    spans = folder / "spans"

    def objective(x: Array) -> float:
        seconds = 0.05 + 0.1 * float(x[0])
        began = time.time()
        time.sleep(seconds)
        with spans.open("a") as log:
            log.write(f"{began} {time.time()}\n")
        return bowl(x)

    warm = Optimizer(BOX, method="mcts-vs-bo")  # loads what takes a second to load
    for _ in range(20):
        (trial,) = warm.ask()
        warm.tell(trial, trial.number)
    before = time.process_time()
    with Study(folder / "busy.db", [(0.0, 1.0)] * 100, method="mcts-vs-bo", seed=0) as study:
        study.optimize(objective, evaluations, workers=8, asynchronous=True)
    thinking = 1e3 * (time.process_time() - before) / evaluations
    times = np.array([line.split() for line in spans.read_text().splitlines()], dtype=float)
    # from the first evaluation to the moment when fewer are left than there are workers
    start, end = times[:, 0].min(), np.sort(times[:, 1])[-8]
    share = float((np.minimum(times[:, 1], end) - np.minimum(times[:, 0], end)).sum() / (8 * (end - start)))
    measured = f"{100 * share:.1f} % busy ({thinking:.1f} ms of CPU time for a point)"
    what = f"8 workers, 50 to 150 ms, asynchronous mcts-vs-bo, 100 variables, {evaluations} evaluations"
    return row(what, measured, "90 %", share >= 0.9)


def damage(folder: Path, copies: int) -> bool:
    """Random bad bytes in copies of a study: an error in words or the right trials."""
    path = folder / "whole-for-damage.db"
    with Study(path, {"a": (0.0, 1.0), **{f"x{i}": (-1.0, 1.0) for i in range(40)}}, seed=1) as study:
        study.optimize(lambda p: p["a"] / (p["x1"] > -0.9), 60)
        expected = picture(study.trials)
    data = path.read_bytes()
    rng = np.random.default_rng(0)
    refused = correct = bad = 0
    for i in range(copies):
        spoiled = bytearray(data)
        for _ in range(int(rng.integers(1, 30)) if i % 2 else 1):
            spoiled[int(rng.integers(len(data)))] = int(rng.integers(256))
        if i % 10 == 9:
            del spoiled[int(rng.integers(len(data))) :]
        copy = folder / "copy.db"
        for readonly in (True, False):
            for ending in ("", "-wal", "-shm"):
                Path(f"{copy}{ending}").unlink(missing_ok=True)
            copy.write_bytes(bytes(spoiled))
            try:
                with Study(copy, readonly=readonly) as study:
                    same = picture(study.trials) == expected
                    if not readonly:
                        study.ask()
                correct, bad = correct + same, bad + (not same)
            except StudyError as error:
                refused += 1
                bad += "\n" in str(error)
            except Exception as error:
                print(f"copy {i}: {error!r}")
                bad += 1
    measured = f"{refused} refused in a sentence, {correct} read correctly, {bad} otherwise"
    return row(f"random bytes in {copies} copies, each read and resumed", measured, "0 otherwise", bad == 0)


def faults(folder: Path, rounds: int) -> bool:
    """What functions, threads, files, scripts and strangers can do to a study."""
    met = True
    for name, fault in study_faults.FAULTS.items():
        (folder / name).mkdir()
        bad, cases = fault(folder / name, rounds)
        met &= row(f"faults: {name}", f"{len(bad)} of {cases} cases wrong {'; '.join(bad[:3])}", "0", not bad)
    return disk(folder, rounds) and met


def disk(folder: Path, rounds: int) -> bool:
    """Every call that changes a file of a short run fails in turn; a hundredth of them in the shortened form."""
    if study_disk.compiler() is None:
        print("| calls that fail | left out: there is no C compiler | 0 | |")
        return True
    return study_disk.table(folder, 1.0 if rounds > 1 else 0.01)


PARTS: dict[str, tuple[Callable[[Path, int], bool], int]] = {
    "kill": (kill, 100),
    "store": (store, 600),
    "open": (opening, 10_000),
    "busy": (busy, 200),
    "damage": (damage, 250),
    "faults": (faults, 10),
    "disk": (disk, 10),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", default="all", choices=[*PARTS, "all"])
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("error")
    print("| what | measured | bar | met |\n|---|---|---|---|", flush=True)
    met = True
    for name, (part, size) in PARTS.items():
        if arguments.part == name or (arguments.part == "all" and name != "disk"):
            folder = Path(tempfile.mkdtemp(prefix="mctsvs-study-"))
            try:
                met &= part(folder, max(1, size // 10) if arguments.quick else size)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
