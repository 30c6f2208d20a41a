"""Random histories: a study, an optimizer, a restored optimizer and a table tell the same of each, after every step.

A state machine asks, tells in any order, fails, imports, restarts and crashes. The variable `HISTORIES` of the
environment sets how many histories there are.
"""

from __future__ import annotations

import copy
import importlib.util
import itertools
import math
import os
import pickle
import tempfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from mctsvs import Boolean, Categorical, Fixed, Float, InputError, Integer, Optimizer, Ordinal, Study, Trial
from mctsvs.optimizer.active_variables import VariableStatuses
from mctsvs.space import Variable
from mctsvs.space.deduplicate import SpaceExhausted
from mctsvs.study import session
from mctsvs.testing import through_plain_data

MAX_EXAMPLES = int(os.environ.get("HISTORIES", "100"))
STEPS = 16  # of a history, at most
AHEAD = 2  # points that are compared before anybody asks for them

ALIKE = [1, "1", None, "", "None", (1, 2), 0.5]
BLOCKS: list[dict[str, Variable]] = [
    {"real": Float(-1.0, 2.0)},
    {"rate": Float(1e-5, 1.0, log=True)},
    {"step": Float(0.0, 1.0, step=0.25, default=0.5)},
    {"value": Integer(-2, 5)},
    {"noise": Integer(1, 4096, log=True)},
    {"size": Ordinal([16, 32, 64])},
    {"yes": Boolean()},
    {"fixed": Fixed("a")},
    {
        "kind": Categorical(ALIKE),
        "depth": Integer(1, 4, when={"kind": [1, None, (1, 2)]}),
        "slope": Float(0.1, 10.0, log=True, when={"depth": range(2, 5)}),
    },
    {name: Integer(0, 3) for name in ("first", "second", "third")},
]


def all_different(params: Mapping[str, Any]) -> bool:
    return len({params[name] for name in ("first", "second", "third")}) == 3


def no_deep_text(params: Mapping[str, Any]) -> bool:
    return bool(params["kind"] != "1" and params.get("depth", 0) <= 3)


def sum_is_four(params: Mapping[str, Any]) -> bool:
    return bool(params["first"] + params["second"] + params["third"] == 4)


def is_small(params: Mapping[str, Any]) -> bool:
    return bool(params["real"] <= 1.5)


def sum_is_limited(params: Mapping[str, Any]) -> bool:
    return bool(params["step"] + params["value"] / 5 <= 1.2 + 1e-9)


@dataclass(frozen=True)
class Limit:
    """A known constraint as it is given, and a function of the point that says whether it holds."""

    names: tuple[str, ...]
    given: Any
    holds: Callable[[Mapping[str, Any]], bool]


LIMITS = [
    Limit(("first",), all_different, all_different),
    Limit(("first",), "first + second + third == 4", sum_is_four),
    Limit(("kind",), no_deep_text, no_deep_text),
    Limit(("real",), "real <= 1.5", is_small),
    Limit(("step", "value"), "step + value/5 <= 1.2", sum_is_limited),
]


@dataclass(frozen=True)
class Setup:
    """What a run is created with."""

    space: dict[str, Variable]
    limits: tuple[Limit, ...]
    direction: str
    method: str
    seed: int
    noise: float | None
    thinking: float  # the method's state is stored after every ask (0), never (infinite), or now and then
    ending: str  # of the table
    measured: bool  # whether constraints are measured

    @property
    def constraints(self) -> Any:
        return [limit.given for limit in self.limits] or None

    @property
    def more(self) -> dict[str, Any]:
        return {"direction": self.direction, "method": self.method, "noise": self.noise, "seed": self.seed}

    def optimizer(self, **other: Any) -> Optimizer:
        return Optimizer(self.space, constraints=self.constraints or (), **{**self.more, **other})

    def study(self, path: Path, **other: Any) -> Study:
        return Study(path, self.space, constraints=self.constraints, **{**self.more, **other})


@st.composite
def setups(draw: st.DrawFn) -> Setup:
    """Blocks of variables in any order; at least one of them is searched."""
    blocks = draw(st.lists(st.sampled_from(BLOCKS), min_size=1, max_size=4, unique_by=lambda block: next(iter(block))))
    space = {name: variable for block in blocks for name, variable in block.items()}
    if set(space) == {"fixed"}:
        space |= BLOCKS[0]
    fitting = [limit for limit in LIMITS if set(limit.names) <= set(space)]
    limits = draw(st.lists(st.sampled_from(fitting), max_size=2, unique=True)) if fitting else []
    endings = ["csv", "csv", "study", *(["parquet"] if importlib.util.find_spec("pyarrow") else [])]
    return Setup(
        {name: space[name] for name in draw(st.permutations(list(space)))},
        tuple(limits),
        draw(st.sampled_from(["minimize", "maximize"])),
        draw(st.sampled_from(["random", "random", "random", "random", "mcts-vs-rs", "auto"])),
        draw(st.integers(0, 999)),
        draw(st.sampled_from([None, 0.0, 0.3])),
        draw(st.sampled_from([0.0, 1.0, math.inf])),
        draw(st.sampled_from(endings)),
        draw(st.booleans()),
    )


