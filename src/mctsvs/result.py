"""What a run has found, named as scipy's users know it."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from mctsvs.common import listed
from mctsvs.optimizer import Optimizer
from mctsvs.stopping import COMPLETE, Ending, Status, counted
from mctsvs.tree import Node
from mctsvs.trial import Recommendation, Trial


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """What `minimize` and `maximize` return, named as in scipy.

    Where values are known to be noisy (given, told, or seen by the method) `x` is the point of best expected value
    among those evaluated, `fun` that value, and `best` the luckiest trial; elsewhere `x` and `fun` are those of `best`.
    """

    x: Any  # a dict for a space with names, else a vector; None if no evaluation succeeded
    fun: float  # NaN if none has a value
    trials: list[Trial] = field(default_factory=list)
    importance: dict[str, float] = field(default_factory=dict)  # name -> score, most important first
    status: Status = Status.DONE
    message: str = ""
    number: int = -1  # of the trial of `x`
    tree: Node | None = None  # of groups of variables, for methods that have one
    about: dict[str, Any] = field(default_factory=dict)  # direction, method, options, seed and budget of the run
    best: Trial | None = None
    recommend: Callable[[], Recommendation] | None = None  # for those who ask for it: it takes a model

    @property
    def success(self) -> bool:
        """Whether the run came to its end, and a value was found, where there are constraints a feasible one."""
        return self.feasible and self.status in COMPLETE

    @property
    def feasible(self) -> bool:
        """Whether `x` satisfies the measured constraints; if not, it is the point that violates them least."""
        return not math.isnan(self.fun) and (self.best is None or self.best.feasible)

    @cached_property
    def recommendation(self) -> Recommendation | None:
        """The point of best expected value, whether or not values are known to be noisy; see `Optimizer.recommend`."""
        return None if self.recommend is None else self.recommend()

    def __getstate__(self) -> dict[str, Any]:
        """For pickle: what follows from the optimizer is computed, and the optimizer left behind."""
        return {**self.__dict__, "recommendation": self.recommendation, "recommend": None}

    @property
    def nfev(self) -> int:
        """Evaluations made."""
        return sum(trial.value is not None for trial in self.trials)

    def __repr__(self) -> str:
        best = self.number + 1
        found = "nothing succeeded" if not best else f"fun={self.fun:.6g} at evaluation {best} of {self.nfev}"
        matter = [name for name, score in self.importance.items() if score > 0.5]
        more = "" if not matter else f", {listed(matter)} {'matters' if len(matter) == 1 else 'matter'}"
        return f"Result({found}{more}: {self.message})"

    def _repr_html_(self) -> str:
        from mctsvs.report.card import card

        return card(self, f"Result, {self.about.get('method', '')}".rstrip(", "))

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write what the search has learned as one page that any browser opens, without a network."""
        from mctsvs.report import write

        return write(self, path)


def result_of(opt: Optimizer, ending: Ending) -> Result:
    """Of a run of the optimizer that ended so."""
    told = [trial for trial in opt.trials if trial.value is not None and trial.source != "imported"]
    failures = sum(trial.failed for trial in told)
    missing = sum(not trial.has_value for trial in told) - failures
    parts = [counted(len(told), opt.budget or 0)]
    parts += [f"{failures} of them failed"] * bool(failures)
    parts += [f"{missing} of them without a value"] * bool(missing)
    parts += [ending.message] * bool(ending.message)
    best = opt.best if opt.has_best else None
    if best is not None and not best.feasible:
        those = "those with a value" if missing and best.has_value else "them"
        parts.append(f"none of {those} feasible: x violates {violated(best)}, the least in total")
    importance = opt.importance() if best is not None else {}
    where, value, number, recommend = None, math.nan, -1, None
    if best is not None:
        where, value, number, recommend = best.argument, best.value or 0.0, best.number, opt.recommend
        if opt.noisy and best.feasible:
            chosen = opt.recommend()
            where, value, number, recommend = chosen.trial.argument, chosen.mean, chosen.trial.number, lambda: chosen
    about = {name: getattr(opt, name) for name in ("direction", "method", "options", "seed", "budget")}
    message = ", ".join(parts)
    return Result(
        where, value, opt.trials, importance, ending.status, message, number, opt.tree, about, best, recommend
    )


def violated(trial: Trial) -> str:
    """The constraints that do not hold there, and by how much; what is not known may not hold."""
    found = {name: c for name, c in (trial.constraints or {}).items() if not c <= 0.0}
    return listed([f"{name} (not known)" if math.isnan(c) else f"{name} by {c:.3g}" for name, c in found.items()])
