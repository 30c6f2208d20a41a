"""What is told beside a value: constraints, noise, attributes; kept, restored, exported and ranked by."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mctsvs import InputError, Integer, Optimizer, Study, maximize, minimize
from mctsvs.cli import main
from mctsvs.loop.evaluation import Evaluation
from mctsvs.methods.constraint_ranking import ConstraintRanking
from mctsvs.study import session
from mctsvs.study.reader import summarize
from mctsvs.study.replay import salvage
from mctsvs.testing import engine_of
from mctsvs.utils.validation import StudyError
from mctsvs.visualization.dashboard.live import LiveStudy
from mctsvs.visualization.progress import ProgressReporter
from mctsvs.visualization.run_data import RunData

BOX = [(0.0, 1.0)] * 6


def measured(x: Any) -> tuple[float | None, dict[str, float]]:
    """Infeasible below 1/2 in the first variable; no value where the third is large."""
    value = float(x[0] + x[1] ** 2)
    return (None if x[2] > 0.9 else value), {"stress": float(0.5 - x[0]), "mass": float(x[1] - 0.8) * 1000.0}


def picture(study: Study | Optimizer) -> list[Any]:
    return [(t.unit.tobytes(), repr(t.value), repr(t.constraints), t.noise, t.attrs) for t in study.trials]


def test_best_is_the_best_feasible_trial() -> None:
    opt = Optimizer(BOX, method="random")
    for value, stress in [(1.0, 2.0), (5.0, 0.5), (0.5, 3.0), (9.0, -1.0), (7.0, 0.0), (8.0, -5.0), (0.0, 1e-9)]:
        opt.tell(opt.ask()[0], value, constraints={"stress": stress})
        if len(opt.trials) == 3:
            assert opt.best.number == 1  # the least violation
    assert (opt.best.number, opt.best.feasible) == (4, True)


def test_a_missing_value_or_constraint_is_no_failure_of_the_other() -> None:
    opt = Optimizer(BOX, method="random")
    first, second, third, fourth = opt.ask(4)
    opt.tell(first, None, constraints={"a": -1.0, "b": 2.0})
    assert not first.failed
    assert not first.has_value
    assert first.constraints == {"a": -1.0, "b": 2.0}
    assert opt.best is first
    opt.tell(second, 3.0, constraints={"b": -1.0})
    assert second.constraints is not None
    assert math.isnan(second.constraints["a"])
    assert not second.feasible
    opt.tell(third, 4.0)
    assert opt.best is second
    opt.tell(fourth, 9.0, constraints={"a": 0.0, "b": 0.0})
    assert opt.best is fourth


def test_a_trial_of_which_nothing_is_known_has_failed() -> None:
    opt = Optimizer(BOX, method="random")
    trials = opt.ask(5)
    opt.tell(trials[0], None, constraints={"a": None, "b": math.nan})  # type: ignore[dict-item]
    assert trials[0].failed
    assert not opt.has_best
    for trial, (value, a) in zip(trials[1:], [(None, 0.5), (None, -1.0), (9.0, 7.0), (8.0, 0.0)], strict=True):
        opt.tell(trial, value, constraints={"a": a, "b": -math.inf})
        assert not trial.failed
        assert opt.best is trial  # less violation, then a value, then a feasible one with a value


def test_a_run_that_measures_constraints_alone_has_not_failed(tmp_path: Path) -> None:
    result = minimize(lambda x: (None, {"c": 1.0 + x[0]}), BOX, budget=40, method="random")
    least = min(trial.x[0] for trial in result.trials)
    assert math.isnan(result.fun)
    assert result.x[0] == least
    assert not result.success
    assert result.message == (
        f"40 evaluations, 40 of them without a value, none of them feasible: x violates c by {1.0 + least:.3g}, the "
        f"least in total"
    )
    assert math.isnan(result.recommendation.sd if result.recommendation else 0.0)
    with Study(tmp_path / "a.db", BOX, method="random", seed=0) as study:
        assert study.optimize(lambda x: (None, {"c": -1.0}), 35, max_failures=3).number == 0
    assert (summarize(tmp_path / "a.db").evaluations, summarize(tmp_path / "a.db").failed) == (35, 0)
    with Study(tmp_path / "a.db", readonly=True) as study:
        assert study.has_best
    with Study(tmp_path / "a.db") as study, pytest.raises(StudyError, match="the last 3 evaluations all failed"):
        study.optimize(lambda x: (None, {"c": None}), 45, max_failures=3)
    assert summarize(tmp_path / "a.db").failed == 3


def test_failures_and_missing_values_are_counted_apart() -> None:
    answers = iter([None, (3.0, {"c": 1.0}), (None, {"c": -1.0}), (None, {"c": 2.0}), None])
    result = minimize(lambda x: next(answers), BOX, budget=5, method="random")
    assert result.message == (
        "5 evaluations, 2 of them failed, 2 of them without a value, none of those with a value feasible: x violates c "
        "by 1, the least in total"
    )


def test_merits_follow_debs_rules() -> None:
    merit = ConstraintRanking(2)
    good, better = merit.add(1.0, np.array([-1.0, 0.0])), merit.add(2.0, np.array([0.0, 0.0]))
    slightly = merit.add(100.0, np.array([1.0, -3.0]))
    badly = merit.add(100.0, np.array([10.0, -3.0]))
    unvalued = merit.add(math.nan, np.array([200.0, 0.0]))
    assert better > good > slightly > badly > unvalued
    assert math.isnan(merit.add(math.nan, None))
    assert merit.add(5.0, None) < good  # whether it is feasible is not known


def test_a_failure_does_not_erase_the_best() -> None:
    opt = Optimizer(BOX, method="random")
    for value in (3.0, 1.0, 2.0):
        opt.tell(opt.ask()[0], value)
    opt.tell(opt.ask()[0], None, constraints={"stress": None})  # type: ignore[dict-item]
    assert (opt.has_best, opt.best.number, opt.best.feasible) == (True, 1, False)
    again = Optimizer.restore(opt.state())
    for run in (opt, again):
        (trial,) = run.ask()
        run.tell(trial, 9.0, constraints={"stress": 0.0})
        assert (run.best, run.best.feasible) == (trial, True)
    answers = iter([5.0, 4.0, (None, {"stress": math.nan})])
    result = minimize(lambda x: next(answers), BOX, budget=3, method="random")
    assert (result.fun, result.number, result.success) == (4.0, 1, False)
    assert "none of them feasible: x has no measured constraint" in result.message


@pytest.mark.parametrize("late", [False, True])
def test_what_was_never_measured_is_not_feasible(tmp_path: Path, late: bool) -> None:
    """In the best, the recommendation, the result, the report, and in a study that is only read."""
    answers = [-100.0, *[(float(i), {"c": -1.0}) for i in range(12)]]
    answers = [answers[i] for i in ((1, 0) if late else (0, 1))] + answers[2:]
    lucky = answers.index(-100.0)
    told, kept = iter(answers), iter(answers)
    with Study(tmp_path / "a.db", BOX, method="random", noise=0.1) as study:
        study.optimize(lambda x: next(told), len(answers))
        assert [t.number for t in study.trials if not t.feasible] == [lucky]
        assert study.best.value == 0.0
        assert study.recommend().trial.number != lucky
        assert RunData.of(study).best == study.best.number
    with Study(tmp_path / "a.db", readonly=True) as study:
        assert [t.number for t in study.trials if not t.feasible] == [lucky]
    result = minimize(lambda x: next(kept), BOX, budget=len(answers), method="random", noise=0.1)
    assert result.number != lucky
    assert result.feasible
    assert not Optimizer(BOX).ask()[0].feasible  # nor what was not told


def test_every_place_names_the_same_best_trial(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.db"
    with Study(path, BOX, method="random") as study:
        waiting = study.ask(2)
        for value, stress in [(1.0, 50.0), (7.0, 1.0), (3.0, 9.0), (5.0, 1.0)]:
            study.tell(study.ask()[0], value, constraints={"stress": stress})
        assert study.best.number == 5  # of two that violate least, the better one
        assert [trial.number for trial in waiting] == [0, 1]
        assert RunData.of(study).told[RunData.of(study).best or 0].number == 5
        assert ">5</div>" in study.report(tmp_path / "a.html").read_text()
        assert "trial 5, breaks a constraint" in (tmp_path / "a.html").read_text()
        assert "</b>, trial 5<" in study._repr_html_()
    assert main(["show", str(path)]) == 0
    assert "trial 5" in capsys.readouterr().out
    live = LiveStudy(path)
    live.followed.look()
    assert live._run().best == 3
    reporter = ProgressReporter()
    with Study(path, readonly=True) as study:
        reporter.begin(study.optimizer, 10)
    account = reporter.account
    assert (account.best, account.trial, account.feasible) == (5.0, 5, False)


def test_every_place_counts_the_same_evaluations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Imported trials, and those of them that failed, are not among them."""
    path, table = tmp_path / "a.db", tmp_path / "known.csv"
    table.write_text("x0,x1,x2,x3,x4,x5,value\n" + "0,0,0,0,0,0,5\n" * 2 + "1,1,1,1,1,1,\n" * 3)
    answers = iter([1.0, None, 2.0, 3.0])
    with Study(path, BOX, method="random") as study:
        study.import_points(table)
        study.optimize(lambda x: next(answers), 4)
        page = study.report(tmp_path / "a.html").read_text()
        assert '>4</div><div class="note">1 failed, 5 imported<' in page
        assert "4 evaluations of 6 variables, 1 failed" in study._repr_html_()
    assert main(["show", str(path)]) == 0
    assert "4, 1 of them failed, 5 imported" in capsys.readouterr().out
    seen = summarize(path)
    assert (seen.evaluations, seen.failed, seen.best) == (4, 1, 1.0)
    live = LiveStudy(path)
    live.followed.look()
    assert "4 of 4 evaluations" in live._state()
    reporter = ProgressReporter()
    with Study(path, readonly=True) as study:
        reporter.begin(study.optimizer, 10, study.evaluated)
    assert reporter.account.line().startswith("4/10, 1 failed")


