"""NAS-Bench-ASR on tables made here in the published format, and pickles that must not be trusted."""

from __future__ import annotations

import os
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mctsvs.bench.problems import data, make
from mctsvs.bench.problems.nasbench_asr import BLOCKS, OPERATIONS, architectures, canonical, classes
from mctsvs.bench.problems.originals import plain_pickle
from mctsvs.utils.validation import InputError

FILES = list(data.DATASETS["nasbench_asr"].files)
HEADER: dict[str, Any] = {
    "dataset_type": "training",
    "version": 1,
    "seed": 1234,
    "epochs": 40,
    "columns": ["model_hash", "val_per", "test_per", "arch_vec"],
    "search_space": {"ops": OPERATIONS, "nodes": 3, "shape": [[6, 2], [6, 2, 2], [6, 2, 2, 2]]},
}


def rows(seed: int) -> list[list[Any]]:
    """One row for each architecture, in any of its forms; error rates of two epochs, as numpy writes them."""
    rng = np.random.default_rng(seed)
    forms = {form: architecture for architecture, form in classes().items()}
    table = []
    for number, architecture in enumerate(forms.values()):
        last = np.float32(0.2 + number / 20_000 + 0.001 * rng.random())
        layers = [tuple(layer) for layer in architecture]
        table.append([f"{number:032x}", [np.float32(0.9), last], float(last) + 0.01, layers])
    return table


def write(folder: Path, file: str, header: Any, table: Any, protocol: int = 4) -> None:
    with open(folder / file, "wb") as stream:
        pickle.dump(header, stream, protocol)
        pickle.dump(table, stream, protocol)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(data.CHOSEN, str(tmp_path))
    made = tmp_path / "nasbench_asr"
    made.mkdir()
    return made


def test_the_published_number_of_architectures() -> None:
    assert len(classes()) == 13_824 == np.prod(BLOCKS)
    assert len(set(classes().values())) == 8_242


def test_forms_of_one_architecture() -> None:
    linear, conv5, zero = (OPERATIONS.index(name) for name in ("linear", "conv5", "zero"))
    silent_end = canonical(((linear, 1), (conv5, 0, 0), (zero, 0, 1, 0)))
    assert silent_end == canonical(((linear, 0), (zero, 0, 0), (zero, 0, 1, 0)))
    assert silent_end == canonical(((zero, 1), (linear, 0, 0), (zero, 0, 0, 1)))
    assert silent_end != canonical(((conv5, 0), (zero, 0, 0), (zero, 0, 1, 0)))
    side_by_side = [
        ((first, 0), (zero, 1, 0), (second, 0, 1, 0)) for first, second in ((linear, conv5), (conv5, linear))
    ]
    assert canonical(side_by_side[0]) == canonical(side_by_side[1])
    in_a_row = [((first, 0), (second, 0, 0), (zero, 0, 0, 1)) for first, second in ((linear, conv5), (conv5, linear))]
    assert canonical(in_a_row[0]) != canonical(in_a_row[1])
    assert canonical(((zero, 0), (zero, 0, 0), (zero, 0, 0, 0))) == ((), ())


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_the_published_format(folder: Path, protocol: int) -> None:
    tables = [rows(seed) for seed in range(3)]
    for file, table in zip(FILES, tables, strict=True):
        write(folder, file, HEADER, table, protocol)
    problem = make("NAS-Bench-ASR")
    assert (problem.name, problem.dimension, problem.direction) == ("NASBenchASR", 30, "minimize")
    assert problem.optimizer is not None
    means = np.mean([[float(row[1][-1]) for row in table] for table in tables], axis=0)
    assert problem.optimum == problem(problem.optimizer) == pytest.approx(means.min(), rel=1e-12)
    listed = architectures()
    for number in range(0, len(means), 500):
        row = listed.index(tuple(tables[0][number][3]))
        assert problem(problem.function.point(row)) == pytest.approx(means[number], rel=1e-12)  # type: ignore[attr-defined]
    assert problem.cost(np.zeros(30)) is None
    assert [found.state for found in data.found("nasbench_asr")] == ["unchecked"] * 3


@pytest.mark.parametrize(
    ("header", "last", "words"),
    [
        ({}, -3, "lacks 3 of the 8242 architectures"),
        ({"dataset_type": "benchmarking"}, None, "its type is 'benchmarking', not 'training'"),
        ({"search_space": {"ops": OPERATIONS[:-1]}}, None, "its operations are"),
        ({"search_space": None}, None, "its rows are not as published"),
        ({"columns": ["val_per"]}, None, "its rows are not as published"),
        ({"columns": ["arch_vec", "val_per"]}, None, "its rows are not as published"),
    ],
)
def test_other_tables_are_refused_in_one_sentence(
    folder: Path, header: dict[str, Any], last: int | None, words: str
) -> None:
    for file in FILES:
        write(folder, file, {**HEADER, **header}, rows(0)[:last])
    with pytest.raises(InputError, match=re.escape(words)) as raised:
        make("NASBenchASR")
    assert str(folder / FILES[0]) in str(raised.value)
    assert "\n" not in str(raised.value)


class Evil:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def test_a_pickle_cannot_run_anything(folder: Path, tmp_path: Path) -> None:
    for file in FILES:
        write(folder, file, HEADER, [Evil(tmp_path / "harm")])
    with pytest.raises(InputError, match=r"is no table of NAS-Bench-ASR: it asks for (posix|nt|os)\.mkdir"):
        make("NASBenchASR")
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize("content", [b"", b"text", pickle.dumps([1])[:-1], b"\x80\x04cposix\nsystem\n.", b"Pabc\n."])
def test_what_is_no_plain_pickle_is_refused(content: bytes) -> None:
    with pytest.raises(plain_pickle.Refused):
        plain_pickle.read(content, 1)


def test_numbers_of_every_type_come_back() -> None:
    for protocol in range(6):
        for kind in ("f4", "f8", "i4", "i8", "u4", "u8", "i1", "u1", "b1", ">f4", ">i8"):
            number = np.dtype(kind).type(1)
            assert plain_pickle.read(pickle.dumps([number, {"a": (number, None)}], protocol), 1) == [
                [1, {"a": (1, None)}]
            ]
    with pytest.raises(plain_pickle.Refused):
        plain_pickle.read(pickle.dumps(np.float16(1)), 1)
    with pytest.raises(plain_pickle.Refused):
        plain_pickle.read(pickle.dumps(np.arange(3)), 1)
