"""A run as it goes: the account, the log, and each place where it is shown."""

from __future__ import annotations

import io
import logging
import math
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import mctsvs
from mctsvs import Study
from mctsvs.optimizer.active_variables import VariableStatus, VariableStatuses
from mctsvs.utils.validation import Array
from mctsvs.visualization import terminal
from mctsvs.visualization.progress import ProgressReporter, RunStats, TimeShare
from mctsvs.visualization.terminal import Screen, bar, braille, choose_view


def f(x: Array) -> float:
    return float((x[3] - 0.2) ** 2 + (x[17] - 0.7) ** 2)


def account(**more: Any) -> RunStats:
    known = RunStats("auto on f", "minimize", 100, 40, 2, [(1, 5.0), (10, 3.0), (31, 0.25)])
    known.phase, known.explain = "testing groups: 2 found, 5 rejected, 3 open", lambda: statuses("x17", "x3")
    known.seconds, known.thinking, known.made = 20.0, 5.0, 40
    for name, value in more.items():
        setattr(known, name, value)
    return known


def statuses(*names: str) -> VariableStatuses:
    """These act, and another does not."""
    rows = [VariableStatus(name, "active", 0.31, 0.12, (12, 19)) for name in names]
    return VariableStatuses([*rows, VariableStatus("x4", "unchanged", changes=5)], f"{' and '.join(names)} act")


def drawn(known: RunStats, width: int) -> list[str]:
    stream = io.StringIO()
    Console(file=stream, width=width, force_terminal=False).print(Screen(known))
    return stream.getvalue().splitlines()


def test_time_left_and_share_of_thinking() -> None:
    assert account().seconds_left == pytest.approx(30.0)
    assert account().share_thinking == 0.25
    assert account(made=0).seconds_left is None
    assert account().line() == "40/100, 2 failed, best 0.25, testing groups: 2 found, 5 rejected, 3 open, 30 s left"
    assert account(steps=[]).line().startswith("40/100, 2 failed, no value yet")


def test_the_curve_is_the_best_value_after_equal_parts() -> None:
    assert account().curve(4) == [3.0, 3.0, 3.0, 0.25]
    assert math.isnan(account(steps=[(30, 1.0)]).curve(4)[0])


@pytest.mark.parametrize("width", [30, 60, 100, 200])
def test_the_screen_keeps_within_its_width(width: int) -> None:
    lines = drawn(account(), width)
    assert max(len(line) for line in lines) <= width
    text = "\n".join(lines)
    assert "0.25" in text
    assert "x17" in text
    assert "x4" not in text, "what is not known to act gets no bar"
    if width >= 60:
        assert "testing groups: 2 found, 5 rejected, 3 open" in text
        assert "25 % of the time" in text
        assert "30 s left" in text


def test_names_of_strangers_do_not_move_the_terminal() -> None:
    lines = drawn(account(explain=lambda: statuses("\x1b[2J"), found=["\x1b"], phase="a\rb"), 100)
    assert all(line.isprintable() for line in lines)


def test_bars_and_curves() -> None:
    assert bar(0.5, 4) == "██  "
    assert bar(1 / 32, 4) == "▏   "
    assert braille([0.0, 1.0, 2.0, 3.0], 1) == ["⣠⠞"]
    assert braille([math.nan, 1.0], 2) == ["⠀", "⢀"]


def test_the_allowance_is_kept() -> None:
    time = [0.0]
    allowance = TimeShare(0.01, lambda: time[0])
    assert not allowance.permits(0.1)
    time[0] = 10.0
    assert allowance.permits(0.1)
    with allowance.spending():
        time[0] += 0.1
    assert not allowance.permits(0.01)
    time[0] = 12.0
    assert allowance.permits(0.01)


def test_the_log_tells_the_story(caplog: pytest.LogCaptureFixture) -> None:
    def sometimes(x: Array) -> float | None:
        return None if x[0] > 0.7 else f(x)

    with caplog.at_level(logging.DEBUG, "mctsvs"):
        result = mctsvs.minimize(sometimes, [(0, 1)] * 40, budget=60, seed=1)
    said = [record.getMessage() for record in caplog.records if record.name == "mctsvs"]
    levels = {record.levelno for record in caplog.records}
    assert said[0] == "begin: minimize 40 variables with auto, seed 1, 0 of 60 evaluations made"
    assert said[-1].startswith("end: 60 of 60 evaluations")
    assert any("testing groups" in text for text in said)
    assert sum(": value " in text for text in said) == 60
    failed = sum(trial.failed for trial in result.trials)
    assert sum("failed: the function returned None" in text for text in said) == failed > 0
    assert f"best value {result.fun:.6g}" in [text.partition(": ")[2] for text in said if "best value" in text][-2]
    assert levels == {logging.DEBUG, logging.INFO, logging.WARNING}


