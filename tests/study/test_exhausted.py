"""A study whose space has no points left, and one whose method is somebody's file."""

from __future__ import annotations

from pathlib import Path

import pytest

from mctsvs import InputError, Integer, Optimizer, Study, StudyError

SPACE = {"a": Integer(0, 3), "b": Integer(0, 2)}  # 12 points


def value(point: dict[str, int]) -> float:
    return float((point["a"] - 2) ** 2 + point["b"])


@pytest.mark.parametrize("how", [{}, {"workers": 3}, {"workers": 3, "asynchronous": True}])
def test_a_run_ends_where_the_space_does(tmp_path: Path, how: dict[str, int | bool]) -> None:
    with Study(tmp_path / "run.db", SPACE, seed=0) as study:
        with pytest.warns(RuntimeWarning, match="every point of the space has been evaluated"):
            best = study.optimize(value, 30, **how)  # type: ignore[arg-type]
        assert best.params == {"a": 2, "b": 0}
        assert study.evaluated == 12
        assert len({tuple(trial.params.values()) for trial in study.trials}) == 12
    with Study(tmp_path / "run.db") as again:
        assert again.evaluated == 12


def test_no_trial_is_lost_where_the_budget_ends_before_the_space(tmp_path: Path) -> None:
    """The budget has one evaluation left and so has the space, and three are wanted."""
    space, known = {name: Integer(0, 3) for name in "abc"}, "a + b + c == 1"
    opt = Optimizer(space, method="random", seed=0, constraints=known)
    with Study(tmp_path / "run.db", space, method="random", seed=0, constraints=known) as study:
        for run in (opt, study):
            run.plan(3)
            run.ask(2)
            assert [trial.number for trial in run.ask(3)] == [2]
            with pytest.raises(InputError, match="have been asked for"):
                run.ask()
            assert [trial.number for trial in run.pending] == [0, 1, 2]


ENGINE = """
from mctsvs.methods.base import Engine

open("imported", "a").close()


class Mine(Engine):
    def propose(self, n, pending):
        return [self.proposal(self.rng.random(self.dimension), self.everything) for _ in range(n)]
"""


def test_a_file_is_not_imported_because_a_study_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(ENGINE)
    with Study("run.db", [(0.0, 1.0)] * 2, method="mine.py:Mine", seed=0) as study:
        study.optimize(lambda x: float(x.sum()), 5)
    Path("mine.py").rename("theirs.py")
    with pytest.raises(StudyError, match="name it with method="):
        Study("run.db")
    with Study("run.db", readonly=True) as look:
        assert look.evaluated == 5
    Path("theirs.py").rename("mine.py")
    with Study("run.db", method="mine.py:Mine") as study:
        study.optimize(lambda x: float(x.sum()), 8)
        assert study.evaluated == 8