def test_notes_are_kept_however_a_trial_is_told(tmp_path: Path) -> None:
    with Study(tmp_path / "a.db", BOX, method="random") as study:
        for owner in (study, Optimizer(BOX, method="random")):
            one, two = owner.ask(2)
            one.attrs["host"] = "node7"
            owner.tell(one.number, 1.0)
            two.attrs["mesh"] = 12
            copied = pickle.loads(pickle.dumps(two))
            copied.attrs["host"] = "node8"
            owner.tell(copied, 1.0)
            assert [trial.attrs for trial in owner.trials] == [{"host": "node7"}, {"mesh": 12, "host": "node8"}]
    with Study(tmp_path / "a.db", readonly=True) as study:
        assert [trial.attrs for trial in study.trials] == [{"host": "node7"}, {"mesh": 12, "host": "node8"}]


@pytest.mark.parametrize("crew", [{}, {"workers": 2}], ids=str)
def test_a_constraint_that_comes_late_is_a_failed_trial(tmp_path: Path, crew: dict[str, Any]) -> None:
    def f(x: Any) -> Any:
        return float(x[0]), ({"a": -1.0} if x[1] <= 0.6 else {"a": -1.0, "b": 0.2})

    said = "there is no constraint 'b': the first trial that had any had ('a',)"
    with Study(tmp_path / "a.db", BOX, method="random") as study:
        study.enqueue([[0.5] * 6])
        study.optimize(f, 20, **crew)
        late = [t.failed for t in study.trials]
        assert late == [t.x[1] > 0.6 for t in study.trials]
        assert {t.message for t in study.trials if t.failed} == {said}
        with pytest.raises(InputError, match="no constraint 'b'"):
            study.import_points(_study_of(tmp_path, {"b": 1.0}))
        assert len(study.trials) == 20
    result = minimize(f, BOX, budget=20, method="random", x0=[0.5] * 6, **crew)
    assert [t.failed for t in result.trials] == late


