"""Ctrl-C for the tests, a data directory of their own, the mark of those that need a library; what is not measured."""

from __future__ import annotations

import importlib.util
import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Coverage is not measured in slow tests and in those of benchmarks: that would make them slower still."""
    for item in items:
        if item.get_closest_marker("slow") or Path(__file__).parent / "bench" in item.path.parents:
            item.add_marker("no_cover")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """The programs that such a test starts are not measured either."""
    unmeasured = item.get_closest_marker("no_cover") is not None
    measure = os.environ.pop("COVERAGE_PROCESS_CONFIG", None) if unmeasured else None
    try:
        return (yield)
    finally:
        if measure is not None:
            os.environ["COVERAGE_PROCESS_CONFIG"] = measure
