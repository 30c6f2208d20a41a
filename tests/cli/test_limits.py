"""On the command line: what ends a run before its budget."""

from __future__ import annotations

from pathlib import Path

import pytest

from mctsvs.cli import main
from mctsvs.study import Study

RUN = ["bench", "run", "Hartmann6_20", "--method", "random", "--budget", "60", "--quiet"]


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        (["--target", "0.5"], "the target 0.5 was reached"),
        (["--patience", "5"], "none of the last 5 was better"),
        (["--max-seconds", "1e-9"], "1e-09 seconds were over"),
    ],
)
def test_a_limit_ends_the_run_and_is_named(
    flag: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = 2 if "--max-seconds" in flag else 0  # nothing was evaluated
    assert main([*RUN, *flag]) == code
    first = capsys.readouterr()
    assert words in first.err
    assert " of 60 evaluations, " in first.err or code
    path = tmp_path / "run.db"
    assert main([*RUN, *flag, "--study", str(path)]) == code
    assert words in capsys.readouterr().err
    with Study(path, readonly=True) as study:
        assert study.evaluated < 60


def test_resume_keeps_target_and_patience_and_takes_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.db"
    assert main([*RUN, "--study", str(path), "--target", "0.5", "--patience", "50"]) == 0
    assert main(["resume", str(path), "--quiet"]) == 0
    assert "the target 0.5 was reached before" in capsys.readouterr().err
    assert main(["resume", str(path), "--target", "9", "--patience", "3", "--quiet"]) == 0
    assert "none of the last" in capsys.readouterr().err


def test_a_limit_that_cannot_be_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RUN, "--patience", "0"]) == 2
    assert "patience=0 cannot be used" in capsys.readouterr().err
