"""Every example runs, in its short form, in a process of its own: a reader who copies it gets what it says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
ENVIRONMENT = {**os.environ, "QUICK": "1", "PYTHONWARNINGS": "default"}
ENVIRONMENT.pop("MPLBACKEND", None)  # a notebook chooses its own


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("simulation", "yield 0."),
        pytest.param("sklearn_pipeline", "40 hyper-parameters, error ", marks=pytest.mark.needs("sklearn")),
        pytest.param("mujoco_policy", "Result(fun=", marks=pytest.mark.needs("gymnasium", "mujoco")),
        pytest.param("optuna_sampler", "after 12 trials", marks=pytest.mark.needs("optuna")),
        pytest.param("dask_cluster", "after 12 evaluations, kept in run.db", marks=pytest.mark.needs("distributed")),
    ],
)
def test_script(name: str, says: str, tmp_path: Path) -> None:
    assert says in run(tmp_path, sys.executable, str(EXAMPLES / f"{name}.py"))


@pytest.mark.slow
def test_program(tmp_path: Path) -> None:
    """The command is found on the path, as a user's shell finds it."""
    command = tmp_path / "mctsvs"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m mctsvs "$@"\n')
    command.chmod(0o755)
    ENVIRONMENT["PATH"] = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    printed = run(tmp_path, "sh", str(EXAMPLES / "program" / "run.sh"), "--quiet")
    assert "102 variables, minimize" in printed
    assert "evaluations     12" in printed


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
    assert int(run(tmp_path, sys.executable, "-c", script)) >= 5
