"""The space: canonical points, bounds, round trips, and the sentences for bad input."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds

import mctsvs
from mctsvs.space import Boolean, Categorical, Float, Integer, Ordinal, Space, Variable
from mctsvs.utils.validation import Array, InputError


@st.composite
def floats(draw: st.DrawFn) -> Float:
    if draw(st.booleans()):
        low = 10.0 ** draw(st.floats(-300, 300))
        return Float(low, low * 10.0 ** draw(st.floats(0.01, 8)), log=True)
    low = draw(st.floats(-1e6, 1e6))
    width = 10.0 ** draw(st.floats(-3, 6))
    step = width / draw(st.floats(1.0, 1000.0)) if draw(st.booleans()) else None
    high = low + width
    return Float(low, high, step=step if step and step <= high - low else None)


@st.composite
def integers(draw: st.DrawFn) -> Integer:
    if draw(st.booleans()):
        low = draw(st.integers(1, 2**39))
        return Integer(low, draw(st.integers(low + 1, 2**40)), log=True)
    low = draw(st.integers(-(2**40), 2**40 - 1))
    width = draw(st.integers(1, min(2**40 - low, draw(st.sampled_from([5, 1000, 2**40])))))
    return Integer(low, low + width, step=draw(st.integers(1, width)))


scalars = st.none() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.text(max_size=3)
choices = st.lists(scalars | st.tuples(scalars, scalars), min_size=1, max_size=5, unique=True)
numbers = st.lists(st.integers(-9, 9) | st.floats(-1e9, 1e9), min_size=1, max_size=5, unique_by=float)
variables = st.one_of(
    floats(), integers(), choices.map(Categorical), choices.map(Ordinal), numbers.map(Ordinal), st.just(Boolean())
)
spaces = st.one_of(
    st.dictionaries(st.text(max_size=4), variables, min_size=1, max_size=8),
    st.lists(variables, min_size=1, max_size=8),
    st.lists(st.tuples(st.floats(-9, 0), st.floats(1, 9)), min_size=1, max_size=8),
).map(Space.of)


def draw_points(space: Space, data: st.DataObject) -> Array:
    """Three points, some coordinates at the edges, in the middle, or a little outside."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    u = rng.uniform(-0.05, 1.05, (3, space.n_coordinates))
    special = rng.choice([-0.0, 0.0, 0.5, 1.0, np.nextafter(1.0, 0.0)], u.shape)
    points: Array = np.where(rng.random(u.shape) < 0.3, special, u)
    points.flags.writeable = False  # a method that wrote to its argument would raise
    return points


@given(spaces, st.data())
def test_snap_is_idempotent_and_decodes_alike(space: Space, data: st.DataObject) -> None:
    u = draw_points(space, data)
    snapped = space.snap(u)
    assert snapped.shape == u.shape
    assert snapped.min() >= 0.0
    assert snapped.max() <= 1.0
    assert space.snap(snapped).tobytes() == snapped.tobytes()
    np.testing.assert_array_equal(space.decode(snapped), space.decode(u))
    assert not np.shares_memory(snapped, u)


@given(spaces, st.data())
def test_decoded_values_belong_to_their_variable(space: Space, data: st.DataObject) -> None:
    u = draw_points(space, data)
    x = space.decode(u)
    assert x.shape == (3, len(space))
    for v, variable in enumerate(space.variables):
        if not isinstance(variable, Float | Integer):
            numbers = variable.numbers if isinstance(variable, Ordinal) else []
            assert set(x[:, v]) <= set(numbers or range(len(variable.labels)))
            continue
        assert x[:, v].min() >= variable.low
        assert x[:, v].max() <= variable.high
        if isinstance(variable, Integer):
            assert all((int(value) - variable.low) % variable.step == 0 for value in x[:, v])


@given(spaces, st.data())
def test_rows_of_a_batch_equal_single_points(space: Space, data: st.DataObject) -> None:
    u = draw_points(space, data)
    np.testing.assert_array_equal(space.snap(u)[1], space.snap(u[1]))
    np.testing.assert_array_equal(space.decode(u)[1], space.decode(u[1]))
    np.testing.assert_array_equal(space.encode(space.decode(u))[1], space.encode(space.decode(u[1])))


