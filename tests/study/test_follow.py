"""Times and purposes in the journal; a study read while another one writes it."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mctsvs import Study, StudyError
from mctsvs.optimizer.trial import TrialTimes
from mctsvs.study.reader import StudyFollower, summarize

BOX = [(0.0, 1.0)] * 6


def bowl(x: Any) -> float:
    return float((x[2] - 0.3) ** 2)


def test_purpose_and_times_are_kept(tmp_path: Path) -> None:
    with Study(tmp_path / "s.db", BOX, seed=0) as study:
        study.optimize(bowl, 30)
        expected = [(t.purpose, t.times.asked, t.times.told, t.times.evaluating, t.times.worker) for t in study.trials]
    assert len({purpose for purpose, *_ in expected}) > 2
    for options in ({"readonly": True}, {}):
        with Study(tmp_path / "s.db", **options) as study:  # type: ignore[arg-type]
            found = [(t.purpose, t.times.asked, t.times.told, t.times.evaluating, t.times.worker) for t in study.trials]
            assert found == expected
            study.variables()  # the optimizer, revived, has the same trials
            again = [(t.purpose, t.times.asked, t.times.told, t.times.evaluating, t.times.worker) for t in study.trials]
            assert again == expected


def test_workers_have_names(tmp_path: Path) -> None:
    with Study(tmp_path / "s.db", BOX, method="random") as study:
        study.optimize(bowl, 8, workers=2)
        assert len({t.times.worker for t in study.trials}) == 2
        assert all(t.times.seconds is not None for t in study.trials)


@pytest.mark.parametrize(
    "packed", [b"[]", b"{", b'{"told": "x"}', b'{"told": NaN}', b'{"number": 1.0}', b'{"told": 1}']
)
def test_times_that_are_none(packed: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        TrialTimes().unpack(packed)


def test_a_study_is_followed_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with Study(path, BOX, seed=0) as study:
        study.optimize(bowl, 5)
        followed = StudyFollower(path)
        assert followed.look()
        assert not followed.look()
        assert followed.running
        assert followed.contents is not None
        for n in (6, 9, 30):
            study.optimize(bowl, n)
            assert followed.look()
            assert len(followed.contents.told) == n
            assert followed.budget == n
        assert [t.value for t in followed.contents.trials] == [t.value for t in study.trials]
        assert [t.purpose for t in followed.contents.trials] == [t.purpose for t in study.trials]
        assert all(np.array_equal(a.unit, b.unit) for a, b in zip(followed.contents.trials, study.trials, strict=True))
        study.tell(study.ask()[0], 1.0, constraints={"c": 1.0})
        assert followed.look()
        assert followed.contents.trials[-1].constraints == {"c": 1.0}
    followed.look()
    assert not followed.running
    followed.close()


def test_a_file_that_was_replaced_is_read_anew(tmp_path: Path) -> None:
    for name, n in (("a.db", 3), ("b.db", 7)):
        with Study(tmp_path / name, BOX, method="random") as study:
            study.optimize(bowl, n)
    followed = StudyFollower(tmp_path / "a.db")
    followed.look()
    shutil.move(tmp_path / "b.db", tmp_path / "a.db")
    assert followed.look()
    assert followed.contents is not None
    assert len(followed.contents.told) == 7
    (tmp_path / "a.db").unlink()
    with pytest.raises(StudyError):
        followed.look()
    followed.close()


def test_damage_is_noticed_while_following(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with Study(path, BOX, method="random") as study:
        study.optimize(bowl, 3)
    followed = StudyFollower(path)
    followed.look()
    connection = sqlite3.connect(path)
    connection.execute("UPDATE journal SET value = 7 WHERE kind = 'tell'")
    connection.execute("UPDATE head SET seq = seq + 1")
    connection.commit()
    connection.close()
    with pytest.raises(StudyError):
        followed.look()
    followed.close()


def test_a_glance_counts_what_is_there(tmp_path: Path) -> None:
    with Study(tmp_path / "s.db", BOX, method="random", direction="maximize") as study:
        study.optimize(lambda x: None if x[0] < 0.3 else float(x[1]), 20)
        seen = summarize(tmp_path / "s.db")
        assert (seen.method, seen.direction, seen.evaluations) == ("random", "maximize", 20)
        assert seen.failed == sum(t.failed for t in study.trials) > 0
        assert seen.best == study.best.value
    (tmp_path / "no.db").write_text("no study")
    with pytest.raises(StudyError):
        summarize(tmp_path / "no.db")