def _study_of(folder: Path, constraints: dict[str, float]) -> Optimizer:
    opt = Optimizer(BOX, method="random")
    opt.tell(opt.ask()[0], 1.0, constraints=constraints)
    return opt


def test_the_first_trial_with_constraints_says_which_there_are() -> None:
    opt = Optimizer(BOX, method="random")
    one, two = opt.ask(2)
    opt.tell(one, 1.0, constraints={"a": 1.0})
    with pytest.raises(InputError, match="no constraint 'b'"):
        opt.tell(two, 1.0, constraints={"b": 1.0})
    with pytest.raises(InputError, match="name -> number"):
        opt.tell(two, 1.0, constraints=[1.0])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="standard deviation"):
        opt.tell(two, 1.0, noise=-1.0)
    opt.tell(two, 1.0, constraints={"a": -1.0}, noise=0.5)
    assert (opt.best, two.noise) == (two, 0.5)


@pytest.mark.parametrize("run", [minimize, maximize])
def test_a_function_may_return_constraints(run: Callable[..., Any]) -> None:
    result = run(measured, BOX, budget=40, method="random")
    assert result.success
    assert result.feasible
    assert result.best.feasible
    assert result.x[0] >= 0.5
    worst = run(lambda x: (x[0], {"never": 1.0 + x[1]}), BOX, budget=10, method="random")
    assert not worst.success
    assert not worst.feasible
    assert "none of them feasible: x violates never by" in worst.message
    assert worst.x[1] == min(t.x[1] for t in worst.trials)