def assert_same_values(space: Space, got: Array, expected: Array) -> None:
    for v, variable in enumerate(space.variables):
        if isinstance(variable, Float):
            scale = 0.0 if variable.log else max(abs(variable.low), abs(variable.high))
            np.testing.assert_allclose(got[..., v], expected[..., v], rtol=1e-11, atol=1e-14 * scale)
        else:
            np.testing.assert_array_equal(got[..., v], expected[..., v])


@given(spaces, st.data())
def test_encode_is_canonical_and_inverts_decode(space: Space, data: st.DataObject) -> None:
    x = space.decode(draw_points(space, data))
    x.flags.writeable = False
    u = space.encode(x)
    assert u.tobytes() == space.snap(u).tobytes()
    assert_same_values(space, space.decode(u), x)


@given(spaces, st.data())
def test_params_round_trip(space: Space, data: st.DataObject) -> None:
    u = draw_points(space, data)[0]
    params = space.params(u)
    assert list(params) == list(space.names)
    for variable, value in zip(space.variables, params.values(), strict=True):
        if variable.labels is not None:
            assert any(value is label for label in variable.labels)
        else:
            assert type(value) is (int if isinstance(variable, Integer) else float)
    assert_same_values(space, space.decode(space.encode_params(params)), space.decode(u))


def through_json(state: dict[str, Any]) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(json.dumps(state, default=np.ndarray.tolist))
    return loaded


@given(spaces)
def test_state_round_trip(space: Space) -> None:
    assert Space.from_state(space.to_state()) == space
    assert Space.from_state(through_json(space.to_state())) == space


@given(spaces)
def test_layout(space: Space) -> None:
    sizes = [len(v.choices) if isinstance(v, Categorical) else 1 for v in space.variables]
    assert np.diff(space.offsets).tolist() == sizes
    assert space.owner.tolist() == [v for v, size in enumerate(sizes) for _ in range(size)]
    assert space.n_coordinates == sum(sizes)
    assert len(space) == space.n_variables == len(space.names) == len(space.variables)
    assert Space.of(space) is space
    assert len(repr(space)) < 80


@given(st.lists(variables, min_size=1, max_size=5))
def test_variables_come_back(given_variables: list[Variable]) -> None:
    assert list(Space.of(given_variables).variables) == given_variables


@dataclass
class FloatDistribution:
    low: float
    high: float
    log: bool = False
    step: float | None = None


@dataclass
class IntDistribution:
    low: int
    high: int
    log: bool = False
    step: int = 1


@dataclass
class CategoricalDistribution:
    choices: tuple[Any, ...]


def test_bounds_as_other_libraries_have_them() -> None:
    same = Space.of([(0.0, 1.0), (0.0, 5.0), (0.0, 9.0)])
    assert Space.of(Bounds([0.0, 0.0, 0.0], [1.0, 5.0, 9.0])) == same
    assert Space.of(Bounds(0.0, [1.0, 5.0, 9.0])) == same
    named = Space.of({"a": (0.0, 1.0), "b": (0.0, 5.0), "c": (0.0, 9.0)})
    assert Space.of({"a": [0, 1], "b": np.array([0, 5]), "c": (0, 9)}) == named
    assert Space.of({"a": ["x", "y"], "b": [16, 32, 64], "c": [0, "auto"], "d": [True, False]}) == Space.of(
        {"a": Categorical(["x", "y"]), "b": Categorical([16, 32, 64]), "c": Categorical([0, "auto"]),
         "d": Categorical([True, False])}
    )  # fmt: skip


def test_names_of_other_libraries_are_told_ours() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Real', use Float"):
        _ = mctsvs.Real


@pytest.mark.needs("pandas")
def test_bounds_in_a_table() -> None:
    import pandas

    named = Space.of({"a": (0.0, 1.0), "b": (0.0, 5.0), "c": (0.0, 9.0)})
    assert Space.of(pandas.DataFrame({"a": [0, 1], "b": [0, 5], "c": [0, 9]})) == named
    rows = {"low": [0, 0, 0], "high": [1, 5, 9]}
    assert Space.of(pandas.DataFrame(rows, index=["a", "b", "c"])) == named
    assert Space.of(pandas.DataFrame(rows)) == Space.of([(0.0, 1.0), (0.0, 5.0), (0.0, 9.0)])
    with pytest.raises(InputError, match="give the columns low and high with a row for each variable"):
        Space.of(pandas.DataFrame({"a": [0, 1, 2]}))


