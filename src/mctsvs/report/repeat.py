"""The command, or the lines of Python, that repeat a run."""

from __future__ import annotations

import shlex
from typing import Any

from mctsvs.plot.source import Run


def how_to_repeat(run: Run) -> str:
    """From the note that the command line leaves in a study, else from what the run says of itself."""
    note = dict(run.about.get("notes") or {}).get("command")
    if isinstance(note, dict) and isinstance(note.get("problem"), str):
        return _command(run, note)
    return _python(run)


def _command(run: Run, note: dict[str, Any]) -> str:
    about = run.about
    words = ["mctsvs", "run", note["problem"], "--method", str(about.get("method", ""))]
    words += ["--budget", str(note.get("budget", len(run.told))), "--seed", str(about.get("seed", 0))]
    for name, value in dict(about.get("options") or {}).items():
        words += ["--set", f"{name}={value!r}"]
    variation = note.get("variation")
    variation = variation if isinstance(variation, dict) else {}
    words += [f"--{name}" for name in ("shuffle", "shift") if variation.get(name) is True]
    if variation.get("noise"):
        words += ["--noise", str(variation["noise"])]
    if variation.get("seed"):
        words += ["--problem-seed", str(variation["seed"])]
    for name in ("workers", "timeout"):
        if note.get(name):
            words += [f"--{name}", str(note[name])]
    words += ["--asynchronous"] * (note.get("asynchronous") is True) + ["--study", "again.db"]
    return shlex.join(words)


def _python(run: Run) -> str:
    about = run.about
    budget = about.get("budget") or sum(trial.source != "imported" for trial in run.told)
    options = "".join(f", {name}={value!r}" for name, value in dict(about.get("options") or {}).items())
    return (
        "from mctsvs import Study\n\n"
        f'study = Study("again.db", space, direction="{run.direction}", method="{about.get("method", "mcts-vs")}", '
        f"seed={about.get('seed', 0)}{options})\n"
        f"study.optimize(f, budget={budget})  # space and f: your variables and your function"
    )
