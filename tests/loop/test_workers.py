"""Functions that fork, start processes, kill their workers or cannot be described; and workers that are spawned."""

# ruff: noqa: NPY002  functions may use the generator that all of a process shares

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import multiprocessing
import os
import pickle
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mctsvs
from mctsvs import InputError, Study, StudyError
from mctsvs.loop import scheduler, worker_process
from mctsvs.utils.validation import Array

BOX = [(0.0, 1.0)] * 2
linux = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")


def begin(folder: Path, **options: Any) -> Study:
    return Study(folder / "s.db", BOX, **{"method": "random", "seed": 0, **options})


def second(x: Array) -> float:
    return float(x[1])


def forking(x: Array) -> float:
    """Now and then a copy of the process comes back from here as well."""
    if x[0] < 0.3:
        process = os.fork()
        if process == 0:
            sys.exit(0)
        os.waitpid(process, os.WNOHANG)
    elif x[0] < 0.5:
        process = os.fork()
        if process:
            os.waitpid(process, 0)
    return float(x[1])


def gone(process: int) -> bool:
    """Whether it has ended; one that nobody has looked after yet has."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def wait_until(true: Callable[[], bool], seconds: float = 30.0) -> bool:
    last = time.monotonic() + seconds
    while not true():
        if time.monotonic() > last:
            return False
        time.sleep(0.01)
    return True


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("arguments", [{}, {"workers": 2, "timeout": 20}, {"workers": 2, "asynchronous": True}])
def test_a_function_that_forks_gives_every_trial_its_own_value(arguments: dict[str, Any], tmp_path: Path) -> None:
    with begin(tmp_path) as study:
        study.optimize(forking, 60, **arguments)
        assert study.evaluated == 60
        assert [t.value for t in study.trials] == [t.x[1] for t in study.trials]
        assert [t.message for t in study.trials] == [""] * 60


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_function_that_forks_in_a_pool_of_the_users(tmp_path: Path) -> None:
    with begin(tmp_path) as study, ProcessPoolExecutor(2) as pool:
        study.optimize(forking, 40, executor=pool)
        assert [t.value for t in study.trials] == [t.x[1] for t in study.trials]


def square(x: float) -> float:
    return x * x


def pooled(x: Array) -> float:
    with multiprocessing.Pool(2) as pool:
        return float(sum(pool.map(square, x.tolist())))


def test_a_function_may_start_processes_of_its_own(tmp_path: Path) -> None:
    with begin(tmp_path) as study:
        study.optimize(pooled, 6, workers=2)
        assert [t.message for t in study.trials] == [""] * 6
        assert [t.value for t in study.trials] == [pytest.approx(float((t.x**2).sum())) for t in study.trials]


DRIVER = """
import ctypes, os, subprocess, sys, time
from mctsvs import Study
folder = sys.argv[1]
def note(pid):
    open(os.path.join(folder, f"pid-{pid}"), "w").close()
def f(x):
    note(os.getpid())
    detached = "import os; os.setsid(); os.fork(); import time; time.sleep(600)"
    note(subprocess.Popen(["sleep", "600"]).pid)
    note(subprocess.Popen([sys.executable, "-c", detached], start_new_session=True).pid)
    time.sleep(0.3)
    open(os.path.join(folder, f"begun-{os.getpid()}"), "w").close()
    ctypes.PyDLL(None).sleep(600)  # no thread and no signal handler of Python's runs meanwhile
    return 0.0
