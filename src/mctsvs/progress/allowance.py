"""A share of a run's time that may be spent on showing it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SHARE = 0.005


class Allowance:
    """Lets work be done only as long as all of it together stays below a share of the time since the beginning.

    >>> if allowance.permits(0.01):
    ...     with allowance.spending():
    ...         draw()
    """

    def __init__(self, share: float = SHARE, now: Callable[[], float] = time.perf_counter) -> None:
        self.share, self.now = share, now
        self.began, self.spent, self.last = now(), 0.0, 0.0

    @property
    def elapsed(self) -> float:
        return self.now() - self.began

    def permits(self, seconds: float) -> bool:
        """Whether work expected to take so long may be done now."""
        return self.spent + seconds <= self.share * self.elapsed

    @contextmanager
    def spending(self) -> Iterator[None]:
        started = self.now()
        try:
            yield
        finally:
            self.last = self.now() - started
            self.spent += self.last
