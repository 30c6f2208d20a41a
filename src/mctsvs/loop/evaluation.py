"""One evaluation of a function: whatever goes wrong in it is a result with a message."""

from __future__ import annotations

import contextlib
import math
import os
import platform
import random
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from reprlib import repr as short
from typing import Any, NamedTuple

import numpy as np

from mctsvs.optimizer.objectives import Returned
from mctsvs.optimizer.trial import as_constraints, split, unknown_constraint
from mctsvs.utils.formatting import as_text, printable, tidy
from mctsvs.utils.validation import InputError, SeveralValues, as_value


class Evaluation(NamedTuple):
    """What came of it."""

    value: float  # NaN: it failed
    message: str  # why
    seconds: float  # it took
    constraints: dict[str, float] | None = None  # measured with it
    worker: str = ""  # whoever did it: a process, and a thread of it where there are several
    refused: bool = False  # whether it failed because of what the function returns, which is no value
    values: tuple[float, ...] | None = None  # of several objectives; the value is then NaN
    hint: str = ""  # what to do where it was refused

    @property
    def told(self) -> float | tuple[float, ...]:
        """The value, or those of several objectives."""
        return self.value if self.values is None else self.values

    def fitting(self, names: Sequence[str]) -> Evaluation:
        """The same, or a failed one if it has a constraint beside these, of which there may be none yet."""
        wrong = unknown_constraint(self.constraints, names)
        if not wrong:
            return self
        return self._replace(value=math.nan, message=tidy(wrong), constraints=None, values=None)


class RandomStream(NamedTuple):
    """Where the random numbers of a trial begin: its noise depends on no worker, nor on how many there are."""

    seed: int  # of the run
    number: int  # of the trial
    home: str = ""  # the process of the run; its generators stay as they are

    def begin(self) -> None:
        """Seed the generators that all of a process shares, unless it is the user's own."""
        if self.home == process_name():
            return
        words = np.random.SeedSequence(self.seed, spawn_key=(self.number,)).generate_state(8)
        random.seed(words.tobytes())
        np.random.seed(words)  # noqa: NPY002  it is the one that functions use without a generator of their own
        if "torch" in sys.modules:
            sys.modules["torch"].manual_seed(int(words[0]))


def evaluate(
    f: Callable[[Any], Any],
    argument: Any,
    stream: RandomStream | None = None,
    catch: tuple[type[BaseException], ...] = (Exception, SystemExit),
) -> Evaluation:
    """f(argument), in any process or thread; an exception of the kinds to `catch` is a failed evaluation."""
    if stream is not None:
        stream.begin()
    process, before = os.getpid(), time.perf_counter()
    try:
        result = f(argument)
    except BaseException as error:
        _leave_if_forked(process, error)
        if not isinstance(error, catch):
            raise
        return Evaluation(math.nan, one_line(error), time.perf_counter() - before, worker=_worker())
    _leave_if_forked(process)
    seconds = time.perf_counter() - before
    try:
        several = result.objectives if isinstance(result, Returned) else None
        result = result.result if isinstance(result, Returned) else result
        value, constraints = split(result)
        values = None if several is None else several.values(value, failing=True)
        number = as_value(value) if several is None else math.nan
        found = Evaluation(number, "", seconds, as_constraints(constraints), _worker(), values=values)
    except InputError as error:
        hint = error.hint if isinstance(error, SeveralValues) else ""
        if Exception not in catch:
            raise InputError("; ".join(filter(None, (str(error), hint)))) from None
        return Evaluation(math.nan, tidy(str(error)), seconds, worker=_worker(), refused=True, hint=hint)
    why = tidy(f"the function returned {short(value)}") if math.isnan(found.value) and not values else ""
    return found._replace(message=why)


def process_name() -> str:
    """This process among those of all machines."""
    return f"{platform.node()}, process {os.getpid()}"


def _worker() -> str:
    thread = threading.current_thread()
    return tidy(process_name() + ("" if thread is threading.main_thread() else f", {thread.name}"))


def _leave_if_forked(process: int, error: BaseException | None = None) -> None:
    """A child that the function has forked, and that comes back from it, must not go on as a second one of us."""
    if os.getpid() == process:
        return
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    code = error.code if isinstance(error, SystemExit) else error
    os._exit(code if isinstance(code, int) else code is not None)


def one_line(error: BaseException) -> str:
    """The error, and the place in the user's code that it comes from."""
    text = as_text(error)
    if type(error).__name__ == "EvaluationFailed":  # made for people: see `mctsvs.bench.problems`
        return tidy(text)
    frames = traceback.extract_tb(error.__traceback__)[1:]
    place = f" ({os.path.basename(frames[-1].filename)}, line {frames[-1].lineno})" if frames else ""
    return tidy(f"{type(error).__name__}: {text}".removesuffix(": ")) + printable(place)
