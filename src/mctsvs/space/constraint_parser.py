"""Linear conditions as text: `x1 + 2*x2 <= 100`, read by a small parser of its own; nothing is ever executed.

condition   sum (<= | >=) sum [(<= | >=) sum]        0 <= a - b <= 10 is two conditions
sum         [+ | -] product {(+ | -) product}
product     factor {(* | /) factor}                  at most one factor has a variable in it
factor      number | name | 'any name' | ( sum ) | - factor | sum(first : last)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from mctsvs.utils.validation import InputError, closest

TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[^\W\d][\w.]*)|'(?P<quoted>[^']*)'"
    r"|(?P<sign><=|>=|==|!=|\*\*|[-+*/()<>=:^≤≥]))"
)
RELATIONS = {"<=": 1.0, ">=": -1.0, "≤": 1.0, "≥": -1.0}
REFUSED = {
    "==": "an equality leaves no room for points: solve it for one variable, and leave that out of the space",
    "<": "write <=, which is the same for real numbers",
    ">": "write >=, which is the same for real numbers",
    "**": "powers are not linear: give a function of the point instead",
}
REFUSED |= {"=": REFUSED["=="], "!=": "write <= or >=", "^": REFUSED["**"]}


@dataclass(frozen=True)
class Affine:
    """A number plus multiples of variables, by their positions."""

    constant: float
    terms: dict[int, float]

    def plus(self, other: Affine, factor: float = 1.0) -> Affine:
        terms = dict(self.terms)
        for v, c in other.terms.items():
            terms[v] = terms.get(v, 0.0) + factor * c
        return Affine(self.constant + factor * other.constant, terms)

    def times(self, factor: float) -> Affine:
        return Affine(factor * self.constant, {v: factor * c for v, c in self.terms.items()})


@dataclass(frozen=True)
class Condition:
    """terms <= limit, of the variables at these positions; `sign` is -1 where it was written with >=."""

    terms: dict[int, float]
    limit: float
    sign: float


def parse(text: str, names: Sequence[str], constants: Mapping[str, float] | None = None) -> list[Condition]:
    """The conditions that a text states of the variables of these names; others have one value alone."""
    return _Reader(text, names, constants or {}).conditions()


class _Reader:
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

    def conditions(self) -> list[Condition]:
        sides, relations = [self.sum()], []
        while (relation := self.take(*RELATIONS, *REFUSED)) is not None:
            if relation in REFUSED:
                self.fail(REFUSED[relation])
            relations.append(relation)
            sides.append(self.sum())
        if self.tokens[self.at][0] != "end":
            self.fail(f"{self.tokens[self.at][1]!r} is not expected there")
        if not 1 <= len(relations) <= 2:
            self.fail("it needs one <= or >=, such as 'x1 + 2*x2 <= 100'")
        return [
            self.condition(left, right, RELATIONS[relation])
            for left, right, relation in zip(sides, sides[1:], relations, strict=False)
        ]

    def condition(self, left: Affine, right: Affine, sign: float) -> Condition:
        moved = left.plus(right, -1.0).times(sign)
        terms = {v: c for v, c in moved.terms.items() if c != 0.0}
        if not terms:
            self.fail("there is no variable in it")
        return Condition(terms, -moved.constant, sign)

    def sum(self) -> Affine:
        total = self.product()
        while (sign := self.take("+", "-")) is not None:
            total = total.plus(self.product(), 1.0 if sign == "+" else -1.0)
        return total

    def product(self) -> Affine:
        total = self.factor()
        while (sign := self.take("*", "/", "**", "^")) is not None:
            if sign in REFUSED:
                self.fail(REFUSED[sign])
            other = self.factor()
            if other.terms and (total.terms or sign == "/"):
                self.fail("variables are multiplied or divided, which is not linear: give a function of the point")
            if sign == "/" and other.constant == 0.0:
                self.fail("it divides by 0")
            if sign == "/":
                total = total.times(1.0 / other.constant)
            else:
                total = other.times(total.constant) if other.terms else total.times(other.constant)
        return total

    def factor(self) -> Affine:
        sign = self.take("+", "-", "(")
        if sign == "(":
            inner = self.sum()
            self.expect(")")
            return inner
        if sign is not None:
            return self.factor().times(1.0 if sign == "+" else -1.0)
        kind, word = self.tokens[self.at]
        self.at += 1
        if kind == "number":
            return Affine(float(word), {})
        if kind not in ("name", "quoted"):
            self.fail(f"a number or a variable is missing before {word or 'the end'!r}")
        if kind == "name" and self.take("("):
            return self.range(word)
        if word in self.constants:
            return Affine(self.constants[word], {})
        return Affine(0.0, {self.variable(word): 1.0})

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
        return Affine(0.0, dict.fromkeys(range(ends[0], ends[1] + 1), 1.0))

    def variable(self, name: str) -> int:
        if name not in self.names:
            meant = closest(name, self.names)
            self.fail(f"there is no variable {name!r}" + (f", did you mean {meant!r}?" if meant else " in the space"))
        return self.names[name]
