"""What can be compared: the library's methods, and references that are run beside them and are none of them."""

from __future__ import annotations

import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from mctsvs import methods
from mctsvs.common import InputError, check_count
from mctsvs.lab import loop
from mctsvs.lab.run import Progress, Record, Setting, paper_options, run
from mctsvs.problems import Problem


class Contender(ABC):
    """One of them; options are what a case gives it."""

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
    def run(self, problem: Problem, setting: Setting, paper: bool, progress: Progress | None) -> Record:
        """Run it once."""

    def missing(self) -> list[str]:
        """Modules it needs that are not installed."""
        return [module for module in self.needs if importlib.util.find_spec(module) is None]


class LibraryMethod(Contender):
    """A method of the library."""

    in_paper = True

    def __init__(self, method: methods.Method) -> None:
        self.name, self.extra, self.needs, self.method = method.name, method.extra, method.needs, method
        self.checks_d = method.engine is not None

    @property
    def options(self) -> tuple[str, ...]:
        return methods.options_of(self.method)

    def check(self, options: Mapping[str, Any], problem: Problem, paper: bool) -> None:
        loop.optimizer(problem, self.name, seed=0, options=paper_options(self.name, problem, options, paper))

    def run(self, problem: Problem, setting: Setting, paper: bool, progress: Progress | None) -> Record:
        return run(
            problem,
            self.name,
            budget=setting.budget,
            seed=setting.seed,
            options=setting.options,
            variation=setting.variation,
            faithful=paper,
            progress=progress,
            importance=False,
        )


class ScikitLearn(Contender):
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

    def run(self, problem: Problem, setting: Setting, paper: bool, progress: Progress | None) -> Record:
        from mctsvs.lab import sklearn_bo

        return sklearn_bo.run(problem, setting, progress)


class ConfidenceBound(Contender):
    """GP-UCB as Theorem 4.2 has it, on the variables that a selector chooses."""

    options: tuple[str, ...] = ()

    def __init__(self, name: str, *options: str) -> None:
        self.name, self.options = name, options

    def check(self, options: Mapping[str, Any], problem: Problem, paper: bool) -> None:
        if problem.optimum is None:
            raise InputError(f"{self.name!r} cannot be run on {problem.name}: the regret needs a known optimum")
        for name, value in options.items():
            check_count(name, value)

    def run(self, problem: Problem, setting: Setting, paper: bool, progress: Progress | None) -> Record:
        from mctsvs.lab import theory  # linear algebra that the command itself does not need

        return theory.run(problem, setting, progress)


REFERENCES: Mapping[str, Contender] = {
    reference.name: reference
    for reference in (
        ScikitLearn(),
        ConfidenceBound("ucb-all"),
        ConfidenceBound("ucb-dropout", "d"),
        ConfidenceBound("ucb-mcts-vs"),
    )
}


def find(name: str) -> Contender:
    """The reference or method of that name; a method may also be somebody else's, as in `mine.py:Engine`."""
    if name in REFERENCES:
        return REFERENCES[name]
    return LibraryMethod(methods.find(name))
