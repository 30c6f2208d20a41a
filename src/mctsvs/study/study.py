"""A run that is kept in a file: ask, tell, and everything that can be read from it."""

from __future__ import annotations

import contextlib
import enum
import os
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from mctsvs.loop.evaluation import Evaluation
from mctsvs.loop.loop import Workers, run
from mctsvs.loop.stopping import Callback, Status, StoppingCriteria, StopReason, counted
from mctsvs.methods import registry
from mctsvs.methods.mcts_vs.tree import Node
from mctsvs.optimizer import Optimizer
from mctsvs.space import Space
from mctsvs.study import tables
from mctsvs.study.open_study import checked_path, open_ledger
from mctsvs.trial import Recommendation, Trial, TrialDetails, Trials, as_value
from mctsvs.utils.formatting import as_text
from mctsvs.utils.validation import InputError, StudyError, check_count
from mctsvs.visualization.progress import ProgressReporter

if TYPE_CHECKING:
    from concurrent.futures import Executor

    import pandas


class AsStored(enum.Enum):
    """The default of what a study file knows already; a new one gets what `Optimizer` would take."""

    AS_STORED = enum.auto()


AS_STORED = AsStored.AS_STORED


class Study:
    """An optimisation that is kept in a file.

    >>> study = Study("run.db", [(-5, 10)] * 300, direction="minimize", seed=0)
    >>> study.optimize(f, budget=600)
    >>> study.best.x, study.best.value, study.importance()

    The same lines on an existing file go on where it ended, bit for bit, whatever ended it. `Study("run.db")` takes
    everything from the file; what is given must be what the file says.

    path        one file, on a disk of this machine; one process at a time writes to it, from any of its threads
    space, direction, method, seed, constraints, options    as for `mctsvs.Optimizer`; functions among the constraints
                are not stored, and are given again when the study is opened again
    readonly    only look: always possible, also while another process writes
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        space: Any = None,
        *,
        direction: str | AsStored = AS_STORED,
        method: str | AsStored = AS_STORED,
        seed: int | AsStored | None = AS_STORED,
        constraints: Any = None,
        readonly: bool = False,
        **options: Any,
    ) -> None:
        self.path, self.readonly = checked_path(path), readonly
        method = method if isinstance(method, AsStored) else registry.canonical(method)
        given: dict[str, Any] = {"direction": direction, "method": method, "seed": seed}
        given = {name: value for name, value in given.items() if value is not AS_STORED}
        if space is not None:
            given["space"] = Space.of(space)
        if constraints is not None:
            given["constraints"] = constraints
        self._ledger = open_ledger(self.path, given, options, readonly=readonly)
        self.stopping = threading.Event()
        self.ending, self.message = StopReason(Status.DONE, ""), ""  # of the last run of this object

    # what is in it

    @property
    def space(self) -> Space:
        return self._ledger.contents.space

    @property
    def direction(self) -> str:
        return str(self._ledger.contents.identity["direction"])

    @property
    def method(self) -> str:
        return str(self._ledger.contents.identity["method"])

    @property
    def seed(self) -> int:
        return int(self._ledger.contents.identity["seed"])

    @property
    def options(self) -> dict[str, Any]:
        return dict(self._ledger.contents.identity["options"])

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer behind it; of a study that is only read, made when first needed."""
        return self._ledger.optimizer

    @property
    def trials(self) -> list[Trial]:
        """All trials in order; the value of those not told is None."""
        with self._ledger.mutex:
            opt = self._ledger.revived
            return self._ledger.contents.trials if opt is None else opt.trials

    @property
    def best(self) -> Trial:
        """The best feasible trial told so far (the first, if several are equal); see `Optimizer.best`."""
        with self._ledger.mutex:
            opt = self._ledger.revived
            if opt is not None:
                return opt.best
            ranked = Trials(self.direction)
            for number in self._ledger.contents.told:
                ranked.rank(self.trials[number])
        if ranked.best is None:
            raise InputError("there is no best trial yet: no evaluation has succeeded")
        return ranked.best

    @property
    def has_best(self) -> bool:
        """Whether an evaluation has not failed yet."""
        with self._ledger.mutex:
            opt = self._ledger.revived
            return any(t.value is not None and not t.failed for t in self.trials) if opt is None else opt.has_best

    @property
    def pending(self) -> list[Trial]:
        """Trials asked for and not yet told."""
        with self._ledger.mutex:
            opt = self._ledger.revived
            return [t for t in self.trials if t.value is None] if opt is None else opt.pending

    @property
    def evaluated(self) -> int:
        """Trials told, without those imported: what a budget counts."""
        with self._ledger.mutex:
            return sum(t.value is not None and t.source != "imported" for t in self.trials)

    def importance(self) -> dict[str, float]:
        """Name -> score between 0 and 1, most important first; see `Optimizer.importance`."""
        with self._ledger.mutex:
            return self.optimizer.importance()

    def recommend(self) -> Recommendation:
        """The point of best expected value among those evaluated; see `Optimizer.recommend`."""
        with self._ledger.mutex:
            return self.optimizer.recommend()

    @property
    def tree(self) -> Node | None:
        """The tree of variable groups, for methods that have one."""
        return self.optimizer.tree

    @property
    def budget(self) -> int | None:
        """Evaluations there are to be, where that has been said."""
        with self._ledger.mutex:
            log = self._ledger.contents.log
            return next((event.number for event in reversed(log) if event.kind == "plan"), None)

    @property
    def notes(self) -> dict[str, Any]:
        """What `note` has stored."""
        with self._ledger.mutex:
            return {name: value for name, value in self._ledger.journal.meta().items() if name != "identity"}

    def note(self, name: str, value: Any) -> None:
        """Keep plain data (numbers, strings, lists, dicts, arrays) with the study under a name."""
        if name == "identity":
            raise InputError("a note cannot be called 'identity': that is what the study is")
        try:
            self._ledger.note(name, value)
        except TypeError as error:
            raise InputError(f"the note {name!r} cannot be stored: {error}") from None

    # what changes it

    def plan(self, budget: int) -> None:
        """How many evaluations there will be in all, as `optimize` says it; see `Optimizer.plan`."""
        self._ledger.plan(check_count("budget", budget))

    def ask(self, n: int = 1) -> list[Trial]:
        """The next n points to evaluate, stored before they are returned; see `Optimizer.ask`."""
        return self._ledger.ask(n)

    def tell(
        self,
        trial: Trial | int,
        value: float | None,
        message: str = "",
        *,
        constraints: Mapping[str, float] | None = None,
        noise: float | None = None,
    ) -> None:
        """The value of a trial, stored before the method gets it; None, NaN and infinities: it failed.

        constraints, noise and the trial's `attrs` as for `Optimizer.tell`.
        """
        details = TrialDetails.of(constraints, noise, trial.attrs if isinstance(trial, Trial) else None)
        self._ledger.tell(trial, _value(value), as_text(message), details)

    def enqueue(self, points: Iterable[Any]) -> None:
        """Points, vectors or dicts of name -> value, to be tried before the method's own."""
        self._ledger.check_writable()
        self._ledger.enqueue([self.optimizer.unit_of(point) for point in points])

    def import_points(self, source: Any) -> int:
        """Earlier evaluations as a warm start; how many there were.

        source  a CSV or Parquet file with a column for each variable and one called value (as `export` writes it),
                a pandas DataFrame of that form, another Study, or an Optuna study. No value: it failed.

        They become trials that do not count towards a budget. A large file is one transaction: all of it or nothing.
        """
        self._ledger.check_writable()
        rows = tables.rows(source, self.space, self.direction)
        if not rows:
            raise InputError("there is nothing to import: the source has no evaluations")
        for i, (unit, *_) in enumerate(rows, 1):
            try:
                self.optimizer.region.check(unit)
            except InputError as error:
                named = isinstance(source, str | os.PathLike)
                place = f"row {i} of the file {str(source)!r}" if named else f"evaluation {i} of the source"
                raise InputError(f"{place}: {error}") from None
        self._ledger.insert(rows)
        return len(rows)

    def optimize(
        self,
        f: Callable[[Any], Any],
        budget: int,
        *,
        executor: Executor | None = None,
        workers: int | None = None,
        asynchronous: bool = False,
        timeout: float | None = None,
        target: float | None = None,
        max_seconds: float | None = None,
        patience: int | None = None,
        max_failures: int = 30,
        callback: Callback | Sequence[Callback] | None = None,
        progress: bool | ProgressReporter = False,
    ) -> Trial:
        """Evaluate f until the study has `budget` evaluations, those of earlier calls included.

        An exception, None, NaN, an infinity, a time-out or the death of its worker makes a failed trial with a
        message, and the search goes on elsewhere. Whatever ends the run before its budget, evaluations under way are
        waited for and none begins; `message` says what it was. Ctrl-C ends it at once: everything told is stored, and
        the same call goes on.

        Args:
            f: The objective. It gets the point as a vector, or as a dict if the space is one, and returns a value, or
                a value and a dict of measured constraints, each at most 0 where it holds: `(value, {"stress": 0.3})`.
            budget: Evaluations in all.
            executor: Any `concurrent.futures.Executor`: threads, processes, Dask, loky, mpi4py,
                `mctsvs.integrations.clusters.RayExecutor`.
            workers: Evaluations at once. Without an executor, processes of this machine are started.
            asynchronous: A free worker gets a new point at once. Without it, points are evaluated in batches of
                `workers` and told in their order, so that the same seed gives the same run.
            timeout: Seconds for an evaluation. Without an executor its process is ended then; with one, its result is
                no longer waited for.
            target: A value at least this good, of a feasible point, ends the run.
            max_seconds: No evaluation begins later than so many seconds after the call.
            patience: So many evaluations of this call in a row that were no better than the best before end the run.
            max_failures: So many failures in a row end the run with an error.
            callback: Called as `callback(study, trial)` after each evaluation, or as scipy calls one of a single
                argument; a list of them is possible. True, or StopIteration, ends the run.
            progress: Show how far the run is. The standard `logging` is told under "mctsvs" in any case.

        Returns:
            The best trial.

        Raises:
            StudyError: Too many evaluations in a row failed, or none succeeded.

        Example:
            >>> with Study("run.db", [(-5, 10)] * 300) as study:
            ...     best = study.optimize(f, budget=600, workers=4)
        """
        self._ledger.check_writable()
        criteria = StoppingCriteria(target, max_seconds, patience, max_failures)
        workers_ = Workers(workers, executor, asynchronous, timeout)
        self.stopping.clear()
        self.ending = self._run(f, budget, criteria, workers_, callback=callback, progress=progress)
        if self.ending.status is Status.FAILING:
            last = max((t for t in self.trials if t.failed), key=lambda t: t.times.told or 0.0)
            raise StudyError(
                f"{self.ending.message}, trial {last.number} with: {last.message}. "
                f"All {self.evaluated} evaluations are stored: mend the function and call optimize again"
            )
        if self.ending.status is Status.EXHAUSTED:
            warnings.warn(f"{self.ending.message}; the run ends", RuntimeWarning, stacklevel=2)
        self.message = ", ".join(filter(None, (counted(self.evaluated, budget), self.ending.message)))
        if not self.evaluated:
            raise StudyError(f"nothing was evaluated: {self.ending.message}")
        if not self.has_best:
            raise StudyError(f"all {self.evaluated} evaluations failed, the last with: {self.trials[-1].message}")
        return self.best

    def _run(self, f: Callable[[Any], Any], budget: int, *how: Any, **more: Any) -> StopReason:
        """The loop, which leaves the study as it can be opened again."""
        try:
            return run(_StoredTrials(self), self, f, budget, *how, stop=self.stopping, **more)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"{self._progress(budget)}; the same call goes on") from None
        finally:
            self._ledger.save_if_possible()

    def stop(self) -> None:
        """End the run that is going on, from any thread or from the callback; evaluations under way are waited for."""
        self.stopping.set()

    def _progress(self, budget: int) -> str:
        best = (
            f"the best value is {self.best.value:.6g}" if self.has_best and self.best.has_value else "none has a value"
        )
        return f"stopped after {self.evaluated} of {budget} evaluations, all stored; {best}"

    def save(self) -> None:
        """Store the method's memory, so that resuming takes no thinking. Nothing is ever lost without it."""
        if not self.readonly:
            self._ledger.save()

    # in and out

    def to_dataframe(self) -> pandas.DataFrame:
        """A row for each trial: number, value, source, iteration, message, and a column for each variable.

        Behind them constraints, noise and attributes, where there are any, then the phase of the search in words, when
        the trial was asked for and told, the seconds it took and the method thought, and the worker.
        """
        return tables.dataframe(self.trials, self.space, times=True)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write what the search has learned as one page that any browser opens, without a network."""
        from mctsvs.visualization.report import write

        return write(self, path)

    def export(self, path: str | os.PathLike[str]) -> None:
        """The same without times as a CSV or Parquet file, by the ending of its name; `import_points` reads it."""
        tables.export(Path(path), self.trials, self.space)

    def close(self) -> None:
        """Store what is worth it and let other processes write; done again, it does nothing."""
        self._ledger.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # forgotten studies must not stay locked
            self.close()

    def __enter__(self) -> Study:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        best = (
            f", best {self.best.value:.6g} at trial {self.best.number}" if self.has_best and self.best.has_value else ""
        )
        size = f"{self.evaluated} evaluations of {len(self.space)} variables"
        return f"Study({str(self.path)!r}, {self.method}, {size}{best})"

    def _repr_html_(self) -> str:
        from mctsvs.visualization.report.card import card

        return card(self, f"Study {self.path.name}, {self.method}")


class _StoredTrials:
    """The trials of a study as the loop knows them: everything is stored before anybody learns of it."""

    def __init__(self, study: Study) -> None:
        self.study, self.session = study, study._ledger

    @property
    def optimizer(self) -> Optimizer:
        return self.study.optimizer

    @property
    def early(self) -> Mapping[int, Evaluation]:
        results = self.session.contents.results
        return {number: Evaluation(value, message, 0.0) for number, (value, message) in results.items()}

    @property
    def deaths(self) -> Mapping[int, int]:
        return self.session.contents.strikes

    @property
    def pending(self) -> list[Trial]:
        return self.study.pending

    def plan(self, budget: int) -> None:
        self.session.plan(budget)

    def ask(self, n: int) -> list[Trial]:
        return self.session.ask(n)

    def tell(self, trial: Trial, evaluation: Evaluation) -> tuple[Trial, bool]:
        self.session.tell(trial, *_stored(trial, evaluation))
        told, study = self.study.trials[trial.number], self.study
        return told, study.has_best and study.best.number == told.number

    def keep(self, trial: Trial, evaluation: Evaluation) -> None:
        self.session.keep(trial, *_stored(trial, evaluation))

    def record_death(self, trial: Trial, message: str) -> int:
        return self.session.strike(trial, as_text(message))


def _stored(trial: Trial, evaluation: Evaluation) -> tuple[float, str, TrialDetails]:
    details = TrialDetails.of(evaluation.constraints, None, trial.attrs)
    return _value(evaluation.value), as_text(evaluation.message), details


def _value(value: float | None) -> float:
    return as_value(value) + 0.0  # 0.0 for -0.0, as SQLite keeps it
