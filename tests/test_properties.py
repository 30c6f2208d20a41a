"""Random spaces of every kind of variable, constraints, courses of asking and telling: what holds for every method."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mctsvs import Boolean, Categorical, Fixed, Float, Integer, Optimizer, Ordinal, Space
from mctsvs.methods.auto.constants import REPEATS
from mctsvs.methods.auto.evidence import TestKind
from mctsvs.methods.registry import METHODS
from mctsvs.optimizer.explanation import PURPOSES, Role
from mctsvs.optimizer.trial import Trial
from mctsvs.optimizer.unit_cube import REPLICATES
from mctsvs.space import Variable
from mctsvs.space.deduplicate import SpaceExhausted
from mctsvs.testing import through_plain_data

SAMPLER: dict[str, Any] = {"warmup": 4, "samples": 4}
SLOW: dict[str, int] = {"alebo": 8, "optuna-gp": 4, "optuna-tpe": 14, "vae-bo": 8, "saasbo": 5, "mcts-vs-saasbo": 5}
EVALUATIONS = 18
LOOKING_FOR_NOISE = (TestKind.REPEAT.value, PURPOSES[Role.REPEAT])


@st.composite
def variable(draw: st.DrawFn, parents: Mapping[str, Variable]) -> Variable:
    """Of any kind; it may have a default, and a condition on one or two of the parents."""
    more: dict[str, Any] = {}
    with_values = {name: v for name, v in parents.items() if not isinstance(v, Float)}
    if draw(st.booleans()) and with_values:
        names = draw(st.lists(st.sampled_from(sorted(with_values)), min_size=1, max_size=2, unique=True))
        more["when"] = {name: draw(some_values(with_values[name])) for name in names}
    kind = draw(
        st.sampled_from(["float", "log", "step", "integer", "ordinal", "sizes", "boolean", "category", "fixed"])
    )
    made: Variable
    if kind in ("float", "log", "step"):
        made = Float(0.5, 8.0, kind == "log", 0.25 if kind == "step" else None, **more)
        values: Any = st.integers(2, 32).map(lambda k: k / 4)
    elif kind == "integer":
        made, values = Integer(1, 5, **more), st.integers(1, 5)
    elif kind == "fixed":
        return Fixed(draw(st.sampled_from([3, "a", None, True])), **more)
    else:
        listed: dict[str, Variable] = {
            "ordinal": Ordinal([16, 32, 64], **more),
            "sizes": Ordinal(["s", "m", "l"], **more),
        }
        listed |= {"boolean": Boolean(**more), "category": Categorical(["x", None, 3, (1, 2)], **more)}
        made = listed[kind]
        values = st.sampled_from(made.labels or ())
    return type(made)(**{**vars(made), "default": draw(values)}) if draw(st.integers(0, 3)) == 0 else made


def some_values(of: Variable) -> st.SearchStrategy[Any]:
    if isinstance(of, Integer):
        return st.integers(of.low, of.high - 1).map(lambda low: range(low, of.high + 1))
    labels = of.labels or ()
    return st.lists(st.sampled_from(labels), min_size=1, max_size=len(labels), unique=True)


@st.composite
def spaces(draw: st.DrawFn) -> dict[str, Variable]:
    """At least one variable that is always there and has a few values; parents come before what depends on them."""
    first: list[Variable] = [Float(-1.0, 1.0), Integer(0, 40), Ordinal(range(9))]
    found: dict[str, Variable] = {"a": draw(st.sampled_from(first))}
    for name in "bcdefgh"[: draw(st.integers(0, 7))]:
        while (made := draw(variable(found))) and not possible({**found, name: made}):
            pass
        found[name] = made
    order = draw(st.permutations(list(found)))
    return {name: found[name] for name in order}


def possible(variables: Mapping[str, Variable]) -> bool:
    """Whether no condition is on another value of a fixed variable."""
    return all(
        not isinstance(variables[parent], Fixed) or variables[parent].labels[0] in values  # type: ignore[index]
        for made in variables.values()
        for parent, values in made.when
    )


@dataclass(frozen=True)
class Limit:
    """A known constraint: the sum of some numbers, where they exist, is at most so large; as text or as a function."""

    names: tuple[str, ...]
    most: float
    as_function: bool

    def __call__(self, params: Mapping[str, Any]) -> bool:
        return math.fsum(params.get(name, 0) for name in self.names) <= self.most

    @property
    def given(self) -> Any:
        return self if self.as_function else f"{' + '.join(self.names)} <= {self.most!r}"


@st.composite
def limited_spaces(draw: st.DrawFn) -> tuple[dict[str, Variable], Limit | None]:
    """A space, and a constraint that leaves some of it: more than the lowest sum of values, less than the highest."""
    space = draw(spaces())
    numeric = [name for name, v in space.items() if isinstance(v, Float | Integer) or getattr(v, "numbers", None)]
    if draw(st.booleans()):
        return space, None
    names = draw(st.lists(st.sampled_from(numeric), min_size=1, max_size=3, unique=True))
    low, high = np.array([space[name].ends for name in names]).sum(axis=0)
    most = low + draw(st.sampled_from([0.3, 0.6])) * (high - low)
    return space, Limit(tuple(names), float(most), draw(st.booleans()))


@dataclass(frozen=True)
class Course:
    """How a run goes; everything else follows from the seed."""

    seed: int
    batch: int  # points asked for at once, at most
    late: int  # points that wait, at most
    failing: float  # share of evaluations that fail
    measured: bool  # whether a constraint comes with the values, and noise
    planned: bool  # whether the budget is known


courses = st.builds(
    Course,
    seed=st.integers(0, 2**32),
    batch=st.integers(1, 4),
    late=st.integers(0, 4),
    failing=st.sampled_from([0.0, 0.2, 1.0]),
    measured=st.booleans(),
    planned=st.booleans(),
)


def value_of(params: Mapping[str, Any]) -> float:
    """A different number for every point, the same in every process; numbers count as they are."""
    numbers = [v for v in params.values() if isinstance(v, int | float)]
    return math.fsum(math.sin(v) for v in numbers) + zlib.crc32(repr(sorted(params.items())).encode()) * 2.0**-40


def tell(opt: Optimizer, trial: Trial, course: Course, rng: np.random.Generator) -> None:
    failed, known = rng.random() < course.failing, rng.random() < 0.8
    more: dict[str, Any] = {}
    if course.measured and (known or not failed):
        more = {"constraints": {"c": float(rng.normal()) if known else math.nan}, "noise": 0.1 if known else None}
    opt.tell(trial, None if failed else value_of(trial.params), **more)


def run(
    space: Mapping[str, Variable], limit: Limit | None, method: str, course: Course, *, restored: bool
) -> list[Trial]:
    """A run of a few points; `restored` saves and restores it at random moments."""
    budget, rng = SLOW.get(method, EVALUATIONS), np.random.default_rng(course.seed)
    moments = np.random.default_rng(course.seed + 1)
    options = dict(SAMPLER) if method.endswith("saasbo") else {}
    options |= {"budget": budget} if course.planned else {}
    known = [] if limit is None else [limit.given]
    opt = Optimizer(space, method=method, seed=course.seed, constraints=known, **options)
    while len(opt.trials) < budget:
        try:
            opt.ask(int(rng.integers(1, course.batch + 1)))
        except SpaceExhausted:
            assert sum(trial.source != "repeated" for trial in opt.trials) == count(space, limit)
            break
        while len(waiting := opt.pending) > course.late:
            tell(opt, waiting[int(rng.integers(len(waiting)))], course, rng)
            if restored and moments.random() < 0.2:
                opt = Optimizer.restore(through_plain_data(opt.state()), constraints=known)
    return opt.trials


def count(space: Mapping[str, Variable], limit: Limit | None) -> int:
    """Points inside, of a space that has few there: no continuous variable exists at any of them."""
    made = Space.of(space)
    continuous = np.isinf(made.sizes)
    every = made.every(np.flatnonzero(~continuous), most=1e5)
    assert every is not None
    every[:, continuous] = made.bounds[continuous, 0]  # where a limit on sums leaves room, if anywhere
    inside = np.array([limit is None or limit(made.params_at(x)) for x in every])
    assert not made.active(made.encode(every))[np.ix_(inside, continuous)].any()
    return int(inside.sum())


def check_point(trial: Trial, variables: Mapping[str, Variable]) -> None:
    """It fits the space: written out from what the words mean, not by the space's own code."""
    params = trial.params
    expected = []
    for name in sorted(variables, key="abcdefgh".index):  # parents first
        if all(parent in expected and params[parent] in values for parent, values in variables[name].when):
            expected.append(name)
    assert list(params) == [name for name in variables if name in expected]
    for name, value in params.items():
        made = variables[name]
        assert made.fits(value)
        if made.labels is not None:
            assert any(value is label for label in made.labels)
        else:
            assert type(value) is (int if isinstance(made, Integer) else float)
    unit = trial.unit
    assert unit.min() >= 0.0
    assert unit.max() <= 1.0
    assert trial.space.snap(unit).tobytes() == unit.tobytes()
    np.testing.assert_allclose(trial.space.encode_params(params), unit, atol=1e-9)


