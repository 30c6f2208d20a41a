"""Studies: kept in a file, resumed bit for bit, refused where they are not what the caller means."""

from __future__ import annotations

import math
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mctsvs import Categorical, Float, InputError, Integer, Optimizer, Study, StudyError, Trial, minimize
from mctsvs.loop.evaluation import Evaluation
from mctsvs.methods.registry import METHODS
from mctsvs.study import codec, journal
from mctsvs.study import session as module
from mctsvs.utils.validation import Array

BOX = [(-3.0, 5.0)] * 12
MIXED: dict[str, Any] = {
    "rate": Float(1e-5, 1.0, log=True),
    "layers": Integer(1, 9),
    "value": Float(-1.0, 1.0),  # also the name of a column
    "kind": Categorical(("relu", "tanh", None)),
}


def objective(x: Array) -> float:
    return float((x[1] - 1.0) ** 2 + 2.0 * np.sin(x[3]))


def picture(trials: list[Trial]) -> list[tuple[Any, ...]]:
    """All there is to say about trials, to be compared bit for bit."""
    return [
        (t.number, t.unit.tobytes(), t.variables.tolist(), repr(t.value), t.iteration, t.source, t.message)
        for t in trials
    ]


def drop(study: Study) -> None:
    """What a killed process leaves: nothing is saved or tidied."""
    session = study._session
    session.journal.connection.close()
    assert session.lock is not None
    session.lock.release()
    session._ended = "killed"


# the method's state is stored after every ask; never, so that all is repeated; and as by default
CASES = [(method, 0.0) for method in METHODS if "saasbo" not in method]
CASES += [(method, math.inf) for method in ("mcts-vs-bo", "mcts-vs-turbo", "cma-es", "baxus", "random")]
CASES += [("mcts-vs-bo", module.LEAST_THINKING), ("mcts-vs-rs", module.LEAST_THINKING)]
ROUNDS = {"optuna-gp": 4, "vae-bo": 8, "alebo": 8, "optuna-tpe": 8}


