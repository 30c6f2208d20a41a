"""A whole run in one call, as scipy's users know it: `minimize`, `maximize`, and what they return."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mctsvs import methods
from mctsvs.common import Array, InputError
from mctsvs.optimizer import Optimizer, Trial


@dataclass(frozen=True)
class Result:
    """What `minimize` and `maximize` return, named as in scipy."""

    x: Array | dict[str, Any]  # best point: a dict for a space with names, else a vector
    fun: float  # its value
    trials: list[Trial] = field(repr=False)
    importance: dict[str, float] = field(repr=False)  # name -> score, most important first
    message: str = ""

    @property
    def nfev(self) -> int:
        return len(self.trials)


def minimize(
    f: Callable[[Any], float],
    space: Any,
    *,
    budget: int,
    seed: int | None = 0,
    method: str = methods.DEFAULT,
    callback: Callable[[Optimizer, Trial], object] | None = None,
    **options: Any,
) -> Result:
    """Minimise f with exactly `budget` evaluations.

    f gets the point as a vector, or as a dict if `space` is a dict. Returning None, NaN or an infinity marks the
    evaluation as failed; an exception in f ends the run. `callback(optimizer, trial)` runs after each evaluation and
    can keep what an exception would lose.

    >>> result = minimize(lambda x: ((x - 0.3) ** 2).sum(), [(0, 1)] * 50, budget=100, seed=0)
    >>> result.x, result.fun, result.importance
    """
    return _run(f, space, "minimize", budget, seed, method, callback, options)


def maximize(
    f: Callable[[Any], float],
    space: Any,
    *,
    budget: int,
    seed: int | None = 0,
    method: str = methods.DEFAULT,
    callback: Callable[[Optimizer, Trial], object] | None = None,
    **options: Any,
) -> Result:
    """Maximise f with exactly `budget` evaluations; see `minimize`."""
    return _run(f, space, "maximize", budget, seed, method, callback, options)


def _run(
    f: Callable[[Any], float],
    space: Any,
    direction: str,
    budget: int,
    seed: int | None,
    method: str,
    callback: Callable[[Optimizer, Trial], object] | None,
    options: Mapping[str, Any],
) -> Result:
    if not callable(f):
        raise InputError(f"the objective {f!r} is not a function: give something that can be called with a point")
    opt = Optimizer(space, direction=direction, method=method, seed=seed, budget=budget, **options)
    for _ in range(budget):
        (trial,) = opt.ask()
        opt.tell(trial, f(trial.argument))
        if callback is not None:
            callback(opt, trial)
    if not opt.has_best:
        raise InputError(f"all {budget} evaluations failed: the function returned no finite number")
    failures = sum(trial.failed for trial in opt.trials)
    message = f"{budget} evaluations" + (f", {failures} of them failed" if failures else "")
    return Result(opt.best.argument, float(opt.best.value or 0.0), opt.trials, opt.importance(), message)