@pytest.mark.needs("torch")
def test_bounds_in_a_tensor() -> None:
    import torch

    assert Space.of(torch.tensor([[0.0, 1.0]] * 3)) == Space.of([(0.0, 1.0)] * 3)
    with pytest.raises(InputError, match="transpose them"):
        Space.of(torch.tensor([[0.0] * 5, [1.0] * 5]))


def test_specs_that_mean_the_same_are_equal() -> None:
    ours = {
        "a": Float(0, 1, step=0.25),
        "b": Integer(1, 9, log=True),
        "c": Categorical(["x", "y"]),
        "d": (0, 1),
    }
    optuna = {
        "a": FloatDistribution(0, 1, step=0.25),
        "b": IntDistribution(1, 9, log=True),
        "c": CategoricalDistribution(("x", "y")),
        "d": FloatDistribution(0, 1),
    }
    assert Space.of(ours) == Space.of(optuna)
    assert Space.of([(0, 1), (2, 3)]) == Space.of(np.array([[0, 1], [2, 3]]))
    assert Space.of([(0, 1), (2, 3)]) == Space.of([Float(0, 1), (2, 3)])
    assert Space.of({"x0": (0, 1)}) != Space.of([(0, 1)])
    assert Space.of({"x0": (0, 1)}).named
    assert not Space.of([(0, 1)]).named
    assert Space.of([(0, 1)]) != "a space"


def test_numpy_numbers_are_saved_as_plain_ones() -> None:
    stepped = Float(np.float64(0), np.float64(1), step=np.float64(0.5))
    space = Space.of([stepped, Categorical(np.arange(3).tolist())])
    assert Space.from_state(through_json(space.to_state())) == space
    integer = Integer(np.int64(1), np.int64(5))  # type: ignore[arg-type]
    assert Space.from_state(through_json(Space.of([integer]).to_state())) == Space.of([Integer(1, 5)])
    assert type(Space.of({"c": Categorical(np.arange(3))}).params(np.eye(3)[1])["c"]) is int  # type: ignore[arg-type]


def test_view_of_a_box() -> None:
    space = Space.of([(0, 1), (2, 3), (4, 5)])
    assert space.names == ("x0", "x1", "x2")
    assert space.variables[-1] == Float(4, 5)
    assert list(space.variables[1:]) == [Float(2, 3), Float(4, 5)]


def test_later_changes_to_the_bounds_do_not_reach_the_space() -> None:
    bounds = np.array([[0.0, 1.0]])
    space = Space.of(bounds)
    bounds[:] = 7.0
    assert space.variables[0] == Float(0, 1)


def test_ends_and_bins() -> None:
    u = np.linspace(0, 1, 12, endpoint=False)[:, None]
    assert np.unique(Space.of([Integer(-1, 2)]).decode(u), return_counts=True)[1].tolist() == [3, 3, 3, 3]
    assert Space.of([Integer(-1, 2)]).snap(np.array([0.3])) == 0.375
    assert Space.of([Integer(0, 9, step=4)]).decode(u).max() == 8
    assert len(np.unique(Space.of([Float(0, 0.3, step=0.1)]).decode(u))) == 4
    assert Space.of([Float(0.1, 0.7)]).decode(np.array([1.0])) == 0.7
    assert Space.of([Float(1e-3, 10, log=True)]).decode(np.array([0.5])) == pytest.approx(0.1)
    assert Space.of([Float(1.0, 1.7976931348623157e308, log=True)]).decode(np.array([1.0])) < math.inf
    assert Space.of([Categorical(["only"])]).snap(np.array([0.0])) == 1.0
    tie = Space.of([Categorical([1, 2, 3])])
    assert tie.snap(np.array([0.2, 0.7, 0.7])).tolist() == [0, 1, 0]


def test_values_near_the_grid_are_accepted() -> None:
    space = Space.of({"a": Float(0, 1, step=0.1), "b": Categorical([(1, 2), "z"])})
    params = space.params(space.encode_params({"a": 0.3, "b": [1, 2]}))
    assert params == {"a": pytest.approx(0.3), "b": (1, 2)}


