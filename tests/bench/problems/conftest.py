"""Where tests find measured data: in $MCTSVS_DATA, else beside the repository, else in installed packages."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mctsvs.bench.problems import data
from mctsvs.bench.problems.originals import get

BESIDE = Path(__file__).parents[4] / "shared" / "data"


@pytest.fixture(autouse=True, scope="session")
def data_directory(data_home: None) -> Iterator[None]:
    """Look beside the repository where the environment names no directory."""
    with pytest.MonkeyPatch.context() as patch:
        if not os.environ.get(data.ENVIRONMENT) and BESIDE.is_dir():
            patch.setenv(data.ENVIRONMENT, str(BESIDE))
        yield


@pytest.fixture(scope="session")
def need(data_directory: None) -> Callable[[str], Path]:
    """The folder of a data set; the test is skipped where there is none, and only there."""

    def folder(dataset: str) -> Path:
        if data.lies(data.declared(dataset)) is None and not get.at_hand(data.declared(dataset)):
            pytest.skip(f"the data set {dataset} is not here")
        return data.folder(dataset)

    return folder


@pytest.fixture(scope="session")
def published() -> Any:
    """The module that writes originals."""
    spec = importlib.util.spec_from_file_location("write_originals", Path(__file__).with_name("write_originals.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
