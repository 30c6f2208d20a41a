"""Faults of functions, threads, files, scripts and strangers, injected into studies: a part of `study.py`.

Each gets an empty folder and how often to do it; it returns what went wrong, in words, and the number of cases.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mctsvs import InputError, Study, StudyError, Trial
from mctsvs.methods.registry import METHODS, missing
from mctsvs.objectives.space_file import parse_space
from mctsvs.objectives.user_program import UserProgram
from mctsvs.study import codec, journal
from mctsvs.study.journal import Journal
from mctsvs.utils.validation import Array

BOX = [(0.0, 1.0)] * 5
Found = tuple[list[str], int]
LONGEST = 5  # seconds that a file may take to be read or refused


def forks(folder: Path, rounds: int) -> Found:
    """Functions that come back twice: every trial has its own value, and no process stays."""

    def f(x: Array) -> float:
        if x[0] < 0.3:
            process = os.fork()
            if process == 0:
                (folder / f"{os.getpid()}.pid").touch()
                sys.exit(0)
            os.waitpid(process, os.WNOHANG)
        (folder / f"{os.getpid()}.pid").touch()
        return float(x[1])

    bad = []
    for i in range(rounds):
        with Study(folder / f"{i}.db", BOX, seed=i, method="random") as study:
            study.optimize(f, 60, workers=2, timeout=30, asynchronous=bool(i % 2))
            bad += [f"trial {t.number} of round {i}" for t in study.trials if t.value != t.x[1]]
    time.sleep(0.5)
    left = [file.stem for file in folder.glob("*.pid") if Path(f"/proc/{file.stem}").exists()]
    return bad + [f"process {process} stays" for process in left], 60 * rounds


def threads(folder: Path, rounds: int) -> Found:
    """Eight threads, 2,000 tells: the file is what was told."""
    bad = []
    for i in range(rounds):
        told: dict[int, float] = {}
        with Study(folder / f"{i}.db", BOX, seed=i, method="mcts-vs-rs") as study:

            def work(study: Study = study, told: dict[int, float] = told) -> None:
                for _ in range(250):
                    (trial,) = study.ask()
                    study.tell(trial, float(trial.x[0]))
                    told[trial.number] = float(trial.x[0])

            workers = [threading.Thread(target=work) for _ in range(8)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
        with Study(folder / f"{i}.db", readonly=True) as study:
            stored = {t.number: t.value for t in study.trials}
        if stored != told or len(told) != 2000:
            bad.append(f"round {i}")
    return bad, rounds


def stale_logs(folder: Path, rounds: int) -> Found:
    """A run that was killed, its file deleted and its log not: nothing of it gets into a new study."""
    bad = []
    for i in range(rounds):
        path = folder / f"{i}.db"
        code = (
            "import os, sys; from mctsvs import Study\n"
            f"study = Study(sys.argv[1], [(0, 1)] * 5, seed={i}, method='random')\n"
            "for trial in study.ask(30): study.tell(trial, 1.0)\nos.kill(os.getpid(), 9)"
        )
        subprocess.run([sys.executable, "-c", code, str(path)])
        path.unlink()
        with contextlib.suppress(StudyError), Study(path, BOX, seed=i, method="random") as study:
            bad += [f"round {i}: {len(study.trials)} trials"] if study.trials else []
    return bad, rounds


def gone_files(folder: Path, rounds: int) -> Found:
    """Deleted, renamed or cut off under the run: said, and everything saved."""
    bad = []
    accidents: tuple[Callable[[Path], object], ...] = (
        Path.unlink,
        lambda path: path.rename(path.with_suffix(".moved")),
        lambda path: os.truncate(path, 100),
        lambda path: os.truncate(f"{path}-wal", 0),
    )
    for i in range(rounds):
        path = folder / f"{i}.db"
        study = Study(path, BOX, seed=i, method="mcts-vs-rs")
        study.optimize(lambda x: float(x[0]), 20 + i)
        accidents[i % len(accidents)](path)
        try:
            study.optimize(lambda x: float(x[0]), 500)
            bad.append(f"round {i}: not noticed")
        except StudyError as error:
            with Study(str(error).partition("saved in '")[2].partition("'")[0], readonly=True) as saved:
                same = [t.unit.tobytes() for t in saved.trials] == [t.unit.tobytes() for t in study.trials]
                bad += [] if same and saved.evaluated >= 20 + i else [f"round {i}: not saved"]
        study.close()
    return bad, rounds


def spawned(folder: Path, rounds: int) -> Found:
    """Workers that import the script: they work, and a script that cannot be imported stores nothing."""
    code = (
        "import multiprocessing, mctsvs\ndef f(x): return float(x[1])\n{}\n"
        "    multiprocessing.set_start_method('spawn')\n"
        "    mctsvs.Study('{}.db', [(0.0, 1.0)] * 5, method='random').optimize(f, 20, workers=2)\n"
    )
    bad = []
    rounds = max(1, rounds // 5)
    for i in range(rounds):
        for guard, evaluated in (("if __name__ == '__main__':", 20), ("if True:", 0)):
            name = f"{i}-{evaluated}"
            (folder / f"{name}.py").write_text(code.format(guard, name))
            subprocess.run([sys.executable, f"{name}.py"], cwd=folder, stderr=subprocess.DEVNULL)
            with Study(folder / f"{name}.db", readonly=True) as study:
                right = study.evaluated == evaluated and not any(t.failed for t in study.trials)
                bad += [] if right else [f"{guard}: {study.evaluated} stored"]
    return bad, 2 * rounds


def hostile_files(folder: Path, rounds: int) -> Found:
    """Files that say what cannot be, with checksums that fit: data, or one sentence, within five seconds."""
    rng = np.random.default_rng(0)
    with Study(folder / "whole.db", BOX, seed=0, method="mcts-vs-rs") as study:
        study.optimize(lambda x: float(x[0]), 30)
    source = Journal(folder / "whole.db", readonly=True)
    meta, events = source.meta(), list(source.events())
    source.close()
    bad = []
    for i in range(25 * rounds):
        path = folder / "hostile.db"
        for file in folder.glob("hostile.db*"):
            file.unlink()
        _make_hostile(path, meta, events, rng)
        for readonly in (True, False):
            what = _read_in_time(path, readonly=readonly)
            bad += [f"file {i}: {what}"] if what else []
    return bad, 25 * rounds


def _make_hostile(path: Path, meta: dict[str, Any], events: list[journal.Event], rng: np.random.Generator) -> None:
    changed = list(events)
    kind = int(rng.integers(4))
    at = int(rng.integers(len(events)))
    if kind == 0:  # an event that cannot have happened
        odd: dict[str, Any] = {
            "kind": ["ask", "tell", "magic", "strike"][int(rng.integers(4))],
            "number": int(rng.choice([-1, 0, 5, 2**62])),
            "value": float(rng.choice([1e300, np.inf, -1.0])),
            "text": "\x1b]0;owned\x07\n" * 3,
            "variables": b"i" + struct.pack("<i", int(rng.choice([-1, 3, 10**6]))),
            "proposal_id": int(rng.choice([-5, 0, 10**9])),
        }
        field = list(odd)[int(rng.integers(len(odd)))]
        changed[at] = changed[at]._replace(**{field: odd[field]})
    elif kind == 1:  # events that are lost, doubled or swapped
        changed = [changed[int(j)] for j in rng.permutation(len(changed))[: rng.integers(1, len(changed) + 1)]]
    Journal.create(path, meta, changed)
    connection = sqlite3.connect(path)
    if kind == 2:
        statements = (
            "CREATE TRIGGER t AFTER INSERT ON journal BEGIN DELETE FROM meta; END",
            "CREATE VIEW v AS SELECT 1",
            "ALTER TABLE method_state RENAME TO old",
        )
        connection.execute(statements[int(rng.integers(3))])
        if rng.random() < 0.5:
            endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
            connection.executescript(f"DROP TABLE journal; CREATE VIEW journal AS {endless}")
    elif kind == 3:
        deep = b"[" * int(rng.choice([10, 200, 10**5]))
        text = [deep + b"]" * len(deep), codec.pack(["\x1b[2J"])[8:], b"{}", b"3"][int(rng.integers(4))]
        data = struct.pack("<q", len(text)) + text
        name = ["identity", "command"][int(rng.integers(2))]
        row = (name, data, journal.checksum(name.encode(), data))
        connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", row)
    connection.commit()
    connection.close()


def _read_in_time(path: Path, *, readonly: bool) -> str:
    """What is wrong with how it is read, in a process of its own."""
    process = os.fork()
    if process == 0:
        signal.alarm(LONGEST)
        status = 3
        try:
            with Study(path, readonly=readonly) as study:
                status = sum(not 0.0 <= x <= 1.0 for t in study.trials for x in t.unit) and 4
                _ = study.user_attrs
                if not readonly:
                    study.ask()
        except InputError as error:
            status = 0 if str(error).isprintable() else 5
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    words = {0: "", 3: "a traceback", 4: "a point outside", 5: "a sentence that is none", -signal.SIGALRM: "a hang"}
    return words.get(status, f"status {status}")


def shell_syntax(folder: Path, rounds: int) -> Found:
    """A template with a pipe, a redirection or the like outside of quotes is refused."""
    file = parse_space(tomllib.loads("a = [0, 1]"))
    bad = []
    cases = ["| tail -1", "> out", "&& true", "; true", "$(date)", "`date`", "|| true", "& true", "2>&1", "< in"]
    for case in cases:
        try:
            UserProgram.parse(f"echo {{a}} {case}", file)
            bad.append(case)
        except InputError:
            pass
        UserProgram.parse(f"echo {{a}} '{case}'", file)
    return bad, len(cases)


def big_batches(folder: Path, rounds: int) -> Found:
    """Batches of 50 for every method, told in any order, stopped and resumed: the budget is exact."""
    bad, cases = [], 0
    slow = ("saasbo", "optuna-gp", "vae-bo", "alebo")
    for method in [name for name in METHODS if not (missing(METHODS[name]) or any(part in name for part in slow))]:
        cases += 1
        path, rng = folder / f"{method}.db", np.random.default_rng(0)
        try:
            for _ in range(3):
                with Study(path, [(0.0, 1.0)] * 12, seed=0, method=method) as study:
                    trials: list[Trial] = study.ask(50)
                    for k in rng.permutation(50):
                        study.tell(trials[int(k)].number, float(trials[int(k)].x[:3].sum()))
            with Study(path, readonly=True) as study:
                bad += [] if study.evaluated == 150 else [f"{method}: {study.evaluated} evaluations"]
        except Exception as error:
            bad.append(f"{method}: {type(error).__name__}")
    shutil.rmtree(folder, ignore_errors=True)
    return bad, cases


FAULTS: dict[str, Callable[[Path, int], Found]] = {
    "functions that fork": forks,
    "eight threads": threads,
    "logs left over": stale_logs,
    "files that go": gone_files,
    "spawned workers": spawned,
    "hostile files": hostile_files,
    "shell syntax": shell_syntax,
    "batches of 50": big_batches,
}