@settings(max_examples=20)
@given(st.integers(1, 2**40 - 1))
def test_large_whole_numbers_survive(value: int) -> None:
    space = Space.of({"a": Integer(1, 2**40, log=True), "b": Integer(-(2**40), 2**40)})
    assert space.params(space.encode_params({"a": value, "b": -value})) == {"a": value, "b": -value}


BAD_VARIABLES: list[tuple[Callable[[], object], str]] = [
    (lambda: Float(5, 2), r"bounds \(5, 2\) are reversed: the low bound must be smaller than the high bound"),
    (lambda: Float(3, 3), r"\(3, 3\) are equal"),
    (lambda: Integer(3, 3), r"\(3, 3\) are equal"),
    (lambda: Float(math.nan, 1), "nan.* finite"),
    (lambda: Float(0, math.inf), "inf.* finite"),
    (lambda: Float(0, 10**400), r"bounds \(0, 1000.* finite"),
    (lambda: Float(False, True), "False, True.* finite"),
    (lambda: Float(-1.5e308, 1.5e308), "1.5e.?308.* too far apart"),
    (lambda: Float(0, 1, log=True), r"\(0, 1\).* larger than 0"),
    (lambda: Float(1, 2, log=True, step=0.5), "0.5 does not go with log=True"),
    (lambda: Float(1, 5, log=True, step=1), "step 1 does not go with log=True"),
    (lambda: Float(2**60, 2**60 + 1), f"{2**60}.* are equal"),
    (lambda: Float(0, 1, step=0), "step 0 must"),
    (lambda: Float(0, 1, step=3), "step 3 must"),
    (lambda: Float(0, 1, step=1e-15), "step 1e-15 must"),
    (lambda: Float(0, 1, step=math.nan), "step nan must"),
    (lambda: Integer(0.5, 2), "0.5 must be a whole number"),  # type: ignore[arg-type]
    (lambda: Integer("a", 2), "'a' must be a whole number"),  # type: ignore[arg-type]
    (lambda: Integer(0, 2**41), f"{2**41} must be a whole number"),
    (lambda: Integer(0, 9, step=0), "step 0 must"),
    (lambda: Integer(0, 9, step=10), "step 10 must"),
    (lambda: Integer(0, 5, log=True), r"\(0, 5\).* larger than 0"),
    (lambda: Integer(1, 5, log=True, step=2), "step 2 does not go"),
    (lambda: Categorical([]), r"\[\] must be a list of at least one"),
    (lambda: Categorical("abc"), "'abc' must be a list"),
    (lambda: Categorical({"a"}), "'a'.* must be a list"),  # type: ignore[arg-type]
    (lambda: Categorical(["a", "b", "a"]), "'a' is there twice"),
    (lambda: Categorical([1, True]), "True is there twice"),
    (lambda: Categorical([math.nan]), "nan must be"),
    (lambda: Categorical([[1], [2]]), r"\[1\] must be"),
]


