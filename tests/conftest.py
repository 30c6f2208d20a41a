"""Ctrl-C for the tests, a data directory of their own, and the mark of those that need a library."""

from __future__ import annotations

import importlib.util
import os
import signal
from collections.abc import Iterator

import pytest

from mctsvs.methods.registry import METHODS

# a shell that starts the tests in the background ignores Ctrl-C for them, and so for the programs they start
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def data_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tables that tests make are kept for these tests alone, also in the programs that they start."""
    with pytest.MonkeyPatch.context() as patch:
        home = tmp_path_factory.mktemp("data_home")
        for name in ("XDG_DATA_HOME", "LOCALAPPDATA"):
            patch.setenv(name, str(home))
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip without the libraries of `needs`, or of the `method` that a test is for.

    In CI a missing library is a missing install step, and the test fails.
    """
    if "CI" in os.environ:
        return
    modules = [module for marker in item.iter_markers("needs") for module in marker.args]
    method = getattr(item, "callspec", None) and item.callspec.params.get("method")  # type: ignore[attr-defined]
    if isinstance(method, str) and method in METHODS:
        modules += METHODS[method].needs
    for module in modules:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
