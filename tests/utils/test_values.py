"""What is a number and what is a bool, of any library: said once, and so the same wherever one is read."""

from __future__ import annotations

import contextlib
import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, NonlinearConstraint

from mctsvs import Boolean, Categorical, Float, Integer, Optimizer, Ordinal, Study, minimize
from mctsvs.utils.validation import InputError, as_bool, as_number, as_value, check_bool, check_count, check_number


class Raising:
    """An object whose own methods fail, whatever is asked of it."""

    def __float__(self) -> float:
        raise RuntimeError("no")

    __len__ = __bool__ = __array__ = __repr__ = __float__  # type: ignore[assignment]


class Gradient:
    """Like a tensor that numpy may not read, and `float` may."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("requires grad")

    def __float__(self) -> float:
        return 0.5

    def __repr__(self) -> str:
        return "Gradient()"  # the same in every process, as names of tests must be


NUMBERS = [0.5, Decimal("0.5"), Fraction(1, 2), np.float32(0.5), np.array(0.5), np.array([[0.5]]), [0.5], (0.5,)]
NUMBERS += [np.ma.array([0.5]), np.array(Decimal("0.5"), dtype=object), Gradient()]
MISSING = [
    None,
    math.nan,
    np.ma.masked,
    np.ma.array(3.0, mask=True),
    np.ma.array([3], mask=[True]),
    np.ma.mean(np.ma.array([1.0], mask=True)),
]
OTHERS = [
    True,
    np.True_,
    np.array([True]),
    np.array(True, dtype=object),
    "0.5",
    b"1",
    np.array("0.5", dtype=object),
    1j,
]
OTHERS += [
    np.complex128(1),
    np.array(1j, dtype=object),
    [],
    {},
    {"loss": 1.0},
    (0.5, 0.5),
    np.zeros(2),
    Raising(),
    object(),
]
OTHERS += [
    np.datetime64("2020", "ns"),
    np.timedelta64(5, "ns"),
    np.ma.array([1, 2], mask=True),
    [[1.0], [2.0, 3.0]],
    float,
]


@pytest.mark.parametrize("value", NUMBERS, ids=lambda v: type(v).__name__)
def test_numbers(value: Any) -> None:
    assert as_number(value) == as_value(value) == check_number("n", value) == 0.5


@pytest.mark.parametrize("value", MISSING, ids=lambda v: type(v).__name__)
def test_missing(value: Any) -> None:
    assert math.isnan(as_number(value) or 0.0)
    assert math.isnan(as_value(value))
    with pytest.raises(InputError, match=r"^n=.* cannot be used: it must be a number"):
        check_number("n", value)


@pytest.mark.parametrize("value", OTHERS, ids=lambda v: type(v).__name__)
def test_others(value: Any) -> None:
    assert as_number(value) is None
    with pytest.raises(InputError, match="is not a number"):
        as_value(value)
    with pytest.raises(InputError, match="must be a whole number"):
        check_count("n", value)


@pytest.mark.parametrize("sign", [1, -1])
def test_beyond_all_floats(sign: int) -> None:
    for value in (sign * 10**400, Fraction(sign * 10**400), Decimal(sign) * Decimal("1e400"), [sign * 10**400]):
        assert as_number(value) == sign * math.inf
        assert math.isnan(as_value(value))
    assert check_count("n", 10**400) == 10**400


@pytest.mark.parametrize("value", [(0.2, 2.5), [1, 2, 3], np.array([0.2, 2.5])], ids=repr)
def test_several_values(value: Any) -> None:
    with pytest.raises(InputError, match=r"one objective only, and measured constraints are \(value, \{name: number"):
        as_value(value)


def test_bools() -> None:
    assert as_bool(True) is as_bool(np.True_) is as_bool(np.array(True)) is True
    assert check_bool("b", False) is as_bool(np.False_) is as_bool(np.array(3) < 2) is False
    for other in (0, 1.0, None, math.nan, "no", [False], (False, "why"), np.array([True]), np.ma.masked, Raising()):
        assert as_bool(other) is None
        with pytest.raises(InputError, match=r"^b=.* cannot be used: it must be True or False"):
            check_bool("b", other)


@pytest.mark.parametrize("value", [*MISSING, *OTHERS, *NUMBERS], ids=lambda v: type(v).__name__)
def test_a_value_is_the_same_in_every_way_in(value: Any, tmp_path: Path) -> None:
    """As a function's value, told by hand, and as a measured constraint: a number, a failure, or refused; never 0."""
    number = as_number(value)

    def told(owner: Optimizer | Study, what: Any, **more: Any) -> str:
        try:
            owner.tell(owner.ask()[0], what, **more)
        except InputError:
            return "refused"
        return repr(owner.trials[-1].value)

    def returned(what: Any, study: Path | None) -> str:
        answers = iter([0.25, what])
        with pytest.raises(InputError) if number is None and study is None else contextlib.nullcontext():
            result = minimize(lambda x: next(answers), [(0, 1)], budget=2, method="random", study=study)
            return repr(result.trials[1].value)
        return "refused"

    expected = "refused" if number is None else repr(number)
    assert told(Optimizer([(0, 1)], method="random"), value) == expected
    with Study(tmp_path / "told.db", [(0, 1)], method="random") as study:
        assert told(study, value) == expected
    assert returned(value, None) == expected
    assert returned(value, tmp_path / "run.db") == ("nan" if number is None else expected)
    opt = Optimizer([(0, 1)], method="random")
    assert (told(opt, 0.25, constraints={"c": value}) == "refused") == (number is None)
    assert opt.trials[0].feasible is False
    if number is not None:
        assert repr((opt.trials[0].constraints or {})["c"]) == expected


