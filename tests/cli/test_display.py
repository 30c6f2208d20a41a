"""What the command line shows of a run and of a study, and what it gives to shells."""

from __future__ import annotations

import io
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from mctsvs.cli import main, summary
from mctsvs.cli.commands import parser
from mctsvs.cli.completion import script
from mctsvs.methods.mcts_vs.tree import Node
from mctsvs.methods.registry import METHODS
from mctsvs.optimizer.active_variables import VariableStatus, VariableStatuses

NAMES = {"method": list(METHODS), "problem": ["Hartmann6_300"]}


def test_lines_in_a_pipe(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "run", "Hartmann6_60", "--budget", "40", "--seed", "1"]) == 0
    lines = capfd.readouterr().err.splitlines()
    assert lines[0] == "auto on Hartmann6_60: 0/40, no value yet, first points"
    assert lines[-2].startswith("40/40, best ")
    assert re.fullmatch(r"x[0-5]\b.* acts?; \d+ were not tested", lines[-1])
    assert main(["bench", "run", "Hartmann6_60", "--budget", "5", "--quiet"]) == 0
    assert capfd.readouterr().err == ""


def test_a_display_on_a_terminal() -> None:
    """A real one: the display is drawn in place, is gone at the end, and the summary stays."""
    here, there = pty.openpty()
    command = [sys.executable, "-m", "mctsvs", "bench", "run", "Hartmann6_60", "--budget", "40", "--seed", "1"]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "40"}
    with subprocess.Popen(command, stdin=there, stdout=there, stderr=there, env=environment) as process:
        os.close(there)
        seen = b""
        try:
            while piece := os.read(here, 65536):
                seen += piece
        except OSError:  # Linux's word for the end
            pass
    os.close(here)
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen.decode())
    assert process.returncode == 0
    assert "40/40 evaluations" in text
    assert "% of the time" in text
    assert text.rindex("best value      ") > text.rindex("40/40 evaluations")


def test_show_prints_a_table_of_active_variables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "run.db")
    assert main(["bench", "run", "Hartmann6_300", "--budget", "90", "--seed", "1", "--study", path, "--quiet"]) == 0
    capsys.readouterr()
    assert main(["show", path]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"variable +at least +of range +trials +at the best point *\n", printed)
    assert re.search(r"x[0-5] +\d\.\d+ +\d+% +█.* +\d+ and \d+ +0\.\d+ *\n", printed)
    assert re.search(r"variables +x[0-5],.* act; .* of the 6 that truly act are named", printed)
    assert "importance" not in printed


@pytest.mark.parametrize("width", [40, 80])
def test_table_and_tree_keep_within_the_width(width: int) -> None:
    names = tuple(f"a_rather_long_name_of_a_variable_{i}" for i in range(50))
    rows = [VariableStatus(name, "active", 0.3, 1.0 - i / 50, (12, 19)) for i, name in enumerate(names)]
    found = VariableStatuses(rows, "a_rather_long_name_of_a_variable_0 and others act")
    root = Node(np.arange(50), children=(Node(np.arange(25)), Node(np.arange(25, 50))))
    stream = io.StringIO()
    console = Console(file=stream, width=width)
    console.print(summary.table(found, dict.fromkeys(names, 0.123456789), width))
    console.print(summary.branches(root, names))
    lines = stream.getvalue().splitlines()
    assert max(len(line) for line in lines) <= width
    assert lines[summary.ROWS + 1].strip() == "30 more"
    assert lines[-1].startswith("└── 25 variables (a_rather")


@pytest.mark.needs("shtab")
def test_bash_completes_commands_options_and_names() -> None:
    asked = ("mctsvs res", "mctsvs run --method mcts-vs-s", "mctsvs run --bud", "mctsvs run Hart")
    ask = "".join(
        f"COMP_WORDS=({line}); COMP_CWORD={len(line.split()) - 1}; COMPREPLY=(); _shtab_mctsvs; "
        'echo "${COMPREPLY[@]}"\n'
        for line in asked
    )
    made = script("bash", parser(), NAMES) + "\n" + ask
    done = subprocess.run(["bash"], input=made, capture_output=True, text=True, check=True)
    answers = [set(line.split()) for line in done.stdout.splitlines()]
    assert answers[0] == {"resume"}
    assert answers[1] == {"mcts-vs-saas", "mcts-vs-saasbo"}
    assert answers[2] == {"--budget"}
    assert "Hartmann6_300" in answers[3]


@pytest.mark.needs("shtab")
@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_can_read_theirs(shell: str) -> None:
    made = script(shell, parser(), NAMES)
    assert "--budget" in made or "-l budget" in made
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    assert subprocess.run([shell, "-n"], input=made, capture_output=True, text=True).returncode == 0
