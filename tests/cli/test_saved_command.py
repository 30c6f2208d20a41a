"""The command that the command line stores in a study, and what it asks of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mctsvs import StudyError
from mctsvs.cli.objective import SavedCommand

NOTE: dict[str, Any] = {
    "problem": "Levy10_100",
    "variation": {"shuffle": False, "shift": False, "noise": 0.0, "seed": 0},
    "workers": 1,
    "dask": None,
    "ray": None,
    "asynchronous": False,
    "timeout": None,
    "max_failures": 30,
    "budget": 100,
    "target": None,
    "patience": None,
    "own": None,
}


@pytest.mark.parametrize(
    "note",
    [
        [1, 2],
        None,
        {},
        {**NOTE, "more": 1},
        {name: value for name, value in NOTE.items() if name != "workers"},
    ],
)
def test_a_command_of_another_form_is_refused(note: Any) -> None:
    with pytest.raises(StudyError, match="was not written by this version") as caught:
        SavedCommand.of({"command": note}, Path("s.db"))
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"workers": 40_000}, "--workers 40000, which"),
        ({"dask": "tcp://evil; rm"}, "--dask 'tcp://evil; rm', which"),
        ({"ray": "far:6379"}, "--ray far:6379, which"),
        ({"ray": ""}, "--ray, which"),
    ],
)
def test_a_file_gets_nothing_that_only_the_user_may_grant(wish: dict[str, Any], words: str) -> None:
    plain = SavedCommand.of({"command": NOTE}, Path("s.db"))
    assert plain is not None
    plain.check_modest(Path("s.db"))
    note = SavedCommand.of({"command": {**NOTE, **wish}}, Path("s.db"))
    assert note is not None
    with pytest.raises(StudyError) as caught:
        note.check_modest(Path("s.db"))
    assert words in str(caught.value)
    assert SavedCommand.of({}, Path("s.db")) is None
