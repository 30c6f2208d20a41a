"""Saved fields: what is dumped is plain data, and loads as what it was."""

from __future__ import annotations

import enum
import json
from collections import deque
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mctsvs.study.codec import pack, unpack
from mctsvs.testing import through_plain_data
from mctsvs.utils.state import Saved, dump, load
from mctsvs.utils.validation import Array, Indices, State


class Phase(enum.Enum):
    DESIGN = 1
    SEARCH = 2


@dataclass(frozen=True)
class Point:
    x: Array
    phase: Phase = Phase.DESIGN
    name: str | None = None


NUMBERS = st.floats(allow_nan=False)
PLAIN: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (int, st.integers(-(2**63), 2**63)),
    (float, NUMBERS),
    (bool, st.booleans()),
    (str, st.text()),
    (int | None, st.none() | st.integers()),
    (Phase, st.sampled_from(Phase)),
    (list[float], st.lists(NUMBERS)),
    (tuple[int, ...], st.lists(st.integers()).map(tuple)),
    (tuple[int, str], st.tuples(st.integers(), st.text())),
    (deque[int], st.lists(st.integers()).map(deque)),
    (dict[int, float], st.dictionaries(st.integers(), NUMBERS)),
    (dict[tuple[int, int], list[str]], st.dictionaries(st.tuples(st.integers(), st.integers()), st.lists(st.text()))),
]


@pytest.mark.parametrize(("kind", "values"), PLAIN, ids=lambda item: str(item)[:40])
@given(data=st.data())
def test_plain_values_come_back_as_they_were(kind: Any, values: st.SearchStrategy[Any], data: st.DataObject) -> None:
    value = data.draw(values)
    again = load(kind, json.loads(json.dumps(dump(value))))
    assert again == value
    assert type(again) is type(value)


@given(st.lists(NUMBERS, min_size=1), st.sampled_from(Phase), st.none() | st.text())
def test_dataclasses_and_arrays_come_back_through_the_file_format(
    x: list[float], phase: Phase, name: str | None
) -> None:
    point = Point(np.array(x), phase, name)
    again = load(Point, unpack(pack(dump(point))))
    assert again.x.tobytes() == point.x.tobytes()
    assert (again.phase, again.name) == (phase, name)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.intp, np.bool_])
@pytest.mark.parametrize("shape", [(0, 3), (2, 3), (4,)])
def test_arrays_keep_their_type_and_shape(dtype: Any, shape: tuple[int, ...]) -> None:
    array = np.ones(shape, dtype)
    again = load(Array, through_plain_data(dump(array)))
    assert again.dtype == dtype
    assert again.shape == shape
    assert again.flags.writeable
    assert not np.shares_memory(again, array)


class Inner(Saved):
    saved = ("count",)
    count: int

    def __init__(self, count: int) -> None:
        self.count, self.cache = count, "not saved"


class Base(Saved):
    saved: ClassVar[tuple[str, ...]] = ("rng", "inner")
    rng: np.random.Generator
    inner: Inner

    def __init__(self, seed: int) -> None:
        self.rng, self.inner = np.random.default_rng(seed), Inner(seed)


class Machine(Base):
    saved = ("rows", "points", "best")
    rows: dict[int, Indices]
    points: deque[Point]
    best: Point | None

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.rows, self.points, self.best = {}, deque(), None

    def step(self) -> float:
        x = self.rng.random(2)
        self.points.append(Point(x, Phase.SEARCH))
        self.best = self.points[0]
        self.inner.count += 1
        self.rows[self.inner.count] = np.arange(self.inner.count)
        return float(x[0])


def test_an_object_goes_on_from_its_state_bit_for_bit() -> None:
    one, two = Machine(1), Machine(2)
    one.step()
    inner = two.inner
    two.restore(unpack(pack(one.state())))
    assert two.inner is inner  # restored in place: others may hold it
    assert list(one.state()) == ["rng", "inner", "rows", "points", "best"]  # fields of bases first
    assert [one.step() for _ in range(5)] == [two.step() for _ in range(5)]
    assert two.rows[3].tolist() == [0, 1, 2]
    assert through_plain_data(one.state()).keys() == through_plain_data(two.state()).keys()


def test_a_state_taken_does_not_follow_the_object() -> None:
    machine = Machine(0)
    machine.step()
    state: State = machine.state()
    before = json.dumps(state, default=lambda array: array.tolist())
    machine.step()
    machine.rows[1 + 0][:] = 7
    assert json.dumps(state, default=lambda array: array.tolist()) == before


@dataclass
class Grown:
    """A class that got a field with a default after its state was written."""

    old: int
    new: list[int] = field(default_factory=list)


def test_a_missing_field_takes_its_default() -> None:
    assert load(Grown, {"old": 3}) == Grown(3, [])


def test_what_is_no_data_is_refused() -> None:
    with pytest.raises(TypeError, match="function cannot be saved"):
        dump(lambda: 0)
