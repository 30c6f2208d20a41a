"""Ask, evaluate, tell, step by step: for measurements that take turns between two searches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mctsvs.bench.problems import Problem
from mctsvs.loop.record import Clock
from mctsvs.trial import split


def rounds(search: Any, evaluate: Callable[[Any], Any], count: int, clock: Clock | None = None) -> Iterator[Any]:
    """The trials, each once it has been asked for, evaluated and told."""
    clock = clock or Clock()
    for _ in range(count):
        with clock:
            (trial,) = search.ask()
        value, constraints = split(evaluate(trial))
        with clock:
            search.tell(trial, value) if constraints is None else search.tell(trial, value, constraints=constraints)
        yield trial


def spend(problem: Problem, search: Any, count: int) -> Clock:
    """What asking and telling takes in a run of so many evaluations."""
    clock = Clock()
    for _ in rounds(search, lambda trial: problem(trial.x), count, clock):
        pass
    return clock
