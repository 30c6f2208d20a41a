"""A disk that fails: each call by which a short run changes its files fails in turn. A part of `study.py`.

The calls are made to fail below SQLite and Python, by `failing_disk.c`, which is compiled here and loaded before libc.
After each fault the run must have gone on, or ended in one sentence. What was told is in the file, and the run that
is resumed is bit for bit the undisturbed one.
"""

from __future__ import annotations

import ctypes
import errno
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

SOURCE = Path(__file__).with_name("failing_disk.c")
CALLS = ("open", "write", "sync", "truncate", "lock", "unlock", "unlink", "rename", "link")  # as in failing_disk.c
SHORT = 0  # no error: half is written
FAILURES = {
    "open": (errno.EACCES, errno.ENOSPC, errno.EMFILE),
    "write": (errno.ENOSPC, errno.EIO, errno.EINTR, SHORT),
    "sync": (errno.EIO, errno.ENOSPC),
    "truncate": (errno.ENOSPC, errno.EIO),
    "lock": (errno.EACCES, errno.EIO, errno.EINTR),
    "unlock": (errno.EIO,),
    "unlink": (errno.EACCES, errno.EIO),
    "rename": (errno.EACCES,),
    "link": (errno.EPERM, errno.ENOSPC),
}
BUDGET = 30
SECONDS = 60  # a run that takes longer hangs; SQLite itself waits five seconds for a lock
BAD = ("lost", "wrong", "hang", "traceback")


class Case(NamedTuple):
    call: str
    number: int  # which of these calls fails
    error: int
    lasting: bool  # and so do all after it
    workers: int | None

    @property
    def kind(self) -> tuple[str, str, str]:
        return (
            self.call,
            "short" if self.error == SHORT else errno.errorcode[self.error],
            ("once", "lasting")[self.lasting],
        )


def compiler() -> str | None:
    return shutil.which("cc") or shutil.which("gcc")


