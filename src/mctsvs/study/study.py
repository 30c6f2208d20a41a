"""A run that is kept in a file: ask, tell, and everything that can be read from it."""

from __future__ import annotations

import contextlib
import enum
import os
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from reprlib import repr as short
from typing import TYPE_CHECKING, Any, Never

from mctsvs.loop.loop import Workers, run
from mctsvs.loop.stopping import Callback, StoppingCriteria, StopReason, StopStatus, counted
from mctsvs.methods import registry
from mctsvs.methods.mcts_vs.tree import Node
from mctsvs.optimizer import Optimizer, one_space
from mctsvs.optimizer.active_variables import VariableStatuses
from mctsvs.optimizer.front import Front, front_of
from mctsvs.optimizer.objectives import Objectives
from mctsvs.optimizer.optimizer import NO_BEST
from mctsvs.optimizer.trial import Recommendation, Trial
from mctsvs.optimizer.unit_cube import encode_all
from mctsvs.space import Space
from mctsvs.study import tables
from mctsvs.study.open_study import checked_path, open_session
from mctsvs.utils.validation import InputError, StudyError, check_count
from mctsvs.utils.written import output_path
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

    Running the same lines again on an existing file continues the run where it ended, bit for bit, whatever ended it.
    `Study("run.db")` takes everything from the file.

    Args:
        path: One file, on a disk of this machine. One process at a time writes to it, from any of its threads.
            If its thread opens it again, between two runs, the older object is closed.
        space: The search space, as for `mctsvs.Optimizer`. It is needed to begin a study.
        direction: "minimize" or "maximize". A new study minimises by default.
        directions: The same of each of several objectives, in a list; see `front`.
        objectives: The same with names, such as {"cost": "minimize", "lift": "maximize"}.
        reference: Of several objectives, values that the front is to be better than; see `mctsvs.Optimizer`.
        method: The method, as for `mctsvs.Optimizer`.
        seed: The same seed gives the same points. None draws one.
        constraints: Known constraints, as for `mctsvs.Optimizer`. Functions among them are not stored, so give them
            again when you open the study again.
        readonly: Only look at the study. This is always possible, also while another process writes.
        options: Options of the method, by name.

    Raises:
        StudyError: The file was created with different settings, is damaged, or is in use by another process.
        InputError: An argument cannot be used.

    Example:
        >>> study = Study("run.db", [(-5, 10)] * 300, direction="minimize", seed=0)
        >>> study.optimize(f, budget=600)
        >>> study.best.x, study.best.value, study.variables()

    Attributes:
        path: The file.
        readonly: Whether the study was opened only to look at it.
        message: One sentence that says why the last call of `optimize` ended.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        space: Any = None,
        *,
        direction: str | AsStored = AS_STORED,
        directions: Sequence[str] | None = None,
        objectives: Mapping[str, str] | None = None,
        reference: Sequence[float] | Mapping[str, float] | None = None,
        method: str | AsStored = AS_STORED,
        seed: int | AsStored | None = AS_STORED,
        constraints: Any = None,
        readonly: bool = False,
        bounds: Any = None,
        noise: float | None = None,
        explain: float | None = None,
        replicates: int | None = None,
        options: Mapping[str, Any] | None = None,
        **unknown: Never,
    ) -> None:
        if space is not None or bounds is not None:
            space = one_space(space, bounds)
        settings = {"noise": noise, "explain": explain, "replicates": replicates}
        chosen: dict[str, Any] = {**(options or {}), **unknown}
        chosen |= {name: value for name, value in settings.items() if value is not None}
        self.path, self.readonly = checked_path(path), readonly
        method = method if isinstance(method, AsStored) else registry.canonical(method)
        several = Objectives.of(directions, objectives, reference)
        if directions is not None:
            direction = AS_STORED if several is not None else directions[0]
        elif several is not None:
            direction = AS_STORED
        given: dict[str, Any] = {"direction": direction, "method": method, "seed": seed}
        given = {name: value for name, value in given.items() if value is not AS_STORED}
        if space is not None:
            given["space"] = Space.of(space)
        if several is not None:
            given["objectives"] = several
        if constraints is not None:
            given["constraints"] = constraints
        self._session = open_session(self.path, given, chosen, readonly=readonly)
        self._stopping = threading.Event()
        self.message = ""  # of the last run of this object

    # what is in it

    @property
    def space(self) -> Space:
        """The search space."""
        return self._session.contents.space

    @property
    def direction(self) -> str:
        """Either "minimize" or "maximize"; of several objectives, all with their names."""
        return str(self._session.contents.identity["direction"])

    @property
    def objectives(self) -> Objectives | None:
        """Names and directions of several objectives; None for one."""
        return self._session.contents.objectives

    @property
    def method(self) -> str:
        """The name of the method."""
        return str(self._session.contents.identity["method"])

    @property
    def seed(self) -> int:
        """The seed, also where it was drawn."""
        return int(self._session.contents.identity["seed"])

    @property
    def options(self) -> dict[str, Any]:
        """The options of the method that were given."""
        return dict(self._session.contents.identity["options"])

    @property
    def optimizer(self) -> Optimizer:
        """The `Optimizer` behind the study. For a study that is only read, it is made when first needed."""
        return self._session.optimizer

    @property
    def trials(self) -> list[Trial]:
        """All trials in their order. The value of a trial that was not told is None."""
        return self._session.trials

    @property
    def best(self) -> Trial:
        """The best feasible trial so far, the first one if several are equal; see `Optimizer.best`."""
        if self.objectives is not None:
            raise InputError(NO_BEST)
        best = self._session.best
        if best is None:
            raise InputError("there is no best trial yet: no evaluation has succeeded")
        return best

    @property
    def has_best(self) -> bool:
        """Whether an evaluation has succeeded yet."""
        return self._session.best is not None

    @property
    def front(self) -> Front:
        """Of several objectives, the feasible trials of which none is better in every objective; see `Front`.

        Its `hypervolume`, `reference` and `knee` are those of `Optimizer`.
        """
        trials = self._session.trials
        return front_of((trial for trial in trials if trial.has_value), self.objectives)

    @property
    def pending(self) -> list[Trial]:
        """The trials that were asked for and not yet told."""
        return self._session.pending

    @property
    def evaluated(self) -> int:
        """How many trials were told, without those imported. A budget counts these."""
        with self._session.mutex:
            return sum(t.counts for t in self.trials)

    def variables(self, *, ranked: bool = False) -> VariableStatuses:
        """Say which variables act, as far as evaluations prove it.

        Args:
            ranked: Fit a model to rank all variables. That is an estimate, and proves nothing.

        Returns:
            A row for each variable, the largest effect first; see `Optimizer.variables`.

        Example:
            >>> study.variables().active
        """
        with self._session.mutex:
            return self.optimizer.variables(ranked=ranked)

    def explain(self, f: Callable[[Any], Any], evaluations: int = 30, **how: Any) -> VariableStatuses:
        """Evaluate f a few more times, at points that prove which variables act.

        Args:
            f: The objective.
            evaluations: How many, at most.
            how: Who evaluates, and what ends the run before that: keywords of `optimize`.

        Returns:
            What `variables` says then.

        Example:
            >>> study.explain(f, evaluations=30).summary
        """
        budget = self.evaluated + check_count("evaluations", evaluations)
        self._session.plan(budget, evaluations)
        callbacks = how.pop("callback", None) or []
        callbacks = list(callbacks) if isinstance(callbacks, Sequence) else [callbacks]
        if not self._explained():
            self.optimize(f, budget, callback=[*callbacks, lambda study, trial: self._explained()], **how)
        return self.variables()

    def _explained(self) -> bool:
        """Whether there is nothing more to ask about the variables."""
        with self._session.mutex:
            return not self.pending and self.optimizer._core.explanation.next() is None

    def recommend(self) -> Recommendation:
        """Choose the evaluated point with the best expected value, which matters if values are noisy.

        Returns:
            The trial, and mean and standard deviation of the objective there; see `Optimizer.recommend`.

        Example:
            >>> study.recommend().x
        """
        with self._session.mutex:
            return self.optimizer.recommend()

    @property
    def tree(self) -> Node | None:
        """The tree of variable groups, for methods that have one."""
        return self.optimizer.tree

    @property
    def budget(self) -> int | None:
        """The planned number of evaluations, if it is known."""
        return self._session.contents.budget

    @property
    def user_attrs(self) -> dict[str, Any]:
        """What `set_user_attr` has stored: name -> value."""
        with self._session.mutex:
            return {name: value for name, value in self._session.journal.meta().items() if name != "identity"}

    def set_user_attr(self, name: str, value: Any) -> None:
        """Store a value of yours with the study.

        Args:
            name: The name of the attribute. An attribute of that name is replaced.
            value: Plain data: numbers, strings, lists, dicts and arrays.

        Raises:
            InputError: The value is not plain data.

        Example:
            >>> study.set_user_attr("machine", {"cores": 16})
            >>> study.user_attrs["machine"]
        """
        if not isinstance(name, str):
            raise InputError(f"an attribute cannot be called {short(name)}: its name must be a string")
        if name == "identity":
            raise InputError(
                "an attribute cannot be called 'identity', which the study uses itself: choose another name"
            )
        try:
            self._session.set_attr(name, value)
        except TypeError as error:
            raise InputError(f"the attribute {name!r} cannot be stored: {error}") from None

    # what changes it

    def plan(self, budget: int) -> None:
        """Say how many evaluations there will be in all, as `optimize` does; see `Optimizer.plan`.

        Args:
            budget: The number of evaluations, those already made included.

        Example:
            >>> study.plan(600)
        """
        self._session.plan(check_count("budget", budget))

    def ask(self, n: int = 1) -> list[Trial]:
        """Ask for the next points to evaluate. They are stored before they are returned.

        Args:
            n: How many points.

        Returns:
            A trial for each point; see `Optimizer.ask`.

        Example:
            >>> (trial,) = study.ask()
            >>> study.tell(trial, f(trial.x))
        """
        return self._session.ask(n)

    def tell(
        self,
        trial: Trial | int,
        value: float | Sequence[float] | Mapping[str, float] | None,
        message: str = "",
        *,
        constraints: Mapping[str, float] | None = None,
        noise: float | None = None,
    ) -> None:
        """Tell the value of a trial. It is stored before the method gets it.

        Args:
            trial: A trial from `ask`, or its number. Its `attrs` are stored too.
            value: The value of the objective. None, NaN and infinities mean that the evaluation failed. Of several
                objectives, all values in a list, or in a dict if they have names.
            message: Why it failed.
            constraints: Measured constraints, name -> number, each at most 0 where it holds.
            noise: The standard deviation of the value's noise, if it is known.

        Raises:
            InputError: The trial was told before, or was never asked for.

        Example:
            >>> study.tell(trial, 1.5, constraints={"stress": -0.2})
        """
        self._session.record(trial, value, message, constraints, noise)

    def enqueue(self, points: Iterable[Any]) -> None:
        """Add points that are to be evaluated before the method's own.

        Args:
            points: Vectors, or dicts of name -> value.

        Raises:
            InputError: A point is outside of the space.

        Example:
            >>> study.enqueue([[0.5] * 300])
        """
        self._session.check_writable()
        self._session.enqueue(encode_all(self.optimizer.region, points))

    def import_points(self, source: Any) -> int:
        """Add evaluations made elsewhere. They become trials that do not count towards a budget.

        Args:
            source: A CSV or Parquet file with a column for each variable and one called value, as `export` writes it;
                a pandas DataFrame of that form; another Study; or an Optuna study. Rows without a value are
                evaluations that failed.

        Returns:
            How many evaluations there were. Either all of them are added or none.

        Raises:
            InputError: The source cannot be read, or one of its points is outside of the space.

        Example:
            >>> study.import_points("earlier.csv")
        """
        self._session.check_writable()
        if self.objectives is not None:
            raise InputError("evaluations of several objectives cannot be imported: enqueue() takes their points")
        rows = tables.rows(source, self.optimizer.region, self.direction)
        if not rows:
            raise InputError("there is nothing to import: the source has no evaluations")
        self._session.insert(rows)
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
            target: The run ends when a feasible point has a value at least this good.
            max_seconds: No evaluation begins later than this many seconds after the call.
            patience: The run ends after this many evaluations of this call in a row without improvement.
            max_failures: The run ends with an error after this many failures in a row. If nothing has succeeded yet, it
                ends after three equal ones of a TypeError, NameError, KeyError, AttributeError or ImportError.
            callback: Called as `callback(study, trial)` after each evaluation, or as scipy calls one of a single
                argument; a list of them is possible. True, or StopIteration, ends the run.
            progress: Show how far the run is. The standard `logging` is told under "mctsvs" in any case.

        Returns:
            The best trial; with several objectives the knee of the front.

        Raises:
            StudyError: Too many evaluations in a row failed, or none succeeded.

        Example:
            >>> with Study("run.db", [(-5, 10)] * 300) as study:
            ...     best = study.optimize(f, budget=600, workers=4)
        """
        self._session.check_writable()
        criteria = StoppingCriteria(target, max_seconds, patience, max_failures)
        workers_ = Workers(workers, executor, asynchronous, timeout)
        self._stopping.clear()
        reason = self._run(f, budget, criteria, workers_, callback=callback, progress=progress)
        if reason.status is StopStatus.FAILING:
            last = max((t for t in self.trials if t.failed), key=lambda t: t.times.told or 0.0)
            raise StudyError(
                f"{reason.message}, trial {last.number} with: {last.message}. "
                f"All {self.evaluated} evaluations are stored: mend the function and call optimize again"
            )
        if reason.status in (StopStatus.EXHAUSTED, StopStatus.NOT_FOUND):
            warnings.warn(f"{reason.message}; the run ends", RuntimeWarning, stacklevel=2)
        self.message = ", ".join(filter(None, (counted(self.evaluated, budget), reason.message)))
        if not self.evaluated:
            raise StudyError(f"nothing was evaluated: {reason.message}")
        if not (self.has_best or any(trial.has_value for trial in self.trials)):
            raise StudyError(f"all {self.evaluated} evaluations failed, the last with: {self.trials[-1].message}")
        return self.best if self.objectives is None else self.front.knee

    def _run(self, f: Callable[[Any], Any], budget: int, *how: Any, **more: Any) -> StopReason:
        """The loop."""
        with self._session.run():
            try:
                return run(self._session, self, f, budget, *how, stop=self._stopping, **more)
            except KeyboardInterrupt:
                raise KeyboardInterrupt(f"{self._progress(budget)}; the same call goes on") from None

    def stop(self) -> None:
        """End the run that is going on, from any thread or from the callback; evaluations under way are waited for.

        Example:
            >>> threading.Timer(60.0, study.stop).start()
        """
        self._stopping.set()

    def _progress(self, budget: int) -> str:
        best = (
            f"the best value is {self.best.value:.6g}" if self.has_best and self.best.has_value else "none has a value"
        )
        return f"stopped after {self.evaluated} of {budget} evaluations, all stored; {best}"

    def save(self) -> None:
        """Store the method's state, so that resuming takes less time. Nothing is ever lost without it."""
        if not self.readonly:
            self._session.save()

    # in and out

    def to_dataframe(self) -> pandas.DataFrame:
        """Everything that is known of the trials as a table.

        Returns:
            A DataFrame with a row for each trial: number, value, source, iteration, message, and a column for each
            variable; then constraints, noise and attributes, where there are any; then the phase of the search, when
            the trial was asked for and told, the seconds that it and the method took, and the worker.

        Raises:
            InputError: pandas is not installed.

        Example:
            >>> study.to_dataframe().sort_values("value").head()
        """
        return tables.dataframe(self.trials, self.space, times=True, objectives=self.objectives)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write what the search has learned as one page that any browser opens, without a network.

        Args:
            path: The file to write.

        Returns:
            The path of the page.

        Example:
            >>> study.report("report.html")
        """
        from mctsvs.visualization.report import write

        return write(self, path)

    def export(self, path: str | os.PathLike[str]) -> int:
        """Write the trials that were told as a table. `import_points` reads it back unchanged.

        Args:
            path: The file to write. Its name ends in .csv or .parquet.

        Returns:
            How many they are.

        Raises:
            InputError: The file cannot be written, or a library for it is not installed.

        Example:
            >>> study.export("trials.csv")
        """
        return tables.export(output_path(path), self.trials, self.space, self.objectives)

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Write a complete copy of the study as it is now, also while it runs: a study that opens and goes on.

        Args:
            path: A new file.

        Raises:
            StudyError: The file exists already, or cannot be written.

        Example:
            >>> study.backup("run-monday.db")
        """
        self._session.backup(output_path(path))

    def close(self) -> None:
        """Close the file, so that other processes can write to it. Closing it again does nothing.

        Raises:
            StudyError: The file was lost or overwritten since the last trial. Everything is saved beside it.

        Example:
            >>> study.close()
        """
        self._session.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # forgotten studies must not stay locked
            self.close()

    def __enter__(self) -> Study:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        best = (
            f", best {self.best.value:.6g} at trial {self.best.number}" if self.has_best and self.best.has_value else ""
        )
        if self.objectives is not None:
            best = f", {len(self.front)} of them on the front"
        size = f"{self.evaluated} evaluations of {len(self.space)} variables"
        return f"Study({str(self.path)!r}, {self.method}, {size}{best})"

    def _repr_html_(self) -> str:
        from mctsvs.visualization.report import card

        return (
            f"<pre>{escape(repr(self))}</pre>"
            if self.objectives
            else card(self, f"Study {self.path.name}, {self.method}")
        )