def test_state_carries_details_and_goes_on_bit_for_bit() -> None:
    whole, first = (Optimizer(BOX, method="mcts-vs-bo", seed=3) for _ in range(2))

    def run(opt: Optimizer, n: int) -> None:
        for _ in range(n):
            (trial,) = opt.ask()
            trial.attrs["note"] = [trial.number]
            value, constraints = measured(trial.x)
            opt.tell(trial, value, constraints=constraints, noise=0.1)

    run(whole, 40)
    run(first, 20)
    second = Optimizer.restore(first.state())
    run(second, 20)
    assert picture(second) == picture(whole)
    assert second.best.number == whole.best.number


def test_engines_get_columns_of_them() -> None:
    opt = Optimizer(BOX, method="bo")
    opt.tell(opt.ask()[0], 2.0)
    opt.tell(opt.ask()[0], 1.0, constraints={"a": 1.0, "b": -1.0}, noise=0.25)
    opt.tell(opt.ask()[0], None, constraints={"a": 3.0})
    history = engine_of(opt).history
    assert np.array_equal(history.objective, [-2.0, -1.0, np.nan], equal_nan=True)
    assert np.array_equal(history.constraints, [[np.nan, np.nan], [1.0, -1.0], [3.0, np.nan]], equal_nan=True)
    assert np.array_equal(history.noise, [np.nan, 0.25, np.nan], equal_nan=True)
    assert np.isfinite(history.y).all()
    assert not history.failures


def test_plain_histories_have_no_further_columns() -> None:
    opt = Optimizer(BOX, method="bo")
    opt.tell(opt.ask()[0], 2.0)
    history = engine_of(opt).history
    assert (history.constraints.shape, history.noise.shape) == ((0, 0), (0,))
    assert set(history.state()) == {"X", "y", "proposal_ids", "failures"}
    assert "details" not in opt.state()


@pytest.mark.parametrize("workers", ["here", "processes", "threads"])
def test_a_study_keeps_them(tmp_path: Path, workers: str) -> None:
    with Study(tmp_path / "s.db", BOX, method="mcts-vs-bo", seed=1) as study:
        if workers == "threads":
            with ThreadPoolExecutor(2) as pool:
                study.optimize(measured, 30, executor=pool)
        else:
            study.optimize(measured, 30, workers=2 if workers == "processes" else None)
        before, best = picture(study), study.best.number
        assert study.best.feasible
    with Study(tmp_path / "s.db", readonly=True) as again:
        assert (picture(again), again.best.number) == (before, best)
    with Study(tmp_path / "s.db") as again:
        assert (picture(again), again.best.number) == (before, best)
        again.optimize(measured, 34)
        longer = picture(again)
    salvage(tmp_path / "s.db", tmp_path / "copy.db")  # without the method's state
    with Study(tmp_path / "copy.db") as copy:
        assert picture(copy) == longer


def test_resumed_runs_are_as_whole_ones(tmp_path: Path) -> None:
    with Study(tmp_path / "a.db", BOX, method="mcts-vs-bo", seed=1) as study:
        study.optimize(measured, 40)
        whole = picture(study)
    for budget in (17, 40):
        with Study(tmp_path / "b.db", BOX, method="mcts-vs-bo", seed=1) as study:
            study.optimize(measured, budget)
    with Study(tmp_path / "b.db", readonly=True) as study:
        assert picture(study) == whole


def test_values_kept_for_later_keep_their_details(tmp_path: Path) -> None:
    with Study(tmp_path / "s.db", BOX, method="random") as study:
        _one, two = study.ask(2)
        two.attrs["host"] = "b"
        study._session.keep(two, Evaluation(2.0, "early", 0.0, {"a": -1.0}))
    with Study(tmp_path / "s.db") as study:
        study.trials[1].attrs["place"] = "c"
        study.tell(0, 1.0, constraints={"a": 1.0})
        early = study._session.early[1]
        study.tell(study.trials[1], early.value, early.message)
        assert study.trials[1].constraints == {"a": -1.0}
        assert (study.trials[1].attrs, study.best.number) == ({"host": "b", "place": "c"}, 1)


