"""Where a run can be shown: on a terminal, in a notebook, as lines of a log, or nowhere."""

from __future__ import annotations

import sys
from typing import Any, ClassVar

from mctsvs.progress.account import Account
from mctsvs.progress.follower import View


class Lines:
    """A line at each tenth of the evaluations and when the phase changes, for logs and pipes."""

    wants_importance: ClassVar[bool] = False

    def __init__(self, stream: Any = None) -> None:
        self.stream = stream or sys.stderr
        self.phase = ""

    def begin(self, account: Account) -> None:
        self.phase = account.phase.partition(":")[0]
        self._print(f"{account.label}: {account.line()}")

    def told(self, account: Account, due: bool) -> None:
        phase = account.phase.partition(":")[0]
        tenth = account.evaluated * 10 // account.budget > (account.evaluated - 1) * 10 // account.budget
        if tenth or phase != self.phase:
            self.phase = phase
            self._print(account.line())

    def end(self, account: Account) -> None:
        pass

    def _print(self, text: str) -> None:
        print(text, file=self.stream, flush=True)


class Notebook:
    """One line of text below the cell, replaced as the run goes on: no widget, so it is there when the page is read."""

    wants_importance: ClassVar[bool] = False

    def __init__(self, display: Any) -> None:
        self.display, self.handle = display, None

    def begin(self, account: Account) -> None:
        self.handle = self.display(self._bundle(account), raw=True, display_id=True)

    def told(self, account: Account, due: bool) -> None:
        if due:
            self._update(account)

    def end(self, account: Account) -> None:
        self._update(account)

    def _update(self, account: Account) -> None:
        if self.handle is not None:
            self.handle.update(self._bundle(account), raw=True)

    def _bundle(self, account: Account) -> dict[str, str]:
        return {"text/plain": f"{account.label}: {account.line()}"}


class Terminal:
    """A display that is drawn anew in place; see `mctsvs.progress.screen`."""

    wants_importance: ClassVar[bool] = True

    def __init__(self, console: Any, *, keep: bool) -> None:
        from rich.live import Live

        self.live = Live(console=console, auto_refresh=False, transient=not keep)

    def begin(self, account: Account) -> None:
        self.live.start()
        self._draw(account)

    def told(self, account: Account, due: bool) -> None:
        if due:
            self._draw(account)

    def end(self, account: Account) -> None:
        self._draw(account)
        self.live.stop()

    def _draw(self, account: Account) -> None:
        from mctsvs.progress.screen import screen

        self.live.update(screen(account), refresh=True)


def somebody(*, keep: bool = True, lines: bool = False) -> View | None:
    """The view that fits where this process runs; None where nobody looks.

    keep    the last display stays on the terminal
    lines   where there is neither terminal nor notebook, lines of text instead of nothing
    """
    if (display := _notebook()) is not None:
        return Notebook(display)
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_terminal and not console.is_dumb_terminal:
        return Terminal(console, keep=keep)
    return Lines() if lines else None


def _notebook() -> Any:
    """IPython's display function, in a kernel of a notebook."""
    if "ipykernel" not in sys.modules:
        return None
    from IPython import get_ipython
    from IPython.display import display

    return display if hasattr(get_ipython(), "kernel") else None
