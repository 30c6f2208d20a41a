"""The shortened form of the benchmark that injects faults: every class of them once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked and killed as on Linux")
@pytest.mark.parametrize("part", ["faults", "kill"])
def test_the_benchmark_of_faults_meets_its_bars(part: str) -> None:
    script = Path(__file__).parents[2] / "benchmarks" / "study.py"
    done = subprocess.run([sys.executable, str(script), part, "--quick"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| yes |" in done.stdout
    assert "| NO |" not in done.stdout
