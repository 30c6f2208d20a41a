"""A case: a method with the options that tell it from others in the same comparison, written as one word.

mcts-vs-bo                  the library's defaults
mcts-vs-bo[cp=0.1,k=10]     with options
mcts-vs-bo[paper]           as the paper set it: see `mctsvs.lab.run.paper_options`
"""

from __future__ import annotations

import ast
import difflib
import importlib
import importlib.util
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mctsvs.common import InputError, check_count
from mctsvs import methods
from mctsvs.lab.run import Record, paper_options, run
from mctsvs.optimizer import Optimizer
from mctsvs.problems import Problem

PAPER = "paper"

# what is run beside the library's methods and is none of them: "module:function" here, and the modules it needs
REFERENCES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "sklearn-bo": ("sklearn_bo:run", ("sklearn",)),
    "ucb-all": ("theory:run", ()),
    "ucb-dropout": ("theory:run", ()),
    "ucb-mcts-vs": ("theory:run", ()),
}


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

    def with_options(self, options: Mapping[str, Any], paper: bool = False) -> Case:
        """The same with further options where it does not set them itself; `paper` where the paper sets anything."""
        paper = paper and self.method not in REFERENCES
        return Case(self.method, {**options, **self.options}, self.paper or paper)


def parse(text: str) -> Case:
    """The case that `text` writes; the method and the names of its options exist."""
    word, bracket, rest = text.strip().partition("[")
    if bracket and not rest.endswith("]"):
        raise InputError(f"{text!r} is no method with options: write NAME[OPTION=VALUE,...], with the bracket closed")
    method, paper = word.strip(), False
    known = options_of(method)
    options: dict[str, Any] = {}
    for part in split(rest[:-1]) if bracket else []:
        name, equals, value = part.partition("=")
        if part == PAPER and method in REFERENCES:
            raise InputError(f"{text!r} is no case: the paper sets nothing of {method!r}, so leave out {PAPER!r}")
        if part == PAPER:
            paper = True
        elif not (name and equals):
            raise InputError(f"{part!r} in {text!r} is no option: write OPTION=VALUE, or {PAPER}")
        elif name not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise InputError(f"method {method!r} has no option {name!r}: {has}")
        else:
            options[name] = literal(value)
    return Case(method, options, paper)


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


def options_of(method: str) -> tuple[str, ...]:
    """Names of the options of a method or reference."""
    if method not in REFERENCES:
        return methods.options_of(_find(method))
    return {"ucb-dropout": ("d",), "sklearn-bo": ("samples", "ard")}.get(method, ())


def _find(method: str) -> methods.Method:
    if method not in methods.METHODS:
        known = [*methods.METHODS, *REFERENCES]
        close = difflib.get_close_matches(method, known, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise InputError(f"unknown method {method!r}: {hint}The methods are {', '.join(known)}")
    return methods.find(method)


def missing(case: Case) -> list[str]:
    """Modules the case needs that are not installed."""
    if case.method in REFERENCES:
        return [module for module in REFERENCES[case.method][1] if importlib.util.find_spec(module) is None]
    return methods.missing(_find(case.method))


def check(case: Case, problem: Problem) -> None:
    """Raises `InputError` if the case cannot be run on the problem: an option's value, a missing library."""
    if case.method in REFERENCES:
        _check_reference(case, problem)
    else:
        chosen = paper_options(case.method, problem, case.options, case.paper)
        Optimizer(problem.space, direction=problem.direction, method=case.method, seed=0, **chosen)
        if methods.find(case.method).engine is not None:  # it has looked at its d itself
            return
    d = case.options.get("d")
    if d is not None and d > problem.dimension:
        raise InputError(f"d={d} in {case.label!r} is too large: {problem.name} has {problem.dimension} variables")


def _check_reference(case: Case, problem: Problem) -> None:
    if absent := missing(case):
        raise InputError(
            f"{case.method!r} needs {' and '.join(absent)}, not installed here: pip install 'mctsvs[sklearn]'"
        )
    if case.method.startswith("ucb-") and problem.optimum is None:
        raise InputError(f"{case.method!r} cannot be run on {problem.name}: the regret needs a known optimum")
    for name, value in case.options.items():
        if name != "ard":
            check_count(name, value)
        elif not isinstance(value, bool):
            raise InputError(f"ard={value!r} cannot be used: it must be True or False")


def execute(
    case: Case,
    problem: Problem,
    *,
    budget: int,
    seed: int,
    variation: Mapping[str, Any],
    progress: Callable[..., object] | None = None,
) -> Record:
    """Run the case once."""
    if case.method in REFERENCES:
        module, _, function = REFERENCES[case.method][0].partition(":")
        runner = getattr(importlib.import_module(f"mctsvs.lab.{module}"), function)
        record: Record = runner(
            problem,
            case.method,
            budget=budget,
            seed=seed,
            options=case.options,
            variation=variation,
            progress=progress,
        )
        return record
    return run(
        problem,
        case.method,
        budget=budget,
        seed=seed,
        options=case.options,
        variation=variation,
        faithful=case.paper,
        progress=progress,
        importance=False,
    )


def plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as JSON knows them, for keys and messages between processes."""
    try:
        converted: dict[str, Any] = json.loads(json.dumps(dict(options), allow_nan=False))
    except (TypeError, ValueError):
        raise InputError(f"options {dict(options)!r} cannot be stored: use numbers, words, lists, None") from None
    return converted
