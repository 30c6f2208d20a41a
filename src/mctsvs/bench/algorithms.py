"""What can be compared: the library's methods, and references that are run beside them and are none of them.

A configured method is a method with options; as text, one word:

mcts-vs-bo                  the library's defaults
mcts-vs-bo[cp=0.1,k=10]     with options
mcts-vs-bo[paper]           as the paper set it: see `mctsvs.bench.record.paper_options`

Text is read where it comes in, on the command line; everything behind it passes `ConfiguredMethod` on.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mctsvs.bench.problems import Problem
from mctsvs.bench.record import Progress, RunRecord, RunSettings, make_optimizer, paper_options, run
from mctsvs.methods import registry
from mctsvs.utils.validation import InputError, check_count

PAPER = "paper"


@dataclass(frozen=True)
class ConfiguredMethod:
    """A method and its options; two are equal if they would run the same.

    >>> parse("mcts-vs-bo[cp=0.1]").options
    {'cp': 0.1}
    """

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
    def algorithm(self) -> Algorithm:
        """What is run."""
        return find(self.method)

    def with_options(self, options: Mapping[str, Any], paper: bool = False) -> ConfiguredMethod:
        """The same with further options where it sets none itself; `paper`: as in the paper, if that sets anything."""
        return ConfiguredMethod(
            self.method, {**options, **self.options}, self.paper or (paper and self.algorithm.in_paper)
        )

    def check(self, problem: Problem) -> None:
        """Raises `InputError` if it cannot be run on the problem: an option's value, a missing library."""
        algorithm = self.algorithm
        algorithm.check(self.options, problem, self.paper)
        d = self.options.get("d")
        if d is not None and not algorithm.checks_d and d > problem.dimension:
            raise InputError(f"d={d} in {self.label!r} is too large: {problem.name} has {problem.dimension} variables")

    def run(
        self,
        problem: Problem,
        *,
        budget: int,
        seed: int,
        variation: Mapping[str, Any] | None = None,
        progress: Progress | None = None,
    ) -> RunRecord:
        """Run it once.

        Args:
            problem: What is optimised.
            budget: Number of evaluations.
            seed: Of everything random in the run.
            variation: How the problem was varied; it is only written into the record.
            progress: Called after each evaluation with the best value so far.

        Returns:
            The record of the run.
        """
        setting = RunSettings(problem.name, self.method, seed, budget, dict(self.options), dict(variation or {}))
        return self.algorithm.run(problem, setting, self.paper, progress)


def parse(text: str) -> ConfiguredMethod:
    """The configured method that `text` writes.

    Args:
        text: A name, with options in brackets if wanted: `mcts-vs-bo[cp=0.1,k=10]`.

    Returns:
        The method; its name and the names of its options are known to exist, their values are not checked.

    Raises:
        InputError: There is no such method or option, or a bracket is not closed.
    """
    word, bracket, rest = text.strip().partition("[")
    if bracket and not rest.endswith("]"):
        raise InputError(f"{text!r} is no method with options: write NAME[OPTION=VALUE,...], with the bracket closed")
    algorithm, paper = find(word.strip()), False
    known = algorithm.options
    options: dict[str, Any] = {}
    for part in split(rest[:-1]) if bracket else []:
        name, equals, value = part.partition("=")
        if part == PAPER and not algorithm.in_paper:
            raise InputError(
                f"{text!r} is no method: the paper sets nothing of {algorithm.name!r}, so leave out {PAPER!r}"
            )
        if part == PAPER:
            paper = True
        elif not (name and equals):
            raise InputError(f"{part!r} in {text!r} is no option: write OPTION=VALUE, or {PAPER}")
        elif name not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise InputError(f"method {algorithm.name!r} has no option {name!r}: {has}")
        else:
            options[name] = literal(value)
    return ConfiguredMethod(algorithm.name, options, paper)


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


