"""A user's own objective over the variables of a TOML file: a function in a Python file, or a program (`command`)."""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from mctsvs.common import Array, InputError
from mctsvs.optimizer import as_value
from mctsvs.problems.failure import EvaluationFailed
from mctsvs.problems.problem import Problem
from mctsvs.problems.space_file import SpaceFile
from mctsvs.space import Variable

MODULE = "mctsvs_objective"  # what the user's file is called once imported, so that it hides no other module


@dataclass(frozen=True, eq=False)
class OwnProblem(Problem):
    """An objective over the variables of a space file; a failed evaluation raises `EvaluationFailed`."""

    file: SpaceFile | None = None

    @property
    def space(self) -> Mapping[str, Variable]:
        assert self.file is not None
        return self.file.variables


def own_problem(name: str, objective: Any, file: SpaceFile, direction: str | None) -> OwnProblem:
    """The problem of `objective`, which is called with the vector of natural units."""
    return OwnProblem(
        name=name,
        description="an objective of your own",
        bounds=file.bounds,
        function=objective,
        direction=cast(Literal["minimize", "maximize"], direction or file.direction or "minimize"),
        file=file,
    )


@dataclass(frozen=True, eq=False)
class PythonFunction:
    """The function `name` of the Python file `path`, imported when first used in a process.

    It is called with what `SpaceFile.argument` says. An exception, or a value that is no finite number, is a
    failed evaluation.
    """

    path: Path
    name: str
    file: SpaceFile

    def __call__(self, x: Array) -> float:
        function = load(self.path, self.name)
        try:
            given = function(self.file.argument(x))
        except (Exception, SystemExit) as error:
            raise EvaluationFailed(said(error)) from error
        try:
            value = as_value(given)
        except InputError:
            value = np.nan
        if np.isnan(value):
            raise EvaluationFailed(f"{self.name} returned {given!r:.60}, which is no finite number")
        return value


def said(error: BaseException) -> str:
    """An exception in one line."""
    lines = str(error).split("\n")
    text = next((line.strip() for line in lines if line.strip()), "")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def find_function(target: str, file: SpaceFile) -> PythonFunction:
    """`path/to/file.py:function`, imported once to see that it is there."""
    path, colon, name = target.rpartition(":")
    if not colon or not path.endswith(".py") or not name:
        raise InputError(f"{target!r} names no function: write path/to/file.py:function")
    found = PythonFunction(Path(path).resolve(), name, file)
    load(found.path, name)
    return found


@functools.cache
def load(path: Path, name: str) -> Any:
    """The function; the file's folder is searched for what it imports, as when it is run as a script."""
    module = _module(path)
    function = getattr(module, name, None)
    if function is None:
        there = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        has = f"it has {', '.join(there)}" if there else "it has no functions"
        raise InputError(f"{str(path)!r} has no function {name!r}: {has}")
    if not callable(function):
        raise InputError(f"{name!r} in {str(path)!r} is no function but {function!r:.60}")
    return function


@functools.cache
def _module(path: Path) -> Any:
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}: write path/to/file.py:function")
    spec = importlib.util.spec_from_file_location(MODULE, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    sys.modules[MODULE] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise InputError(f"{str(path)!r} is not Python: {error.msg} in line {error.lineno}") from None
    except (Exception, SystemExit) as error:
        raise InputError(f"cannot import {str(path)!r}: {said(error)}") from error
    return module
