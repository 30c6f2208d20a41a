"""Every example runs in a process of its own, and prints what its page shows."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
PAGE = (ROOT / "docs" / "examples.md").read_text()
NEEDS = {
    "sklearn_pipeline.py": ("sklearn",),
    "mujoco_policy.py": ("gymnasium", "mujoco"),
    "optuna_sampler.py": ("optuna",),
    "dask_cluster.py": ("distributed",),
}
SHOWN = re.findall(r"literalinclude\} \.\./examples/(\S+)\n(?:(?!\n#).)*?```output\n(.*?)```", PAGE, re.DOTALL)
"""Each example with what it prints: the first file of its section, and the output in that."""


def run(folder: Path, *command: str, **environment: str) -> str:
    plain = {name: value for name, value in os.environ.items() if name not in ("MPLBACKEND", "QUICK")}
    known = {**plain, "PYTHONWARNINGS": "default", **environment}
    done = subprocess.run(command, cwd=folder, env=known, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def compare(shown: str, printed: str) -> None:
    """As in a doctest, `...` stands for anything."""
    checker = doctest.OutputChecker()
    if not checker.check_output(shown, printed, doctest.ELLIPSIS):
        pytest.fail(checker.output_difference(doctest.Example("", shown), printed, doctest.ELLIPSIS))


def test_every_example_is_shown() -> None:
    scripts = {path.name for path in EXAMPLES.glob("*.py")}
    assert {file for file, _ in SHOWN} == {*scripts, "program/run.sh"}
    assert set(NEEDS) <= scripts


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "shown"),
    [
        pytest.param(file, shown, marks=[pytest.mark.needs(*NEEDS.get(file, ()))], id=file)
        for file, shown in SHOWN
        if file.endswith(".py")
    ],
)
def test_script(file: str, shown: str, tmp_path: Path) -> None:
    compare(shown, run(tmp_path, sys.executable, str(EXAMPLES / file)))


@pytest.mark.slow
def test_program(tmp_path: Path) -> None:
    """The command is found on the path, as a user's shell finds it."""
    command = tmp_path / "mctsvs"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m mctsvs "$@"\n')
    command.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    printed = run(tmp_path, "sh", str(EXAMPLES / "program" / "run.sh"), "--quiet", PATH=path)
    compare(dict(SHOWN)["program/run.sh"], printed)


@pytest.mark.slow
@pytest.mark.needs("nbclient", "ipykernel", "matplotlib")
def test_notebook(tmp_path: Path) -> None:
    """It runs from top to bottom, and the stored one has the output of every cell."""
    import nbformat

    stored = nbformat.read(EXAMPLES / "notebook.ipynb", as_version=4)
    cells = [cell for cell in stored.cells if cell.cell_type == "code"]
    assert all(cell.outputs for cell in cells[1:])
    assert not any(output.output_type == "error" for cell in cells for output in cell.outputs)
    script = (
        "import nbformat, nbclient\n"
        f"notebook = nbformat.read({str(EXAMPLES / 'notebook.ipynb')!r}, as_version=4)\n"
        f"nbclient.NotebookClient(notebook, resources={{'metadata': {{'path': {str(EXAMPLES)!r}}}}}).execute()\n"
        "print(sum(len(cell.get('outputs', [])) for cell in notebook.cells))\n"
    )
    assert int(run(tmp_path, sys.executable, "-c", script, QUICK="1")) >= 5
