"""A user's own objective: a function in a Python file or package, or a program (`command`)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from mctsvs.objectives.call_style import call_style
from mctsvs.objectives.problem import Problem
from mctsvs.objectives.space_file import SpaceFile
from mctsvs.optimizer import DIRECTIONS
from mctsvs.space import Variable
from mctsvs.utils import plugins
from mctsvs.utils.validation import Array, EvaluationFailed, InputError, check_choice


@dataclass(frozen=True, eq=False)
class UserProblem(Problem):
    """An objective over the variables of a user's space; a failed evaluation raises `EvaluationFailed`."""

    file: SpaceFile | None = None

    @property
    def space(self) -> Mapping[str, Variable]:
        assert self.file is not None
        return self.file.variables


def user_problem(name: str, objective: Any, file: SpaceFile, direction: str | None) -> UserProblem:
    """The problem of `objective`, which is called with the vector of natural units."""
    direction = check_choice("direction", direction or file.direction or "minimize", DIRECTIONS)
    return UserProblem(
        name=name,
        description="an objective of your own",
        bounds=file.bounds,
        function=objective,
        direction=cast(Literal["minimize", "maximize"], direction),
        where=file.constraints,
        file=file,
    )


@dataclass(frozen=True, eq=False)
class PythonFunction:
    """The function of that name in a file or module, imported when first used in a process.

    It gets its variables as `call_style` says. Whoever evaluates it judges what it returns. An exception is a failed
    evaluation.
    """

    spec: str  # path/to/file.py:function, from any folder, or package.module:function
    file: SpaceFile

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        """The function itself, for `inspect.unwrap`."""
        return _function(self.spec)

    def __call__(self, x: Array) -> Any:
        function = _function(self.spec)
        try:
            if call_style(function, self.file.names) == "keywords":
                return function(**self.file.keywords(x))
            return function(self.file.argument(x))
        except (Exception, SystemExit) as error:
            raise EvaluationFailed(plugins.said(error)) from error


def find_function(spec: str, file: SpaceFile | None = None, otherwise: SpaceFile | None = None) -> PythonFunction:
    """The function, imported once to see that it is there.

    If the space file does not have the variables or the direction, they are read from an attribute `space` or
    `direction` of the function or of its module. If they are nowhere, the variables are those of `otherwise`.
    """
    function = _function(plugins.absolute(spec))
    where = spec.rpartition(":")[0]
    beside = plugins.module(where)
    space, direction = (getattr(function, name, getattr(beside, name, None)) for name in ("space", "direction"))
    if file is None and space is None and otherwise is None:
        raise InputError(
            f"the variables of {spec!r} are unknown: give a space file (--space FILE), or write "
            f"space = [(low, high), ...] beside it"
        )
    file = file or (otherwise if otherwise is not None and space is None else SpaceFile.of(space))
    if file.direction is None and isinstance(direction, str):
        file = replace(file, direction=direction)
    try:
        call_style(function, file.names)
    except InputError as error:
        raise InputError(f"{spec!r} does not fit its variables: {error}") from None
    return PythonFunction(plugins.absolute(spec), file)


@functools.cache
def _function(spec: str) -> Callable[..., Any]:
    function = plugins.load(spec)
    if not callable(function):
        where, _, name = spec.rpartition(":")
        raise InputError(f"{name!r} in {where!r} is no function but {function!r:.60}")
    return cast(Callable[..., Any], function)


def function_problem(name: str, function: PythonFunction, direction: str | None = None) -> UserProblem:
    """The problem of a function, of which nothing is known."""
    return user_problem(name, function, function.file, direction)


def description(spec: str) -> str:
    """The first line of the function's docstring."""
    return (inspect.getdoc(_function(spec)) or "a function").partition("\n")[0]