@dataclass(frozen=True)
class Answer:
    """What is told of a trial; "function" stands for a value that depends on one variable alone."""

    value: Any
    message: str = ""
    constraints: dict[str, Any] | None = None
    noise: float | None = None

    def at(self, params: Mapping[str, Any]) -> Answer:
        if self.value != "function":
            return self
        name = min(params)
        return replace(self, value=float(zlib.crc32(repr(params[name]).encode()) % 4))

    @property
    def more(self) -> dict[str, Any]:
        return {"constraints": self.constraints, "noise": self.noise}

    @property
    def number(self) -> float:
        """NaN if it failed."""
        known = self.value is not None and math.isfinite(self.value)
        return self.value if known else math.nan


VALUES = st.sampled_from(["function", "function", "function", 0.0, -0.0, 1.0, -1e12, None, math.nan, math.inf])
MEASURED = st.sampled_from([-1.0, -1.0, -0.25, 0.0, -0.0, 0.5, 3.0, math.nan, None, math.inf, -math.inf])
ROWS = st.none() | st.just({"c": math.nan}) | st.dictionaries(st.sampled_from(["c", "d"]), MEASURED, max_size=2)
MESSAGES = st.sampled_from(["", "", "no mesh", "=1+1", '"', "a,b\n", "nan", "é \ud800"])
NOISES = st.sampled_from([None, None, None, 0.0, -0.0, 0.25])
ANSWERS = st.builds(Answer, VALUES | st.floats(-10.0, 10.0), MESSAGES, ROWS, NOISES)
NOTES = {"batch": True}
ATTRS = st.dictionaries(st.sampled_from(["mesh", "=a", ""]), st.sampled_from([1, "1", None, [0.5, {}]]), max_size=2)


def content(trial: Trial) -> tuple[Any, ...]:
    """What a table keeps of a trial; a choice is compared with its type."""
    known = {name: c for name, c in (trial.constraints or {}).items() if not math.isnan(c)}
    told = repr(trial.value), trial.message, sorted(known.items()), repr(trial.noise), repr(sorted(trial.attrs.items()))
    return repr(trial.params), trial.x.tobytes(), *told, trial.failed, trial.feasible


def picture(trials: Sequence[Trial]) -> list[tuple[Any, ...]]:
    """All there is to say about trials, to be compared bit for bit."""
    return [
        (
            *(trial.number, trial.source, trial.iteration, trial.proposal_id, trial.unmeasured),
            *(trial.unit.tobytes(), trial.variables.tolist(), repr(trial.constraints)),
            *(content(trial) if trial.value is not None else ()),
        )
        for trial in trials
    ]


def check_same(one: Sequence[Any], other: Sequence[Any], what: str = "") -> None:
    """The first difference is easier to read than two lists."""
    for i, (left, right) in enumerate(itertools.zip_longest(one, other)):
        assert left == right, f"{what}, row {i}"


def best_of(view: Optimizer | Study) -> int | None:
    return view.best.number if view.has_best else None


def statuses(rows: VariableStatuses, place: Mapping[int, int] | None = None) -> list[Any]:
    """The rows and their sentence; `place` gives the trials of the evidence other numbers."""
    if place is not None:
        rows = VariableStatuses([replace(r, evidence=tuple(place[n] for n in r.evidence)) for r in rows], rows.summary)
    return [rows.summary, *map(repr, rows)]


def next_points(opt: Optimizer) -> list[Any]:
    try:
        return [(trial.unit.tobytes(), trial.source, trial.variables.tolist()) for trial in opt.ask(AHEAD)]
    except SpaceExhausted as error:
        return [type(error)]


def crash(study: Study) -> None:
    """What a killed process leaves: nothing is saved or tidied."""
    study._session.journal.connection.close()
    assert study._session.lock is not None
    study._session.lock.release()
    study._session._ended = "killed"