@pytest.mark.parametrize("kind", ["csv", "parquet", "table", "study"])
def test_tables_carry_them(tmp_path: Path, kind: str) -> None:
    space = {"noise": (0.0, 1.0), "b": (0.0, 1.0)}
    with Study(tmp_path / "a.db", space, method="random") as study:
        for i, trial in enumerate(study.ask(5)):
            trial.attrs.update({"host": "a", "steps": [1, 2]} if i else {})
            constraints = {"c": 0.5 - i, "d": None, "e": (-math.inf, -1e300)[i % 2]} if i != 3 else None
            study.tell(trial, float(i), constraints=constraints, noise=0.1 if i == 4 else None)  # type: ignore[arg-type]
        source: Any = study
        if kind in ("csv", "parquet"):
            source = tmp_path / f"table.{kind}"
            study.export(source)
        elif kind == "table":
            source = study.to_dataframe()
            assert list(source.columns[-12:-6]) == [
                "constraint_c",
                "constraint_d",
                "constraint_e",
                "trial_noise",
                "attr_host",
                "attr_steps",
            ]
        with Study(tmp_path / "b.db", space, method="random") as other:
            other.import_points(source)
            assert repr([t.details for t in other.trials]) == repr([t.details for t in study.trials])
            assert other.best.number == study.best.number == 1


def test_the_best_of_equal_trials_is_the_first_asked_for(tmp_path: Path) -> None:
    """So a table, which has no order of telling, gives the same best trial."""
    with Study(tmp_path / "a.db", BOX, method="random") as study:
        study.ask(6)
        for number, measured, best in [(3, 2.0, 3), (1, 2.0, 1), (2, 3.0, 1), (5, 0.0, 5), (0, 2.0, 5), (4, -1.0, 4)]:
            study.tell(number, 1.0, constraints={"c": measured})
            assert study.best.number == best
        study.export(tmp_path / "table.csv")
        with Study(tmp_path / "b.db", BOX, method="random") as other:
            other.import_points(tmp_path / "table.csv")
            assert other.best.x.tolist() == study.best.x.tolist()


def test_a_failed_trial_that_names_constraints_keeps_its_place_in_a_state() -> None:
    opt = Optimizer(BOX, method="random")
    first, second, third = opt.ask(3)
    opt.tell(first, 1.0)
    opt.tell(second, None, constraints={"c": math.nan})
    opt.tell(third, 2.0)
    again = Optimizer.restore(opt.state())
    assert picture(again) == picture(opt)
    assert [t.unmeasured for t in again.trials] == [t.unmeasured for t in opt.trials] == [True, False, False]


def test_texts_and_zeros_are_the_same_with_and_without_a_file(tmp_path: Path) -> None:
    """A file holds neither half a character nor the sign of zero."""
    opt, source = Optimizer(BOX, method="random"), Optimizer(BOX, method="random")
    source.add([0.5] * 6, -0.0, "half \ud800")
    with Study(tmp_path / "a.db", BOX, method="random") as study:
        for run in (opt, study):
            run.tell(run.ask()[0], -0.0, "half \ud800")
        opt.add([0.5] * 6, -0.0, "half \ud800")
        study.import_points(source)
        assert picture(study) == picture(opt)
        assert [t.message for t in study.trials] == [t.message for t in opt.trials] == ["half ?"] * 2


@pytest.mark.parametrize("thinking", [0.0, math.inf])
def test_a_refused_ask_leaves_the_notes_of_those_that_wait(
    thinking: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "LEAST_THINKING", thinking)
    with Study(tmp_path / "a.db", {"a": Integer(0, 2)}, method="random") as study:
        trials = study.ask(3)
        trials[0].attrs["host"] = "a"
        with pytest.raises(InputError, match="nothing left to try"):
            study.ask()
        trials[1].attrs["host"] = "b"
        study.pending[2].attrs["host"] = "c"
        for number in range(3):
            study.tell(number, 1.0)
        assert [trial.attrs for trial in study.trials] == [{"host": "a"}, {"host": "b"}, {"host": "c"}]