def check_run(space: Mapping[str, Variable], limit: Limit | None, method: str, course: Course) -> None:
    trials = run(space, limit, method, course, restored=False)
    for trial in trials:
        check_point(trial, space)
        assert limit is None or limit(trial.params), "a point violates the constraint"
    own = [trial for trial in trials if trial.source != "replicate"]
    assert len(trials) - len(own) <= REPLICATES
    others = [trial for trial in own if trial.source == "repeated" or trial.purpose not in LOOKING_FOR_NOISE]
    assert len(own) - len(others) <= REPEATS
    first = [repr(trial.params) for trial in others if trial.source != "repeated"]
    assert len(set(first)) == len(first), "a point was asked for twice"
    assert len(first) == len(others) or len(first) == count(space, limit), "repeated while others are left"
    again = run(space, limit, method, course, restored=True)
    assert [t.unit.tobytes() for t in again] == [t.unit.tobytes() for t in trials], "restored, it takes another course"
    assert [t.value for t in again if t.has_value] == [t.value for t in trials if t.has_value]


FEW = settings(deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("method", list(METHODS))
@settings(FEW, max_examples=4)
@given(limited=limited_spaces(), course=courses)
def test_every_method(method: str, limited: tuple[dict[str, Variable], Limit | None], course: Course) -> None:
    check_run(*limited, method, course)


@settings(FEW, max_examples=60)
@given(limited=limited_spaces(), course=courses)
def test_many_spaces(limited: tuple[dict[str, Variable], Limit | None], course: Course) -> None:
    check_run(*limited, "random", course)