def sweep(folder: Path, share: float, workers: tuple[int | None, ...] = (None, 2)) -> Iterator[tuple[Case, str, str]]:
    """Every case, or this share of each kind; how it ended, and the words."""
    library = folder / "failing_disk.so"
    subprocess.run([str(compiler()), "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"], check=True)
    server = subprocess.Popen(
        [sys.executable, __file__, str(folder), repr(share), json.dumps(workers)],
        env={**os.environ, "LD_PRELOAD": str(library)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    with server:
        for line in server.stdout:
            case, how, words = json.loads(line)
            yield Case(*case), how, words
    assert server.returncode == 0


def table(folder: Path, share: float) -> bool:
    """Prints a row for each kind of failure."""
    ends: dict[tuple[str, ...], Counter[str]] = {}
    for case, how, words in sweep(folder, share):
        ends.setdefault(case.kind, Counter())[how] += 1
        if how in BAD:
            print(f"{case}: {how}: {words}", file=sys.stderr)
    print(f"\n| call | failure | | cases | went on | one sentence | {' | '.join(BAD)} |\n|{'---|' * 10}")
    for kind, found in ends.items():
        numbers = (found.total(), *(found[how] for how in ("went on", "sentence", *BAD)))
        print(f"| {' | '.join(kind)} | {' | '.join(map(str, numbers))} |")
    return not any(found[how] for found in ends.values() for how in BAD)


# in the process where calls can fail


def serve(folder: Path, share: float, workers: list[int | None]) -> None:
    disk = ctypes.CDLL(None)
    disk.fault_count.restype = ctypes.c_long
    for number in workers:
        counts = {call: Run(folder / "count", disk).count(call, number) for call in CALLS}
        for call, failures in FAILURES.items():
            for error in failures:
                for lasting in (False, True):
                    if error == errno.EINTR and lasting:  # nobody is interrupted for ever
                        continue
                    step = max(1, min(round(1 / share), counts[call]))
                    for at in range((7 * error + 3 * lasting) % step, counts[call], step):
                        case = Case(call, at, error, lasting, number)
                        how, words = Run(folder / "run", disk).outcome(case)
                        print(json.dumps([case, how, words]), flush=True)


EXPECTED: dict[int | None, Any] = {}  # trials of the undisturbed run, by workers


class Run:
    """A short run in a folder of its own, and its own record of what was told, beside that folder."""

    def __init__(self, folder: Path, disk: Any) -> None:
        self.folder, self.disk, self.notes = folder, disk, folder.with_suffix(".notes")
        self.path = folder / "run.db"
        for there in (folder, self.notes):
            shutil.rmtree(there, ignore_errors=True)
            there.mkdir()

    def count(self, call: str, workers: int | None) -> int:
        def work() -> None:
            self.disk.fault_set(str(self.folder).encode(), -1, errno.EIO, 0, CALLS.index(call))
            self.evaluate(workers)
            (self.notes / "count").write_text(str(self.disk.fault_count()))

        assert in_a_child(work) == 0
        EXPECTED[workers] = self.read(self.path)
        return int((self.notes / "count").read_text())

    def evaluate(self, workers: int | None, study: Any = None) -> None:
        from mctsvs import Study

        with (self.notes / "told").open("a", buffering=1) as told:
            self.study = study or Study(self.path, [(0.0, 1.0)] * 5, method="mcts-vs-rs", seed=1)
            with self.study as study:
                study.set_user_attr("purpose", "a test")
                study.optimize(
                    bowl,
                    BUDGET,
                    workers=workers,
                    callback=lambda _, t: told.write(f"{t.number} {t.value!r}\n") and None,
                )
                study.backup(self.folder / f"backup-{time.time_ns()}.db")

    def disturbed(self, case: Case) -> None:
        from mctsvs import StudyError

        self.disk.fault_set(str(self.folder).encode(), case.number, case.error, case.lasting, CALLS.index(case.call))
        self.study = None
        try:
            self.evaluate(case.workers)
        except StudyError as error:
            (self.notes / "sentence").write_text(str(error))
        if not case.lasting:  # the same process goes on
            self.disk.fault_off()
            if (self.notes / "sentence").exists():
                self.evaluate(case.workers)

    def outcome(self, case: Case) -> tuple[str, str]:
        status = in_a_child(lambda: self.disturbed(case), self.notes / "traceback")
        words = "".join(file.read_text() for file in self.notes.glob("sentence"))
        if status == -signal.SIGALRM:
            return "hang", words
        if status or "\n" in words or not words.isprintable():
            return "traceback", words + "".join(file.read_text() for file in self.notes.glob("traceback"))
        if "saved in" in words:
            return "wrong", words
        told = (self.notes / "told").read_text().splitlines() if (self.notes / "told").exists() else []

        def check() -> None:
            found = self.read(self.path) if self.path.exists() else []
            lost = [line for line in told if line not in {f"{t[0]} {t[2]}" for t in found}]
            (self.notes / "lost").write_text("".join(lost))
            for copy in self.folder.glob("backup-*.db"):
                assert self.read(copy) == EXPECTED[case.workers], "the backup differs"
            self.evaluate(case.workers)
            assert self.read(self.path) == EXPECTED[case.workers], "the run differs"
            left = {file.name for file in self.folder.iterdir() if not file.name.startswith("backup-")} - {"run.db"}
            assert case.lasting or case.call == "unlink" or not left, f"{left} stay"

        status = in_a_child(check, self.notes / "traceback")
        if (self.notes / "lost").exists() and (lost := (self.notes / "lost").read_text()):
            return "lost", f"{lost} {words}"
        if status:
            return "wrong", words + "".join(file.read_text() for file in self.notes.glob("traceback"))
        return ("sentence" if words else "went on"), words

    @staticmethod
    def read(path: Path) -> list[Any]:
        from mctsvs import Study

        with Study(path, readonly=True) as study:
            return [(t.number, t.unit.tobytes(), repr(t.value), t.source, t.message) for t in study.trials]


def bowl(x: Any) -> float:
    return float(((x - 0.3) ** 2).sum())


def in_a_child(work: Callable[[], None], report: Path | None = None) -> int:
    """Its exit status, or minus the number of the signal that ended it; the report gets its traceback."""
    process = os.fork()
    if process == 0:
        import traceback

        status = 1
        signal.alarm(SECONDS)
        try:
            work()
            status = 0
        except BaseException:
            ctypes.CDLL(None).fault_off()
            if report is not None:
                report.write_text(traceback.format_exc())
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


if __name__ == "__main__":
    for module in ("mctsvs.study.study", "mctsvs.loop.process_pool"):  # once, and not in each child
        importlib.import_module(module)

    serve(Path(sys.argv[1]), float(sys.argv[2]), json.loads(sys.argv[3]))
