"""Constraints that are known before a point is evaluated: what a user may write, and what becomes of it.

A text such as "x1 + 2*x2 <= 100" and a `scipy.optimize.LinearConstraint` become rows a x <= b over the vector of
natural units. A function of the point and a `scipy.optimize.NonlinearConstraint` become tests that a point passes or
does not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from reprlib import repr as short
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np

from mctsvs.space.space import Space
from mctsvs.space.variables import Categorical, Ordinal, as_float
from mctsvs.utils.validation import Array, InputError, as_bool, as_vector, closest

DIGITS = 12  # in which coefficients and limits differ


@dataclass(frozen=True, eq=False)
class Row:
    """coefficients x <= limit, of the vector in natural units."""

    name: str
    coefficients: Array  # (V,)
    limit: float
    sign: float = 1.0  # -1 where it was written with >=

    def complaint(self, x: Array) -> str:
        """What is wrong with x (V,) in words."""
        value, relation = self.sign * float(self.coefficients @ x), "<=" if self.sign > 0 else ">="
        return f"{self.name} does not hold: {value:.9g} is not {relation} {self.sign * self.limit:.9g}"


@dataclass(frozen=True)
class Test:
    """A function that says whether a point is allowed; it gets what the objective gets, or the vector."""

    name: str
    function: Callable[[Any], Any]
    low: Any = None  # limits of its value, where it has one
    high: Any = None

    def holds(self, space: Space, u: Array) -> bool:
        return self.allows(space.params(u) if space.named and self.low is None else space.decode(u))

    def allows(self, argument: Any) -> bool:
        """Of what the function gets: the dict of a space with names, or the vector; where it has limits, the vector."""
        if self.low is not None:
            value = self._value(argument)
            return bool(np.all((value >= self.low) & (value <= self.high)))
        answer = self.function(argument)
        holds = as_bool(answer)
        if holds is None:
            example = f"x[{next(iter(argument))!r}]" if isinstance(argument, Mapping) else "x[0]"
            raise InputError(
                f"{self.name} returned {short(answer)}: it must return True or False, as in "
                f"lambda x: 0.2 - {example} >= 0"
            )
        return holds

    def _value(self, x: Array) -> Array:
        """One number or several, with a limit for all or one for each."""
        answer = self.function(x)
        value = as_vector(answer)
        if value is None:
            raise InputError(f"{self.name} returned {short(answer)}: it must return numbers")
        if self.low.size not in (1, value.size):
            raise InputError(
                f"{self.name} has {self.low.size} limits and returned {value.size} numbers: give one limit for each"
            )
        return value

    def excess(self, space: Space, u: Array) -> float:
        """0 where it holds; else 1 and, where it has a value, how far that is beyond its limits."""
        if self.holds(space, u):
            return 0.0
        if self.low is None:
            return 1.0
        value = self._value(space.decode(u))
        beyond = float(np.nan_to_num(np.maximum(self.low - value, value - self.high), nan=np.inf).max())
        return 1.0 + beyond

    def complaint(self, space: Space, u: Array) -> str:
        if self.low is None:
            return f"{self.name} does not hold"
        return f"{self.name} does not hold: {self.function(space.decode(u))} is not from {self.low} to {self.high}"


def as_list(given: Any) -> list[Any]:
    """The constraints as a list; one alone may be given without a list."""
    if given is None:
        return []
    return list(given) if isinstance(given, list | tuple) else [given]


def made(given: Sequence[Any], space: Space) -> tuple[list[Row], list[Test]]:
    """The rows and the tests that the constraints stand for."""
    rows: list[Row] = []
    tests: list[Test] = []
    for i, item in enumerate(given, 1):
        kind = type(item).__name__  # scipy's optimisers take long to import
        if isinstance(item, str):
            rows += _stated(item, space)
        elif kind == "LinearConstraint":
            rows += _tabled(item, space, f"constraint {i}")
        elif kind == "NonlinearConstraint":
            tests.append(_tested(item, i, space))
        elif callable(item):
            tests.append(Test(f"constraint {i} ({_name(item)})", item))
        else:
            raise InputError(
                f"constraint {i} is {item!r:.60}: give a text such as 'x1 + 2*x2 <= 100', a function of the point, "
                f"or scipy's LinearConstraint or NonlinearConstraint"
            )
    for row in rows:
        _check_numbers(row, space)
    return _with_room(rows, space), tests


def stored(given: Sequence[Any]) -> list[Any]:
    """The constraints as plain data; of a function, only its name is stored."""
    plain: list[Any] = []
    for item in given:
        kind = type(item).__name__
        if isinstance(item, str):
            plain.append(item)
        elif kind == "LinearConstraint":
            plain.append({name: _dense(getattr(item, name)).tolist() for name in ("A", "lb", "ub")})
        else:
            plain.append({"function": _name(item.fun if kind == "NonlinearConstraint" else item)})
    return plain


class Unstored:
    """A function that a study names and does not hold: what was proposed is known to have satisfied it."""

    __name__ = "function"

    def __init__(self) -> None:
        self.repeating = True  # while the study is read

    def __call__(self, point: Any) -> bool:
        if not self.repeating:
            raise InputError("a function is among the constraints of this study: give it again with constraints=")
        return True


def given_again(plain: Sequence[Any], given: Any, otherwise: Unstored | None = None) -> list[Any]:
    """The constraints that were stored as `plain`. Functions are not stored: `otherwise`, or give them again."""
    if given is not None:
        if (now := stored(as_list(given))) != list(plain):
            raise InputError(f"the constraints {short(now)} are not those that were stored: {short(list(plain))}")
        return as_list(given)
    for item in plain:
        if isinstance(item, dict) and "function" in item and otherwise is None:
            raise InputError(
                f"the function {item['function']!r} is among the constraints, and functions are not stored: give all "
                f"of them again with constraints="
            )
    functions = [otherwise if "function" in item else item for item in plain]
    return [LinearConstraint(**item) if isinstance(item, dict) else item for item in functions]


class LinearConstraint(SimpleNamespace):
    """A `scipy.optimize.LinearConstraint` that is read from a file without scipy."""


def _stated(text: str, space: Space) -> list[Row]:
    constants = {name: as_float(variable.value) for name, variable in space.fixed.items()}
    constants = {name: value for name, value in constants.items() if math.isfinite(value)}
    rows = []
    for terms, limit, sign in _Reader(text, space.names, constants).conditions():
        a = np.zeros(len(space))
        a[list(terms)] = list(terms.values())
        rows.append(Row(repr(text), a, limit, sign))
    return rows


TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[^\W\d][\w.]*(?:\[\d+\])?)|'(?P<quoted>[^']*)'"
    r"|(?P<sign><=|>=|==|!=|\*\*|[-+*/()<>=:^≤≥]))"
)
RELATIONS = {"<=": (1.0,), ">=": (-1.0,), "≤": (1.0,), "≥": (-1.0,), "==": (1.0, -1.0)}
REFUSED = {
    "<": "write <=, which is the same for real numbers",
    ">": "write >=, which is the same for real numbers",
    "**": "powers are not linear: give a function of the point instead",
}
REFUSED |= {"=": "write ==", "!=": "write <= or >=", "^": REFUSED["**"]}
NO_ROOM = "an equality leaves no room for points beside continuous variables: solve it for one, and leave that out"
Affine = dict[int, float]  # a number plus multiples of variables: position -> coefficient
ONE = -1  # the position of the number


class _Reader:
    """Reads linear conditions by recursive descent; nothing is executed, and a sum may have any number of terms.

    condition   sum (<= | >= | ==) sum [(<= | >=) sum]   0 <= a - b <= 10 is two conditions, and so is a == b
    sum         product {(+ | -) product}
    product     factor {(* | /) factor}                  at most one factor has a variable in it
    factor      number | name | 'any name' | ( sum ) | - factor | + factor | sum(first : last)
    """

    def __init__(self, text: str, names: Sequence[str], constants: Mapping[str, float]) -> None:
        self.text, self.names, self.constants = text, {name: v for v, name in enumerate(names)}, constants
        self.tokens, self.at = [*self._tokens(), ("end", "")], 0

    def fail(self, why: str) -> NoReturn:
        raise InputError(f"the constraint {self.text!r:.120} cannot be used: {why}")

    def _tokens(self) -> list[tuple[str, str]]:
        found, at, end = [], 0, len(self.text.rstrip())
        while at < end:
            match = TOKEN.match(self.text, at)
            if match is None or match.lastgroup is None:
                self.fail(f"{self.text[at:].strip()[:1]!r} has no meaning there; write one such as 'x1 + 2*x2 <= 100'")
            found.append((match.lastgroup, match[match.lastgroup]))
            at = match.end()
        return found

    def take(self, *signs: str) -> str | None:
        """The next token, if it is one of these signs."""
        kind, word = self.tokens[self.at]
        if kind != "sign" or word not in signs:
            return None
        self.at += 1
        return word

    def expect(self, sign: str) -> None:
        if self.take(sign) is None:
            self.fail(f"{sign!r} is missing before {self.tokens[self.at][1] or 'the end'!r}")

    def conditions(self) -> list[tuple[Affine, float, float]]:
        """Terms, limit and sign of each: terms <= limit, and the sign is -1 where it was written with >=."""
        try:
            return self._conditions()
        except RecursionError:
            self.fail("it is nested too deeply")

    def _conditions(self) -> list[tuple[Affine, float, float]]:
        sides: list[Affine] = [self.sum()]
        signs: list[tuple[float, ...]] = []
        while (relation := self.take(*RELATIONS, *REFUSED)) is not None:
            if relation in REFUSED:
                self.fail(REFUSED[relation])
            signs.append(RELATIONS[relation])
            sides.append(self.sum())
        if self.tokens[self.at][0] != "end":
            self.fail(f"{self.tokens[self.at][1]!r} is not expected there")
        if not 1 <= len(signs) <= 2:
            self.fail("it needs one <= or >= or ==, such as 'x1 + 2*x2 <= 100'")
        found = []
        pairs = zip(sides, sides[1:], signs, strict=False)
        for left, right, sign in ((left, right, sign) for left, right, both in pairs for sign in both):
            moved = {v: sign * (left.get(v, 0.0) - right.get(v, 0.0)) for v in {**left, **right}}
            limit = 0.0 - moved.pop(ONE, 0.0)
            terms = {v: c for v, c in moved.items() if c != 0.0}
            if not terms:
                self.fail("there is no variable in it")
            found.append((terms, limit, sign))
        return found

    def sum(self) -> Affine:
        total: Affine = {}
        sign: str | None = "+"
        while sign is not None:
            for v, c in self.product().items():
                total[v] = total.get(v, 0.0) + (c if sign == "+" else -c)
            sign = self.take("+", "-")
        return total

    def product(self) -> Affine:
        total = self.factor()
        while (sign := self.take("*", "/", "**", "^")) is not None:
            if sign in REFUSED:
                self.fail(REFUSED[sign])
            other = self.factor()
            if other.keys() != {ONE}:
                if sign == "/" or total.keys() != {ONE}:
                    self.fail("variables are multiplied or divided, which is not linear: give a function of the point")
                total, other = other, total
            factor = other[ONE]
            if sign == "/" and factor == 0.0:
                self.fail("it divides by 0")
            factor = 1.0 / factor if sign == "/" else factor
            total = {v: factor * c for v, c in total.items()}
        return total

    def factor(self) -> Affine:
        sign = self.take("+", "-", "(")
        if sign == "(":
            inner = self.sum()
            self.expect(")")
            return inner
        if sign is not None:
            return {v: c if sign == "+" else -c for v, c in self.factor().items()}
        kind, word = self.tokens[self.at]
        self.at += 1
        if kind == "number":
            return {ONE: float(word)}
        if kind not in ("name", "quoted"):
            self.fail(f"a number or a variable is missing before {word or 'the end'!r}")
        if kind == "name" and self.take("("):
            return self.range(word)
        return {ONE: self.constants[word]} if word in self.constants else {self.variable(word): 1.0}

    def range(self, word: str) -> Affine:
        """sum(x0:x49), all variables from the one to the other."""
        if word != "sum":
            self.fail(f"{word} is not known: only sum(first:last) is; for anything else give a function of the point")
        ends = []
        for sign in (":", ")"):
            kind, name = self.tokens[self.at]
            if kind not in ("name", "quoted"):
                self.fail("sum takes the first and the last variable, such as sum(x0:x49)")
            self.at += 1
            ends.append(self.variable(name))
            self.expect(sign)
        if ends[0] > ends[1]:
            self.fail("the first variable of a sum comes after its last")
        return dict.fromkeys(range(ends[0], ends[1] + 1), 1.0)

    def variable(self, name: str) -> int:
        """The position of a variable; x[3] may be written for x3."""
        name = name if name in self.names else re.sub(r"\[(\d+)\]$", r"\1", name)
        if name not in self.names:
            meant = closest(name, self.names)
            self.fail(f"there is no variable {name!r}" + (f", did you mean {meant!r}?" if meant else " in the space"))
        return self.names[name]


def _tabled(item: Any, space: Space, name: str) -> list[Row]:
    table = np.atleast_2d(_dense(item.A))
    if table.ndim != 2 or table.shape[1] != len(space) or not np.isfinite(table).all():
        raise InputError(f"{name} has a matrix of shape {table.shape}: it must be finite, a column for each variable")
    low, high = (np.broadcast_to(limit, len(table)) for limit in _limits(item, name))
    rows = []
    for i, a in enumerate(table):
        if low[i] > high[i]:
            raise InputError(f"row {i} of {name} has limits {low[i]:g} and {high[i]:g}: the lower must not be larger")
        if not a.any():
            raise InputError(f"row {i} of {name} has no variable in it: leave it out")
        if high[i] < np.inf:
            rows.append(Row(f"row {i} of {name}", a, float(high[i])))
        if low[i] > -np.inf:
            rows.append(Row(f"row {i} of {name}", -a, -float(low[i]), -1.0))
    return rows


def _tested(item: Any, i: int, space: Space) -> Test:
    low, high = _limits(item, f"constraint {i}")
    if low.size != high.size and 1 not in (low.size, high.size):
        raise InputError(f"constraint {i} has {low.size} lower limits and {high.size} upper ones: give as many of both")
    if np.any(low > high) or (np.any(low == high) and not np.isfinite(space.sizes).all()):
        raise InputError(f"constraint {i} has limits {item.lb} and {item.ub}: the lower must be smaller")
    return Test(f"constraint {i} ({_name(item.fun)})", item.fun, *np.broadcast_arrays(low, high))


def _limits(item: Any, name: str) -> tuple[Array, Array]:
    low, high = _dense(item.lb), _dense(item.ub)
    if np.isnan(low).any() or np.isnan(high).any():
        raise InputError(f"{name} has limits {item.lb} and {item.ub}: give inf or -inf where there is none")
    return low, high


def _dense(values: Any) -> Array:
    found = as_vector(values.toarray() if hasattr(values, "toarray") else values)
    if found is None:
        raise InputError(f"{short(values)} cannot be part of a constraint: it must be numbers")
    return found


def _check_numbers(row: Row, space: Space) -> None:
    for v in np.flatnonzero(row.coefficients):
        variable = space.variables[int(v)]
        if isinstance(variable, Categorical) or (isinstance(variable, Ordinal) and not variable.numbers):
            kind = "category" if isinstance(variable, Categorical) else "ordinal"
            raise InputError(
                f"{row.name} has the {kind} {space.names[int(v)]!r} in it, which is no number: give a function of "
                f"the point instead"
            )


def _with_room(rows: Sequence[Row], space: Space) -> list[Row]:
    """The rows, of which two may leave a plane alone where their variables are discrete: an equality.

    It is forgiven the rounding of sums that are not whole numbers.
    """
    tightest: dict[bytes, tuple[float, int]] = {}  # limit and place, by direction
    loose: dict[int, float] = {}
    for i, row in enumerate(rows):
        length = float(np.abs(row.coefficients).max())
        direction, limit = (row.coefficients / length).round(DIGITS) + 0.0, row.limit / length  # no -0
        opposite, at = tightest.get((0.0 - direction).tobytes(), (math.inf, -1))
        if math.isclose(limit, -opposite, rel_tol=10.0**-DIGITS):
            about = np.flatnonzero(row.coefficients)
            if not np.isfinite(space.sizes[about]).all():
                names = [row.name] if row.name == rows[at].name else [rows[at].name, row.name]
                both = f" {names[0]}" if len(names) == 1 else f"s {' and '.join(names)} together"
                raise InputError(f"the constraint{both} cannot be used: {NO_ROOM}")
            values = np.concatenate(
                [
                    row.coefficients,
                    [row.limit],
                    *(space.nth(int(v), np.arange(min(2.0, space.sizes[v]))) for v in about),
                ]
            )
            largest = np.abs(row.coefficients) @ np.abs(space.bounds).max(axis=1)
            rounding = 0.0 if (values == np.rint(values)).all() else float(largest) * 10.0**-DIGITS
            loose[i] = loose[at] = rounding
        key = direction.tobytes()
        tightest[key] = min(tightest.get(key, (math.inf, -1)), (limit, i))
    return [replace(row, limit=row.limit + loose.get(i, 0.0)) for i, row in enumerate(rows)]


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
