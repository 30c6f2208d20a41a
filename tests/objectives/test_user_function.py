"""A function of the user's own, in a file of his own."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from mctsvs import InputError
from mctsvs.bench.record import run
from mctsvs.loop.evaluation import evaluate
from mctsvs.objectives.call_style import call_style
from mctsvs.objectives.space_file import parse_space
from mctsvs.objectives.user_function import UserProblem, find_function, user_problem

AB = parse_space({"a": [0, 1], "b": {"type": "integer", "low": 1, "high": 9}})
CODE = """
import sys
import helper

LIMIT = 3

def half(p):
    return p["a"] / helper.two()

def raises(p):
    raise RuntimeError("first line\\nsecond line")

def leaves(p):
    sys.exit("enough")

def word(p):
    return "three"

def nothing(p):
    pass

def two(p):
    return 0.2, 2.5

def by_name(a, b, verbose=False):
    return a + b

def by_any_name(**values):
    return values["a"] + values["b"]

def by_other_names(a, c):
    return a

def of_group(scale, x):
    return scale * x.sum()

def sometimes(p):
    if p["b"] < 5:
        raise ValueError(f"b is {p['b']}")
    return p["a"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "mine.py").write_text(CODE)
    (tmp_path / "helper.py").write_text("def two():\n    return 2\n")
    before = list(sys.path)
    yield tmp_path
    sys.path[:] = before
    sys.modules.pop("helper", None)


def problem(folder: Path, name: str) -> UserProblem:
    return user_problem(name, find_function(f"{folder / 'mine.py'}:{name}", AB), AB, None)


def test_a_function_is_called_with_the_values_by_name(folder: Path) -> None:
    half = problem(folder, "half")
    assert half(np.array([0.5, 3])) == 0.25
    assert pickle.loads(pickle.dumps(half))(np.array([0.5, 3])) == 0.25
    assert half.direction == "minimize"
    assert user_problem("m", half.function, AB, "maximize").direction == "maximize"
    up = parse_space({"direction": "maximize", "a": [0, 1]})
    assert user_problem("m", half.function, up, None).direction == "maximize"
    assert user_problem("m", half.function, up, "minimize").direction == "minimize"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("raises", "RuntimeError: first line"),
        ("leaves", "SystemExit: enough"),
        ("word", "the value 'three' is not a number: tell a float, or None if the evaluation failed"),
        ("nothing", "the function returned None"),
        (
            "two",
            "the value (0.2, 2.5) is not a number: there is one objective only, and measured constraints are "
            "(value, {name: number})",
        ),
    ],
)
def test_failed_evaluations_say_why(folder: Path, name: str, message: str) -> None:
    assert evaluate(problem(folder, name), np.array([0.5, 3])).message == message


@pytest.mark.parametrize("name", ["by_name", "by_any_name"])
def test_a_function_may_take_its_variables_by_name(folder: Path, name: str) -> None:
    assert problem(folder, name)(np.array([0.5, 3])) == 3.5


def test_a_group_has_one_name(folder: Path) -> None:
    file = parse_space({"scale": [0, 9], "x": {"count": 3, "low": 0, "high": 1}})
    function = find_function(f"{folder / 'mine.py'}:of_group", file)
    assert function(np.array([2.0, 0.1, 0.2, 0.3])) == pytest.approx(1.2)


def test_parameters_that_are_no_variables_are_refused_before_the_run(folder: Path) -> None:
    with pytest.raises(
        InputError, match="takes a and c, and the variables are a and b: give it one parameter for each"
    ):
        problem(folder, "by_other_names")


@pytest.mark.parametrize(
    ("function", "style"),
    [
        (lambda a, b: 0, "keywords"),
        (lambda b, a, other=1: 0, "keywords"),
        (lambda a, b=2: 0, "keywords"),
        (lambda *, a, b: 0, "keywords"),
        (lambda **values: 0, "keywords"),
        (lambda a, **values: 0, "keywords"),
        (lambda a: 0, "argument"),
        (lambda p, **more: 0, "argument"),
        (lambda p, a=1: 0, "argument"),
        (lambda *values: 0, "argument"),
        (max, "argument"),
        (np.sum, "argument"),
    ],
)
def test_how_a_function_is_called(function: Callable[..., object], style: str) -> None:
    assert call_style(function, ["a", "b"]) == style


def test_one_variable_and_one_parameter_of_its_name() -> None:
    assert call_style(lambda a: 0, ["a"]) == "keywords"
    assert call_style(lambda p: 0, ["a"]) == "argument"
    assert call_style(lambda x0: 0, ["x0"], named=False) == "argument", "a vector of one number"
    assert call_style(lambda *, a: 0, ["a"]) == "keywords"
    assert call_style(lambda a, b=0: 0, ["a"]) == "keywords", "two parameters, and one is a variable"


def test_a_run_goes_on_after_failures_and_records_them(folder: Path) -> None:
    record = run(problem(folder, "sometimes"), "random", budget=30, seed=0)
    assert 0 < len(record.failures) < 30
    assert all(failure["message"].startswith("ValueError: b is ") for failure in record.failures)
    assert [failure["evaluation"] for failure in record.failures] == sorted(f["evaluation"] for f in record.failures)
    assert record.best_params["b"] >= 5
    assert record.best == record.best_params["a"] == record.trace[-1]
    assert len(record.trace) == 30
    assert not record.interrupted


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("mine.py", "names no function: write path/to/file.py:function or package.module:function"),
        ("mine.py:", "names no function"),
        ("mine.txt:half", "there is no module"),
        ("other.py:half", "there is no file"),
        ("mine.py:quarter", "has no function 'quarter': it has half, raises, leaves"),
        ("mine.py:LIMIT", "'LIMIT' in .* is no function but 3"),
        ("syntax.py:f", "is not Python: .* in line 2"),
        ("missing.py:f", "cannot import .*: ModuleNotFoundError: No module named 'not_there_at_all'"),
        ("exits.py:f", "cannot import .*: SystemExit: bye"),
        ("bytes.py:f", "is not Python"),
    ],
)
def test_what_is_wrong_with_the_file_is_one_sentence(folder: Path, target: str, words: str) -> None:
    (folder / "syntax.py").write_text("import sys\ndef f(p) return 1\n")
    (folder / "missing.py").write_text("import not_there_at_all\n")
    (folder / "exits.py").write_text("import sys\nsys.exit('bye')\n")
    (folder / "bytes.py").write_bytes(b"x = '\xff'\n")
    with pytest.raises(InputError, match=words) as error:
        find_function(str(folder / target), AB)
    assert "\n" not in str(error.value)
