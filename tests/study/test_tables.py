"""Tables go out and come in unchanged, and crooked ones are refused."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from mctsvs import Boolean, Categorical, Float, InputError, Integer, Optimizer, Ordinal, Space, Study, minimize
from mctsvs.optimizer.trial import TrialDetails
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
    {"value": st.none() | NUMBERS.map(lambda y: y + 0.0), "message": TEXTS, "noise": st.none() | st.floats(0, 9)},
    optional={
        "c": st.sampled_from([math.nan, -math.inf]) | st.floats(0.1, 9),
        "attrs": st.dictionaries(TEXTS, JSON, max_size=2),
    },
)
PHASES = [Phase.explicit, Phase.reuse, Phase.generate]  # to shrink a failure takes minutes
ALIKE = Categorical([1, "1", None, "", "nan", (1, 2)])
PLAINLY: dict[str, Any] = {"value": 1.0, "message": "", "noise": None}


def told(opt: Optimizer, rows: list[dict[str, Any]]) -> list[Any]:
    for row, trial in zip(
        rows, opt.ask(min(len(rows), int(min(opt.space.size, 9)))), strict=False
    ):  # a small space has fewer
        trial.attrs.update(row.get("attrs", {}))
        constraints = {"c": row["c"]} if "c" in row else None
        opt.tell(trial, row["value"], row["message"], constraints=constraints, noise=row["noise"])
    return opt.trials


def picture(trials: list[Any]) -> list[str]:
    return [repr((t.params, t.value, t.message, t.constraints, t.noise, sorted(t.attrs.items()))) for t in trials]


@given(space=SPACES, rows=st.lists(TOLD, min_size=1, max_size=6), seed=st.integers(0, 99))
@example(space={"a": ALIKE, "value": (0.0, 1.0), "params_value": (0.0, 1.0)}, rows=[PLAINLY] * 6, seed=0)
@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], phases=PHASES)
@pytest.mark.parametrize("ending", ["csv", "parquet", "frame"])
@pytest.mark.needs("pandas", "pyarrow")
def test_a_table_is_read_as_it_was_written(
    ending: str, space: dict[str, Any], rows: list[dict[str, Any]], seed: int, tmp_path: Path
) -> None:
    if any(getattr(variable, "when", ()) for variable in space.values()):
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
    for unit, value, message, details in tables.rows(source, other.region, "minimize"):
        other._core.insert(unit, value, message, details)
    assert picture(other.trials) == picture(trials)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b,value\n1,2,3\n0,5,1,3\n", "row 2 of the file .* has 4 cells, and there are 3 columns"),
        ("a,b,value\n1,2\n", "row 1 of the file .* has 2 cells"),
        ("a,b,value,a\n1,2,3,9\n", "has the column 'a' twice"),
        ("a,b,value,value\n1,2,3,9\n", "has the column 'value' twice"),
        ("a,b\n0,5,1\n", "row 1 of the file .* has 3 cells"),
        ("a,b,b\n1,2,3\n", "has the column 'b' twice"),
        ("a,b\n1,\n", "row 1 of the file .*: the cell of 'b' is empty"),
        ("a,b,value\n1,2,1_0\n", "the value '1_0' is not a number"),
    ],
)
def test_a_crooked_table_is_refused(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "points.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=words):
        minimize(lambda p: 1.0, {"a": (0, 10), "b": (0, 10)}, budget=1, x0=file)


def test_a_table_of_a_users_is_read_as_it_looks(tmp_path: Path) -> None:
    space = {
        "n": Ordinal([1, 2, 4]),
        "yes": Boolean(),
        "kind": Categorical([None, "a", "-O2"]),
        "slope": Float(0, 1, when={"kind": "a"}),
    }
    file = tmp_path / "points.csv"
    file.write_text(
        "\ufeffn,kind,yes,slope,value,note,,\n2.0,,true,,1,hello,,\n4,a,FALSE,0.5,,,,\n\n1,-O2,1,,-1e3,x,,\n"
    )
    with pytest.raises(InputError, match=r"row 2 of the file .*'yes': value 'FALSE'"):
        tables.rows(file, Optimizer(space).region, "minimize")
    file.write_text(file.read_text().replace("FALSE", "False"))
    found = tables.rows(file, Optimizer(space).region, "minimize")
    assert [repr((Space.of(space).params(unit), value)) for unit, value, _, _ in found] == [
        "({'n': 2, 'yes': True, 'kind': None}, 1.0)",
        "({'n': 4, 'yes': False, 'kind': 'a', 'slope': 0.5}, nan)",
        "({'n': 1, 'yes': True, 'kind': '-O2'}, -1000.0)",
    ]


def test_no_cell_is_a_formula(tmp_path: Path) -> None:
    opt = Optimizer({"=n": Categorical(["=1+2", "@SUM(A1)", "+cmd|' /C calc'!A0", "-5", "-O2"])}, method="random")
    for trial in opt.ask(5):
        opt.tell(trial, -1.0, "=HYPERLINK(1)")
    waiting = opt.add({"=n": "-5"}, 2.0)
    tables.export(tmp_path / "table.csv", opt.trials, opt.space)
    with (tmp_path / "table.csv").open(newline="") as file:
        cells = {cell for row in csv.reader(file) for cell in row}
    assert {"-1.0", "-5", "-O2", '"=n"', '"=1+2"'} <= cells
    assert not [cell for cell in cells if cell[:1] in "=@+" and cell]
    assert waiting.value == 2.0


@pytest.mark.needs("pandas")
def test_a_data_frame_says_which_choice_it_means() -> None:
    import pandas

    region = Optimizer({"a": Categorical([1, "1"])}).region
    with pytest.raises(InputError, match="row 1 of the table: '1' may be the choice 1 or the text '1'"):
        tables.rows(pandas.DataFrame({"a": ["1"], "value": [1.0]}), region, "minimize")
    frame = pandas.DataFrame({"a": [1, '"1"'], "value": [1.0, 2.0]})
    units = [row[0] for row in tables.rows(frame, region, "minimize")]
    assert [region.space.params(unit)["a"] for unit in units] == [1, "1"]
    frame.columns = ["a", "a"]
    with pytest.raises(InputError, match="the column 'a' twice"):
        tables.rows(frame, region, "minimize")


@pytest.mark.needs("pandas", "pyarrow")
def test_choices_that_are_numbers_are_numbers_in_a_data_frame(tmp_path: Path) -> None:
    import pandas

    space = {
        "batch": Ordinal([16, 32]),
        "rate": Categorical([0.1, 2.5]),
        "on": Boolean(),
        "kind": Categorical([1, "1"]),
    }
    with Study(tmp_path / "s.db", space, method="random") as study:
        study.optimize(lambda p: p["rate"], 6)
        table = study.to_dataframe()
        assert [table[name].map(type).unique().tolist() for name in ("batch", "rate", "on")] == [[int], [float], [bool]]
        for name in ("batch", "rate", "on"):
            assert table[name].tolist() == [t.params[name] for t in study.trials]
        assert {json.dumps(cell) for cell in table["kind"]} <= {"1", '"\\"1\\""'}, "1 and the text are told apart"
        study.export(tmp_path / "t.parquet")
        written = pandas.read_parquet(tmp_path / "t.parquet")
        assert [written[name].dtype.kind for name in ("batch", "rate", "on")] == ["i", "f", "b"]


def test_a_trial_that_waits_is_no_failed_evaluation(tmp_path: Path) -> None:
    opt = Optimizer([(0, 1)] * 2, method="random")
    first, _ = opt.ask(2)
    opt.tell(first, 1.0)
    assert tables.export(tmp_path / "table.csv", opt.trials, opt.space) == 1
    assert len(tables.rows(tmp_path / "table.csv", opt.region, "minimize")) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Space.of({"a\ud800": (0, 1)}),
        lambda: Categorical(["x", ("y", "\ud800")]),
        lambda: minimize(lambda x: (1.0, {"c\ud800": 1.0}), [(0, 1)], budget=2),
        lambda: TrialDetails.of(attrs={"a": "\ud800"}),
    ],
)
def test_half_a_character_is_refused_at_once(wrong: Any) -> None:
    with pytest.raises(InputError, match="no character"):
        wrong()