study = Study(os.path.join(folder, "s.db"), [(0.0, 1.0)] * 2, method="random")
study.optimize(f, 10, workers=2, timeout=float(sys.argv[2]))
"""


@linux
@pytest.mark.parametrize("end", ["killed", "interrupted", "too late"])
def test_nothing_outlives_a_run(end: str, tmp_path: Path) -> None:
    """Neither a worker in C code that holds the interpreter's lock, nor what it has put in the background."""
    timeout = "1.5" if end == "too late" else "600"
    with subprocess.Popen([sys.executable, "-c", DRIVER, str(tmp_path), timeout], stderr=subprocess.DEVNULL) as run:
        assert wait_until(lambda: len(list(tmp_path.glob("begun-*"))) >= 2)
        if end == "killed":
            run.kill()
        elif end == "interrupted":
            run.send_signal(signal.SIGINT)
        else:
            first = [int(file.name.removeprefix("pid-")) for file in tmp_path.glob("pid-*")]
            assert wait_until(lambda: all(map(gone, first)))
            run.terminate()
        run.wait()
    processes = [int(file.name.removeprefix("pid-")) for file in tmp_path.glob("pid-*")]
    assert len(processes) >= 6
    assert wait_until(lambda: all(map(gone, processes)), 6.0)
    assert wait_until(lambda: not any(str(tmp_path) in _command(p) for p in os.listdir("/proc") if p.isdigit()), 6.0)


def _command(process: str) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ")
    return ""