@pytest.mark.parametrize(("make", "sentence"), BAD_VARIABLES)
def test_bad_variables(make: Callable[[], object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        make()


BAD_SPECS: list[tuple[object, str]] = [
    ([(0, 1), (5, 2)], r"variable 'x1': bounds \(5, 2\) are reversed"),
    (np.array([[0, 1], [math.nan, 2]]), r"variable 'x1': bounds \(nan, 2.0\)"),
    (np.array([[-1.5e308, 1.5e308]]), "variable 'x0': .*1.5e.?308.*far apart"),
    ([(0, 1), (0, 1, 2)], r"variable 'x1': \(0, 1, 2\) must"),
    ([(0, 1), "ab"], "variable 'x1': 'ab' must"),
    ([(0, 1), (0, "b")], "variable 'x1': .*'b'.* finite"),
    ((0, 1), "variable 'x0': 0 must"),
    ({"rate": (5, 2)}, r"variable 'rate': bounds \(5, 2\) are reversed"),
    ({"rate": ("a", "b")}, "variable 'rate': .*'a', 'b'"),
    ({"rate": (0, None)}, r"variable 'rate': bounds \(0, None\) must be two finite numbers"),
    ({"rate": (1e-6, 1e-1, "log-uniform")}, r"variable 'rate': .* must be a \(low, high\) pair or a variable: Float"),
    (np.zeros((2, 5)), r"shape \(2, 5\) .* transpose them: bounds.T"),
    ([[0, 0, 0], [1, 1, 1]], r"shape \(2, 3\) .* transpose them: bounds.T"),
    (np.zeros((5, 3)), r"shape \(5, 3\) cannot be used: they must be \(variables, 2\)"),
    (Bounds([0.0, 0.0], [1.0, np.inf]), r"variable 'x1': bounds \(.*0.0.*, .*inf.*\) must be two finite numbers"),
    ({"rate": 7}, "variable 'rate': 7 must"),
    ({"rate": FloatDistribution(1, 1)}, r"variable 'rate': bounds \(1, 1\) are equal"),
    ({"kind": CategoricalDistribution(())}, "variable 'kind': choices"),
    ({3: (0, 1)}, "variable name 3 must be a string"),
    ([], "0 variables"),
    ({}, "0 variables"),
    (np.zeros((0, 2)), "0 variables"),
    ("abc", "'abc' must be a list"),
    (7, "7 must be a list"),
    (np.array(7.0), "7.* must be a list"),
    (np.array([[0, 1], [0.5, 0.2]]), r"variable 'x1': bounds \(0.5, 0.2\) are reversed"),
    (np.array([[0, 1], [0.5, 0.5]]), r"variable 'x1': bounds \(0.5, 0.5\) are equal"),
]


@pytest.mark.parametrize(("spec", "sentence"), BAD_SPECS)
def test_bad_specs(spec: object, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Space.of(spec)


SPACE = Space.of({"rate": (0, 1), "n": Integer(0, 8, step=2), "kind": Categorical(["a", "b"])})


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"rate": 1.5}, "variable 'rate': value 1.5 must fit Float"),
        ({"rate": math.nan}, "variable 'rate': value nan"),
        ({"rate": "high"}, "variable 'rate': value 'high'"),
        ({"n": 10}, "variable 'n': value 10"),
        ({"n": -2}, "variable 'n': value -2"),
        ({"n": 3}, "variable 'n': value 3"),
        ({"n": 2.5}, "variable 'n': value 2.5"),
        ({"n": True}, "variable 'n': value True"),
        ({"kind": "z"}, r"variable 'kind': value 'z' must fit Categorical\(choices=\('a', 'b'\)\)"),
        ({"kind": {}}, "variable 'kind': value {}"),
        ({"extra": 1}, "variable 'extra' is not in the space"),
    ],
)
def test_bad_params(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        SPACE.encode_params({"rate": 0.5, "n": 4, "kind": "a", **changes})


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: SPACE.encode_params({"rate": 0.5, "n": 4}), "variable 'kind' is missing"),
        (lambda: SPACE.encode_params(3), "3 must be a dict"),  # type: ignore[arg-type]
        (lambda: SPACE.encode(np.array([0.5, 4])), r"x has shape \(2,\): it must be \(3,\)"),
        (lambda: SPACE.encode(np.array([0.5, 4, 2])), "variable 'kind': value 2.0"),
        (lambda: SPACE.encode(np.array([[0.5, 4, 1], [0.5, 4, 0.5]])), "variable 'kind': value 0.5"),
        (lambda: SPACE.encode(np.array([math.nan, 4, 1])), r"x has nan at \[0\]"),
        (lambda: SPACE.decode(np.array([0.5, 0.5])), r"u has shape \(2,\): it must be \(4,\)"),
        (lambda: SPACE.snap(np.array([0.5, 0.5, math.nan, 0.5])), r"u has nan at \[2\]"),
        (lambda: SPACE.params(np.zeros((2, 4))), r"shape \(2, 4\)"),
    ],
)
def test_bad_points(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        call()


def test_large_boxes_are_fast() -> None:
    # Ten times the limits we aim at, best of five, so that a busy machine does not fail this.
    bounds = np.stack([np.zeros(100_000), np.ones(100_000)], axis=1)
    u = np.random.default_rng(0).random(100_000)
    space = Space.of(bounds)

    def best(action: Callable[[], object]) -> float:
        times = []
        for _ in range(5):
            start = time.perf_counter()
            action()
            times.append(time.perf_counter() - start)
        return min(times)

    assert best(lambda: Space.of(bounds)) < 0.5
    assert best(lambda: space.decode(u)) < 0.02
    assert best(lambda: space.snap(u)) < 0.02
