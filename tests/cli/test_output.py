"""Nothing that is printed, or cannot be, ends a run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mctsvs.study import Study

RUN = f"{sys.executable} -m mctsvs run own.py:f --space s.toml --budget 12"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "s.toml").write_text("a = [0, 1]\nb = [0, 1]\n")
    (tmp_path / "own.py").write_text("def f(a, b):\n    return a * a + b\n")
    return tmp_path


def shell(line: str, folder: Path, **more: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["sh", "-c", line], cwd=folder, env={**os.environ, **more}, capture_output=True, check=False)


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_an_output_with_few_characters_loses_nothing(encoding: str, folder: Path) -> None:
    (folder / "s.toml").write_text('a = [0, 1]\n"ß" = [0, 1]\n', encoding="utf-8")
    (folder / "own.py").write_text("def f(p):\n    return p['a'] ** 2 + p['ß']\n", encoding="utf-8")
    done = shell(f"{RUN} --noise 0.1 --replicates 4 --json run.json --quiet", folder, PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, b"")
    assert ("ß=" in done.stdout.decode(encoding)) == (encoding == "cp1252")
    assert len(json.loads((folder / "run.json").read_text())["values"]) == 12
    with Study(folder / "run.db", [(0.0, 1.0)] * 2, seed=0) as study:
        study.optimize(lambda x: float(x[0]), 40)
    shown = shell(f"{sys.executable} -m mctsvs show run.db", folder, PYTHONIOENCODING=encoding)
    assert (shown.returncode, shown.stderr) == (0, b"")
    assert b"at the best point" in shown.stdout


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize(
    ("where", "code", "said"),
    [
        ("<&- >&- 2>&-", 0, b""),  # the study must not become standard output
        ("2>&1 | head -n 1", 0, b""),
        ("> /dev/full", 1, b"standard output cannot be written: No space left on device"),
    ],
)
def test_an_output_that_nobody_reads_loses_nothing(where: str, code: int, said: bytes, folder: Path) -> None:
    done = shell(f"{RUN} --study run.db {where}", folder)
    assert done.returncode == code
    assert said in done.stderr
    with Study(folder / "run.db", readonly=True) as study:
        assert study.evaluated == 12