class RandomHistories(RuleBasedStateMachine):
    """One history in four views: a study, an optimizer, a restored optimizer, and a table that a new study imports."""

    @initialize(setup=setups())
    def create(self, setup: Setup) -> None:
        self.setup, self.files = setup, 0
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(session, "LEAST_THINKING", setup.thinking)
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "study.db"
        self.study = setup.study(self.path)
        self.opt = setup.optimizer()
        self.restored = setup.optimizer()
        self.told: dict[int, Answer] = {}  # in the order of telling
        self.names: tuple[str, ...] = ()  # of the measured constraints
        self.tabled = 0  # trials that were told when the table was compared

    def teardown(self) -> None:
        if hasattr(self, "patch"):
            self.study.close()
            self.folder.cleanup()
            self.patch.undo()

    def each(self, call: Callable[[Any], Any]) -> list[Any]:
        """The results in the three views that live on; they agree whether it is refused."""
        results: list[Any] = []
        for view in (self.opt, self.restored, self.study):
            try:
                results.append(call(view))
            except InputError as error:
                results.append(str(error))
        assert len({item if isinstance(item, str) else "" for item in results}) == 1, results
        return results

    # what happens

    @rule(n=st.integers(1, 3))
    def ask(self, n: int) -> None:
        first = len(self.opt.trials)
        results = self.each(lambda view: view.ask(n))
        if isinstance(results[0], str):
            return
        for result in results:
            check_same(picture(result), picture(results[0]), "asked for")
        for trial in self.opt.trials[first:]:
            self.check_point(trial)

    def check_point(self, trial: Trial) -> None:
        """It is inside of the space, by what the words of the space mean."""
        params, there = trial.params, set()
        for name, variable in self.setup.space.items():
            if name == "slope":
                exists = params.get("depth", 0) >= 2
            else:
                exists = name != "depth" or params["kind"] in (1, None, (1, 2))
            assert (name in params) == exists
            if exists:
                there.add(name)
                assert variable.fits(params[name])
                assert variable.labels is None or any(params[name] is label for label in variable.labels)
        assert set(params) == there
        assert 0.0 <= trial.unit.min() <= trial.unit.max() <= 1.0
        for limit in self.setup.limits:
            assert limit.holds(params), f"{trial} violates {limit.given}"

    @precondition(lambda self: self.opt.pending)
    @rule(place=st.integers(0, 9), answer=ANSWERS, attrs=ATTRS, by_number=st.booleans())
    def tell(self, place: int, answer: Answer, attrs: dict[str, Any], by_number: bool) -> None:
        self.tell_one(self.opt.pending[place % len(self.opt.pending)], answer, attrs, by_number)

    def tell_one(
        self, waiting: Trial, answer: Answer, attrs: Mapping[str, Any] = NOTES, by_number: bool = True
    ) -> None:
        answer = self.fitting(answer.at(waiting.params))

        def call(view: Any) -> None:
            trial = next(trial for trial in view.pending if trial.number == waiting.number)
            trial.attrs.update(attrs)
            view.tell(trial.number if by_number else trial, answer.value, answer.message, **answer.more)

        if not isinstance(self.each(call)[0], str):
            self.note(waiting.number, answer)
            return
        for view in (self.opt, self.restored, self.study):  # notes are stored only with a value
            next(trial for trial in view.pending if trial.number == waiting.number).attrs.clear()

    @rule(answers=st.lists(ANSWERS, min_size=1, max_size=5), late=st.integers(0, 1))
    def evaluate_batch(self, answers: list[Answer], late: int) -> None:
        """Points are asked for, and those that wait are told, the last one first."""
        self.ask(len(answers))
        for answer in answers[: len(self.opt.pending) - late]:
            self.tell_one(self.opt.pending[-1], answer)

    def fitting(self, answer: Answer) -> Answer:
        return answer if self.setup.measured else replace(answer, constraints=None)

    def note(self, number: int, answer: Answer) -> None:
        self.names = self.names or tuple(answer.constraints or ())
        self.told[number] = answer

    @rule(seed=st.integers(0, 99), answers=st.lists(ANSWERS, min_size=1, max_size=2))
    def import_points(self, seed: int, answers: list[Answer]) -> None:
        """Evaluations made elsewhere."""
        source, first = self.setup.optimizer(seed=seed, method="random"), len(self.opt.trials)
        try:
            points = [trial.params for trial in source.ask(len(answers))]
        except SpaceExhausted:
            return
        answers = [self.fitting(a.at(p)) for a, p in zip(answers, points, strict=False)]
        names = self.names or next((tuple(a.constraints) for a in answers if a.constraints), ())
        answers = [a if not a.constraints else replace(a, constraints=row_of(a, names)) for a in answers]
        other = self.setup.optimizer(method="random")
        for answer, point in zip(answers, points, strict=False):
            for view in (other, self.opt, self.restored):
                view.add(point, answer.value, answer.message, **answer.more)
        if answers:
            assert self.study.import_points(other) == len(answers)
        for number, answer in enumerate(answers, first):
            self.note(number, answer)

    @rule(seed=st.integers(0, 99))
    def enqueue(self, seed: int) -> None:
        points = [trial.params for trial in self.setup.optimizer(seed=seed, method="random").ask(1)]
        self.each(lambda view: view.enqueue(points))

    @rule(more=st.integers(1, 9))
    def plan(self, more: int) -> None:
        budget = len(self.opt.trials) + more
        self.each(lambda view: view.plan(budget))

    @rule(how=st.sampled_from(["close", "crash", "backup", "again"]))
    def reopen(self, how: str) -> None:
        if how == "backup":
            self.study.backup(path := self.path.with_name(f"copy{self.count()}.db"))
            self.study.close()
            self.path = path
        elif how != "again":
            (Study.close if how == "close" else crash)(self.study)
        self.study = Study(self.path, constraints=self.setup.constraints)

    @rule(how=st.sampled_from(["state", "pickle", "copy"]))
    def restore(self, how: str) -> None:
        if how == "state":
            state = through_plain_data(self.restored.state())
            self.restored = Optimizer.restore(state, self.setup.constraints)
        else:
            pickled = how == "pickle"
            self.restored = pickle.loads(pickle.dumps(self.restored)) if pickled else copy.deepcopy(self.restored)

    @precondition(lambda self: self.opt.has_best)
    @rule()
    def recommend(self) -> None:
        with Study(self.path, constraints=self.setup.constraints, readonly=True) as reader:
            views = [view.recommend() for view in (self.opt, self.restored, self.study, reader)]
        assert len({repr((r.trial.number, r.mean, r.sd)) for r in views}) == 1

    def count(self) -> int:
        self.files += 1
        return self.files

    # what holds after every step

    @invariant()
    def the_views_agree(self) -> None:
        expected, rows = picture(self.opt.trials), statuses(self.opt.variables())
        again = Optimizer.restore(through_plain_data(self.opt.state()), self.setup.constraints)
        with Study(self.path, constraints=self.setup.constraints, readonly=True) as reader:
            check_same(picture(reader.trials), expected, "file, as it is read")
            assert best_of(reader) == best_of(self.opt)
            views: dict[str, Any] = {"study": self.study, "lived on": self.restored, "state": again, "file": reader}
            for name, view in views.items():
                check_same(statuses(view.variables()), rows, name)
                check_same(picture(view.trials), expected, name)
                assert best_of(view) == best_of(self.opt), name
                assert [trial.number for trial in view.pending] == [trial.number for trial in self.opt.pending], name
                assert view.evaluated == self.opt.evaluated, name
                assert view.budget == self.opt.budget, name
            twin = Optimizer.restore(self.restored.state(), self.setup.constraints)
            points = next_points(again)
            assert next_points(twin) == points
            assert next_points(reader.optimizer) == points

    @invariant()
    def the_best_trial_is_the_best(self) -> None:
        """By what was told: no trial that is infeasible or unmeasured, where another one is feasible."""
        sign = 1.0 if self.setup.direction == "maximize" else -1.0
        scores = {
            number: sign * answer.number
            for number, answer in self.told.items()
            if not math.isnan(answer.number) and all(holds(answer, name) for name in self.names)
        }
        if scores:
            top = max(scores.values())
            assert best_of(self.opt) == min(number for number, score in scores.items() if score == top)
        elif self.opt.has_best:
            assert not self.opt.best.feasible or not self.opt.best.has_value
            assert not self.opt.best.failed

    @invariant()
    def a_table_says_the_same(self) -> None:
        if len(self.told) == self.tabled:
            return
        self.tabled = len(self.told)
        source: Any = self.study
        if self.setup.ending != "study":
            source = self.path.with_name(f"table{self.count()}.{self.setup.ending}")
            assert self.study.export(source) == len(self.told)
        told = [trial for trial in self.opt.trials if trial.value is not None]
        with self.setup.study(self.path.with_name(f"table{self.count()}.db")) as other:
            assert other.import_points(source) == len(told)
            check_same(list(map(content, other.trials)), list(map(content, told)), "table")
            best = best_of(other)
            assert (None if best is None else told[best].number) == best_of(self.opt)
            place = {number: trial.number for number, trial in enumerate(told)}
            check_same(statuses(other.variables(), place), statuses(self.opt.variables()), "table")


def row_of(answer: Answer, names: Sequence[str]) -> dict[str, Any]:
    """All constraints of a run, those not given as unknown."""
    return {name: (answer.constraints or {}).get(name) for name in names}


def holds(answer: Answer, name: str) -> bool:
    """Whether a measured constraint is known to hold."""
    measured = (answer.constraints or {}).get(name)
    return measured is not None and measured <= 0.0


HISTORIES = settings(
    max_examples=MAX_EXAMPLES,
    stateful_step_count=STEPS,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],  # to shrink a failure takes minutes
)


@pytest.mark.no_cover
def test_four_views_of_a_random_history_agree() -> None:
    run_state_machine_as_test(RandomHistories, settings=HISTORIES)
