"""The one loop that asks, evaluates and tells, and the clock that runs while it asks and tells."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from mctsvs.bench.problems import Problem
from mctsvs.optimizer import Optimizer
from mctsvs.trial import split


class Search(Protocol):
    """Whatever can be asked for points and told their values."""

    def ask(self) -> Sequence[Any]: ...

    def tell(self, trial: Any, value: float | None, /) -> object: ...


class Clock:
    """Seconds inside `with clock:` so far, by the wall and of the processor, which other work does not lengthen."""

    def __init__(self) -> None:
        self.wall = self.processor = 0.0
        self._since = 0.0, 0.0

    def __enter__(self) -> None:
        self._since = time.perf_counter(), time.process_time()

    def __exit__(self, *_: object) -> None:
        self.wall += time.perf_counter() - self._since[0]
        self.processor += time.process_time() - self._since[1]


def optimizer(
    problem: Problem, method: str, *, seed: int, budget: int | None = None, options: Mapping[str, Any] | None = None
) -> Optimizer:
    """An optimizer for the problem; with a budget, it knows how many evaluations there will be."""
    chosen = {"constraints": problem.where, **(options or {})}
    return Optimizer(problem.space, direction=problem.direction, method=method, seed=seed, budget=budget, **chosen)


def rounds(search: Search, evaluate: Callable[[Any], Any], count: int, clock: Clock | None = None) -> Iterator[Any]:
    """The trials, each once it has been asked for, evaluated and told."""
    clock = clock or Clock()
    for _ in range(count):
        with clock:
            (trial,) = search.ask()
        value, constraints = split(evaluate(trial))
        tell: Any = search.tell  # a problem with constraints needs one that takes them
        with clock:
            tell(trial, value) if constraints is None else tell(trial, value, constraints=constraints)
        yield trial


def spend(problem: Problem, search: Search, count: int) -> Clock:
    """What asking and telling takes in a run of so many evaluations."""
    clock = Clock()
    for _ in rounds(search, lambda trial: problem(trial.x), count, clock):
        pass
    return clock