def test_points_with_what_is_no_number_are_refused() -> None:
    for point in (np.ma.array([0.1, 0.2], mask=[False, True]), [0.1, None], ["0.1", "0.2"], [0.1, 1j], [[0.1], 0.2]):
        with pytest.raises(InputError):
            Optimizer([(0, 1)] * 2).enqueue([point])
    for value in (np.ma.masked, None, "0.5", 1j, True):
        with pytest.raises(InputError):
            Optimizer({"a": (0, 1)}).enqueue([{"a": value}])
    opt = Optimizer([(0, 1)] * 2)
    opt.enqueue([[Decimal("0.5"), Fraction(1, 4)], np.ma.array([0.5, 0.5])])
    assert [trial.x.tolist() for trial in opt.ask(2)] == [[0.5, 0.25], [0.5, 0.5]]
    with pytest.raises(InputError, match="two finite numbers"):
        Optimizer(np.ma.array([[0.0, 1.0], [0.0, 1.0]], mask=[[False, False], [False, True]]))


def test_two_objectives_cost_one_evaluation(tmp_path: Path) -> None:
    for more in ({}, {"study": tmp_path / "a.db"}, {"workers": 1}):
        with pytest.raises(InputError, match="there is one objective only"):
            minimize(lambda x: (float(x[0]), 2.5), [(0, 1)], budget=30, method="random", **more)
    with Study(tmp_path / "a.db", [(0, 1)], method="random") as study:
        assert study.evaluated == 0
        assert study.optimize(lambda x: float(x[0]), 3).value is not None  # the mended function goes on
        assert study.evaluated == 3


@pytest.mark.parametrize("half", [Decimal("0.5"), Fraction(1, 2), np.float32(0.5), np.array(0.5), Gradient()], ids=repr)
def test_a_number_of_any_library_may_be_an_argument(half: Any, tmp_path: Path) -> None:
    assert Float(half, 1) == Float(0.5, 1)
    assert Float(0, 2, step=half) == Float(0, 2, step=0.5)
    low: Any = np.array(1)
    high: Any = Decimal(9)
    assert Integer(low, high) == Integer(1, 9)
    assert {type(end) for end in Integer(low, high).ends} == {int}
    assert Optimizer([(0, 1), (-1, half)]).space.bounds.tolist() == [[0.0, 1.0], [-1.0, 0.5]]
    more: dict[str, Any] = {"method": "mcts-vs-bo", "cp": half, "target": half, "max_seconds": 100 + as_value(half)}
    result = minimize(lambda x: 0.25, [(0, 1)] * 2, budget=3, noise=half, timeout=half, **more)
    assert result.message == "1 of 3 evaluations, the target 0.5 was reached"
    for _ in range(2):
        with Study(tmp_path / "a.db", [(0, 1)], method="random", noise=half) as study:
            assert study.optimizer.noise == 0.5
    known = minimize(lambda x: 0.25, [(0, 1)] * 2, budget=2, x0=[np.array(0.5), 0.25])
    assert known.trials[0].x.tolist() == [0.5, 0.25]


def test_a_vector_that_numpy_may_not_read_is_read_as_a_list() -> None:
    class Gradients(Gradient):
        def tolist(self) -> list[float]:
            return [0.5, 0.25]

    point: Any = Gradients()
    opt = Optimizer([(0, 1)] * 2, constraints=NonlinearConstraint(lambda x: point, 0, 1))
    opt.enqueue([point])
    assert opt.ask()[0].x.tolist() == [0.5, 0.25]
    with pytest.raises(InputError, match=r"is not a point: give a vector, or a dict of name -> value"):
        opt.enqueue([[point, Raising()]])


def test_masked_limits_and_bounds_are_refused() -> None:
    """Also where numpy would take what lies under the mask."""
    masked = np.ma.array([0.0, 1.0], mask=[True, False])
    for space in ([masked, masked], {"a": masked}, [(0, 1), (np.ma.masked, 1)]):
        with pytest.raises(InputError, match="must be two finite numbers"):
            Optimizer(space)
    with pytest.raises(InputError, match="choice masked must be"):
        Optimizer({"a": np.ma.array([1, 2, 3], mask=[False, False, True])})
    for wrong, words in (
        (LinearConstraint(np.ma.array([[1.0, 1.0]], mask=[[False, True]]), 0, 1), "must be finite"),
        (LinearConstraint(np.eye(2), [0, 0], [1, math.nan]), "give inf or -inf where there is none"),
        (NonlinearConstraint(lambda x: x, masked, 1), "give inf or -inf where there is none"),
        (NonlinearConstraint(lambda x: x, 0, [1, math.nan]), "give inf or -inf where there is none"),
    ):
        with pytest.raises(InputError, match=words):
            Optimizer([(0, 1)] * 2, constraints=wrong)


def test_a_message_is_one_line() -> None:
    class Tall:
        def __repr__(self) -> str:
            return "two\nlines"

    for wrong in (
        lambda: Integer(0, Tall()),  # type: ignore[arg-type]
        lambda: check_count("n", Tall()),
        lambda: Float(0, 1, default=Tall()),
        lambda: Optimizer([(0, 1)]).enqueue(Tall()),  # type: ignore[arg-type]
    ):
        with pytest.raises(InputError, match=r"two\\nlines") as caught:
            wrong()
        assert str(caught.value).isprintable()


@pytest.mark.parametrize("value", [np.array([1, 2]), {2}, {}, Raising(), "2", None], ids=lambda v: type(v).__name__)
def test_what_is_no_choice_is_refused(value: Any) -> None:
    for variable in (Categorical([1, 2, 3]), Ordinal([1, 2, 4]), Boolean()):
        with pytest.raises(InputError, match=r"variable 'a': value .* must fit"):
            Optimizer({"a": variable}).enqueue([{"a": value}])
