"""The TOML file that declares the variables of a user's own objective."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mctsvs import Boolean, Categorical, Fixed, Float, InputError, Integer, Ordinal, Space
from mctsvs.objectives.space_file import SpaceFile, parse_space, read_space


def space(text: str) -> SpaceFile:
    return parse_space(tomllib.loads(text))


EXAMPLE = """
direction = "maximize"
rate = { low = 1e-5, high = 1, log = true }
width = [0.5, 2]
layers = { type = "integer", low = 1, high = 9 }
even = { type = "integer", low = 0, high = 8, step = 2 }
kind = { choices = ["relu", "tanh", 3, true] }
[x]
count = 3
low = -5
high = 10
[mode]
count = 2
choices = ["a", "b"]
"""


def test_every_kind_of_variable() -> None:
    file = space(EXAMPLE)
    assert file.direction == "maximize"
    assert file.variables == {
        "rate": Float(1e-5, 1.0, log=True),
        "width": Float(0.5, 2.0),
        "layers": Integer(1, 9),
        "even": Integer(0, 8, step=2),
        "kind": Categorical(["relu", "tanh", 3, True]),
        **{f"x{i}": Float(-5.0, 10.0) for i in range(3)},
        **{f"mode{i}": Categorical(["a", "b"]) for i in range(2)},
    }
    assert file.groups == {"x": ("x0", "x1", "x2"), "mode": ("mode0", "mode1")}


def test_lists_of_choices_and_types_as_other_tools_call_them() -> None:
    file = space(
        """
        a = ["x", "y"]
        b = [16, 32, 64]
        c = [1, "auto"]
        d = [true, false]
        e = ["x"]
        f = [1, 2]
        g = { type = "int", low = 1, high = 9 }
        h = { type = "bool" }
        i = { type = "category", choices = ["x"] }
        j = { type = "Real", low = 0, high = 1 }
        k = { type = "double", low = 0, high = 1 }
        l = { type = "cat", choices = [1, 2] }
        """
    )
    expected: list[list[object]] = [["x", "y"], [16, 32, 64], [1, "auto"], [True, False], ["x"]]
    assert list(file.variables.values()) == [
        *map(Categorical, expected),
        *(Float(1.0, 2.0), Integer(1, 9), Boolean(), Categorical(["x"])),
        *(Float(0.0, 1.0), Float(0.0, 1.0), Categorical([1, 2])),
    ]


def test_the_argument_of_a_function() -> None:
    file = space(EXAMPLE)
    x = np.array([0.1, 1.0, 4, 6, 1, -5, 0, 10, 1, 0])
    argument = file.argument(x)
    assert np.array_equal(argument.pop("x"), [-5.0, 0.0, 10.0])
    assert argument == {"rate": 0.1, "width": 1.0, "layers": 4, "even": 6, "kind": "tanh", "mode": ["b", "a"]}
    assert type(argument["layers"]) is int


CONDITIONS = """
kind = { choices = ["relu", "tanh"], default = "tanh" }
batch = { values = [16, 32, 64], default = 32 }
shrink = { type = "boolean" }
seed = { value = 3 }
slope = { low = 0, high = 0.3, default = 0.1, when = { kind = ["relu"] } }
depth = { type = "integer", low = 1, high = 4, when = { shrink = true, batch = [32, 64] } }
[x]
count = 2
low = 0
high = 1
when = { kind = ["relu"] }
"""


def test_defaults_and_conditions() -> None:
    file = space(CONDITIONS)
    assert file.variables == {
        "kind": Categorical(["relu", "tanh"], default="tanh"),
        "batch": Ordinal([16, 32, 64], default=32),
        "shrink": Boolean(),
        "seed": Fixed(3),
        "slope": Float(0.0, 0.3, default=0.1, when={"kind": ["relu"]}),
        "depth": Integer(1, 4, when={"shrink": [True], "batch": [32, 64]}),
        **{f"x{i}": Float(0.0, 1.0, when={"kind": ["relu"]}) for i in range(2)},
    }
    assert file.bounds.shape == (7, 2)
    here = file.argument(np.array([0, 32, 1, 0.2, 3, 0.5, 1.0]))
    assert np.array_equal(here.pop("x"), [0.5, 1.0])
    assert here == {"kind": "relu", "batch": 32, "shrink": True, "seed": 3, "slope": 0.2, "depth": 3}
    there = file.argument(np.array([1, 16, 1, 0.2, 3, 0.5, 1.0]))
    assert there == {"kind": "tanh", "batch": 16, "shrink": True, "seed": 3}


def test_one_group_alone_is_the_vector_itself() -> None:
    alone = space("[x]\ncount = 4\nlow = 0\nhigh = 1")
    assert np.array_equal(alone.argument(np.arange(4) / 4), np.arange(4) / 4)
    assert alone.argument(np.zeros(4)).dtype == np.float64
    whole = space('[x]\ncount = 2\ntype = "integer"\nlow = 0\nhigh = 5')
    assert whole.argument(np.array([1.0, 5.0])).dtype.kind == "i"
    assert space("a = [0, 1]").argument(np.array([0.5])) == {"a": 0.5}


@given(st.lists(st.floats(0, 1), min_size=13, max_size=13))
def test_values_are_those_of_the_space(unit: list[float]) -> None:
    file = space(EXAMPLE)
    made = Space.of(file.variables)
    point = np.resize(unit, made.n_coordinates)
    assert file.params(made.decode(point)) == made.params(point)
    low, high = file.bounds.T
    assert ((low <= made.decode(point)) & (made.decode(point) <= high)).all()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "there is no variable"),
        ("a = 3", "'a': 3 must be a table such as"),
        ("a = [1]", "must be a table"),
        ("a = []", "must be a table"),
        ("a = { low = 2, high = 1 }", "'a': bounds .2.0, 1.0. are reversed"),
        ("a = { low = 0 }", "'a': high is missing"),
        ("a = { type = 'ordinal' }", "'a': values is missing: an ordinal needs values in their order"),
        ("a = { type = 'fixed', count = 2 }", "'a': value is missing"),
        ("a = { type = 'boolean', default = 3 }", "'a': default 3 must be one of the values"),
        ("a = { type = 'boolean', value = 3 }", "unknown key 'value'"),
        ("a = { low = 0, high = 1, when = { b = 1 } }", "'a': when has 'b', which is not in the space"),
        ("a = { low = 0, high = 1, when = 3 }", "'a': when=3 must be a dict"),
        ("a = { low = 0, hihg = 1 }", "unknown key 'hihg': did you mean 'high'"),
        ("a = { low = '0', high = 1 }", "low='0' cannot be used"),
        ("a = { low = 0, high = 1, log = true }", "do not fit log=True"),
        ("a = { low = 1, high = 2, log = 1 }", "log=1 cannot be used: it must be true or false"),
        ("a = { low = nan, high = 1 }", "finite"),
        ("a = { type = 'number', low = 0, high = 1 }", "unknown type 'number': use one of float, integer, categorical"),
        ("a = { type = 'integer', low = 0.5, high = 3 }", "low=0.5 cannot be used"),
        ("a = { type = 'integer', low = 0, high = inf }", "high=inf cannot be used"),
        ("a = { type = 'categorical' }", "a categorical needs choices"),
        ("a = { choices = [] }", "at least one value"),
        ("a = { choices = ['x', 'x'] }", "there twice"),
        ("a = { choices = ['x', 'y'], low = 0 }", "unknown key 'low'"),
        ("a = { low = 0, high = 1, count = 0 }", "count=0 cannot be used"),
        ("[a.b]\nlow = 0", "unknown key 'b'"),
        ("x0 = [0, 1]\nx = { count = 2, low = 0, high = 1 }", "'x0' is there twice"),
        ("x = { count = 2, low = 0, high = 1 }\nx1 = [0, 1]", "'x1' is there twice"),
        ("x = { count = 11, low = 0, high = 1 }\nx1 = { count = 2, low = 0, high = 1}", "'x10' is there twice"),
        ("x1 = { count = 2, low = 0, high = 1}\nx = { count = 3, low = 0, high = 1 }", "'x1' is there twice"),
        ("direction = 'up'\na = [0, 1]", "unknown direction 'up'"),
    ],
)
def test_what_is_wrong_is_said_with_the_name(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        space(text)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no space file"):
        read_space(tmp_path / "none.toml")
    with pytest.raises(InputError, match="cannot read the space file"):
        read_space(tmp_path)
    (tmp_path / "bad.toml").write_text("a = [")
    with pytest.raises(InputError, match="is not TOML"):
        read_space(tmp_path / "bad.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="UTF-8"):
        read_space(tmp_path / "bytes.toml")
    (tmp_path / "good.toml").write_text(EXAMPLE)
    assert len(read_space(tmp_path / "good.toml").variables) == 10


@pytest.mark.parametrize("given", ['"a <= 0.5"', "3", '["a <= 0.5", 3]'])
def test_constraints_are_a_list_of_texts(given: str) -> None:
    with pytest.raises(InputError, match=r"must be a list of texts, such as constraints = \[\"a \+ b <= 1\"\]"):
        space(f"constraints = {given}\na = [0.0, 1.0]\n")
    assert set(space("constraints = [0.0, 1.0]\n").variables) == {"constraints"}, "a variable of that name"
