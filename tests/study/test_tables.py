"""Tables go out and come in unchanged, and crooked ones are refused."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mctsvs import Boolean, Categorical, Float, InputError, Integer, Optimizer, Ordinal, Space, minimize
from mctsvs.study import tables

WORDS = ["", "1", "True", "None", "nan", "null", '"1"', "=1+2", "-O2", "@SUM(A1)", "(1, 2)", "a,b", " a ", "é\n", "'x"]
TEXTS = st.sampled_from(WORDS) | st.text(st.characters(codec="utf-8"), max_size=5)
NUMBERS = st.floats(-1e6, 1e6)
PLAIN = st.none() | st.booleans() | st.integers(-5, 2**70) | st.floats(allow_nan=False) | TEXTS
CHOICES = st.lists(PLAIN | st.tuples(PLAIN, PLAIN), min_size=1, max_size=5, unique=True)
NAMES = ["value", "params_value", "number", "message", "noise", "trial_noise", "attr_a", "constraint_c", "told", "=n"]
VARIABLES = st.one_of(
    CHOICES.map(Categorical),
    CHOICES.map(Ordinal),
    st.just(Boolean()),
    st.just(Integer(-3, 2**40)),
    st.just(Float(1e-5, 1e3, log=True)),
    st.just(Float(-5, 10)),
    CHOICES.map(lambda choices: Categorical(choices, when={"parent": "with"})),
    st.just(Integer(1, 9, when={"parent": "with"})),
)
JSON = st.recursive(st.none() | st.booleans() | NUMBERS | TEXTS, lambda x: st.lists(x, max_size=2), max_leaves=4)
SPACES = st.dictionaries(st.sampled_from(NAMES) | TEXTS, VARIABLES, min_size=1, max_size=5)
TOLD = st.fixed_dictionaries(
    {"value": st.none() | NUMBERS, "message": TEXTS, "noise": st.none() | st.floats(0, 9)},
    optional={"c": st.sampled_from([math.nan, -math.inf]) | st.floats(0.1, 9), "attrs": st.dictionaries(TEXTS, JSON, max_size=2)},
)


def told(opt: Optimizer, rows: list[dict[str, Any]]) -> list[Any]:
    for row, trial in zip(rows, opt.ask(len(rows)), strict=False):  # a small space has fewer
        trial.attrs.update(row.get("attrs", {}))
        constraints = {"c": row["c"]} if "c" in row else None
        opt.tell(trial, row["value"], row["message"], constraints=constraints, noise=row["noise"])
    return opt.trials


def picture(trials: list[Any]) -> list[str]:
    return [repr((t.params, t.value, t.message, t.constraints, t.noise, t.attrs)) for t in trials]


@given(space=SPACES, rows=st.lists(TOLD, min_size=1, max_size=6), seed=st.integers(0, 99))
@example(space={"a": Categorical([1, "1", None, "", "nan", (1, 2)])}, rows=[{"value": 1.0, "message": "", "noise": None}] * 6, seed=0)
@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("ending", ["csv", "parquet", "frame"])
@pytest.mark.needs("pandas", "pyarrow")
def test_a_table_is_read_as_it_was_written(
    ending: str, space: dict[str, Any], rows: list[dict[str, Any]], seed: int, tmp_path: Path
) -> None:
    if any(variable.when for variable in space.values()):
        space = {"parent": Categorical(["with", "without"]), **{n: v for n, v in space.items() if n != "parent"}}
    if ending == "frame":  # pandas has no number that is told and not known
        rows = [{name: part for name, part in row.items() if name != "c"} for row in rows]
    trials = told(Optimizer(space, method="random", seed=seed), rows)
    source: Any = tmp_path / f"table.{ending}"
    if ending == "frame":
        source = tables.dataframe(trials, trials[0].space, times=True)
    else:
        tables.export(source, trials, trials[0].space)
    other = Optimizer(space, method="random")
    minimize_nothing = tables.rows(source, other.region, "minimize")
    for unit, value, message, details in minimize_nothing:
        other._core.insert(unit, value, message, details)
    assert picture(other.trials) == picture(trials)
