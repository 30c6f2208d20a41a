"""Where data is looked for, and what is said of what is missing or damaged."""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from mctsvs.bench.problems import data, make
from mctsvs.cli import main
from mctsvs.utils.validation import InputError

Need = Callable[[str], Path]
TOY = "toy.npz"


def archive(**arrays: npt.ArrayLike) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=True, **arrays)
    return stream.getvalue()


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No directory is chosen, and the user's own is empty; $MCTSVS_DATA stays."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv(data.CHOSEN, "")


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Path]:
    """Declares a data set of one file and writes it, right or wrong, into a directory of that name."""
    right = archive(x=[1.0, 2.0], words=["a", "b"])
    declared = data.DataSet(
        "toy", "two numbers", {TOY: hashlib.sha256(right).hexdigest()}, "https://example.org", "MIT"
    )
    monkeypatch.setitem(data.DATASETS, "toy", declared)
    monkeypatch.delenv(data.ENVIRONMENT, raising=False)

    def write(directory: str, content: bytes = right) -> Path:
        folder = tmp_path / directory / "toy"
        folder.mkdir(parents=True)
        (folder / TOY).write_bytes(content)
        return folder

    return write


def test_the_chosen_directory_comes_before_the_environment_and_that_before_the_users(
    toy: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home, named, chosen = toy("home/mctsvs"), toy("named"), toy("chosen")
    if sys.platform.startswith("linux"):
        assert data.folder("toy") == home
    monkeypatch.setenv(data.ENVIRONMENT, str(named.parent))
    assert data.folder("toy") == named
    data.set_directory(chosen.parent)
    assert data.folder("toy") == chosen
    shutil.rmtree(chosen)
    assert data.folder("toy") == named
    data.set_directory(None)
    assert data.directories()[0] == named.parent


def test_processes_started_later_look_in_the_chosen_directory_too(toy: Callable[..., Path]) -> None:
    data.set_directory(toy("chosen").parent)
    code = "from mctsvs.bench.problems import data; print(data.directories()[0])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert Path(printed.strip()) == data.directories()[0]


def test_arrays_are_read_once_and_cannot_be_written_to(toy: Callable[..., Path]) -> None:
    folder = toy("chosen")
    data.set_directory(folder.parent)
    first = data.arrays("toy", TOY)
    assert first["x"].tolist() == [1.0, 2.0]
    assert first["words"].tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="read-only"):
        first["x"][0] = 3.0
    assert data.arrays("toy", TOY)["x"] is first["x"]
    assert data.found("toy") == [data.DataFile(TOY, folder / TOY, "ok", data.DATASETS["toy"].files[TOY])]
    with pytest.raises(InputError, match=r"toy\.npz' has no array 'y', but x and words"):
        first["y"]


def test_a_missing_data_set_is_one_sentence_with_what_to_get_from_where(toy: Callable[..., Path]) -> None:
    with pytest.raises(InputError) as raised:
        data.arrays("toy", TOY)
    text = str(raised.value)
    assert "the data set 'toy' is not in " in text
    assert all(word in text for word in (TOY, "--data", "$MCTSVS_DATA", "https://example.org"))
    assert "\n" not in text
    assert data.found("toy") == [data.DataFile(TOY, None, "missing", data.DATASETS["toy"].files[TOY])]


