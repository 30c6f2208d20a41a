"""A case: a method with the options that tell it from others in the same comparison; as text, one word.

mcts-vs-bo                  the library's defaults
mcts-vs-bo[cp=0.1,k=10]     with options
mcts-vs-bo[paper]           as the paper set it: see `mctsvs.lab.run.paper_options`

Text is read where it comes in, on the command line; everything behind it passes cases on.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mctsvs.common import InputError
from mctsvs.lab import contenders
from mctsvs.lab.run import Progress, Record, Setting
from mctsvs.problems import Problem

PAPER = "paper"


@dataclass(frozen=True)
class Case:
    """A method and its options; equal if they would run the same."""

    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    paper: bool = False

    @property
    def label(self) -> str:
        """The word it is written as; `parse` reads it back."""
        inside = [PAPER] if self.paper else []
        inside += [f"{name}={_written(value)}" for name, value in self.options.items()]
        return self.method + (f"[{','.join(inside)}]" if inside else "")

    def __hash__(self) -> int:
        return hash(self.label)

    @property
    def contender(self) -> contenders.Contender:
        """What is run."""
        return contenders.find(self.method)

    def with_options(self, options: Mapping[str, Any], paper: bool = False) -> Case:
        """The same with further options where it does not set them itself; `paper` where the paper sets anything."""
        return Case(self.method, {**options, **self.options}, self.paper or (paper and self.contender.in_paper))

    def check(self, problem: Problem) -> None:
        """Raises `InputError` if the case cannot be run on the problem: an option's value, a missing library."""
        contender = self.contender
        contender.check(self.options, problem, self.paper)
        d = self.options.get("d")
        if d is not None and not contender.checks_d and d > problem.dimension:
            raise InputError(f"d={d} in {self.label!r} is too large: {problem.name} has {problem.dimension} variables")

    def run(
        self,
        problem: Problem,
        *,
        budget: int,
        seed: int,
        variation: Mapping[str, Any] | None = None,
        progress: Progress | None = None,
    ) -> Record:
        """Run it once."""
        setting = Setting(problem.name, self.method, seed, budget, dict(self.options), dict(variation or {}))
        return self.contender.run(problem, setting, self.paper, progress)


def parse(text: str) -> Case:
    """The case that `text` writes; the method and the names of its options exist."""
    word, bracket, rest = text.strip().partition("[")
    if bracket and not rest.endswith("]"):
        raise InputError(f"{text!r} is no method with options: write NAME[OPTION=VALUE,...], with the bracket closed")
    contender, paper = contenders.find(word.strip()), False
    known = contender.options
    options: dict[str, Any] = {}
    for part in split(rest[:-1]) if bracket else []:
        name, equals, value = part.partition("=")
        if part == PAPER and not contender.in_paper:
            raise InputError(
                f"{text!r} is no case: the paper sets nothing of {contender.name!r}, so leave out {PAPER!r}"
            )
        if part == PAPER:
            paper = True
        elif not (name and equals):
            raise InputError(f"{part!r} in {text!r} is no option: write OPTION=VALUE, or {PAPER}")
        elif name not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise InputError(f"method {contender.name!r} has no option {name!r}: {has}")
        else:
            options[name] = literal(value)
    return Case(contender.name, options, paper)


def split(text: str) -> list[str]:
    """The parts between commas that are not inside brackets or quotes; empty parts are left out."""
    parts, depth, quote, escaped = [""], 0, "", False
    for letter in text:
        if quote:
            quote = "" if letter == quote and not escaped else quote
            escaped = letter == "\\" and not escaped
        elif letter in "\"'":
            quote = letter
        else:
            depth += {"[": 1, "(": 1, "]": -1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def literal(text: str) -> Any:
    """A Python literal; anything else is a string."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _written(value: Any) -> str:
    plain_word = isinstance(value, str) and re.fullmatch(r"[\w.-]+", value, re.ASCII) and literal(value) == value
    return str(value) if plain_word else repr(value)


def plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as JSON knows them, for keys and messages between processes."""
    try:
        converted: dict[str, Any] = json.loads(json.dumps(dict(options), allow_nan=False))
    except (TypeError, ValueError):
        raise InputError(f"options {dict(options)!r} cannot be stored: use numbers, words, lists, None") from None
    return converted
