"""A run that is kept in a file: ask, tell, and everything that can be read from it."""

from __future__ import annotations

import contextlib
import enum
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from mctsvs.common import InputError
from mctsvs.optimizer import Optimizer, Trial, as_value
from mctsvs.space import Space
from mctsvs.study import codec, points
from mctsvs.study.contents import Contents, optimizer, read
from mctsvs.study.errors import StudyError
from mctsvs.study.identity import differences
from mctsvs.study.journal import Entry, Journal
from mctsvs.study.lock import WriterLock
from mctsvs.tree import Node

if TYPE_CHECKING:
    from concurrent.futures import Executor

    import pandas

LEAST_THINKING = 50.0  # the method's memory is stored when repeating its thoughts would take this many times longer


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

    path        one file, on a disk of this machine; one process at a time writes to it
    space, direction, method, seed, options     as for `mctsvs.Optimizer`
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
        readonly: bool = False,
        **options: Any,
    ) -> None:
        self.path, self.readonly = Path(path), readonly
        given: dict[str, Any] = {"direction": direction, "method": method, "seed": seed}
        given = {name: value for name, value in given.items() if value is not AS_STORED}
        if space is not None:
            given["space"] = Space.of(space)
        self._opt: Optimizer | None = None
        self._stale = False  # the optimizer may have done what the journal does not have
        self._process = os.getpid()
        self._lock = None if readonly else self._write_lock(space)
        try:
            if not readonly and not self.path.exists():
                self._create(given, options)
            self._journal = Journal(self.path, readonly=readonly)
            self._contents = contents = read(self._journal)
            self._check_same(given, options)
            if not readonly:
                self._opt = self._revive(contents)
            contents = self._contents
        except BaseException:
            self.close()
            raise
        self.space = contents.space
        self.direction, self.method, self.seed, self.options = (
            contents.identity[name] for name in ("direction", "method", "seed", "options")
        )
        self._results = contents.results
        self._thinking = self._price = 0.0  # seconds since the memory was stored, and seconds to store it

    def _write_lock(self, space: Any) -> WriterLock:
        if not self.path.exists() and space is None:
            raise StudyError(f"there is no study {str(self.path)!r}: give a space to begin one")
        if not self.path.parent.is_dir():
            folder = str(self.path.parent)
            raise StudyError(f"cannot begin a study in {str(self.path)!r}: the folder {folder!r} does not exist")
        return WriterLock(self.path)

    def _create(self, given: Mapping[str, Any], options: dict[str, Any]) -> None:
        opt = Optimizer(**{"direction": "minimize", **given}, **options)
        identity = {
            "space": opt.space.to_state(),
            "direction": opt.direction,
            "method": opt.method,
            "options": opt.options,
            "seed": opt.seed,
        }
        try:
            Journal.create(self.path, {"identity": identity})
        except TypeError as error:
            raise StudyError(f"these options cannot be stored: {error}") from None

    def _check_same(self, given: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        found = differences(self._contents.identity, self._contents.space, given, options)
        if found:
            raise StudyError(
                f"the study {str(self.path)!r} is another one: {'; '.join(found)} (give what it was begun with, or "
                f"another file)"
            )

    def _revive(self, contents: Contents) -> Optimizer:
        try:
            return optimizer(contents)
        except InputError:  # such as a library that is not installed here
            raise
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, AssertionError):
            # another version of the method remembers other things; what happened is the same
            self._contents = read(self._journal, memory=False)
        try:
            return optimizer(self._contents)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, AssertionError) as error:
            if isinstance(error, InputError):
                raise
            raise StudyError(
                f"the study {str(self.path)!r} cannot be resumed ({type(error).__name__}): this version of mctsvs does "
                f"not understand it; its trials can be read and exported"
            ) from None

    # what is in it

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer behind it; of a study that is only read, made when first needed."""
        if self._stale:
            self._contents = read(self._journal)
            self._opt, self._results, self._stale = None, self._contents.results, False
        if self._opt is None:
            self._opt = self._revive(self._contents)
        return self._opt

    @property
    def trials(self) -> list[Trial]:
        """All trials in order; the value of those not told is None."""
        return self._contents.trials if self._opt is None else self.optimizer.trials

    @property
    def best(self) -> Trial:
        """The best trial told so far (the one told first, if several are equal)."""
        if self._opt is not None:
            return self.optimizer.best
        told = [t for t in (self.trials[number] for number in self._contents.told) if not t.failed]
        if not told:
            raise InputError("there is no best trial yet: no evaluation has succeeded")
        sign = -1.0 if self.direction == "maximize" else 1.0
        return min(told, key=lambda t: sign * float(t.value or 0.0))

    @property
    def has_best(self) -> bool:
        """Whether an evaluation has succeeded yet."""
        if self._opt is not None:
            return self.optimizer.has_best
        return any(t.value is not None and not t.failed for t in self.trials)

    @property
    def pending(self) -> list[Trial]:
        """Trials asked for and not yet told."""
        return [t for t in self.trials if t.value is None] if self._opt is None else self.optimizer.pending

    @property
    def evaluated(self) -> int:
        """Trials told, without those imported: what a budget counts."""
        return sum(t.value is not None and t.source != "imported" for t in self.trials)

    def importance(self) -> dict[str, float]:
        """Name -> score between 0 and 1, most important first; see `Optimizer.importance`."""
        return self.optimizer.importance()

    @property
    def tree(self) -> Node | None:
        """The tree of variable groups, for methods that have one."""
        return self.optimizer.tree

    @property
    def notes(self) -> dict[str, Any]:
        """What `note` has stored."""
        return {name: value for name, value in self._journal.meta().items() if name != "identity"}

    def note(self, name: str, value: Any) -> None:
        """Keep plain data (numbers, strings, lists, dicts, arrays) with the study under a name."""
        self._check_writable()
        if name == "identity":
            raise InputError("a note cannot be called 'identity': that is what the study is")
        try:
            self._journal.set_meta(name, value)
        except TypeError as error:
            raise InputError(f"the note {name!r} cannot be stored: {error}") from None

    # what changes it

    def ask(self, n: int = 1) -> list[Trial]:
        """The next n points to evaluate, stored before they are returned; see `Optimizer.ask`."""
        with self._change() as opt:
            before = time.perf_counter()
            trials = opt.ask(n)
            self._thinking += time.perf_counter() - before
            first, size = trials[0].number, len(opt.space)
            entries = [
                Entry(
                    "ask",
                    trial.number,
                    first,
                    trial.iteration,
                    text=trial.source,
                    variables=codec.pack_positions(trial.variables, size),
                    point=codec.pack_point(trial.unit),
                )
                for trial in trials
            ]
            self._store(entries, remember=self._thinking >= LEAST_THINKING * self._price)
        return trials

    def tell(self, trial: Trial | int, value: float | None, message: str = "") -> None:
        """The value of a trial, stored before the method gets it; None, NaN and infinities: it failed."""
        number, number_value = self._checked(trial, value)
        message = _text(message)
        with self._change() as opt:
            self._store([_told("tell", number, number_value, message)])
            before = time.perf_counter()
            opt.tell(number, number_value, message)
            self._thinking += time.perf_counter() - before
            self._results.pop(number, None)

    def keep(self, trial: Trial | int, value: float | None, message: str = "") -> None:
        """Store a value that the method is to be told later, in the order of the trials."""
        number, number_value = self._checked(trial, value)
        message = _text(message)
        with self._change():
            self._store([_told("result", number, number_value, message)])
            self._results[number] = (number_value, message)

    @property
    def results(self) -> Mapping[int, tuple[float, str]]:
        """Number -> value and message of the trials in `keep`."""
        return self._results

    def _checked(self, trial: Trial | int, value: float | None) -> tuple[int, float]:
        self._check_writable()
        return self.optimizer.waiting(trial).number, as_value(value) + 0.0  # 0.0 for -0.0, as SQLite keeps it

    def enqueue(self, points: Iterable[Any]) -> None:
        """Points, vectors or dicts of name -> value, to be tried before the method's own."""
        self._check_writable()
        units = [self.optimizer.unit_of(point) for point in points]
        with self._change() as opt:
            self._store([Entry("enqueue", point=codec.pack_point(unit)) for unit in units])
            opt.queue.extend(units)

    def import_points(self, source: Any) -> int:
        """Earlier evaluations as a warm start; how many there were.

        source  a CSV or Parquet file with a column for each variable and one called value (as `export` writes it),
                a pandas DataFrame of that form, another Study, or an Optuna study. No value: it failed.

        They become trials that do not count towards a budget. A large file is one transaction: all of it or nothing.
        """
        self._check_writable()
        rows = points.rows(source, self.space, self.direction)
        if not rows:
            raise InputError("there is nothing to import: the source has no evaluations")
        with self._change() as opt:
            first = len(opt.trials)
            self._store(
                [
                    Entry("import", first + i, first, value=_stored(value), text=text, point=codec.pack_point(unit))
                    for i, (unit, value, text) in enumerate(rows)
                ]
            )
            for unit, value, text in rows:
                opt.insert(unit, value, text)
        self.save()
        return len(rows)

    def optimize(
        self,
        f: Callable[[Any], float],
        budget: int,
        *,
        executor: Executor | None = None,
        workers: int | None = None,
        asynchronous: bool = False,
        timeout: float | None = None,
        max_failures: int = 30,
        callback: Callable[[Study, Trial], object] | None = None,
    ) -> Trial:
        """Evaluate f until the study has `budget` evaluations, those of earlier calls included; the best trial.

        f gets the point as a vector, or as a dict if the space is one. An exception, None, NaN, an infinity, a
        time-out or the death of its worker makes a failed trial with a message, and the search goes on elsewhere.

        executor      any `concurrent.futures.Executor`: threads, processes, Dask, loky, mpi4py, `mctsvs.parallel`
        workers       how many evaluations at once; without an executor, processes of this machine are started
        asynchronous  False: batches of `workers` points, told in their order: the same seed gives the same run.
                      True: a free worker gets a new point at once; points being evaluated are taken into account.
        timeout       seconds for an evaluation. Without an executor its process is ended then; with one, its result
                      is no longer waited for.
        max_failures  so many failures in a row end the run with an error
        callback      called as callback(study, trial) after each evaluation

        Ctrl-C ends the run at once and says how far it came: everything told is stored, and the same call goes on.
        """
        from mctsvs.study.run import Settings, run

        self._check_writable()
        settings = Settings(budget, executor, workers, asynchronous, timeout, max_failures, callback)
        try:
            run(self, f, settings)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"{self._progress(budget)}; the same call goes on") from None
        finally:
            if self._lock is not None:
                self.save()
        if not self.has_best:
            raise StudyError(f"all {self.evaluated} evaluations failed, the last with: {self.trials[-1].message}")
        return self.best

    def _progress(self, budget: int) -> str:
        best = f"the best value is {self.best.value:.6g}" if self.has_best else "none has succeeded"
        return f"stopped after {self.evaluated} of {budget} evaluations, all stored; {best}"

    def save(self) -> None:
        """Store the method's memory, so that resuming takes no thinking. Nothing is ever lost without it."""
        if self._opt is not None and not self._stale and not self.readonly and self._thinking > 0.0:
            self._store([], remember=True)

    @contextmanager
    def _change(self) -> Iterator[Optimizer]:
        """Between the method's step and the journal's, anything may happen: if it does, the journal is right."""
        self._check_writable()
        opt = self.optimizer
        try:
            yield opt
        except BaseException:
            self._stale = True
            raise

    def _store(self, entries: list[Entry], *, remember: bool = False) -> None:
        before = time.perf_counter()
        memory = None
        if remember:
            assert self._opt is not None
            memory = codec.pack(self._opt.memory())
        self._journal.append(entries, memory)
        if remember:
            self._thinking, self._price = 0.0, time.perf_counter() - before

    def _check_writable(self) -> None:
        if self.readonly:
            raise StudyError(
                f"the study {str(self.path)!r} was opened with readonly=True: open it without to change it"
            )
        if self._lock is None:
            raise StudyError(f"the study {str(self.path)!r} is closed: open it again")
        if os.getpid() != self._process:
            raise StudyError(
                f"the study {str(self.path)!r} belongs to process {self._process}: tell it the values there"
            )

    # in and out

    def to_dataframe(self) -> pandas.DataFrame:
        """A row for each trial: number, value, source, iteration, message, and a column for each variable."""
        return points.dataframe(self.trials, self.space)

    def export(self, path: str | os.PathLike[str]) -> None:
        """The same as a CSV or Parquet file, by the ending of its name; `import_points` reads it."""
        points.export(Path(path), self.trials, self.space)

    def close(self) -> None:
        """Store what is worth it and let other processes write; done again, it does nothing."""
        if os.getpid() != self._process:
            return
        lock, self._lock = self._lock, None
        try:
            if lock is not None and hasattr(self, "_price"):
                self.save()
        finally:
            if hasattr(self, "_journal"):
                self._journal.close()
            if lock is not None:
                lock.release()

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
        return f"Study({str(self.path)!r}, {self.method}, {self.evaluated} evaluations of {len(self.space)} variables)"


def _text(message: Any) -> str:
    return str(message).encode("utf-8", "replace").decode()  # what is no character cannot be stored


def _stored(value: float) -> float | None:
    return None if math.isnan(value) else value


def _told(kind: str, number: int, value: float, message: str) -> Entry:
    return Entry(kind, number, value=_stored(value), text=message)