def test_without_a_supervisor_workers_end_with_their_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the system has no such thing."""
    monkeypatch.setattr(worker_process, "SUPERVISED", False)

    def f(x: Array) -> float:
        if x[0] < 0.3:
            (tmp_path / f"pid-{os.getpid()}").touch()
            (tmp_path / f"pid-{subprocess.Popen(['sleep', '600']).pid}").touch()
            ctypes.PyDLL(None).sleep(600)
        return float(x[1])

    with begin(tmp_path) as study:
        study.optimize(f, 8, workers=2, timeout=0.5)
        assert [t.failed for t in study.trials] == [t.x[0] < 0.3 for t in study.trials]
    processes = [int(file.name.removeprefix("pid-")) for file in tmp_path.glob("pid-*")]
    assert len(processes) >= 2
    assert wait_until(lambda: all(map(gone, processes)))


SCRIPT = """
import multiprocessing, sys
import mctsvs
{above}
def f(x):
    return float(x[1])
{guard}
    multiprocessing.set_start_method("spawn")
    with mctsvs.Study("s.db", [(0.0, 1.0)] * 2, method="random", seed=0) as study:
        study.optimize({f}, 6, workers=2, timeout=60)
{below}
"""
HIDDEN = "thread = threading.Thread(target=main); thread.start(); thread.join(); sys.exit(1)"


def script(folder: Path, **parts: str) -> subprocess.CompletedProcess[str]:
    file = folder / "script.py"
    file.write_text(textwrap.dedent(SCRIPT.format(**{"above": "", "f": "f", "below": "", **parts})))
    return subprocess.run([sys.executable, str(file)], capture_output=True, text=True, cwd=folder, timeout=120)


def test_workers_that_are_spawned(tmp_path: Path) -> None:
    done = script(tmp_path, guard='if __name__ == "__main__":')
    assert (done.returncode, done.stderr) == (0, "")
    with Study(tmp_path / "s.db", readonly=True) as study:
        assert [t.value for t in study.trials] == [t.x[1] for t in study.trials]
        assert study.evaluated == 6


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"guard": "if True:"}, "below `if __name__ =="),
        ({"guard": "import threading\ndef main():", "f": "f", "below": HIDDEN}, "below `if __name__ =="),
        ({"guard": "def main():", "f": "f"}, ""),
        ({"guard": 'if __name__ == "__main__":', "f": "lambda x: 1.0"}, "cannot be sent to other processes"),
        (
            {"guard": 'if __name__ == "__main__":\n    f.__qualname__ = "g"; g = f', "f": "f"},
            "cannot be used in other processes (AttributeError",
        ),
    ],
)
def test_what_cannot_be_spawned_is_said_before_anything_is_stored(
    parts: dict[str, str], words: str, tmp_path: Path
) -> None:
    done = script(tmp_path, **parts)
    if not words:  # never called: the script is fine
        assert done.returncode == 0
        return
    assert done.returncode == 1
    sentences = [line for line in done.stderr.splitlines() if words in line]
    assert sentences
    if parts["guard"] == "if True:":
        assert done.stderr.count("Traceback") == 1, "no worker was started"
    with Study(tmp_path / "s.db", readonly=True) as study:
        assert study.trials == []


class Rude(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Odd:
    def __repr__(self) -> str:
        raise RuntimeError("no words")

    def __float__(self) -> float:
        raise KeyError("no number")


def test_what_cannot_describe_itself_is_a_failed_trial(tmp_path: Path) -> None:
    def f(x: Array) -> Any:
        seen.append(x)
        if len(seen) == 1:
            raise Rude
        if len(seen) == 2:
            return Odd()
        if len(seen) == 3:
            raise ValueError("\x1b[31mred\x1b[0m")
        return float(x[1])

    seen: list[Array] = []
    with begin(tmp_path) as study:
        study.optimize(f, 6)
        first, second, third, *_ = [t.message for t in study.trials]
        study.tell(study.ask()[0], None, Rude())  # type: ignore[arg-type]
        assert study.trials[-1].message == "a Rude without a text"
    assert first.startswith("Rude: a Rude without a text (test_workers.py, line ")
    assert "<Odd instance" in second
    assert "is not a number" in second
    assert third.startswith("ValueError: \\x1b[31mred")


def deadly(x: Array) -> float:
    if x[0] < 0.3:
        time.sleep(0.05)
        os._exit(3)
    return float(x[1])


@pytest.mark.parametrize("kind", ["processes", "loky"])
def test_a_point_that_breaks_every_pool_fails_after_three_and_no_other_does(kind: str, tmp_path: Path) -> None:
    def pool() -> Any:
        if kind == "processes":
            return ProcessPoolExecutor(3)
        loky = pytest.importorskip("loky")
        return loky.ProcessPoolExecutor(max_workers=3)

    broken: list[str] = []
    for _ in range(40):
        with begin(tmp_path) as study:
            executor: Executor = pool()
            try:
                study.optimize(deadly, 6, executor=executor)
                break
            except StudyError as error:
                broken.append(str(error))
            finally:
                executor.shutdown()
    with Study(tmp_path / "s.db", readonly=True) as study:
        assert study.evaluated == 6
        assert [t.failed for t in study.trials] == [t.x[0] < 0.3 for t in study.trials]
        failed = [t for t in study.trials if t.failed]
        assert failed
        assert all(t.message.startswith("its worker died, 3 times") for t in failed)
        assert len(broken) <= 3 * len(failed)
        assert all(sentence.startswith("the executor has stopped working") for sentence in broken)


def test_strikes_survive_the_run_that_saw_them(tmp_path: Path) -> None:
    with begin(tmp_path) as study:
        (trial,) = study.ask()
        assert study._session.record_death(trial, "it died") == 1
        assert study._session.record_death(trial.number, "it died") == 2
    with begin(tmp_path) as study:
        assert dict(study._session.deaths) == {0: 2}
        with pytest.raises(StudyError, match="all 1 evaluations failed"):
            study.optimize(lambda x: os._exit(3), 1, workers=1)
        assert study.trials[0].message.startswith("its worker died, 3 times")
        assert dict(study._session.deaths) == {}
        kinds = [event.kind for event in study._session.journal.events() if event.kind != "plan"]
        assert kinds == ["ask", "strike", "strike", "strike", "tell"]
        with pytest.raises(InputError, match="told already"):
            study._session.record_death(0, "it died")


def test_waiting_for_a_free_thread_is_not_evaluating(tmp_path: Path) -> None:
    """The first two never end; the other 18 begin when these have been let go, and none of them is too late."""
    release, calls = threading.Event(), []

    def f(x: Array) -> float:
        calls.append(x)
        if len(calls) <= 2:
            release.wait(60)
        return float(x[1])

    def let_go(study: Study, trial: Any) -> None:
        if study.evaluated == 2:
            threading.Timer(1.0, release.set).start()

    for asynchronous in (False, True):
        calls.clear()
        release.clear()
        with (
            Study(tmp_path / f"{asynchronous}.db", BOX, method="random") as study,
            ThreadPoolExecutor(2) as executor,
        ):
            study.optimize(f, 20, executor=executor, timeout=0.5, asynchronous=asynchronous, callback=let_go)
            assert [t.failed for t in study.trials] == [True] * 2 + [False] * 18


def test_an_executor_that_is_busy_with_something_else_is_waited_for(tmp_path: Path) -> None:
    release = threading.Event()
    with begin(tmp_path) as study, ThreadPoolExecutor(1) as executor:
        executor.submit(release.wait, 60)
        threading.Timer(1.0, release.set).start()
        study.optimize(second, 3, executor=executor, timeout=0.3)
        assert [t.failed for t in study.trials] == [False] * 3


def test_an_executor_whose_workers_never_come_back_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "STUCK", 4.0)
    release = threading.Event()
    with begin(tmp_path) as study, ThreadPoolExecutor(2) as executor:
        with pytest.raises(StudyError, match=r"none of the executor's 2 workers has become free within 1\.2 s"):
            study.optimize(lambda x: release.wait(60), 20, executor=executor, timeout=0.3)
        release.set()
        assert study.evaluated == 2
        study.optimize(second, 8, executor=executor, timeout=0.3)
        assert [t.failed for t in study.trials] == [True] * 2 + [False] * 6


def test_the_callback_may_end_the_run(tmp_path: Path) -> None:
    def raises(study: Study, trial: Any) -> None:
        if trial.number == 6:
            raise StopIteration

    with begin(tmp_path) as study:
        study.optimize(second, 50, callback=lambda study, trial: trial.number == 3)
        assert study.evaluated == 4
        study.optimize(second, 50, callback=raises, workers=2)
        assert study.evaluated == 8  # the other one was under way


def noise(x: Array) -> tuple[float, dict[str, float]]:
    """Of numpy's and of Python's generator, and of one that is made in the function."""
    own = np.random.default_rng(np.random.randint(2**31))
    return np.random.standard_normal(), {"python": random.random(), "own": own.random()}


def drawn(seed: int = 0, **workers: Any) -> list[tuple[float, ...]]:
    result = mctsvs.minimize(noise, BOX, budget=80, seed=seed, method="random", **workers)
    return [(t.value or 0.0, *(t.constraints or {}).values()) for t in result.trials]


def test_every_trial_has_random_numbers_of_its_own_whoever_evaluates_it() -> None:
    """Two equal normal or uniform doubles among 80 come by chance in fewer than one of 10^12 runs."""
    np.random.seed(1)
    random.seed(1)
    ours = pickle.dumps(np.random.get_state()), random.getstate()
    first = drawn(workers=8)
    assert all(len(set(column)) == 80 for column in zip(*first, strict=True))
    assert drawn(workers=8) == drawn(workers=3) == drawn(timeout=60) == first
    with ProcessPoolExecutor(4, multiprocessing.get_context("fork")) as pool:
        assert drawn(executor=pool) == first
    assert len({*first, *drawn(1, workers=4)}) == 160
    with ThreadPoolExecutor(2) as threads:
        assert (pickle.dumps(np.random.get_state()), random.getstate()) == ours, "the run's own process is left alone"
        assert len(set(drawn(executor=threads))) == 80
    assert (pickle.dumps(np.random.get_state()), random.getstate()) != ours
    np.random.seed(1)
    without = drawn()
    np.random.seed(1)
    assert [value for value, *_ in drawn()] == [value for value, *_ in without], "without workers it is the user's"


@pytest.mark.needs("torch")
def test_torch_is_seeded_for_every_trial_too() -> None:
    import torch

    def drawn() -> list[float | None]:
        run = mctsvs.minimize(lambda x: torch.rand(()), BOX, budget=20, seed=0, method="random", workers=4)
        return [trial.value for trial in run.trials]

    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = drawn()
    assert len(set(first)) == 20
    assert drawn() == first
    assert torch.equal(torch.get_rng_state(), before)


class Simulation:
    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def __call__(self, x: Array) -> float:
        return self.rng.random()

    def run(self, x: Array) -> float:
        return self.rng.random()


class Model:
    """With a generator in one of its parts."""

    def __init__(self) -> None:
        self.part, self.itself = Simulation(), self

    def __call__(self, x: Array) -> float:
        return self.part.run(x)


def with_generator(x: Array, rng: Any) -> float:
    return float(rng.random())


@pytest.mark.parametrize("kind", ["outside", "inside", "helper", "default", "object", "part", "method", "partial"])
def test_a_generator_that_workers_would_copy_is_named(kind: str) -> None:
    rng, other = np.random.default_rng(0), random.Random(1)

    def noise() -> float:
        return rng.random()

    f: dict[str, Callable[..., Any]] = {
        "outside": lambda x: rng.random(),
        "inside": lambda x: sum(rng.random() for _ in x),
        "helper": lambda x: noise(),
        "default": lambda x, rng=other: rng.random(),
        "object": Simulation(),
        "part": Model(),
        "method": Simulation().run,
        "partial": functools.partial(with_generator, rng=np.random.RandomState(2)),
    }
    with pytest.warns(RuntimeWarning, match="copies of 'rng', which repeat each other's random numbers"):
        mctsvs.minimize(f[kind], BOX, budget=2, method="random", workers=1)


def test_an_executor_of_processes_copies_generators_and_one_of_threads_does_not() -> None:
    f = functools.partial(with_generator, rng=np.random.default_rng(0))
    with ThreadPoolExecutor(2) as pool:
        result = mctsvs.minimize(f, BOX, budget=20, method="random", executor=pool)
    assert len({trial.value for trial in result.trials}) == 20
    with (
        ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as processes,
        pytest.warns(RuntimeWarning, match="copies of 'rng'"),
    ):
        mctsvs.minimize(f, BOX, budget=2, method="random", executor=processes)


@pytest.mark.filterwarnings("error")
def test_the_generators_that_workers_seed_are_no_copies() -> None:
    shared = np.random.mtrand._rand

    def of_numpy(x: Array) -> float:
        return shared.random() if x[0] < 2 else later

    for f in (of_numpy, functools.partial(random.gauss, 0.0)):
        result = mctsvs.minimize(f, [(0.5, 1)], budget=20, method="random", workers=4)
        assert len({trial.value for trial in result.trials}) == 20
    later = 0.0  # a name without a value while the workers run


@linux
def test_a_library_with_openmp_works_in_workers_after_its_use_in_the_run() -> None:
    """The child of a thread that has used OpenMP waits for threads that it does not have."""
    ensemble = pytest.importorskip("sklearn.ensemble")
    X = np.random.default_rng(0).random((500, 4))

    def f(x: Array) -> float:
        model = ensemble.HistGradientBoostingRegressor(learning_rate=0.1 + float(x[0]), max_iter=3)
        return float(model.fit(X, X.sum(axis=1)).score(X, X.sum(axis=1)))

    f(np.zeros(2))
    result = mctsvs.maximize(f, BOX, budget=4, method="random", workers=2, timeout=30)
    assert [t.message for t in result.trials] == [""] * 4


@linux
@pytest.mark.parametrize("failures", [1, 100])
def test_a_process_that_cannot_be_started_is_tried_again(failures: int, monkeypatch: pytest.MonkeyPatch) -> None:
    left, fork = [failures], os.fork

    def busy() -> int:
        left[0] -= 1
        if left[0] >= 0:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return fork()

    monkeypatch.setattr(os, "fork", busy)
    monkeypatch.setattr(worker_process, "PAUSES", (0.01,) * 5)
    if failures == 1:
        assert mctsvs.minimize(second, BOX, budget=4, method="random", workers=2).nfev == 4
        return
    with pytest.raises(StudyError, match=r"cannot be started \(Resource temporarily unavailable\): give a smaller"):
        mctsvs.minimize(second, BOX, budget=4, method="random", workers=2)


@linux
def test_too_few_descriptors_are_one_sentence() -> None:
    code = (
        "import resource, mctsvs\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))\n"
        "try: mctsvs.minimize(lambda x: 1.0, [(0, 1)], budget=40, method='random', workers=32)\n"
        "except mctsvs.StudyError as error: print(error)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (said.returncode, said.stderr) == (0, "")
    assert "raise the limit of open files (ulimit -n)" in said.stdout
