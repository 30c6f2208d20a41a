"""Generators of random numbers that other processes would copy: each copy gives the same numbers."""

from __future__ import annotations

import contextlib
import inspect
import random
import warnings
from collections.abc import Iterator
from functools import partial
from types import CodeType
from typing import Any

import numpy as np

LOOKED_AT = 1000  # functions and objects that may hold generators, at most


def check_generators(f: Any) -> None:
    """Every worker would have a copy of a generator that was made outside of the function, with the same numbers."""
    kinds = (np.random.Generator, np.random.RandomState, random.Random)
    seeded = [id(np.random.mtrand._rand), id(random._inst)]  # for every trial
    copied = [name for name, value in _used(f) if isinstance(value, kinds) and id(value) not in seeded]
    for name in dict.fromkeys(copied):
        warnings.warn(
            f"worker processes have copies of {name!r}, which repeat each other's random numbers: make it inside "
            f"the function, as np.random.default_rng(np.random.randint(2**31))",
            RuntimeWarning,
            stacklevel=2,
        )


def _used(f: Any) -> Iterator[tuple[str, Any]]:
    """What the function uses beside its argument, and what the functions and objects of its module use of which."""
    waiting: list[Any] = [inspect.unwrap(f)]
    seen: dict[int, Any] = {}
    while waiting and len(seen) < LOOKED_AT:
        user = waiting.pop()
        seen[id(user)] = user
        for name, value in _held(user):
            yield name, value
            own = _module(value) == _module(user) != "" or (isinstance(user, partial) and callable(value))
            if own and id(value) not in seen:
                waiting.append(value)


def _module(value: Any) -> str:
    """Where a function, or the class of an object, is defined."""
    value = value.func if isinstance(value, partial) else value
    return str(getattr(value if inspect.isroutine(value) else type(value), "__module__", ""))


def _held(f: Any) -> Iterator[tuple[str, Any]]:
    """What it uses itself: of its module, its defaults, its object, or bound by `partial`."""
    if isinstance(f, partial):
        yield "function", f.func
        yield from ((f"argument {i}", value) for i, value in enumerate(f.args))
        yield from f.keywords.items()
    elif inspect.ismethod(f):
        yield "object", f.__self__
        yield "function", f.__func__
    elif inspect.isfunction(f := inspect.unwrap(f)):
        yield from ((p.name, p.default) for p in inspect.signature(f).parameters.values())
        yield from ((name, f.__globals__[name]) for name in _names(f.__code__) if name in f.__globals__)
        for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
            with contextlib.suppress(ValueError):  # it has no value yet
                yield name, cell.cell_contents
    elif not inspect.isclass(f):
        yield from getattr(f, "__dict__", {}).items()
        yield from ((name, value) for name, value in vars(type(f)).items() if not inspect.isroutine(value))
        if callable(f):
            yield "function", type(f).__call__


def _names(code: CodeType) -> Iterator[str]:
    """The names in it and in the functions that it makes."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