@pytest.mark.parametrize(("method", "thinking"), CASES)
def test_resumes_bit_for_bit(method: str, thinking: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAST_THINKING", thinking)
    opt = Optimizer(BOX, method=method, seed=5)
    path = tmp_path / "study.db"
    study = Study(path, BOX, method=method, seed=5)
    rng = np.random.default_rng(0)
    for i in range(ROUNDS.get(method, 13)):
        trials, theirs = opt.ask(1 + i % 3), study.ask(1 + i % 3)
        if i % 4 == 1:
            drop(study)
            study = Study(path)
            assert [t.number for t in study.pending] == [t.number for t in opt.pending]
        for k in rng.permutation(len(trials)):
            value = None if i % 7 == 3 else objective(trials[k].x)
            opt.tell(trials[k], value, "as told")
            study.tell(theirs[k].number, value, "as told")
        if i % 4 == 2:
            drop(study)
            study = Study(path, BOX, method=method, seed=5)
        assert picture(study.trials) == picture(opt.trials)
    assert study.best.number == opt.best.number
    assert study.variables() == opt.variables()
    study.close()
    with Study(path, readonly=True) as reader:
        assert picture(reader.trials) == picture(opt.trials)
        assert reader.best.number == opt.best.number
        assert reader.optimizer.best.number == opt.best.number
        assert str(reader.tree) == str(opt.tree)


@pytest.mark.parametrize("thinking", [0.0, math.inf])
def test_the_default_method_resumes_in_all_its_phases(
    thinking: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the design to the found variables, with questions open, failures, and points from elsewhere."""
    monkeypatch.setattr(module, "LEAST_THINKING", thinking)
    opt, path = Optimizer([(0.0, 1.0)] * 40, seed=5), tmp_path / "study.db"
    study = Study(path, [(0.0, 1.0)] * 40, seed=5)
    phases: set[str] = set()
    rng = np.random.default_rng(0)
    for i in range(60):
        opt.ask(2)
        study.ask(2)
        if i % 11 == 7:
            point = np.array(opt.best.unit)
            point[rng.integers(40, size=3)] = rng.random()
            opt.enqueue([point])
            study.enqueue([point])
        if i % 6 == 5:
            drop(study)
            study = Study(path)
        for number in rng.permutation([t.number for t in opt.pending])[: 3 if i % 2 else 1]:
            x = opt.trials[number].x
            value = None if i % 13 == 6 else float((x[3] - 0.2) ** 2 + (x[17] - 0.6) ** 2)
            opt.tell(int(number), value)
            study.tell(int(number), value)
        phases.add(opt.state()["engine"]["phase"]["name"])
        assert picture(study.trials) == picture(opt.trials)
    assert {"Design", "ActiveCountTest", "Screening", "OptimiseSubspace"} <= phases
    drop(study)
    study = Study(path)
    assert picture(study.ask(3)) == picture(opt.ask(3))
    assert study.variables() == opt.variables()
    study.close()


STEPS = ["ask", "ask three", "tell first", "tell last", "fail", "enqueue", "import", "close", "crash"]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(STEPS), max_size=40), st.sampled_from([0.0, 1.0, math.inf]))
def test_any_course_of_events_is_the_same_with_and_without_a_file(steps: list[str], thinking: float) -> None:
    opt = Optimizer(MIXED, method="mcts-vs-rs", seed=1)
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "LEAST_THINKING", thinking)
        path = Path(folder) / "s.db"
        study = Study(path, MIXED, method="mcts-vs-rs", seed=1)
        for step in steps:
            waiting = opt.pending
            point = opt.space.params(rng.random(opt.space.n_coordinates))
            if step.startswith("ask"):
                n = 3 if step == "ask three" else 1
                opt.ask(n)
                study.ask(n)
            elif step == "enqueue":
                opt.enqueue([point])
                study.enqueue([point])
            elif step == "import":
                with Study(Path(folder) / f"{len(opt.trials)}-{rng.integers(10**9)}.db", MIXED) as other:
                    other.enqueue([point])
                    other.tell(other.ask()[0], 2.5)
                    opt.add(other.trials[0].params, 2.5)
                    study.import_points(other)
            elif step in ("close", "crash"):
                (Study.close if step == "close" else drop)(study)
                study = Study(path)
            elif waiting:
                number = waiting[0 if step == "tell first" else -1].number
                value = None if step == "fail" else float(rng.normal())
                opt.tell(number, value, step)
                study.tell(number, value, step)
            assert picture(study.trials) == picture(opt.trials)
            assert [t.number for t in study.pending] == [t.number for t in opt.pending]
        assert picture(study.ask(4)) == picture(opt.ask(4))
        study.close()


def test_mixed_variables_keep_names_and_kinds(tmp_path: Path) -> None:
    with Study(tmp_path / "s.db", MIXED, direction="maximize", seed=1) as study:
        best = study.optimize(lambda p: p["layers"] - abs(p["value"]) + (p["kind"] is None), 30)
        params = [t.params for t in study.trials]
        assert best.value == max(t.value for t in study.trials if t.value is not None)
    with Study(tmp_path / "s.db", MIXED) as study:
        assert [t.params for t in study.trials] == params
        assert {type(p["layers"]) for p in params} == {int}
        assert (study.direction, study.seed, len(study.space)) == ("maximize", 1, 4)
        assert "30 evaluations of 4 variables" in repr(study)


@pytest.mark.parametrize(
    ("space", "options", "words"),
    [
        (BOX, {"direction": "maximize"}, "direction is 'minimize', not 'maximize'"),
        (BOX, {"method": "bo"}, "method is 'mcts-vs-rs', not 'bo'"),
        (BOX, {"seed": 4}, "seed is 3, not 4"),
        (BOX, {"k": 5}, "option k is 7, not 5"),
        (BOX, {"samples": 5}, "option samples has its default value, not 5"),
        (BOX[:-1], {}, "the number of variables is 12, not 11"),
        ([*BOX[:-1], (0.0, 1.0)], {}, "the variable x11 is Float(low=-3.0, high=5.0"),
        ({f"x{i}": (-3.0, 5.0) for i in range(12)}, {}, "the variables have no names"),
    ],
)
def test_another_study_is_refused_with_the_difference(
    space: Any, options: dict[str, Any], words: str, tmp_path: Path
) -> None:
    path = tmp_path / "s.db"
    with Study(path, BOX, method="mcts-vs-rs", seed=3, options={"k": 7}) as study:
        study.ask()
    with pytest.raises(StudyError) as caught:
        Study(path, space, **options)
    assert f"was created with different settings: {words}" in str(caught.value)
    assert "\n" not in str(caught.value)
    with Study(
        path, BOX, seed=None, options={"k": 7}
    ) as study:  # what is not given is as stored, and so is a drawn seed
        assert (study.method, study.seed, len(study.pending)) == ("mcts-vs-rs", 3, 1)


def test_a_study_of_other_names_is_refused_with_the_first_of_them(tmp_path: Path) -> None:
    with Study(tmp_path / "s.db", {"a": (0, 1), "b": (0, 1)}) as study:
        study.ask()
    with pytest.raises(StudyError, match="the variable 'b' has another name, 'c'"):
        Study(tmp_path / "s.db", {"a": (0, 1), "c": (0, 1)})


def test_points_of_another_study_fit_by_their_names(tmp_path: Path) -> None:
    with Study(tmp_path / "s.db", {"a": (0, 1), "b": (0, 2)}, method="random") as study:
        study.optimize(lambda p: p["a"], 5)
        with Study(tmp_path / "t.db", {"b": (0, 3), "a": (0, 1)}) as other:
            assert other.import_points(study) == 5
            assert [t.params for t in other.trials] == [pytest.approx(t.params) for t in study.trials]


def test_a_second_writer_is_refused_and_readers_are_not(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with Study(path, BOX, seed=0) as study:
        (trial,) = study.ask()
        study.tell(trial, 1.5)
        code = (
            "import sys; from mctsvs import Study, StudyError\n"
            "print(Study(sys.argv[1], readonly=True).best.value)\n"
            "try: Study(sys.argv[1])\n"
            "except StudyError as error: print(error)"
        )
        said = subprocess.run(
            [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
        ).stdout
        assert said.startswith("1.5\n")
        assert f"process {os.getpid()} on " in said
        with Study(path, readonly=True) as reader:
            study.ask(2)
            assert len(reader.trials) == 1, "a reader sees the study as it was when opened"
            with pytest.raises(StudyError, match="readonly"):
                reader.ask()
    assert [file.name for file in tmp_path.iterdir()] == ["s.db"], "something was left behind"
    with pytest.raises(StudyError, match="closed"):
        study.ask()
    Study(path).close()
    forgotten: Study | None = Study(path)
    assert forgotten is not None
    forgotten = None
    Study(path).close()


def test_a_killed_writer_leaves_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    code = (
        "import os, sys; from mctsvs import Study\n"
        "study = Study(sys.argv[1], [(0, 1)] * 5, method='mcts-vs-rs'); study.ask()\n"
        "if os.fork() == 0:\n    import time; time.sleep(5); os._exit(0)\n"  # an orphan must not hold the lock
        "os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code, str(path)], stdout=subprocess.DEVNULL)
    with Study(path) as study:
        assert len(study.pending) == 1


def test_a_child_process_cannot_write_to_its_parents_study(tmp_path: Path) -> None:
    with Study(tmp_path / "s.db", BOX, method="mcts-vs-rs") as study:
        study.ask()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # about threads that libraries have started
            process = os.fork()
        if process == 0:
            try:
                study.ask()
            except StudyError:
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 7
        study.ask()


def test_enqueued_points_come_first_and_are_not_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    wanted = [np.full(12, v) for v in (0.0, 1.0, 2.0)]
    with Study(path, BOX, seed=0) as study:
        study.ask()
        study.enqueue(wanted)
        trials = study.ask(2)
        assert [t.source for t in trials] == ["enqueued"] * 2
        assert all(np.allclose(t.x, x) for t, x in zip(trials, wanted, strict=False))
        with pytest.raises(InputError, match="x0"):
            study.enqueue([np.full(12, 99.0)])
        drop(study)
    with Study(path) as study:
        third, fourth = study.ask(2)
        assert np.allclose(third.x, 2.0)
        assert (third.source, fourth.source) == ("enqueued", "proposed")
        study.optimize(objective, 20)
        assert study.evaluated == 20
        assert study.pending == []
    with Study(tmp_path / "named.db", MIXED) as study:
        study.enqueue([{"rate": 0.5, "layers": 3, "value": 0.25, "kind": "tanh"}])
        assert study.ask()[0].params["kind"] == "tanh"
        with pytest.raises(InputError, match="'kind'"):
            study.enqueue([{"rate": 0.5, "layers": 3, "value": 0.25, "kind": "swish"}])


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_points_go_out_and_come_in_as_a_warm_start(ending: str, tmp_path: Path) -> None:
    if ending == "parquet" and "CI" not in os.environ:
        pytest.importorskip("pyarrow")
    file = tmp_path / f"points.{ending}"

    def f(p: dict[str, Any]) -> float | None:
        return None if p["layers"] == 1 else (math.log10(p["rate"]) + 2) ** 2 + p["layers"] + (p["kind"] == "relu")

    with Study(tmp_path / "a.db", MIXED, seed=0) as first:
        first.optimize(f, 30)
        first.export(file)
        told = [(t.params, t.value) for t in first.trials]
    path = tmp_path / "b.db"
    with Study(path, MIXED, seed=1) as study:
        assert study.import_points(file) == 30
        assert study.evaluated == 0
        assert study.best.value == min(v for _, v in told if v is not None and not math.isnan(v))
        for (params, value), trial in zip(told, study.trials, strict=True):
            assert trial.params["rate"] == pytest.approx(params["rate"], rel=1e-12)
            assert {**trial.params, "rate": 0, "value": 0} == {**params, "rate": 0, "value": 0}
            assert repr(trial.value) == repr(value)
            assert trial.source == "imported"
        before = picture(study.trials)
        (asked,) = study.ask()
        assert asked.iteration > 0, "the initial design is not needed when so much is known"
        drop(study)
    with Study(path) as study:
        assert picture(study.trials)[:30] == before
        best = study.optimize(f, 10)
        assert (study.evaluated, len(study.trials)) == (10, 40)
        assert best.value is not None
        assert best.value <= study.trials[0].value or math.isnan(study.trials[0].value or 0.0)  # type: ignore[operator]
        with Study(tmp_path / "c.db", MIXED) as third:
            assert third.import_points(study) == 40


def test_importing_from_optuna(tmp_path: Path) -> None:
    if "CI" not in os.environ:
        pytest.importorskip("optuna")
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def f(trial: Any) -> float:
        if trial.number == 4:
            raise ZeroDivisionError
        x, n = trial.suggest_float("x", 0, 1), trial.suggest_int("n", 1, 5)
        if trial.number == 6:
            raise ZeroDivisionError
        return float(x + n)

    theirs = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    theirs.optimize(f, n_trials=10, catch=ZeroDivisionError)
    space = {"x": Float(0, 1), "n": Integer(1, 5)}
    with Study(tmp_path / "s.db", space) as study:
        assert study.import_points(theirs) == 9  # one of the two that failed had no point
        assert study.best.value == theirs.best_value
        assert [t.message for t in study.trials] == [""] * 5 + ["failed in Optuna trial 6"] + [""] * 3
        assert [t.failed for t in study.trials] == [False] * 5 + [True] + [False] * 3
    with Study(tmp_path / "t.db", space, direction="maximize") as study, pytest.raises(InputError, match="minimize"):
        study.import_points(theirs)
    with (
        Study(tmp_path / "u.db", {**space, "y": Float(0, 1)}) as study,
        pytest.raises(InputError, match="parameter 'y'"),
    ):
        study.import_points(theirs)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n", "has no column 'value'"),
        ("value,x0\n1,2\n", "has no column 'x1'"),
        ("value,x0,x1\n1,0.5,7\n", "row 1 of the file"),
        ("value,x0,x1\n1,0.5,\n", "row 1 of the file"),
        ("value,x0,x1\nabc,0.5,0.5\n", "'abc' is not a number"),
        ("value,x0,x1\n", "nothing to import"),
        ("", "nothing to import"),
    ],
)
def test_a_bad_table_is_one_sentence_and_changes_nothing(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "points.csv"
    file.write_text(text)
    with Study(tmp_path / "s.db", [(0.0, 1.0)] * 2) as study:
        with pytest.raises(InputError) as caught:
            study.import_points(file)
        assert words in str(caught.value)
        assert study.trials == []
        for source, said in (
            ("nothing.csv", "No such file"),
            ("points.txt", ".csv or .parquet"),
            (7, "cannot import 7"),
        ):
            with pytest.raises(InputError, match=said):
                study.import_points(tmp_path / source if isinstance(source, str) else source)


def test_dataframe(tmp_path: Path) -> None:
    if "CI" not in os.environ:
        pytest.importorskip("pandas")
    with Study(tmp_path / "s.db", MIXED, method="mcts-vs-rs") as study:
        study.optimize(lambda p: None if p["layers"] > 7 else p["rate"], 20)
        study.ask()
        table = study.to_dataframe()
        names = ["number", "value", "source", "iteration", "message", "rate", "layers", "params_value", "kind"]
        times = ["phase", "asked", "told", "seconds", "thinking", "worker"]
        assert table.columns.tolist() == names + times
        assert table["phase"][0] == "first points"
        assert table["worker"][:20].str.contains(f"process {os.getpid()}").all()
        assert (table["told"][:20] >= table["asked"][:20]).all()
        assert (table["thinking"] > 0).all()
        assert table["told"].isna().tolist() == [False] * 20 + [True]
        assert table["layers"].tolist() == [t.params["layers"] for t in study.trials]
        assert table["value"].isna().sum() == sum(t.failed for t in study.trials) + 1
        with Study(tmp_path / "t.db", MIXED) as other:
            assert other.import_points(table[:20]) == 20


def test_an_error_between_the_method_and_the_journal_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = Optimizer(BOX, seed=2)
    with Study(tmp_path / "s.db", BOX, seed=2) as study:
        for i in range(30):
            if i % 5 == 0:  # Ctrl-C when the method has decided and nothing is stored
                with monkeypatch.context() as patch:
                    patch.setattr(study._session.journal, "append", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
                    with pytest.raises(KeyboardInterrupt):
                        study.ask(2)
            (trial,), (other,) = study.ask(), expected.ask()
            assert np.array_equal(trial.unit, other.unit)
            study.tell(trial, objective(trial.x))
            expected.tell(other, objective(trial.x))


@pytest.mark.parametrize("at", ["append", "note"])
def test_an_interrupt_at_any_moment_leaves_the_journal_right(
    at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C when all is stored, but this process has not taken note of it yet."""
    with Study(tmp_path / "s.db", BOX, method="random") as study:
        first, second, third = study.ask(3)
        changes: list[Any] = [
            lambda: study._session.keep(first, Evaluation(1.0, "", 0.0)),
            lambda: study._session.record_death(second, ""),
            lambda: study.tell(third, 2.0),
            lambda: study.plan(50),
            study.ask,
        ]
        for change in changes:
            assert study.optimizer is not None
            with monkeypatch.context() as patch:
                part: Any = study._session.journal if at == "append" else study._session.contents
                inner = getattr(part, at)

                def interrupted(*arguments: Any, inner: Any = inner) -> None:
                    inner(*arguments)
                    raise KeyboardInterrupt

                patch.setattr(part, at, interrupted)
                with pytest.raises(KeyboardInterrupt):
                    change()
        assert study.trials[2].value == 2.0
        assert study._session.early == {0: Evaluation(1.0, "", 0.0)}
        assert dict(study._session.deaths) == {1: 1}
        assert (len(study.trials), study.optimizer.budget) == (4, 50)
        study.ask()
    with Study(tmp_path / "s.db") as study:
        assert len(study.trials) == 5


def test_a_state_of_another_version_is_computed_again(tmp_path: Path) -> None:
    opt = Optimizer(BOX, seed=4)
    with Study(tmp_path / "s.db", BOX, seed=4) as study:
        study.optimize(objective, 20)
        study._session.journal.append([], codec.pack({"format": "of the future"}))
    with Study(tmp_path / "s.db") as study:
        study.optimize(objective, 25)
        for budget in [20] * 20 + [25] * 5:
            opt.plan(budget)
            (trial,) = opt.ask()
            opt.tell(trial, objective(trial.x))
        assert picture(study.trials) == picture(opt.trials)


def test_messages_of_any_kind(tmp_path: Path) -> None:
    with Study(tmp_path / "s.db", BOX, method="random") as study:
        for message in ("two\nlines", "no \udcff character", ValueError("wrong"), "\x00"):
            study.tell(study.ask()[0], None, message)  # type: ignore[arg-type]
        said = [t.message for t in study.trials]
    with Study(tmp_path / "s.db", readonly=True) as study:
        assert [t.message for t in study.trials] == said == ["two\nlines", "no ? character", "wrong", "\x00"]
    with pytest.raises(StudyError, match="is closed"):
        _ = study.user_attrs


def test_a_strangers_file_is_data(tmp_path: Path) -> None:
    """What it says may be nonsense or worse: a sentence, and nothing is run."""
    space = Optimizer(BOX).space.to_state()
    plain = {"space": space, "direction": "minimize", "method": "random", "options": {}, "seed": 0}
    changes: list[dict[str, Any]] = [
        {"options": {"space": 1}},
        {"options": [1]},
        {"method": "os:system"},
        {"seed": "0; import os"},
        {"direction": None},
        {"space": {"variables": [["eval", "1"]]}},
        {"space": 3},
    ]
    for i, change in enumerate(changes):
        path = tmp_path / f"{i}.db"
        journal.Journal.create(path, {"identity": {**plain, **change}})
        with pytest.raises(InputError) as caught:
            Study(path)
        assert "\n" not in str(caught.value)


def test_user_attrs(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with Study(path, BOX) as study:
        study.set_user_attr("machine", {"cores": 2, "weights": np.arange(3)})
        with pytest.raises(InputError, match="cannot be stored"):
            study.set_user_attr("code", print)
        with pytest.raises(InputError, match="identity"):
            study.set_user_attr("identity", {})
    with Study(path) as study:
        assert study.user_attrs["machine"]["cores"] == 2
        assert study.user_attrs["machine"]["weights"].tolist() == [0, 1, 2]


def test_a_study_may_be_used_from_another_thread(tmp_path: Path) -> None:
    with Study(tmp_path / "s.db", BOX, method="mcts-vs-rs") as study:
        thread = threading.Thread(target=study.optimize, args=(objective, 20))
        thread.start()
        thread.join()
        assert study.evaluated == 20


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda path: Study(path), "there is no study"),
        (lambda path: Study(path, readonly=True), "there is no such file"),
        (lambda path: Study(path / "sub" / "s.db", BOX), "does not exist"),
        (lambda path: Study(path.parent, BOX), "it is a folder"),
        (lambda path: Study(path, BOX, direction="up"), "'up'"),
        (lambda path: Study(path, [(5, 2)]), "(5"),
        (lambda path: Study(path, BOX, method="magic"), "'magic'"),
        (lambda path: Study(path, BOX, method="mcts-vs-bo", options={"samples": 0}), "samples=0"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_no_file(call: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        call(tmp_path / "s.db")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_another_machines_arithmetic_is_noticed_and_the_journal_is_right(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    study = Study(path, BOX, method="mcts-vs-rs", seed=0)
    module.LEAST_THINKING, before = math.inf, module.LEAST_THINKING
    try:
        study._session._price = 1.0  # no state is stored
        for _ in range(5):
            study.tell(study.ask()[0], 1.0)
    finally:
        module.LEAST_THINKING = before
    expected = picture(study.trials)
    drop(study)
    from mctsvs.space import Space

    original, Space.snap = Space.snap, lambda self, u: np.nextafter(original(self, u), 0.5)  # type: ignore[method-assign]
    try:
        with pytest.warns(RuntimeWarning, match="this machine or version of mctsvs computes other points"):
            study = Study(path)
    finally:
        Space.snap = original  # type: ignore[method-assign]
    assert picture(study.trials) == expected
    study.close()


def test_the_file_says_what_it_is(tmp_path: Path) -> None:
    """Anybody can look into it with SQLite alone."""
    with Study(tmp_path / "s.db", BOX, seed=0) as study:
        study.optimize(objective, 5)
    connection = sqlite3.connect(tmp_path / "s.db")
    values = connection.execute("SELECT number, value FROM journal WHERE kind = 'tell' ORDER BY seq").fetchall()
    point = connection.execute("SELECT point FROM journal WHERE kind = 'ask' AND number = 3").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    connection.close()
    assert values == [(t.number, t.value) for t in study.trials]
    assert np.array_equal(np.frombuffer(point, "<f8"), study.trials[3].unit)
    assert version == journal.FORMAT == 1


DEAR = ("saasbo", "mcts-vs-saasbo", "optuna-gp", "vae-bo", "alebo")  # each takes long to think of a point


@pytest.mark.parametrize("method", METHODS)
def test_a_study_takes_the_points_that_minimize_takes(method: str, tmp_path: Path) -> None:
    """Also where it is stopped and resumed; a larger budget later is fine."""
    budget = 12 if method in DEAR else 24
    expected: list[Any] = []
    minimize(lambda x: expected.append(x) or objective(x), BOX, budget=budget, method=method, seed=3)  # type: ignore[func-returns-value]
    path = tmp_path / "s.db"
    with Study(path, BOX, method=method, seed=3) as study:
        study.optimize(objective, budget, callback=lambda study, trial: trial.number == 9)
        assert study.evaluated == 10
    with Study(path) as study:
        study.optimize(objective, budget)
        assert [t.x.tobytes() for t in study.trials] == [x.tobytes() for x in expected]
        assert study.optimizer.budget == budget
        study.optimize(objective, 10)
        assert study.optimizer.budget == budget, "nothing was to be done"
        study.optimize(objective, budget + 2)
        assert (study.evaluated, study.optimizer.budget) == (budget + 2, budget + 2)
        plans = [event.number for event in study._session.journal.events() if event.kind == "plan"]
        assert plans == [budget, budget + 2]
