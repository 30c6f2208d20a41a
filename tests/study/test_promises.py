"""The shortened form of the benchmark that injects faults: every class of them once."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
compiled = pytest.mark.skipif(not (shutil.which("cc") or shutil.which("gcc")), reason="needs a C compiler")


@pytest.mark.no_cover
@compiled
@pytest.mark.skipif(sys.platform != "linux", reason="calls of libc are replaced as on Linux")
def test_no_call_that_fails_costs_anything() -> None:
    """A sample of all calls by which runs change their files; the benchmark makes each of them fail."""
    script = [sys.executable, str(BENCHMARKS / "study.py"), "disk", "--quick"]
    done = subprocess.run(script, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    kinds = [line for line in done.stdout.splitlines() if line.startswith(("| write", "| lock", "| sync", "| open"))]
    assert len(kinds) > 15, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked and killed as on Linux")
@pytest.mark.parametrize("part", ["faults", "kill"])
def test_the_benchmark_of_faults_meets_its_bars(part: str) -> None:
    script = BENCHMARKS / "study.py"
    done = subprocess.run([sys.executable, str(script), part, "--quick"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| yes |" in done.stdout
    assert "| NO |" not in done.stdout
