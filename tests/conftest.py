"""Ctrl-C for the tests, and the mark of those that need a library which may not be installed."""

from __future__ import annotations

import importlib.util
import os
import signal

import pytest

# a shell that starts the tests in the background ignores Ctrl-C for them, and so for the programs they start
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip without the libraries of `needs`; in CI, where that is a missing install step, the test fails."""
    if "CI" in os.environ:
        return
    for marker in item.iter_markers("needs"):
        for module in marker.args:
            if importlib.util.find_spec(module) is None:
                pytest.skip(f"{module} is not installed")
