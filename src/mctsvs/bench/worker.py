"""A worker process of a grid: reads jobs, a line of JSON each, from standard input; stores each finished run at once.

    python -m mctsvs.bench.worker FOLDER

It answers with lines of JSON on standard output, and ends when its input does, in the middle of a run too: when the
grid is killed nobody goes on working for it. Until then it holds the grid's claim on the folder: it has inherited the
locked file.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import os
import queue
import signal
import sys
import threading
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

from mctsvs.bench import algorithms, problems
from mctsvs.bench.run_store import Job, RunStore
from mctsvs.utils.validation import InputError

REPORT_EVERY = 0.5  # seconds between reports on a run


def main(folder: str) -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the grid decides when to stop
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever a problem prints goes to the log, not between the answers

    def answer(**content: Any) -> None:
        answers.write(json.dumps(content) + "\n")

    store = RunStore(Path(folder))
    jobs: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=read, args=(jobs,), daemon=True).start()
    warm()
    answer(event="ready")
    while True:
        work(Job.of(json.loads(jobs.get())), store, answer)


def read(jobs: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        jobs.put(line)
    os._exit(0)


def warm() -> None:
    """Load what nearly every run needs, so that the first run's seconds are not those of importing."""
    import mctsvs.gp.model
    import mctsvs.methods.solvers.bo
    import mctsvs.methods.solvers.turbo
    from mctsvs.gp.optimize_acqf import quasi_random

    del mctsvs
    import numpy as np

    quasi_random(2, 2, np.random.default_rng(0))


# what the methods' extras import when they are first used
PARTS = {
    "cma": ("cma",),
    "sklearn": ("sklearn.cluster", "sklearn.gaussian_process", "sklearn.linear_model", "sklearn.svm"),
    "torch": ("torch",),
    "optuna": ("optuna",),
}


@functools.cache
def load(method: str) -> None:
    """Import what a method needs before its first run, so that importing is not in its seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecations inside the libraries
        for part in (part for need in algorithms.find(method).needs for part in PARTS.get(need, ())):
            with contextlib.suppress(ImportError):  # the run will say so
                importlib.import_module(part)


def work(job: Job, store: RunStore, answer: Any) -> None:
    with contextlib.suppress(InputError):
        load(job.case.method)
    started = reported = time.monotonic()
    evaluations = 0

    def progress(*_: object) -> None:
        nonlocal evaluations, reported
        evaluations += 1
        if time.monotonic() - reported > REPORT_EVERY:
            reported = time.monotonic()
            answer(event="progress", evaluations=evaluations)

    try:
        problem = problems.resolve(job.problem, **job.variation)
        record = job.case.run(problem, budget=job.budget, seed=job.seed, variation=job.variation, progress=progress)
        store.save(job, record, problem.direction, problem.optimum)
    except InputError as error:
        answer(event="failed", error=str(error))
    except Exception as error:
        traceback.print_exc()
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(where.filename).name}:{where.lineno}"
        answer(event="failed", error=f"{type(error).__name__}: {error} ({place})")
    else:
        best = None if record.best != record.best else record.best
        answer(event="done", best=best, direction=problem.direction, seconds=time.monotonic() - started)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