def test_a_study_tells_it_too_and_goes_on(tmp_path: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "mctsvs"), Study(tmp_path / "run.db", [(0, 1)] * 40, seed=1) as study:
        study.optimize(f, 10)
        study.optimize(f, 15)
    begun = [record.getMessage() for record in caplog.records if record.getMessage().startswith("begin")]
    assert [text.partition("seed 1, ")[2] for text in begun] == [
        "0 of 10 evaluations made",
        "10 of 15 evaluations made",
    ]


def test_nothing_is_shown_in_a_pipe(capfd: pytest.CaptureFixture[str]) -> None:
    mctsvs.minimize(f, [(0, 1)] * 40, budget=5, progress=True)
    assert capfd.readouterr() == ("", "")
    wrong: Any = "yes"
    with pytest.raises(mctsvs.InputError, match="progress="):
        mctsvs.minimize(f, [(0, 1)] * 40, budget=5, progress=wrong)


def test_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # taken for a terminal
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    result = mctsvs.minimize(f, [(0, 1)] * 40, budget=30, progress=True)
    shown = capsys.readouterr().err
    assert "30/30 evaluations" in shown
    assert f"{result.fun:.6g}" in shown
    assert "nan" not in shown


def test_lines_for_logs() -> None:
    stream = io.StringIO()
    with ProgressReporter(terminal.LogLines(stream), "f") as follower:
        opt = mctsvs.Optimizer([(0, 1)] * 40, seed=1, budget=20)
        follower.begin(opt, 20)
        for _ in range(20):
            (trial,) = opt.ask()
            opt.tell(trial, f(trial.x))
            follower.told(trial)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "f: 0/20, no value yet, first points"
    assert lines[-2].startswith("20/20, best ")
    assert lines[-1] == "x3 acts; 39 were not tested"
    assert 11 <= len(lines) <= 16
    assert any("optimising all variables" in line for line in lines)


def test_at_the_end_it_says_what_was_found() -> None:
    noise = np.random.default_rng(0)
    for sd, words in ((0.0, "x3 and x17 act"), (0.3, "nine times in ten between")):
        stream = io.StringIO()
        with ProgressReporter(terminal.LogLines(stream)) as follower:
            opt = mctsvs.Optimizer([(0, 1)] * 40, seed=1, budget=90)
            follower.begin(opt, 90)
            for _ in range(90):
                (trial,) = opt.ask()
                opt.tell(trial, f(trial.x) + sd * noise.normal())
                follower.told(trial)
        last = stream.getvalue().splitlines()[-1]
        assert last in (words, "x17 and x3 act") if sd == 0.0 else words in last and "a lucky one" in last


def test_a_line_below_the_cell_of_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[dict[str, str]] = []

    class Handle:
        def update(self, bundle: dict[str, str], raw: bool) -> None:
            shown.append(bundle)

    def display(bundle: dict[str, str], raw: bool, display_id: bool) -> Handle:
        shown.append(bundle)
        return Handle()

    monkeypatch.setattr(terminal, "_notebook", lambda: display)
    assert isinstance(choose_view(), terminal.NotebookView)
    mctsvs.minimize(f, [(0, 1)] * 40, budget=12, progress=True)
    assert shown[0]["text/plain"].startswith("auto, 40 variables: 0/12")
    assert "12/12, best" in shown[-1]["text/plain"]


def test_showing_changes_no_point() -> None:
    plain = mctsvs.minimize(f, [(0, 1)] * 40, budget=25, seed=3)
    with ProgressReporter(
        terminal.TerminalView(Console(file=io.StringIO(), force_terminal=True), keep=True)
    ) as follower:
        opt = mctsvs.Optimizer([(0, 1)] * 40, seed=3, budget=25)
        follower.begin(opt, 25)
        for _ in range(25):
            (trial,) = opt.ask()
            opt.tell(trial, f(trial.x))
            follower.told(trial)
    assert np.array_equal([t.x for t in plain.trials], [t.x for t in opt.trials])


def test_says_when_the_best_point_is_not_feasible() -> None:
    stream = io.StringIO()
    with ProgressReporter(terminal.LogLines(stream)) as follower:
        opt = mctsvs.Optimizer([(0, 1)] * 5, seed=1, method="random")
        follower.begin(opt, 4)
        for limit in (1.0, 1.0, -1.0, -1.0):
            (trial,) = opt.ask()
            opt.tell(trial, 0.5, constraints={"limit": limit})
            follower.told(trial)
    lines = stream.getvalue().splitlines()
    assert ["not feasible" in line for line in lines] == [False, True, True, False, False]
    assert "violates constraints" in "\n".join(drawn(account(feasible=False), 100))
