"""From the journal back to trials, and to the optimizer as it was: bit for bit.

The method's memory stands for the first so many entries; the few after it are repeated by asking and telling the
method again. What it then proposes must be what is in the journal; where another machine's arithmetic makes a
difference, the journal is right.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np

from mctsvs.common import Array, Indices
from mctsvs.optimizer import Optimizer, Trial
from mctsvs.space import Space
from mctsvs.study import codec
from mctsvs.study.errors import DamagedError, clear_errors, damaged
from mctsvs.study.journal import Entry, Journal


@dataclass
class Contents:
    """What a journal holds. `known` counts the entries that the method's memory stands for."""

    identity: dict[str, Any]  # space, direction, method, options, seed
    notes: dict[str, Any]  # all else in its description
    space: Space
    known: int = 0
    memory: Any = None
    trials: list[Trial] = field(default_factory=list)
    units: Array = field(default_factory=lambda: np.empty((0, 0)))  # (n, D) points of the trials
    enqueued: list[Array] = field(default_factory=list)
    results: dict[int, tuple[float, str]] = field(default_factory=dict)  # values the method is not told yet
    told: list[int] = field(default_factory=list)  # numbers of trials, in the order of telling
    asked: int = 0  # trials, as far as is known
    answered: int = 0  # of those told, as far as is known
    queue: list[Array] = field(default_factory=list)  # enqueued and not asked for, as far as is known
    rest: list[Entry] = field(default_factory=list)  # what happened after


def read(journal: Journal, *, memory: bool = True) -> Contents:
    """All of a journal, checked; without the method's memory everything is repeated by `optimizer`."""
    journal.snapshot()
    try:
        meta = journal.meta()
        identity = meta.pop("identity")
        contents = Contents(identity, meta, Space.from_state(identity["space"]))
        if memory:
            contents.known, contents.memory = journal.memory() or (0, None)
        _fill(contents, journal)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, MemoryError) as error:
        if isinstance(error, DamagedError):
            raise
        raise damaged(journal.path, f"{type(error).__name__} while reading it") from None
    finally:
        with clear_errors(journal.path):
            journal.release()
    return contents


def _fill(contents: Contents, journal: Journal) -> None:
    space, trials, known = contents.space, contents.trials, contents.known
    units = contents.units = np.empty((journal.count("ask", "import"), space.n_coordinates))
    taken = 0  # enqueued points that have been asked for
    before: tuple[bytes, Indices] = (b"", np.arange(len(space)))  # points of a batch share their variables
    for seq, entry in enumerate(journal.entries(), 1):
        if entry.kind in ("ask", "import"):
            if entry.number != len(trials):
                raise damaged(journal.path, f"trial {len(trials)} is missing")
            unit = units[entry.number]
            unit[:] = codec.unpack_point(entry.point)
            unit.flags.writeable = False
            if entry.variables != before[0]:
                before = entry.variables, codec.unpack_positions(entry.variables, len(space))
            source = entry.text if entry.kind == "ask" else "imported"
            trials.append(Trial(entry.number, unit, before[1], space, None, entry.iteration, source))
            taken += source == "enqueued"
        elif entry.kind == "enqueue":
            contents.enqueued.append(np.array(codec.unpack_point(entry.point)))
        if entry.kind == "result":
            contents.results[entry.number] = _value(entry), entry.text
        elif entry.kind in ("tell", "import"):
            trial = trials[entry.number]
            trial.value, trial.message = _value(entry), entry.text
            contents.results.pop(entry.number, None)
            contents.told.append(entry.number)
        if seq == known:
            contents.asked, contents.answered = len(trials), len(contents.told)
            contents.queue = contents.enqueued[taken:]
        elif seq > known:
            contents.rest.append(entry)
    if known > journal.length:
        raise damaged(journal.path, f"entries after number {journal.length} are missing")
    units.flags.writeable = False


def _value(entry: Entry) -> float:
    return math.nan if entry.value is None else entry.value


def optimizer(contents: Contents) -> Optimizer:
    """The optimizer that wrote these contents, as it was after the last entry; it takes over the trials."""
    identity = contents.identity
    opt = Optimizer(
        contents.space,
        direction=identity["direction"],
        method=identity["method"],
        seed=identity["seed"],
        **identity["options"],
    )
    if contents.memory is not None:
        trials, told = contents.trials[: contents.asked], contents.told[: contents.answered]
        for number in set(range(len(trials))).difference(told):
            trials[number].value, trials[number].message = None, ""
        opt.recall(trials, contents.units[: contents.asked], told, contents.memory)
        opt.queue.extend(contents.queue)
    same = True
    enqueued = contents.enqueued[len(contents.enqueued) - sum(e.kind == "enqueue" for e in contents.rest) :]
    for (kind, _), group in groupby(contents.rest, key=lambda entry: (entry.kind, entry.call)):
        for entry in [next(group)] if kind == "ask" else group:
            if kind == "ask":
                same &= _ask_again(opt, contents, 1 + sum(1 for _ in group))
            elif kind == "tell":
                opt.tell(entry.number, _value(entry), entry.text)
            elif kind == "enqueue":
                opt.queue.append(enqueued.pop(0))
            elif kind == "import":
                opt.insert(contents.units[entry.number], _value(entry), entry.text)
    if not same:
        warnings.warn(
            "this machine computes other points than the one that wrote the study: the run goes on, but not bit for "
            "bit as it would have there",
            RuntimeWarning,
            stacklevel=3,
        )
    return opt


def _ask_again(opt: Optimizer, contents: Contents, n: int) -> bool:
    """Whether the method proposes what it proposed before; what it did propose before is what counts."""
    same = True
    for trial in opt.ask(n):
        before = contents.trials[trial.number]
        same &= np.array_equal(trial.unit, before.unit) and np.array_equal(trial.variables, before.variables)
        trial.unit, trial.variables, trial.iteration = before.unit, before.variables, before.iteration
    return same
