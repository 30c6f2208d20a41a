"""Studies of several objectives: kept, gone on with bit for bit, and compared with what the caller gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mctsvs import InputError, Optimizer, Study, StudyError
from mctsvs.cli import main
from mctsvs.study.reader import summarize

BOX = [(0.0, 1.0)] * 45
NAMED = {"cost": "minimize", "lift": "maximize"}


def f(x: Any) -> Any:
    if x[1] > 0.9:
        return None
    return {"cost": float(x[0] + x[7] ** 2), "lift": float(np.sqrt(x[0]) + x[9])}, {"edge": float(x[2] - 0.8)}


def begin(path: Path, **more: Any) -> Study:
    return Study(path, BOX, **{"objectives": NAMED, "reference": [3.0, -1.0], "seed": 2, **more})


def told(opt: Any) -> list[Any]:
    return [(t.x.tolist(), t.values, t.constraints, t.message) for t in opt.trials]


def test_a_study_that_is_opened_again_goes_on_bit_for_bit(tmp_path: Path) -> None:
    with begin(tmp_path / "whole.db") as whole:
        whole.optimize(f, 60)
    for upto in (7, 22, 41):
        with begin(tmp_path / "parts.db") as part:
            part.optimize(f, upto)
            part.save()
        with Study(tmp_path / "parts.db") as part:
            part.ask()
    with Study(tmp_path / "parts.db") as part:
        knee = part.optimize(f, 60)
        assert told(part) == told(whole)
        assert knee is part.front.knee
        assert part.front.values.tolist() == part.optimizer.front.values.tolist()
        assert part.front.hypervolume == part.optimizer.hypervolume > 0.0
        assert part.front.objectives == part.objectives
        assert repr(part).endswith(f"60 evaluations of 45 variables, {len(part.front)} of them on the front)")


def test_a_copy_without_the_state_of_the_method_is_the_same(tmp_path: Path) -> None:
    opt = Optimizer(BOX, objectives=NAMED, reference=[3.0, -1.0], seed=2)
    with begin(tmp_path / "a.db") as study:
        for _ in range(30):
            (trial,), (again,) = opt.ask(), study.ask()
            values, constraints = f(trial.x) or (None, None)
            opt.tell(trial, values, constraints=constraints)
            study.tell(again, values, constraints=constraints)
        study.backup(tmp_path / "b.db")
    with Study(tmp_path / "b.db") as study:
        assert study.ask()[0].x.tolist() == opt.ask()[0].x.tolist()


def test_workers_and_values_that_come_early(tmp_path: Path) -> None:
    with begin(tmp_path / "a.db") as study:
        study.optimize(f, 10, workers=2)
        assert sum(t.values is not None for t in study.trials) == 10 - sum(t.failed for t in study.trials)


def test_what_is_read_without_the_method(tmp_path: Path) -> None:
    with begin(tmp_path / "a.db") as study:
        study.optimize(f, 25)
        failed = sum(t.failed for t in study.trials)
        with Study(tmp_path / "a.db", readonly=True) as seen:
            assert seen.front.values.tolist() == study.front.values.tolist()
            assert seen.direction == "minimize cost, maximize lift"
    summary = summarize(tmp_path / "a.db")
    assert (summary.evaluations, summary.failed, summary.best) == (25, failed, None)


def test_what_several_objectives_do_not_have(tmp_path: Path) -> None:
    with begin(tmp_path / "a.db") as study:
        study.optimize(f, 5)
        assert not study.has_best
        for ask in (lambda: study.best, study.recommend):
            with pytest.raises(InputError, match=r"front .* knee"):
                ask()
        with pytest.raises(InputError, match="cannot be imported"):
            study.import_points(tmp_path / "b.csv")
        with pytest.raises(InputError, match="pictures show one objective"):
            study.report(tmp_path / "report.html")
    with Study(tmp_path / "one.db", [(0, 1)], method="random") as one, pytest.raises(InputError, match="no front"):
        _ = one.front


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"objectives": None, "reference": None, "directions": ["minimize"] * 2}, "direction is 'minimize cost"),
        ({"reference": [3.0, -2.0]}, "the reference point is another one"),
        ({"objectives": None, "reference": None, "direction": "maximize"}, "direction is 'minimize cost"),
    ],
)
def test_other_settings_are_refused(tmp_path: Path, given: dict[str, Any], sentence: str) -> None:
    begin(tmp_path / "a.db").close()
    with pytest.raises(StudyError, match=sentence):
        begin(tmp_path / "a.db", **given)
    Study(tmp_path / "one.db", BOX).close()
    with pytest.raises(StudyError, match="direction is 'minimize'"):
        begin(tmp_path / "one.db", **{**given, "direction": "maximize"} if "direction" in given else {})


@pytest.mark.needs("pandas")
def test_tables(tmp_path: Path) -> None:
    with begin(tmp_path / "a.db") as study:
        study.optimize(f, 5)
        assert [*study.to_dataframe().columns[:3]] == ["number", "objective_cost", "objective_lift"]
        study.export(tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text().startswith("number,objective_cost,objective_lift,source,")


def test_what_the_command_line_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with begin(tmp_path / "a.db") as study:
        study.optimize(f, 20)
    assert main(["show", str(tmp_path / "a.db")]) == 0
    rows = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert rows["front"] == (f"{len(study.front)} points, hypervolume {study.front.hypervolume:.6g} from 3, -1")
    assert rows["knee"].startswith("cost=")