def test_a_flipped_bit_and_a_cut_file_are_damage(toy: Callable[..., Path]) -> None:
    folder = toy("chosen")
    data.set_directory(folder.parent)
    right = (folder / TOY).read_bytes()
    flipped = bytearray(right)
    flipped[len(right) // 2] ^= 1
    for wrong in (bytes(flipped), right[:-1], b""):
        (folder / TOY).write_bytes(wrong)
        with pytest.raises(InputError, match=r"toy\.npz' is damaged or another version: .* https://example\.org"):
            data.arrays("toy", TOY)
        assert [found.state for found in data.found("toy")] == ["damaged"]


def test_a_table_of_ones_own_is_checked_against_ones_own_checksum(toy: Callable[..., Path]) -> None:
    own = archive(x=[5.0])
    folder = toy("chosen", own)
    data.set_directory(folder.parent)
    with pytest.raises(InputError, match="another version"):
        data.arrays("toy", TOY)
    sums = folder / "SHA256SUMS"
    sums.write_text(f"no checksum at all\n{hashlib.sha256(own).hexdigest()} *{TOY}\n")
    assert data.arrays("toy", TOY)["x"].tolist() == [5.0]
    assert [found.state for found in data.found("toy")] == ["own"]
    (folder / TOY).write_bytes(own[:-1])
    assert [found.state for found in data.found("toy")] == ["damaged"]
    sums.write_bytes(b"\xff\xfe")
    (folder / TOY).write_bytes(own)
    assert [found.state for found in data.found("toy")] == ["damaged"]


@pytest.mark.parametrize("wrong", [b"no archive", archive(x=1.0)[:60], b""])
def test_without_a_known_checksum_what_is_no_archive_is_still_damage(
    toy: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, wrong: bytes
) -> None:
    data.set_directory(toy("chosen", wrong).parent)
    monkeypatch.setitem(data.DATASETS, "toy", replace(data.DATASETS["toy"], files={TOY: None}))
    with pytest.raises(InputError, match=r"toy\.npz' is damaged: it is no \.npz archive of plain arrays"):
        data.arrays("toy", TOY)
    assert [found.state for found in data.found("toy")] == ["unchecked"]


def test_an_archive_that_claims_eighty_gigabytes_is_damage(
    toy: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({10**10},), }}".encode().ljust(117) + b"\n"
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as packed:
        packed.writestr("x.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(80))
    data.set_directory(toy("chosen", stream.getvalue()).parent)
    monkeypatch.setitem(data.DATASETS, "toy", replace(data.DATASETS["toy"], files={TOY: None}))
    with pytest.raises(InputError, match="plain arrays"):
        data.arrays("toy", TOY)


def test_objects_in_an_archive_are_not_unpickled(toy: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    data.set_directory(toy("chosen", archive(x=np.array([{}], dtype=object))).parent)
    monkeypatch.setitem(data.DATASETS, "toy", replace(data.DATASETS["toy"], files={TOY: None}))
    with pytest.raises(InputError, match="plain arrays"):
        data.arrays("toy", TOY)


def test_wrong_names_and_directories(toy: Callable[..., Path], tmp_path: Path) -> None:
    data.set_directory(toy("chosen").parent)
    with pytest.raises(InputError, match=r"has no file 'other\.npz': use one of toy\.npz"):
        data.arrays("toy", "other.npz")
    with pytest.raises(InputError, match="unknown data set 'tay': use one of nasbench201, "):
        data.folder("tay")
    with pytest.raises(InputError, match=re.escape(f"there is no data directory '{tmp_path / 'no'}'")):
        data.set_directory(tmp_path / "no")


def test_a_file_missing_beside_others_is_named(need: Need, tmp_path: Path) -> None:
    folder = need("transnas")
    (tmp_path / "transnas").mkdir()
    shutil.copy(folder / "transnasbench101_macro.npz", tmp_path / "transnas")
    data.set_directory(tmp_path)
    with pytest.raises(InputError, match=r"transnasbench101_micro\.npz' is missing beside the others .* --again"):
        make("TransNAS")
    assert [found.state for found in data.found("transnas")] == ["missing", "ok"]


@pytest.mark.parametrize("dataset", [name for name in data.DATASETS if name != "nasbench_asr"])
def test_the_data_at_hand_is_what_was_declared(need: Need, dataset: str) -> None:
    made = data.user_directory() in need(dataset).parents
    assert {found.state for found in data.found(dataset)} == {"own" if made else "ok"}
    for file in data.DATASETS[dataset].files:
        assert data.arrays(dataset, file)


def test_every_data_set_says_where_it_comes_from() -> None:
    for name, known in data.DATASETS.items():
        assert known.name == name
        assert known.source.startswith("https://") or known.package or known.needs
        assert known.converter
        assert known.contents or name == "nasbench_asr"
        assert known.licence
        assert known.files
        assert "\n" not in known.description


def test_the_command_lists_every_data_set(
    toy: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = toy("chosen")
    assert main(["bench", "data", "--data", str(folder.parent)]) == 0
    printed = capsys.readouterr().out
    assert f"ok        {folder / TOY}, SHA-256 {data.DATASETS['toy'].files[TOY][:12]}" in printed  # type: ignore[index]
    if data.lies(data.declared("nasbench201")) is None:
        assert "missing   nasbench201.npz" in printed
        assert "then run mctsvs bench data get nasbench201 --from FOLDER" in printed
    for known in data.DATASETS.values():
        assert f"{known.name}: {known.description}" in printed
        assert known.licence in printed
        assert known.source in printed
    (folder / TOY).write_bytes(b"")
    assert main(["bench", "data", "--data", str(folder.parent)]) == 0
    assert f"damaged   {folder / TOY}" in capsys.readouterr().out


def test_run_takes_a_directory(need: Need, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = need("nasbench_macro")
    arguments = ["bench", "run", "NAS-Bench-Macro", "--method", "random", "--budget", "20", "--data"]
    assert main([*arguments, str(folder.parent)]) == 0
    assert "NASBenchMacro, 24 variables, maximize" in capsys.readouterr().out
    assert main([*arguments, str(tmp_path / "no")]) == 2
    assert "there is no data directory" in capsys.readouterr().err


def test_run_names_what_is_missing_and_what_is_damaged(
    need: Need, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    original = need("nasbench201") / "nasbench201.npz"
    monkeypatch.delenv(data.ENVIRONMENT, raising=False)
    (tmp_path / "nasbench201").mkdir()
    arguments = ["bench", "run", "NASBench201", "--budget", "5", "--data", str(tmp_path)]
    content = bytearray(original.read_bytes())
    content[100_000] ^= 1
    for write, words in ((False, "is not in"), (True, "is damaged")):
        if write:
            (tmp_path / "nasbench201" / "nasbench201.npz").write_bytes(content)
        assert main(arguments) == 2
        printed = capsys.readouterr().err
        assert words in printed
        assert len(printed.strip().splitlines()) == 1


def test_a_problem_sent_to_another_process_leaves_its_table_behind(need: Need, tmp_path: Path) -> None:
    data.set_directory(need("hpolib_fcnet").parent)
    problem = make("FCNet_protein")
    content = pickle.dumps(problem)
    assert len(content) < 10_000
    (tmp_path / "problem").write_bytes(content)
    x = np.random.default_rng(3).random(34)
    code = (
        "import pathlib, pickle, numpy as np;"
        f"problem = pickle.loads(pathlib.Path({str(tmp_path / 'problem')!r}).read_bytes());"
        "x = np.random.default_rng(3).random(34); print(repr(problem(x)), repr(problem.cost(x)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ))
    assert result.stdout.split() == [repr(problem(x)), repr(problem.cost(x))], result.stderr