class Algorithm(ABC):
    """What is run; the options are those of a configured method."""

    name: str
    extra: str | None = None  # of the package, as in pip install 'mctsvs[extra]'
    needs: tuple[str, ...] = ()  # modules the extra brings
    in_paper = False  # whether the paper sets options of it
    checks_d = False  # whether it refuses a d larger than the problem by itself

    @property
    @abstractmethod
    def options(self) -> tuple[str, ...]:
        """Names of the options it takes."""

    @abstractmethod
    def check(self, options: Mapping[str, Any], problem: Problem, paper: bool) -> None:
        """Raises `InputError` if it cannot be run on the problem: an option's value, a missing library."""

    @abstractmethod
    def run(self, problem: Problem, setting: RunSettings, paper: bool, progress: Progress | None) -> RunRecord:
        """Run it once."""

    def missing(self) -> list[str]:
        """Modules it needs that are not installed."""
        return [module for module in self.needs if importlib.util.find_spec(module) is None]


class LibraryMethod(Algorithm):
    """A method of the library."""

    in_paper = True

    def __init__(self, method: registry.Method) -> None:
        self.name, self.extra, self.needs, self.method = method.name, method.extra, method.needs, method
        self.checks_d = method.engine is not None

    @property
    def options(self) -> tuple[str, ...]:
        return registry.options_of(self.method)

    def check(self, options: Mapping[str, Any], problem: Problem, paper: bool) -> None:
        make_optimizer(problem, self.name, seed=0, options=paper_options(self.name, problem, options, paper))

    def run(self, problem: Problem, setting: RunSettings, paper: bool, progress: Progress | None) -> RunRecord:
        return run(
            problem,
            self.name,
            budget=setting.budget,
            seed=setting.seed,
            options=setting.options,
            variation=setting.variation,
            faithful=paper,
            progress=progress,
        )


class ScikitLearn(Algorithm):
    """Vanilla BO on scikit-learn."""

    name, extra, needs = "sklearn-bo", "sklearn", ("sklearn",)
    options = ("samples", "ard")

    def check(self, options: Mapping[str, Any], problem: Problem, paper: bool) -> None:
        if absent := self.missing():
            modules = " and ".join(absent)
            raise InputError(f"{self.name!r} needs {modules}, not installed here: pip install 'mctsvs[{self.extra}]'")
        check_count("samples", options.get("samples", 1))
        if not isinstance(ard := options.get("ard", False), bool):
            raise InputError(f"ard={ard!r} cannot be used: it must be True or False")

    def run(self, problem: Problem, setting: RunSettings, paper: bool, progress: Progress | None) -> RunRecord:
        from mctsvs.bench import sklearn_bo

        return sklearn_bo.run(problem, setting, progress)


class ConfidenceBound(Algorithm):
    """GP-UCB as Theorem 4.2 has it, on the variables that a selector chooses."""

    options: tuple[str, ...] = ()

    def __init__(self, name: str, *options: str) -> None:
        self.name, self.options = name, options

    def check(self, options: Mapping[str, Any], problem: Problem, paper: bool) -> None:
        if problem.optimum is None:
            raise InputError(f"{self.name!r} cannot be run on {problem.name}: the regret needs a known optimum")
        for name, value in options.items():
            check_count(name, value)

    def run(self, problem: Problem, setting: RunSettings, paper: bool, progress: Progress | None) -> RunRecord:
        from mctsvs.bench.paper import regret_bound  # linear algebra that the command itself does not need

        return regret_bound.run(problem, setting, progress)


REFERENCES: Mapping[str, Algorithm] = {
    reference.name: reference
    for reference in (
        ScikitLearn(),
        ConfidenceBound("ucb-all"),
        ConfidenceBound("ucb-dropout", "d"),
        ConfidenceBound("ucb-mcts-vs"),
    )
}


def find(name: str) -> Algorithm:
    """The reference or method of that name; a method may also be somebody else's, as in `mine.py:Engine`."""
    if name in REFERENCES:
        return REFERENCES[name]
    return LibraryMethod(registry.find(name))
