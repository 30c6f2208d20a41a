"""The worker processes of a grid: started, given jobs, listened to, and replaced when they die."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

from mctsvs.bench.run_store import Job, RunStore, opened
from mctsvs.utils.validation import InputError

LOG = "workers.log"
Answers = queue.SimpleQueue[tuple["Worker", dict[str, Any] | None]]
"""Which worker said what; None: its process has ended."""


class Worker:
    """One process and the thread that hands its answers on."""

    def __init__(self, number: int, store: RunStore, answers: Answers):
        self.number, self.ready = number, False
        self.job: Job | None = None
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
            environment[name] = "1"
        with opened(store.folder / LOG, "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "mctsvs.bench.worker", str(store.folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                pass_fds=store.inherited,
                text=True,
                bufsize=1,
            )
        self.thread = threading.Thread(target=self._listen, args=(answers,), daemon=True)
        self.thread.start()

    def _listen(self, answers: Answers) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            answers.put((self, json.loads(line)))
        answers.put((self, None))

    def give(self, job: Job) -> None:
        assert self.process.stdin is not None
        self.job = job
        with contextlib.suppress(OSError):  # it has just died: its thread says so
            self.process.stdin.write(json.dumps(job.state()) + "\n")

    def end(self) -> str:
        """Of a process that has ended: how, in words."""
        status = self.process.wait()
        self.stop()
        return f"signal {-status}" if status < 0 else f"status {status}"

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        self.thread.join()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()


class Crew:
    """All workers of a grid; `next_job` says what there is to do, None: nothing any more."""

    def __init__(self, store: RunStore, next_job: Callable[[Worker], Job | None]) -> None:
        self.store, self.next_job = store, next_job
        self.answers: Answers = queue.SimpleQueue()
        self.workers: dict[int, Worker] = {}
        self.absent: list[str] = []  # why processes could not start, until it has been said

    def hire(self, number: int) -> None:
        try:
            self.workers[number] = Worker(number, self.store, self.answers)
        except (OSError, InputError) as error:
            self._not_started(str(error))

    def _not_started(self, why: str) -> None:
        """One process less is no reason to stop; none at all is."""
        if not self.workers:
            raise InputError(f"no worker process can start: {why}")
        self.absent.append(why)

    def employ(self, worker: Worker) -> None:
        """Give the worker its next job, if there is one."""
        worker.job = self.next_job(worker)
        if worker.job is not None:
            worker.give(worker.job)

    def answer(self) -> tuple[Worker, Job, dict[str, Any]]:
        """The next thing a worker says of its job; "ended" if its process died over it."""
        while True:
            if self.absent and any(worker.ready for worker in self.workers.values()):
                self.store.say(f"a worker process could not start, the others go on: {self.absent[0]}")
                self.absent.clear()
            worker, said = self.answers.get()
            if said is None:
                said = self._ended(worker)
            elif said["event"] == "ready":
                worker.ready = True
                self.employ(worker)
            if worker.job is not None and said["event"] != "ready":
                return worker, worker.job, said

    def _ended(self, worker: Worker) -> dict[str, Any]:
        del self.workers[worker.number]
        how = worker.end()
        if not worker.ready:
            self._not_started(f"it ended with {how}, and {_last_words(self.store)}")
        return {"event": "ended", "error": f"the worker process ended with {how} (out of memory?)"}

    def stop(self) -> None:
        for worker in self.workers.values():
            worker.stop()


def _last_words(store: RunStore) -> str:
    """Where the log is, and its last line."""
    path = store.folder / LOG
    lines: list[str] = []
    with contextlib.suppress(OSError):
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "nothing")
    return f"{last!r} is the last line of {str(path)!r}"
